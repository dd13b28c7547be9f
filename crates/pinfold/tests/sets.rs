//! Sets of changes: all or nothing, undone together; checkpoints and rewind.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::path::{Path, PathBuf};

use pinfold::operations::{
    AfterUpdate, ChangeFiles, Delete, Edit, FileChange, Mkdir, Move, Rewind, RewindScope, Undo,
    Update, Write,
};
use pinfold::patch::Patch;
use pinfold::{CallOptions, Error, JournalSetting, Session, Settings};
use pinfold_confine::fault::{Fault, When, each_call, inject, rounds};
use pinfold_testkit::tree;
use tempfile::TempDir;

struct Stage {
    _dir: TempDir,
    root: PathBuf,
    session: Session,
}

fn stage(journal: bool) -> Stage {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("ws");
    for (path, content) in [
        ("a.txt", "one\n"),
        ("b.txt", "two\n"),
        ("c.txt", "three\n"),
        ("d/e.txt", "four\n"),
        ("f.txt", "five\n"),
    ] {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), content).unwrap();
    }
    let session = session(dir.path(), journal);
    Stage { _dir: dir, root, session }
}

fn session(dir: &Path, journal: bool) -> Session {
    let mut settings = Settings::default();
    settings.durability = pinfold::Durability::None;
    if journal {
        settings.journal = Some(JournalSetting::Directory(dir.join("journal")));
    }
    Session::with_settings([dir.join("ws")], settings).unwrap()
}

fn set() -> ChangeFiles {
    ChangeFiles::new([
        FileChange::Write(Write::new("a.txt", "ONE\n")),
        FileChange::Write(Write::new("new/n.txt", "new\n")),
        FileChange::Edit(Edit::new("b.txt", "two", "TWO")),
        FileChange::Move(Move::new("d", "moved")),
        FileChange::Move(Move::new("f.txt", "g.txt")),
        FileChange::Delete(Delete::new("c.txt")),
        FileChange::Mkdir(Mkdir::new("empty")),
    ])
}

#[test]
fn a_set_is_made_and_undone_as_a_whole() {
    let it = stage(true);
    let before = tree(&it.root);
    let done = it.session.perform(&set()).unwrap();
    let after = tree(&it.root);
    assert_eq!(after["a.txt"], "ONE\n");
    assert_eq!(after["moved/e.txt"], "four\n");
    assert!(!after.contains_key("c.txt") && after.contains_key("empty"));
    let undone = it.session.perform(&Undo::change(done.receipt.id.unwrap())).unwrap();
    assert_eq!(tree(&it.root), before);
    it.session.perform(&Undo::change(undone.receipt.id.unwrap())).unwrap();
    assert_eq!(tree(&it.root), after);
}

#[test]
fn the_newest_change_is_the_whole_set() {
    let it = stage(true);
    let before = tree(&it.root);
    it.session.perform(&set()).unwrap();
    it.session.perform(&Undo::newest()).unwrap();
    assert_eq!(tree(&it.root), before);
}

/// `cargo xtask crash` shows what that is for.
#[test]
fn a_set_is_in_the_journal_on_the_disk_before_it_begins_and_whole_before_it_is_confirmed() {
    use pinfold::Durability::{Data, Full, None};
    let single = ChangeFiles::new([FileChange::Write(Write::new("a.txt", "ONE\n"))]);
    for (durability, changes, flushed) in [
        (None, set(), [false, false]),
        (Data, single.clone(), [false, false]),
        (Data, set(), [true, true]),
        (Full, single, [true, false]),
        (Full, set(), [true, true]),
    ] {
        let it = stage(true);
        let mut settings = it.session.settings().clone();
        settings.durability = durability;
        let session = Session::with_settings([&it.root], settings).unwrap();
        let calls = inject(&[], || session.perform(&changes).unwrap()).calls;
        let at = |call: &str| calls.iter().position(|it| *it == call).unwrap();
        let last = calls.iter().rposition(|call| *call == "write").unwrap();
        let flushes =
            [&calls[..at("exchange")], &calls[last..]].map(|part| part.contains(&"fsync"));
        assert_eq!(flushes, flushed, "{durability:?}: {calls:?}");
    }
}

#[test]
fn a_symlink_that_is_restored_is_on_the_disk_before_the_undo_is_confirmed() {
    let it = stage(true);
    std::os::unix::fs::symlink("a.txt", it.root.join("link")).unwrap();
    let mut settings = it.session.settings().clone();
    settings.durability = pinfold::Durability::Full;
    let session = Session::with_settings([&it.root], settings).unwrap();
    session.perform(&Delete::new("link")).unwrap();
    let calls = inject(&[], || session.perform(&Undo::newest()).unwrap()).calls;
    let made = calls.iter().position(|call| *call == "symlinkat").unwrap();
    let confirmed = calls.iter().rposition(|call| *call == "write").unwrap();
    assert!(calls[made..confirmed].contains(&"fsync"), "{calls:?}");
}

#[test]
fn a_set_that_fails_anywhere_changes_nothing() {
    for journal in [false, true] {
        for nth in each_call() {
            let it = stage(journal);
            let before = tree(&it.root);
            let fault = (When::Nth(nth), Fault::Errno(5));
            let report = inject(&[fault], || it.session.perform(&set()).map(drop));
            match &report.result {
                Ok(()) => assert!(!tree(&it.root).contains_key("c.txt")),
                Err(error) => {
                    assert_eq!(tree(&it.root), before, "call {nth} of {:?}: {error}", report.calls);
                }
            }
            if report.fired.is_none() {
                break;
            }
        }
    }
}

#[test]
fn a_set_with_a_full_disk_changes_nothing() {
    let it = stage(true);
    let before = tree(&it.root);
    let full = |call| (When::Every(call), Fault::Errno(28));
    let report = inject(&[full("mkdirat")], || it.session.perform(&set()).map(drop));
    assert!(matches!(report.result, Err(Error::NoSpace { .. })), "{:?}", report.result);
    assert_eq!(tree(&it.root), before);
    assert!(it.session.history().unwrap().next().is_none());
}

#[test]
fn a_path_is_changed_once_and_one_denied_part_denies_all() {
    let it = stage(false);
    let before = tree(&it.root);
    let twice = ChangeFiles::new([
        FileChange::Write(Write::new("a.txt", "x")),
        FileChange::Delete(Delete::new("./a.txt")),
    ]);
    let refused = it.session.perform(&twice).unwrap_err();
    assert!(matches!(refused, Error::ChangedTwice { .. }), "{refused}");
    let denied = ChangeFiles::new([
        FileChange::Write(Write::new("a.txt", "x")),
        FileChange::Write(Write::new(".git/hooks/pre-commit", "x")),
    ]);
    let refused = it.session.perform(&denied).unwrap_err();
    assert!(matches!(refused, Error::Denied { .. }), "{refused}");
    assert_eq!(tree(&it.root), before);
}

/// The task of a process that this test starts: `DIRECTORY|NTH|MISSING`, killed at the n-th system call of a set, on a
/// file system that does not have some of the calls. With 0 it is the next process.
#[test]
fn task_of_another_process() {
    let Ok(task) = std::env::var("PINFOLD_TEST_TASK") else { return };
    let [dir, nth, missing] = task.split('|').collect::<Vec<_>>().try_into().unwrap();
    let session = session(Path::new(dir), true);
    if nth == "0" {
        // A write of the same directory sweeps the temp files of the killed process.
        for path in ["swept", "d/swept"] {
            session.perform(&Write::new(path, "")).unwrap();
        }
    } else {
        let kill = (When::Nth(nth.parse().unwrap()), Fault::Exit);
        let calls = ["exchange", "rename_new"].into_iter().filter(|call| missing.contains(call));
        let cannot = calls.map(|call| (When::Every(call), Fault::Errno(22)));
        let faults: Vec<_> = cannot.chain([kill]).collect();
        inject(&faults, || session.perform(&set()).map(drop)).result.unwrap();
    }
    println!("done");
}

/// Runs it, and says whether it came to its end.
fn run(dir: &Path, nth: u64, missing: &str) -> bool {
    let mut command = pinfold_testkit::this_program();
    command.args(["task_of_another_process", "--exact", "--nocapture"]);
    let task = format!("{}|{nth}|{missing}", dir.display());
    let output = command.env("PINFOLD_TEST_TASK", task).output().unwrap();
    String::from_utf8_lossy(&output.stdout).contains("done")
}

#[test]
fn the_next_start_restores_a_set_that_was_interrupted() {
    killed_sets_are_whole("");
}

#[test]
fn the_next_start_restores_it_also_where_files_cannot_be_exchanged() {
    killed_sets_are_whole("exchange");
}

#[test]
fn the_next_start_restores_it_also_where_a_rename_cannot_refuse_to_replace() {
    killed_sets_are_whole("exchange, rename_new");
}

fn killed_sets_are_whole(missing: &str) {
    let mut torn = 0;
    for nth in each_call() {
        let it = stage(true);
        let before = tree(&it.root);
        let dir = it.root.parent().unwrap();
        let done = run(dir, nth, missing);
        torn += usize::from(!done && tree(&it.root) != before);
        assert!(run(dir, 0, missing), "the start after {nth}");
        let mut left = tree(&it.root);
        left.retain(|path, _| !path.ends_with("swept") && !path.contains(".pinfold-"));
        let whole = left == before || left.contains_key("empty") && left["a.txt"] == "ONE\n";
        assert!(whole, "killed at {nth}: {left:?}");
        if done {
            break;
        }
    }
    assert!(torn > rounds(5), "{torn}");
}

#[test]
fn a_torn_set_that_somebody_changed_since_stays_and_is_not_confirmed() {
    let it = stage(true);
    let dir = it.root.parent().unwrap();
    for nth in 100.. {
        run(dir, nth, "");
        if fs::read_to_string(it.root.join("a.txt")).is_ok_and(|text| text == "ONE\n") {
            break;
        }
        assert!(nth < 400);
    }
    fs::write(it.root.join("a.txt"), "theirs\n").unwrap();
    let session = session(dir, true);
    assert_eq!(tree(&it.root)["a.txt"], "theirs\n");
    let torn = session.history().unwrap().map(Result::unwrap);
    assert!(torn.filter(|logged| logged.entry.group.is_some()).all(|logged| !logged.confirmed));
}

/// A change that an agent may make in a turn.
fn turn(session: &Session) {
    session.perform(&Write::new("a.txt", "changed\n")).unwrap();
    session.perform(&Write::new("a.txt", "changed again\n")).unwrap();
    session.perform(&Move::new("b.txt", "sub/b.txt")).unwrap();
    session.perform(&Edit::new("sub/b.txt", "two", "TWO")).unwrap();
    session.perform(&Delete::new("c.txt")).unwrap();
    session.perform(&Write::new("new/deep/n.txt", "new\n")).unwrap();
    session.perform(&Write::new("brief.txt", "x")).unwrap();
    session.perform(&Delete::new("brief.txt")).unwrap();
    session.perform(&Move::new("d", "dir")).unwrap();
    session.perform(&Write::new("dir/e.txt", "FOUR\n")).unwrap();
    session.perform(&Mkdir::new("made/empty")).unwrap();
}

#[test]
fn a_rewind_takes_back_a_turn_and_can_be_undone() {
    let it = stage(true);
    it.session.perform(&Write::new("a.txt", "before\n")).unwrap();
    let checkpoint = it.session.checkpoint("turn 1").unwrap();
    let before = tree(&it.root);
    turn(&it.session);
    let after = tree(&it.root);

    let dry = CallOptions::default().with_dry_run(true);
    let preview = it.session.perform_with(&Rewind::to("turn 1"), &dry).unwrap();
    assert_eq!(tree(&it.root), after);
    let file = preview.outcome.files.iter().find(|file| file.path.ends_with("/a.txt")).unwrap();
    assert_eq!((file.what, file.lines), ("restored", Some((1, 1))));

    let done = it.session.perform(&Rewind::to(checkpoint)).unwrap();
    assert_eq!(done.outcome.conflicts, []);
    assert_eq!(tree(&it.root), before);
    it.session.perform(&Undo::change(done.receipt.id.unwrap())).unwrap();
    assert_eq!(tree(&it.root), after);
    it.session.perform(&Rewind::to("turn 1")).unwrap();
    assert_eq!(tree(&it.root), before);
}

/// The diff would be longer than an answer may be.
#[test]
fn a_preview_counts_all_lines_of_a_long_change() {
    let it = stage(true);
    it.session.checkpoint("start").unwrap();
    it.session.perform(&Write::new("long.txt", "a line\n".repeat(50_000))).unwrap();
    let dry = CallOptions::default().with_dry_run(true);
    let preview = it.session.perform_with(&Rewind::to("start"), &dry).unwrap();
    let file = preview.outcome.files.iter().find(|file| file.path.ends_with("/long.txt"));
    assert_eq!(file.unwrap().lines, Some((0, 50_000)));
}

#[test]
fn what_somebody_else_changed_is_named_and_nothing_is_done() {
    let it = stage(true);
    it.session.checkpoint("start").unwrap();
    turn(&it.session);
    fs::write(it.root.join("a.txt"), "theirs\n").unwrap();
    let after = tree(&it.root);
    let done = it.session.perform(&Rewind::to("start")).unwrap();
    let [conflict] = &done.outcome.conflicts[..] else { panic!("{:?}", done.outcome) };
    assert!(conflict.path.ends_with("/a.txt"), "{conflict:?}");
    assert_eq!(conflict.why, "its content has changed since");
    assert_eq!(tree(&it.root), after);
    let leave_out = Rewind::to("start").with_leave_out_conflicts(true);
    it.session.perform(&leave_out).unwrap();
    let left = tree(&it.root);
    assert_eq!(left["a.txt"], "theirs\n");
    assert_eq!((&*left["b.txt"], &*left["d/e.txt"]), ("two\n", "four\n"));
}

#[test]
fn a_session_rewinds_its_own_changes_unless_told_otherwise() {
    let it = stage(true);
    let other = it.session.for_another_agent();
    it.session.checkpoint("start").unwrap();
    it.session.perform(&Write::new("a.txt", "mine\n")).unwrap();
    other.perform(&Write::new("b.txt", "theirs\n")).unwrap();
    it.session.perform(&Rewind::to("start")).unwrap();
    assert_eq!(tree(&it.root)["a.txt"], "one\n");
    assert_eq!(tree(&it.root)["b.txt"], "theirs\n");
    // A file that both changed.
    it.session.perform(&Write::new("c.txt", "mine\n")).unwrap();
    other.perform(&Write::new("c.txt", "theirs\n")).unwrap();
    it.session.perform(&Write::new("c.txt", "mine again\n")).unwrap();
    let done = it.session.perform(&Rewind::to("start")).unwrap();
    assert_eq!(done.outcome.conflicts[0].why, "another session changed it too");
    it.session.perform(&Rewind::to("start").with_scope(RewindScope::AllSessions)).unwrap();
    assert_eq!(tree(&it.root)["b.txt"], "two\n");
    assert_eq!(tree(&it.root)["c.txt"], "three\n");
    let unknown = it.session.perform(&Rewind::to("no such checkpoint")).unwrap_err();
    assert!(matches!(unknown, Error::NothingToUndo { .. }), "{unknown}");
}

fn chunks(body: &str) -> Vec<pinfold::patch::Chunk> {
    let patch = format!("*** Begin Patch\n*** Update File: x\n{body}*** End Patch");
    Patch::parse(&patch).unwrap().files[0].chunks().to_vec()
}

fn patch_set() -> ChangeFiles {
    let moved = Update::new("d/e.txt", chunks("-four\n+4\n"));
    ChangeFiles::new([
        FileChange::Update(Update::new("a.txt", chunks("-one\n+1\n"))),
        FileChange::Update(moved.with_after(AfterUpdate::MoveTo("new/dir/e.txt".into()))),
        FileChange::Update(Update::new("b.txt", chunks("-two\n")).with_after(AfterUpdate::Delete)),
        FileChange::Update(
            Update::new("c.txt", Vec::new()).with_after(AfterUpdate::MoveTo("kept.txt".into())),
        ),
        FileChange::Write(Write::new("run.sh", "exit\n").with_mode(Some(0o755))),
    ])
}

#[test]
fn a_patch_of_several_files_is_made_and_undone_as_a_whole() {
    use std::os::unix::fs::PermissionsExt as _;
    let it = stage(true);
    let mode = |path: &str| fs::metadata(it.root.join(path)).unwrap().permissions().mode() & 0o777;
    fs::set_permissions(it.root.join("d/e.txt"), fs::Permissions::from_mode(0o751)).unwrap();
    let before = tree(&it.root);
    let done = it.session.perform(&patch_set()).unwrap();
    assert_eq!(done.outcome.outcomes.len(), 5);
    let after = tree(&it.root);
    let content = |path: &str| after.get(path).map(String::as_str);
    assert_eq!(content("a.txt"), Some("1\n"));
    assert_eq!(content("new/dir/e.txt"), Some("4\n"));
    assert_eq!(content("kept.txt"), Some("three\n"));
    assert!(["d/e.txt", "b.txt", "c.txt"].iter().all(|path| content(path).is_none()));
    assert_eq!((mode("new/dir/e.txt"), mode("run.sh")), (0o751, 0o755));
    let undone = it.session.perform(&Undo::change(done.receipt.id.unwrap())).unwrap();
    assert_eq!((tree(&it.root), mode("d/e.txt")), (before, 0o751));
    it.session.perform(&Undo::change(undone.receipt.id.unwrap())).unwrap();
    assert_eq!(tree(&it.root), after);
}

#[test]
fn a_patch_that_fails_anywhere_changes_nothing() {
    for nth in each_call() {
        let it = stage(true);
        let before = tree(&it.root);
        let report = inject(&[(When::Nth(nth), Fault::Errno(5))], || {
            it.session.perform(&patch_set()).map(drop)
        });
        match &report.result {
            Ok(()) => assert!(!tree(&it.root).contains_key("b.txt")),
            Err(error) => assert_eq!(tree(&it.root), before, "call {nth}: {error}"),
        }
        if report.fired.is_none() {
            break;
        }
    }
}

#[test]
fn a_patch_is_refused_as_a_whole() {
    let it = stage(true);
    std::os::unix::fs::symlink("a.txt", it.root.join("link")).unwrap();
    let before = tree(&it.root);
    let update = |path: &str, body: &str| Update::new(path, chunks(body));
    let refused = |update: Update| {
        let write = FileChange::Write(Write::new("first.txt", "x\n"));
        let set = ChangeFiles::new([write, FileChange::Update(update)]);
        let error = it.session.perform(&set).unwrap_err();
        assert_eq!(tree(&it.root), before, "{error}");
        error
    };
    let to = |path: &str| AfterUpdate::MoveTo(path.into());
    let error = refused(update("a.txt", "-two\n+2\n"));
    assert!(matches!(error, Error::NoMatch { number: None, .. }), "{error}");
    let error = refused(update("a.txt", "@@ nowhere\n-one\n"));
    assert!(matches!(&error, Error::BadAnchor { lines, .. } if lines.is_empty()), "{error}");
    let error = refused(update("a.txt", "-one\n+1\n").with_after(to("b.txt")));
    assert!(matches!(&error, Error::Exists { path } if path.as_str() == "b.txt"), "{error}");
    let error = refused(Update::new("d", Vec::new()).with_after(to("f")));
    assert!(matches!(error, Error::IsDirectory { .. }), "{error}");
    let error = refused(update("link", "-one\n+1\n").with_after(to("f")));
    assert!(matches!(error, Error::NotRegular { .. }), "{error}");
    let error = refused(update("a.txt", " one\n").with_after(AfterUpdate::Delete));
    assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
    let error = refused(update("./first.txt", "-x\n"));
    assert!(matches!(error, Error::ChangedTwice { .. }), "{error}");
    let error = refused(update("../a.txt", "-x\n"));
    assert!(matches!(error, Error::Outside { .. }), "{error}");
}

#[test]
fn a_rewind_takes_back_undos_and_redos_too() {
    let it = stage(true);
    let first = it.session.perform(&Write::new("a.txt", "before\n")).unwrap();
    it.session.perform(&Move::new("d", "moved")).unwrap();
    it.session.checkpoint("here").unwrap();
    let before = tree(&it.root);
    // A change from before the checkpoint is undone, and the directory moved to and fro.
    it.session.perform(&Undo::newest()).unwrap();
    it.session.perform(&Undo::change(first.receipt.id.unwrap())).unwrap();
    it.session.perform(&Move::new("d", "once")).unwrap();
    it.session.perform(&Move::new("once", "d")).unwrap();
    it.session.perform(&Write::new("d/e.txt", "E\n")).unwrap();
    it.session.perform(&Undo::newest()).unwrap();
    assert_ne!(tree(&it.root), before);
    let done = it.session.perform(&Rewind::to("here")).unwrap();
    assert_eq!((done.outcome.conflicts, tree(&it.root)), (vec![], before.clone()));
    it.session.perform(&Rewind::all()).unwrap();
    assert_eq!(tree(&it.root)["a.txt"], "one\n");
    assert_eq!(tree(&it.root)["d/e.txt"], "four\n");
}

#[test]
fn names_that_several_things_had_are_told_apart() {
    let it = stage(true);
    it.session.checkpoint("start").unwrap();
    let before = tree(&it.root);
    // The name `z` is that of a directory which moves away, and then of another.
    it.session.perform(&Mkdir::new("z")).unwrap();
    it.session.perform(&Write::new("z/x", "x\n")).unwrap();
    it.session.perform(&Move::new("z", "y")).unwrap();
    it.session.perform(&Move::new("d", "z")).unwrap();
    it.session.perform(&Write::new("z/e.txt", "changed\n")).unwrap();
    it.session.perform(&Move::new("a.txt", "z/a.txt")).unwrap();
    let done = it.session.perform(&Rewind::to("start")).unwrap();
    assert_eq!((done.outcome.conflicts, tree(&it.root)), (vec![], before));
    // A file cannot come back while a directory has its name.
    it.session.perform(&Delete::new("c.txt")).unwrap();
    it.session.perform(&Move::new("d", "c.txt")).unwrap();
    let after = tree(&it.root);
    let done = it.session.perform(&Rewind::to("start")).unwrap();
    assert_eq!(done.outcome.conflicts[0].why, "a directory is there now");
    assert_eq!(tree(&it.root), after);
}

#[test]
fn a_change_of_a_set_stays_with_the_whole_set() {
    let it = stage(true);
    let set = it.session.perform(&set()).unwrap();
    let after = tree(&it.root);
    it.session.perform(&Write::new("later.txt", "later\n")).unwrap();
    it.session.perform(&Rewind::to(set.receipt.id.unwrap())).unwrap();
    assert_eq!(tree(&it.root), after);
}

#[test]
fn calls_that_name_their_turn_can_be_taken_back_by_it() {
    let it = stage(true);
    let write = |session: &Session, path: &str, turn: &str| {
        let call = CallOptions::default().with_turn(turn.to_owned());
        session.perform_with(&Write::new(path, turn), &call).unwrap();
    };
    write(&it.session, "first", "turn 1");
    let before = tree(&it.root);
    write(&it.session, "a.txt", "turn 2");
    write(&it.session, "b.txt", "turn 2");
    // Another process of the same turn, which has a session of its own.
    write(&it.session.for_another_agent(), "c.txt", "turn 2");
    let labels = it.session.history().unwrap().filter_map(|it| it.unwrap().entry.checkpoint);
    assert_eq!(labels.collect::<Vec<_>>(), ["turn 2", "turn 2", "turn 1"]);
    it.session.perform(&Rewind::to("turn 2").with_scope(RewindScope::AllSessions)).unwrap();
    assert_eq!(tree(&it.root), before);
    // A label that was used before is that of the newest checkpoint.
    it.session.checkpoint("again").unwrap();
    it.session.perform(&Write::new("a.txt", "kept\n")).unwrap();
    it.session.checkpoint("again").unwrap();
    it.session.perform(&Write::new("a.txt", "gone\n")).unwrap();
    it.session.perform(&Rewind::to("again")).unwrap();
    assert_eq!(tree(&it.root)["a.txt"], "kept\n");
}
