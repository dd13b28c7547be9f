//! Rewinds and sets of changes that fail, are killed, or meet others: all of it or nothing.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pinfold::operations::{
    ChangeFiles, Delete, Edit, FileChange, Mkdir, Move, RemoveTree, Rewind, Undo, Write,
};
use pinfold::{Error, JournalSetting, Session, Settings};
use pinfold_confine::fault::{Fault, When, each_call, inject, interleave, rounds};
use tempfile::TempDir;

fn session(dir: &Path) -> Session {
    let mut settings = Settings::default();
    settings.durability = pinfold::Durability::None;
    settings.journal = Some(JournalSetting::Directory(dir.join("journal")));
    Session::with_settings([dir.join("ws")], settings).unwrap()
}

/// Every path below a directory with its content.
fn tree(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let (name, path) = (entry.file_name().into_string().unwrap(), entry.path());
        if path.is_symlink() {
            found.insert(name, b"symlink".to_vec());
        } else if path.is_dir() {
            let below = tree(&path).into_iter();
            found.extend(below.map(|(below, content)| (format!("{name}/{below}"), content)));
            found.insert(name, b"directory".to_vec());
        } else {
            found.insert(name, fs::read(&path).unwrap());
        }
    }
    found
}

/// A workspace in which an agent has made a turn, with what was there before and after it.
struct Turn {
    dir: TempDir,
    root: PathBuf,
    session: Session,
    before: BTreeMap<String, Vec<u8>>,
    after: BTreeMap<String, Vec<u8>>,
}

fn turn() -> Turn {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("ws");
    fs::create_dir_all(root.join("d/sub")).unwrap();
    fs::create_dir(root.join("tree")).unwrap();
    for (path, content) in [
        ("a.txt", &b"one\n"[..]),
        ("b.bin", &[0, 159, 146, 150]),
        ("d/e.txt", b"four\n"),
        ("d/sub/f.txt", b"five\n"),
        ("tree/t.txt", b"six\n"),
    ] {
        fs::write(root.join(path), content).unwrap();
    }
    let before = tree(&root);
    let session = session(dir.path());
    session.checkpoint("start").unwrap();
    session.perform(&Edit::new("a.txt", "one", "two")).unwrap();
    session.perform(&Move::new("b.bin", "new/b.bin")).unwrap();
    session.perform(&Move::new("d", "moved")).unwrap();
    session.perform(&Write::new("moved/e.txt", "changed\n")).unwrap();
    session.perform(&Delete::new("moved/sub/f.txt")).unwrap();
    session.perform(&Mkdir::new("made")).unwrap();
    session.perform(&Write::new("made/m.txt", "made\n")).unwrap();
    session.perform(&RemoveTree::new("tree")).unwrap();
    let after = tree(&root);
    Turn { dir, root, session, before, after }
}

#[test]
fn a_rewind_that_fails_anywhere_changes_nothing() {
    for (nth, errno) in each_call().zip([5, 28, 13].into_iter().cycle()) {
        let it = turn();
        let fault = (When::Nth(nth), Fault::Errno(errno));
        let rewind = || it.session.perform(&Rewind::to("start")).map(|done| done.outcome);
        let report = inject(&[fault], rewind);
        let now = tree(&it.root);
        match &report.result {
            // A file that could not be read while planning is a conflict, or was not needed.
            Ok(done) if done.conflicts.is_empty() => {
                assert_eq!(now, it.before, "call {nth} of {:?}", report.calls);
            }
            Ok(done) => assert_eq!(now, it.after, "call {nth}: {done:?}"),
            Err(error) => assert_eq!(now, it.after, "call {nth} of {:?}: {error}", report.calls),
        }
        if report.fired.is_none() {
            break;
        }
    }
}

/// The task of a process that this test starts: `DIRECTORY|NTH`, killed at the n-th system call of a rewind. With 0 it
/// is the next process.
#[test]
fn task_of_another_process() {
    let Ok(task) = std::env::var("PINFOLD_TEST_TASK") else { return };
    let (dir, nth) = task.split_once('|').unwrap();
    let session = session(Path::new(dir));
    if nth == "0" {
        // Writes sweep the directories of the killed process.
        for parent in [".", "moved", "moved/sub", "d", "d/sub", "made", "tree", "new"] {
            if Path::new(dir).join("ws").join(parent).is_dir() {
                session.perform(&Write::new(format!("{parent}/swept"), "")).unwrap();
            }
        }
    } else {
        let kill = (When::Nth(nth.parse().unwrap()), Fault::Exit);
        let rewind = Rewind::to("start").with_scope(pinfold::operations::RewindScope::AllSessions);
        let report = inject(&[kill], || session.perform(&rewind).map(|done| done.outcome));
        assert_eq!(report.result.unwrap().conflicts, []);
    }
    println!("done");
}

#[test]
fn a_rewind_that_is_killed_is_whole_after_the_next_start() {
    let run = |it: &Turn, nth: u64| {
        let mut command = pinfold_testkit::this_program();
        command.args(["task_of_another_process", "--exact", "--nocapture"]);
        let task = format!("{}|{nth}", it.dir.path().display());
        let output = command.env("PINFOLD_TEST_TASK", task).output().unwrap();
        String::from_utf8_lossy(&output.stdout).contains("done")
    };
    let mut torn = 0;
    for nth in each_call() {
        let it = turn();
        let done = run(&it, nth);
        let killed = tree(&it.root);
        torn += usize::from(killed != it.before && killed != it.after);
        assert!(run(&it, 0), "the start after {nth}");
        let mut now = tree(&it.root);
        // Directories that were made for files which were not created stay, empty.
        now.retain(|path, content| {
            !path.ends_with("swept")
                && !path.starts_with(".pinfold-kept-")
                && (content != b"directory"
                    || it.before.contains_key(path)
                    || it.after.contains_key(path))
        });
        let strays = |want: &BTreeMap<String, Vec<u8>>| {
            let files = |tree: &BTreeMap<String, Vec<u8>>| {
                let files = tree.iter().filter(|(_, content)| *content != b"directory");
                files.map(|(path, content)| (path.clone(), content.clone())).collect::<Vec<_>>()
            };
            files(&now) == files(want)
        };
        assert!(strays(&it.before) || strays(&it.after), "killed at {nth}: {:?}", now.keys());
        if done {
            break;
        }
    }
    assert!(torn > rounds(3), "{torn}");
}

#[test]
fn what_others_do_between_the_calls_of_a_set_is_not_lost() {
    type Others = fn(&Path);
    let cases: [(&str, Others); 3] = [
        ("the directory is moved away", |ws| {
            fs::rename(ws.join("d"), ws.join("elsewhere")).unwrap();
        }),
        ("the directory is swapped for a link out", |ws| {
            fs::rename(ws.join("d"), ws.join("elsewhere")).unwrap();
            std::os::unix::fs::symlink("/tmp", ws.join("d")).unwrap();
        }),
        ("a file is saved", |ws| fs::write(ws.join("d/e.txt"), "theirs\n").unwrap()),
    ];
    let set = || {
        ChangeFiles::new([
            FileChange::Write(Write::new("a.txt", "ONE\n")),
            FileChange::Delete(Delete::new("d/sub/f.txt")),
            FileChange::Write(Write::new("d/e.txt", "FOUR\n")),
            FileChange::Move(Move::new("b.bin", "d/b.bin")),
        ])
    };
    for (what, act) in cases {
        for (call, nth) in [("exchange", 1), ("exchange", 2), ("rename_new", 1), ("rename_new", 2)]
        {
            let it = turn();
            it.session.perform(&Rewind::to("start")).unwrap();
            let root = it.root.clone();
            let others: Box<dyn FnOnce()> = Box::new(move || act(&root));
            let report =
                interleave(vec![(call, nth, others)], || it.session.perform(&set()).map(drop));
            let what = format!("{what} before {call} {nth}: {:?}", report.result);
            let now = tree(&it.root);
            assert!(!now.keys().any(|path| path.contains(".pinfold-")), "{what}: {:?}", now.keys());
            let read = |path: &str| now.get(path).map(|content| String::from_utf8_lossy(content));
            let d = if it.root.join("elsewhere").exists() { "elsewhere" } else { "d" };
            let e = read(&format!("{d}/e.txt")).unwrap();
            if report.result.is_ok() {
                // A save before the set was made is what was replaced, and the journal has it; a later one stands.
                assert_eq!(read("a.txt").as_deref(), Some("ONE\n"), "{what}");
                assert!(["FOUR\n", "theirs\n"].contains(&&*e), "{what}: {e}");
                assert!(!now.contains_key("b.bin"), "{what}");
            } else {
                assert_eq!(read("a.txt").as_deref(), Some("one\n"), "{what}");
                assert!(["four\n", "theirs\n"].contains(&&*e), "{what}: {e}");
                assert_eq!(read(&format!("{d}/sub/f.txt")).as_deref(), Some("five\n"), "{what}");
                assert!(now.contains_key("b.bin"), "{what}");
            }
        }
    }
}

#[test]
fn a_path_that_is_of_another_kind_now_is_undone_one_by_one() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("ws");
    fs::create_dir(&root).unwrap();
    std::os::unix::fs::symlink("target", root.join("link")).unwrap();
    let session = session(dir.path());
    session.perform(&Delete::new("link")).unwrap();
    session.perform(&Write::new("link", "a file\n")).unwrap();
    let after = tree(&root);
    let rewound = session.perform(&Rewind::all()).unwrap().outcome;
    assert!(rewound.conflicts[0].why.contains("one by one"), "{rewound:?}");
    assert_eq!(tree(&root), after);
    session.perform(&Undo::newest()).unwrap();
    session.perform(&Undo::newest()).unwrap();
    assert_eq!(fs::read_link(root.join("link")).unwrap(), Path::new("target"));
}

#[test]
fn sets_of_two_sessions_do_not_wait_for_each_other_nor_mix() {
    let dir = TempDir::new().unwrap();
    fs::create_dir_all(dir.path().join("ws/x")).unwrap();
    fs::create_dir_all(dir.path().join("ws/y")).unwrap();
    let paths = ["x/1", "y/1", "x/2", "y/2"];
    let write = |tag: &str, reverse: bool| {
        let mut changes: Vec<_> =
            paths.iter().map(|path| FileChange::Write(Write::new(*path, tag))).collect();
        if reverse {
            changes.reverse();
        }
        ChangeFiles::new(changes)
    };
    let made: Vec<bool> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|number| {
                let session = session(dir.path());
                scope.spawn(move || {
                    let set = |round| write(&format!("{number} {round}\n"), number == 1);
                    (0..25).map(|round| session.perform(&set(round)).is_ok()).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(made.iter().filter(|made| **made).count() > 10, "{made:?}");
    let contents: Vec<_> = paths
        .iter()
        .map(|path| fs::read_to_string(dir.path().join("ws").join(path)).unwrap())
        .collect();
    assert!(contents.iter().all(|content| *content == contents[0]), "{contents:?}");
    // Undone one after the other, each as a whole.
    let session = session(dir.path());
    while fs::read_dir(dir.path().join("ws/x")).unwrap().next().is_some() {
        session.perform(&Undo::newest()).unwrap();
        let left = paths.map(|path| fs::read_to_string(dir.path().join("ws").join(path)).ok());
        assert!(left.iter().all(|content| *content == left[0]), "{left:?}");
    }
    assert!(matches!(session.perform(&Undo::newest()), Err(Error::NothingToUndo { .. })));
}
