//! A line for every call: what was asked for, what was decided, what came of it. No contents.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use blake3::Hash;
use pinfold_confine::LogFile;
use serde::Serialize;

use crate::Access;
use crate::limits::MAX_AUDIT_CHARS;

/// An audit log.
#[derive(Debug)]
pub(crate) struct Audit {
    file: LogFile,
    path: PathBuf,
    /// Whether the last line could not be written.
    broken: AtomicBool,
}

/// One call, as the log has it.
#[derive(Debug, Serialize)]
pub(crate) struct Line<'l> {
    /// When the call was answered: ISO 8601, UTC.
    pub(crate) time: String,
    pub(crate) session: &'l str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<Cow<'l, str>>,
    pub(crate) tool: Cow<'l, str>,
    #[serde(flatten)]
    pub(crate) audit_trace: &'l Facts,
    /// `ok`, or the error's code.
    pub(crate) outcome: &'l str,
    pub(crate) duration_ms: u64,
    /// Of the answer.
    pub(crate) bytes: usize,
}

/// What is noted while a call is made.
#[derive(Clone, Debug, Default)]
pub struct AuditTrace(Arc<Mutex<Facts>>);

/// What was noted.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Facts {
    pub(crate) operation: Option<&'static str>,
    pub(crate) paths: Vec<Noted>,
    /// `allow`, `deny`, or who was asked said: `yes`, `no`, `nobody`, `later`. `none` if the call did
    /// not come as far.
    pub(crate) decision: &'static str,
    pub(crate) why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<String>,
}

impl Default for Facts {
    fn default() -> Self {
        let (operation, paths, why, before, after) = Default::default();
        Self { operation, paths, decision: "none", why, before, after }
    }
}

/// A path that a call was about.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Noted {
    pub(crate) given: Option<String>,
    pub(crate) path: Option<String>,
}

impl AuditTrace {
    /// Notes a decision. The last one that was not a yes is what the call failed by.
    pub(crate) fn decided(
        &self,
        access: Access,
        given: Option<&str>,
        real: Option<&Path>,
        decision: &'static str,
        why: String,
    ) {
        self.tried(access, given);
        let mut facts = self.lock();
        facts.decision = decision;
        facts.why = Some(why);
        let Some(path) = real.map(|real| real.to_string_lossy().into_owned()) else { return };
        let given = given.map(str::to_owned);
        match facts.paths.iter_mut().find(|noted| noted.given == given) {
            Some(noted) => noted.path = Some(path),
            None => facts.paths.push(Noted { given, path: Some(path) }),
        }
    }

    /// Notes what a call is about, before it is known where that leads. To change a file is also to read
    /// it, but the other way round it is not.
    pub(crate) fn tried(&self, access: Access, given: Option<&str>) {
        let mut facts = self.lock();
        if access != Access::Read || facts.operation.is_none() {
            facts.operation = Some(access.name());
        }
        let given = given.map(str::to_owned);
        if given.is_some() && !facts.paths.iter().any(|noted| noted.given == given) {
            facts.paths.push(Noted { given, path: None });
        }
    }

    /// Notes what a file was before and after a change.
    pub(crate) fn changed(&self, before: Option<Hash>, after: Option<Hash>) {
        let mut facts = self.lock();
        let text = |hash: Hash| hash.to_hex().to_string();
        (facts.before, facts.after) = (before.map(text), after.map(text));
    }

    /// All that was noted, as the log has it.
    pub(crate) fn facts(&self) -> Facts {
        let mut facts = self.lock().clone();
        let texts = facts.paths.iter_mut().flat_map(|noted| [&mut noted.given, &mut noted.path]);
        for text in texts.flatten() {
            if let Cow::Owned(cut) = brief(text) {
                *text = cut;
            }
        }
        facts
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Facts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Audit {
    pub(crate) fn open(path: &Path) -> std::io::Result<Self> {
        let file = LogFile::open(path)?;
        Ok(Self { file, path: path.to_owned(), broken: AtomicBool::new(false) })
    }

    /// Appends a line. Whether that worked decides what becomes of the next change.
    pub(crate) fn write(&self, line: &Line<'_>) {
        let text = serde_json::to_string(line).map_err(std::io::Error::other);
        let written = text.and_then(|text| self.file.append(&format!("{text}\n")));
        self.broken.store(written.is_err(), Ordering::Relaxed);
    }

    /// Whether the last line could not be written.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// A text that somebody else chose the length of, as the log has it.
pub(crate) fn brief(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_AUDIT_CHARS) {
        Some((cut, _)) => format!("{}…", &text[..cut]).into(),
        None => text.into(),
    }
}

/// The time, as the log has it.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().to_string()
}
