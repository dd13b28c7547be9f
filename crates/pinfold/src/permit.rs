//! Permission for one access to one place. Policy decides, or asks the user.
//!
//! This file evaluates policy, and `permit/asking.rs` asks the user. `View` checks reads, asks the user about them, and
//! refuses denied writes early. `commit` checks writes again and asks the user to approve the diff. So one call can ask
//! twice. A call evaluates policy once for each access to each path. The file may change while the user decides, so the
//! caller opens it again after an approval.

mod asking;
mod tree;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use blake3::Hash;
use pinfold_confine::{Name, Place, RawPath, RelPath};

use crate::policy::{Decision, Policy, normalized};
use crate::{Access, ApprovalAnswer, Denial, Error, Reason, View};

pub(crate) use self::asking::{ApprovalPart, NeededApproval};
pub(crate) use self::tree::CheckedTree;

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

/// The policy's decisions in one call. They depend only on the subject.
#[derive(Debug, Default)]
pub(crate) struct Decisions(Mutex<Vec<(Subject, Decision)>>);

/// An access, the given path, its place, and whether the place is a directory. The path or the place may be unknown.
type Subject = (Access, Option<RawPath>, Option<Place>, bool);

impl View<'_> {
    /// The policy's decision on an access to a path, both as given and as resolved.
    fn decision(
        &self,
        access: Access,
        path: Option<&RawPath>,
        place: Option<&Place>,
        directory: bool,
    ) -> Decision {
        if access != Access::Read && place.is_some_and(|place| self.session().is_read_only(place)) {
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

    /// Refuses a path that policy denies by its name, whether or not it exists.
    pub(crate) fn check_name(&self, path: &RawPath) -> Result<(), Error> {
        self.call().audit_trace().record_attempt(Access::Read, Some(path.as_str()));
        match self.decision(Access::Read, Some(path), None, false) {
            Decision::Deny(reason) => Err(self.denied(Access::Read, path, None, reason)),
            Decision::Allow(_) | Decision::Ask(_) => Ok(()),
        }
    }

    /// Fails if policy denies an access. Returns the reason if it needs approval.
    pub(crate) fn check_policy(
        &self,
        request: &AccessRequest<'_>,
    ) -> Result<Option<Reason>, Error> {
        let AccessRequest { access, path, place, directory } = *request;
        match self.decision(access, Some(path), Some(place), directory) {
            Decision::Allow(_) if self.is_paused(access) => Ok(Some(Reason::Paused)),
            Decision::Allow(reason) => {
                // Most sessions have no audit log.
                if self.call().audit_trace().is_recording() {
                    self.note(access, path, Some(&self.real(place)), "allow", reason.to_string());
                }
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

    /// Whether the user has approved an access. `change_hash` is the hash of the change. While changes are paused, an
    /// approval for the session does not count.
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

    /// Finds something with `find`, and returns it once it may be read. `place` returns its place, and whether it is
    /// a directory. After an approval it is found again, since it may have changed meanwhile.
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

    /// Asks the user, if policy says so, whether a place may be read.
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

    /// The approval that is needed to read a place, if any.
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

    /// Fails if the backup of a file may not be read. `path` is the real path that the file had.
    pub(crate) fn check_backup_readable(&self, path: &RawPath) -> Result<(), Error> {
        let none = || Error::NotFound { path: path.clone(), near: Vec::new() };
        let place = self.place_of_real_path(path).ok_or_else(none)?;
        self.check_readable(path, &place, false)
    }

    /// The place of a real path. Nothing needs to be there.
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

    /// Whether an entry of a walk can be shown without approval.
    pub(crate) fn shows(
        &self,
        policy: &Policy,
        root: usize,
        below: &[u8],
        directory: bool,
    ) -> bool {
        // In a narrowed workspace, rules may match directories above its root.
        if !self.session().workspace().is_narrowed()
            && policy.no_rule_can_match(Access::Read, below)
        {
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

    /// Whether a place can be shown without approval.
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
        self.call().audit_trace().record_decision(access, Some(path.as_str()), real, decision, why);
    }

    /// A path as it was given, made absolute below the real path of its root.
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
        self.session().real_path(place)
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
        assert!(matches!(commit(), Err(CommitError::Approved { .. })), "the user was asked");
        assert!(commit().is_ok());
        // Reading the given name, reading the place that it leads to, and writing there.
        let evaluated: Vec<_> = {
            let decisions = view.decisions().0.lock().unwrap();
            decisions.iter().map(|((access, _, place, _), _)| (*access, place.is_some())).collect()
        };
        assert_eq!(evaluated, [(Access::Read, false), (Access::Read, true), (Access::Write, true)]);
    }
}
