//! Permission for one access to one place: policy decides, or the user does where policy asks.
//!
//! `View` checks reads, asks the user about them, and refuses denied writes early. `commit` checks writes
//! again and asks the user to approve the diff. So one call can ask twice. A call evaluates policy once for
//! each access to each path. The file may change while the user is asked, so the caller opens it again after
//! an approval.

mod tree;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use blake3::Hash;
use pinfold_confine::{Name, Place, RawPath, RelPath};

use crate::approval::Grants;
use crate::policy::{Decision, Policy, normalized};
use crate::preview::Proposal;
pub(crate) use tree::Tree;

use crate::{Access, ApprovalAnswer, ApprovalRequest, Denial, Error, Reason, View};

/// One access to one place.
#[derive(Clone, Copy)]
pub(crate) struct AccessRequest<'w> {
    pub(crate) access: Access,
    /// The path as it was given.
    pub(crate) path: &'w RawPath,
    /// The place that it leads to.
    pub(crate) place: &'w Place,
    pub(crate) directory: bool,
}

/// A question for the user. It borrows nothing, so that the file can be released before asking.
pub(crate) struct Question {
    /// What the user is asked about: one access, or several that are approved together.
    pub(crate) parts: Vec<QuestionPart>,
    /// What would change, with the hash of what an approval covers; `None` to read.
    pub(crate) change: Option<(Hash, Proposal)>,
}

/// One access that the user has to be asked about.
pub(crate) struct QuestionPart {
    pub(crate) access: Access,
    pub(crate) path: RawPath,
    pub(crate) place: Place,
    pub(crate) reason: Reason,
}

impl Question {
    /// A question about a read.
    fn about(request: &AccessRequest<'_>, reason: Reason) -> Self {
        Self { parts: vec![QuestionPart::new(request, reason)], change: None }
    }
}

impl QuestionPart {
    pub(crate) fn new(request: &AccessRequest<'_>, reason: Reason) -> Self {
        let AccessRequest { access, path, place, .. } = *request;
        Self { access, path: path.clone(), place: place.clone(), reason }
    }
}

/// The decisions of policy in one call, by what was decided on. Policy depends on nothing else.
#[derive(Debug, Default)]
pub(crate) struct Decisions(Mutex<Vec<(Subject, Decision)>>);

/// An access, the path as it was given, and the place that it leads to; either may be unknown.
type Subject = (Access, Option<RawPath>, Option<Place>, bool);

impl View<'_> {
    /// The policy's decision on an access to a path, as it was given and as it is resolved.
    fn decision(
        &self,
        access: Access,
        path: Option<&RawPath>,
        place: Option<&Place>,
        directory: bool,
    ) -> Decision {
        if access != Access::Read && place.is_some_and(|place| self.session().is_only_read(place)) {
            return Decision::Deny(Reason::ReadRoot);
        }
        let subject = (access, path.cloned(), place.cloned(), directory);
        let mut decisions = self.decisions().0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, decision)) = decisions.iter().find(|(known, _)| *known == subject) {
            return decision.clone();
        }
        let given = path.map(|path| self.given_path(path));
        let real = place.map(|place| self.real(place));
        let policy = self.session().policy();
        let decision = policy.decide(access, given.as_deref(), real.as_deref(), directory);
        decisions.push((subject, decision.clone()));
        decision
    }

    /// Refuses a path that policy denies by its name, whether something is there or not.
    pub(crate) fn check_name(&self, path: &RawPath) -> Result<(), Error> {
        self.call().audit_trace().tried(Access::Read, Some(path.as_str()));
        match self.decision(Access::Read, Some(path), None, false) {
            Decision::Deny(reason) => Err(self.denied(Access::Read, path, None, reason)),
            Decision::Allow(_) | Decision::Ask(_) => Ok(()),
        }
    }

    /// Fails if policy denies an access. Returns the reason if the user has to be asked about it.
    pub(crate) fn check_policy(
        &self,
        request: &AccessRequest<'_>,
    ) -> Result<Option<Reason>, Error> {
        let AccessRequest { access, path, place, directory } = *request;
        match self.decision(access, Some(path), Some(place), directory) {
            Decision::Allow(_) if self.is_paused(access) => Ok(Some(Reason::Paused)),
            Decision::Allow(reason) => {
                self.note(access, path, Some(&self.real(place)), "allow", reason.to_string());
                Ok(None)
            }
            Decision::Deny(reason) => {
                Err(self.denied(access, path, Some(&self.real(place)), reason))
            }
            Decision::Ask(reason) => Ok(Some(reason)),
        }
    }

    /// Whether an access is a change, and the user has paused changes.
    fn is_paused(&self, access: Access) -> bool {
        access != Access::Read && self.session().is_paused()
    }

    /// Whether the user has approved an access. `change_hash` is the hash of what would change. While changes are
    /// paused, what was approved for the session is asked about again.
    pub(crate) fn is_approved(
        &self,
        request: &AccessRequest<'_>,
        change_hash: Option<Hash>,
    ) -> bool {
        let AccessRequest { access, path, place, .. } = *request;
        let real = self.real(place);
        let approved = !self.is_paused(access)
            && self.session().grants().cover(access, &real, None)
            || self.grants().cover(access, &real, change_hash);
        if approved {
            self.note(access, path, Some(&real), "yes", "the user was asked".into());
        }
        approved
    }

    /// Finds something, and returns it once it may be read. `place` returns its place, and whether
    /// it is a directory. After an approval it is found again, since it may have changed meanwhile.
    pub(crate) fn readable<T>(
        &self,
        path: &RawPath,
        find: impl Fn() -> Result<T, Error>,
        place: impl Fn(&T) -> (&Place, bool),
    ) -> Result<T, Error> {
        self.check_name(path)?;
        loop {
            let found = find()?;
            let (at, directory) = place(&found);
            let Some(question) = self.read_question(path, at, directory)? else {
                return Ok(found);
            };
            drop(found);
            self.request_approval(&question)?;
        }
    }

    /// Asks the user, if necessary, whether what is at a place may be read.
    pub(crate) fn check_readable(
        &self,
        path: &RawPath,
        place: &Place,
        directory: bool,
    ) -> Result<(), Error> {
        while let Some(question) = self.read_question(path, place, directory)? {
            self.request_approval(&question)?;
        }
        Ok(())
    }

    /// The question that the user has to answer before what is at a place may be read.
    pub(crate) fn read_question(
        &self,
        path: &RawPath,
        place: &Place,
        directory: bool,
    ) -> Result<Option<Question>, Error> {
        let request = AccessRequest { access: Access::Read, path, place, directory };
        let Some(reason) = self.check_policy(&request)? else { return Ok(None) };
        let approved = self.is_approved(&request, None);
        Ok((!approved).then(|| Question::about(&request, reason)))
    }

    /// Whether the backup of a file may be read. `path` is the real path that the file had, wherever
    /// it leads now.
    pub(crate) fn check_backup_readable(&self, path: &RawPath) -> Result<(), Error> {
        let none = || Error::NotFound { path: path.clone(), near: Vec::new() };
        let place = self.place_of_real_path(path).ok_or_else(none)?;
        self.check_readable(path, &place, false)
    }

    /// The place that a real path names, whatever is there.
    fn place_of_real_path(&self, path: &RawPath) -> Option<Place> {
        let roots = self.session().real_roots().enumerate();
        let mut below = roots.filter_map(|(root, real)| {
            Some((root, Path::new(path.as_str()).strip_prefix(real).ok()?))
        });
        let (root, below) = below.next()?;
        let mut names = below.components().map(|name| Name::parse(name.as_os_str().as_bytes()));
        let path = names.try_fold(RelPath::root(), |path, name| Some(path.join(&name.ok()?)))?;
        Some(Place { root, path })
    }

    /// Asks the user. After an approval the caller has to look at the file again. Files that the
    /// caller holds must be released first, so that other calls do not wait.
    pub(crate) fn request_approval(&self, question: &Question) -> Result<(), Error> {
        let Some(QuestionPart { access, path, place, reason }) = question.parts.first() else {
            return Ok(());
        };
        let (access, real) = (*access, self.real(place));
        let (change_hash, proposal) = question.change.clone().unzip();
        let request = ApprovalRequest {
            tool: self.tool().to_owned(),
            access,
            given: path.as_str().to_owned(),
            path: real.clone(),
            reason: reason.clone(),
            changed_since_asked: self.grants().has_other(access, &real, change_hash),
            request_hash: self.request_hash(question),
            proposal,
        };
        let denial = match self.answer(&request) {
            answer @ (ApprovalAnswer::Once | ApprovalAnswer::Session) => {
                self.grant(self.grants(), question, change_hash);
                if answer == ApprovalAnswer::Session {
                    self.grant(self.session().grants(), question, None);
                }
                return Ok(());
            }
            ApprovalAnswer::Denied(message) => {
                self.note(access, path, Some(&real), "no", reason.to_string());
                Denial::User(message)
            }
            ApprovalAnswer::Deferred => {
                self.note(access, path, Some(&real), "later", reason.to_string());
                Denial::Deferred
            }
            ApprovalAnswer::Unavailable => {
                self.note(access, path, Some(&real), "nobody", reason.to_string());
                // An allow rule overrides neither an ask rule nor a pause.
                let allow = match reason {
                    Reason::Rule(_) | Reason::Paused => None,
                    _ => self.session().policy().allowing(access, &real),
                };
                Denial::NoApprover { reason: reason.clone(), allow }
            }
        };
        // The call may have been cancelled while the user was asked.
        self.check_time()?;
        Err(Error::Denied { path: path.clone(), access, denial })
    }

    /// Notes that the user approved every part of a question. While changes are paused, an approval covers only
    /// the change with this hash.
    fn grant(&self, grants: &Grants, question: &Question, change_hash: Option<Hash>) {
        for QuestionPart { access, place, reason, .. } in &question.parts {
            if change_hash.is_some() || *reason != Reason::Paused {
                grants.add(*access, self.real(place), reason.clone(), change_hash);
            }
        }
    }

    /// The hash of everything that an approval depends on.
    fn request_hash(&self, question: &Question) -> String {
        let mut hasher = blake3::Hasher::new();
        for QuestionPart { access, path, place, reason } in &question.parts {
            for part in [self.tool(), access.name(), path.as_str(), &reason.to_string()] {
                hasher.update(part.as_bytes()).update(b"\0");
            }
            hasher.update(self.real(place).as_os_str().as_bytes()).update(b"\0");
        }
        if let Some((change_hash, _)) = &question.change {
            hasher.update(change_hash.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Whether there is an approver, and the mode allows to ask.
    pub(crate) fn can_ask(&self) -> bool {
        !self.session().policy().asks_nobody()
            && (self.call().approver.is_some() || self.session().approver().is_some())
    }

    /// The user's answer. The time that it takes does not count towards the deadline.
    fn answer(&self, request: &ApprovalRequest) -> ApprovalAnswer {
        let approver = self.call().approver.as_ref().or(self.session().approver());
        // The user who paused changes wants to be asked, whatever the mode is.
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

    /// The error for a path whose existence policy hides.
    pub(crate) fn hides(&self, path: &RawPath) -> Option<Error> {
        let (place, missing) = self.session().workspace().deepest_existing(path).ok()?;
        let below = missing.iter().fold(place.path.clone(), |path, name| path.join(name));
        let place = Place { root: place.root, path: below };
        match self.decision(Access::Read, None, Some(&place), false) {
            Decision::Deny(reason) => {
                Some(self.denied(Access::Read, path, Some(&self.real(&place)), reason))
            }
            Decision::Allow(_) | Decision::Ask(_) => None,
        }
    }

    /// Whether an entry of a walk can be shown without asking.
    pub(crate) fn shows(
        &self,
        policy: &Policy,
        root: usize,
        below: &[u8],
        directory: bool,
    ) -> bool {
        // In a narrowed workspace the directories above its root count as well.
        if !self.session().workspace().is_narrowed() && policy.no_rule_can_match(below) {
            return true;
        }
        let real = self.real_root(root).join(OsStr::from_bytes(below));
        match policy.decide(Access::Read, None, Some(&real), directory) {
            Decision::Allow(_) => true,
            Decision::Deny(_) => false,
            Decision::Ask(reason) => {
                self.session().grants().cover_below(&real, &reason)
                    || self.grants().cover_below(&real, &reason)
            }
        }
    }

    /// Whether a place can be shown without asking.
    pub(crate) fn shows_place(&self, place: &Place, directory: bool) -> bool {
        self.shows(&self.session().policy(), place.root, place.path.as_bytes(), directory)
    }

    fn denied(&self, access: Access, path: &RawPath, real: Option<&Path>, reason: Reason) -> Error {
        self.note(access, path, real, "deny", reason.to_string());
        Error::Denied { path: path.clone(), access, denial: Denial::Policy(reason) }
    }

    fn note(
        &self,
        access: Access,
        path: &RawPath,
        real: Option<&Path>,
        decision: &'static str,
        why: String,
    ) {
        self.call().audit_trace().decided(access, Some(path.as_str()), real, decision, why);
    }

    /// A path as it was given, made absolute below the real path of the root that it names.
    fn given_path(&self, path: &RawPath) -> PathBuf {
        let workspace = self.session().workspace();
        let given = normalized(path.as_str(), workspace.base());
        let below = workspace.roots().enumerate().find_map(|(number, root)| {
            let below = given.strip_prefix(root).ok()?;
            Some(self.real_root(number).join(below))
        });
        below.unwrap_or(given)
    }

    fn real(&self, place: &Place) -> PathBuf {
        let bytes = self.session().workspace().real_path(place);
        PathBuf::from(OsStr::from_bytes(&bytes))
    }

    fn real_root(&self, number: usize) -> PathBuf {
        self.real(&Place { root: number, path: RelPath::root() })
    }
}

#[cfg(test)]
mod tests;
