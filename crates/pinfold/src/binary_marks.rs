//! Which files are binary, so that listing a directory again opens none of them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pinfold_confine::{Identity, Metadata};

use crate::limits::MAX_BINARY_MARKS;

/// For each file whether it was binary, and its metadata at that time.
#[derive(Debug, Default)]
pub(crate) struct BinaryMarks(Mutex<HashMap<Identity, (Metadata, bool)>>);

impl BinaryMarks {
    /// Whether a file is binary, if that is known and its metadata prove that it did not change.
    pub(crate) fn get(&self, now: &Metadata) -> Option<bool> {
        let marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (then, is_binary) = marks.get(&now.identity)?;
        then.proven_unchanged(now).then_some(*is_binary)
    }

    /// Notes whether a file is binary. `meta` is from before it was read.
    pub(crate) fn put(&self, meta: &Metadata, is_binary: bool) {
        let mut marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if marks.len() >= MAX_BINARY_MARKS {
            marks.clear();
        }
        marks.insert(meta.identity, (*meta, is_binary));
    }
}
