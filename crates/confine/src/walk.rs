//! Walking a tree by directory handles, on several threads.
//!
//! Every directory is opened below its root, following no link, and its entries are reached by single
//! names on its handle: nobody can lead the walk out by swapping a directory for a link. Links are
//! shown and never entered, so there are no circles.

mod entry;
mod work;
mod worker;

use std::thread;

use rustix::fs::OFlags;

pub use entry::{Candidate, WalkEntry};

use crate::walk::work::Work;
use crate::walk::worker::{Task, Worker};
use crate::{Deadline, File, Name, Place, RelPath, Result, Workspace};

/// More threads wait for each other rather than for the disk.
const MAX_THREADS: usize = 8;

/// What to walk over, and how.
pub struct Walk<'a> {
    /// How many levels below the start are looked at; 1 is the start's own entries.
    pub depth: usize,
    /// Whether hidden entries are shown.
    pub hidden: bool,
    /// What the caller thinks of an entry before ignore files are asked.
    pub filter_decision: &'a (dyn Fn(&Candidate<'_>) -> FilterDecision + Sync),
    /// Whether an entry that would be shown may be.
    pub visibility: &'a (dyn Fn(&Candidate<'_>) -> Visibility + Sync),
    /// Ends the walk when it ends.
    pub deadline: &'a Deadline,
}

/// Whether an entry may be shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Visibility {
    /// It may.
    Visible,
    /// Neither it nor what is below it, and that is counted.
    Withheld,
    /// Neither, and nobody would have missed it.
    Uncounted,
}

/// What becomes of an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FilterDecision {
    /// It was named, so it is shown whatever it is.
    Force,
    /// It is shown even if it is hidden or ignored, unless it has a name that is always skipped.
    Include,
    /// It is not shown, nor what is below it, and not counted as skipped.
    Exclude,
    /// As its name and the ignore files say.
    Default,
}

/// How many entries a walk did not show, or not enter.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Skipped {
    /// Because their names start with a dot.
    pub hidden: u64,
    /// Because an ignore file says so, or they have a name that is always skipped.
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
    fn add(&mut self, other: &Self) {
        self.hidden += other.hidden;
        self.ignored += other.ignored;
        self.unreadable += other.unreadable;
        self.too_deep += other.too_deep;
        self.too_large += other.too_large;
        self.withheld += other.withheld;
        self.cut_ignore_files += other.cut_ignore_files;
    }
}

/// Is shown what a walk finds. Each thread has its own, in no order that anybody could rely on.
pub trait Visitor: Send {
    /// Something was found. What it cannot read it returns, for the count.
    fn visit(&mut self, found: &WalkEntry<'_>) -> Result<()>;
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
        let tasks: Vec<_> = starts
            .iter()
            .map(|place| Task::Directory {
                root: place.root,
                start: if place.path.is_root() { 0 } else { place.path.as_bytes().len() + 1 },
                path: place.path.clone(),
                depth: 1,
                rules: self.rules_for(place.root, &place.path),
            })
            .collect();
        let work = Work::new(tasks);
        let worker = || Worker::new(self, walk, &work, new_visitor(), starts.len() == 1);
        let outcome = thread::scope(|scope| {
            let mut first = worker();
            // A small tree is done before another thread has started.
            first.run_until(|| work.waiting() >= 4);
            let more = match work.is_done() {
                true => 0,
                false => {
                    thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS) - 1
                }
            };
            // Where the system gives no more threads, fewer do the work.
            let others: Vec<_> = (0..more)
                .map_while(|_| {
                    let spawned = thread::Builder::new().spawn_scoped(scope, || {
                        let mut worker = worker();
                        worker.run_until(|| false);
                        (worker.visitor, worker.skipped)
                    });
                    spawned.ok()
                })
                .collect();
            first.run_until(|| false);
            let mut outcome = (vec![first.visitor], first.skipped);
            for other in others {
                match other.join() {
                    Ok((visitor, skipped)) => {
                        outcome.0.push(visitor);
                        outcome.1.add(&skipped);
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

    /// The regular file that a link in a directory leads to.
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
