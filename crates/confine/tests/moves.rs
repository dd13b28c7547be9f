//! Moves, and creation of directories: nothing is replaced, and a failure changes nothing.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use pinfold_confine::fault::{Fault, When, each_call, inject, interleave};
use pinfold_confine::{Durability, Error, OpenMethod, RelocationError, Workspace};
use pinfold_testkit::{can_rename_new, tree};
use rustix::io::Errno;
use tempfile::TempDir;

fn relocate(
    workspace: &Workspace,
    from: &str,
    to: &str,
    durability: Durability,
) -> Result<(), Error> {
    let relocation = workspace.relocation(&from.into(), &to.into(), &Default::default());
    let relocation = relocation.map_err(|error| match error {
        RelocationError::Source(error) | RelocationError::Destination(error) => error,
    })?;
    relocation.relocate(durability)
}

fn stage() -> TempDir {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("file"), "content").unwrap();
    fs::create_dir_all(dir.path().join("dir/inner")).unwrap();
    fs::write(dir.path().join("dir/inner/f"), "deep").unwrap();
    symlink("nowhere", dir.path().join("link")).unwrap();
    dir
}

#[test]
fn files_directories_and_symlinks_themselves_are_moved() {
    for (from, to, moved) in [
        ("file", "new/deeper/file", "new/deeper/file"),
        ("dir", "moved/", "moved/inner/f"),
        ("link", "dir/link", "dir/link"),
    ] {
        let dir = stage();
        let workspace = Workspace::open([dir.path()], None).unwrap();
        relocate(&workspace, from, to, Durability::Full).unwrap();
        assert!(fs::symlink_metadata(dir.path().join(from)).is_err(), "{from}");
        assert!(fs::symlink_metadata(dir.path().join(moved)).is_ok(), "{to}");
    }
}

#[test]
fn what_cannot_be_moved_stays() {
    let dir = stage();
    let nested = dir.path().join("dir/inner");
    let workspace = Workspace::open([dir.path(), &nested], None).unwrap();
    symlink("file", dir.path().join("alias")).unwrap();
    let before = tree(dir.path());
    let refused = |from: &str, to: &str| {
        let error = relocate(&workspace, from, to, Durability::None).unwrap_err();
        assert_eq!(tree(dir.path()), before, "{from} to {to}");
        error
    };
    for (from, to) in [("file", "dir"), ("link", "file"), ("file", "link"), ("link", "alias/")] {
        assert!(matches!(refused(from, to), Error::Exists), "{from} to {to}");
    }
    for (from, to) in [
        ("file", "file"),
        ("file", "./dir/../file"),
        ("file", "new/"),
        (".", "new"),
        // It holds a root.
        ("dir", "new"),
        ("dir/inner", "new"),
        ("file", ".pinfold-0123456789abcdef.tmp"),
    ] {
        assert!(matches!(refused(from, to), Error::BadPath(_)), "{from} to {to}");
    }
    assert!(matches!(refused("missing", "new"), Error::NotFound));
    assert!(matches!(refused("file", "../new"), Error::Outside));
    assert!(matches!(refused("../x", "new"), Error::Outside));
    assert!(matches!(refused("link/", "new"), Error::NotADirectory));
    let plain = Workspace::open([dir.path()], None).unwrap();
    for to in ["dir/inner/dir", "dir/new", "dir/inner/../y"] {
        let error = relocate(&plain, "dir", to, Durability::None).unwrap_err();
        assert!(matches!(error, Error::BadPath(_)), "{to}: {error:?}");
        assert_eq!(tree(dir.path()), before);
    }
}

/// `/dev/shm` is a file system of its own on Linux.
#[test]
fn another_file_system_is_refused() {
    let (dir, Ok(other)) = (stage(), TempDir::new_in("/dev/shm")) else { return };
    let workspace = Workspace::open([dir.path(), other.path()], None).unwrap();
    let to = other.path().join("file");
    for from in ["file", "dir", "link"] {
        let moved = relocate(&workspace, from, to.to_str().unwrap(), Durability::None);
        assert!(matches!(moved, Err(Error::CrossDevice)), "{moved:?}");
    }
    assert_eq!(tree(other.path()).len(), 0);
    let report =
        inject(&[(When::Every("rename_new"), Fault::Errno(Errno::XDEV.raw_os_error()))], || {
            relocate(&workspace, "file", "made/new", Durability::None)
        });
    assert!(matches!(report.result, Err(Error::CrossDevice)), "{:?}", report.result);
    assert!(!dir.path().join("made").exists());
}

#[test]
fn a_move_that_fails_anywhere_leaves_everything_as_it_was() {
    let cannot = (When::Every("rename_new"), Fault::Errno(Errno::INVAL.raw_os_error()));
    let ways = [
        (OpenMethod::Kernel, Durability::Full, Errno::IO),
        (OpenMethod::NameByName, Durability::None, Errno::NOSPC),
    ];
    let moves = [("file", "new/deeper/file"), ("dir", "new/dir"), ("link", "dir/link")];
    for always in [&[][..], &[cannot]] {
        for ((method, durability, errno), (from, to)) in
            ways.into_iter().flat_map(|way| moves.map(|paths| (way, paths)))
        {
            for nth in each_call() {
                let dir = stage();
                let before = tree(dir.path());
                let workspace = Workspace::open([dir.path()], Some(method)).unwrap();
                let fault = (When::Nth(nth), Fault::Errno(errno.raw_os_error()));
                let faults: Vec<_> = always.iter().copied().chain([fault]).collect();
                let report = inject(&faults, || relocate(&workspace, from, to, durability));
                let what = format!("{from}, {errno:?} at {nth} of {:?}", report.calls);
                let there = |path| fs::symlink_metadata(dir.path().join(path)).is_ok();
                match report.result {
                    Ok(()) => assert!(there(to) && !there(from), "{what}"),
                    Err(_) => assert_eq!(tree(dir.path()), before, "{what}"),
                }
                if report.fired.is_none() {
                    break;
                }
            }
        }
    }
}

#[test]
fn what_others_do_meanwhile_is_not_lost() {
    type Others = fn(&Path);
    let cases: [(&str, &str, Others, &str); 5] = [
        (
            "the name is taken",
            "rename_new",
            |ws| fs::write(ws.join("to/f"), "theirs").unwrap(),
            "to/f",
        ),
        (
            "the file is replaced",
            "rename_new",
            |ws| {
                fs::write(ws.join("save"), "theirs").unwrap();
                fs::rename(ws.join("save"), ws.join("file")).unwrap();
            },
            "file",
        ),
        (
            "the file is written",
            "rename_new",
            |ws| fs::write(ws.join("file"), "theirs").unwrap(),
            "file",
        ),
        (
            "the new directory is moved",
            "rename_new",
            |ws| {
                fs::rename(ws.join("to"), ws.join("elsewhere")).unwrap();
                fs::write(ws.join("mark"), "theirs").unwrap();
            },
            "mark",
        ),
        (
            "the new directory is swapped for a link out",
            "rename_new",
            |ws| {
                fs::rename(ws.join("to"), ws.join("elsewhere")).unwrap();
                symlink("/tmp", ws.join("to")).unwrap();
                fs::write(ws.join("mark"), "theirs").unwrap();
            },
            "mark",
        ),
    ];
    for (what, call, act, theirs) in cases {
        let dir = stage();
        fs::create_dir(dir.path().join("to")).unwrap();
        let workspace = Workspace::open([dir.path()], None).unwrap();
        let ws = dir.path().to_owned();
        let others: Box<dyn FnOnce()> = Box::new(move || act(&ws));
        let report = interleave(vec![(call, 1, others)], || {
            relocate(&workspace, "file", "to/f", Durability::None)
        });
        report.result.unwrap_err();
        assert_eq!(fs::read_to_string(dir.path().join(theirs)).unwrap(), "theirs", "{what}");
        let file = fs::read_to_string(dir.path().join("file")).unwrap();
        assert!(["content", "theirs"].contains(&file.as_str()), "{what}");
        assert!(!dir.path().join("elsewhere/f").exists(), "{what}");
    }
}

/// The task of a process that this test starts: `DIRECTORY|FROM|TO|NTH`.
#[test]
fn task_of_another_process() {
    let Ok(task) = std::env::var("PINFOLD_TEST_TASK") else { return };
    let [dir, from, to, nth] = task.split('|').collect::<Vec<_>>()[..] else { panic!("{task}") };
    let workspace = Workspace::open([dir], None).unwrap();
    let kill = (When::Nth(nth.parse().unwrap()), Fault::Exit);
    inject(&[kill], || relocate(&workspace, from, to, Durability::Full)).result.unwrap();
    println!("done");
}

#[test]
fn a_killed_move_is_made_or_not_made() {
    for (from, to) in [("file", "new/file"), ("dir", "moved")] {
        for nth in each_call() {
            let dir = stage();
            let task = format!("{}|{from}|{to}|{nth}", dir.path().display());
            let mut command = pinfold_testkit::this_program();
            command.args(["task_of_another_process", "--exact", "--nocapture"]);
            let output = command.env("PINFOLD_TEST_TASK", task).output().unwrap();
            let there = |path| fs::symlink_metadata(dir.path().join(path)).is_ok();
            if there(from) && there(to) && !can_rename_new(dir.path()) {
                // Between the two calls that a move takes then, a file has both names, and a directory an empty twin.
                let [old, new] =
                    [from, to].map(|name| fs::metadata(dir.path().join(name)).unwrap());
                let is_same = old.ino() == new.ino();
                assert!(is_same || fs::remove_dir(dir.path().join(to)).is_ok(), "killed at {nth}");
                continue;
            }
            assert_ne!(there(from), there(to), "{from} killed at {nth}");
            if String::from_utf8_lossy(&output.stdout).contains("done") {
                break;
            }
        }
    }
}

#[test]
fn of_two_moves_to_one_place_one_is_told() {
    for round in 0..20 {
        let dir = TempDir::new().unwrap();
        for name in ["a", "b"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        let workspaces = [0, 1].map(|_| Workspace::open([dir.path()], None).unwrap());
        let moved = std::thread::scope(|scope| {
            let [one, other] = &workspaces;
            let threads = [(one, "a"), (other, "b")].map(|(workspace, from)| {
                scope.spawn(move || relocate(workspace, from, "to", Durability::None).is_ok())
            });
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(moved.iter().filter(|moved| **moved).count(), 1, "round {round}");
        assert_eq!(tree(dir.path()).len(), 2);
    }
}

#[test]
fn a_directory_that_cannot_be_made_leaves_nothing() {
    for errno in [Errno::IO, Errno::NOSPC, Errno::ACCESS] {
        for nth in each_call() {
            let dir = stage();
            let before = tree(dir.path());
            let workspace = Workspace::open([dir.path()], None).unwrap();
            let fault = Fault::Errno(errno.raw_os_error());
            let report = inject(&[(When::Nth(nth), fault)], || {
                let target = workspace.directory_target(&"a/b/c/".into(), &Default::default())?;
                target.make_directory(Durability::Full, Some(0o750))
            });
            match report.result {
                Ok(()) => assert!(dir.path().join("a/b/c").is_dir()),
                Err(_) => assert_eq!(tree(dir.path()), before, "{errno:?} at {nth}"),
            }
            if report.fired.is_none() {
                break;
            }
        }
    }
}

#[test]
fn only_an_empty_directory_is_removed() {
    let dir = stage();
    let workspace = Workspace::open([dir.path()], None).unwrap();
    let remove = |path: &str| {
        workspace.directory_removal(&path.into(), &Default::default())?.remove(Durability::Full)
    };
    assert!(matches!(remove("dir"), Err(Error::NotEmpty)));
    assert!(matches!(remove("file"), Err(Error::NotADirectory)));
    assert!(matches!(remove("link"), Err(Error::NotADirectory)));
    assert!(matches!(remove("."), Err(Error::IsDirectory)));
    fs::create_dir(dir.path().join("empty")).unwrap();
    remove("empty").unwrap();
    assert!(!dir.path().join("empty").exists() && dir.path().join("dir/inner/f").exists());
}
