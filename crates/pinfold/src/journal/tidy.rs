//! Tidies the journal: enforces its maximum size and age, and removes leftovers of killed processes.

use std::collections::HashSet;
use std::time::Duration;

use pinfold_confine::{BackupStore, Deadline, Error as ConfineError, Name, StoreLock};
use serde::{Deserialize, Serialize};

use super::entry::{ID_CHARS, LETTERS};
use super::{Journal, LineKey, backup_name, json, log, millis, now};

/// The disk usage of the journal, from the last line of `pinfold-usage.jsonl`. Tidying appends a line with the
/// measured usage, and each change appends one with its own bytes added. If no line is from a tidying, tidying is
/// due.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Usage {
    pub(super) disk_bytes: u64,
    /// When the journal was tidied, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tidied: Option<u64>,
    /// The number of the newest segment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) newest_segment: Option<u64>,
}

impl Usage {
    pub(super) fn read(store: &BackupStore) -> Result<Self, ConfineError> {
        Ok(Self::parse(&store.last_line(&usage_file())?))
    }

    /// A partial line gives an unknown usage.
    fn parse(line: &str) -> Self {
        serde_json::from_str(line).unwrap_or_default()
    }
}

/// The interval after which a change tidies the journal again.
pub(super) const TIDY_AFTER: Duration = Duration::from_secs(10 * 60);

/// The size at which the current log is sealed. Tidying reads the whole log, so it should be small. A tiny log would
/// give too many segments. This is about 600 changes.
pub(super) const MAX_LOG_BYTES: u64 = 256 * 1024;

/// The disk space that the lines of one change are counted as: one block.
pub(super) const LINES_DISK_BYTES: u64 = 4096;

impl Journal {
    /// Reserves disk space for a change, and takes the shared lock. While it is held, no process removes backups
    /// without an entry. Tidies the journal first if that is due. Fails if the change does not fit after that.
    pub(super) fn make_room(
        &self,
        store: &BackupStore,
        needed: u64,
        deadline: &Deadline,
    ) -> Result<StoreLock, ConfineError> {
        let fits = |used: u64| used.saturating_add(needed) <= self.max_bytes;
        let recent = |tidied| now().abs_diff(tidied) < millis(TIDY_AFTER);
        let lock = store.lock_shared(deadline)?;
        let has_grown = store.len(&log())? >= MAX_LOG_BYTES;
        let mut is_full = false;
        let is_due = |usage: &Usage| {
            is_full = !fits(usage.disk_bytes);
            is_full || has_grown || !usage.tidied.is_some_and(recent)
        };
        if reserve(store, needed, deadline, is_due)? {
            return Ok(lock);
        }
        drop(lock);
        match self.tidy(store, needed, is_full.then_some(deadline), deadline)? {
            Some(used) if !fits(used) => {
                return Err(ConfineError::Os(std::io::Error::other(format!(
                    "the change needs {needed} bytes there, and `max_journal_bytes` is {}",
                    self.max_bytes
                ))));
            }
            _ => {}
        }
        let lock = store.lock_shared(deadline)?;
        reserve(store, needed, deadline, |_| false)?;
        Ok(lock)
    }

    /// Seals a log that has grown. Removes entries that are too old, then the oldest ones until `needed` bytes are
    /// free, and leftovers of killed processes. Returns the disk usage. Does nothing if another process has a lock,
    /// unless `wait` has a deadline for waiting.
    fn tidy(
        &self,
        store: &BackupStore,
        needed: u64,
        wait: Option<&Deadline>,
        deadline: &Deadline,
    ) -> Result<Option<u64>, ConfineError> {
        let Some(lock) = store.lock_exclusive(wait)? else { return Ok(None) };
        // If this process is killed, tidying is still due.
        store.remove(&usage_file());
        let (now, oldest) = (now(), now().saturating_sub(millis(self.keep_for)));
        if store.len(&log())? >= MAX_LOG_BYTES {
            store.seal(&log(), now, is_own_name)?;
        }
        let current = CurrentLog::parse(&store.read_text(&log())?);
        if lock.is_held() {
            let kept: HashSet<Name> =
                current.entries.iter().map(|(id, _)| backup_name(id)).chain([log()]).collect();
            let left = store.files()?.0.into_iter().filter(|file| !kept.contains(&file.name));
            // The directory is the user's choice, so it may have other files.
            let left = left.filter(|file| is_own_name(&file.name));
            left.for_each(|file| store.remove(&file.name));
        }
        let mut segments = store.segments()?;
        let (files, directories) = store.files()?;
        let sizes = files.iter().map(|file| file.disk_bytes);
        let sealed = segments.iter().map(|segment| segment.disk_bytes);
        // One block for the usage file.
        let mut used = LINES_DISK_BYTES + directories + sizes.chain(sealed).sum::<u64>();
        // A change that could never fit evicts no others.
        let is_full =
            |used: u64| needed <= self.max_bytes && used.saturating_add(needed) > self.max_bytes;
        segments.reverse();
        while let Some(segment) =
            segments.pop_if(|segment| segment.sealed_at < oldest || is_full(used))
        {
            store.drop_segment(&segment)?;
            used = used.saturating_sub(segment.disk_bytes);
        }
        let mut gone = current.void.clone();
        for (id, time) in &current.entries {
            if *time < oldest || is_full(used) {
                let name = backup_name(id);
                let backup = files.iter().find(|file| file.name == name);
                used = used.saturating_sub(backup.map_or(0, |file| file.disk_bytes));
                gone.insert(id.clone());
            }
        }
        if !gone.is_empty() {
            store.rewrite(&log(), deadline, |text| Some(without(text, &gone)))?;
            gone.iter().for_each(|id| store.remove(&backup_name(id)));
        }
        let newest_segment = Some(segments.first().map_or(0, |segment| segment.number));
        let usage = Usage { disk_bytes: used, tidied: Some(now), newest_segment };
        store.append(&usage_file(), &json(&usage)?, deadline)?;
        Ok(Some(used))
    }
}

/// Adds to the disk usage, unless tidying is due. Returns whether it did.
fn reserve(
    store: &BackupStore,
    needed: u64,
    deadline: &Deadline,
    is_due: impl FnOnce(&Usage) -> bool,
) -> Result<bool, ConfineError> {
    store.append_after(&usage_file(), deadline, |last| {
        let mut usage = Usage::parse(last);
        if is_due(&usage) {
            return None;
        }
        usage.disk_bytes = usage.disk_bytes.saturating_add(needed);
        json(&usage).ok()
    })
}

/// The entries of the current log.
struct CurrentLog {
    /// The entries that were not voided, as id and time, oldest first.
    entries: Vec<(String, u64)>,
    /// The ids of voided entries.
    void: HashSet<String>,
}

impl CurrentLog {
    fn parse(text: &str) -> Self {
        let mut entries = Vec::new();
        let mut called_off = HashSet::new();
        for line in text.lines() {
            match LineKey::parse(line) {
                Some(LineKey { id: Some(id), time, .. }) => entries.push((id, time)),
                Some(LineKey { void: Some(id), .. }) => _ = called_off.insert(id),
                _ => {}
            }
        }
        let mut void = HashSet::new();
        entries.retain(|(id, _)| {
            let stays = !called_off.contains(id);
            if !stays {
                void.insert(id.clone());
            }
            stays
        });
        Self { entries, void }
    }
}

/// A log without the lines of some entries, and without partial lines of killed processes.
fn without(text: &str, gone: &HashSet<String>) -> String {
    let stays = |line: &&str| {
        LineKey::parse(line).is_some_and(|key| key.about().is_some_and(|id| !gone.contains(id)))
    };
    text.lines().filter(stays).flat_map(|line| [line, "\n"]).collect()
}

/// Whether a file name is that of a backup or of a log that is being rewritten.
fn is_own_name(name: &Name) -> bool {
    let name = name.as_bytes();
    let is_id = |id: &[u8]| id.len() == ID_CHARS && id.iter().all(|it| LETTERS.contains(it));
    let is_temp = |temp: &[u8]| {
        temp.len() >= 16 && temp[..16].iter().all(u8::is_ascii_hexdigit) && temp.ends_with(b".tmp")
    };
    name.strip_suffix(b".before").is_some_and(is_id)
        || name.strip_prefix(b".pinfold-").is_some_and(is_temp)
}

pub(super) fn usage_file() -> Name {
    Name::parse(b"pinfold-usage.jsonl").expect("it is a name")
}
