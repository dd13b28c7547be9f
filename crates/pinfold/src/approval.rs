//! Approvals: the requests to the user, the answers, and the grants that remember them.
//!
//! The names of each answer:
//!
//! | [`ApprovalAnswer`] | the call | the audit log | viewers (`RequestEnd`) |
//! |---|---|---|---|
//! | `Once`, `Session` | goes on | `approved` | `once`, `session` |
//! | `Denied` | [`Denial::User`] | `denied_by_user` | `no` |
//! | `Unanswered` | [`Denial::Unanswered`] | `unanswered` | `expired` if nobody answered in time |
//! | `Deferred` | [`Denial::Deferred`]: the client repeats it with the answer | `deferred` | not asked |
//! | `Unavailable` | [`Denial::NoApprover`], [`Denial::DontAsk`] | `no_approver` | not asked, or `cancelled` if the call has ended |
//!
//! Viewers that close before they answer see `passed_on`: then the client is asked, and its answer counts.
//!
//! [`Denial::User`]: crate::Denial::User
//! [`Denial::Deferred`]: crate::Denial::Deferred
//! [`Denial::Unanswered`]: crate::Denial::Unanswered
//! [`Denial::NoApprover`]: crate::Denial::NoApprover
//! [`Denial::DontAsk`]: crate::Denial::DontAsk

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use blake3::Hash;

use crate::preview::{Proposal, escaped_line};
use crate::{Access, Reason};

/// Asks the user whether an agent may do something.
///
/// ```
/// use pinfold::operations::Write;
/// use pinfold::{ApprovalAnswer, ApprovalRequest, Approver, Mode, Permissions, Session, Settings};
///
/// /// Shows what would change, and approves nothing but text files.
/// #[derive(Debug)]
/// struct TextFilesOnly;
///
/// impl Approver for TextFilesOnly {
///     fn ask(&self, request: &ApprovalRequest) -> ApprovalAnswer {
///         println!("{}\n{}", request.headline(), request.preview(4_000));
///         if request.path.extension().is_some_and(|it| it == "txt") {
///             return ApprovalAnswer::Once;
///         }
///         ApprovalAnswer::Denied(Some("only text files".into()))
///     }
/// }
///
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// let mut settings = Settings::default();
/// settings.permissions.mode = Mode::Ask;
/// let session = Session::with_settings([workspace], settings)?.with_approver(TextFilesOnly);
/// session.perform(&Write::new("a.txt", "approved\n"))?;
/// let refused = session.perform(&Write::new("a.sh", "denied\n")).unwrap_err();
/// assert!(refused.to_string().contains("only text files"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Approver: fmt::Debug + Send + Sync {
    /// Asks the user, and waits for the answer. Returns [`ApprovalAnswer::Unavailable`] if it cannot reach the user.
    fn ask(&self, request: &ApprovalRequest) -> ApprovalAnswer;
}

/// A request to the user to approve an access.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The tool that the agent calls.
    pub tool: String,
    /// The kind of access.
    pub access: Access,
    /// The path, as the agent gave it.
    pub given: String,
    /// The real path of the file or directory that it leads to.
    pub path: PathBuf,
    /// Why the user has to be asked.
    pub reason: Reason,
    /// Whether the user approved this in the same call, but the file has changed since.
    pub changed_since_asked: bool,
    /// The hash of everything that an approval covers: all of the above, and the file before and after the change.
    pub request_hash: String,
    pub(crate) proposal: Option<Proposal>,
}

impl ApprovalRequest {
    /// The question, on one line.
    pub fn headline(&self) -> String {
        let Self { tool, access, path, reason, .. } = self;
        let changed = if self.changed_since_asked {
            "The file changed since the last question. "
        } else {
            ""
        };
        let path = escaped_line(path.as_os_str().as_encoded_bytes());
        let doing = match &self.proposal {
            Some(Proposal::Move { .. }) => "moving",
            _ => access.doing(),
        };
        let more = match self.proposal.as_ref().map_or(0, Proposal::other_paths) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{changed}Allow {doing} {path}{more}? (`{tool}`; {reason})")
    }

    /// The proposed change, in at most about `max_chars` characters. It is a diff of the bytes, in which every
    /// invisible character is escaped; for binary content it is the kind, size and hash. Omitted lines are counted.
    /// Empty if nothing would change.
    pub fn preview(&self, max_chars: usize) -> String {
        self.proposal.as_ref().map_or_else(String::new, |proposal| proposal.preview(max_chars))
    }
}

/// The user's answer to an [`ApprovalRequest`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ApprovalAnswer {
    /// Approved, for this call.
    Once,
    /// Approved for the same operation on the same file, until the session ends.
    Session,
    /// Denied, maybe with a message for the agent.
    Denied(Option<String>),
    /// There is no answer, though the user was asked; the text says what happened, such as that the time is over.
    Unanswered(String),
    /// Nobody can be asked.
    Unavailable,
    /// The result of the call asks the client. The call ends now, and the client repeats it with the answer.
    Deferred,
}

impl ApprovalAnswer {
    /// The answer to a request that the user did not answer in time.
    pub fn expired(waited: Duration) -> Self {
        let minutes = waited.as_secs() / 60;
        Self::Unanswered(format!("{minutes} minutes have passed"))
    }

    /// The decision in the audit log.
    pub(crate) fn audit_word(&self) -> &'static str {
        match self {
            Self::Once | Self::Session => "approved",
            Self::Denied(_) => "denied_by_user",
            Self::Unanswered(_) => "unanswered",
            Self::Unavailable => "no_approver",
            Self::Deferred => "deferred",
        }
    }
}

/// The user's approvals in a call or in a session.
#[derive(Debug, Default)]
pub(crate) struct Grants(Mutex<Vec<Grant>>);

#[derive(Debug)]
struct Grant {
    access: Access,
    path: PathBuf,
    /// Why the user was asked.
    reason: Reason,
    /// The hash of the approved change; `None` covers any change.
    change_hash: Option<Hash>,
}

impl Grants {
    pub(crate) fn add(
        &self,
        access: Access,
        path: PathBuf,
        reason: Reason,
        change_hash: Option<Hash>,
    ) {
        self.lock().push(Grant { access, path, reason, change_hash });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Whether this change of this file was approved.
    pub(crate) fn cover(&self, access: Access, path: &Path, change_hash: Option<Hash>) -> bool {
        self.lock().iter().any(|grant| {
            grant.access == access
                && grant.path == path
                && (grant.change_hash.is_none() || grant.change_hash == change_hash)
        })
    }

    /// Whether another change of this file was approved.
    pub(crate) fn has_other(&self, access: Access, path: &Path, change_hash: Option<Hash>) -> bool {
        self.lock().iter().any(|grant| {
            grant.access == access && grant.path == path && grant.change_hash != change_hash
        })
    }

    /// Whether an entry of a walk may be shown because the user approved a walk of a directory above it. It may if
    /// the reason to ask is the same.
    pub(crate) fn cover_below(&self, path: &Path, reason: &Reason) -> bool {
        self.lock().iter().any(|grant| {
            grant.access == Access::Read && path.starts_with(&grant.path) && grant.reason == *reason
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Grant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
