//! Compares versions of a file from the journal and the disk.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;

use pinfold::operations::{Compare, Delete, Move, Undo, Version, Write};
use pinfold::{Error, Journal, JournalSetting, Session, Settings, State};
use tempfile::TempDir;

fn settings(dir: &TempDir) -> Settings {
    Settings::default().with_journal(Some(JournalSetting::Directory(dir.path().join("journal"))))
}

fn session(dir: &TempDir) -> Session {
    fs::create_dir(dir.path().join("ws")).unwrap();
    Session::with_settings([dir.path().join("ws")], settings(dir)).unwrap()
}

#[test]
fn any_two_versions_of_a_file_can_be_compared() {
    let dir = TempDir::new().unwrap();
    let session = session(&dir);
    let path = dir.path().canonicalize().unwrap().join("ws/b").display().to_string();
    let write = |name: &str, text: &str| {
        session.perform(&Write::new(name, text)).unwrap().receipt.id.unwrap()
    };
    let first = write("a", "one\n");
    let second = write("a", "two\n");
    let moved = session.perform(&Move::new("a", "b")).unwrap().receipt.id.unwrap();
    let third = write("b", "three\n");
    fs::write(&path, "by somebody else\n").unwrap();
    let (before, after) = (Version::Before, Version::After);
    for (from, to, lines) in [
        (before(first.clone()), after(first.clone()), "+one\n"),
        (after(first.clone()), after(third.clone()), "-one\n+three\n"),
        (before(second.clone()), after(moved.clone()), "-one\n+two\n"),
        (after(third.clone()), after(moved), "-three\n+two\n"),
        (after(second), Version::Now, "-two\n+by somebody else\n"),
    ] {
        let compare = Compare::new(&path, from, to);
        // The newest version is no longer on the disk, and no later change has a backup of it.
        let lost = [&compare.from, &compare.to].contains(&&after(third.clone()));
        let diff = session.perform(&compare).unwrap().outcome.diff;
        assert_eq!(diff.is_none(), lost, "{compare:?}");
        assert!(diff.is_none_or(|diff| diff.ends_with(lines)), "{compare:?}");
    }
    fs::write(&path, "three\n").unwrap();
    session.perform(&Delete::new("b")).unwrap();
    let gone = session.perform(&Compare::new(&path, after(third), Version::Now)).unwrap().outcome;
    assert_eq!(gone.states[1], State::Absent);
    assert!(gone.diff.unwrap().ends_with("-three\n"));
    let unknown = Compare::new(&path, after("nobody".into()), Version::Now);
    assert!(matches!(session.perform(&unknown), Err(Error::NothingToUndo { .. })));
}

#[test]
fn versions_of_a_file_that_may_not_be_read_are_not_compared() {
    let dir = TempDir::new().unwrap();
    let session = session(&dir);
    let id = session.perform(&Write::new("a", "secret\n")).unwrap().receipt.id.unwrap();
    let mut strict = settings(&dir);
    strict.permissions.deny.push("Read(a)".into());
    let strict = Session::with_settings([dir.path().join("ws")], strict).unwrap();
    let path = dir.path().canonicalize().unwrap().join("ws/a").display().to_string();
    let compare = Compare::new(&path, Version::Before(id), Version::Now);
    assert!(matches!(strict.perform(&compare), Err(Error::Denied { .. })));
    assert!(session.perform(&compare).is_ok());
}

#[test]
fn the_journal_says_in_which_workspace_a_change_was_made_and_whether_it_was_undone() {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("read")).unwrap();
    let session = session(&dir);
    let mut settings = settings(&dir);
    settings.read_roots.push(dir.path().join("read"));
    let other = Session::with_settings([dir.path().join("ws")], settings.clone()).unwrap();
    session.perform(&Write::new("a", "one\n")).unwrap();
    other.perform(&Undo::newest()).unwrap();
    let journal = Journal::of(&settings).unwrap();
    let logged: Vec<_> = journal.newest_first().unwrap().map(Result::unwrap).collect();
    let root = dir.path().join("ws").canonicalize().unwrap().display().to_string();
    assert!(logged.iter().all(|logged| logged.entry.roots == [root.clone()]), "{logged:?}");
    assert_eq!(logged.iter().map(|logged| logged.undone).collect::<Vec<_>>(), [false, true]);
}
