//! Edits through a session: an undo restores every byte, and parallel edits lose nothing.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use pinfold::limits::MAX_REPLACEMENTS;
use pinfold::operations::{ChangeFiles, Delete, Edit, FileChange, Insert, Read, Show, Undo, Write};
use pinfold::{
    ApprovalAnswer, ApprovalRequest, Approver, CallOptions, Cancel, Durability, Error,
    JournalSetting, MatchMode, Mode, Permissions, ReadBeforeWrite, Replacement, Session, Settings,
};
use pinfold_confine::fault::{Fault, Meanwhile, When, inject, interleave};
use proptest::prelude::*;
use tempfile::TempDir;

/// A workspace, and a journal beside it.
fn session(dir: &TempDir) -> Session {
    fs::create_dir_all(dir.path().join("ws")).unwrap();
    let settings = Settings::default()
        .with_durability(Durability::None)
        // For an emulated machine.
        .with_deadline_seconds(3_600)
        .with_journal(Some(JournalSetting::Directory(dir.path().join("journal"))));
    Session::with_settings([dir.path().join("ws")], settings).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn an_edit_and_its_undo_are_nothing(
        before in prop::collection::vec(any::<u8>(), 0..60),
        after in prop::collection::vec(any::<u8>(), 0..60),
        new in "[a-z\u{e9}\r\n]{0,10}",
    ) {
        let dir = TempDir::new().unwrap();
        let session = session(&dir);
        let file = dir.path().join("ws/f");
        let bytes = [&before[..], b"<mark>", &after[..]].concat();
        fs::write(&file, &bytes).unwrap();
        match session.perform(&Edit::new("f", "<mark>", format!("<{new}>"))) {
            Ok(_) => {
                let edited = fs::read(&file).unwrap();
                prop_assert_ne!(&edited, &bytes);
                session.perform(&Undo::default()).unwrap();
            }
            Err(Error::Binary { .. } | Error::Unmappable { .. } | Error::NoMatch { .. } | Error::NoChange { .. } | Error::ManyMatches { .. }) => {}
            Err(other) => panic!("{other:?}"),
        }
        prop_assert_eq!(fs::read(&file).unwrap(), bytes);
        prop_assert_eq!(fs::read_dir(dir.path().join("ws")).unwrap().count(), 1);
    }
}

#[test]
fn eight_sessions_that_edit_one_file_lose_nothing() {
    let dir = TempDir::new().unwrap();
    drop(session(&dir));
    let text: String = (0..8).map(|writer| format!("writer {writer}: 0\n")).collect();
    fs::write(dir.path().join("ws/f"), text).unwrap();
    thread::scope(|scope| {
        for writer in 0..8 {
            let session = session(&dir);
            scope.spawn(move || {
                session.perform(&Read::new("f")).unwrap();
                for number in 0..20 {
                    let line = |number| format!("writer {writer}: {number}\n");
                    let edit = Edit::new("f", line(number), line(number + 1));
                    session.perform(&edit.with_read_rule(ReadBeforeWrite::Require)).unwrap();
                }
            });
        }
    });
    let text: String = (0..8).map(|writer| format!("writer {writer}: 20\n")).collect();
    assert_eq!(fs::read_to_string(dir.path().join("ws/f")).unwrap(), text);
    assert_eq!(session(&dir).history().unwrap().count(), 160);
}

#[test]
fn whatever_call_fails_the_file_and_the_journal_agree() {
    for errno in [5, 28, 13] {
        for nth in 1.. {
            let dir = TempDir::new().unwrap();
            let session = session(&dir);
            let file = dir.path().join("ws/f");
            fs::write(&file, "old text\n").unwrap();
            let edit = Edit::new("f", "old", "new");
            let fault = (When::Nth(nth), Fault::Errno(errno));
            let report = inject(&[fault], || session.perform(&edit).map(|done| done.receipt));
            let text = fs::read_to_string(&file).unwrap();
            let what = format!("{errno} at {nth}, {:?}: {:?}", report.fired, report.result);
            match report.result {
                Ok(receipt) => {
                    assert_eq!(text, "new text\n", "{what}");
                    match receipt.warning {
                        None => {
                            session.perform(&Undo::default()).unwrap_or_else(|_| panic!("{what}"));
                            assert_eq!(fs::read_to_string(&file).unwrap(), "old text\n", "{what}");
                        }
                        Some(warning) => assert!(warning.contains("cannot be undone"), "{what}"),
                    }
                }
                Err(_) => {
                    assert_eq!(text, "old text\n", "{what}");
                    let names =
                        std::os::unix::fs::MetadataExt::nlink(&fs::metadata(&file).unwrap());
                    assert_eq!(names, 1, "the journal kept what it had no use for: {what}");
                    let undo = session.perform(&Undo::default()).unwrap_err();
                    let nothing =
                        matches!(undo, Error::NothingToUndo { .. } | Error::NotAsLeft { .. });
                    assert!(nothing, "{what}: {undo:?}");
                }
            }
            assert_eq!(fs::read_dir(dir.path().join("ws")).unwrap().count(), 1, "{what}");
            if report.fired.is_none() {
                break;
            }
        }
    }
}

#[test]
fn whatever_call_fails_a_deletion_can_be_taken_back_or_did_not_happen() {
    // Beside the workspace, the backup is a hard link. Far from it, if this machine has another file system, it is a
    // copy.
    let far = TempDir::new_in("/dev/shm").ok();
    for journal in [None, far.as_ref()] {
        for nth in 1.. {
            let dir = TempDir::new().unwrap();
            let near = dir.path().join("journal");
            let journal = journal.map_or(near, |far| far.path().join(nth.to_string()));
            fs::create_dir(dir.path().join("ws")).unwrap();
            let settings =
                Settings::default().with_journal(Some(JournalSetting::Directory(journal)));
            let session = Session::with_settings([dir.path().join("ws")], settings).unwrap();
            let file = dir.path().join("ws/f");
            fs::write(&file, "precious\n").unwrap();
            let full = (When::Nth(nth), Fault::Errno(28));
            let report = inject(&[full], || session.perform(&Delete::new("f")).map(drop));
            let what = format!("{nth}, {:?} of {:?}", report.fired, report.calls);
            match report.result {
                Ok(()) => {
                    assert!(!file.exists(), "{what}");
                    session.perform(&Undo::default()).unwrap_or_else(|e| panic!("{what}: {e}"));
                    assert_eq!(fs::read_to_string(&file).unwrap(), "precious\n", "{what}");
                }
                Err(_) => assert_eq!(fs::read_to_string(&file).unwrap(), "precious\n", "{what}"),
            }
            assert_eq!(fs::read_dir(dir.path().join("ws")).unwrap().count(), 1, "{what}");
            if report.fired.is_none() {
                break;
            }
        }
    }
}

#[test]
fn a_strict_setting_holds_where_the_file_is_created_too() {
    let dir = TempDir::new().unwrap();
    let settings = Settings::default().with_matching(MatchMode::Exact);
    let session = Session::with_settings([dir.path()], settings).unwrap();
    let mut edit = Edit::new("new", "", "    a\n    b\n");
    edit.replacements.push(Replacement { old: "a\nb".into(), new: "x\ny".into(), all: false });
    assert!(matches!(session.perform(&edit), Err(Error::NoMatch { number: Some(2), .. })));
    assert!(!dir.path().join("new").exists());
}

#[test]
fn a_created_file_has_the_new_text_byte_for_byte() {
    let dir = TempDir::new().unwrap();
    let session = session(&dir);
    for content in ["a\r\nb\r\n", "\u{feff}a\rb", " \n"] {
        let file = dir.path().join("ws/new");
        session.perform(&Edit::new("new", "", content)).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), content);
        fs::write(&file, "").unwrap();
        session.perform(&Edit::new("new", "", content)).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), content);
        let again = session.perform(&Edit::new("new", "", "x")).unwrap_err();
        assert!(matches!(again, Error::EmptyOld { number: None, .. }), "{again:?}");
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn an_edit_that_would_grow_without_bound_is_refused() {
    let dir = TempDir::new().unwrap();
    let session = session(&dir);
    fs::write(dir.path().join("ws/f"), "a\n".repeat(5000)).unwrap();
    let mut edit = Edit::new("f", "a", "b".repeat(1_000_000));
    edit.replacements[0].all = true;
    assert!(matches!(session.perform(&edit), Err(Error::TooLarge { .. })));
    let doubled =
        |from: &str, to: &str| Replacement { old: from.into(), new: to.into(), all: true };
    let growing = (0..40).flat_map(|_| [doubled("a", "bb"), doubled("b", "aa")]);
    edit.replacements = growing.collect();
    let refused = session.perform(&edit).unwrap_err();
    let too_many = matches!(refused, Error::ManyMatches { count, .. } if count > MAX_REPLACEMENTS);
    assert!(too_many, "{refused:?}");
    assert_eq!(fs::read_to_string(dir.path().join("ws/f")).unwrap(), "a\n".repeat(5000));
}

#[test]
fn many_edits_end_with_the_call() {
    let dir = TempDir::new().unwrap();
    let session = session(&dir);
    fs::write(dir.path().join("ws/f"), "0\n").unwrap();
    let step = |n: u32| Replacement { old: n.to_string(), new: (n + 1).to_string(), all: false };
    let create = Replacement { old: String::new(), new: "0\n".into(), all: false };
    for (path, first) in [("f", None), ("new", Some(create))] {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let beat = move || count.fetch_add(1, Ordering::Relaxed) >= 100;
        let call = CallOptions::default().with_cancel(Cancel::default().with_poll(beat));
        let replacements = first.into_iter().chain((0..500).map(step)).collect();
        let edit = Edit::all(path, replacements);
        let ended = session.perform_with(&edit, &call).map(drop);
        assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
        // It was asked on the way, and went no further.
        let asked = asked.load(Ordering::Relaxed);
        assert!((100..110).contains(&asked), "{asked}");
    }
    assert_eq!(fs::read_to_string(dir.path().join("ws/f")).unwrap(), "0\n");
    assert!(!dir.path().join("ws/new").exists());
}

#[test]
fn a_file_too_large_to_edit_has_no_diff() {
    let dir = TempDir::new().unwrap();
    let session = session(&dir);
    let settings = session.settings().clone().with_max_edit_bytes(100);
    let strict = Session::with_settings([dir.path().join("ws")], settings).unwrap();
    for (before, after, shown) in [(100, 99, true), (101, 99, false), (99, 101, false)] {
        fs::write(dir.path().join("ws/f"), "b".repeat(before)).unwrap();
        let written = session.perform(&Write::new("f", "a".repeat(after))).unwrap();
        let show = Show::new(written.receipt.id.unwrap());
        assert_eq!(strict.perform(&show).unwrap().outcome.diff.is_some(), shown, "{before}");
        assert!(session.perform(&show).unwrap().outcome.diff.is_some());
    }
}

/// What other Pinfold processes do to `file`, each just before this thread locks the directory: they replace it.
fn others_edit(file: &Path, times: usize) -> Vec<Meanwhile> {
    let edit = |nth: usize| {
        let file = file.to_owned();
        let action = move || {
            let text = fs::read_to_string(&file).unwrap();
            fs::remove_file(&file).unwrap();
            fs::write(&file, format!("{text}other {nth}\n")).unwrap();
        };
        ("flock", nth, Box::new(action) as Box<dyn FnOnce()>)
    };
    (1..=times).map(edit).collect()
}

#[test]
fn an_edit_is_made_though_other_processes_change_the_file_all_the_time() {
    let dir = TempDir::new().unwrap();
    let settings = Settings::default().with_durability(Durability::None).with_journal(None);
    let session = Session::with_settings([dir.path()], settings).unwrap();
    let file = dir.path().join("f");
    for edit in [
        Box::new(|| session.perform(&Edit::new("f", "mine: 0", "mine: 1")).map(drop))
            as Box<dyn Fn() -> Result<(), Error>>,
        Box::new(|| session.perform(&Insert::new("f", 0, "mine: 1\n")).map(drop)),
        // The directory stays locked from the last target on.
        Box::new(|| {
            let edit = |path| FileChange::Edit(Edit::new(path, "mine: 0", "mine: 1"));
            session.perform(&ChangeFiles::new(["e", "f"].map(edit))).map(drop)
        }),
    ] {
        fs::write(&file, "mine: 0\n").unwrap();
        fs::write(dir.path().join("e"), "mine: 0\n").unwrap();
        let report = interleave(others_edit(&file, 100), edit);
        report.result.unwrap();
        let text = fs::read_to_string(&file).unwrap();
        let others = text.matches("other ").count();
        assert!(text.contains("mine: 1\n") && (1..4).contains(&others), "{text}");
    }
    assert!(fs::read_dir(dir.path()).unwrap().count() == 2, "nothing is left behind");
}

/// A user whose second answer takes so long that another process edits the file meanwhile.
#[derive(Debug)]
struct SlowUser(PathBuf, Arc<AtomicUsize>);

impl Approver for SlowUser {
    fn ask(&self, _: &ApprovalRequest) -> ApprovalAnswer {
        if self.1.fetch_add(1, Ordering::Relaxed) == 1 {
            let edit = || {
                let other = Session::open([&self.0]).unwrap();
                other.perform(&Edit::new("f", "other 1", "other 2")).unwrap();
            };
            // Locks of a directory belong to a thread.
            thread::scope(|scope| scope.spawn(edit).join().unwrap());
            // A program may also look at the file, or change it, before it answers.
            edit_back(&self.0);
        }
        ApprovalAnswer::Once
    }
}

/// Edits on the thread that asks. Afterwards other threads can edit, too.
fn edit_back(root: &Path) {
    let edit =
        |old, new| Session::open([root]).unwrap().perform(&Edit::new("f", old, new)).map(drop);
    edit("other 2", "other 3").unwrap();
    thread::scope(|scope| scope.spawn(|| edit("other 3", "other 4")).join().unwrap().unwrap());
}

#[test]
fn no_process_waits_for_a_file_while_the_user_is_asked_about_it() {
    let dir = TempDir::new().unwrap();
    let settings = Settings::default()
        .with_permissions(Permissions { mode: Mode::Ask, ..Permissions::default() })
        .with_journal(None);
    let asked = Arc::new(AtomicUsize::new(0));
    let user = SlowUser(dir.path().to_owned(), asked.clone());
    let session = Session::with_settings([dir.path()], settings).unwrap().with_approver(user);
    let file = dir.path().join("f");
    fs::write(&file, "mine: 0\n").unwrap();
    // Another process changes the file after the first answer, so the second question comes in a later round.
    let edit = || session.perform(&Edit::new("f", "mine: 0", "mine: 1")).map(drop);
    interleave(others_edit(&file, 1), edit).result.unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 3, "asked again about each new version");
    assert_eq!(fs::read_to_string(file).unwrap(), "mine: 1\nother 4\n");
}

/// Two directories with a file `f` each, in the order in which sets of changes lock them.
fn two_directories(root: &Path) -> [fs::File; 2] {
    let mut directories = ["x", "y"].map(|name| {
        fs::create_dir(root.join(name)).unwrap();
        fs::write(root.join(name).join("f"), "mine: 0\n").unwrap();
        (fs::metadata(root.join(name)).unwrap().ino(), root.join(name))
    });
    directories.sort();
    let names = ["a", "b"].iter().zip(directories);
    names.for_each(|(name, (_, directory))| fs::rename(directory, root.join(name)).unwrap());
    ["a", "b"].map(|name| fs::File::open(root.join(name)).unwrap())
}

/// Another process, which locks `a` just before the `nth` lock of this thread, and releases it once it has locked `b`.
fn another_set([a, b]: [fs::File; 2], nth: usize) -> (Meanwhile, thread::JoinHandle<()>) {
    let (sender, receiver) = mpsc::channel::<fs::File>();
    let other = thread::spawn(move || {
        let a = receiver.recv().unwrap();
        b.lock().unwrap();
        drop([a, b]);
    });
    let lock_a = move || {
        a.lock().unwrap();
        sender.send(a).unwrap();
    };
    (("flock", nth, Box::new(lock_a)), other)
}

#[test]
fn a_set_keeps_no_directory_locked_while_it_waits_for_one_that_others_lock_first() {
    let edit = |path| FileChange::Edit(Edit::new(path, "mine: 0", "mine: 1"));
    for (order, lost_races) in [(["a/f", "b/f"], 0), (["b/f", "a/f"], 0), (["b/f", "a/f"], 1)] {
        let dir = TempDir::new().unwrap();
        let settings = Settings::default().with_durability(Durability::None).with_journal(None);
        let session = Session::with_settings([dir.path()], settings).unwrap();
        let directories = two_directories(dir.path());
        // Each round locks both directories; a later one has locked those of both targets before.
        let (lock_a, other) = another_set(directories, 1 + 4 * lost_races);
        let mut others = vec![lock_a];
        let file = dir.path().join("b/f");
        if lost_races > 0 {
            let replace = move || {
                fs::remove_file(&file).unwrap();
                fs::write(&file, "mine: 0\nother\n").unwrap();
            };
            others.push(("flock", 1, Box::new(replace)));
        }
        let edit_both = || session.perform(&ChangeFiles::new(order.map(edit))).map(drop);
        interleave(others, edit_both).result.unwrap();
        other.join().unwrap();
        let text = |path: &str| fs::read_to_string(dir.path().join(path)).unwrap();
        let other = "other\n".repeat(lost_races);
        assert_eq!([text("a/f"), text("b/f")], ["mine: 1\n".into(), format!("mine: 1\n{other}")]);
    }
}

#[test]
fn a_large_file_can_be_edited_and_a_miss_in_it_is_explained_soon() {
    let dir = TempDir::new().unwrap();
    let session = session(&dir);
    let line = "some text that stands on every line of a rather large file\n";
    let mut text = line.repeat(50_000_000 / line.len());
    text.push_str("the search_pattern is here\n");
    fs::write(dir.path().join("ws/f"), &text).unwrap();
    let done = session
        .perform(&Edit::new("f", "the search_pattern is here", "the search_pattern was here"))
        .unwrap();
    assert_eq!(done.outcome.lines, [(text.lines().count() as u64, text.lines().count() as u64)]);
    let miss = session.perform(&Edit::new("f", "the needel was here", "x")).unwrap_err();
    let Error::NoMatch { nearest: Some(nearest), .. } = miss else { panic!("{miss:?}") };
    assert!(nearest.contains("search_pattern") && nearest.len() < 4096, "{nearest}");
    let many = session.perform(&Edit::new("f", line, "x\n")).unwrap_err();
    let lines = text.lines().count() - 1;
    assert!(matches!(many, Error::ManyMatches { count, .. } if count == lines), "{many:?}");
    session.perform(&Undo::default()).unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("ws/f")).unwrap(), text);
}

#[test]
fn a_changed_file_is_answered_with_the_lines_that_changed_since() {
    let dir = TempDir::new().unwrap();
    let session = session(&dir);
    let file = dir.path().join("ws/f");
    let lines: Vec<String> = (1..=200).map(|number| format!("line {number}")).collect();
    let text = |lines: &[String]| lines.join("\n") + "\n";
    fs::write(&file, text(&lines)).unwrap();
    // Reading any window counts as a read of the file.
    session.perform(&Read::new("f").with_lines(Some(1))).unwrap();
    let mut changed = lines.clone();
    changed[149] = "line 150, by another".into();
    changed.remove(9);
    fs::write(&file, text(&changed)).unwrap();
    let hint = |error: &Error| error.hint().unwrap();
    let shown = "(1 line is gone after line 9)\n   149\tline 150, by another";
    let write = Write::new("f", "x").with_read_rule(ReadBeforeWrite::Require);
    for _ in 0..2 {
        let refused = session.perform(&write).unwrap_err();
        let expected = format!("read it again, then redo the change\nchanged since then:\n{shown}");
        assert_eq!(hint(&refused), expected);
    }
    // The text is nowhere near what changed: both are shown.
    let edit = Edit::new("f", "line 199!", "x").with_read_rule(ReadBeforeWrite::Require);
    let refused = hint(&session.perform(&edit).unwrap_err());
    let expected = format!("redo the change on what it says now\nchanged since then:\n{shown}\n");
    assert!(refused.starts_with(&expected) && refused.contains("   198\tline 199"), "{refused}");
    // Now that it was shown, it counts as read.
    let edit = Edit::new("f", "line 199\n", "x\n").with_read_rule(ReadBeforeWrite::Require);
    assert!(!session.perform(&edit).unwrap().outcome.changed_elsewhere);
    // A write of the session updates its fingerprint, too.
    let ours = fs::read_to_string(&file).unwrap();
    fs::write(&file, ours.replace("x\n", "x, by another\n")).unwrap();
    let refused = hint(&session.perform(&write).unwrap_err());
    assert!(refused.ends_with("changed since then:\n   198\tx, by another"), "{refused}");
}

#[test]
fn a_changed_file_is_answered_in_few_words_however_much_changed() {
    let dir = TempDir::new().unwrap();
    let session = session(&dir);
    let file = dir.path().join("ws/f");
    for (then, now) in [
        ("a\n".repeat(50_000), "a line that changed\n".repeat(50_000)),
        ("a".into(), "wide ".repeat(100_000)),
        // Too many lines to keep their hashes.
        ("a\n".repeat(100_000), "b\n".repeat(100_000)),
    ] {
        fs::write(&file, then).unwrap();
        session.perform(&Read::new("f")).unwrap();
        fs::write(&file, now).unwrap();
        for refused in [
            session
                .perform(&Write::new("f", "x").with_read_rule(ReadBeforeWrite::Require))
                .unwrap_err(),
            session
                .perform(
                    &Edit::new("f", "no such text", "x").with_read_rule(ReadBeforeWrite::Require),
                )
                .unwrap_err(),
        ] {
            let (message, hint) = (refused.with_hint(), refused.hint().unwrap());
            assert!(message.len() < 4_096, "{message}");
            assert!(hint.starts_with("read it again"), "{message}");
        }
    }
}
