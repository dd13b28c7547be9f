//! Walking a tree by directory handles, on several threads.
//!
//! Every directory is opened below its root without following symlinks, and its entries are reached by
//! single names on its handle: a directory that is swapped for a symlink does not lead the walk out.
//! Symlinks are shown and never entered, so there are no circles.

mod entry;
mod in_order;
mod queue;
mod worker;

use std::sync::Arc;
use std::thread;

use rustix::fs::OFlags;

pub use entry::{Candidate, FileId, FileOpener, RememberedFile, WalkEntry};
pub use in_order::VisitInOrder;

use crate::walk::queue::TaskQueue;
use crate::walk::worker::{Task, Worker};
use crate::{
    Deadline, File, IgnoreFiles, IndexMode, Name, Place, RelPath, Result, TreeStamp, TreeSummary,
    Workspace,
};

/// More threads wait for each other rather than for the disk.
const MAX_THREADS: usize = 8;

/// The options of a walk.
pub struct Walk<'a> {
    /// How many levels below the start are looked at; 1 is the start's own entries.
    pub depth: usize,
    /// Whether hidden entries are shown.
    pub hidden: bool,
    /// The caller's decision about an entry, made before the ignore files are matched.
    pub filter_decision: &'a (dyn Fn(&Candidate<'_>) -> FilterDecision + Sync),
    /// Whether the caller may see an entry. Called for entries that the filter, the always skipped names
    /// and the ignore files let through.
    pub visibility: &'a (dyn Fn(&Candidate<'_>) -> Visibility + Sync),
    /// The walk stops when it has passed.
    pub deadline: &'a Deadline,
    /// Whether directories that earlier walks listed are remembered.
    pub index: IndexMode,
    /// Which ignore files are obeyed.
    pub ignore_files: IgnoreFiles,
}

/// Whether an entry may be shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Visibility {
    /// It is shown.
    Visible,
    /// Neither it nor anything below it is shown; it is counted as withheld.
    Withheld,
    /// Neither it nor anything below it is shown, and it is not counted.
    Uncounted,
}

/// Whether an entry is shown, before the ignore files are matched.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FilterDecision {
    /// It is shown whatever its name is and whatever ignore files match it.
    Force,
    /// It is shown even if it is hidden or ignored, unless it has a name that is always skipped.
    Include,
    /// Neither it nor anything below it is shown, and it is not counted.
    Exclude,
    /// Its name and the ignore files decide.
    Default,
}

/// How many entries a walk did not show, or not enter.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Skipped {
    /// Because their names start with a dot.
    pub hidden: u64,
    /// Because an ignore file matches them, or they have a name that is always skipped.
    pub ignored: u64,
    /// Because the system would not let us, or something went wrong.
    pub unreadable: u64,
    /// Because they are too deep down.
    pub too_deep: u64,
    /// Because they are too large for what was to be done with them.
    pub too_large: u64,
    /// Because the caller may not show them.
    pub withheld: u64,
    /// Ignore files that were not read to their end, because they are too large.
    pub cut_ignore_files: u64,
}

impl Skipped {
    /// Adds the counts of another walk.
    pub fn add(&mut self, other: &Self) {
        self.hidden += other.hidden;
        self.ignored += other.ignored;
        self.unreadable += other.unreadable;
        self.too_deep += other.too_deep;
        self.too_large += other.too_large;
        self.withheld += other.withheld;
        self.cut_ignore_files += other.cut_ignore_files;
    }
}

/// Receives the entries that a walk shows. Each thread has its own, and the order is not defined.
pub trait Visitor: Send {
    /// Receives an entry. An error counts it as skipped.
    fn visit(&mut self, found: &WalkEntry<'_>) -> Result<()>;

    /// Whether a visit makes no system call. Then the entries of one directory are not worth another thread.
    fn is_quick(&self) -> bool {
        false
    }

    /// Receives an entry that is not shown because of its name, the ignore files, or the caller's
    /// [`Walk::visibility`]. What is below it is not received.
    fn leave_out(&mut self, _: &Candidate<'_>, _: LeftOut) {}
}

/// Why a walk leaves an entry out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LeftOut {
    /// Its name is hidden. [`Walk::filter_decision`] can include it.
    Hidden,
    /// Its name is always skipped, or an ignore file says so. [`Walk::filter_decision`] can include it.
    Ignored,
    /// It may not be seen.
    NotVisible,
}

impl Workspace {
    /// Walks over what is below `starts`, which are directories. Gives back the visitors.
    ///
    /// Fails with [`Error::Denied`](crate::Error::Denied) if there is one start and it cannot be
    /// read; other directories that cannot be read are counted.
    pub fn walk<V: Visitor>(
        &self,
        starts: &[Place],
        walk: &Walk<'_>,
        new_visitor: impl Fn() -> V + Sync,
    ) -> Result<(Vec<V>, Skipped)> {
        let (visitors, skipped, _) = self.walk_watched(starts, walk, new_visitor)?;
        Ok((visitors, skipped))
    }

    /// As [`Self::walk`]. Also tells whether every directory of the walk is watched: then another walk shows
    /// the same as long as the [stamps](Self::tree_stamps) stay the same.
    pub fn walk_watched<V: Visitor>(
        &self,
        starts: &[Place],
        walk: &Walk<'_>,
        new_visitor: impl Fn() -> V + Sync,
    ) -> Result<(Vec<V>, Skipped, bool)> {
        if walk.index != IndexMode::Off {
            self.tree_stamps(starts);
        }
        let tasks: Vec<_> = starts.iter().map(|place| start_task(self, place, walk)).collect();
        let work = TaskQueue::new(tasks);
        let worker = || Worker::new(self, walk, &work, new_visitor(), starts.len() == 1);
        let outcome = thread::scope(|scope| {
            let mut first = worker();
            // A small tree is done before another thread has started.
            first.run_until(|| work.waiting() >= 4);
            let more = if work.is_done() {
                0
            } else {
                thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS) - 1
            };
            // Where the system gives no more threads, fewer do the work.
            let others: Vec<_> = (0..more)
                .map_while(|_| {
                    let spawned = thread::Builder::new().spawn_scoped(scope, || {
                        let mut worker = worker();
                        worker.run_until(|| false);
                        (worker.visitor, worker.skipped, worker.all_watched)
                    });
                    spawned.ok()
                })
                .collect();
            first.run_until(|| false);
            let mut outcome = (vec![first.visitor], first.skipped, first.all_watched);
            for other in others {
                match other.join() {
                    Ok((visitor, skipped, all_watched)) => {
                        outcome.0.push(visitor);
                        outcome.1.add(&skipped);
                        outcome.2 &= all_watched;
                    }
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            outcome
        });
        match work.failure() {
            Some(error) => Err(error),
            None => Ok(outcome),
        }
    }

    /// Notes every change below the roots of these directories that was complete before this call. The stamps
    /// change with each change in a watched directory.
    pub fn tree_stamps(&self, starts: &[Place]) -> Vec<TreeStamp> {
        let stamps = starts.iter().map(|start| {
            let root = self.root(start.root);
            root.tree().refresh(root);
            // Nobody may have watched the directories above it.
            root.tree().check_start(root, &start.path);
            root.tree().recheck_if_due(root);
            root.tree().refresh(root)
        });
        stamps.collect()
    }

    /// Compares every remembered file of watched directories with the disk, as happens in the background some seconds
    /// after each search.
    pub fn recheck_trees(&self) {
        for root in self.all_roots() {
            crate::tree::recheck(&Arc::downgrade(root));
        }
    }

    /// Whether a walk over these directories found new hard links to files that had been looked at by other names.
    /// Their versions have changed, since no event reports changes by the new name.
    pub fn has_new_links(&self, starts: &[Place]) -> bool {
        let new = starts.iter().filter(|start| self.root(start.root).tree().note_linked());
        new.count() > 0
    }

    /// The files below the root of a directory whose content or metadata changed since its tree had a stamp.
    /// `None` if that is not known any more.
    pub fn changed_files(&self, start: &Place, since: TreeStamp) -> Option<Vec<FileId>> {
        self.root(start.root).tree().changed_files(since)
    }

    /// The directories below the root of a directory in which files came or went since its tree had a stamp. `None`
    /// if other names changed too, or if that is not known any more.
    pub fn changed_directories(&self, start: &Place, since: TreeStamp) -> Option<Vec<RelPath>> {
        self.root(start.root).tree().changed_directories(since)
    }

    /// The regular file inside that a remembered symlink leads to.
    pub fn linked_to(&self, link: &RememberedFile) -> Result<(Place, File)> {
        let (root, parent, name) = link.parts();
        self.linked_file(root, parent, name)
    }

    /// The summary of each root's remembered tree.
    pub fn tree_summaries(&self) -> Vec<TreeSummary> {
        self.all_roots().map(|root| root.tree().summary()).collect()
    }

    /// The regular file that a symlink in a directory leads to.
    pub(crate) fn linked_file(
        &self,
        root: usize,
        dir: &RelPath,
        name: &[u8],
    ) -> Result<(Place, File)> {
        let path = dir.join(&Name::parse(name)?);
        let (place, fd) = self.open_resolved(root, path.steps(), OFlags::RDONLY)?;
        Ok((place, File::regular(fd)?))
    }
}

/// The task that a walk begins with at one of its starts.
fn start_task(workspace: &Workspace, place: &Place, walk: &Walk<'_>) -> Task {
    Task::Directory {
        root: place.root,
        start: if place.path.is_root() { 0 } else { place.path.as_bytes().len() + 1 },
        path: place.path.clone(),
        depth: 1,
        rules: workspace.rules_for(place.root, &place.path, walk.ignore_files),
        may_watch: may_watch(&place.path),
    }
}

/// Whether a directory that a walk starts at may be watched: what is below names that are always skipped is not.
fn may_watch(start: &RelPath) -> bool {
    !start.as_bytes().split(|byte| *byte == b'/').any(|name| worker::SKIPPED_NAMES.contains(&name))
}
