//! The journal: a log of the changes and the backups of changed files, so that any change can be undone.
//!
//! A directory of the user's own, outside every workspace: `log.jsonl` with the newest entries, the backup of
//! each (`ID.before`), `sealed` with older parts of both, and `pinfold-usage.jsonl` with the disk usage. A
//! backup and its entry are there before the change is made; a line `made` follows the change, or a line `void`
//! if it failed. So a killed process can leave an entry whose change may not have been made, but never a change
//! that cannot be undone.
//!
//! Neither a change nor the newest entry costs more with a longer history. A change only appends, unless tidying
//! is due. Logs are read from their end, and segments are listed only after the current log has been read.

mod entry;
mod newest_first;
mod pending;
mod tidy;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pinfold_confine::{
    BackupStore, Deadline, Error as ConfineError, File, Name, Removal, StoreLock, Target,
    TreeRemoval,
};
use serde::{Deserialize, Serialize};

use crate::{JournalSetting, Settings};
use tidy::{LINES_DISK_BYTES, Usage};

pub(crate) use entry::fresh_id;
pub use entry::{Entry, LoggedEntry, State};
pub use newest_first::NewestFirst;
pub(crate) use newest_first::in_effect;
pub(crate) use pending::PendingEntries;

/// The file that a change displaces.
pub(crate) enum Displaces<'c> {
    Nothing,
    Target(&'c mut Target),
    Removal(&'c Removal),
    /// An entry of a directory that is removed, by its number.
    InTree(&'c TreeRemoval, usize),
}

/// What the appended lines of the log have to survive.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MustSurvive {
    /// The end of the process.
    Crash,
    /// A loss of power too: they are on the disk before the next step.
    PowerLoss,
}

/// The journal of one user.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    store: OnceLock<BackupStore>,
    keep_for: Duration,
    max_bytes: u64,
}

impl Journal {
    /// The journal at the path in the settings, if there is one. The first change creates its directory.
    pub fn of(settings: &Settings) -> Option<Self> {
        let directory = settings.journal.as_ref().and_then(JournalSetting::directory)?;
        let keep_for = Duration::from_secs(settings.journal_days.saturating_mul(24 * 60 * 60));
        Some(Self::new(directory, keep_for, settings.max_journal_bytes))
    }

    fn new(directory: PathBuf, keep_for: Duration, max_bytes: u64) -> Self {
        Self { directory, store: OnceLock::new(), keep_for, max_bytes }
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn store(&self) -> Result<&BackupStore, ConfineError> {
        if let Some(store) = self.store.get() {
            return Ok(store);
        }
        let store = BackupStore::open(&self.directory)?;
        Ok(self.store.get_or_init(|| store))
    }

    /// The changes that were not voided, newest first. Reads only as much of the log as the iterator needs.
    pub fn newest_first(&self) -> Result<NewestFirst<'_>, ConfineError> {
        let store = self.store()?;
        // Both under one lock, so that no segment is sealed in between.
        let _lock = store.lock_shared(&Deadline::default())?;
        let newest_segment = Usage::read(store)?.newest_segment;
        Ok(NewestFirst {
            store,
            lines: store.lines_from_end(&log(), None)?,
            newest_segment: newest_segment.unwrap_or(u64::MAX),
            segments: if newest_segment.is_some() { None } else { Some(store.segments()?) },
            made: HashSet::new(),
            void: HashSet::new(),
            undone: HashSet::new(),
            was_made: Box::new(|_| true),
        })
    }

    /// The content of the file before the change.
    pub fn backup(&self, entry: &Entry) -> Result<Vec<u8>, ConfineError> {
        self.store()?.read_backup(&backup_name(&entry.id))
    }

    /// The file before the change, for its owner and extended attributes.
    pub(crate) fn open_backup(&self, entry: &Entry) -> Result<File, ConfineError> {
        self.store()?.open_backup(&backup_name(&entry.id))
    }

    /// Backs up the files that changes displace, and adds entries for all of the changes, or for none. While the lock
    /// is held, no process takes them for changes of a killed process.
    pub(crate) fn begin(
        &self,
        changes: Vec<(&Entry, Displaces<'_>)>,
        must_survive: MustSurvive,
        deadline: &Deadline,
    ) -> Result<StoreLock, ConfineError> {
        let store = self.store()?;
        let mut needed = 0_u64;
        for (_, displaces) in &changes {
            let backup_bytes = match displaces {
                Displaces::Nothing => 0,
                Displaces::Target(target) => store.backup_bytes(target)?,
                Displaces::Removal(removal) => store.removed_backup_bytes(removal)?,
                Displaces::InTree(tree, entry) => store.tree_backup_bytes(tree, *entry)?,
            };
            needed = needed.saturating_add(backup_bytes).saturating_add(LINES_DISK_BYTES);
        }
        let lock = self.make_room(store, needed, deadline)?;
        let mut lines = Vec::new();
        let mut kept = Vec::new();
        let keep_all = || -> Result<(), ConfineError> {
            for (entry, displaces) in changes {
                let name = backup_name(&entry.id);
                kept.push(name.clone());
                match displaces {
                    Displaces::Nothing => {}
                    Displaces::Target(target) => store.back_up(target, &name)?,
                    Displaces::Removal(removal) => store.back_up_removed(removal, &name)?,
                    Displaces::InTree(tree, entry) => {
                        store.back_up_in_tree(tree, entry, &name)?;
                    }
                }
                lines.push(json(entry)?);
            }
            Ok(())
        };
        let logged = keep_all().and_then(|()| store.append(&log(), &lines.join("\n"), deadline));
        logged.inspect_err(|_| kept.iter().for_each(|name| store.remove(name)))?;
        if must_survive == MustSurvive::PowerLoss {
            store.flush(&log(), &kept)?;
        }
        Ok(lock)
    }

    /// The exclusive lock, if there is a log and no process is making changes. While it is held, an entry without a
    /// confirmation is that of a killed process.
    pub(crate) fn lock_if_idle(&self) -> Option<StoreLock> {
        pinfold_confine::device_and_inode(&self.directory.join("log.jsonl"))?;
        self.store().ok()?.lock_exclusive(None).ok()?
    }

    /// Appends lines which say that changes were made.
    pub(crate) fn confirm(&self, ids: &[String], must_survive: MustSurvive, deadline: &Deadline) {
        if let Ok(store) = self.store() {
            // Without these lines, an entry counts only if the file shows its change.
            let _ = store.append(&log(), &marks("made", ids), deadline);
            if must_survive == MustSurvive::PowerLoss {
                let _ = store.flush(&log(), &[]);
            }
        }
    }

    /// Appends lines which say that changes were not made, and removes their backups.
    pub(crate) fn void(&self, ids: &[String], deadline: &Deadline) {
        if let Ok(store) = self.store() {
            // Without these lines, the entries stay unconfirmed.
            let _ = store.append(&log(), &marks("void", ids), deadline);
            ids.iter().for_each(|id| store.remove(&backup_name(id)));
        }
    }
}

/// The key of a line of the log, with the id of the entry that it adds, confirms (`made`) or voids (`void`).
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct LineKey {
    id: Option<String>,
    time: u64,
    made: Option<String>,
    void: Option<String>,
}

impl LineKey {
    /// Returns `None` for a partial line of a killed process.
    fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }

    fn about(&self) -> Option<&str> {
        self.id.as_deref().or(self.made.as_deref()).or(self.void.as_deref())
    }
}

/// A line for each entry, with `made` or `void`.
fn marks(what: &str, ids: &[String]) -> String {
    let lines: Vec<_> = ids.iter().map(|id| serde_json::json!({ what: id }).to_string()).collect();
    lines.join("\n")
}

fn log() -> Name {
    Name::parse(b"log.jsonl").expect("it is a name")
}

fn json(line: &impl Serialize) -> Result<String, ConfineError> {
    serde_json::to_string(line).map_err(|error| ConfineError::Os(error.into()))
}

fn backup_name(id: &str) -> Name {
    // Another program may have written to the log, so an id may be any text.
    let plain: String = id.chars().filter(char::is_ascii_alphanumeric).take(64).collect();
    Name::parse(format!("{plain}.before").as_bytes()).expect("letters and digits are a name")
}

/// The current time in milliseconds since 1970.
pub(crate) fn now() -> u64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
