//! One thread of a walk: it lists directories, filters their entries, and shows the rest.
//!
//! An entry is filtered before it is entered or shown, so nothing below a skipped one is ever opened.

use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::dir::kind_of;
use crate::ignore_files::{IgnoreMatch, Rules, is_ignore_file};
use crate::temp_name::is_own_temp;
use crate::walk::queue::{TaskGuard, TaskQueue};
use crate::walk::{Candidate, FilterDecision, Skipped, Visibility, Visitor, Walk, WalkEntry};
use crate::workspace::opening;
use crate::{Error, Kind, RelPath, Result, Workspace, sys};

/// Names that are skipped everywhere, unless the caller spells them out.
const SKIPPED_NAMES: [&[u8]; 4] = [b".git", b"node_modules", b"__pycache__", b".venv"];

/// Deeper than any tree that was not made to be deep.
const MAX_DEPTH: usize = 1_000;

/// How many files of one directory a thread takes at once; more are shared out.
const BATCH: usize = 64;

/// How many entries of one directory are listed or filtered between two checks of the deadline.
const DEADLINE_CHECK_INTERVAL: usize = 1_000;

/// Something for one thread to do.
pub(super) enum Task {
    Directory {
        root: usize,
        start: usize,
        path: RelPath,
        depth: usize,
        rules: Arc<Rules>,
    },
    Files {
        root: usize,
        start: usize,
        dir: Arc<OwnedFd>,
        path: RelPath,
        files: Vec<(Vec<u8>, Kind)>,
    },
}

/// One thread of a walk, and its counts so far.
pub(super) struct Worker<'w, V> {
    workspace: &'w Workspace,
    walk: &'w Walk<'w>,
    work: &'w TaskQueue<Task>,
    pub(super) visitor: V,
    pub(super) skipped: Skipped,
    buffer: Vec<u8>,
    single_start: bool,
}

/// The entries of a directory, their names in one piece of memory.
#[derive(Default)]
struct Listing {
    names: Vec<u8>,
    entries: Vec<(usize, usize, Kind)>,
}

impl Listing {
    fn iter(&self) -> impl Iterator<Item = (&[u8], Kind)> {
        self.entries.iter().map(|(start, end, kind)| (&self.names[*start..*end], *kind))
    }
}

impl<'w, V: Visitor> Worker<'w, V> {
    pub(super) fn new(
        workspace: &'w Workspace,
        walk: &'w Walk<'w>,
        work: &'w TaskQueue<Task>,
        visitor: V,
        single_start: bool,
    ) -> Self {
        let (skipped, buffer) = (Skipped::default(), Vec::new());
        Self { workspace, walk, work, visitor, skipped, buffer, single_start }
    }

    /// Performs tasks until none is left, or `enough` says so after a task.
    pub(super) fn run_until(&mut self, enough: impl Fn() -> bool) {
        while let Some(task) = self.work.next() {
            let guard = TaskGuard(self.work);
            if let Err(error) = self.perform(task) {
                self.work.fail(error);
            }
            drop(guard);
            if enough() {
                return;
            }
        }
    }

    fn perform(&mut self, task: Task) -> Result<()> {
        self.walk.deadline.check()?;
        match task {
            Task::Directory { root, start, path, depth, rules } => {
                match self.enter(root, start, &path, depth, &rules) {
                    // Gone or swapped since it was listed: then it is not there.
                    Err(Error::NotFound | Error::NotADirectory | Error::Changed) => Ok(()),
                    Err(error @ Error::TimedOut) => Err(error),
                    // An empty answer would say that the directory is empty.
                    Err(error @ Error::Denied) if depth == 1 && self.single_start => Err(error),
                    Err(_) => {
                        self.skipped.unreadable += 1;
                        Ok(())
                    }
                    Ok(()) => Ok(()),
                }
            }
            Task::Files { root, start, dir, path, files } => {
                let mut at = PathBuffer::new(&path);
                for (name, kind) in &files {
                    self.show(root, start, &dir, at.with(name), *kind)?;
                }
                Ok(())
            }
        }
    }

    fn list(&mut self, dir: &OwnedFd) -> Result<Listing> {
        let mut listing = Listing::default();
        let mut checked = Ok(());
        sys::list(dir, &mut self.buffer, |name, kind| {
            if is_own_temp(dir, name) {
                return ControlFlow::Continue(());
            }
            let start = listing.names.len();
            listing.names.extend_from_slice(name);
            listing.entries.push((start, listing.names.len(), kind_of(dir, name, kind)));
            if listing.entries.len().is_multiple_of(DEADLINE_CHECK_INTERVAL) {
                checked = self.walk.deadline.check();
            }
            if checked.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        checked.map(|()| listing)
    }

    fn enter(
        &mut self,
        root: usize,
        start: usize,
        path: &RelPath,
        depth: usize,
        above: &Arc<Rules>,
    ) -> Result<()> {
        let dir = self.workspace.root(root).open_below(path, sys::DIRECTORY).map_err(opening)?;
        let listing = self.list(&dir)?;
        let rules = if listing.iter().any(|(name, _)| is_ignore_file(name)) {
            Rules::below(above, path, &self.workspace.ignore_cache, |wanted| {
                let (name, kind) = listing.iter().find(|(name, _)| *name == wanted)?;
                self.workspace.ignore_file(root, &dir, path, name, kind)
            })
        } else {
            above.clone()
        };
        self.skipped.cut_ignore_files += rules.cut(above);
        let mut at = PathBuffer::new(path);
        let mut directories = Vec::new();
        let mut others = Vec::new();
        for (number, (name, kind)) in listing.iter().enumerate() {
            if number % DEADLINE_CHECK_INTERVAL == DEADLINE_CHECK_INTERVAL - 1 {
                self.walk.deadline.check()?;
            }
            if !self.shows(root, start, at.with(name), kind, &rules) {
                continue;
            }
            if kind == Kind::Directory && depth < self.walk.depth {
                if depth >= MAX_DEPTH {
                    self.skipped.too_deep += 1;
                } else {
                    directories.push(Task::Directory {
                        root,
                        start,
                        path: RelPath::proved(at.with(name).to_vec()),
                        depth: depth + 1,
                        rules: rules.clone(),
                    });
                }
            }
            others.push((name, kind));
        }
        if !directories.is_empty() {
            self.work.add(directories.into_iter());
        }
        // The first batch is shown by this thread, the others by any.
        let (now, later) = others.split_at(others.len().min(BATCH));
        let dir = Arc::new(dir);
        if !later.is_empty() {
            self.work.add(later.chunks(BATCH).map(|files| Task::Files {
                root,
                start,
                dir: dir.clone(),
                path: path.clone(),
                files: files.iter().map(|(name, kind)| (name.to_vec(), *kind)).collect(),
            }));
        }
        for (name, kind) in now {
            self.show(root, start, &dir, at.with(name), *kind)?;
        }
        Ok(())
    }

    /// Whether an entry is shown, and entered if it is a directory.
    fn shows(&mut self, root: usize, start: usize, path: &[u8], kind: Kind, rules: &Rules) -> bool {
        let candidate = Candidate { root, path, start, kind };
        if !self.admits(&candidate, rules) {
            return false;
        }
        let visibility = (self.walk.visibility)(&candidate);
        self.skipped.withheld += u64::from(visibility == Visibility::Withheld);
        visibility == Visibility::Visible
    }

    fn admits(&mut self, candidate: &Candidate<'_>, rules: &Rules) -> bool {
        let filter_decision = (self.walk.filter_decision)(candidate);
        match filter_decision {
            FilterDecision::Force => return true,
            FilterDecision::Exclude => return false,
            FilterDecision::Include | FilterDecision::Default => {}
        }
        let name = candidate.name();
        if SKIPPED_NAMES.contains(&name) {
            self.skipped.ignored += 1;
            return false;
        }
        if filter_decision == FilterDecision::Include {
            return true;
        }
        match rules.matched(candidate.path, candidate.kind == Kind::Directory) {
            IgnoreMatch::Ignored => {
                self.skipped.ignored += 1;
                false
            }
            IgnoreMatch::Whitelisted => true,
            IgnoreMatch::None if !self.walk.hidden && name.starts_with(b".") => {
                self.skipped.hidden += 1;
                false
            }
            IgnoreMatch::None => true,
        }
    }

    fn show(
        &mut self,
        root: usize,
        start: usize,
        dir: &OwnedFd,
        path: &[u8],
        kind: Kind,
    ) -> Result<()> {
        self.walk.deadline.check()?;
        let found = WalkEntry { workspace: self.workspace, root, start, path, dir, kind };
        match self.visitor.visit(&found) {
            Err(error @ Error::TimedOut) => Err(error),
            // Gone since it was listed, or something else by now.
            Err(Error::NotFound | Error::Changed | Error::NotRegular(_)) | Ok(()) => Ok(()),
            Err(Error::TooLarge) => {
                self.skipped.too_large += 1;
                Ok(())
            }
            Err(_) => {
                self.skipped.unreadable += 1;
                Ok(())
            }
        }
    }
}

/// The paths of a directory's entries, one at a time in the same piece of memory.
struct PathBuffer {
    bytes: Vec<u8>,
    directory: usize,
}

impl PathBuffer {
    fn new(directory: &RelPath) -> Self {
        let mut bytes = directory.as_bytes().to_vec();
        if !bytes.is_empty() {
            bytes.push(b'/');
        }
        Self { directory: bytes.len(), bytes }
    }

    fn with(&mut self, name: &[u8]) -> &[u8] {
        self.bytes.truncate(self.directory);
        self.bytes.extend_from_slice(name);
        &self.bytes
    }
}
