//! The files that a session has read or written, each with a fingerprint.

use std::collections::HashMap;

use blake3::Hash;
use pinfold_confine::Metadata;
use pinfold_text::{ChangedLines, LineHashes, changed_lines, text_encoding};

use crate::limits::{MAX_LEDGER_FILES, MAX_LEDGER_LINES};

/// A file at the time when the session last read or wrote it.
#[derive(Clone, Debug)]
pub(crate) struct Fingerprint {
    pub(crate) hash: Hash,
    /// The file's metadata at that time. If it proves that the file did not change, no hash is needed.
    pub(crate) meta: Option<Metadata>,
    /// The hashes of its lines, if they are kept. They show which lines changed.
    pub(crate) lines: Option<LineHashes>,
}

impl Fingerprint {
    /// The fingerprint of a file with this content.
    pub(crate) fn of(content: &[u8], hash: Hash, meta: Option<Metadata>) -> Self {
        Self { hash, meta, lines: LineHashes::of(content) }
    }

    /// The lines that changed since the file had this fingerprint, if they are known.
    pub(crate) fn changed_lines(&self, now: &[u8], max_bytes: usize) -> Option<ChangedLines> {
        let changed = changed_lines(self.lines.as_ref()?, now, text_encoding(now)?, max_bytes)?;
        let shown = format!("changed since then:\n{}", changed.shown);
        Some(ChangedLines { shown, ..changed })
    }

    fn line_count(&self) -> usize {
        self.lines.as_ref().map_or(0, LineHashes::count)
    }
}

/// How a file compares with the session's last read or write of it.
#[derive(Clone, Debug)]
pub(crate) enum Freshness {
    /// It has the same content, or the settings do not require a read.
    Current,
    /// It has changed since it had this fingerprint.
    Changed(Fingerprint),
}

/// The fingerprints of the files that a session has read or written. A full ledger forgets the older half of the
/// files. With too many line hashes, it forgets those of the older half.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    fingerprints: HashMap<Vec<u8>, (u64, Fingerprint)>,
    clock: u64,
    /// The number of line hashes.
    lines: usize,
}

impl Ledger {
    /// `path` is the real path, so that every narrowed workspace finds the file.
    pub(crate) fn record_read(&mut self, path: Vec<u8>, fingerprint: Fingerprint) {
        self.forget(&path);
        if self.fingerprints.len() >= MAX_LEDGER_FILES {
            let middle = self.middle_time();
            self.fingerprints.retain(|_, (time, _)| *time > middle);
            self.count_lines();
        }
        self.clock += 1;
        self.lines += fingerprint.line_count();
        self.fingerprints.insert(path, (self.clock, fingerprint));
        if self.lines > MAX_LEDGER_LINES {
            let middle = self.middle_time();
            let old = self.fingerprints.values_mut().filter(|(time, _)| *time <= middle);
            old.for_each(|(_, fingerprint)| fingerprint.lines = None);
            self.count_lines();
        }
    }

    /// Whether a recorded file is proven to be unchanged. If so, it becomes the newest.
    pub(crate) fn is_read(&mut self, path: &[u8], now: &Metadata) -> bool {
        let Some((time, fingerprint)) = self.fingerprints.get_mut(path) else { return false };
        let is_same = fingerprint.meta.is_some_and(|then| then.proven_unchanged(now));
        if is_same {
            self.clock += 1;
            *time = self.clock;
        }
        is_same
    }

    pub(crate) fn forget(&mut self, path: &[u8]) {
        if let Some((_, forgotten)) = self.fingerprints.remove(path) {
            self.lines -= forgotten.line_count();
        }
    }

    /// Moves the fingerprints of `from`, and of everything in that directory, to `to`.
    pub(crate) fn record_move(&mut self, from: &[u8], to: &[u8]) {
        let moved = |path: &[u8]| {
            let below = path.strip_prefix(from)?;
            (below.is_empty() || below.starts_with(b"/")).then(|| [to, below].concat())
        };
        let paths: Vec<_> = self.fingerprints.keys().cloned().collect();
        for (new, old) in paths.into_iter().filter_map(|path| Some((moved(&path)?, path))) {
            if let Some(fingerprint) = self.fingerprints.remove(&old) {
                self.fingerprints.insert(new, fingerprint);
            }
        }
    }

    pub(crate) fn last_fingerprint(&self, path: &[u8]) -> Option<Fingerprint> {
        self.fingerprints.get(path).map(|(_, fingerprint)| fingerprint.clone())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fingerprints.is_empty()
    }

    /// The files that were read or written last, oldest first.
    pub(crate) fn newest(&self, max: usize) -> impl Iterator<Item = (&[u8], &Fingerprint)> {
        let mut files: Vec<_> = self.fingerprints.iter().collect();
        files.sort_unstable_by_key(|(_, (time, _))| *time);
        let older = files.len().saturating_sub(max);
        let newest = files.into_iter().skip(older);
        newest.map(|(path, (_, fingerprint))| (path.as_slice(), fingerprint))
    }

    /// The time before which half of the files with line hashes were read, or half of all files.
    fn middle_time(&self) -> u64 {
        let over = self.lines > MAX_LEDGER_LINES;
        let files = self.fingerprints.values().filter(|(_, it)| !over || it.lines.is_some());
        let mut times: Vec<u64> = files.map(|(time, _)| *time).collect();
        let middle = times.len() / 2;
        if times.is_empty() { 0 } else { *times.select_nth_unstable(middle).1 }
    }

    fn count_lines(&mut self) {
        self.lines = self.fingerprints.values().map(|(_, it)| it.line_count()).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_ledger_forgets_the_oldest() {
        let path = |number: usize| number.to_string().into_bytes();
        let mut ledger = Ledger::default();
        let fingerprint = Fingerprint { hash: blake3::hash(b""), meta: None, lines: None };
        let record = |number| ledger.record_read(path(number), fingerprint.clone());
        (0..=MAX_LEDGER_FILES).for_each(record);
        assert!(ledger.last_fingerprint(&path(0)).is_none());
        assert!(ledger.last_fingerprint(&path(MAX_LEDGER_FILES)).is_some());
        assert!(ledger.fingerprints.len() <= MAX_LEDGER_FILES);
    }

    #[test]
    fn a_ledger_with_too_many_lines_forgets_those_of_the_oldest() {
        let path = |number: usize| number.to_string().into_bytes();
        let mut ledger = Ledger::default();
        let content = b"\n".repeat(MAX_LEDGER_LINES / 8);
        let fingerprint = Fingerprint::of(&content, blake3::hash(&content), None);
        for number in 0..20 {
            ledger.record_read(path(number), fingerprint.clone());
            assert!(ledger.lines <= MAX_LEDGER_LINES);
        }
        let has_lines = |number| ledger.last_fingerprint(&path(number)).unwrap().lines.is_some();
        assert!(!has_lines(0) && has_lines(19));
    }
}
