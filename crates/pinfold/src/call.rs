//! What holds for one call alone.

use crate::Approver;
use crate::audit::Trace;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What one call is to do otherwise than its session.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// Whether changes are only described; the session's setting if not said.
    pub dry_run: Option<bool>,
    /// Lets somebody else end the call.
    pub cancel: Cancel,
    /// Lets somebody else see how far the call has come.
    pub progress: Progress,
    /// Who is asked, if not whom the session asks.
    pub approver: Option<Arc<dyn Approver>>,
    /// Who makes the call, for the audit log.
    pub client: Option<Arc<str>>,
    /// What is noted for the audit log meanwhile.
    pub trace: Trace,
    /// The tool that makes the call, for the journal.
    pub tool: String,
}

/// A signal to stop, shared by whoever gives it and whoever heeds it.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks the call to stop soon.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the call was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How far a call has come, shared by whoever does the work and whoever watches. By default nobody does,
/// and nothing is counted.
#[derive(Clone, Debug, Default)]
pub struct Progress(Option<Arc<AtomicU64>>);

impl Progress {
    /// One that somebody watches.
    pub fn watched() -> Self {
        Self(Some(Arc::default()))
    }

    /// How many files and directories a walk has met so far. It only grows.
    pub fn met(&self) -> u64 {
        self.0.as_ref().map_or(0, |met| met.load(Ordering::Relaxed))
    }

    pub(crate) fn meet(&self) {
        if let Some(met) = &self.0 {
            met.fetch_add(1, Ordering::Relaxed);
        }
    }
}
