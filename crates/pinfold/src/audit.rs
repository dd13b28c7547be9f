//! The audit log: one line for every call, with its paths, the decision and the outcome, but no contents.
//!
//! Only [`Session::audited`] writes a line and reports calls to the session's observer. A call has exactly one line.
//! An operation that is not part of an audited call is audited itself, so no call is left out.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use chrono::{SecondsFormat, Utc};
use pinfold_confine::LogFile;
use pinfold_text::cut_to_chars;
use serde::{Deserialize, Serialize};

use crate::journal::State;
use crate::limits::MAX_AUDIT_CHARS;
use crate::{Access, CallOptions, CallStart, Observer, Session};

/// An audit log.
#[derive(Debug)]
pub(crate) struct Audit {
    file: LogFile,
    path: PathBuf,
    /// Whether writing the last line failed.
    broken: AtomicBool,
}

impl Session {
    /// Makes a call and writes its line into the audit log, also if it fails. The observer gets the same line.
    /// `outcome` returns `ok` or the error's code, and the size of the answer in bytes.
    #[doc(hidden)]
    pub fn audited<T>(
        &self,
        call: &CallOptions,
        work: impl FnOnce(&CallOptions) -> T,
        outcome: impl FnOnce(&T) -> (&'static str, usize),
    ) -> T {
        let (audit, observer) = (self.audit(), self.watching_observer());
        if call.audit_trace().is_recording() || audit.is_none() && observer.is_none() {
            return work(call);
        }
        let begin = Instant::now();
        let shared = call.audit_line.clone().unwrap_or_default();
        let trace = shared.trace.clone();
        let start = |observer: &Arc<dyn Observer>| {
            observer.call_started(&CallStart {
                session: self.id(),
                client: call.client.as_deref(),
                tool: &brief(&call.tool),
                compact_params: call.compact_params.as_deref(),
            })
        };
        // If another thread still performs the call, that thread has reported its start already.
        let number = trace.number().or_else(|| observer.map(start));
        trace.set_number(number);
        let call = call.clone().with_audit_trace(trace.clone());
        let done = work(&call);
        if shared.is_written.swap(true, Ordering::Relaxed) {
            return done;
        }
        let (outcome, bytes) = outcome(&done);
        let line = AuditLine {
            time: Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true),
            session: self.id(),
            client: call.client.as_deref().map(brief),
            token: call.token.as_deref(),
            tool: brief(&call.tool),
            fields: &trace.fields(),
            outcome,
            duration_ms: begin.elapsed().as_millis().try_into().unwrap_or(u64::MAX),
            bytes,
        };
        if let Some(audit) = audit {
            audit.write(&line);
        }
        if let (Some(observer), Some(number)) = (observer, number) {
            observer.call_ended(number, &line);
        }
        done
    }
}

/// The audit line of a call that two threads may answer: the one that performs it, and the one that may give up
/// waiting. The first to finish writes the line, with all fields that were collected by then.
#[derive(Clone, Debug)]
pub struct SharedAuditLine {
    trace: AuditTrace,
    is_written: Arc<AtomicBool>,
}

impl Default for SharedAuditLine {
    fn default() -> Self {
        Self { trace: AuditTrace::open(), is_written: Arc::default() }
    }
}

/// One line of the log.
#[doc(hidden)]
#[derive(Debug, Serialize)]
pub struct AuditLine<'l> {
    /// When the call was answered, in ISO 8601 and UTC.
    pub time: String,
    pub session: &'l str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<Cow<'l, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<&'l str>,
    pub tool: Cow<'l, str>,
    #[serde(flatten)]
    pub fields: &'l AuditFields,
    /// `ok`, or the error's code.
    pub outcome: &'l str,
    pub duration_ms: u64,
    /// The size of the answer.
    pub bytes: usize,
}

/// Collects the fields of a call's audit line. The default collects nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuditTrace(Option<Arc<Mutex<AuditFields>>>);

/// The fields of a call's audit line.
#[doc(hidden)]
#[derive(Clone, Debug, Default, Serialize)]
pub struct AuditFields {
    pub operation: Option<&'static str>,
    pub paths: Vec<AuditedPath>,
    pub decision: AuditedDecision,
    pub why: Option<String>,
    /// The number that the observer gave the call.
    #[serde(skip)]
    number: Option<u64>,
    /// The hash of the file before a change.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// The hash of the file after a change.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

/// `allow` or `deny` by policy; after an approval request `approved`, `denied_by_user`, `unanswered`, `no_approver` or
/// `deferred`; `none` if nothing was decided.
#[doc(hidden)]
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct AuditedDecision(pub &'static str);

impl Default for AuditedDecision {
    fn default() -> Self {
        Self("none")
    }
}

/// A path of a call: as it was given, and the real path that it leads to.
#[doc(hidden)]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct AuditedPath {
    pub given: Option<String>,
    pub path: Option<String>,
}

impl AuditTrace {
    fn open() -> Self {
        Self(Some(Arc::default()))
    }

    fn set_number(&self, number: Option<u64>) {
        if let Some(mut fields) = self.lock() {
            fields.number = number;
        }
    }

    /// The number that the observer gave the call.
    pub(crate) fn number(&self) -> Option<u64> {
        self.lock()?.number
    }

    /// Whether the call will have a line.
    pub(crate) fn is_recording(&self) -> bool {
        self.0.is_some()
    }

    /// Records a decision. If the call is refused, the last decision is the reason.
    pub(crate) fn record_decision(
        &self,
        access: Access,
        given: Option<&str>,
        real: Option<&Path>,
        decision: &'static str,
        why: String,
    ) {
        self.record_attempt(access, given);
        let Some(mut fields) = self.lock() else { return };
        fields.decision = AuditedDecision(decision);
        fields.why = Some(why);
        let Some(path) = real.map(|real| real.to_string_lossy().into_owned()) else { return };
        let given = given.map(str::to_owned);
        match fields.paths.iter_mut().find(|known| known.given == given) {
            Some(known) => known.path = Some(path),
            None => fields.paths.push(AuditedPath { given, path: Some(path) }),
        }
    }

    /// Records an access and a path before the path is resolved. A change includes a read, so a read does not replace
    /// a recorded change.
    pub(crate) fn record_attempt(&self, access: Access, given: Option<&str>) {
        let Some(mut fields) = self.lock() else { return };
        if access != Access::Read || fields.operation.is_none() {
            fields.operation = Some(access.name());
        }
        let given = given.map(str::to_owned);
        if given.is_some() && !fields.paths.iter().any(|known| known.given == given) {
            fields.paths.push(AuditedPath { given, path: None });
        }
    }

    /// Records the hashes of a file before and after a change.
    pub(crate) fn record_hashes(&self, before: &State, after: &State) {
        let Some(mut fields) = self.lock() else { return };
        let hash = |state: &State| match state {
            State::File { hash, .. } => Some(hash.clone()),
            State::Absent | State::Directory { .. } | State::Link { .. } => None,
        };
        (fields.before, fields.after) = (hash(before), hash(after));
    }

    /// The collected fields, with long paths cut.
    fn fields(&self) -> AuditFields {
        let mut fields = self.lock().map(|fields| fields.clone()).unwrap_or_default();
        let texts = fields.paths.iter_mut().flat_map(|known| [&mut known.given, &mut known.path]);
        for text in texts.flatten() {
            if let Cow::Owned(cut) = brief(text) {
                *text = cut;
            }
        }
        fields
    }

    fn lock(&self) -> Option<std::sync::MutexGuard<'_, AuditFields>> {
        Some(self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Audit {
    pub(crate) fn open(path: &Path) -> std::io::Result<Self> {
        let file = LogFile::open(path)?;
        Ok(Self { file, path: path.to_owned(), broken: AtomicBool::new(false) })
    }

    /// Appends a line. If that fails, the next change is refused, unless the settings allow changes without an audit
    /// log.
    fn write(&self, line: &AuditLine<'_>) {
        let text = serde_json::to_string(line).map_err(std::io::Error::other);
        let written = text.and_then(|text| self.file.append(&format!("{text}\n")));
        self.broken.store(written.is_err(), Ordering::Relaxed);
    }

    /// Whether writing the last line failed.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Cuts a text of the caller to a length that fits the log.
fn brief(text: &str) -> Cow<'_, str> {
    cut_to_chars(text, MAX_AUDIT_CHARS)
}
