//! Options of one call, its cancellation and its progress.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::Approver;
use crate::audit::{AuditTrace, SharedAuditLine};
use crate::cached_file::CachedFile;
use crate::memory_budget::AnswerMemory;

/// Options of one call. They override those of its session.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// Whether changes are only described; `None` for the session's setting.
    pub dry_run: Option<bool>,
    /// Cancels the call.
    pub cancel: Cancel,
    /// Reports the call's progress.
    pub progress: Progress,
    /// Asks the user for approval, instead of the session's approver.
    pub approver: Option<Arc<dyn Approver>>,
    /// The client that makes the call, for the audit log.
    pub client: Option<Arc<str>>,
    /// The name of the token that the client has shown, for the audit log. Unlike its own name, a client cannot choose it.
    pub token: Option<Arc<str>>,
    /// The tool that makes the call, for the journal and the audit log.
    pub tool: String,
    /// The turn that the call's changes belong to. The first change of a turn is a checkpoint with this label, which
    /// [`Rewind`](crate::operations::Rewind) can go back to.
    pub turn: Option<String>,
    /// The arguments on one line, for the observer.
    pub(crate) compact_params: Option<String>,
    /// The file that the call reads, if it is already open.
    #[doc(hidden)]
    pub cached_file: Option<CachedFile>,
    /// The memory of the answer, which outlives the call.
    pub(crate) answer_memory: Option<AnswerMemory>,
    pub(crate) audit_line: Option<SharedAuditLine>,
    audit_trace: AuditTrace,
}

impl CallOptions {
    /// Sets whether changes are only described.
    #[must_use]
    pub fn with_dry_run(mut self, dry_run: impl Into<Option<bool>>) -> Self {
        self.dry_run = dry_run.into();
        self
    }

    /// Sets the signal that cancels the call.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Sets the counter of the call's progress.
    #[must_use]
    pub fn with_progress(mut self, progress: Progress) -> Self {
        self.progress = progress;
        self
    }

    /// Sets the approver of the call.
    #[must_use]
    pub fn with_approver(mut self, approver: impl Into<Option<Arc<dyn Approver>>>) -> Self {
        self.approver = approver.into();
        self
    }

    /// Sets the client that makes the call.
    #[must_use]
    pub fn with_client(mut self, client: impl Into<Option<Arc<str>>>) -> Self {
        self.client = client.into();
        self
    }

    /// Sets the token that the client has shown.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<Option<Arc<str>>>) -> Self {
        self.token = token.into();
        self
    }

    /// Sets the tool that makes the call.
    #[must_use]
    pub fn with_tool(mut self, tool: impl Into<String>) -> Self {
        self.tool = tool.into();
        self
    }

    /// Sets the turn that the call's changes belong to.
    #[must_use]
    pub fn with_turn(mut self, turn: impl Into<Option<String>>) -> Self {
        self.turn = turn.into();
        self
    }

    /// Sets the arguments on one line, for an observer.
    #[doc(hidden)]
    #[must_use]
    pub fn with_compact_params(mut self, compact_params: Option<String>) -> Self {
        self.compact_params = compact_params;
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub fn with_cached_file(mut self, file: CachedFile) -> Self {
        self.cached_file = Some(file);
        self
    }

    /// Sets the memory of the answer. Without it, the memory is free for other calls once the operation is done.
    #[doc(hidden)]
    #[must_use]
    pub fn with_answer_memory(mut self, memory: Option<AnswerMemory>) -> Self {
        self.answer_memory = memory;
        self
    }

    /// Sets the audit line that the call shares with another thread.
    #[doc(hidden)]
    #[must_use]
    pub fn with_audit_line(mut self, line: SharedAuditLine) -> Self {
        self.audit_line = Some(line);
        self
    }

    pub(crate) fn with_audit_trace(mut self, trace: AuditTrace) -> Self {
        self.audit_trace = trace;
        self
    }

    pub(crate) fn audit_trace(&self) -> &AuditTrace {
        &self.audit_trace
    }
}

/// Cancels a call from another thread.
#[derive(Clone, Default)]
pub struct Cancel {
    cancelled: Arc<AtomicBool>,
    poll: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

impl Cancel {
    /// Returns this signal with a check added: it also cancels the call when `poll` returns true. The call's threads
    /// call `poll` often.
    #[must_use]
    pub fn with_poll(&self, poll: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { cancelled: self.cancelled.clone(), poll: Some(Arc::new(poll)) }
    }

    /// Asks the call to stop soon.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether the call was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        if self.poll.as_ref().is_some_and(|poll| poll()) {
            self.cancel();
        }
        self.cancelled.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Cancel").field(&self.cancelled).finish()
    }
}

/// The progress of a call, which another thread can read. The default counts nothing.
#[derive(Clone, Debug, Default)]
pub struct Progress(Option<Arc<AtomicU64>>);

impl Progress {
    /// Progress that counts the entries of walks.
    pub fn enabled() -> Self {
        Self(Some(Arc::default()))
    }

    /// How many files and directories a walk has visited so far. It only grows.
    pub fn entries_visited(&self) -> u64 {
        self.0.as_ref().map_or(0, |visited| visited.load(Ordering::Relaxed))
    }

    pub(crate) fn count_entry(&self) {
        if let Some(visited) = &self.0 {
            visited.fetch_add(1, Ordering::Relaxed);
        }
    }
}
