//! Writes while other processes write.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use pinfold_confine::{Deadline, Durability, Error, Workspace};
use pinfold_testkit::{can_create_unnamed, can_exchange, limited, names_in};
use rustix::fs::CWD;
use tempfile::TempDir;

use crate::{make_recent, put, workspace, write, write_unseen};

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
        assert!(names_in(dir.path()).len() <= 1, "{what}");
    }
}

#[test]
fn a_file_saved_between_check_and_exchange_is_restored() {
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
            "replaced again while the files are exchanged back",
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
            "removed while the files are exchanged back",
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
        // Without exchanges, a file is not exchanged back, either.
        if others.len() > 1 && !can_exchange(dir.path()) {
            continue;
        }
        fs::write(&path, "old").unwrap();
        make_recent(&path);
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
        assert_eq!(names_in(dir.path()).len(), usize::from(left.is_some()), "{what}");
    }
}

#[test]
fn a_call_whose_time_is_up_while_the_system_hangs_changes_nothing() {
    use pinfold_confine::fault::interleave;
    type Change = fn(&Workspace, &Deadline) -> Result<(), Error>;
    let replace: Change = |workspace, deadline| {
        workspace.target(&"f".into(), deadline)?.replace(b"ours", Durability::Data).map(drop)
    };
    let create: Change = |workspace, deadline| {
        workspace.target(&"new".into(), deadline)?.replace(b"ours", Durability::Data).map(drop)
    };
    let link: Change = |workspace, deadline| {
        workspace.target(&"new".into(), deadline)?.link(b"f", Durability::Data)
    };
    let remove: Change = |workspace, deadline| {
        workspace.removal(&"f".into(), deadline)?.remove(Durability::Data).map(drop)
    };
    let cases = [("replace", "flock", replace), ("create", "flock", create)];
    for (what, hangs, change) in
        cases.into_iter().chain([("link", "fstatat", link), ("remove", "flock", remove)])
    {
        let (dir, workspace) = workspace();
        fs::write(dir.path().join("f"), "old").unwrap();
        let in_time = Arc::new(AtomicBool::new(true));
        let (ends, lasts) = (in_time.clone(), in_time);
        let deadline = Deadline::lasting_while(move || lasts.load(Ordering::Relaxed));
        let passes: Box<dyn FnOnce()> = Box::new(move || ends.store(false, Ordering::Relaxed));
        let report = interleave(vec![(hangs, 1, passes)], || change(&workspace, &deadline));
        assert!(matches!(report.result, Err(Error::TimedOut)), "{what}: {:?}", report.result);
        assert_eq!(fs::read_to_string(dir.path().join("f")).unwrap(), "old", "{what}");
        assert_eq!(names_in(dir.path()).len(), 1, "{what}");
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
    assert_eq!(names_in(dir.path()).len(), 1);
}

#[test]
fn writers_without_our_locks_lose_nothing_to_us() {
    // One side appends by rename, as editors do; the other side is Pinfold. Each line that was reported as written
    // must exist at the end, except those that the other side never saw.
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
            let mut target = match workspace.target(&"f".into(), &Default::default()) {
                // FUSE first moves a file that is open away, if another one is renamed to its name.
                Err(Error::NotFound) if !can_exchange(dir.path()) => continue,
                found => found.unwrap(),
            };
            let mut seen = String::new();
            std::io::Read::read_to_string(target.file().unwrap(), &mut seen).unwrap();
            match target.replace(format!("{seen} ours").as_bytes(), Durability::None) {
                Ok(_) | Err(Error::Changed) => {}
                // Their file was moved aside, and has a successor already: it is kept under the name in the error.
                Err(Error::RollbackFailed { kept }) if !can_exchange(dir.path()) => {
                    let kept = dir.path().join(kept);
                    assert!(fs::read_to_string(&kept).unwrap().starts_with("theirs "));
                    fs::remove_file(kept).unwrap();
                }
                other => panic!("{other:?}"),
            }
        }
    });
    // Their last version was never lost: it exists, with or without our lines.
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with(&format!("theirs {}", theirs - 1)), "{text}");
    assert_eq!(names_in(dir.path()).len(), 1);
}

#[test]
fn a_lock_wait_ends_at_the_deadline() {
    use pinfold_confine::Deadline;
    let (dir, workspace) = workspace();
    fs::write(dir.path().join("f"), "old").unwrap();
    let never = Deadline::lasting_while(|| false);
    let held = workspace.target(&"f".into(), &Deadline::default()).unwrap();
    let result = workspace.target(&"f".into(), &never);
    assert!(matches!(result, Err(Error::TimedOut)), "{result:?}");
    drop(held);

    // Somebody else holds the directory's lock.
    let lock = fs::File::open(dir.path()).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let target = workspace.target(&"new".into(), &never).unwrap();
    let result = target.replace(b"x", Durability::None);
    assert!(matches!(result, Err(Error::TimedOut)), "{result:?}");
    let removal = workspace.removal(&"f".into(), &never).unwrap();
    assert!(matches!(removal.remove(Durability::None), Err(Error::TimedOut)));
    assert_eq!(names_in(dir.path()).len(), 1);

    let target = workspace.target(&"f".into(), &never).unwrap();
    assert!(matches!(target.hash(), Err(Error::TimedOut)));
}

#[test]
fn directories_that_others_take_back_are_made_again() {
    use pinfold_confine::fault::{Fault, When, inject_while};
    let (dir, workspace) = workspace();
    let unsupported = Fault::Errno(rustix::io::Errno::OPNOTSUPP.raw_os_error());
    let all_named = (When::Every("create_unnamed"), unsupported);
    for (call, nth, faults) in [
        ("mkdirat", 2, &[][..]),
        ("create_unnamed", 1, &[]),
        ("link_unnamed", 1, &[]),
        ("create", 1, &[all_named]),
        ("rename_new", 1, &[all_named]),
    ] {
        if call.ends_with("_unnamed") && !can_create_unnamed(dir.path()) {
            continue;
        }
        let target = workspace.target(&"a/b/c".into(), &Default::default()).unwrap();
        let root = dir.path().to_owned();
        let removed = std::rc::Rc::new(std::cell::Cell::new(true));
        let is_removed = removed.clone();
        let others = Box::new(move || is_removed.set(fs::remove_dir_all(root.join("a")).is_ok()));
        let report = inject_while(faults, vec![(call, nth, others)], || {
            target.replace(b"x", Durability::None).map(drop)
        });
        if !removed.get() {
            limited("a directory cannot be removed while a file in it is open");
            _ = fs::remove_dir_all(dir.path().join("a"));
            continue;
        }
        assert!(matches!(report.result, Err(Error::Changed)), "{call}: {:?}", report.result);
        assert_eq!(names_in(dir.path()).len(), 0, "{call}");
    }
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
    use pinfold_confine::{BackupStore, Name};
    let dir = TempDir::new().unwrap();
    let backups = BackupStore::open(dir.path()).unwrap();
    let log = Name::parse(b"log").unwrap();
    // Before each check whether the name still belongs to the locked file.
    let remove = |nth| -> Meanwhile {
        let path = dir.path().join("log");
        ("fstatat", nth, Box::new(move || fs::remove_file(path).unwrap()))
    };
    for (times, added) in [(3, true), (200, false)] {
        let others = (1..=times).map(remove).collect();
        let report = interleave(others, || backups.append(&log, "line", &Default::default()));
        assert_eq!(report.result.is_ok(), added, "{:?}", report.result);
        assert_eq!(matches!(report.result, Err(Error::Changed)), !added);
    }
}

#[test]
fn a_save_survives_where_the_file_system_cannot_exchange() {
    use pinfold_confine::fault::{Fault, Meanwhile, When, inject_while};
    let cannot = |call| (When::Every(call), Fault::Errno(rustix::io::Errno::INVAL.raw_os_error()));
    let no_exchange = vec![cannot("exchange")];
    let no_flags = vec![cannot("exchange"), cannot("rename_new")];
    type Save = fn(&std::path::Path);
    let saves: [Save; 2] = [|path| fs::write(path, "thr").unwrap(), |path| put(path, "thr")];
    for faults in [no_exchange, no_flags] {
        for (call, nth) in [
            ("exchange", 1),
            ("rename_new", 1),
            ("rename", 1),
            ("rename_new", 2),
            ("rename", 2),
            ("linkat", 1),
        ] {
            for save in saves {
                let (dir, workspace) = workspace();
                let path = dir.path().join("f");
                fs::write(&path, "old").unwrap();
                let target = workspace.target(&"f".into(), &Default::default()).unwrap();
                target.hash().unwrap();
                let saved = std::rc::Rc::new(std::cell::Cell::new(false));
                let (at, done) = (path.clone(), saved.clone());
                let others = Box::new(move || {
                    save(&at);
                    done.set(true);
                });
                let meanwhile: Vec<Meanwhile> = vec![(call, nth, others)];
                let report = inject_while(&faults, meanwhile, || {
                    target.replace(b"ours", Durability::None).map(drop)
                });
                let what = format!("{call} {nth}: {:?} {:?}", report.result, report.calls);
                if saved.get() {
                    assert!(matches!(report.result, Err(Error::Changed)), "{what}");
                    assert_eq!(fs::read_to_string(&path).unwrap(), "thr", "{what}");
                } else {
                    assert_eq!(fs::read_to_string(&path).unwrap(), "ours", "{what}");
                }
                assert_eq!(names_in(dir.path()).len(), 1, "{what}");
            }
        }
    }
}

#[test]
fn a_long_name_is_no_obstacle_where_the_file_system_cannot_exchange() {
    use pinfold_confine::fault::{Fault, When, inject};
    let cannot = (When::Every("exchange"), Fault::Errno(rustix::io::Errno::INVAL.raw_os_error()));
    for length in [100, 150, 160, 190, 255] {
        let (dir, workspace) = workspace();
        let name = "n".repeat(length);
        fs::write(dir.path().join(&name), "old").unwrap();
        let replaced = inject(&[cannot], || write(&workspace, &name, "new")).result;
        assert!(replaced.is_ok(), "{length}: {replaced:?}");
        assert_eq!(fs::read_to_string(dir.path().join(&name)).unwrap(), "new");
        let removal = workspace.removal(&name.as_str().into(), &Default::default()).unwrap();
        removal.remove(Durability::None).map(drop).unwrap();
        assert_eq!(names_in(dir.path()).len(), 0, "{length}");
    }
}
