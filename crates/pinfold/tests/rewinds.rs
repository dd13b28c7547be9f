//! Rewinds and sets of changes that fail, are killed, or meet others: all of it or nothing.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use pinfold::operations::{
    ChangeFiles, Delete, Edit, FileChange, Mkdir, Move, RemoveTree, Rewind, RewindScope, Undo,
    Write,
};
use pinfold::{Error, JournalSetting, Session, Settings};
use pinfold_confine::fault::{Fault, When, each_call, inject, interleave, rounds};
use pinfold_testkit::tree;
use tempfile::TempDir;

fn session(dir: &Path) -> Session {
    let mut settings = Settings::default();
    settings.durability = pinfold::Durability::None;
    settings.journal = Some(JournalSetting::Directory(dir.join("journal")));
    Session::with_settings([dir.join("ws")], settings).unwrap()
}

/// A workspace in which an agent has made a turn, with what was there before and after it.
struct Turn {
    dir: TempDir,
    root: PathBuf,
    session: Session,
    before: BTreeMap<String, String>,
    after: BTreeMap<String, String>,
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
    if nth != "0" {
        let kill = (When::Nth(nth.parse().unwrap()), Fault::Exit);
        let rewind = Rewind::to("start").with_scope(RewindScope::AllSessions);
        let report = inject(&[kill], || session.perform(&rewind).map(|done| done.outcome));
        assert_eq!(report.result.unwrap().conflicts, []);
    }
    println!("done");
}

#[test]
fn a_rewind_that_is_killed_is_whole_after_the_next_start() {
    killed_rewinds_are_whole(turn, rounds(3));
}

#[test]
fn a_rewind_of_another_kind_that_is_killed_is_whole_after_the_next_start() {
    killed_rewinds_are_whole(turn_of_kinds, rounds(3));
}

/// Kills a rewind at each system call. At least `min_torn` of them are interrupted in the middle.
fn killed_rewinds_are_whole(turn: fn() -> Turn, min_torn: usize) {
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
        // A copy of what was deleted, or of what somebody may have saved meanwhile.
        now.retain(|path, _| !path.contains(".pinfold-"));
        assert!(now == it.before || now == it.after, "killed at {nth}: {now:?}");
        // The log is right, so the rest can be rewound.
        let session = session(it.dir.path());
        let mut entries = session.history().unwrap().map(Result::unwrap);
        let torn_entry = entries.find(|it| !it.confirmed && !it.undone && it.entry.group.is_some());
        assert_eq!(torn_entry, None, "killed at {nth}");
        let rewind = Rewind::to("start").with_scope(RewindScope::AllSessions);
        let rewound = session.perform(&rewind).unwrap().outcome;
        assert_eq!(rewound.conflicts, [], "killed at {nth}");
        let mut now = tree(&it.root);
        now.retain(|path, _| !path.contains(".pinfold-"));
        assert_eq!(now, it.before, "killed at {nth}");
        if done {
            break;
        }
    }
    assert!(torn > min_torn, "{torn}");
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
            let read = |path: &str| now.get(path).map(String::as_str);
            let d = if it.root.join("elsewhere").exists() { "elsewhere" } else { "d" };
            let e = read(&format!("{d}/e.txt")).unwrap();
            if report.result.is_ok() {
                // A save before the set was made is what was replaced, and the journal has it; a later one stands.
                assert_eq!(read("a.txt"), Some("ONE\n"), "{what}");
                assert!(["FOUR\n", "theirs\n"].contains(&e), "{what}: {e}");
                assert!(!now.contains_key("b.bin"), "{what}");
            } else {
                assert_eq!(read("a.txt"), Some("one\n"), "{what}");
                assert!(["four\n", "theirs\n"].contains(&e), "{what}: {e}");
                assert_eq!(read(&format!("{d}/sub/f.txt")), Some("five\n"), "{what}");
                assert!(now.contains_key("b.bin"), "{what}");
            }
        }
    }
}

/// A workspace with a symlink, a broken symlink and a file, and what a turn made of them.
fn turn_of_kinds() -> Turn {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("ws");
    fs::create_dir_all(root.join("d")).unwrap();
    fs::write(root.join("file"), "a file\n").unwrap();
    fs::set_permissions(root.join("file"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::write(root.join("other"), "other\n").unwrap();
    std::os::unix::fs::symlink("../other", root.join("d/link")).unwrap();
    std::os::unix::fs::symlink("nowhere", root.join("broken")).unwrap();
    std::os::unix::fs::symlink("other", root.join("to move")).unwrap();
    let before = tree(&root);
    let session = session(dir.path());
    session.checkpoint("start").unwrap();
    for link in ["d/link", "broken"] {
        session.perform(&Delete::new(link)).unwrap();
        session.perform(&Write::new(link, "now a file\n")).unwrap();
    }
    session.perform(&Write::new("file", "edited\n")).unwrap();
    session.perform(&Delete::new("file")).unwrap();
    session.perform(&Move::new("to move", "file")).unwrap();
    let after = tree(&root);
    Turn { dir, root, session, before, after }
}

#[test]
fn a_symlink_that_became_a_file_and_a_file_that_became_a_symlink_are_rewound_in_one_set() {
    let it = turn_of_kinds();
    let done = it.session.perform(&Rewind::to("start")).unwrap();
    assert_eq!(done.outcome.conflicts, []);
    assert_eq!(tree(&it.root), it.before);
    assert_eq!(fs::metadata(it.root.join("file")).unwrap().permissions().mode() & 0o777, 0o750);
    it.session.perform(&Undo::change(done.receipt.id.unwrap())).unwrap();
    assert_eq!(tree(&it.root), it.after);
    it.session.perform(&Rewind::all()).unwrap();
    assert_eq!(tree(&it.root), it.before);
}

#[test]
fn one_path_of_another_kind_is_rewound_alone_and_somebody_elses_is_a_conflict() {
    let it = turn_of_kinds();
    it.session.perform(&Rewind::to("start")).unwrap();
    it.session.checkpoint("again").unwrap();
    it.session.perform(&Delete::new("broken")).unwrap();
    it.session.perform(&Write::new("broken", "now a file\n")).unwrap();
    it.session.perform(&Rewind::to("again")).unwrap();
    assert_eq!(tree(&it.root), it.before);
    it.session.perform(&Rewind::to("start")).unwrap();
    it.session.perform(&Delete::new("broken")).unwrap();
    it.session.perform(&Write::new("broken", "now a file\n")).unwrap();
    fs::write(it.root.join("broken"), "theirs\n").unwrap();
    let refused = it.session.perform(&Rewind::to("again")).unwrap().outcome;
    assert_eq!(refused.conflicts[0].why, "its content has changed since");
    assert_eq!(fs::read_to_string(it.root.join("broken")).unwrap(), "theirs\n");
}

#[test]
fn a_rewind_of_another_kind_that_fails_anywhere_changes_nothing() {
    for (nth, errno) in each_call().zip([5, 28, 13].into_iter().cycle()) {
        let it = turn_of_kinds();
        let fault = (When::Nth(nth), Fault::Errno(errno));
        let rewind = || it.session.perform(&Rewind::to("start")).map(|done| done.outcome);
        let report = inject(&[fault], rewind);
        let made = matches!(&report.result, Ok(done) if done.conflicts.is_empty());
        let want = if made { &it.before } else { &it.after };
        assert_eq!(tree(&it.root), *want, "call {nth} of {:?}: {:?}", report.calls, report.result);
        if report.fired.is_none() {
            break;
        }
    }
}

#[test]
fn directories_that_were_made_for_files_go_with_the_rewind() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("ws");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a.txt"), "a\n").unwrap();
    let session = session(dir.path());
    let before = tree(&root);
    type Turn = fn(&Session);
    let turns: [Turn; 6] = [
        // The only file was deleted again.
        |session| {
            session.perform(&Write::new("new/deep/x.txt", "x\n")).unwrap();
            session.perform(&Delete::new("new/deep/x.txt")).unwrap();
        },
        // The file for which the directories were made was deleted, a later one was not.
        |session| {
            session.perform(&Write::new("new/deep/x.txt", "x\n")).unwrap();
            session.perform(&Write::new("new/y.txt", "y\n")).unwrap();
            session.perform(&Delete::new("new/deep/x.txt")).unwrap();
        },
        // They were moved.
        |session| {
            session.perform(&Write::new("new/deep/x.txt", "x\n")).unwrap();
            session.perform(&Move::new("new", "moved")).unwrap();
        },
        // A file was moved there, and back, or away.
        |session| {
            session.perform(&Move::new("a.txt", "new/deep/a.txt")).unwrap();
            session.perform(&Move::new("new/deep/a.txt", "a.txt")).unwrap();
        },
        |session| {
            session.perform(&Move::new("a.txt", "new/deep/a.txt")).unwrap();
            session.perform(&Move::new("new/deep/a.txt", "another/a.txt")).unwrap();
        },
        // A directory was made inside.
        |session| {
            session.perform(&Mkdir::new("new/deep")).unwrap();
            session.perform(&Write::new("new/deep/deeper/x.txt", "x\n")).unwrap();
            session.perform(&Delete::new("new/deep/deeper/x.txt")).unwrap();
        },
    ];
    for (number, turn) in turns.into_iter().enumerate() {
        let checkpoint = session.checkpoint("").unwrap();
        turn(&session);
        let after = tree(&root);
        let done = session.perform(&Rewind::to(&checkpoint)).unwrap();
        assert_eq!(done.outcome.conflicts, [], "turn {number}");
        assert_eq!(tree(&root), before, "turn {number}");
        session.perform(&Undo::change(done.receipt.id.unwrap())).unwrap();
        assert_eq!(tree(&root), after, "turn {number}");
        session.perform(&Rewind::to(&checkpoint)).unwrap();
        assert_eq!(tree(&root), before, "turn {number}");
        // Directories that hold a file of somebody else stay.
        turn(&session);
        for directory in ["new", "moved"] {
            if root.join(directory).is_dir() {
                fs::write(root.join(directory).join("theirs"), "").unwrap();
            }
        }
        let rewind = Rewind::to(&checkpoint).with_leave_out_conflicts(true);
        session.perform(&rewind).unwrap();
        let mut left = tree(&root);
        left.retain(|path, _| !path.ends_with("theirs"));
        assert!(left.keys().all(|path| !path.ends_with(".txt") || path == "a.txt"), "{left:?}");
        for directory in ["new", "moved"] {
            _ = fs::remove_dir_all(root.join(directory));
        }
        assert_eq!(tree(&root), before, "turn {number}: {left:?}");
    }
}

#[test]
fn changes_that_cancel_each_other_out_are_undone_by_the_rewind_too() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("ws");
    fs::create_dir(&root).unwrap();
    let session = session(dir.path());
    for only_cancelled in [false, true] {
        if !only_cancelled {
            session.perform(&Write::new("a.txt", "a\n")).unwrap();
        }
        for path in ["brief.txt", "new/brief.txt"] {
            session.perform(&Write::new(path, "brief\n")).unwrap();
            session.perform(&Delete::new(path)).unwrap();
        }
        session.perform(&Rewind::all()).unwrap();
        assert!(tree(&root).is_empty());
        let newest = session.perform(&Undo::newest());
        assert!(matches!(newest, Err(Error::NothingToUndo { .. })), "{newest:?}");
    }
}

#[test]
fn a_new_file_where_one_was_moved_away_is_rewound() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("ws");
    fs::create_dir(&root).unwrap();
    for path in ["a.txt", "b.txt"] {
        fs::write(root.join(path), path).unwrap();
    }
    let session = session(dir.path());
    let before = tree(&root);
    session.perform(&Move::new("a.txt", "old/a.txt")).unwrap();
    session.perform(&Write::new("a.txt", "new\n")).unwrap();
    session.perform(&Move::new("b.txt", "c.txt")).unwrap();
    session.perform(&Move::new("a.txt", "b.txt")).unwrap();
    let after = tree(&root);
    let done = session.perform(&Rewind::all()).unwrap();
    assert_eq!(done.outcome.conflicts, []);
    assert_eq!(tree(&root), before);
    session.perform(&Undo::change(done.receipt.id.unwrap())).unwrap();
    assert_eq!(tree(&root), after);
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
