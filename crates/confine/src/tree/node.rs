//! A cached directory and its entries.
//!
//! An entry's version changes whenever its content may have changed, and no two contents of a file share a version.
//! So data derived from the content of a version is valid as long as the version is current.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ignore_files::{IgnoreMatch, Rules};
use crate::{IgnoreFiles, Kind, Metadata, Result};

/// A cached directory.
#[derive(Debug)]
pub(crate) struct Node {
    /// The directory's own metadata, from before it was listed.
    pub(crate) meta: Metadata,
    names: Vec<u8>,
    /// Sorted by name.
    entries: Vec<Entry>,
    /// The ignore files above the directory. The cached matches of its entries depend on them.
    pub(crate) above: Arc<Rules>,
    /// The ignore files above the directory, and its own.
    pub(crate) rules: Arc<Rules>,
    /// Its own ignore files: their indexes in the entries, and their metadata from before they were read.
    pub(crate) ignore_files: Vec<(usize, Metadata)>,
    /// The epoch of the watch on it; 0 if it is not watched.
    epoch: AtomicU64,
    changed: AtomicBool,
    /// The names that changed since it was listed.
    changed_names: Mutex<Vec<Vec<u8>>>,
}

#[derive(Debug)]
struct Entry {
    start: u32,
    end: u32,
    kind: Kind,
    /// How the ignore files match it: an [`IgnoreMatch`] or [`UNMATCHED`].
    matched: AtomicU8,
    state: Mutex<EntryState>,
}

/// The ignore files have not been matched yet.
const UNMATCHED: u8 = u8::MAX;

#[derive(Clone, Debug)]
struct EntryState {
    version: u64,
    /// Its metadata from the last `stat`.
    meta: Option<Box<Metadata>>,
    /// Whether that `stat` was made while the directory was watched, and no event has come since.
    current: bool,
}

impl EntryState {
    fn new() -> Self {
        Self { version: fresh_version(), meta: None, current: false }
    }
}

fn fresh_version() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Entry {
    fn state(&self) -> MutexGuard<'_, EntryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The entries of a directory during its listing.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    names: Vec<u8>,
    entries: Vec<(usize, usize, Kind)>,
}

impl Listing {
    pub(crate) fn push(&mut self, name: &[u8], kind: Kind) {
        let start = self.names.len();
        self.names.extend_from_slice(name);
        self.entries.push((start, self.names.len(), kind));
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], Kind)> {
        self.entries.iter().map(|(start, end, kind)| (&self.names[*start..*end], *kind))
    }

    /// Sorts the entries by name.
    pub(crate) fn sort(&mut self) {
        let names = &self.names;
        self.entries
            .sort_unstable_by(|one, other| names[one.0..one.1].cmp(&names[other.0..other.1]));
    }
}

impl Node {
    /// A directory with these entries, which must be sorted.
    pub(crate) fn new(
        meta: Metadata,
        listing: Listing,
        above: Arc<Rules>,
        rules: Arc<Rules>,
        ignore_files: Vec<(usize, Metadata)>,
    ) -> Self {
        let entry = |(start, end, kind): (usize, usize, Kind)| Entry {
            start: u32::try_from(start).unwrap_or(u32::MAX),
            end: u32::try_from(end).unwrap_or(u32::MAX),
            kind,
            matched: AtomicU8::new(UNMATCHED),
            state: Mutex::new(EntryState::new()),
        };
        Self {
            meta,
            names: listing.names,
            entries: listing.entries.into_iter().map(entry).collect(),
            above,
            rules,
            ignore_files,
            epoch: AtomicU64::new(0),
            changed: AtomicBool::new(false),
            changed_names: Mutex::default(),
        }
    }

    /// The same directory below other ignore files.
    pub(crate) fn below(&self, above: &Arc<Rules>) -> Self {
        let entries = self.entries.iter().map(|entry| Entry {
            matched: AtomicU8::new(UNMATCHED),
            state: Mutex::new(entry.state().clone()),
            ..*entry
        });
        Self {
            meta: self.meta,
            names: self.names.clone(),
            entries: entries.collect(),
            rules: self.rules.moved(&self.above, above),
            above: above.clone(),
            ignore_files: self.ignore_files.clone(),
            epoch: AtomicU64::new(self.epoch.load(Ordering::Relaxed)),
            changed: AtomicBool::new(self.has_changed()),
            changed_names: Mutex::new(self.changed_names().clone()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn name(&self, number: usize) -> &[u8] {
        let entry = &self.entries[number];
        &self.names[entry.start as usize..entry.end as usize]
    }

    pub(crate) fn kind(&self, number: usize) -> Kind {
        self.entries[number].kind
    }

    fn find(&self, name: &[u8]) -> Option<usize> {
        let by_name =
            |entry: &Entry| self.names[entry.start as usize..entry.end as usize].cmp(name);
        self.entries.binary_search_by(by_name).ok()
    }

    /// How the obeyed ignore files match the entry at this path. The result for the usual ones is cached.
    pub(crate) fn matched(&self, number: usize, path: &[u8], obeyed: IgnoreFiles) -> IgnoreMatch {
        let entry = &self.entries[number];
        if !self.rules.is_standard(obeyed) {
            return self.rules.matched(path, entry.kind == Kind::Directory, obeyed);
        }
        match entry.matched.load(Ordering::Relaxed) {
            0 => IgnoreMatch::Ignored,
            1 => IgnoreMatch::Whitelisted,
            2 => IgnoreMatch::None,
            _ => {
                let is_directory = entry.kind == Kind::Directory;
                let matched = self.rules.matched(path, is_directory, IgnoreFiles::STANDARD);
                entry.matched.store(matched as u8, Ordering::Relaxed);
                matched
            }
        }
    }

    /// An entry's version and metadata. Calls `stat`, unless the cached metadata is current and the directory
    /// `is_watched`.
    pub(crate) fn meta_of(
        &self,
        number: usize,
        is_watched: bool,
        stat: impl FnOnce() -> Result<Metadata>,
    ) -> Result<(u64, Metadata)> {
        let before = self.entries[number].state().clone();
        // A change in a directory changes the directory's own metadata, and only a watch on the directory itself
        // reports that.
        let is_watched = is_watched && self.kind(number) != Kind::Directory;
        if let Some(meta) = before.meta.filter(|_| is_watched && before.current) {
            return Ok((before.version, *meta));
        }
        let now = stat()?;
        let mut state = self.entries[number].state();
        // If the version has changed, another call has recorded a change, and this metadata may be older.
        if state.version == before.version {
            let is_same = state.meta.as_ref().is_none_or(|meta| meta.proven_unchanged(&now));
            if !is_same {
                state.version = fresh_version();
            }
            state.meta = Some(Box::new(now));
            state.current = is_watched;
        }
        Ok((state.version, now))
    }

    /// Marks metadata as current that was read while the directory was watched.
    pub(crate) fn set_current(&self, number: usize, now: &Metadata) {
        let mut state = self.entries[number].state();
        if state.meta.as_ref().is_some_and(|meta| !meta.proven_unchanged(now)) {
            state.version = fresh_version();
        }
        state.meta = Some(Box::new(*now));
        state.current = true;
    }

    /// An entry's metadata, if it is marked as current.
    pub(crate) fn current_meta(&self, number: usize) -> Option<Metadata> {
        let state = self.entries[number].state();
        state.meta.as_deref().filter(|_| state.current).copied()
    }

    /// An entry's version. It is meaningful only if the directory is watched.
    pub(crate) fn version(&self, number: usize) -> u64 {
        self.entries[number].state().version
    }

    /// Records that the content or metadata of an entry changed. Returns its index, if there is an entry with that
    /// name.
    pub(crate) fn note_content(&self, name: &[u8]) -> Option<usize> {
        let number = self.find(name)?;
        self.note_content_of(number);
        Some(number)
    }

    pub(crate) fn note_content_of(&self, number: usize) {
        *self.entries[number].state() = EntryState::new();
    }

    /// Records that a name was created, removed or replaced. Without a name, anything may have changed.
    pub(crate) fn note_change(&self, name: Option<&[u8]>) {
        match name {
            Some(name) => self.changed_names().push(name.to_vec()),
            None => {
                let all = (0..self.len()).map(|number| self.name(number).to_vec());
                self.changed_names().extend(all);
            }
        }
        self.changed.store(true, Ordering::Release);
    }

    pub(crate) fn has_changed(&self) -> bool {
        self.changed.load(Ordering::Acquire)
    }

    pub(crate) fn changed_names(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.changed_names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether every change since it was listed has been recorded.
    pub(crate) fn is_watched(&self, epoch: u64) -> bool {
        epoch != 0 && self.epoch.load(Ordering::Acquire) == epoch && !self.has_changed()
    }

    /// Records that it has been watched since before it was listed or compared.
    pub(crate) fn set_watched(&self, epoch: u64) {
        // Entries that were read before the watch began have to be compared again.
        if self.epoch.swap(epoch, Ordering::AcqRel) != epoch {
            self.entries.iter().for_each(|entry| entry.state().current = false);
        }
    }

    /// Takes over the versions of unchanged entries from an older listing.
    pub(crate) fn take_over(&self, older: &Self) {
        let changed = older.changed_names();
        for number in 0..self.len() {
            let name = self.name(number);
            if changed.iter().any(|changed| changed == name) {
                continue;
            }
            if let Some(known) = older.find(name)
                && older.kind(known) == self.kind(number)
            {
                *self.entries[number].state() = older.entries[known].state().clone();
            }
        }
    }
}
