//! The files that a session has read or written, from its ledger and from that of its parent process.

use std::sync::{MutexGuard, PoisonError};

use pinfold_confine::{Metadata, Place};

use super::Session;
use crate::ledger::{Fingerprint, Ledger};

impl Session {
    /// Records in the ledger that the session has read or written a file.
    pub(crate) fn record_read(&self, place: &Place, fingerprint: Fingerprint) {
        let path = self.workspace.real_path(place);
        if let Some(parent_reads) = &self.parent_reads {
            parent_reads.record_read(path.clone(), fingerprint.clone());
        }
        self.ledger().record_read(path, fingerprint);
    }

    /// Whether the session may have been begun for this call only.
    pub(crate) fn may_be_session_per_call(&self) -> bool {
        self.may_be_session_per_call && self.ledger().is_empty()
    }

    /// Whether a file counts as read after the session has written it, or after an error has shown it.
    pub(crate) fn writes_count_as_read(&self) -> bool {
        self.writes_count_as_read
    }

    /// Records in the ledger that the session has written a file.
    pub(crate) fn record_write(&self, place: &Place, fingerprint: Fingerprint) {
        if self.writes_count_as_read {
            self.record_read(place, fingerprint);
        } else {
            self.forget(place);
        }
    }

    /// Removes a deleted file from the ledger.
    pub(crate) fn forget(&self, place: &Place) {
        let path = self.workspace.real_path(place);
        if let Some(parent_reads) = &self.parent_reads {
            parent_reads.forget(&path);
        }
        self.ledger().forget(&path);
    }

    /// Records in the ledger that a file or directory was moved.
    pub(crate) fn record_move(&self, from: &Place, to: &Place) {
        let [from, to] = [from, to].map(|place| self.workspace.real_path(place));
        self.ledger().record_move(&from, &to);
    }

    /// Whether the ledger has a file, and its metadata prove that it did not change since. The file becomes the
    /// newest.
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
