//! Walks a tree by directory handles, on several threads.
//!
//! Every directory is opened below its root without following symlinks, and its entries are reached by single names
//! on its handle. So a directory that is swapped for a symlink does not lead the walk out. Symlinks are reported and
//! never entered, so there are no cycles.

mod background;
mod entry;
mod queue;
mod worker;

use std::sync::Arc;
use std::thread;

use rustix::fs::OFlags;

pub use entry::{Candidate, FileId, FileOpener, WalkEntry, WalkedFile};

use crate::walk::queue::{Keyed, TaskQueue};
use crate::walk::worker::{Task, Worker};
use crate::{
    Deadline, File, IgnoreFiles, IndexMode, Name, Place, RelPath, Result, TreeStamp, TreeSummary,
    Workspace,
};

/// The maximum number of threads. More would wait for each other, not for the disk.
const MAX_THREADS: usize = 8;

/// The options of a walk.
pub struct Walk<'a> {
    /// How many levels below the start are visited. 1 visits the start's own entries.
    pub depth: usize,
    /// Whether hidden entries are shown.
    pub hidden: bool,
    /// The caller's decision about an entry, made before the ignore files are matched.
    pub filter_decision: &'a (dyn Fn(&Candidate<'_>) -> FilterDecision + Sync),
    /// Decides whether the caller may see an entry. Called for entries that pass the filter, the names that are
    /// always skipped, and the ignore files.
    pub visibility: &'a (dyn Fn(&Candidate<'_>) -> Visibility + Sync),
    /// The walk stops when it has passed.
    pub deadline: &'a Deadline,
    /// Whether the directories that walks have listed are cached.
    pub index: IndexMode,
    /// Whether directories that are cached are also watched. A first walk is faster if they are
    /// [watched later](Workspace::watch_in_background).
    pub watch: bool,
    /// Which ignore files are obeyed.
    pub ignore_files: IgnoreFiles,
}

/// Whether an entry may be shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Visibility {
    /// It is shown.
    Visible,
    /// Neither it nor anything below it is shown. It is counted as withheld.
    Withheld,
    /// Neither it nor anything below it is shown, and it is not counted.
    Uncounted,
}

/// Whether an entry is shown, before the ignore files are matched.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FilterDecision {
    /// It is shown, whatever its name and the ignore files.
    Force,
    /// It is shown even if it is hidden or ignored, unless it has a name that is always skipped.
    Include,
    /// Neither it nor anything below it is shown, and it is not counted.
    Exclude,
    /// Its name and the ignore files decide.
    Default,
}

/// How many entries a walk did not show or enter.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Skipped {
    /// Because their names start with a dot.
    pub hidden: u64,
    /// Because an ignore file matches them, or they have a name that is always skipped.
    pub ignored: u64,
    /// Because of a missing permission or another error.
    pub unreadable: u64,
    /// Because they are below the maximum depth.
    pub too_deep: u64,
    /// Because they are too large.
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

/// Receives the entries that a walk shows. Each thread has its own. A walk begins with the first paths, but the exact
/// order is not defined.
pub trait Visitor: Send {
    /// Receives an entry. An error counts it as skipped.
    fn visit(&mut self, found: &WalkEntry<'_>) -> Result<()>;

    /// Whether a visit makes no system call. If so, the entries of one directory are not worth another thread.
    fn is_quick(&self) -> bool {
        false
    }

    /// Called now and then. Returns whether the walk goes on. `first_open` returns a [sort key](Place::sort_key) before
    /// which all entries have been visited; `None` if all have been.
    fn goes_on(&mut self, _first_open: &dyn Fn() -> Option<Vec<u8>>) -> bool {
        true
    }

    /// Called on the visitor's own thread after its last entry.
    fn finish(&mut self) {}

    /// Receives an entry that is not shown because of its name, the ignore files, or [`Walk::visibility`]. Entries
    /// below it are not received.
    fn skip(&mut self, _: &Candidate<'_>, _: SkipReason) {}
}

/// The reason why a walk leaves out an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SkipReason {
    /// Its name is hidden. [`Walk::filter_decision`] can include it.
    Hidden,
    /// Its name is always skipped, or an ignore file matches it. [`Walk::filter_decision`] can include it.
    Ignored,
    /// The caller may not see it.
    Withheld,
}

impl Workspace {
    /// Walks the trees below `starts`, which are directories, and returns the visitors.
    ///
    /// Fails with [`Error::Denied`](crate::Error::Denied) if there is one start and it cannot be read. Other
    /// directories that cannot be read are counted.
    pub fn walk<V: Visitor>(
        &self,
        starts: &[Place],
        walk: &Walk<'_>,
        new_visitor: impl Fn() -> V + Sync,
    ) -> Result<(Vec<V>, Skipped)> {
        let (visitors, skipped, _) = self.walk_watched(starts, walk, new_visitor)?;
        Ok((visitors, skipped))
    }

    /// As [`Self::walk`]. Also returns whether every directory of the walk is watched. If so, another walk has the
    /// same result as long as the [stamps](Self::tree_stamps) stay the same.
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
            // A small tree is done before another thread could start.
            first.run_until(|| work.waiting() >= 6);
            let more = if work.is_done() {
                0
            } else {
                thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS) - 1
            };
            // If the system cannot start a thread, fewer threads do the work.
            let others: Vec<_> = (0..more)
                .map_while(|_| {
                    let spawned = thread::Builder::new().spawn_scoped(scope, || {
                        let mut worker = worker();
                        worker.run_until(|| false);
                        worker.visitor.finish();
                        (worker.visitor, worker.skipped, worker.all_watched)
                    });
                    spawned.ok()
                })
                .collect();
            first.run_until(|| false);
            first.visitor.finish();
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

    /// Processes every change below the roots of these directories that was complete before this call. The stamps
    /// change with each change in a watched directory.
    pub fn tree_stamps(&self, starts: &[Place]) -> Vec<TreeStamp> {
        let stamps = starts.iter().map(|start| {
            let root = self.root(start.root);
            root.tree().refresh(root);
            // The directories above it may not be watched.
            root.tree().check_start(root, &start.path);
            root.tree().recheck_if_due(root);
            root.tree().refresh(root)
        });
        stamps.collect()
    }

    /// Compares every cached file of watched directories with the disk. This also happens in the background some
    /// seconds after each search.
    pub fn recheck_trees(&self) {
        for root in self.all_roots() {
            crate::tree::recheck(&Arc::downgrade(root));
        }
    }

    /// Whether a walk of these directories found new hard links to files that it knows by other names. Their versions
    /// have changed, since no event reports changes through the new name.
    pub fn has_new_links(&self, starts: &[Place]) -> bool {
        let new = starts.iter().filter(|start| self.root(start.root).tree().note_linked());
        new.count() > 0
    }

    /// The files below the root of a directory whose content or metadata changed since its tree had a stamp. Returns
    /// `None` if that is no longer known.
    pub fn changed_files(&self, start: &Place, since: TreeStamp) -> Option<Vec<FileId>> {
        self.root(start.root).tree().changed_files(since)
    }

    /// The directories below the root of a directory in which files were created or removed since its tree had a
    /// stamp. Returns `None` if other names changed, too, or if that is no longer known.
    pub fn changed_directories(&self, start: &Place, since: TreeStamp) -> Option<Vec<RelPath>> {
        self.root(start.root).tree().changed_directories(since)
    }

    /// The regular file in the workspace that a cached symlink leads to.
    pub fn linked_to(&self, link: &WalkedFile) -> Result<(Place, File)> {
        let (root, parent, name) = link.parts();
        self.linked_file(root, parent, name)
    }

    /// The summary of each root's cached tree.
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

/// The first task of a walk for one of its starts.
fn start_task(workspace: &Workspace, place: &Place, walk: &Walk<'_>) -> Keyed<Task> {
    let task = Task::Directory {
        root: place.root,
        start: if place.path.is_root() { 0 } else { place.path.as_bytes().len() + 1 },
        path: place.path.clone(),
        depth: 1,
        rules: workspace.rules_for(place.root, &place.path, walk.ignore_files),
        may_watch: may_watch(&place.path),
    };
    Keyed { key: place.sort_key(), task }
}

/// Whether a start of a walk may be watched. Directories below names that are always skipped are not.
fn may_watch(start: &RelPath) -> bool {
    !start.as_bytes().split(|byte| *byte == b'/').any(|name| worker::SKIPPED_NAMES.contains(&name))
}
