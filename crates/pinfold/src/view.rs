//! Read access for operations: to the workspace through the fence, and to the call's options and deadline.
//!
//! Everything that a view returns is permitted by policy or by the user. A view never writes. Its other methods are in
//! `view/change_targets.rs` (the files to change), `permit.rs` (policy) and `permit/asking.rs` (the user's approval).

mod change_targets;
mod tracked_file;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pinfold_confine::{
    Candidate, Deadline, Error as ConfineError, File, FilterDecision, IgnoreFiles, IndexMode, Kind,
    Metadata, Place, RawPath, Skipped, Stat, Target, Visibility, Visitor, Walk,
};
use pinfold_text::LineHashes;

use crate::approval::Grants;
use crate::ledger::{Fingerprint, Freshness};
use crate::memory_budget::{
    AnswerMemory, DeadlinePassed, LargePermit, reserve_edits, reserve_file, reserve_pattern,
};
use crate::permit::{AccessRequest, Decisions};
use crate::{Access, CallOptions, Error, ReadBeforeWrite, Session, limits};
pub(crate) use tracked_file::TrackedFile;

/// The time since `start`, without the time that the call waited for the user.
fn working_time(start: Instant, waited: &AtomicU64) -> Duration {
    start.elapsed().saturating_sub(Duration::from_nanos(waited.load(Ordering::Relaxed)))
}

/// An operation's read access to the workspace and to its call. It is opaque outside this crate.
#[derive(Debug)]
pub struct View<'s> {
    session: &'s Session,
    call: &'s CallOptions,
    start: Instant,
    /// How long the call has waited for the user, in nanoseconds.
    waited: Arc<AtomicU64>,
    /// The approvals of the user for this call.
    grants: Grants,
    /// The policy's decisions in this call.
    decisions: Decisions,
    /// Bytes of the large files that were read to show their content.
    shown_bytes: AtomicU64,
}

/// Which entries a walk visits.
#[derive(Clone, Copy)]
pub(crate) struct WalkOptions<'w> {
    /// How many levels below its starts it visits.
    pub(crate) depth: usize,
    /// Whether it visits hidden entries.
    pub(crate) hidden: bool,
    /// Which ignore files are obeyed.
    pub(crate) ignore_files: IgnoreFiles,
    /// Whether the tree is watched from now on: see [`View::watch_later`].
    pub(crate) watch: bool,
    /// Which entries the operation includes or excludes.
    pub(crate) filter: &'w (dyn Fn(&Candidate<'_>) -> FilterDecision + Sync),
    /// Whether an entry is counted if policy withholds it.
    pub(crate) counts_withheld: &'w (dyn Fn(&Candidate<'_>) -> bool + Sync),
}

impl<'w> WalkOptions<'w> {
    /// Visits all levels, and no hidden entries. Obeys the default ignore files, and counts all entries that policy
    /// withholds.
    pub(crate) fn new(filter: &'w (dyn Fn(&Candidate<'_>) -> FilterDecision + Sync)) -> Self {
        Self {
            depth: usize::MAX,
            hidden: false,
            ignore_files: IgnoreFiles::STANDARD,
            watch: true,
            filter,
            counts_withheld: &|_| true,
        }
    }
}

/// The result of a walk.
#[derive(Debug)]
pub(crate) struct Walked<V> {
    pub(crate) visitors: Vec<V>,
    pub(crate) skipped: Skipped,
    /// Whether every directory of the walk is watched.
    pub(crate) all_watched: bool,
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
            shown_bytes: AtomicU64::new(0),
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

    /// Counts the bytes of a file that is shown. Returns those of all of them.
    pub(crate) fn show_bytes(&self, bytes: u64) -> u64 {
        self.shown_bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes)
    }

    pub(crate) fn session(&self) -> &'s Session {
        self.session
    }

    /// The tool that makes the call.
    pub(crate) fn tool(&self) -> &str {
        &self.call.tool
    }

    /// Whether this call is a dry run.
    pub(crate) fn dry_run(&self) -> bool {
        self.call.dry_run.unwrap_or(self.session.settings().dry_run)
    }

    /// The maximum size of an answer's text in bytes, unless the dialect sets one.
    pub(crate) fn max_output_bytes(&self) -> usize {
        self.session.settings().max_output_bytes.unwrap_or(limits::DEFAULT_MAX_OUTPUT_BYTES)
    }

    /// Opens a regular file.
    pub(crate) fn file(&self, path: &RawPath) -> Result<(Place, TrackedFile<'_>), Error> {
        let find =
            || self.session.workspace().file(path).map_err(|error| self.path_error(path, error));
        let (place, file) = match &self.call.cached_file {
            // Policy allowed the read when the file was opened.
            Some(cached) => cached.take()?,
            None => self.readable(path, find, |(place, _)| (place, false))?,
        };
        let is_new = !self.session.is_read(&place, file.meta());
        Ok((place, TrackedFile::new(file, is_new, self)))
    }

    /// The metadata at a path. A symlink in the last component is not followed.
    pub(crate) fn lstat(&self, path: &RawPath) -> Result<Stat, Error> {
        let find =
            || self.session.workspace().lstat(path).map_err(|error| self.path_error(path, error));
        self.readable(path, find, |it| (&it.place, it.meta.kind == Kind::Directory))
    }

    /// The metadata at a path. Symlinks are followed.
    pub(crate) fn stat(&self, path: &RawPath) -> Result<Stat, Error> {
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

    /// The directories that a walk starts at: the one at `path`. Without a path, it is the start of relative paths if
    /// that is set, or else every root that is not inside another.
    pub(crate) fn walk_starts(&self, path: Option<&RawPath>) -> Result<Vec<Place>, Error> {
        match path {
            Some(path) => Ok(vec![self.directory(path)?]),
            None if self.session.workspace().starts_within() => {
                Ok(vec![self.directory(&RawPath::from("."))?])
            }
            None => {
                let roots = self.session.workspace().outermost_roots();
                let roots = roots.map_err(|error| self.path_error(&RawPath::from("."), error))?;
                for root in &roots {
                    // The path is used only for the approval request, since a printed path may not lead there.
                    let path = RawPath::from(self.session.absolute(root));
                    self.check_readable(&path, root, true)?;
                }
                Ok(roots)
            }
        }
    }

    /// Walks the trees below some directories.
    pub(crate) fn walk<V: Visitor>(
        &self,
        starts: &[Place],
        options: WalkOptions<'_>,
        new_visitor: impl Fn() -> V + Sync,
    ) -> Result<Walked<V>, Error> {
        let WalkOptions { depth, hidden, ignore_files, watch, filter, counts_withheld } = options;
        let deadline = self.deadline();
        let filter_decision = |candidate: &Candidate<'_>| {
            self.call.progress.count_entry();
            filter(candidate)
        };
        let policy = self.session.policy();
        let visibility = |candidate: &Candidate<'_>| {
            let directory = candidate.kind == Kind::Directory;
            if self.shows(&policy, candidate.root, candidate.below_root(), directory) {
                Visibility::Visible
            } else if counts_withheld(candidate) {
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
            watch,
            ignore_files,
        };
        let walked = self.session.workspace().walk_watched(starts, &walk, new_visitor);
        let walked = walked.map(|(visitors, skipped, all_watched)| Walked {
            visitors,
            skipped,
            all_watched,
        });
        walked.map_err(|error| match (error, starts) {
            (ConfineError::Denied, [start]) => {
                let path = RawPath::from(self.session.absolute(start));
                Error::DirectoryUnreadable { path }
            }
            (error, _) => self.path_error(&RawPath::from("."), error),
        })
    }

    /// Whether nothing is cached of the trees of the roots that `starts` are in. A first walk does not watch them, which
    /// takes longer than some searches.
    pub(crate) fn is_first_walk(&self, starts: &[Place]) -> bool {
        let trees = self.session.workspace().tree_summaries();
        starts.iter().all(|start| trees[start.root].entries == 0)
    }

    /// Watches the trees below `starts` in the background, after their first walk.
    pub(crate) fn watch_later(&self, starts: &[Place]) {
        let workspace = self.session.shared_workspace();
        // In a narrowed workspace, rules may match directories above its root.
        if self.session.settings().index == IndexMode::Auto && !workspace.is_narrowed() {
            let policy = self.session.policy();
            workspace.watch_in_background(starts, move |candidate| {
                policy.no_rule_can_match(Access::Read, candidate.below_root())
            });
        }
    }

    /// Opens a file that a walk found.
    pub(crate) fn open_place(&self, place: &Place) -> Result<File, ConfineError> {
        self.session.workspace().open_place(place)
    }

    /// The metadata of an entry that a walk found, and the target of a symlink.
    pub(crate) fn lstat_place(
        &self,
        place: &Place,
    ) -> Result<(Metadata, Option<Vec<u8>>), ConfineError> {
        self.session.workspace().lstat_place(place)
    }

    /// Whether the user sees a change of a target: to approve it, or in a dry run.
    pub(crate) fn describes_change(&self, path: &RawPath, target: &Target) -> Result<bool, Error> {
        Ok(self.dry_run() || self.needs_write_approval(path, target)?)
    }

    /// Whether a write needs the user's approval. Fails if policy denies it.
    fn needs_write_approval(&self, path: &RawPath, target: &Target) -> Result<bool, Error> {
        let place = target.place();
        let request = AccessRequest { access: Access::Write, path, place, directory: false };
        Ok(self.check_policy(&request)?.is_some())
    }

    /// Whether the file to change is still as the session last read or wrote it. Only this function decides whether a
    /// file was read. Fails with `NotRead` if it had to be read and was not.
    pub(crate) fn freshness(
        &self,
        path: &RawPath,
        target: &Target,
        rule: ReadBeforeWrite,
    ) -> Result<Freshness, Error> {
        let (ReadBeforeWrite::Require, Some(found)) = (rule, target.meta()) else {
            return Ok(Freshness::Current);
        };
        let Some(fingerprint) = self.session.last_fingerprint(target.place()) else {
            let names_setting = self.session.may_be_session_per_call();
            return Err(Error::NotRead { path: path.clone(), names_setting });
        };
        if fingerprint.meta.is_some_and(|meta| meta.proven_unchanged(found)) {
            return Ok(Freshness::Current);
        }
        let hash = target.hash().map_err(|error| self.path_error(path, error))?;
        let same = hash == Some(fingerprint.hash);
        Ok(if same { Freshness::Current } else { Freshness::Changed(fingerprint) })
    }

    /// The hashes of a target's lines, if its content was read and the ledger has them.
    pub(crate) fn lines_before(&self, target: &Target) -> Option<LineHashes> {
        let known = self.session.last_fingerprint(target.place())?;
        known.lines.filter(|_| target.hash().ok().flatten() == Some(known.hash))
    }

    /// Records that a target has exactly this content, because it was compared or because the answer shows all
    /// changes.
    pub(crate) fn record_content(&self, target: &Target, content: &[u8]) {
        let fingerprint = Fingerprint::of(content, blake3::hash(content), target.meta().copied());
        self.session.record_write(target.place(), fingerprint);
    }

    /// The call's deadline. A cancellation ends it, too.
    pub(crate) fn deadline(&self) -> Deadline {
        let (cancel, start, waited) = (self.call.cancel.clone(), self.start, self.waited.clone());
        let longest = Duration::from_secs(self.session.settings().deadline_seconds);
        Deadline::lasting_while(move || {
            !cancel.is_cancelled() && working_time(start, &waited) <= longest
        })
    }

    /// Waits for the memory of a file. The permit releases it on drop.
    pub(crate) fn reserve_file(&self, bytes: u64) -> Result<LargePermit, Error> {
        reserve_file(bytes, &self.deadline()).map_err(|DeadlinePassed| self.waited_too_long())
    }

    /// Waits for the memory of a compiled pattern. The permit releases it on drop.
    pub(crate) fn reserve_pattern(&self, bytes: u64) -> Result<LargePermit, Error> {
        reserve_pattern(bytes, &self.deadline()).map_err(|DeadlinePassed| self.waited_too_long())
    }

    /// Waits for the memory to edit these files. Refuses several that are too large together.
    pub(crate) fn reserve_edits(&self, files: &[&RawPath]) -> Result<LargePermit, Error> {
        // What is wrong with a path is reported when the change is planned.
        let size =
            |path: &&RawPath| self.session.workspace().stat(path).map_or(0, |it| it.meta.len);
        let bytes = files.iter().map(size).sum();
        if files.len() > 1 && bytes > limits::MAX_SET_BYTES {
            let max = limits::MAX_SET_BYTES;
            return Err(Error::InvalidArgument(format!(
                "the edited files have {bytes} bytes together, and {max} can be edited at once: edit fewer files in one call"
            )));
        }
        reserve_edits(bytes, &self.deadline()).map_err(|DeadlinePassed| self.waited_too_long())
    }

    /// Waits for the memory of an answer that contains a file of this size. It is released when the result was dropped
    /// and the answer is sent.
    pub(crate) fn reserve_answer(&self, file_bytes: u64) -> Result<AnswerMemory, Error> {
        let memory = self.call.answer_memory.clone().unwrap_or_default();
        let reserved = memory.reserve(file_bytes, &self.deadline());
        reserved.map_err(|DeadlinePassed| self.waited_too_long()).map(|()| memory)
    }

    fn waited_too_long(&self) -> Error {
        let seconds = self.session.settings().deadline_seconds;
        self.check_time().err().unwrap_or(Error::Timeout { seconds })
    }

    /// Fails if the call was cancelled or its deadline has passed.
    pub(crate) fn check_time(&self) -> Result<(), Error> {
        let seconds = self.session.settings().deadline_seconds;
        if self.call.cancel.is_cancelled() {
            Err(Error::Cancelled)
        } else if self.deadline().has_passed() {
            Err(Error::Timeout { seconds })
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use pinfold_confine::RelPath;

    use super::*;
    use crate::operations::Search;

    #[test]
    fn the_first_walk_of_a_root_is_one_even_if_another_root_was_walked() {
        let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let session = Session::open(dirs.each_ref().map(tempfile::TempDir::path)).unwrap();
        let write = |dir: &tempfile::TempDir| {
            let path = RawPath::from(dir.path().join("a.txt").to_string_lossy());
            session.perform(&crate::operations::Write::new(path, "text\n")).unwrap();
        };
        dirs.iter().for_each(write);
        let first = RawPath::from(dirs[0].path().to_string_lossy());
        session.perform(&Search::new("text").with_path(Some(first))).unwrap();
        let call = CallOptions::default();
        let view = View::new(&session, &call);
        let is_first = |root| view.is_first_walk(&[Place { root, path: RelPath::root() }]);
        assert_eq!([0, 1].map(is_first), [false, true]);
    }
}
