//! What a write keeps, and what happens when others write at the same time.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::sync::Barrier;
use std::thread;

use pinfold_confine::{Durability, Error, Way, Workspace};
use rustix::fs::{CWD, XattrFlags};
use tempfile::TempDir;

fn workspace() -> (TempDir, Workspace) {
    let dir = TempDir::new().unwrap();
    let workspace = Workspace::open([dir.path()], None).unwrap();
    (dir, workspace)
}

fn write(workspace: &Workspace, path: &str, content: &str) -> Result<(), Error> {
    let target = workspace.target(&path.into(), &Default::default())?;
    target.replace(content.as_bytes(), Durability::None).map(drop)
}

#[test]
fn mode_owner_and_attributes_stay_but_not_the_right_to_act_as_the_owner() {
    let (dir, workspace) = workspace();
    let path = dir.path().join("f");
    fs::write(&path, "old").unwrap();
    let root = rustix::process::geteuid().is_root();
    if root {
        std::os::unix::fs::chown(&path, Some(1234), Some(2345)).unwrap();
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6751)).unwrap();
    rustix::fs::setxattr(&path, "user.note", b"kept", XattrFlags::empty()).unwrap();
    write(&workspace, "f", "new").unwrap();
    let meta = fs::metadata(&path).unwrap();
    assert_eq!(meta.permissions().mode() & 0o7777, 0o751);
    if root {
        assert_eq!((meta.uid(), meta.gid()), (1234, 2345));
    }
    let mut value = [0; 16];
    let size = rustix::fs::getxattr(&path, "user.note", &mut value).unwrap();
    assert_eq!(&value[..size], b"kept");
}

#[test]
fn a_new_file_has_the_mode_of_any_new_file() {
    let (dir, workspace) = workspace();
    write(&workspace, "made/by/us", "x").unwrap();
    fs::create_dir_all(dir.path().join("made/by/them")).unwrap();
    fs::write(dir.path().join("made/by/them/f"), "x").unwrap();
    let mode = |path: &str| fs::metadata(dir.path().join(path)).unwrap().permissions().mode();
    assert_eq!(mode("made/by/us"), mode("made/by/them/f"));
    assert_eq!(mode("made/by"), mode("made/by/them"));
}

#[test]
fn a_link_stays_and_its_target_is_written() {
    let (dir, workspace) = workspace();
    fs::create_dir(dir.path().join("d")).unwrap();
    fs::write(dir.path().join("d/real"), "old").unwrap();
    symlink("d/real", dir.path().join("link")).unwrap();
    write(&workspace, "link", "new").unwrap();
    assert!(dir.path().join("link").is_symlink());
    assert_eq!(fs::read_to_string(dir.path().join("d/real")).unwrap(), "new");
}

#[test]
fn other_names_of_the_file_keep_the_old_content() {
    let (dir, workspace) = workspace();
    fs::write(dir.path().join("one"), "old").unwrap();
    fs::hard_link(dir.path().join("one"), dir.path().join("other")).unwrap();
    write(&workspace, "one", "new").unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("one")).unwrap(), "new");
    assert_eq!(fs::read_to_string(dir.path().join("other")).unwrap(), "old");
}

#[test]
fn the_longest_name_can_be_written() {
    let (dir, workspace) = workspace();
    let name = "n".repeat(255);
    write(&workspace, &name, "one").unwrap();
    write(&workspace, &name, "two").unwrap();
    assert_eq!(fs::read_to_string(dir.path().join(&name)).unwrap(), "two");
}

#[test]
fn a_file_that_changed_since_it_was_found_is_left_alone() {
    let (dir, workspace) = workspace();
    let path = dir.path().join("f");
    type Meanwhile = fn(&std::path::Path);
    let changes: [(&str, Meanwhile); 6] = [
        ("longer", |path| fs::write(path, "theirs, longer").unwrap()),
        ("same size", |path| fs::write(path, "thr").unwrap()),
        ("replaced", |path| {
            fs::write(path.with_extension("new"), "thr").unwrap();
            fs::rename(path.with_extension("new"), path).unwrap();
        }),
        ("mode", |path| fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap()),
        ("removed", |path| fs::remove_file(path).unwrap()),
        ("a link now", |path| {
            fs::remove_file(path).unwrap();
            symlink("/etc/passwd", path).unwrap();
        }),
    ];
    for (what, meanwhile) in changes {
        let _ = fs::remove_file(&path);
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let target = workspace.target(&"f".into(), &Default::default()).unwrap();
        target.hash().unwrap();
        meanwhile(&path);
        let theirs = fs::read(&path).ok();
        let result = target.replace(b"ours", Durability::None);
        assert!(matches!(result, Err(Error::Changed)), "{what}: {result:?}");
        assert_eq!(fs::read(&path).ok(), theirs, "{what}");
        assert!(fs::read_dir(dir.path()).unwrap().count() <= 1, "{what}");
    }
}

/// Puts a file in the place of another, as editors do.
fn put(path: &std::path::Path, text: &str) {
    let draft = path.with_extension("theirs");
    fs::write(&draft, text).unwrap();
    fs::rename(&draft, path).unwrap();
}

/// Writes as many bytes as were there, and sets the time back.
fn write_unseen(path: &std::path::Path, text: &str) {
    let time = fs::metadata(path).unwrap().modified().unwrap();
    fs::write(path, text).unwrap();
    fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn whoever_comes_between_the_last_look_and_the_trade_is_given_back_what_is_theirs() {
    use pinfold_confine::fault::{Meanwhile, interleave};
    type Others = fn(&std::path::Path);
    type Case = (&'static str, &'static [(&'static str, usize, Others)], Option<&'static str>);
    let cases: [Case; 8] = [
        ("replaced", &[("exchange", 1, |path| put(path, "thr"))], Some("thr")),
        (
            "written in place",
            &[("exchange", 1, |path| fs::write(path, "thr").unwrap())],
            Some("thr"),
        ),
        (
            "written in place, unseen",
            &[("exchange", 1, |path| write_unseen(path, "thr"))],
            Some("thr"),
        ),
        (
            "before the last look, unseen",
            &[("flock", 1, |path| write_unseen(path, "thr"))],
            Some("thr"),
        ),
        (
            "replaced again while we trade back",
            &[
                ("exchange", 1, |path| put(path, "thr")),
                ("exchange", 2, |path| put(path, "newest")),
            ],
            Some("newest"),
        ),
        (
            "and once more",
            &[
                ("exchange", 1, |path| put(path, "thr")),
                ("exchange", 2, |path| put(path, "newer")),
                ("exchange", 3, |path| put(path, "newest")),
            ],
            Some("newest"),
        ),
        (
            "removed while we trade back",
            &[
                ("exchange", 1, |path| put(path, "thr")),
                ("exchange", 2, |path| fs::remove_file(path).unwrap()),
            ],
            Some("thr"),
        ),
        ("removed", &[("exchange", 1, |path| fs::remove_file(path).unwrap())], None),
    ];
    for (what, others, left) in cases {
        let (dir, workspace) = workspace();
        let path = dir.path().join("f");
        fs::write(&path, "old").unwrap();
        let target = workspace.target(&"f".into(), &Default::default()).unwrap();
        target.hash().unwrap();
        let meanwhile = others.iter().map(|(call, nth, act)| {
            let (path, act) = (path.clone(), *act);
            (*call, *nth, Box::new(move || act(&path)) as Box<dyn FnOnce()>)
        });
        let meanwhile: Vec<Meanwhile> = meanwhile.collect();
        let report = interleave(meanwhile, || target.replace(b"ours", Durability::None).map(drop));
        assert!(matches!(report.result, Err(Error::Changed)), "{what}: {:?}", report.result);
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), left, "{what}");
        let names = fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(names, usize::from(left.is_some()), "{what}");
    }
}

#[test]
fn a_file_that_came_up_meanwhile_is_not_replaced() {
    let (dir, workspace) = workspace();
    for path in ["f", "made/since/f"] {
        let target = workspace.target(&path.into(), &Default::default()).unwrap();
        fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
        fs::write(dir.path().join(path), "theirs").unwrap();
        let result = target.replace(b"ours", Durability::None);
        assert!(matches!(result, Err(Error::Changed)), "{result:?}");
        assert_eq!(fs::read_to_string(dir.path().join(path)).unwrap(), "theirs");
    }
}

#[test]
fn fifty_writers_at_once_all_land_or_are_told() {
    let (dir, workspace) = workspace();
    fs::write(dir.path().join("count"), "").unwrap();
    let barrier = Barrier::new(50);
    thread::scope(|scope| {
        for number in 0..50 {
            let (workspace, barrier) = (&workspace, &barrier);
            scope.spawn(move || {
                barrier.wait();
                let mut target = workspace.target(&"count".into(), &Default::default()).unwrap();
                let mut text = String::new();
                std::io::Read::read_to_string(target.file().unwrap(), &mut text).unwrap();
                text.push_str(&format!("{number}\n"));
                target.replace(text.as_bytes(), Durability::None).unwrap();
            });
        }
    });
    let text = fs::read_to_string(dir.path().join("count")).unwrap();
    let mut numbers: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..50).collect::<Vec<_>>());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn writers_without_our_locks_lose_nothing_to_us() {
    // One side appends by rename, as editors do; the other is us. Each line that was reported as
    // written must be there in the end, but for those that the other side never saw.
    let (dir, workspace) = workspace();
    let path = dir.path().join("f");
    fs::write(&path, "0").unwrap();
    let theirs = 200;
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..theirs {
                let draft = dir.path().join(format!("draft-{round}"));
                fs::write(&draft, format!("theirs {round}")).unwrap();
                rustix::fs::renameat(CWD, &draft, CWD, &path).unwrap();
            }
        });
        for _ in 0..400 {
            let mut target = workspace.target(&"f".into(), &Default::default()).unwrap();
            let mut seen = String::new();
            std::io::Read::read_to_string(target.file().unwrap(), &mut seen).unwrap();
            let result = target.replace(format!("{seen} ours").as_bytes(), Durability::None);
            assert!(matches!(result, Ok(_) | Err(Error::Changed)), "{result:?}");
        }
    });
    // Their last version was never lost: it is there, with or without what we added to it.
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with(&format!("theirs {}", theirs - 1)), "{text}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_file_that_may_not_be_written_is_not_replaced() {
    if rustix::process::geteuid().is_root() {
        // The system refuses root nothing: `denied_calls_are_told` has the case by injection.
        return;
    }
    let (dir, workspace) = workspace();
    fs::write(dir.path().join("f"), "old").unwrap();
    fs::set_permissions(dir.path().join("f"), fs::Permissions::from_mode(0o444)).unwrap();
    assert!(matches!(write(&workspace, "f", "new"), Err(Error::Denied)));
}

#[test]
fn denied_calls_are_told() {
    use pinfold_confine::fault::{Fault, When, inject};
    let (dir, workspace) = workspace();
    fs::write(dir.path().join("f"), "old").unwrap();
    let denied = Fault::Errno(rustix::io::Errno::ACCESS.raw_os_error());
    let report = inject(&[(When::Every("faccessat"), denied)], || write(&workspace, "f", "new"));
    assert!(matches!(report.result, Err(Error::Denied)));
    let foreign = Fault::Errno(rustix::io::Errno::PERM.raw_os_error());
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(dir.path().join("f"), Some(1), Some(1)).unwrap();
        let report = inject(&[(When::Every("fchown"), foreign)], || write(&workspace, "f", "new"));
        assert!(matches!(report.result, Err(Error::Owner { uid: 1, gid: 1 })));
    }
    assert_eq!(fs::read_to_string(dir.path().join("f")).unwrap(), "old");
}

/// An access list with one more user, as the kernel stores it.
fn access_list(user: u32, rights: u16) -> Vec<u8> {
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, rights, id) in [
        (0x01u16, 7u16, u32::MAX),
        (0x02, rights, user),
        (0x04, 0, u32::MAX),
        (0x10, 7, u32::MAX),
        (0x20, 0, u32::MAX),
    ] {
        list.extend(
            tag.to_le_bytes().into_iter().chain(rights.to_le_bytes()).chain(id.to_le_bytes()),
        );
    }
    list
}

#[test]
fn a_default_access_list_of_the_directory_lets_nobody_in() {
    let (dir, workspace) = workspace();
    let name = "system.posix_acl_default";
    fs::write(dir.path().join("f"), "old").unwrap();
    fs::set_permissions(dir.path().join("f"), fs::Permissions::from_mode(0o660)).unwrap();
    if rustix::fs::setxattr(dir.path(), name, &access_list(65534, 7), XattrFlags::empty()).is_err()
    {
        eprintln!("skipped: this file system has no access lists");
        return;
    }
    write(&workspace, "f", "new").unwrap();
    let mut buffer = [0; 64];
    let found = rustix::fs::getxattr(dir.path().join("f"), "system.posix_acl_access", &mut buffer);
    assert_eq!(found, Err(rustix::io::Errno::NODATA));
    assert_eq!(fs::metadata(dir.path().join("f")).unwrap().permissions().mode() & 0o777, 0o660);
}

#[test]
fn an_access_list_of_the_file_stays() {
    let (dir, workspace) = workspace();
    let (path, name) = (dir.path().join("f"), "system.posix_acl_access");
    fs::write(&path, "old").unwrap();
    if rustix::fs::setxattr(&path, name, &access_list(65534, 4), XattrFlags::empty()).is_err() {
        eprintln!("skipped: this file system has no access lists");
        return;
    }
    write(&workspace, "f", "new").unwrap();
    let mut buffer = [0; 64];
    let size = rustix::fs::getxattr(&path, name, &mut buffer).unwrap();
    assert_eq!(&buffer[..size], access_list(65534, 4));
}

#[test]
fn content_is_flushed_before_it_takes_its_place_and_the_directory_after() {
    use pinfold_confine::fault::inject;
    for (existing, how) in [
        (true, Durability::None),
        (true, Durability::Data),
        (true, Durability::Full),
        (false, Durability::None),
        (false, Durability::Data),
        (false, Durability::Full),
    ] {
        let (dir, workspace) = workspace();
        if existing {
            fs::write(dir.path().join("f"), "old").unwrap();
        }
        let target = workspace.target(&"f".into(), &Default::default()).unwrap();
        let calls = inject(&[], || target.replace(b"new", how).map(drop)).calls;
        let at = |name: &str| calls.iter().position(|call| *call == name);
        let trade = at(if existing { "exchange" } else { "rename_new" }).unwrap();
        let what = format!("{existing} {how:?}: {calls:?}");
        assert!(at("flock").unwrap() < trade, "{what}");
        match how {
            Durability::None => assert_eq!(at("fdatasync"), None, "{what}"),
            _ => assert!(
                at("write").unwrap() < at("fdatasync").unwrap() && at("fdatasync").unwrap() < trade,
                "{what}"
            ),
        }
        assert_eq!(
            at("fsync").is_some_and(|fsync| fsync > trade),
            how == Durability::Full,
            "{what}"
        );
    }
}

#[test]
fn nobody_waits_longer_than_they_are_willing_to() {
    use pinfold_confine::Patience;
    let (dir, workspace) = workspace();
    fs::write(dir.path().join("f"), "old").unwrap();
    let never = Patience::while_true(|| false);
    let held = workspace.target(&"f".into(), &Patience::default()).unwrap();
    let result = workspace.target(&"f".into(), &never);
    assert!(matches!(result, Err(Error::Impatient)), "{result:?}");
    drop(held);

    // Somebody else holds the directory's lock.
    let lock = fs::File::open(dir.path()).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let target = workspace.target(&"new".into(), &never).unwrap();
    let result = target.replace(b"x", Durability::None);
    assert!(matches!(result, Err(Error::Impatient)), "{result:?}");
    let removal = workspace.removal(&"f".into(), &never).unwrap();
    assert!(matches!(removal.remove(Durability::None), Err(Error::Impatient)));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);

    let target = workspace.target(&"f".into(), &never).unwrap();
    assert!(matches!(target.hash(), Err(Error::Impatient)));
}

#[test]
fn directories_that_others_take_back_are_made_again() {
    use pinfold_confine::fault::interleave;
    let (dir, workspace) = workspace();
    for (call, nth) in [("mkdirat", 2), ("create", 1), ("rename_new", 1)] {
        let target = workspace.target(&"a/b/c".into(), &Default::default()).unwrap();
        let root = dir.path().to_owned();
        let others = Box::new(move || fs::remove_dir_all(root.join("a")).unwrap());
        let report = interleave(vec![(call, nth, others)], || {
            target.replace(b"x", Durability::None).map(drop)
        });
        assert!(matches!(report.result, Err(Error::Changed)), "{call}: {:?}", report.result);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{call}");
    }
}

#[test]
fn a_removal_is_of_the_content_that_was_hashed_or_secured() {
    use pinfold_confine::{Name, Removal, Vault};
    let vaults = TempDir::new().unwrap();
    let vault = Vault::open(vaults.path()).unwrap();
    type Note<'n> = &'n dyn Fn(&Removal);
    let hash: Note<'_> = &|removal| assert!(removal.hash().unwrap().is_some());
    let secure: Note<'_> = &|removal| {
        vault.secure_removal(removal, &Name::parse(b"kept").unwrap()).unwrap();
    };
    for (what, note) in [("hashed", hash), ("secured", secure)] {
        let (dir, workspace) = workspace();
        let path = dir.path().join("f");
        fs::write(&path, "old").unwrap();
        // A file with two names is secured by a copy.
        fs::hard_link(&path, dir.path().join("g")).unwrap();
        let removal = workspace.removal(&"f".into(), &Default::default()).unwrap();
        note(&removal);
        write_unseen(&path, "thr");
        let removed = removal.remove(Durability::None).map(drop);
        assert!(matches!(removed, Err(Error::Changed)), "{what}: {removed:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "thr", "{what}");
    }
}

#[test]
fn a_file_that_may_not_be_read_can_be_removed() {
    use pinfold_confine::fault::{Fault, When, inject};
    let dir = TempDir::new().unwrap();
    let workspace = Workspace::open([dir.path()], Some(Way::Kernel)).unwrap();
    fs::write(dir.path().join("f"), "old").unwrap();
    let removal = workspace.removal(&"f".into(), &Default::default()).unwrap();
    let denied = Fault::Errno(rustix::io::Errno::ACCESS.raw_os_error());
    let report =
        inject(&[(When::Every("openat"), denied)], || removal.remove(Durability::None).map(drop));
    report.result.unwrap();
    assert!(!dir.path().join("f").exists());
}

#[test]
fn a_file_that_grows_while_it_is_read_has_changed() {
    let (dir, workspace) = workspace();
    let path = dir.path().join("f");
    fs::write(&path, "old").unwrap();
    for (more, grows) in [("", false), (" and more", true)] {
        let mut target = workspace.target(&"f".into(), &Default::default()).unwrap();
        fs::write(&path, format!("old{more}")).unwrap();
        let content = target.content();
        assert_eq!(matches!(content, Err(Error::Changed)), grows, "{content:?}");
        assert_eq!(content.is_ok(), !grows);
    }
}

#[test]
fn a_log_that_is_replaced_again_and_again_is_given_up() {
    use pinfold_confine::fault::{Meanwhile, interleave};
    use pinfold_confine::{Name, Vault};
    let dir = TempDir::new().unwrap();
    let vault = Vault::open(dir.path()).unwrap();
    let log = Name::parse(b"log").unwrap();
    // Before each look at whether the name is still that of the file that was locked.
    let remove = |nth| -> Meanwhile {
        let path = dir.path().join("log");
        ("fstatat", nth, Box::new(move || fs::remove_file(path).unwrap()))
    };
    for (times, added) in [(3, true), (200, false)] {
        let others = (1..=times).map(remove).collect();
        let report = interleave(others, || vault.append(&log, "line", &Default::default()));
        assert_eq!(report.result.is_ok(), added, "{:?}", report.result);
        assert_eq!(matches!(report.result, Err(Error::Changed)), !added);
    }
}

#[test]
fn what_is_removed_is_what_was_found() {
    use pinfold_confine::fault::interleave;
    type Others = fn(&std::path::Path);
    let cases: [(&str, Others, Option<&str>); 5] = [
        ("replaced", |path| put(path, "theirs"), Some("theirs")),
        ("written", |path| fs::write(path, "theirs").unwrap(), Some("theirs")),
        ("replaced, same size", |path| put(path, "thr"), Some("thr")),
        // As within one tick of the clock.
        ("written, same size, unseen", |path| write_unseen(path, "thr"), Some("thr")),
        ("removed", |path| fs::remove_file(path).unwrap(), None),
    ];
    for (what, act, left) in cases {
        let (dir, workspace) = workspace();
        let path = dir.path().join("f");
        fs::write(&path, "old").unwrap();
        let removal = workspace.removal(&"f".into(), &Default::default()).unwrap();
        let own = path.clone();
        let others: Box<dyn FnOnce()> = Box::new(move || act(&own));
        let report = interleave(vec![("rename_new", 1, others)], || {
            removal.remove(Durability::None).map(drop)
        });
        assert!(matches!(report.result, Err(Error::Changed)), "{what}: {:?}", report.result);
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), left, "{what}");
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            usize::from(left.is_some()),
            "{what}"
        );
    }
}
