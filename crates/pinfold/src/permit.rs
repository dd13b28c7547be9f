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
pub(crate) use tree::CheckedTree;

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

/// An approval that a call needs. It borrows nothing, so that the file can be released before the user is asked.
pub(crate) struct NeededApproval {
    /// The accesses that the user is asked about: one access, or several that are approved together.
    pub(crate) parts: Vec<ApprovalPart>,
    /// The proposed change, with the hash that an approval covers; `None` to read.
    pub(crate) change: Option<(Hash, Proposal)>,
}

/// One access that the user has to be asked about.
pub(crate) struct ApprovalPart {
    pub(crate) access: Access,
    pub(crate) path: RawPath,
    pub(crate) place: Place,
    pub(crate) reason: Reason,
}

impl NeededApproval {
    /// The approval that a read needs.
    fn about(request: &AccessRequest<'_>, reason: Reason) -> Self {
        Self { parts: vec![ApprovalPart::new(request, reason)], change: None }
    }
}

impl ApprovalPart {
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
        if access != Access::Read
            && place.is_some_and(|place| self.session().is_in_read_root(place))
        {
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
            let word = ApprovalAnswer::Once.audit_word();
            self.note(access, path, Some(&real), word, "the user was asked".into());
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
            let Some(needed) = self.read_approval(path, at, directory)? else {
                return Ok(found);
            };
            drop(found);
            self.request_approval(&needed)?;
        }
    }

    /// Asks the user, if necessary, whether what is at a place may be read.
    pub(crate) fn check_readable(
        &self,
        path: &RawPath,
        place: &Place,
        directory: bool,
    ) -> Result<(), Error> {
        while let Some(needed) = self.read_approval(path, place, directory)? {
            self.request_approval(&needed)?;
        }
        Ok(())
    }

    /// The approval that is needed before what is at a place may be read, if one is.
    pub(crate) fn read_approval(
        &self,
        path: &RawPath,
        place: &Place,
        directory: bool,
    ) -> Result<Option<NeededApproval>, Error> {
        let request = AccessRequest { access: Access::Read, path, place, directory };
        let Some(reason) = self.check_policy(&request)? else { return Ok(None) };
        let approved = self.is_approved(&request, None);
        Ok((!approved).then(|| NeededApproval::about(&request, reason)))
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
        let answer = self.answer(&request);
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
            ApprovalAnswer::Deferred => Denial::Deferred,
            ApprovalAnswer::Unavailable => {
                // An allow rule overrides neither an ask rule nor a pause.
                let allow = match reason {
                    Reason::Rule(_) | Reason::Paused => None,
                    _ => self.session().policy().allowing(access, &real),
                };
                Denial::NoApprover { reason: reason.clone(), allow }
            }
        };
        self.note(access, path, Some(&real), word, reason.to_string());
        // The call may have been cancelled while the user was asked.
        self.check_time()?;
        Err(Error::Denied { path: path.clone(), access, denial })
    }

    /// Notes that the user approved every part. While changes are paused, an approval covers only
    /// the change with this hash.
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

    /// Whether there is an approver, and the mode allows to ask.
    pub(crate) fn can_ask(&self) -> bool {
        !self.session().policy().asks_nobody()
            && (self.call().approver.is_some() || self.session().approver().is_some())
    }

    /// The user's answer. The time that it takes does not count towards the deadline: `worked` in `view.rs` subtracts it.
    /// A server that answers for a thread that hangs counts it once more, since it cannot ask the thread (`ApprovalTime` in
    /// `pinfold-mcp`).
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
mod tests {
    use crate::commit::CommitError;
    use crate::operations::Write;
    use crate::{ApprovalAnswer, ApprovalRequest, Approver, Mode, Operation as _, Settings};

    use super::*;

    #[derive(Debug)]
    struct Yes;

    impl Approver for Yes {
        fn ask(&self, _: &ApprovalRequest) -> ApprovalAnswer {
            ApprovalAnswer::Once
        }
    }

    #[test]
    fn a_write_that_is_planned_again_after_its_approval_evaluates_policy_once_for_each_access() {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = Settings::default();
        settings.permissions.mode = Mode::Ask;
        let session =
            crate::Session::with_settings([dir.path()], settings).unwrap().with_approver(Yes);
        let call = crate::CallOptions::default();
        let view = View::new(&session, &call);
        let commit = || {
            let (_, changes) = Write::new("a.txt", "text\n").plan(&view).unwrap();
            crate::Changes::commit(changes, &view)
        };
        assert!(matches!(commit(), Err(CommitError::Stale { .. })), "the user was asked");
        assert!(commit().is_ok());
        // Reading by the name as it was given, reading at the place that it leads to, and writing there.
        let evaluated: Vec<_> = {
            let decisions = view.decisions().0.lock().unwrap();
            decisions.iter().map(|((access, _, place, _), _)| (*access, place.is_some())).collect()
        };
        assert_eq!(evaluated, [(Access::Read, false), (Access::Read, true), (Access::Write, true)]);
    }
}
