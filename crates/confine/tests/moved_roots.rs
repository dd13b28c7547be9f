//! Roots and directories that are removed, moved away or replaced while they are in use.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

mod landlock;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use landlock::{Landlock, OtherProcess, off_and_on, restricted};
use pinfold_confine::fault::{Fault, When, inject_while, interleave};
use pinfold_confine::{Durability, Error, OpenMethod, Workspace};
use pinfold_testkit::{can_create_unnamed, can_rename_new, names_in, until_seen};
use tempfile::TempDir;

const METHODS: [OpenMethod; 2] = [OpenMethod::Kernel, OpenMethod::NameByName];

fn read(workspace: &Workspace, path: &str) -> Result<String, Error> {
    let mut text = String::new();
    let (_, mut file) = workspace.file(&path.into())?;
    std::io::Read::read_to_string(&mut file, &mut text).map_err(Error::Os)?;
    Ok(text)
}

fn write(workspace: &Workspace, path: &str) -> Result<(), Error> {
    let target = workspace.target(&path.into(), &Default::default())?;
    target.replace(b"new", Durability::None).map(drop)
}

/// The names in a directory. If the file system cannot rename without replacing, a new file has two names for a moment.
/// Where Landlock forbids changes, it keeps the temp name, or is left there, empty.
fn names(dir: &Path) -> Vec<String> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = |name: &str| fs::symlink_metadata(dir.join(name)).ok();
    let mut names = names_in(dir);
    let file = meta("f").map(|meta| meta.ino());
    let is_second = |name: &str| {
        let of_file = |it: fs::Metadata| it.len() == 0 || Some(it.ino()) == file;
        name.ends_with(".tmp") && meta(name).is_some_and(of_file)
    };
    if names.iter().any(|name| is_second(name)) && !can_rename_new(dir.parent().unwrap()) {
        names.retain(|name| !is_second(name));
    }
    names
}

#[test]
fn a_root_is_a_path() {
    for method in METHODS {
        let dir = TempDir::new().unwrap();
        let (root, moved) = (dir.path().join("ws"), dir.path().join("moved"));
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(root.join("sub/f"), "first").unwrap();
        let workspace = Workspace::open([&root], Some(method)).unwrap();
        let narrow = workspace.narrowed([root.join("sub")]).unwrap();
        let within = workspace.starting_at(&root.join("sub")).unwrap();
        assert_eq!(read(&workspace, "sub/f").unwrap(), "first");

        fs::rename(&root, &moved).unwrap();
        for workspace in [&workspace, &narrow, &within] {
            for result in [
                read(workspace, "sub/f").map(drop),
                write(workspace, "sub/g"),
                workspace.list(&".".into(), 9).map(drop),
                workspace.outermost_roots().map(drop),
                workspace.removal(&"sub/f".into(), &Default::default()).map(drop),
            ] {
                assert!(matches!(result, Err(Error::RootGone(_))), "{result:?}");
            }
        }

        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(root.join("sub/f"), "second").unwrap();
        assert_eq!(read(&workspace, "sub/f").unwrap(), "second");
        assert_eq!(read(&within, "f").unwrap(), "second");
        assert_eq!(read(&narrow, &root.join("sub/f").display().to_string()).unwrap(), "second");
        write(&workspace, "sub/g").unwrap();
        write(&within, "h").unwrap();
        assert_eq!(names(&moved.join("sub")), ["f"]);
        assert_eq!(names(&root.join("sub")), ["f", "g", "h"]);

        // A symlink in the place of a narrowed root does not lead out of the root.
        fs::rename(root.join("sub"), dir.path().join("outside")).unwrap();
        symlink(dir.path().join("outside"), root.join("sub")).unwrap();
        let result = read(&narrow, &root.join("sub/f").display().to_string());
        assert!(matches!(result, Err(Error::RootGone(_) | Error::Outside)), "{result:?}");
    }
}

#[test]
fn a_root_that_is_a_symlink_is_what_the_symlink_says() {
    for method in METHODS {
        let dir = TempDir::new().unwrap();
        let at = fs::canonicalize(dir.path()).unwrap();
        for name in ["one", "two"] {
            fs::create_dir(at.join(name)).unwrap();
            fs::write(at.join(name).join("f"), name).unwrap();
        }
        symlink("one", at.join("ws")).unwrap();
        let workspace = Workspace::open([at.join("ws")], Some(method)).unwrap();
        assert_eq!(read(&workspace, "f").unwrap(), "one");
        fs::remove_file(at.join("ws")).unwrap();
        symlink("two", at.join("ws")).unwrap();
        let two = at.join("two/f").display().to_string();
        assert_eq!(read(&workspace, &two).unwrap(), "two");
        assert_eq!(read(&workspace, "f").unwrap(), "two");
        let place = workspace.lstat(&"f".into()).unwrap().place;
        assert_eq!(workspace.real_path(&place), two.as_bytes());
        let one = at.join("one/f").display().to_string();
        assert!(matches!(read(&workspace, &one), Err(Error::Outside)));
    }
}

#[test]
fn a_root_cannot_be_redirected_from_inside_another_root() {
    for (method, is_read_root) in
        METHODS.into_iter().flat_map(|method| [(method, true), (method, false)])
    {
        let dir = TempDir::new().unwrap();
        let at = fs::canonicalize(dir.path()).unwrap();
        for name in ["ws/inner", "data", "secret"] {
            fs::create_dir_all(at.join(name)).unwrap();
            fs::write(at.join(name).join("f"), name).unwrap();
        }
        symlink("../data", at.join("ws/link")).unwrap();
        let (ws, nested) = (at.join("ws"), ["ws/inner", "ws/link"].map(|name| at.join(name)));
        let workspace = if is_read_root {
            let workspace = Workspace::open([&ws], Some(method)).unwrap();
            workspace.with_read_roots(&nested).unwrap()
        } else {
            Workspace::open([&ws].into_iter().chain(&nested), Some(method)).unwrap()
        };
        let path = |name: &str| at.join(name).display().to_string();
        assert_eq!(read(&workspace, &path("ws/inner/f")).unwrap(), "ws/inner");
        assert_eq!(read(&workspace, &path("ws/link/f")).unwrap(), "data");
        // Anybody who may write in `ws` can do that.
        fs::rename(at.join("ws/inner"), at.join("ws/aside")).unwrap();
        symlink("../secret", at.join("ws/inner")).unwrap();
        fs::remove_file(at.join("ws/link")).unwrap();
        symlink("../secret", at.join("ws/link")).unwrap();
        for name in ["ws/inner/f", "ws/inner/../link/f", "ws/link/../../secret/f", "secret/f"] {
            assert!(read(&workspace, &path(name)).is_err(), "{name}");
            assert!(write(&workspace, &path(name)).is_err(), "{name}");
        }
        assert_eq!(read(&workspace, &path("ws/link/f")).unwrap_or("data".into()), "data");
        assert_eq!(fs::read_to_string(at.join("secret/f")).unwrap(), "secret");
        // A directory that takes its place again is the root.
        fs::remove_file(at.join("ws/inner")).unwrap();
        fs::rename(at.join("ws/aside"), at.join("ws/inner")).unwrap();
        assert_eq!(read(&workspace, &path("ws/inner/f")).unwrap(), "ws/inner");
    }
}

#[test]
fn a_root_that_gets_another_real_path_is_known_by_that() {
    for (method, is_link) in
        METHODS.into_iter().flat_map(|method| [(method, true), (method, false)])
    {
        let dir = TempDir::new().unwrap();
        let at = fs::canonicalize(dir.path()).unwrap();
        let first = if is_link { "a" } else { "ws" };
        fs::create_dir(at.join(first)).unwrap();
        fs::write(at.join(first).join("f"), "text").unwrap();
        if is_link {
            symlink("a", at.join("ws")).unwrap();
        }
        let workspace = Workspace::open([at.join("ws")], Some(method)).unwrap();
        assert_eq!(read(&workspace, "f").unwrap(), "text");
        fs::rename(at.join(first), at.join("c")).unwrap();
        if is_link {
            fs::remove_file(at.join("ws")).unwrap();
        }
        symlink("c", at.join("ws")).unwrap();
        let place = workspace.lstat(&"f".into()).unwrap().place;
        let real = at.join("c/f").display().to_string();
        assert_eq!(workspace.real_path(&place), real.as_bytes());
        assert_eq!(read(&workspace, &real).unwrap(), "text");
        if is_link {
            let stale = read(&workspace, &at.join("a/f").display().to_string());
            assert!(matches!(stale, Err(Error::Outside)), "{stale:?}");
        }
    }
}

/// Moves a directory just before the n-th call of a kind, for every n: out of the root, where Landlock forbids
/// changes, or to another place in it.
fn move_at_every_call(
    landlock: Landlock,
    action: impl Fn(&Workspace) -> Result<(), Error> + Sync,
    existing: bool,
) {
    let other = OtherProcess::start();
    for (call, to) in
        ["openat2", "openat", "flock", "exchange", "rename_new", "stat", "fstatat", "fstat"]
            .into_iter()
            .flat_map(|call| ["../outside", ".git/hooks"].map(|to| (call, to)))
    {
        for nth in 1..20 {
            let dir = TempDir::new().unwrap();
            let root = dir.path().join("ws");
            fs::create_dir_all(root.join("a/b")).unwrap();
            fs::create_dir(root.join(".git")).unwrap();
            if existing {
                fs::write(root.join("a/b/f"), "old").unwrap();
            }
            let workspace = Workspace::open([&root], None).unwrap();
            let moved = root.join(to);
            let (from, there, other) = (root.join("a/b"), moved.clone(), other.clone());
            let report = restricted(landlock, &[&root], || {
                let moves = move || other.run(move || fs::rename(from, there).unwrap());
                interleave(vec![(call, nth, Box::new(moves))], || action(&workspace))
            });
            if !moved.exists() {
                break;
            }
            let what = format!(
                "{landlock:?}, {to} at {call} {nth}: {:?} {:?}",
                report.result, report.calls
            );
            let content = |name: &str| fs::read_to_string(moved.join(name)).ok();
            let others: Vec<_> = names(&moved).into_iter().filter(|name| name != "f").collect();
            let out_of_reach = landlock == Landlock::On && to == "../outside";
            match &report.result {
                // Moved after the last lookup of the path, or the path was created again.
                Ok(()) => {
                    let mut made = report.calls.iter().enumerate();
                    let _ = made.by_ref().filter(|(_, made)| **made == call).nth(nth - 1).unwrap();
                    let after = !made.any(|(_, made)| *made == "openat2");
                    assert!(after || root.join("a/b/f").exists(), "{what}");
                }
                // The error says what is left.
                Err(Error::RestoredInPlace { copy }) if out_of_reach => {
                    assert_eq!(content("f").as_deref(), Some("old"), "{what}");
                    assert_eq!((&others[..], content(copy)), (&[copy.clone()][..], content("f")));
                }
                Err(Error::RollbackFailed { kept }) if out_of_reach => {
                    assert_eq!(content(kept).as_deref(), Some("old"), "{what}");
                    assert_eq!(names(&moved), [kept.as_str()], "{what}");
                }
                Err(Error::CreatedRemains { emptied: true }) if out_of_reach => {
                    assert_eq!((content("f").as_deref(), existing), (Some(""), false), "{what}");
                    assert_eq!(others, [""; 0], "{what}");
                }
                Err(_) => {
                    assert_eq!(content("f").as_deref(), existing.then_some("old"), "{what}");
                    // A temp file that cannot be deleted is empty.
                    let empty = others.iter().all(|name| content(name).as_deref() == Some(""));
                    assert!(others.is_empty() || out_of_reach && empty, "{what}: {others:?}");
                }
            }
        }
    }
}

#[test]
fn a_directory_that_is_moved_does_not_take_the_change_with_it() {
    for landlock in off_and_on() {
        move_at_every_call(landlock, |workspace| write(workspace, "a/b/f"), true);
        move_at_every_call(landlock, |workspace| write(workspace, "a/b/f"), false);
        let remove = |workspace: &Workspace| {
            let removal = workspace.removal(&"a/b/f".into(), &Default::default())?;
            removal.remove(Durability::None).map(drop)
        };
        move_at_every_call(landlock, remove, true);
    }
}

/// Moves the directory `a` out of the root just before a call. Returns the error, and the directory's entries.
fn moved_at(
    landlock: Landlock,
    (call, nth): (&'static str, usize),
    before: Option<&str>,
    faults: &[(When, Fault)],
    action: impl FnOnce(&Workspace) -> Result<(), Error> + Send,
) -> (Error, Vec<(String, String)>) {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("ws");
    fs::create_dir_all(root.join("a")).unwrap();
    if let Some(content) = before {
        fs::write(root.join("a/f"), content).unwrap();
    }
    let workspace = Workspace::open([&root], None).unwrap();
    let (from, to) = (root.join("a"), dir.path().join("outside"));
    let other = OtherProcess::start();
    let report = restricted(landlock, &[&root], || {
        let moves = move || other.run(move || fs::rename(from, to).unwrap());
        inject_while(faults, vec![(call, nth, Box::new(moves))], || action(&workspace))
    });
    let outside = dir.path().join("outside");
    if let (Err(Error::RestoredInPlace { .. }), Some(content)) = (&report.result, before) {
        until_seen(|| fs::metadata(outside.join("f")).unwrap().len() == content.len() as u64);
    }
    let left = names(&outside).into_iter();
    let left = left.map(|name| (fs::read_to_string(outside.join(&name)).unwrap(), name));
    let left = left.map(|(content, name)| (name, content)).collect();
    (report.result.unwrap_err(), left)
}

#[test]
fn a_directory_that_is_moved_at_the_exchange_gets_its_file_back() {
    for landlock in off_and_on() {
        let all_named = [(When::Every("create_unnamed"), Fault::Errno(95))];
        for (before, call, faults) in [
            (Some("old"), "exchange", &[][..]),
            (None, "link_unnamed", &[]),
            (None, "rename_new", &all_named),
        ] {
            if call == "link_unnamed" && !can_create_unnamed(&std::env::temp_dir()) {
                continue;
            }
            let (error, left) =
                moved_at(landlock, (call, 1), before, faults, |workspace| write(workspace, "a/f"));
            let content = |of: &str| left.iter().find(|(name, _)| name == of).map(|it| &*it.1);
            assert_eq!(content("f"), before, "{landlock:?}: {left:?}");
            if landlock == Landlock::Off {
                assert!(matches!(error, Error::DirectoryMoved), "{error:?}");
                assert_eq!(left.len(), usize::from(before.is_some()));
            } else {
                // The kernel refuses the exchange itself.
                assert!(matches!(error, Error::Denied), "{error:?}");
            }
        }
    }
}

/// After the exchange, the path is looked up by the second of these calls.
#[test]
fn what_cannot_be_renamed_back_is_written_back_and_said() {
    let landlock = *off_and_on().last().unwrap();
    if landlock == Landlock::Off {
        return;
    }
    let long = "old, and much longer than the new content".repeat(5000);
    let no_exchange = [(When::Every("exchange"), Fault::Errno(22))];
    for (old, faults) in [("old", &[][..]), ("", &[]), (&long, &[]), (&long, &no_exchange)] {
        let (error, left) = moved_at(landlock, ("openat2", 3), Some(old), faults, |workspace| {
            write(workspace, "a/f")
        });
        let Error::RestoredInPlace { copy } = &error else { panic!("{error:?}") };
        let expected = [(copy.clone(), old.to_owned()), ("f".to_owned(), old.to_owned())];
        assert_eq!(left, expected, "{}", old.len());
    }
    let (error, left) =
        moved_at(landlock, ("openat2", 3), None, &[], |workspace| write(workspace, "a/f"));
    assert!(matches!(error, Error::CreatedRemains { emptied: true }), "{error:?}");
    assert_eq!(left, [("f".to_owned(), String::new())]);
    let (error, left) = moved_at(landlock, ("openat2", 4), Some("old"), &[], |workspace| {
        let removal = workspace.removal(&"a/f".into(), &Default::default())?;
        removal.remove(Durability::None).map(drop)
    });
    let Error::RollbackFailed { kept } = &error else { panic!("{error:?}") };
    assert_eq!(left, [(kept.clone(), "old".to_owned())]);
}
