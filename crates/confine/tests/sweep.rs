//! The temp files of killed processes, and the sweep that removes them.
//!
//! The processes are this test's own executable, run again with a task in its environment: a process sweeps a
//! directory only once, and killing one does not affect the test.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use pinfold_confine::fault::{Fault, Meanwhile, When, each_call, inject, inject_while};
use pinfold_confine::{Durability, Error, Workspace};
use pinfold_testkit::{can_create_unnamed, can_exchange, can_rename_new, names_in};
use tempfile::TempDir;

#[test]
fn only_what_is_surely_left_behind_is_swept() {
    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name);
    let workspace = Workspace::open([dir.path()], None).unwrap();
    // A temp file as a writer names it: after the inode of what it wrote.
    let temp = |random: &str, content: &str| {
        fs::write(at("new"), content).unwrap();
        let inode = fs::metadata(at("new")).unwrap().ino();
        let name = format!(".pinfold-00000000000000{random}-n{inode:x}.tmp");
        fs::rename(at("new"), at(&name)).unwrap();
        name
    };
    let left = temp("aa", "left behind");
    let written = temp("bb", "being written");
    let writer = fs::File::options().write(true).open(at(&written)).unwrap();
    rustix::fs::flock(&writer, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let created = ".pinfold-00000000000000cc.tmp";
    fs::write(at(created), "").unwrap();
    let users =
        [".pinfold-00000000000000dd.tmp", ".pinfold-00000000000000ee.tmp", ".pinfold-ff.tmp"];
    fs::write(at(users[0]), "the user's own").unwrap();
    fs::create_dir(at(users[1])).unwrap();
    symlink("nowhere", at(users[2])).unwrap();
    let write = || {
        let target = workspace.target(&"f".into(), &Default::default()).unwrap();
        target.replace(b"new", Durability::None).map(drop).unwrap();
        names_in(dir.path())
    };
    let sorted = |mut names: Vec<&str>| {
        names.sort_unstable();
        names.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    // If directories cannot be locked, a temp file may be in use.
    let no_locks = Fault::Errno(rustix::io::Errno::NOLCK.raw_os_error());
    let found = inject(&[(When::Every("flock"), no_locks)], write).result;
    assert_eq!(found, sorted(vec![&left, &written, created, users[0], users[1], users[2], "f"]));
    assert_eq!(write(), sorted(vec![&written, users[0], users[1], users[2], "f"]));
}

/// Anybody can give a file such a name, for example in a repository.
#[test]
fn a_name_alone_puts_nothing_in_the_place_of_another() {
    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name);
    let random = ".pinfold-0123456789abcdef";
    let directory = format!("{random}-n1.aside..git");
    fs::create_dir(at(&directory)).unwrap();
    fs::write(at(&directory).join("config"), "theirs").unwrap();
    let inode = fs::metadata(at(&directory)).unwrap().ino();
    fs::rename(at(&directory), at(&format!("{random}-n{inode:x}.aside..git"))).unwrap();
    fs::write(at("new"), "theirs").unwrap();
    let inode = fs::metadata(at("new")).unwrap().ino();
    fs::rename(at("new"), at(&format!("{random}-n{inode:x}.aside..envrc"))).unwrap();
    for name in ["-n1.aside..a", ".aside..b", "-s1.aside..c", "-t1-c1.aside..d", "-n1-s1.aside..e"]
    {
        fs::write(at(&format!("{random}{name}")), "").unwrap();
    }
    symlink("nowhere", at(&format!("{random}-s1.aside..f"))).unwrap();
    let before = names_in(dir.path());
    let workspace = Workspace::open([dir.path()], None).unwrap();
    let target = workspace.target(&"x".into(), &Default::default()).unwrap();
    target.replace(b"x", Durability::None).map(drop).unwrap();
    let mut after = names_in(dir.path());
    after.retain(|name| name != "x");
    assert_eq!(after, before);
}

const OLD: &str = "old content";
const NEW: &str = "new content";
const LONGER: &str = "newer content, which is longer than the old";
const THEIRS: &str = "THR content";
const ACTIONS: [&str; 4] =
    ["replace", "replace with a named temp file", "replace without exchange", "remove"];

/// An editor's action just before the given call.
fn save(path: &Path, how: &str) {
    match how {
        "in place" => fs::write(path, THEIRS).unwrap(),
        // Within one tick of the file system's clock, neither size nor modification time changes.
        "in place, in the same tick" => {
            assert_eq!(OLD.len(), THEIRS.len());
            let modified = fs::metadata(path).unwrap().modified().unwrap();
            fs::write(path, THEIRS).unwrap();
            fs::File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
        }
        "by rename" => {
            fs::write(path.with_extension("save"), THEIRS).unwrap();
            fs::rename(path.with_extension("save"), path).unwrap();
        }
        _ => {}
    }
}

/// The task of a process that this test starts: `DIRECTORY|ACTION|SAVE|NTH`.
#[test]
fn task_of_another_process() {
    let Ok(task) = std::env::var("PINFOLD_TEST_TASK") else { return };
    let [dir, action, how, nth] = task.split('|').collect::<Vec<_>>()[..] else { panic!("{task}") };
    let workspace = Workspace::open([dir], None).unwrap();
    let io = Fault::Errno(rustix::io::Errno::IO.raw_os_error());
    if let Some(how) = action.strip_prefix("sweep") {
        // The first call that names a temp file is the sweeper's own.
        let first = if can_create_unnamed(Path::new(dir)) { 1 } else { 2 };
        let faults: &[_] = match how {
            // The handle that is locked is the second that is opened.
            " of unreadable files" => &[(When::From("openat", 3), Fault::Errno(13))],
            " without renames" => {
                &[(When::Every("rename_new"), io), (When::From("rename", first), io)]
            }
            _ => &[],
        };
        // An existing file, which is exchanged.
        fs::write(Path::new(dir).join("other"), "").unwrap();
        let target = workspace.target(&"other".into(), &Default::default()).unwrap();
        let report = inject(faults, || target.replace(b"x", Durability::None));
        report.result.unwrap().unverified.iter().for_each(|name| println!("kept: {name}"));
        return;
    }
    let path = Path::new(dir).join("file");
    if action == "replace and restore in place" {
        let kill = (When::Nth(nth.parse().unwrap()), Fault::Exit);
        let faults = [kill, (When::Every("fsync"), io), (When::From("exchange", 2), io)];
        let report = inject(&faults, || {
            let target = workspace.target(&"file".into(), &Default::default())?;
            target.replace(LONGER.as_bytes(), Durability::Full).map(drop)
        });
        assert!(matches!(report.result, Err(Error::RestoredInPlace { .. })), "{:?}", report.result);
        println!("done: restored");
        return;
    }
    if action == "remove, and the last call fails" {
        let report = inject(&[(When::Every("unlinkat"), io)], || {
            for name in ["file", "link"] {
                workspace.removal(&name.into(), &Default::default())?.remove(Durability::None)?;
            }
            Ok::<(), Error>(())
        });
        report.result.unwrap();
        return;
    }
    if let Some((action, how)) = action.split_once(", and the rollback fails") {
        // If a temp file has a name from the start, a replacement gives it another before, by the first `rename`.
        let is_named = !can_create_unnamed(Path::new(dir));
        let mut first = if action == "replace" && is_named { 2 } else { 1 };
        if !can_rename_new(Path::new(dir)) {
            // The file is set aside by one more.
            first += 1;
        }
        let times = if how == " as well as times" { "utimensat" } else { "ftruncate" };
        let faults = [
            (When::Every(times), io),
            (When::Every("fsync"), io),
            (When::From("exchange", 2), io),
            (When::From("rename_new", 2), io),
            (When::From("rename", first), io),
            (When::Every("ftruncate"), io),
        ];
        let report = inject(&faults, || match action {
            "replace" => {
                let target = workspace.target(&"file".into(), &Default::default())?;
                target.replace(NEW.as_bytes(), Durability::Full).map(drop)
            }
            _ => {
                let removal = workspace.removal(&"file".into(), &Default::default())?;
                removal.remove(Durability::Full).map(drop)
            }
        });
        let Err(Error::RollbackFailed { kept }) = report.result else {
            panic!("{:?}", report.result)
        };
        println!("left: {kept}");
        return;
    }
    if action == "create" {
        let kill = (When::Nth(nth.parse().unwrap()), Fault::Exit);
        let report = inject(&[kill], || {
            let target = workspace.target(&"new".into(), &Default::default())?;
            target.replace(NEW.as_bytes(), Durability::Full).map(drop)
        });
        println!("done: {:?}", report.result.is_ok());
        return;
    }
    let (no_exchange, call) = match action {
        "replace" | "replace with a named temp file" => (None, "exchange"),
        "remove" => (None, "rename_new"),
        _ => (Some((When::Every("exchange"), Fault::Errno(22))), "rename_new"),
    };
    let how = how.to_owned();
    let editor: Meanwhile = (call, 1, Box::new(move || save(&path, &how)));
    let kill = (When::Nth(nth.parse().unwrap()), Fault::Exit);
    let all_named = (When::Every("create_unnamed"), Fault::Errno(95));
    let all_named = (action == "replace with a named temp file").then_some(all_named);
    let faults: Vec<_> = [Some(kill), no_exchange, all_named].into_iter().flatten().collect();
    let report = inject_while(&faults, vec![editor], || {
        if action == "remove" {
            let removal = workspace.removal(&"file".into(), &Default::default())?;
            return removal.remove(Durability::Full).map(drop);
        }
        let mut target = workspace.target(&"file".into(), &Default::default())?;
        target.content()?;
        target.replace(NEW.as_bytes(), Durability::Full).map(drop)
    });
    println!("done: {:?}", report.result.is_ok());
}

fn run(task: String) -> String {
    let mut command = pinfold_testkit::this_program();
    command.args(["task_of_another_process", "--exact", "--nocapture", "--test-threads=1"]);
    let output = command.env("PINFOLD_TEST_TASK", task).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn kill_everywhere(action: &str, how: &str) {
    for nth in each_call().take_while(|nth| *nth < 200) {
        let dir = TempDir::new().unwrap();
        let at = dir.path().display();
        fs::write(dir.path().join("file"), OLD).unwrap();
        if how.ends_with("same tick") {
            // However long the other process takes to start, the tick is not over.
            let later = SystemTime::now() + Duration::from_secs(60);
            let file = fs::File::options().write(true).open(dir.path().join("file")).unwrap();
            file.set_modified(later).unwrap();
        }
        let finished = run(format!("{at}|{action}|{how}|{nth}")).contains("done:");
        let saved = finished
            || names_in(dir.path())
                .iter()
                .any(|name| fs::read_to_string(dir.path().join(name)).unwrap() == THEIRS);
        let printed = run(format!("{at}|sweep||0"));
        let what =
            format!("{action}, saved {how}, killed at {nth}: {:?} {printed}", names_in(dir.path()));
        let content = |name: &str| fs::read_to_string(dir.path().join(name)).ok();
        let file = content("file");
        let mut left = names_in(dir.path());
        left.retain(|name| name != "file" && name != "other");
        if how == "not" || !saved {
            // Old or new content, and nothing else. Removed files exist or not.
            let new = if action == "remove" { None } else { Some(NEW) };
            assert!([Some(OLD), new].contains(&file.as_deref()), "{what}: {file:?}");
            assert_eq!(left, [""; 0], "{what}");
        } else {
            // The editor's save is in its place or, if another file is there, under a reported name.
            let kept = left.iter().any(|name| content(name).as_deref() == Some(THEIRS));
            assert!(kept || file.as_deref() == Some(THEIRS), "{what}: {file:?}");
            assert!(file.is_some(), "{what}");
            for name in left {
                assert!(printed.contains(&format!("kept: {name}")), "{what}");
                assert_eq!(content(&name).as_deref(), Some(THEIRS), "{what}");
            }
        }
        if finished {
            assert!(nth > 10, "{what}");
            return;
        }
    }
    panic!("{action} never ends");
}

/// A sweep that cannot move a file back to its name deletes nothing, and a later one moves it.
#[test]
fn a_sweep_that_fails_loses_nothing() {
    for action in ["replace without exchange", "remove"] {
        for nth in each_call().take_while(|nth| *nth < 200) {
            let dir = TempDir::new().unwrap();
            let at = dir.path().display();
            fs::write(dir.path().join("file"), OLD).unwrap();
            let finished = run(format!("{at}|{action}|not|{nth}")).contains("done:");
            let before = contents(dir.path());
            let printed = run(format!("{at}|sweep without renames||0"));
            let after = contents(dir.path());
            let what = format!("{action} killed at {nth}: {before:?} {after:?} {printed}");
            let has = |contents: &[String], content| contents.iter().any(|it| it == content);
            let replaced = fs::read_to_string(dir.path().join("file")).ok().as_deref() == Some(NEW);
            assert!(replaced || !has(&before, OLD) || has(&after, OLD), "{what}");
            run(format!("{at}|sweep||0"));
            let file = fs::read_to_string(dir.path().join("file")).ok();
            assert!(finished || replaced || file.as_deref() == Some(OLD), "{what}: {file:?}");
            assert!(names_in(dir.path()).len() <= 2, "{what}: {:?}", names_in(dir.path()));
            if finished {
                break;
            }
        }
    }
}

#[test]
fn a_process_that_is_killed_while_it_writes_the_old_content_back_loses_none() {
    if !can_exchange(&std::env::temp_dir()) {
        return;
    }
    for nth in each_call().take_while(|nth| *nth < 200) {
        let dir = TempDir::new().unwrap();
        let at = dir.path().display();
        fs::write(dir.path().join("file"), OLD).unwrap();
        let finished = run(format!("{at}|replace and restore in place||{nth}")).contains("done:");
        let printed = run(format!("{at}|sweep||0"));
        let file = fs::read_to_string(dir.path().join("file")).unwrap();
        let whole = [OLD, LONGER].contains(&&*file);
        let kept = contents(dir.path()).iter().filter(|content| *content == OLD).count();
        assert!(
            whole || kept == 1 && printed.contains("kept: "),
            "killed at {nth}: {file:?} {printed}"
        );
        if finished {
            assert_eq!((names_in(dir.path()).len(), &*file), (2, OLD), "{printed}");
            return;
        }
    }
    panic!("it never ends");
}

#[test]
fn a_process_that_is_killed_while_it_creates_a_file_leaves_nothing_to_sweep() {
    let dir = TempDir::new().unwrap();
    if !can_create_unnamed(dir.path()) {
        return;
    }
    let file = dir.path().join("new");
    for nth in each_call().take_while(|nth| *nth < 200) {
        let at = dir.path().display();
        let finished = run(format!("{at}|create||{nth}")).contains("done:");
        if file.exists() {
            assert_eq!(fs::read_to_string(&file).unwrap(), NEW, "killed at {nth}");
            fs::remove_file(&file).unwrap();
        }
        assert_eq!(names_in(dir.path()), [""; 0], "killed at {nth}");
        if finished {
            assert!(nth > 8, "{nth}");
            return;
        }
    }
    panic!("it never ends");
}

#[test]
fn a_file_that_may_not_be_read_goes_back_to_its_name_too() {
    for nth in each_call().take_while(|nth| *nth < 200) {
        let dir = TempDir::new().unwrap();
        let at = dir.path().display();
        fs::write(dir.path().join("file"), OLD).unwrap();
        let finished = run(format!("{at}|remove|not|{nth}")).contains("done:");
        let printed = run(format!("{at}|sweep of unreadable files||0"));
        let file = fs::read_to_string(dir.path().join("file")).ok();
        assert!(
            finished || file.as_deref() == Some(OLD),
            "{nth}: {:?} {printed}",
            names_in(dir.path())
        );
        if finished {
            return;
        }
    }
    panic!("it never ends");
}

fn contents(dir: &Path) -> Vec<String> {
    names_in(dir).iter().map(|name| fs::read_to_string(dir.join(name)).unwrap()).collect()
}

#[test]
fn a_file_that_was_removed_does_not_come_back_if_the_last_call_fails() {
    let dir = TempDir::new().unwrap();
    let at = dir.path().display();
    fs::write(dir.path().join("file"), OLD).unwrap();
    symlink("nowhere", dir.path().join("link")).unwrap();
    run(format!("{at}|remove, and the last call fails||0"));
    assert_eq!(names_in(dir.path()).len(), 2, "{:?}", names_in(dir.path()));
    run(format!("{at}|sweep||0"));
    assert_eq!(names_in(dir.path()), ["other"]);
}

/// The error says where the old content is, so no later sweep may delete it there.
#[test]
fn content_that_a_failed_rollback_left_is_never_swept() {
    let cases =
        ["replace", "remove"].map(|action| ["", " as well as times"].map(|how| (action, how)));
    for (action, how) in cases.into_iter().flatten() {
        let dir = TempDir::new().unwrap();
        if action == "replace" && !can_exchange(dir.path()) {
            continue;
        }
        let at = dir.path().display();
        fs::write(dir.path().join("file"), OLD).unwrap();
        let printed = run(format!("{at}|{action}, and the rollback fails{how}||0"));
        assert!(printed.contains("left: .pinfold-"), "{action}: {printed}");
        let printed = run(format!("{at}|sweep||0"));
        assert!(contents(dir.path()).iter().any(|content| content == OLD), "{action}: {printed}");
        assert!(printed.contains("kept: "), "{action}: {printed}");
        // The file to delete is in its place again.
        let back = fs::read_to_string(dir.path().join("file")).unwrap();
        assert_eq!(back, if action == "remove" { OLD } else { NEW });
    }
}

#[test]
fn a_killed_process_leaves_the_old_content_or_the_new() {
    ACTIONS.into_iter().for_each(|action| kill_everywhere(action, "not"));
}

#[test]
fn a_file_that_an_editor_saved_survives_a_killed_process() {
    for how in ["in place", "in place, in the same tick", "by rename"] {
        ACTIONS.into_iter().for_each(|action| kill_everywhere(action, how));
    }
}
