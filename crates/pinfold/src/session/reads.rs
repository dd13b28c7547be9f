//! The files that a session has read or written, as its ledger and that of its parent process know them.

use std::sync::{MutexGuard, PoisonError};

use pinfold_confine::{Metadata, Place};

use super::Session;
use crate::ledger::{Fingerprint, Ledger};

impl Session {
    /// Notes in the ledger that the session has read or written a file.
    pub(crate) fn record_read(&self, place: &Place, fingerprint: Fingerprint) {
        let path = self.workspace.real_path(place);
        if let Some(parent_reads) = &self.parent_reads {
            parent_reads.record_read(path.clone(), fingerprint.clone());
        }
        self.ledger().record_read(path, fingerprint);
    }

    /// Whether the session may have been begun for this call alone.
    pub(crate) fn may_be_of_one_call(&self) -> bool {
        self.may_be_of_one_call && self.ledger().is_empty()
    }

    /// Whether what the session writes, or is shown by an error, counts as read.
    pub(crate) fn writes_count_as_read(&self) -> bool {
        self.writes_count_as_read
    }

    /// Notes in the ledger that the session has written a file.
    pub(crate) fn record_write(&self, place: &Place, fingerprint: Fingerprint) {
        if self.writes_count_as_read {
            self.record_read(place, fingerprint);
        } else {
            self.forget(place);
        }
    }

    /// Notes in the ledger that a file is gone.
    pub(crate) fn forget(&self, place: &Place) {
        let path = self.workspace.real_path(place);
        if let Some(parent_reads) = &self.parent_reads {
            parent_reads.forget(&path);
        }
        self.ledger().forget(&path);
    }

    /// Notes in the ledger that something was moved, with all that is in it.
    pub(crate) fn record_move(&self, from: &Place, to: &Place) {
        let [from, to] = [from, to].map(|place| self.workspace.real_path(place));
        self.ledger().record_move(&from, &to);
    }

    /// Whether the ledger has a file, and its metadata proves that it did not change since. The file counts as read now.
    pub(crate) fn is_read(&self, place: &Place, now: &Metadata) -> bool {
        self.ledger().is_read(&self.workspace.real_path(place), now)
    }

    /// The fingerprint of a file when the session last read or wrote it.
    pub(crate) fn last_fingerprint(&self, place: &Place) -> Option<Fingerprint> {
        let path = self.workspace.real_path(place);
        let own = self.ledger().last_fingerprint(&path);
        own.or_else(|| self.parent_reads.as_ref()?.last_fingerprint(&path))
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
