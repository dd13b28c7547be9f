//! Asks the user for an approval, and records the answer as a grant.

use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::Ordering;
use std::time::Instant;

use blake3::Hash;
use pinfold_confine::{Place, RawPath, SharedLocks};

use super::AccessRequest;
use crate::approval::Grants;
use crate::preview::Proposal;
use crate::{Access, ApprovalAnswer, ApprovalRequest, Denial, Error, Reason, View};

/// An approval that a call needs. It borrows nothing, so the file can be released before the user is asked.
pub(crate) struct NeededApproval {
    /// The accesses that the user is asked about. Several accesses are approved together.
    pub(crate) parts: Vec<ApprovalPart>,
    /// The proposed change and its hash, which the approval covers; `None` for a read.
    pub(crate) change: Option<(Hash, Proposal)>,
}

/// One access that needs approval.
pub(crate) struct ApprovalPart {
    pub(crate) access: Access,
    pub(crate) path: RawPath,
    pub(crate) place: Place,
    pub(crate) reason: Reason,
}

impl NeededApproval {
    /// The approval that a read needs.
    pub(super) fn about(request: &AccessRequest<'_>, reason: Reason) -> Self {
        Self { parts: vec![ApprovalPart::new(request, reason)], change: None }
    }
}

impl ApprovalPart {
    pub(crate) fn new(request: &AccessRequest<'_>, reason: Reason) -> Self {
        let AccessRequest { access, path, place, .. } = *request;
        Self { access, path: path.clone(), place: place.clone(), reason }
    }
}

impl View<'_> {
    /// Asks the user. After an approval the caller has to open the file again. The caller must release its files
    /// first, so that other calls do not wait.
    pub(crate) fn request_approval(&self, needed: &NeededApproval) -> Result<(), Error> {
        let Some(ApprovalPart { access, path, place, reason }) = needed.parts.first() else {
            return Ok(());
        };
        let (access, real) = (*access, self.real(place));
        let (change_hash, proposal) = needed.change.clone().unzip();
        let request = ApprovalRequest {
            tool: self.tool().to_owned(),
            access,
            given: path.as_str().to_owned(),
            path: real.clone(),
            reason: reason.clone(),
            changed_since_asked: self.grants().has_other(access, &real, change_hash),
            request_hash: self.request_hash(needed),
            proposal,
        };
        // Other processes need not wait while the user decides.
        let suspended = SharedLocks::suspend();
        let answer = self.answer(&request);
        drop(suspended);
        let word = answer.audit_word();
        let denial = match answer {
            ApprovalAnswer::Once | ApprovalAnswer::Session => {
                self.grant(self.grants(), needed, change_hash);
                if answer == ApprovalAnswer::Session {
                    self.grant(self.session().grants(), needed, None);
                }
                return Ok(());
            }
            ApprovalAnswer::Denied(message) => Denial::User(message),
            ApprovalAnswer::Unanswered(problem) => Denial::Unanswered(problem),
            ApprovalAnswer::Deferred => Denial::Deferred,
            ApprovalAnswer::Unavailable => {
                // An allow rule overrides neither an ask rule nor a pause.
                let allow = match reason {
                    Reason::Rule(_) | Reason::Paused => None,
                    _ => self.session().policy().allowing(access, &real),
                };
                let reason = reason.clone();
                if self.session().policy().asks_nobody() && reason != Reason::Paused {
                    Denial::DontAsk { reason, allow }
                } else {
                    Denial::NoApprover { reason, allow }
                }
            }
        };
        self.note(access, path, Some(&real), word, reason.to_string());
        // The call may have been cancelled while the user decided.
        self.check_time()?;
        Err(Error::Denied { path: path.clone(), access, denial })
    }

    /// Records the approval of every part. While changes are paused, it covers only the change with this hash.
    fn grant(&self, grants: &Grants, needed: &NeededApproval, change_hash: Option<Hash>) {
        for ApprovalPart { access, place, reason, .. } in &needed.parts {
            if change_hash.is_some() || *reason != Reason::Paused {
                grants.add(*access, self.real(place), reason.clone(), change_hash);
            }
        }
    }

    /// The hash of everything that an approval depends on.
    fn request_hash(&self, needed: &NeededApproval) -> String {
        let mut hasher = blake3::Hasher::new();
        for ApprovalPart { access, path, place, reason } in &needed.parts {
            for part in [self.tool(), access.name(), path.as_str(), &reason.to_string()] {
                hasher.update(part.as_bytes()).update(b"\0");
            }
            hasher.update(self.real(place).as_os_str().as_bytes()).update(b"\0");
        }
        if let Some((change_hash, _)) = &needed.change {
            hasher.update(change_hash.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Whether there is an approver, and the mode allows asking.
    pub(crate) fn can_ask(&self) -> bool {
        !self.session().policy().asks_nobody()
            && (self.call().approver.is_some() || self.session().approver().is_some())
    }

    /// The user's answer. The waiting time does not count towards the deadline: `working_time` in `view.rs` subtracts it. A
    /// server that answers for a hanging thread measures it separately, since it cannot ask the thread
    /// (`ApprovalTime` in `pinfold-mcp`).
    fn answer(&self, request: &ApprovalRequest) -> ApprovalAnswer {
        let approver = self.call().approver.as_ref().or(self.session().approver());
        // A user who paused changes wants to be asked in every mode.
        let can_ask = self.can_ask() || request.reason == Reason::Paused;
        let Some(approver) = approver.filter(|_| can_ask) else {
            return ApprovalAnswer::Unavailable;
        };
        let begin = Instant::now();
        let answer = approver.ask(request);
        let waited = begin.elapsed().as_nanos().try_into().unwrap_or(u64::MAX);
        self.waited().fetch_add(waited, Ordering::Relaxed);
        answer
    }
}
