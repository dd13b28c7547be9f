//! What a session has seen: each file's content, by hash.

use std::collections::HashMap;

use blake3::Hash;
use pinfold_confine::{Meta, Place};

use crate::limits::LEDGER_FILES;

/// A file as the session last saw or left it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight {
    pub(crate) hash: Hash,
    /// What the file system said then: if it still says so, the content need not be looked at.
    pub(crate) meta: Option<Meta>,
}

/// The files that a session has seen. When it is full, those seen longest ago are forgotten.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    sights: HashMap<Place, (u64, Sight)>,
    clock: u64,
}

impl Ledger {
    pub(crate) fn saw(&mut self, place: Place, sight: Sight) {
        if self.sights.len() >= LEDGER_FILES && !self.sights.contains_key(&place) {
            let mut times: Vec<u64> = self.sights.values().map(|(time, _)| *time).collect();
            let (_, middle, _) = times.select_nth_unstable(LEDGER_FILES / 2);
            let middle = *middle;
            self.sights.retain(|_, (time, _)| *time > middle);
        }
        self.clock += 1;
        self.sights.insert(place, (self.clock, sight));
    }

    pub(crate) fn forget(&mut self, place: &Place) {
        self.sights.remove(place);
    }

    pub(crate) fn last_sight(&self, place: &Place) -> Option<Sight> {
        self.sights.get(place).map(|(_, sight)| *sight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinfold_confine::{Name, RelPath};

    #[test]
    fn a_full_ledger_forgets_the_oldest() {
        let place = |number: usize| Place {
            root: 0,
            path: RelPath::root().join(&Name::parse(number.to_string().as_bytes()).unwrap()),
        };
        let mut ledger = Ledger::default();
        let sight = Sight { hash: blake3::hash(b""), meta: None };
        (0..=LEDGER_FILES).for_each(|number| ledger.saw(place(number), sight));
        assert!(ledger.last_sight(&place(0)).is_none());
        assert!(ledger.last_sight(&place(LEDGER_FILES)).is_some());
        assert!(ledger.sights.len() <= LEDGER_FILES);
    }
}
