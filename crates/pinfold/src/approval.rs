//! Asking a person.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use blake3::Hash;

use crate::{Access, Reason};

/// Somebody who can be asked whether an agent may do something.
pub trait Approver: fmt::Debug + Send + Sync {
    /// Asks, and waits for the answer. Whoever cannot ask, or gets no answer in time, says no.
    fn ask(&self, question: &ApprovalRequest) -> ApprovalAnswer;
}

/// What a person is asked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ApprovalRequest {
    /// The tool that the agent calls.
    pub tool: String,
    /// What it would do.
    pub access: Access,
    /// The path, as the agent gave it.
    pub given: String,
    /// The file or directory that it leads to, free of links.
    pub path: PathBuf,
    /// Why the question comes up.
    pub reason: Reason,
    /// What would change, where that can be shown.
    pub diff: Option<String>,
    /// What a yes is good for, by hash: all of the above, and the file as it is and would be.
    pub subject: Hash,
}

impl ApprovalRequest {
    /// The question on one line.
    pub fn headline(&self) -> String {
        let Self { tool, access, path, reason, .. } = self;
        let path = pinfold_confine::escaped(path.as_os_str().as_encoded_bytes());
        format!("Allow {} {path}? (`{tool}`; {reason})", access.doing())
    }
}

/// Text as a person may be shown it, line by line: nothing in it can talk to a terminal, or pass for
/// something else than text.
pub fn escaped_lines(text: &str) -> String {
    let line =
        |line: &str| pinfold_confine::escaped(line.replace('\t', "    ").as_bytes()).to_string();
    text.trim_end().lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A person's answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ApprovalAnswer {
    /// This time.
    Once,
    /// Whenever it is the same operation on the same file, for as long as the session lasts.
    Session,
    /// No. There may be words for the agent.
    No(Option<String>),
    /// Nobody can be asked.
    Nobody,
    /// The question was passed on: the call is to end, and will be made again with the answer.
    Later,
}

/// What was allowed by a person.
#[derive(Debug, Default)]
pub(crate) struct Grants(Mutex<Vec<Grant>>);

#[derive(Debug)]
struct Grant {
    access: Access,
    path: PathBuf,
    /// What it was asked about for.
    reason: Reason,
    /// What the person was shown; `None` if it does not matter.
    subject: Option<Hash>,
}

impl Grants {
    pub(crate) fn add(&self, access: Access, path: PathBuf, reason: Reason, subject: Option<Hash>) {
        self.lock().push(Grant { access, path, reason, subject });
    }

    /// Whether something was allowed: just this, on just this file.
    pub(crate) fn cover(&self, access: Access, path: &Path, subject: Option<Hash>) -> bool {
        self.lock().iter().any(|grant| {
            grant.access == access
                && grant.path == path
                && (grant.subject.is_none() || grant.subject == subject)
        })
    }

    /// Whether what is met on a walk may be shown because a directory above it may be walked over: if it
    /// would be asked about for the same reason, and no other.
    pub(crate) fn cover_below(&self, path: &Path, reason: &Reason) -> bool {
        self.lock().iter().any(|grant| {
            grant.access == Access::Read && path.starts_with(&grant.path) && grant.reason == *reason
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Grant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
