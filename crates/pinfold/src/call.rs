//! What holds for one call alone.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pinfold_confine::{File, Place};

#[cfg(doc)]
use crate::Session;
use crate::audit::AuditTrace;
use crate::{Approver, Error};

/// What one call is to do otherwise than its session.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
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
    pub audit_trace: AuditTrace,
    /// The tool that makes the call, for the journal and the audit log.
    pub tool: String,
    /// The file that the call reads, if it was opened before.
    pub cached_file: CachedFile,
}

/// A small file that was opened and read without waiting: see [`Session::cached_file`]. By default there is
/// none, and a call opens its file itself.
///
/// A call that has one opens nothing else: an attempt to is [`Error::Cancelled`], and the caller makes the call
/// again, on a thread that may wait.
#[derive(Clone, Debug, Default)]
pub struct CachedFile(Option<Arc<Mutex<Option<(Place, File)>>>>);

impl CachedFile {
    pub(crate) fn new(place: Place, file: File) -> Self {
        Self(Some(Arc::new(Mutex::new(Some((place, file))))))
    }

    /// The file, if the call has one that it has not taken yet; `None` if it opens files itself.
    pub(crate) fn take(&self) -> Option<Result<(Place, File), Error>> {
        let mut file = self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        Some(file.take().ok_or(Error::Cancelled))
    }
}

/// A signal to stop, shared by whoever gives it and whoever heeds it.
#[derive(Clone, Default)]
pub struct Cancel {
    given: Arc<AtomicBool>,
    beat: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

impl Cancel {
    /// The same signal, which is given as well when `beat` says so. It is asked often for as long as the call
    /// works, on whatever thread does.
    #[must_use]
    pub fn beating(&self, beat: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { given: self.given.clone(), beat: Some(Arc::new(beat)) }
    }

    /// Asks the call to stop soon.
    pub fn cancel(&self) {
        self.given.store(true, Ordering::Relaxed);
    }

    /// Whether the call was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        if self.beat.as_ref().is_some_and(|beat| beat()) {
            self.cancel();
        }
        self.given.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Cancel").field(&self.given).finish()
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
