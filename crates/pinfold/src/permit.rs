//! Whether a call may do something to a path, and who is asked if that is not clear.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use blake3::Hash;
use pinfold_confine::{Name, Place, RawPath, RelPath};

use crate::policy::{Decision, as_spelled};
use crate::{Access, ApprovalAnswer, ApprovalRequest, Denial, Error, Reason, View};

/// Whether a call can go on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Permit {
    Yes,
    /// A person was asked and said yes, which took its time: look again.
    LookAgain,
}

/// What a call wants to do to a place.
pub(crate) struct AccessRequest<'w> {
    pub(crate) access: Access,
    /// The path as it was given.
    pub(crate) path: &'w RawPath,
    /// Where it leads.
    pub(crate) place: &'w Place,
    pub(crate) directory: bool,
}

/// What a person is shown of it.
#[derive(Default)]
pub(crate) struct Shown {
    pub(crate) diff: Option<String>,
    /// What a yes is good for: this and nothing else.
    pub(crate) subject: Option<Hash>,
}

impl View<'_> {
    /// Whether a path may be looked at, as far as its spelling says. What is refused by its name is
    /// refused whether it is there or not.
    pub(crate) fn may_look_for(&self, path: &RawPath) -> Result<(), Error> {
        self.call().audit_trace.tried(Access::Read, Some(path.as_str()));
        let given = self.spelled(path);
        let decision = self.session().policy().decide(Access::Read, Some(&given), None, false);
        match decision {
            Decision::Deny(reason) => Err(self.refused(Access::Read, path, None, reason)),
            Decision::Allow(_) | Decision::Ask(_) => Ok(()),
        }
    }

    /// Whether what is at a place may be read.
    pub(crate) fn may_read(
        &self,
        path: &RawPath,
        place: &Place,
        directory: bool,
    ) -> Result<Permit, Error> {
        let request = AccessRequest { access: Access::Read, path, place, directory };
        self.permit(&request, Shown::default)
    }

    /// Whether what was kept of a file may be read. Its path is the real one that it had, wherever that leads by now.
    pub(crate) fn may_read_kept(&self, path: &RawPath) -> Result<(), Error> {
        let none = || Error::NotFound { path: path.clone(), near: Vec::new() };
        let place = self.place_then(path).ok_or_else(none)?;
        while self.may_read(path, &place, false)? == Permit::LookAgain {}
        Ok(())
    }

    /// The place that a real path names, whatever is there.
    fn place_then(&self, path: &RawPath) -> Option<Place> {
        let roots = self.session().real_roots().enumerate();
        let mut below = roots.filter_map(|(root, real)| {
            Some((root, Path::new(path.as_str()).strip_prefix(real).ok()?))
        });
        let (root, below) = below.next()?;
        let mut names = below.components().map(|name| Name::parse(name.as_os_str().as_bytes()));
        let path = names.try_fold(RelPath::root(), |path, name| Some(path.join(&name.ok()?)))?;
        Some(Place { root, path })
    }

    /// Whether a request may come true. What a person is shown is worked out if one has to be asked.
    pub(crate) fn permit(
        &self,
        request: &AccessRequest<'_>,
        shown: impl FnOnce() -> Shown,
    ) -> Result<Permit, Error> {
        let AccessRequest { access, path, place, .. } = *request;
        let Some(reason) = self.asks_for(request)? else { return Ok(Permit::Yes) };
        let real = self.real(place);
        let shown = shown();
        if self.granted(request, shown.subject) {
            return Ok(Permit::Yes);
        }
        let mut whole = blake3::Hasher::new();
        for part in [self.tool(), access.name(), path.as_str(), &reason.to_string()] {
            whole.update(part.as_bytes()).update(b"\0");
        }
        whole.update(real.as_os_str().as_bytes()).update(b"\0");
        whole.update(shown.subject.as_ref().map_or(&[][..], |subject| subject.as_bytes()));
        let question = ApprovalRequest {
            tool: self.tool().to_owned(),
            access,
            given: path.as_str().to_owned(),
            path: real.clone(),
            reason: reason.clone(),
            diff: shown.diff,
            subject: whole.finalize(),
        };
        let denial = match self.ask(&question) {
            ApprovalAnswer::Once => {
                self.grants().add(access, real, reason, shown.subject);
                return Ok(Permit::LookAgain);
            }
            ApprovalAnswer::Session => {
                self.session().grants().add(access, real, reason, None);
                return Ok(Permit::LookAgain);
            }
            ApprovalAnswer::No(words) => {
                self.note(access, path, Some(&real), "no", reason.to_string());
                Denial::Person(words)
            }
            ApprovalAnswer::Later => {
                self.note(access, path, Some(&real), "later", reason.to_string());
                Denial::Later
            }
            ApprovalAnswer::Nobody => {
                self.note(access, path, Some(&real), "nobody", reason.to_string());
                // What a rule asks about, no other rule allows.
                let allow = match reason {
                    Reason::Rule(_) => None,
                    _ => self.session().policy().allowing(access, &real),
                };
                Denial::Nobody { reason, allow }
            }
        };
        // Whoever ended the call did so while the person was asked.
        self.check_time()?;
        Err(Error::Denied { path: path.clone(), access, denial })
    }

    /// Whether a person has allowed a request, having been shown just this.
    pub(crate) fn granted(&self, request: &AccessRequest<'_>, subject: Option<Hash>) -> bool {
        let AccessRequest { access, path, place, .. } = *request;
        let real = self.real(place);
        let granted = self.session().grants().cover(access, &real, None)
            || self.grants().cover(access, &real, subject);
        if granted {
            self.note(access, path, Some(&real), "yes", "a person was asked".into());
        }
        granted
    }

    /// The refusal for something of which one may not know whether it is there, or what it is.
    pub(crate) fn hides(&self, path: &RawPath) -> Option<Error> {
        let (place, missing) = self.session().workspace().deepest_existing(path).ok()?;
        let path_of = missing.iter().fold(place.path.clone(), |path, name| path.join(name));
        let real = self.real(&Place { root: place.root, path: path_of });
        match self.session().policy().decide(Access::Read, None, Some(&real), false) {
            Decision::Deny(reason) => Some(self.refused(Access::Read, path, Some(&real), reason)),
            Decision::Allow(_) | Decision::Ask(_) => None,
        }
    }

    /// Whether a person has to be asked about a request, which is not refused.
    pub(crate) fn must_ask(&self, request: &AccessRequest<'_>) -> Result<bool, Error> {
        Ok(self.asks_for(request)?.is_some())
    }

    /// What a person has to be asked about a request for, if so. It is not refused.
    fn asks_for(&self, request: &AccessRequest<'_>) -> Result<Option<Reason>, Error> {
        let AccessRequest { access, path, place, directory } = *request;
        let (given, real) = (self.spelled(path), self.real(place));
        match self.session().policy().decide(access, Some(&given), Some(&real), directory) {
            Decision::Allow(reason) => {
                self.note(access, path, Some(&real), "allow", reason.to_string());
                Ok(None)
            }
            Decision::Deny(reason) => Err(self.refused(access, path, Some(&real), reason)),
            Decision::Ask(reason) => Ok(Some(reason)),
        }
    }

    /// Whether somebody can be asked at all.
    pub(crate) fn can_ask(&self) -> bool {
        !self.session().policy().asks_nobody()
            && (self.call().approver.is_some() || self.session().approver().is_some())
    }

    fn ask(&self, question: &ApprovalRequest) -> ApprovalAnswer {
        let approver = self.call().approver.as_ref().or(self.session().approver());
        let Some(approver) = approver.filter(|_| self.can_ask()) else {
            return ApprovalAnswer::Nobody;
        };
        let begin = Instant::now();
        let verdict = approver.ask(question);
        let waited = begin.elapsed().as_nanos().try_into().unwrap_or(u64::MAX);
        self.waited().fetch_add(waited, Ordering::Relaxed);
        verdict
    }

    /// Whether what was met on a walk can be shown without asking.
    pub(crate) fn shows(&self, root: usize, below: &[u8], directory: bool) -> bool {
        let policy = self.session().policy();
        // In a part of the workspace, what is above it counts as well.
        if !self.session().workspace().is_narrowed() && policy.surely_shows(below) {
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
        self.shows(place.root, place.path.as_bytes(), directory)
    }

    fn refused(
        &self,
        access: Access,
        path: &RawPath,
        real: Option<&Path>,
        reason: Reason,
    ) -> Error {
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
        self.call().audit_trace.decided(access, Some(path.as_str()), real, decision, why);
    }

    /// A path as it was spelled, below the real path of the root that it names.
    fn spelled(&self, path: &RawPath) -> PathBuf {
        let spelled = as_spelled(path.as_str(), self.session().workspace().base());
        let workspace = self.session().workspace();
        let below = workspace.roots().enumerate().find_map(|(number, root)| {
            let below = spelled.strip_prefix(root).ok()?;
            Some(self.real_root(number).join(below))
        });
        below.unwrap_or(spelled)
    }

    fn real(&self, place: &Place) -> PathBuf {
        path_of(&self.session().workspace().real_path(place))
    }

    fn real_root(&self, number: usize) -> PathBuf {
        let root = Place { root: number, path: RelPath::root() };
        self.real(&root)
    }
}

fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}
