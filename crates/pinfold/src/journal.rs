//! What was changed, and what was there before: enough to take any change back.
//!
//! A directory of the user's own, outside every workspace: `log.jsonl` with an entry for each change,
//! and beside it what each change displaced. Both are there before the change is made, and called off
//! if it fails; so a killed process can leave an entry without a change, which undoing notices, but
//! never a change that cannot be taken back.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use blake3::Hash;
use pinfold_confine::{
    BackupStore, Deadline, Error as ConfineError, Metadata, Name, Removal, Target,
};
use serde::{Deserialize, Serialize};

/// A change as the journal knows it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Entry {
    /// What it is called.
    pub id: String,
    /// When it was made, in milliseconds since 1970.
    pub time: u64,
    /// The session that made it.
    pub session: String,
    /// The tool that made it.
    pub tool: String,
    /// The file's real path.
    pub path: String,
    /// What was there before.
    pub before: State,
    /// What was there after.
    pub after: State,
    /// The change that it took back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undoes: Option<String>,
}

/// What is at a path.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum State {
    /// Nothing.
    Absent,
    /// A file.
    File {
        /// The hash of its content.
        hash: String,
        /// Its size in bytes.
        bytes: u64,
        /// Its permission bits, where they were known before the change was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    /// A symbolic link.
    Link {
        /// Where it points.
        target: String,
    },
}

impl State {
    /// A file with this content.
    pub(crate) fn file(hash: Hash, bytes: u64, mode: Option<u32>) -> Self {
        Self::File { hash: hash.to_hex().to_string(), bytes, mode }
    }

    /// Whether it could not be written down as it is.
    pub(crate) fn is_lossy(&self) -> bool {
        matches!(self, Self::Link { target } if target.contains(char::REPLACEMENT_CHARACTER))
    }

    /// A file as the file system describes it.
    pub(crate) fn of(meta: &Metadata, hash: Hash) -> Self {
        Self::file(hash, meta.len, Some(meta.mode))
    }
}

/// A line of the log.
#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum Line {
    Entry(Entry),
    Void { void: String },
}

/// What a change is about to displace.
pub(crate) enum Displaces<'c> {
    Nothing,
    Target(&'c mut Target),
    Removal(&'c Removal),
}

/// The journal of one user.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    backups: OnceLock<BackupStore>,
    keep_for: Duration,
    keep_bytes: u64,
    /// When it was last tidied, in milliseconds since 1970.
    tidied: AtomicU64,
}

impl Journal {
    /// The journal in a directory, which is made when the first change is.
    pub(crate) fn new(directory: PathBuf, keep_for: Duration, keep_bytes: u64) -> Self {
        let (backups, tidied) = Default::default();
        Self { directory, backups, keep_for, keep_bytes, tidied }
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn backups(&self) -> Result<&BackupStore, ConfineError> {
        if let Some(backups) = self.backups.get() {
            return Ok(backups);
        }
        let backups = BackupStore::open(&self.directory)?;
        Ok(self.backups.get_or_init(|| backups))
    }

    /// Every change that was made and not called off, oldest first.
    pub fn entries(&self) -> Result<Vec<Entry>, ConfineError> {
        Ok(live_entries(&self.backups()?.read_text(&log())?))
    }

    /// What a change displaced.
    pub fn backup(&self, entry: &Entry) -> Result<Vec<u8>, ConfineError> {
        self.backups()?.read(&backup_name(&entry.id))
    }

    /// Keeps what a change is about to displace, and notes the change.
    pub(crate) fn begin(
        &self,
        entry: &Entry,
        displaces: Displaces<'_>,
        deadline: &Deadline,
    ) -> Result<(), ConfineError> {
        let backups = self.backups()?;
        // When the journal is opened, and now and then: what is too old goes.
        let now = now();
        if now.saturating_sub(self.tidied.load(Ordering::Relaxed)) >= millis(TIDY_AFTER) {
            self.tidied.store(now, Ordering::Relaxed);
            self.tidy(backups, deadline)?;
        }
        let name = backup_name(&entry.id);
        let noted = match displaces {
            Displaces::Nothing => Ok(()),
            Displaces::Target(target) => backups.back_up(target, &name),
            Displaces::Removal(removal) => backups.back_up_removed(removal, &name),
        };
        let noted = noted.and_then(|()| {
            let line =
                serde_json::to_string(entry).map_err(|error| ConfineError::Os(error.into()))?;
            backups.append(&log(), &line, deadline)
        });
        noted.inspect_err(|_| backups.remove(&name))
    }

    /// The change was not made after all.
    pub(crate) fn call_off(&self, id: &str, deadline: &Deadline) {
        let void = serde_json::json!({ "void": id }).to_string();
        if let Ok(backups) = self.backups() {
            // If this fails the entry stays, and undoing it says that the file is not as it left it.
            let _ = backups.append(&log(), &void, deadline);
            backups.remove(&backup_name(id));
        }
    }

    /// Forgets what is older or more than is to be kept.
    fn tidy(&self, backups: &BackupStore, deadline: &Deadline) -> Result<(), ConfineError> {
        let mut gone = Vec::new();
        let oldest = now().saturating_sub(millis(self.keep_for));
        backups.rewrite(&log(), deadline, |text| {
            let entries = live_entries(text);
            let mut bytes = 0;
            let mut kept: Vec<&Entry> = Vec::new();
            for entry in entries.iter().rev() {
                // The newest is kept whatever it takes, and if it is too large by itself, it does not take the
                // others with it.
                let with: u64 = held(entry).saturating_add(bytes);
                let fits = with <= self.keep_bytes;
                if (fits || kept.is_empty()) && entry.time >= oldest {
                    bytes = if fits { with } else { bytes };
                    kept.push(entry);
                } else {
                    gone.push(entry.id.clone());
                }
            }
            if gone.is_empty() && text.len() < 2 * entries.len() * TYPICAL_LINE + TYPICAL_LINE {
                return None;
            }
            let lines = kept.iter().rev().filter_map(|entry| serde_json::to_string(entry).ok());
            Some(lines.map(|line| line + "\n").collect())
        })?;
        gone.iter().for_each(|id| backups.remove(&backup_name(id)));
        Ok(())
    }
}

/// The changes that stand: not taken back, or taken back and then made again. Newest first, without
/// those that took others back.
pub(crate) fn standing(entries: &[Entry]) -> Vec<&Entry> {
    let mut taken_back = HashSet::new();
    let mut standing = Vec::new();
    for entry in entries.iter().rev().filter(|entry| !entry.id.is_empty()) {
        if taken_back.contains(entry.id.as_str()) {
            continue;
        }
        match &entry.undoes {
            Some(id) => {
                taken_back.insert(id.as_str());
            }
            None => standing.push(entry),
        }
    }
    standing
}

/// After so long a change tidies the journal again: rarely enough not to be noticed, since the whole log is read,
/// often enough for a server that runs for weeks.
const TIDY_AFTER: Duration = Duration::from_secs(10 * 60);

/// About how long a line of the log is: a log much longer than its entries is worth rewriting.
const TYPICAL_LINE: usize = 2_000;

/// How many bytes are kept for an entry.
fn held(entry: &Entry) -> u64 {
    match entry.before {
        State::File { bytes, .. } => bytes,
        State::Absent | State::Link { .. } => 0,
    }
}

/// The entries of a log that were not called off. Lines that a killed process left torn are passed over.
fn live_entries(text: &str) -> Vec<Entry> {
    let (mut entries, mut void) = (Vec::new(), HashSet::new());
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(Line::Entry(entry)) => entries.push(entry),
            Ok(Line::Void { void: id }) => {
                void.insert(id);
            }
            Err(_) => {}
        }
    }
    entries.retain(|entry| !void.contains(&entry.id));
    entries
}

fn log() -> Name {
    Name::parse(b"log.jsonl").expect("it is a name")
}

fn backup_name(id: &str) -> Name {
    // An id that somebody else put into the log may be anything.
    let plain: String = id.chars().filter(char::is_ascii_alphanumeric).take(64).collect();
    Name::parse(format!("{plain}.before").as_bytes()).expect("letters and digits are a name")
}

/// Now, in milliseconds since 1970.
pub(crate) fn now() -> u64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A name for a change or a session: short enough to type, and nobody else's.
pub(crate) fn fresh_id() -> Result<String, ConfineError> {
    const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut number = pinfold_confine::random_number()?;
    let mut id = String::with_capacity(10);
    for _ in 0..10 {
        id.push(char::from(LETTERS[(number % 32) as usize]));
        number /= 32;
    }
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, time: u64, bytes: u64) -> Entry {
        Entry {
            id: id.into(),
            time,
            session: "s".into(),
            tool: "Write".into(),
            path: "/ws/a".into(),
            before: State::file(blake3::hash(b""), bytes, Some(0o644)),
            after: State::Absent,
            undoes: None,
        }
    }

    #[test]
    fn torn_and_called_off_lines_are_no_entries() {
        let line = |entry: &Entry| serde_json::to_string(entry).unwrap();
        let (a, b, c) = (entry("a", 1, 0), entry("b", 2, 0), entry("c", 3, 0));
        let text =
            format!("{}\n{{\"id\":\"x\n{}\n{{\"void\":\"b\"}}\n{}\n", line(&a), line(&b), line(&c));
        assert_eq!(live_entries(&text), [a, c]);
    }

    #[test]
    fn one_that_is_too_large_by_itself_takes_no_other_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let deadline = Deadline::default();
        let day = Duration::from_secs(24 * 60 * 60);
        let begin = |id: &str, bytes| {
            let journal = Journal::new(dir.path().to_owned(), day, 500);
            journal.begin(&entry(id, now(), bytes), Displaces::Nothing, &deadline).unwrap();
            journal.entries().unwrap().into_iter().map(|entry| entry.id).collect::<Vec<_>>()
        };
        begin("a", 200);
        begin("b", 200);
        begin("huge", u64::MAX);
        assert_eq!(begin("other", u64::MAX), ["a", "b", "huge", "other"]);
        // The newest is kept whatever it takes, and one that is no longer the newest is not.
        assert_eq!(begin("c", 0), ["a", "b", "other", "c"]);
    }

    #[test]
    fn what_is_too_old_goes_while_the_journal_is_open_too() {
        let dir = tempfile::tempdir().unwrap();
        let deadline = Deadline::default();
        let journal = Journal::new(dir.path().to_owned(), Duration::from_secs(60), u64::MAX);
        let begin = |id: &str, time| {
            journal.begin(&entry(id, time, 0), Displaces::Nothing, &deadline).unwrap();
            journal.entries().unwrap().len()
        };
        assert_eq!((begin("a", now()), begin("old", 1), begin("b", now())), (1, 2, 3));
        journal.tidied.store(now() - millis(TIDY_AFTER), Ordering::Relaxed);
        assert_eq!(begin("c", now()), 3);
    }

    #[test]
    fn an_id_of_any_length_is_no_panic() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::new(dir.path().to_owned(), Duration::MAX, u64::MAX);
        for id in ["", "../x", &"a".repeat(300), &"/".repeat(300)] {
            assert!(
                matches!(journal.backup(&entry(id, 1, 0)), Err(ConfineError::NotFound)),
                "{id}"
            );
        }
    }

    #[test]
    fn the_oldest_go_by_age_and_by_size() {
        let dir = tempfile::tempdir().unwrap();
        let deadline = Deadline::default();
        let writer = Journal::new(dir.path().to_owned(), Duration::MAX, u64::MAX);
        for (id, time, bytes) in [("old", 1, 1), ("large", now(), 900), ("new", now(), 100)] {
            writer.begin(&entry(id, time, bytes), Displaces::Nothing, &deadline).unwrap();
        }
        let ids = |journal: &Journal| -> Vec<String> {
            journal.entries().unwrap().into_iter().map(|entry| entry.id).collect()
        };
        assert_eq!(ids(&writer), ["old", "large", "new"]);
        let day = Duration::from_secs(24 * 60 * 60);
        let by_age = Journal::new(dir.path().to_owned(), day, u64::MAX);
        by_age.begin(&entry("x", now(), 0), Displaces::Nothing, &deadline).unwrap();
        assert_eq!(ids(&by_age), ["large", "new", "x"]);
        let by_size = Journal::new(dir.path().to_owned(), day, 500);
        by_size.begin(&entry("y", now(), 0), Displaces::Nothing, &deadline).unwrap();
        assert_eq!(ids(&by_size), ["new", "x", "y"]);
    }
}
