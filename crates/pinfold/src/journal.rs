//! The journal: what each change displaced, and a log of the changes, so that any of them can be undone.
//!
//! A directory of the user's own, outside every workspace: `log.jsonl` with the newest entries, the backup of
//! each (`ID.before`), `sealed` with older parts of both, and `pinfold-usage.jsonl`, which says what all of it
//! takes on disk. A backup and its entry are there before the change is made; a line `made` follows the change,
//! or a line `void` if it failed. So a killed process can leave an entry whose change may not have been made,
//! but never a change that cannot be undone.
//!
//! Neither a change nor the newest entry costs more with a longer history. A change only appends, unless tidying
//! is due. Logs are read from their end, and segments are listed only after the current log has been read.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use blake3::Hash;
use pinfold_confine::{
    BackupStore, Deadline, Error as ConfineError, LinesFromEnd, Metadata, Name, Removal, Segment,
    StoreLock, Target,
};
use serde::{Deserialize, Serialize};

/// A change in the journal.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Entry {
    /// Its name.
    pub id: String,
    /// When it was made, in milliseconds since 1970.
    pub time: u64,
    /// The session that made it.
    pub session: String,
    /// The tool that made it.
    pub tool: String,
    /// The file's real path.
    pub path: String,
    /// The state before the change.
    pub before: State,
    /// The state after the change.
    pub after: State,
    /// The real path that the file was moved to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
    /// How many directories it created above the file, or above the path that the file was moved to.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub made_parents: usize,
    /// The change that it undid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undoes: Option<String>,
    /// Older changes of the same file that it undid too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_undoes: Vec<String>,
    /// The id of the first change of the set that it is part of. They were made together, and are undone together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The label of a checkpoint. Such an entry is no change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedEntry {
    /// The entry.
    pub entry: Entry,
    /// Whether the log says that the change was made. If not, the process was killed just before or after it.
    pub confirmed: bool,
}

/// The state of a path.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum State {
    /// Nothing is there.
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
    /// A directory, whatever is in it.
    Directory {
        /// Its permission bits, where they were known before the change was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    /// A symbolic link.
    Link {
        /// Its target.
        target: String,
    },
}

impl State {
    /// A file with this content.
    pub(crate) fn file(hash: Hash, bytes: u64, mode: Option<u32>) -> Self {
        Self::File { hash: hash.to_hex().to_string(), bytes, mode }
    }

    /// Whether the log cannot hold it exactly, since it is not UTF-8.
    pub(crate) fn is_lossy(&self) -> bool {
        matches!(self, Self::Link { target } if target.contains(char::REPLACEMENT_CHARACTER))
    }

    /// A file with this metadata and content.
    pub(crate) fn of(meta: &Metadata, hash: Hash) -> Self {
        Self::file(hash, meta.len, Some(meta.mode))
    }
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
    store: OnceLock<BackupStore>,
    keep_for: Duration,
    max_bytes: u64,
}

/// What the journal takes on disk. A line of `pinfold-usage.jsonl` has what tidying found, or what a change has
/// added since; the sum of the lines is the usage. Without the line of a tidying, tidying is due.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Usage {
    disk_bytes: u64,
    /// When the journal was tidied, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    tidied: Option<u64>,
    /// The number of the newest segment.
    #[serde(skip_serializing_if = "Option::is_none")]
    newest_segment: Option<u64>,
}

impl Usage {
    fn read(store: &BackupStore) -> Result<Self, ConfineError> {
        let text = store.read_text(&usage_file())?;
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Self>(line).ok());
        Ok(lines.fold(Self::default(), |sum, line| Self {
            disk_bytes: sum.disk_bytes.saturating_add(line.disk_bytes),
            tidied: sum.tidied.or(line.tidied),
            newest_segment: sum.newest_segment.or(line.newest_segment),
        }))
    }
}

/// After so long a change tidies the journal again.
const TIDY_AFTER: Duration = Duration::from_secs(10 * 60);

/// A current log of this size is sealed. Tidying reads it, so it is small; there are as many segments as make up
/// the history, so it is not tiny. About 600 changes.
const MAX_LOG_BYTES: u64 = 256 * 1024;

/// The disk space that the lines of one change are counted with: a block.
const LINES_DISK_BYTES: u64 = 4096;

impl Journal {
    /// The journal in a directory, which is created by the first change.
    pub(crate) fn new(directory: PathBuf, keep_for: Duration, max_bytes: u64) -> Self {
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

    /// The changes that were not called off, newest first. Reads no more of the log than is asked for.
    pub fn newest_first(&self) -> Result<NewestFirst<'_>, ConfineError> {
        let store = self.store()?;
        // Together, so that no segment is sealed in between.
        let _lock = store.lock_shared(&Deadline::default())?;
        let newest_segment = Usage::read(store)?.newest_segment;
        Ok(NewestFirst {
            store,
            lines: store.lines_from_end(&log(), None)?,
            newest_segment: newest_segment.unwrap_or(u64::MAX),
            segments: if newest_segment.is_some() { None } else { Some(store.segments()?) },
            made: HashSet::new(),
            void: HashSet::new(),
        })
    }

    /// The content that a change displaced.
    pub fn backup(&self, entry: &Entry) -> Result<Vec<u8>, ConfineError> {
        self.store()?.read_backup(&backup_name(&entry.id))
    }

    /// Keeps what changes are about to displace, and adds them to the log, all or none. While the lock is held,
    /// nobody takes the changes for those of a killed process.
    pub(crate) fn begin(
        &self,
        changes: Vec<(&Entry, Displaces<'_>)>,
        deadline: &Deadline,
    ) -> Result<StoreLock, ConfineError> {
        let store = self.store()?;
        let mut needed = 0_u64;
        for (_, displaces) in &changes {
            let backup_bytes = match displaces {
                Displaces::Nothing => 0,
                Displaces::Target(target) => store.backup_bytes(target)?,
                Displaces::Removal(removal) => store.removed_backup_bytes(removal)?,
            };
            needed = needed.saturating_add(backup_bytes).saturating_add(LINES_DISK_BYTES);
        }
        self.make_room(store, needed, deadline)?;
        // Until the lines are there, a backup without one is nobody's leftover.
        let lock = store.lock_shared(deadline)?;
        let added = Usage { disk_bytes: needed, ..Usage::default() };
        store.append(&usage_file(), &json(&added)?, deadline)?;
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
                }
                lines.push(json(entry)?);
            }
            Ok(())
        };
        let logged = keep_all().and_then(|()| store.append(&log(), &lines.join("\n"), deadline));
        logged.inspect_err(|_| kept.iter().for_each(|name| store.remove(name)))?;
        Ok(lock)
    }

    /// Whether the log is there, and nobody is making changes: then an entry that is not confirmed was left by a
    /// killed process, as long as the lock is held.
    pub(crate) fn lock_if_idle(&self) -> Option<StoreLock> {
        pinfold_confine::device_and_inode(&self.directory.join("log.jsonl"))?;
        self.store().ok()?.lock_exclusive(None).ok()?
    }

    /// Adds to the log that changes were made.
    pub(crate) fn made(&self, ids: &[String], deadline: &Deadline) {
        if let Ok(store) = self.store() {
            // Without the lines the entries count only where the files show the changes.
            let _ = store.append(&log(), &marks("made", ids), deadline);
        }
    }

    /// Adds to the log that changes were not made, and removes their backups.
    pub(crate) fn call_off(&self, ids: &[String], deadline: &Deadline) {
        if let Ok(store) = self.store() {
            // Without the lines the entries stay, and they are not confirmed.
            let _ = store.append(&log(), &marks("void", ids), deadline);
            ids.iter().for_each(|id| store.remove(&backup_name(id)));
        }
    }

    /// Tidies the journal if that is due, and fails if a change does not fit into it even so.
    fn make_room(
        &self,
        store: &BackupStore,
        needed: u64,
        deadline: &Deadline,
    ) -> Result<(), ConfineError> {
        let fits = |used: u64| used.saturating_add(needed) <= self.max_bytes;
        let usage = Usage::read(store)?;
        let full = !fits(usage.disk_bytes);
        let recent = |tidied| now().abs_diff(tidied) < millis(TIDY_AFTER);
        if !full && usage.tidied.is_some_and(recent) && store.len(&log())? < MAX_LOG_BYTES {
            return Ok(());
        }
        match self.tidy(store, needed, full.then_some(deadline), deadline)? {
            Some(used) if !fits(used) => Err(ConfineError::Os(std::io::Error::other(format!(
                "the change needs {needed} bytes there, and `max_journal_bytes` is {}",
                self.max_bytes
            )))),
            _ => Ok(()),
        }
    }

    /// Seals a log that has grown, removes what is too old or does not leave `needed` bytes, and what killed
    /// processes have left. Returns the bytes on disk. Does nothing while somebody else is at it, unless there is
    /// a time to `wait` for them.
    fn tidy(
        &self,
        store: &BackupStore,
        needed: u64,
        wait: Option<&Deadline>,
        deadline: &Deadline,
    ) -> Result<Option<u64>, ConfineError> {
        let Some(lock) = store.lock_exclusive(wait)? else { return Ok(None) };
        // If this process is killed, tidying stays due.
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
            // The user may have named a directory that holds other files.
            let left = left.filter(|file| is_own_name(&file.name));
            left.for_each(|file| store.remove(&file.name));
        }
        let mut segments = store.segments()?;
        let (files, directories) = store.files()?;
        let sizes = files.iter().map(|file| file.disk_bytes);
        let sealed = segments.iter().map(|segment| segment.disk_bytes);
        // One block for the usage file.
        let mut used = LINES_DISK_BYTES + directories + sizes.chain(sealed).sum::<u64>();
        // A change that could never fit displaces no others.
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

/// What the current log says, as far as tidying has to know.
struct CurrentLog {
    /// The entries that were not called off: id and time, oldest first.
    entries: Vec<(String, u64)>,
    /// Entries that were called off.
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

/// A log without the lines about some entries, and without what killed processes left of lines.
fn without(text: &str, gone: &HashSet<String>) -> String {
    let stays = |line: &&str| {
        LineKey::parse(line).is_some_and(|key| key.about().is_some_and(|id| !gone.contains(id)))
    };
    text.lines().filter(stays).flat_map(|line| [line, "\n"]).collect()
}

/// Which entry a line of the log is about, and what it says of it.
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
    /// None for what a killed process left of a line.
    fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }

    fn about(&self) -> Option<&str> {
        self.id.as_deref().or(self.made.as_deref()).or(self.void.as_deref())
    }
}

/// A line for each entry that says what became of its change.
fn marks(what: &str, ids: &[String]) -> String {
    let lines: Vec<_> = ids.iter().map(|id| serde_json::json!({ what: id }).to_string()).collect();
    lines.join("\n")
}

/// The entries of a journal, newest first.
#[derive(Debug)]
pub struct NewestFirst<'j> {
    store: &'j BackupStore,
    lines: LinesFromEnd,
    /// The newest segment when the current log was opened. Newer ones repeat what that log says.
    newest_segment: u64,
    /// Those that have not been read, oldest first. `None` until the current log has been read.
    segments: Option<Vec<Segment>>,
    made: HashSet<String>,
    void: HashSet<String>,
}

impl NewestFirst<'_> {
    /// The log of the newest segment that has not been read.
    fn next_log(&mut self) -> Result<Option<LinesFromEnd>, ConfineError> {
        let mut segments = match self.segments.replace(Vec::new()) {
            Some(segments) => segments,
            None => {
                let mut segments = self.store.segments()?;
                segments.retain(|segment| segment.number <= self.newest_segment);
                segments
            }
        };
        let Some(segment) = segments.pop() else { return Ok(None) };
        self.segments = Some(segments);
        self.store.lines_from_end(&log(), Some(&segment)).map(Some)
    }
}

impl Iterator for NewestFirst<'_> {
    type Item = Result<LoggedEntry, ConfineError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = match self.lines.next() {
                Some(Ok(line)) => line,
                Some(Err(error)) => return Some(Err(error)),
                None => match self.next_log().transpose()? {
                    Ok(lines) => {
                        self.lines = lines;
                        continue;
                    }
                    Err(error) => return Some(Err(error)),
                },
            };
            // What becomes of a change is said after its entry, so it is read before it.
            if let Ok(entry) = serde_json::from_str::<Entry>(&line) {
                let confirmed = self.made.remove(&entry.id);
                if !self.void.remove(&entry.id) {
                    return Some(Ok(LoggedEntry { entry, confirmed }));
                }
            } else if let Some(key) = LineKey::parse(&line) {
                self.made.extend(key.made);
                self.void.extend(key.void);
            }
        }
    }
}

/// Of entries, newest first, those whose change stands: not undone, or undone and then redone. Leaves out those
/// that undid others.
pub(crate) fn standing<E>(
    entries: impl Iterator<Item = Result<LoggedEntry, E>>,
) -> impl Iterator<Item = Result<LoggedEntry, E>> {
    let mut undone = HashSet::new();
    entries.filter(move |logged| {
        let Ok(LoggedEntry { entry, .. }) = logged else { return true };
        if entry.id.is_empty() || undone.remove(&entry.id) || entry.checkpoint.is_some() {
            return false;
        }
        undone.extend(entry.undoes.iter().chain(&entry.also_undoes).cloned());
        entry.undoes.is_none()
    })
}

fn log() -> Name {
    Name::parse(b"log.jsonl").expect("it is a name")
}

/// Whether a name is that of a backup, or of a log that is being rewritten.
fn is_own_name(name: &Name) -> bool {
    let name = name.as_bytes();
    let is_id = |id: &[u8]| id.len() == ID_CHARS && id.iter().all(|it| LETTERS.contains(it));
    let is_temp = |temp: &[u8]| {
        temp.len() >= 16 && temp[..16].iter().all(u8::is_ascii_hexdigit) && temp.ends_with(b".tmp")
    };
    name.strip_suffix(b".before").is_some_and(is_id)
        || name.strip_prefix(b".pinfold-").is_some_and(is_temp)
}

fn usage_file() -> Name {
    Name::parse(b"pinfold-usage.jsonl").expect("it is a name")
}

fn json(line: &impl Serialize) -> Result<String, ConfineError> {
    serde_json::to_string(line).map_err(|error| ConfineError::Os(error.into()))
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

/// The letters of an id, and how many it has.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const ID_CHARS: usize = 10;

/// A name for a change or a session: short enough to type, and nobody else's.
pub(crate) fn fresh_id() -> Result<String, ConfineError> {
    let mut number = pinfold_confine::random_number()?;
    let mut id = String::with_capacity(ID_CHARS);
    for _ in 0..ID_CHARS {
        id.push(char::from(LETTERS[(number % 32) as usize]));
        number /= 32;
    }
    Ok(id)
}

#[cfg(test)]
mod tests;
