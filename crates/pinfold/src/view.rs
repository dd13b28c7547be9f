//! Read access for operations: to the workspace through the fence, and to the call's options and deadline.
//!
//! Everything that is found here is permitted: by policy, or by the user where policy asks. Nothing here
//! writes.

mod tracked_file;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pinfold_confine::{
    Candidate, Deadline, DirectoryRemoval, Error as ConfineError, File, FilterDecision,
    IgnoreFiles, Kind, Lstat, Metadata, Place, RawPath, Relocation, RelocationError, Removal,
    Skipped, Target, TreeRemoval, Visibility, Visitor, Walk,
};

use crate::approval::Grants;
use crate::ledger::{Fingerprint, Freshness};
use crate::permit::{AccessRequest, Decisions};
use crate::{Access, CallOptions, Error, ReadRule, Session, limits};
pub(crate) use tracked_file::TrackedFile;

/// The time since `start`, less the time that the call waited for the user.
fn worked(start: Instant, waited: &AtomicU64) -> Duration {
    start.elapsed().saturating_sub(Duration::from_nanos(waited.load(Ordering::Relaxed)))
}

/// An operation's read access to the workspace, and its call. It is opaque outside of this crate.
#[derive(Debug)]
pub struct View<'s> {
    session: &'s Session,
    call: &'s CallOptions,
    start: Instant,
    /// How long the call has waited for the user, in nanoseconds.
    waited: Arc<AtomicU64>,
    /// What the user has approved for this call.
    grants: Grants,
    /// What policy has decided in this call.
    decisions: Decisions,
}

/// Which of the entries below its starts a walk shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// Whether hidden ones are.
    pub(crate) hidden: bool,
    /// Which ignore files are obeyed.
    pub(crate) ignore_files: IgnoreFiles,
}

impl From<bool> for Shown {
    /// Hidden entries or not, with the usual ignore files.
    fn from(hidden: bool) -> Self {
        Self { hidden, ignore_files: IgnoreFiles::USUAL }
    }
}

impl<'s> View<'s> {
    pub(crate) fn new(session: &'s Session, call: &'s CallOptions) -> Self {
        Self {
            session,
            call,
            start: Instant::now(),
            waited: Arc::default(),
            grants: Grants::default(),
            decisions: Decisions::default(),
        }
    }

    pub(crate) fn call(&self) -> &'s CallOptions {
        self.call
    }

    pub(crate) fn waited(&self) -> &AtomicU64 {
        &self.waited
    }

    pub(crate) fn grants(&self) -> &Grants {
        &self.grants
    }

    pub(crate) fn decisions(&self) -> &Decisions {
        &self.decisions
    }

    pub(crate) fn session(&self) -> &'s Session {
        self.session
    }

    /// The tool that makes the call.
    pub(crate) fn tool(&self) -> &str {
        &self.call.tool
    }

    /// Whether changes of this call are only described.
    pub(crate) fn dry_run(&self) -> bool {
        self.call.dry_run.unwrap_or(self.session.settings().dry_run)
    }

    /// The maximum size of an answer's text in bytes, unless the dialect sets one.
    pub(crate) fn output_bytes(&self) -> usize {
        self.session.settings().max_output_bytes.unwrap_or(limits::MAX_CLASSIC_OUTPUT_BYTES)
    }

    /// Opens a regular file.
    pub(crate) fn file(&self, path: &RawPath) -> Result<(Place, TrackedFile<'_>), Error> {
        let find =
            || self.session.workspace().file(path).map_err(|error| self.path_error(path, error));
        let (place, file) = match self.call.cached_file.take() {
            // Policy allowed it when it was opened.
            Some(cached) => cached?,
            None => self.readable(path, find, |(place, _)| (place, false))?,
        };
        Ok((place, TrackedFile::new(file, self)))
    }

    /// What a path names, without following a symlink in its last place.
    pub(crate) fn lstat(&self, path: &RawPath) -> Result<Lstat, Error> {
        let find =
            || self.session.workspace().lstat(path).map_err(|error| self.path_error(path, error));
        self.readable(path, find, |it| (&it.place, it.meta.kind == Kind::Directory))
    }

    /// What a path leads to, symlinks followed.
    pub(crate) fn stat(&self, path: &RawPath) -> Result<Lstat, Error> {
        let find =
            || self.session.workspace().stat(path).map_err(|error| self.path_error(path, error));
        self.readable(path, find, |it| (&it.place, it.meta.kind == Kind::Directory))
    }

    /// Finds a directory.
    pub(crate) fn directory(&self, path: &RawPath) -> Result<Place, Error> {
        let find = || {
            let place = self.session.workspace().directory(path);
            place.map_err(|error| match self.path_error(path, error) {
                Error::NotFound { path, near } => Error::DirectoryNotFound { path, near },
                other => other,
            })
        };
        self.readable(path, find, |place| (place, true))
    }

    /// The directories that a walk starts at: the one at a path, or without a path where relative paths
    /// start if that was set, else every root that is not inside another.
    pub(crate) fn starts(&self, path: Option<&RawPath>) -> Result<Vec<Place>, Error> {
        match path {
            Some(path) => Ok(vec![self.directory(path)?]),
            None if self.session.workspace().starts_within() => {
                Ok(vec![self.directory(&RawPath::from("."))?])
            }
            None => {
                let roots = self.session.workspace().outermost_roots();
                let roots = roots.map_err(|error| self.path_error(&RawPath::from("."), error))?;
                for root in &roots {
                    // Only for the question: the path as it is printed may not lead there.
                    let path = RawPath::from(self.session.absolute(root));
                    self.check_readable(&path, root, true)?;
                }
                Ok(roots)
            }
        }
    }

    /// Walks the trees below some directories, and returns the visitors. Of the entries that may not be
    /// shown, those that are `missed` are counted.
    pub(crate) fn walk<V: Visitor>(
        &self,
        starts: &[Place],
        depth: usize,
        shown: impl Into<Shown>,
        filter_decision: &(dyn Fn(&Candidate<'_>) -> FilterDecision + Sync),
        missed: &(dyn Fn(&Candidate<'_>) -> bool + Sync),
        new_visitor: impl Fn() -> V + Sync,
    ) -> Result<(Vec<V>, Skipped), Error> {
        let (visitors, skipped, _) =
            self.walk_watched(starts, depth, shown, filter_decision, missed, new_visitor)?;
        Ok((visitors, skipped))
    }

    /// As [`Self::walk`]. Also returns whether every directory of the walk is watched.
    pub(crate) fn walk_watched<V: Visitor>(
        &self,
        starts: &[Place],
        depth: usize,
        shown: impl Into<Shown>,
        filter_decision: &(dyn Fn(&Candidate<'_>) -> FilterDecision + Sync),
        missed: &(dyn Fn(&Candidate<'_>) -> bool + Sync),
        new_visitor: impl Fn() -> V + Sync,
    ) -> Result<(Vec<V>, Skipped, bool), Error> {
        let Shown { hidden, ignore_files } = shown.into();
        let deadline = self.deadline();
        let filter_decision = |candidate: &Candidate<'_>| {
            self.call.progress.count_entry();
            filter_decision(candidate)
        };
        let policy = self.session.policy();
        let visibility = |candidate: &Candidate<'_>| {
            let directory = candidate.kind == Kind::Directory;
            if self.shows(&policy, candidate.root, candidate.below_root(), directory) {
                Visibility::Visible
            } else if missed(candidate) {
                Visibility::Withheld
            } else {
                Visibility::Uncounted
            }
        };
        let walk = Walk {
            depth,
            hidden,
            filter_decision: &filter_decision,
            visibility: &visibility,
            deadline: &deadline,
            index: self.session.settings().index,
            ignore_files,
        };
        let walked = self.session.workspace().walk_watched(starts, &walk, new_visitor);
        walked.map_err(|error| match (error, starts) {
            (ConfineError::Denied, [start]) => {
                let path = RawPath::from(self.session.absolute(start));
                Error::DirectoryUnreadable { path }
            }
            (error, _) => self.path_error(&RawPath::from("."), error),
        })
    }

    /// Opens a file that a walk found.
    pub(crate) fn open_place(&self, place: &Place) -> Result<File, ConfineError> {
        self.session.workspace().open_place(place)
    }

    /// The metadata of an entry that a walk found, and where it points if it is a symlink.
    pub(crate) fn lstat_place(
        &self,
        place: &Place,
    ) -> Result<(Metadata, Option<Vec<u8>>), ConfineError> {
        self.session.workspace().lstat_place(place)
    }

    /// Finds the file or symlink to delete, and holds it. Refuses what policy denies to delete.
    pub(crate) fn removal(&self, path: &RawPath) -> Result<Removal, Error> {
        self.try_access(Access::Delete, path)?;
        let removal = self.session.workspace().removal(path, &self.deadline());
        let removal = removal.map_err(|error| self.path_error(path, error))?;
        self.check_change(Access::Delete, path, removal.place(), false)?;
        Ok(removal)
    }

    /// Finds the file to change, and holds it. Refuses what policy denies to change.
    pub(crate) fn target(&self, path: &RawPath) -> Result<Target, Error> {
        self.try_access(Access::Write, path)?;
        loop {
            let target = self.session.workspace().target(path, &self.deadline());
            let target = target.map_err(|error| self.target_error(path, error))?;
            // The old content is compared with the new one and shown: that is reading. Where reading
            // is denied, the answer does not reveal either that there is no file.
            let place = target.place().clone();
            let question = self.read_question(path, &place, false)?;
            self.asks_to_write(path, &target)?;
            match question.filter(|_| target.meta().is_some()) {
                None => return Ok(target),
                Some(question) => {
                    // Other calls must not wait for the file while the user decides.
                    drop(target);
                    self.request_approval(&question)?;
                }
            }
        }
    }

    /// Finds what is to be moved, and the place that it goes to, and holds both. Refuses what policy denies.
    pub(crate) fn relocation(&self, from: &RawPath, to: &RawPath) -> Result<Relocation, Error> {
        self.try_access(Access::Delete, from)?;
        self.try_access(Access::Write, to)?;
        let relocation = self.session.workspace().relocation(from, to, &self.deadline());
        let relocation = relocation.map_err(|error| match error {
            RelocationError::Source(error) => self.path_error(from, error),
            RelocationError::Destination(error) => self.target_error(to, error),
        })?;
        let directory = relocation.meta().kind == Kind::Directory;
        self.check_change(Access::Delete, from, relocation.from(), directory)?;
        self.check_change(Access::Write, to, relocation.to(), directory)?;
        Ok(relocation)
    }

    /// Finds the place of a directory that is to be created, and holds it. Refuses what policy denies to change.
    pub(crate) fn directory_target(&self, path: &RawPath) -> Result<Target, Error> {
        self.try_access(Access::Write, path)?;
        let target = self.session.workspace().directory_target(path, &self.deadline());
        let target = target.map_err(|error| self.target_error(path, error))?;
        self.check_change(Access::Write, path, target.place(), true)?;
        Ok(target)
    }

    /// Finds an empty directory that is to be removed, and holds it. Refuses what policy denies to delete.
    pub(crate) fn directory_removal(&self, path: &RawPath) -> Result<DirectoryRemoval, Error> {
        self.try_access(Access::Delete, path)?;
        let removal = self.session.workspace().directory_removal(path, &self.deadline());
        let removal = removal.map_err(|error| self.path_error(path, error))?;
        self.check_change(Access::Delete, path, removal.place(), true)?;
        Ok(removal)
    }

    /// Finds a directory that is to be removed with all that is in it, and holds it. Refuses what policy denies to
    /// delete, of the directory or in it.
    pub(crate) fn tree_removal(
        &self,
        path: &RawPath,
        max_entries: usize,
    ) -> Result<TreeRemoval, Error> {
        self.try_access(Access::Delete, path)?;
        let removal = self.session.workspace().tree_removal(path, max_entries, &self.deadline());
        let removal = removal.map_err(|error| match error {
            ConfineError::TooLarge => {
                Error::TooManyEntries { path: path.clone(), limit: max_entries }
            }
            other => self.path_error(path, other),
        })?;
        self.check_change(Access::Delete, path, removal.place(), true)?;
        self.check_tree((path, removal.place()), None, max_entries)?;
        Ok(removal)
    }

    /// Notes the access for the audit log, and refuses a path that policy denies by its name.
    fn try_access(&self, access: Access, path: &RawPath) -> Result<(), Error> {
        self.call.audit_trace().tried(access, Some(path.as_str()));
        self.check_name(path)
    }

    /// Refuses a change that policy denies, or of what it denies to read. Only denials count here: the content is
    /// not read, and `commit` asks the user.
    fn check_change(
        &self,
        access: Access,
        path: &RawPath,
        place: &Place,
        directory: bool,
    ) -> Result<(), Error> {
        for access in [Access::Read, access] {
            self.check_policy(&AccessRequest { access, path, place, directory })?;
        }
        Ok(())
    }

    /// Refuses a path with directories above it that do not exist. `missing` is their number.
    pub(crate) fn check_parents(
        &self,
        path: &RawPath,
        place: &Place,
        missing: usize,
    ) -> Result<(), Error> {
        if missing == 0 {
            return Ok(());
        }
        let mut parent = place.clone();
        for _ in 0..missing {
            parent.path = parent.path.split().map(|(above, _)| above).unwrap_or_default();
        }
        let parent = self.session.relative(&parent);
        Err(Error::ParentMissing { path: path.clone(), parent })
    }

    /// Whether the user will be shown a change of a target: to approve it, or in a dry run.
    pub(crate) fn describes_change(&self, path: &RawPath, target: &Target) -> Result<bool, Error> {
        Ok(self.dry_run() || self.asks_to_write(path, target)?)
    }

    fn asks_to_write(&self, path: &RawPath, target: &Target) -> Result<bool, Error> {
        let place = target.place();
        let request = AccessRequest { access: Access::Write, path, place, directory: false };
        Ok(self.check_policy(&request)?.is_some())
    }

    /// Whether a file that is to be changed is as the session last read or wrote it. The one place
    /// where it is decided whether a file was read: if it has to be and was not, it is `NotRead`.
    pub(crate) fn freshness(
        &self,
        path: &RawPath,
        target: &Target,
        rule: ReadRule,
    ) -> Result<Freshness, Error> {
        let (ReadRule::Require, Some(found)) = (rule, target.meta()) else {
            return Ok(Freshness::Current);
        };
        let Some(fingerprint) = self.session.last_fingerprint(target.place()) else {
            let names_setting = self.session.may_be_of_one_call();
            return Err(Error::NotRead { path: path.clone(), names_setting });
        };
        if fingerprint.meta.is_some_and(|meta| meta.proven_unchanged(found)) {
            return Ok(Freshness::Current);
        }
        let hash = target.hash().map_err(|error| self.path_error(path, error))?;
        let same = hash == Some(fingerprint.hash);
        Ok(if same { Freshness::Current } else { Freshness::Changed(fingerprint) })
    }

    /// Notes that a target holds exactly `content`, because it was compared or because what changed is shown.
    pub(crate) fn record_content(&self, target: &Target, content: &[u8]) {
        let fingerprint = Fingerprint::of(content, blake3::hash(content), target.meta().copied());
        self.session.record_write(target.place(), fingerprint);
    }

    /// Whether the session has read a file, and its metadata proves that it did not change since.
    pub(crate) fn is_unchanged_since_read(&self, place: &Place, now: &Metadata) -> bool {
        let fingerprint = self.session.last_fingerprint(place);
        fingerprint
            .and_then(|fingerprint| fingerprint.meta)
            .is_some_and(|then| then.proven_unchanged(now))
    }

    /// The call's deadline, which a cancellation ends too.
    pub(crate) fn deadline(&self) -> Deadline {
        let (cancel, start, waited) = (self.call.cancel.clone(), self.start, self.waited.clone());
        let longest = Duration::from_secs(self.session.settings().deadline_seconds);
        Deadline::lasting_while(move || !cancel.is_cancelled() && worked(start, &waited) <= longest)
    }

    /// Fails if the call was cancelled or its deadline has passed.
    pub(crate) fn check_time(&self) -> Result<(), Error> {
        let seconds = self.session.settings().deadline_seconds;
        if self.call.cancel.is_cancelled() {
            Err(Error::Cancelled)
        } else if worked(self.start, &self.waited) > Duration::from_secs(seconds) {
            Err(Error::Timeout { seconds })
        } else {
            Ok(())
        }
    }
}
