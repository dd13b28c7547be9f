//! What a session has read or written: a fingerprint of each file.

use std::collections::HashMap;

use blake3::Hash;
use pinfold_confine::Metadata;

use crate::limits::MAX_LEDGER_FILES;

/// A file as the session last read or wrote it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fingerprint {
    pub(crate) hash: Hash,
    /// The file's metadata then: if it proves that the file did not change, no hash is needed.
    pub(crate) meta: Option<Metadata>,
}

/// How a file compares with what the session last read or wrote of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Freshness {
    /// It has the same content, or need not have been read.
    Current,
    /// It has changed since.
    Changed,
}

/// The fingerprints of the files that a session has read or written. When it is full, the oldest half
/// is forgotten.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    fingerprints: HashMap<Vec<u8>, (u64, Fingerprint)>,
    clock: u64,
}

impl Ledger {
    /// `path` is the real path, so that a file is known in every narrowed workspace.
    pub(crate) fn record_read(&mut self, path: Vec<u8>, fingerprint: Fingerprint) {
        if self.fingerprints.len() >= MAX_LEDGER_FILES && !self.fingerprints.contains_key(&path) {
            let mut times: Vec<u64> = self.fingerprints.values().map(|(time, _)| *time).collect();
            let (_, middle, _) = times.select_nth_unstable(MAX_LEDGER_FILES / 2);
            let middle = *middle;
            self.fingerprints.retain(|_, (time, _)| *time > middle);
        }
        self.clock += 1;
        self.fingerprints.insert(path, (self.clock, fingerprint));
    }

    pub(crate) fn forget(&mut self, path: &[u8]) {
        self.fingerprints.remove(path);
    }

    /// What was read at `from`, or in that directory, is at `to` now.
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
        self.fingerprints.get(path).map(|(_, fingerprint)| *fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_ledger_forgets_the_oldest() {
        let path = |number: usize| number.to_string().into_bytes();
        let mut ledger = Ledger::default();
        let fingerprint = Fingerprint { hash: blake3::hash(b""), meta: None };
        (0..=MAX_LEDGER_FILES).for_each(|number| ledger.record_read(path(number), fingerprint));
        assert!(ledger.last_fingerprint(&path(0)).is_none());
        assert!(ledger.last_fingerprint(&path(MAX_LEDGER_FILES)).is_some());
        assert!(ledger.fingerprints.len() <= MAX_LEDGER_FILES);
    }
}
