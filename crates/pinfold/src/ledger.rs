//! What a session has seen: each file's content, by hash.

use std::collections::HashMap;

use blake3::Hash;
use pinfold_confine::Metadata;

use crate::limits::MAX_LEDGER_FILES;

/// A file as the session last saw or left it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fingerprint {
    pub(crate) hash: Hash,
    /// What the file system said then: if it still says so, the content need not be looked at.
    pub(crate) meta: Option<Metadata>,
}

/// The files that a session has seen. When it is full, those seen longest ago are forgotten.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    sights: HashMap<Vec<u8>, (u64, Fingerprint)>,
    clock: u64,
}

impl Ledger {
    /// `path` is the real one, so that a file is known however the workspace is cut.
    pub(crate) fn saw(&mut self, path: Vec<u8>, fingerprint: Fingerprint) {
        if self.sights.len() >= MAX_LEDGER_FILES && !self.sights.contains_key(&path) {
            let mut times: Vec<u64> = self.sights.values().map(|(time, _)| *time).collect();
            let (_, middle, _) = times.select_nth_unstable(MAX_LEDGER_FILES / 2);
            let middle = *middle;
            self.sights.retain(|_, (time, _)| *time > middle);
        }
        self.clock += 1;
        self.sights.insert(path, (self.clock, fingerprint));
    }

    pub(crate) fn forget(&mut self, path: &[u8]) {
        self.sights.remove(path);
    }

    pub(crate) fn last_fingerprint(&self, path: &[u8]) -> Option<Fingerprint> {
        self.sights.get(path).map(|(_, fingerprint)| *fingerprint)
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
        (0..=MAX_LEDGER_FILES).for_each(|number| ledger.saw(path(number), fingerprint));
        assert!(ledger.last_fingerprint(&path(0)).is_none());
        assert!(ledger.last_fingerprint(&path(MAX_LEDGER_FILES)).is_some());
        assert!(ledger.sights.len() <= MAX_LEDGER_FILES);
    }
}
