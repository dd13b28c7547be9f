//! Logs whose last line was cut off, as a process leaves them that is killed while it writes: wherever the cut is, the
//! lines before it stand, and the next one is whole.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::path::PathBuf;

use pinfold::operations::{Delete, Read, Undo, Write};
use pinfold::{Durability, Error, JournalSetting, Session, Settings};
use serde_json::Value;
use tempfile::TempDir;

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(TempDir::new().unwrap());
        fs::create_dir(place.file("")).unwrap();
        place
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join("ws").join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    fn journal(&self) -> PathBuf {
        self.0.path().join("journal/log.jsonl")
    }

    fn audit(&self) -> PathBuf {
        self.0.path().join("audit.jsonl")
    }

    /// A session as the next process has it.
    fn session(&self) -> Session {
        let settings = Settings::default()
            .with_journal(Some(JournalSetting::Directory(self.0.path().join("journal"))))
            .with_audit(Some(self.audit()))
            .with_durability(Durability::None);
        Session::with_settings([self.file("")], settings).unwrap()
    }
}

/// The names of the files that were changed, oldest change first.
fn paths(session: &Session) -> Vec<String> {
    let name = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    let history = session.history().unwrap();
    let mut names: Vec<_> = history.map(|logged| name(&logged.unwrap().entry.path)).collect();
    names.reverse();
    names
}

/// Where the last line of a log begins.
fn last_line(log: &[u8]) -> usize {
    log[..log.len() - 1].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

#[test]
fn a_journal_that_was_cut_in_an_entry_goes_on() {
    let place = Place::new();
    fs::write(place.file("a"), "one\n").unwrap();
    fs::write(place.file("\u{fc}"), "old\n").unwrap();
    place.session().perform(&Write::new("a", "two\n")).unwrap();
    place.session().perform(&Write::new("\u{fc}", "new\n")).unwrap();
    let mut whole = fs::read(place.journal()).unwrap();
    // Without the line that confirms the change.
    whole.truncate(last_line(&whole));
    let last = last_line(&whole);
    assert!(last > 0);
    for cut in last..=whole.len() {
        // An entry is written before its change is made, so the change of the partial line was not made.
        fs::write(place.file("a"), "two\n").unwrap();
        fs::write(place.file("\u{fc}"), "old\n").unwrap();
        fs::write(place.journal(), &whole[..cut]).unwrap();
        let noted = cut + 1 >= whole.len();
        let before: &[&str] = if noted { &["a", "\u{fc}"] } else { &["a"] };
        assert_eq!(paths(&place.session()), before, "{cut}");
        place.session().perform(&Undo::default()).unwrap();
        assert_eq!(
            (place.read("a"), place.read("\u{fc}")),
            ("one\n".into(), "old\n".into()),
            "{cut}"
        );
        place.session().perform(&Write::new("\u{fc}", "newer\n")).unwrap();
        let after = [before, &["a", "\u{fc}"]].concat();
        assert_eq!(paths(&place.session()), after, "{cut}");
        place.session().perform(&Undo::default()).unwrap();
        assert_eq!(place.read("\u{fc}"), "old\n", "{cut}");
        let nothing = place.session().perform(&Undo::default()).map(drop);
        assert!(matches!(nothing, Err(Error::NothingToUndo { .. })), "{cut}: {nothing:?}");
    }
}

#[test]
fn a_journal_that_was_cut_where_a_change_is_called_off_goes_on() {
    let place = Place::new();
    fs::write(place.file("a"), "one\n").unwrap();
    fs::write(place.file("b"), "kept\n").unwrap();
    place.session().perform(&Write::new("a", "two\n")).unwrap();
    place.session().perform(&Delete::new("b")).unwrap();
    fs::write(place.file("b"), "kept\n").unwrap();
    let id = place.session().history().unwrap().next().unwrap().unwrap().entry.id;
    let entries = fs::read(place.journal()).unwrap();
    let void = format!("{{\"void\":\"{id}\"}}\n");
    for cut in 0..=void.len() {
        fs::write(place.file("a"), "two\n").unwrap();
        fs::write(place.journal(), [&entries[..], &void.as_bytes()[..cut]].concat()).unwrap();
        let before: &[&str] = if cut + 1 >= void.len() { &["a"] } else { &["a", "b"] };
        assert_eq!(paths(&place.session()), before, "{cut}");
        place.session().perform(&Undo::default()).unwrap();
        assert_eq!((place.read("a"), place.read("b")), ("one\n".into(), "kept\n".into()), "{cut}");
        place.session().perform(&Write::new("a", "three\n")).unwrap();
        assert_eq!(paths(&place.session()), [before, &["a", "a"]].concat(), "{cut}");
        place.session().perform(&Undo::default()).unwrap();
        assert_eq!(place.read("a"), "one\n", "{cut}");
    }
}

#[test]
fn an_audit_log_that_was_cut_goes_on() {
    let place = Place::new();
    for name in ["a", "\u{fc}", "c"] {
        fs::write(place.file(name), "one\n").unwrap();
    }
    for name in ["a", "\u{fc}"] {
        place.session().perform(&Read::new(name)).unwrap();
    }
    let whole = fs::read(place.audit()).unwrap();
    let last = last_line(&whole);
    assert!(last > 0);
    for cut in last..=whole.len() {
        fs::write(place.audit(), &whole[..cut]).unwrap();
        let session = place.session();
        for _ in 0..2 {
            session.perform(&Read::new("c")).unwrap();
        }
        let text = fs::read(place.audit()).unwrap();
        let lines: Vec<_> = text.split(|byte| *byte == b'\n').collect();
        let read: Vec<Option<String>> = lines
            .iter()
            .map(|line| serde_json::from_slice(line).ok())
            .map(|line: Option<Value>| Some(line?["paths"][0]["given"].as_str()?.to_owned()))
            .collect();
        let partial = match cut {
            _ if cut == last => &[][..],
            _ if cut + 1 >= whole.len() => &[Some("\u{fc}".to_owned())],
            _ => &[None],
        };
        let [a, c] = ["a", "c"].map(|name| Some(name.to_owned()));
        // The log ends with the last line ending.
        assert_eq!(read, [&[a][..], partial, &[c.clone(), c, None]].concat(), "{cut}");
    }
}
