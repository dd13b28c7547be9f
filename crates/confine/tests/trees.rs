//! Removal of a directory with everything in it, or nothing, whatever fails and whatever others do.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use pinfold_confine::fault::{Fault, When, each_call, inject, interleave};
use pinfold_confine::{Durability, Error, OpenMethod, Workspace};
use pinfold_testkit::{can_rename_new, tree};
use rustix::io::Errno;
use tempfile::TempDir;

fn remove(workspace: &Workspace, path: &str, how: Durability) -> Result<(), Error> {
    workspace.tree_removal(&path.into(), 100, &Default::default())?.remove(how).map(drop)
}

fn stage() -> TempDir {
    let dir = TempDir::new().unwrap();
    fs::create_dir_all(dir.path().join("up/dir/sub/empty")).unwrap();
    fs::write(dir.path().join("up/dir/a"), "one").unwrap();
    fs::write(dir.path().join("up/dir/sub/b"), "two").unwrap();
    symlink("/etc", dir.path().join("up/dir/sub/link")).unwrap();
    dir
}

#[test]
fn a_removal_that_fails_anywhere_leaves_all_of_it_or_nothing() {
    let cannot = (When::Every("rename_new"), Fault::Errno(Errno::INVAL.raw_os_error()));
    let ways = [
        (OpenMethod::Kernel, Durability::Full, Errno::IO),
        (OpenMethod::NameByName, Durability::None, Errno::NOSPC),
        (OpenMethod::Kernel, Durability::None, Errno::ACCESS),
    ];
    for (always, (method, how, errno)) in
        [&[][..], &[cannot]].into_iter().flat_map(|always| ways.map(|way| (always, way)))
    {
        for nth in each_call() {
            let dir = stage();
            let before = tree(dir.path());
            let workspace = Workspace::open([dir.path()], Some(method)).unwrap();
            let fault = (When::Nth(nth), Fault::Errno(errno.raw_os_error()));
            let faults: Vec<_> = always.iter().copied().chain([fault]).collect();
            let report = inject(&faults, || remove(&workspace, "up/dir", how));
            let what = format!("{errno:?} at {nth} of {:?}", report.calls);
            match report.result {
                Ok(()) => assert_eq!(tree(&dir.path().join("up")).len(), 0, "{what}"),
                Err(_) => assert_eq!(tree(dir.path()), before, "{what}"),
            }
            if report.fired.is_none() {
                break;
            }
        }
    }
}

#[test]
fn what_others_do_meanwhile_is_not_lost() {
    type Others = fn(&Path);
    let cases: [(&str, Others, &str); 8] = [
        ("a file is added", |up| fs::write(up.join("dir/new"), "theirs").unwrap(), "up/dir/new"),
        (
            "a file is added below",
            |up| fs::write(up.join("dir/sub/empty/new"), "theirs").unwrap(),
            "up/dir/sub/empty/new",
        ),
        ("a file is written", |up| fs::write(up.join("dir/a"), "theirs").unwrap(), "up/dir/a"),
        (
            "a file is replaced",
            |up| {
                fs::write(up.join("save"), "theirs").unwrap();
                fs::rename(up.join("save"), up.join("dir/sub/b")).unwrap();
            },
            "up/dir/sub/b",
        ),
        (
            "a file is removed, and the directory stays",
            |up| {
                fs::remove_file(up.join("dir/a")).unwrap();
                fs::write(up.join("mark"), "theirs").unwrap();
            },
            "up/mark",
        ),
        (
            "another directory takes its name",
            |up| {
                fs::rename(up.join("dir"), up.join("old")).unwrap();
                fs::create_dir(up.join("dir")).unwrap();
                fs::write(up.join("dir/f"), "theirs").unwrap();
            },
            "up/dir/f",
        ),
        (
            "the directory above is moved",
            |up| {
                fs::rename(up, up.with_file_name("moved")).unwrap();
                fs::write(up.with_file_name("mark"), "theirs").unwrap();
            },
            "mark",
        ),
        (
            "the directory above is swapped for a link out",
            |up| {
                fs::rename(up, up.with_file_name("moved")).unwrap();
                symlink("/tmp", up).unwrap();
                fs::write(up.with_file_name("mark"), "theirs").unwrap();
            },
            "mark",
        ),
    ];
    for (what, act, theirs) in cases {
        let dir = stage();
        let workspace = Workspace::open([dir.path()], None).unwrap();
        let up = dir.path().join("up");
        let others: Box<dyn FnOnce()> = Box::new(move || act(&up));
        let report = interleave(vec![("rename_new", 1, others)], || {
            remove(&workspace, "up/dir", Durability::None)
        });
        assert!(report.result.is_err(), "{what}");
        assert_eq!(fs::read_to_string(dir.path().join(theirs)).unwrap(), "theirs", "{what}");
        let left = tree(dir.path());
        assert!(!left.iter().any(|(path, _)| path.contains(".pinfold-")), "{what}: {left:?}");
        // Everything that others did not remove still exists, wherever they moved it.
        let names = ["/sub/link", "/sub/empty", "/sub/b"];
        let is_there = |end: &&str| left.iter().any(|(path, _)| path.ends_with(*end));
        assert!(names.iter().all(is_there), "{what}: {left:?}");
    }
}

#[test]
fn what_a_writer_is_about_to_put_there_is_not_deleted() {
    let dir = stage();
    let workspace = Workspace::open([dir.path()], None).unwrap();
    let sub = dir.path().join("up/dir/sub");
    // New content of a writer that is alive, and of one that was killed.
    let temp = |random: &str| {
        fs::write(sub.join("new"), "new").unwrap();
        use std::os::unix::fs::MetadataExt as _;
        let inode = fs::metadata(sub.join("new")).unwrap().ino();
        let name = sub.join(format!(".pinfold-00000000000000{random}-n{inode:x}.tmp"));
        fs::rename(sub.join("new"), &name).unwrap();
        name
    };
    let (left, written) = (temp("aa"), temp("bb"));
    let writer = fs::File::options().write(true).open(&written).unwrap();
    rustix::fs::flock(&writer, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let before = tree(dir.path());
    let refused = remove(&workspace, "up/dir", Durability::None);
    assert!(matches!(refused, Err(Error::Changed)), "{refused:?}");
    assert_eq!(tree(dir.path()), before);
    drop(writer);
    assert!(left.exists());
    remove(&workspace, "up/dir", Durability::None).unwrap();
    assert_eq!(tree(&dir.path().join("up")).len(), 0);
}

/// The task of a process that this test starts: `DIRECTORY|ACTION`.
#[test]
fn task_of_another_process() {
    let Ok(task) = std::env::var("PINFOLD_TEST_TASK") else { return };
    let (dir, action) = task.split_once('|').unwrap();
    let workspace = Workspace::open([dir], None).unwrap();
    if action == "recheck" {
        let target = workspace.target(&"up/other".into(), &Default::default()).unwrap();
        target.replace(b"x", Durability::None).map(drop).unwrap();
        return;
    }
    let io = Fault::Errno(Errno::IO.raw_os_error());
    // Without exclusive renames, the directory is set aside by the first `rename`.
    let first = if can_rename_new(Path::new(dir)) { 1 } else { 2 };
    let faults = [
        (When::Every("fsync"), io),
        (When::From("rename_new", 2), io),
        (When::From("rename", first), io),
    ];
    let report = inject(&faults, || remove(&workspace, "up/dir", Durability::Full));
    let Err(Error::RollbackFailed { kept }) = report.result else { panic!("{:?}", report.result) };
    println!("left: {kept}");
}

#[test]
fn a_directory_that_a_failed_rollback_left_goes_back_whole() {
    let dir = stage();
    let mut before = tree(dir.path());
    let run = |action: &str| {
        let mut command = pinfold_testkit::this_program();
        command.args(["task_of_another_process", "--exact", "--nocapture"]);
        let task = format!("{}|{action}", dir.path().display());
        let output = command.env("PINFOLD_TEST_TASK", task).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let printed = run("remove");
    assert!(printed.contains("left: .pinfold-"), "{printed}");
    assert!(!dir.path().join("up/dir").exists());
    run("recheck");
    before.insert("up/other".into(), "x".into());
    assert_eq!(tree(dir.path()), before);
}

#[test]
fn what_cannot_be_removed_is_refused() {
    let dir = stage();
    let before = tree(dir.path());
    let workspace = Workspace::open([dir.path(), &dir.path().join("up/dir/sub")], None).unwrap();
    for path in [".", "up/dir", "up/dir/sub", "up"] {
        let refused = remove(&workspace, path, Durability::None);
        assert!(matches!(refused, Err(Error::BadPath(_))), "{path}: {refused:?}");
    }
    for (path, limit) in [("up/dir/a", 100), ("up/dir/sub/link", 100), ("up", 3)] {
        let plain = Workspace::open([dir.path()], None).unwrap();
        let found = plain.tree_removal(&path.into(), limit, &Default::default());
        assert!(matches!(found, Err(Error::NotADirectory | Error::TooLarge)), "{path}: {found:?}");
    }
    assert!(matches!(remove(&workspace, "..", Durability::None), Err(Error::Outside)));
    assert_eq!(tree(dir.path()), before);
}
