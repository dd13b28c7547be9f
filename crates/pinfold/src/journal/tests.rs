//! Entries that the journal keeps and drops, and those that killed processes leave.

#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use super::tidy::{MAX_LOG_BYTES, TIDY_AFTER};
use super::*;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn entry(id: &str, time: u64) -> Entry {
    Entry {
        id: id.into(),
        time,
        session: "s".into(),
        tool: "Write".into(),
        path: format!("/ws/{}", "a".repeat(200)),
        roots: Vec::new(),
        before: State::Absent,
        after: State::Absent,
        moved_to: None,
        made_parents: 0,
        undoes: None,
        also_undoes: Vec::new(),
        group: None,
        checkpoint: None,
    }
}

/// Adds an entry as the first change of a process, with a backup of `bytes` bytes.
fn begin(directory: &Path, id: &str, bytes: usize, max: u64) {
    let ws = tempfile::tempdir().unwrap();
    fs::write(ws.path().join("f"), vec![1; bytes]).unwrap();
    let workspace = pinfold_confine::Workspace::open([ws.path()], None).unwrap();
    let deadline = Deadline::default();
    let mut target = workspace.target(&"f".into(), &deadline).unwrap();
    let journal = Journal::new(directory.to_owned(), DAY, max);
    let entry = entry(id, now());
    journal
        .begin(vec![(&entry, Displaces::Target(&mut target))], MustSurvive::Crash, &deadline)
        .unwrap();
}

/// Makes the next change tidy the journal.
fn make_tidying_due(directory: &Path) {
    fs::remove_file(directory.join("pinfold-usage.jsonl")).unwrap();
}

fn add(journal: &Journal, id: &str) {
    journal
        .begin(
            vec![(&entry(id, now()), Displaces::Nothing)],
            MustSurvive::Crash,
            &Deadline::default(),
        )
        .unwrap();
}

/// Oldest first.
fn ids(journal: &Journal) -> Vec<String> {
    let entries = journal.newest_first().unwrap().map(|logged| logged.unwrap().entry.id);
    let mut ids: Vec<_> = entries.collect();
    ids.reverse();
    ids
}

/// The size of a directory as `du` reports it.
fn disk_bytes(directory: &Path) -> u64 {
    let own = fs::metadata(directory).unwrap().blocks() * 512;
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    own + entries
        .map(|entry| {
            let meta = entry.metadata().unwrap();
            if meta.is_dir() { disk_bytes(&entry.path()) } else { meta.blocks() * 512 }
        })
        .sum::<u64>()
}

#[test]
fn torn_and_called_off_lines_are_no_entries_and_made_ones_are_confirmed() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(dir.path().to_owned(), DAY, u64::MAX);
    let deadline = Deadline::default();
    for id in ["a", "b", "c"] {
        add(&journal, id);
    }
    journal.store().unwrap().append(&log(), "{\"id\":\"x", &deadline).unwrap();
    journal.void(&["b".into()], &deadline);
    journal.confirm(&["a".into()], MustSurvive::Crash, &deadline);
    let found: Vec<_> = journal
        .newest_first()
        .unwrap()
        .map(|logged| logged.map(|logged| (logged.entry.id, logged.confirmed)).unwrap())
        .collect();
    assert_eq!(found, [("c".to_owned(), false), ("a".to_owned(), true)]);
}

#[test]
fn a_log_that_has_grown_is_sealed_and_still_read() {
    let dir = tempfile::tempdir().unwrap();
    let deadline = Deadline::default();
    let mut expected = Vec::new();
    let journal = Journal::new(dir.path().to_owned(), DAY, u64::MAX);
    for number in 0..1_800 {
        let id = format!("{number:010}");
        fs::write(dir.path().join(format!("{id}.before")), &id).unwrap();
        add(&journal, &id);
        match number % 3 {
            0 => journal.void(std::slice::from_ref(&id), &deadline),
            _ => {
                journal.confirm(std::slice::from_ref(&id), MustSurvive::Crash, &deadline);
                expected.push(id);
            }
        }
    }
    assert_eq!(ids(&journal), expected);
    assert!(journal.newest_first().unwrap().all(|logged| logged.unwrap().confirmed));
    let log_bytes = fs::metadata(dir.path().join("log.jsonl")).unwrap().len();
    assert!(log_bytes < 2 * MAX_LOG_BYTES, "{log_bytes}");
    assert!(fs::read_dir(dir.path()).unwrap().count() < 1_500);
    assert!(journal.store().unwrap().segments().unwrap().len() >= 2);
    // Backups are found in the log's directory and in segments.
    for id in ["0000000001", "0000001799"] {
        assert_eq!(journal.backup(&entry(id, 1)).unwrap(), id.as_bytes());
    }
    // All of it is removed when it is too old.
    let short = Journal::new(dir.path().to_owned(), Duration::ZERO, u64::MAX);
    std::thread::sleep(Duration::from_millis(5));
    make_tidying_due(dir.path());
    add(&short, "last");
    assert_eq!(ids(&short), ["last"]);
    assert!(disk_bytes(dir.path()) < 100_000);
}

#[test]
fn a_log_of_any_length_is_not_read_by_a_change() {
    let dir = tempfile::tempdir().unwrap();
    // No line can be parsed, so readers find nothing.
    fs::write(dir.path().join("log.jsonl"), vec![b'x'; 8 << 20]).unwrap();
    let journal = Journal::new(dir.path().to_owned(), DAY, u64::MAX);
    add(&journal, "a");
    assert!(fs::metadata(dir.path().join("log.jsonl")).unwrap().len() < 1_000);
    assert_eq!(ids(&journal), ["a"]);
}

#[test]
fn neither_a_change_nor_the_newest_entry_lists_the_segments() {
    let dir = tempfile::tempdir().unwrap();
    begin(dir.path(), "a", 1, u64::MAX);
    // Listing the segments fails.
    fs::write(dir.path().join("sealed"), "").unwrap();
    begin(dir.path(), "b", 1, u64::MAX);
    let journal = Journal::new(dir.path().to_owned(), DAY, u64::MAX);
    let mut entries = journal.newest_first().unwrap();
    for id in ["b", "a"] {
        let logged = entries.next().unwrap().unwrap();
        assert_eq!(logged.entry.id, id);
        assert_eq!(journal.backup(&logged.entry).unwrap(), [1]);
    }
    assert!(entries.next().unwrap().is_err());
    assert!(entries.next().is_none());
}

#[test]
fn a_log_that_is_sealed_while_it_is_read_is_read_once() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(dir.path().to_owned(), DAY, u64::MAX);
    let mut expected = Vec::new();
    for id in ["a", "b", "c"] {
        add(&journal, id);
        expected.insert(0, id.to_owned());
        let entries = journal.newest_first().unwrap();
        let junk = "x".repeat(MAX_LOG_BYTES as usize);
        journal.store().unwrap().append(&log(), &junk, &Deadline::default()).unwrap();
        let later = format!("{id}x");
        add(&journal, &later);
        let read: Vec<_> = entries.map(|logged| logged.unwrap().entry.id).collect();
        assert_eq!(read, expected);
        expected.insert(0, later);
    }
    assert_eq!(journal.store().unwrap().segments().unwrap().len(), 3);
}

#[test]
fn a_file_that_is_not_the_journals_is_not_sealed() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("notes.txt"), "mine").unwrap();
    fs::write(dir.path().join("log.jsonl"), vec![b'x'; MAX_LOG_BYTES as usize]).unwrap();
    let journal = Journal::new(dir.path().to_owned(), DAY, u64::MAX);
    add(&journal, "a");
    assert_eq!(journal.store().unwrap().segments().unwrap().len(), 1);
    assert_eq!(fs::read(dir.path().join("notes.txt")).unwrap(), b"mine");
}

#[test]
fn the_journal_takes_no_more_on_disk_than_it_may() {
    let dir = tempfile::tempdir().unwrap();
    let max = 400 << 10;
    for number in 0..20 {
        begin(dir.path(), &format!("e{number}"), 60 << 10, max);
        assert!(disk_bytes(dir.path()) <= max, "{}", disk_bytes(dir.path()));
    }
    let journal = Journal::new(dir.path().to_owned(), DAY, max);
    add(&journal, "last");
    assert!(disk_bytes(dir.path()) <= max);
    let left = ids(&journal);
    assert!(left.contains(&"e19".to_owned()) && !left.contains(&"e0".to_owned()), "{left:?}");
}

#[test]
fn a_backup_that_could_never_fit_is_refused_and_displaces_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let ws = tempfile::tempdir().unwrap();
    fs::write(ws.path().join("f"), vec![1; 300 << 10]).unwrap();
    let journal = Journal::new(dir.path().join("j"), DAY, 100 << 10);
    add(&journal, "a");
    let workspace = pinfold_confine::Workspace::open([ws.path()], None).unwrap();
    let deadline = Deadline::default();
    let mut target = workspace.target(&"f".into(), &deadline).unwrap();
    let second = entry("b", now());
    let refused = journal.begin(
        vec![(&second, Displaces::Target(&mut target))],
        MustSurvive::Crash,
        &deadline,
    );
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("`max_journal_bytes` is 102400"), "{error}");
    assert_eq!(ids(&journal), ["a"]);
    assert!(!dir.path().join("j/b.before").exists());
}

#[test]
fn a_backup_that_a_killed_process_left_is_removed_unless_a_process_is_about_to_log_it() {
    let dir = tempfile::tempdir().unwrap();
    add(&Journal::new(dir.path().to_owned(), DAY, u64::MAX), "a");
    for name in ["a.before", "deadbeef00.before", ".pinfold-0123456789abcdef.tmp"] {
        fs::write(dir.path().join(name), "").unwrap();
    }
    let other = BackupStore::open(dir.path()).unwrap();
    let lock = other.lock_shared(&Deadline::default()).unwrap();
    make_tidying_due(dir.path());
    add(&Journal::new(dir.path().to_owned(), DAY, u64::MAX), "b");
    assert!(dir.path().join("deadbeef00.before").exists());
    drop(lock);
    add(&Journal::new(dir.path().to_owned(), DAY, u64::MAX), "c");
    let mut names: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["a.before", "log.jsonl", "pinfold-usage.jsonl"]);
}

#[test]
fn what_is_too_old_goes_while_the_journal_is_open_too() {
    let dir = tempfile::tempdir().unwrap();
    let deadline = Deadline::default();
    let journal = Journal::new(dir.path().to_owned(), Duration::from_secs(60), u64::MAX);
    add(&journal, "a");
    journal
        .begin(vec![(&entry("old", 1), Displaces::Nothing)], MustSurvive::Crash, &deadline)
        .unwrap();
    add(&journal, "b");
    assert_eq!(ids(&journal), ["a", "old", "b"]);
    let usage = dir.path().join("pinfold-usage.jsonl");
    let tidied = Usage::read(journal.store().unwrap()).unwrap().tidied.unwrap();
    let text = fs::read_to_string(&usage).unwrap();
    let earlier = (tidied - millis(TIDY_AFTER)).to_string();
    fs::write(&usage, text.replace(&tidied.to_string(), &earlier)).unwrap();
    add(&journal, "c");
    assert_eq!(ids(&journal), ["a", "b", "c"]);
}

#[test]
fn an_id_of_any_length_is_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(dir.path().to_owned(), Duration::MAX, u64::MAX);
    for id in ["", "../x", &"a".repeat(300), &"/".repeat(300)] {
        assert!(matches!(journal.backup(&entry(id, 1)), Err(ConfineError::NotFound)), "{id}");
    }
}

#[test]
fn undone_changes_do_not_stand_unless_they_were_redone() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(dir.path().to_owned(), Duration::MAX, u64::MAX);
    // `c` undid `a`, and `d` undid `c`.
    for (id, undoes) in [("a", None), ("b", None), ("c", Some("a")), ("d", Some("c"))] {
        let entry = Entry { undoes: undoes.map(str::to_owned), ..entry(id, now()) };
        let deadline = Deadline::default();
        journal.begin(vec![(&entry, Displaces::Nothing)], MustSurvive::Crash, &deadline).unwrap();
        if id == "c" {
            assert_eq!(ids_that_stand(&journal), ["b"]);
        }
    }
    assert_eq!(ids_that_stand(&journal), ["b", "a"]);
    let undone = journal.newest_first().unwrap().map(|logged| logged.unwrap().undone);
    assert_eq!(undone.collect::<Vec<_>>(), [false, true, false, false]);
}

fn ids_that_stand(journal: &Journal) -> Vec<String> {
    in_effect(journal.newest_first().unwrap()).map(|logged| logged.unwrap().entry.id).collect()
}
