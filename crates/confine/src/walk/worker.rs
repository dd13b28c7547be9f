//! One thread of a walk: it lists directories, filters their entries, and shows the others.
//!
//! An entry is filtered before it is entered or shown, so nothing below a skipped entry is ever opened.

use std::sync::Arc;

use crate::ignore_files::{IgnoreMatch, Rules};
use crate::tree::{Enter, Node};
use crate::walk::entry::{Directory, sort_key};
use crate::walk::queue::{Keyed, TaskQueue};
use crate::walk::{
    Candidate, FilterDecision, SkipReason, Skipped, Visibility, Visitor, Walk, WalkEntry,
};
use crate::{Error, IgnoreFiles, Kind, RelPath, Result, Workspace};

/// Names that are skipped everywhere, unless the caller names them.
pub(super) const SKIPPED_NAMES: [&[u8]; 4] = [b".git", b"node_modules", b"__pycache__", b".venv"];

/// The maximum depth. Only trees that were made to be deep are deeper.
const MAX_DEPTH: usize = 1_000;

/// How many files of one directory a thread takes at once. More are shared with other threads.
const BATCH: usize = 64;

/// How many files a thread takes first: they may be enough. It takes twice as many each time, up to [`BATCH`].
const FIRST_BATCH: usize = 4;

/// How many entries of one directory are filtered between two checks of the deadline.
const DEADLINE_CHECK_INTERVAL: usize = 1_000;

/// A task for one thread.
pub(super) enum Task {
    Directory {
        root: usize,
        start: usize,
        path: RelPath,
        depth: usize,
        rules: Arc<Rules>,
        may_watch: bool,
    },
    Files {
        start: usize,
        directory: Arc<Directory>,
        entries: Vec<u32>,
    },
}

/// One thread of a walk, and its counts so far.
pub(super) struct Worker<'w, V> {
    workspace: &'w Workspace,
    walk: &'w Walk<'w>,
    work: &'w TaskQueue<Task>,
    pub(super) visitor: V,
    pub(super) skipped: Skipped,
    /// Whether every directory so far is watched.
    pub(super) all_watched: bool,
    buffer: Vec<u8>,
    /// How many files it takes at once.
    batch: usize,
    single_start: bool,
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
        let (all_watched, batch) = (true, FIRST_BATCH);
        Self { workspace, walk, work, visitor, skipped, all_watched, buffer, batch, single_start }
    }

    /// Performs tasks until none is left, or `enough` returns true after a task.
    pub(super) fn run_until(&mut self, enough: impl Fn() -> bool) {
        while let Some((task, guard)) = self.work.next() {
            if let Err(error) = self.perform(task) {
                self.work.fail(error);
            }
            drop(guard);
            if !self.visitor.goes_on(&|| self.work.first_open()) {
                self.work.end();
            }
            if enough() {
                return;
            }
        }
    }

    fn perform(&mut self, task: Task) -> Result<()> {
        self.walk.deadline.check()?;
        match task {
            Task::Directory { root, start, path, depth, rules, may_watch } => {
                let entered = self.enter(root, start, path, depth, &rules, may_watch);
                self.unless_skipped(entered, depth)
            }
            Task::Files { start, directory, entries } => self.show_all(start, &directory, &entries),
        }
    }

    /// Counts a directory that could not be entered. Fails if the walk has to end.
    fn unless_skipped(&mut self, entered: Result<()>, depth: usize) -> Result<()> {
        match entered {
            Ok(()) => Ok(()),
            Err(error @ Error::TimedOut) => Err(error),
            // An empty result would mean that the directory is empty.
            Err(error @ Error::Denied) if depth == 1 && self.single_start => Err(error),
            Err(error) => {
                self.all_watched = false;
                // The directory was removed or replaced since it was listed, so it does not count.
                let is_gone =
                    matches!(error, Error::NotFound | Error::NotADirectory | Error::Changed);
                self.skipped.unreadable += u64::from(!is_gone);
                Ok(())
            }
        }
    }

    fn enter(
        &mut self,
        root: usize,
        start: usize,
        path: RelPath,
        depth: usize,
        above: &Arc<Rules>,
        may_watch: bool,
    ) -> Result<()> {
        let Walk { index: mode, watch, deadline, .. } = *self.walk;
        let enter =
            Enter { root, path: &path, above, mode, may_watch: may_watch && watch, deadline };
        let tree = self.workspace.root(root).tree();
        let entered = tree.enter(self.workspace, &enter, &mut self.buffer)?;
        self.all_watched &= entered.is_watched;
        let rules = &entered.node.rules;
        self.skipped.cut_ignore_files += rules.cut(above);
        let mut at = PathBuffer::new(&path);
        let mut directories = Vec::new();
        let mut shown = Vec::with_capacity(entered.node.len());
        for number in 0..entered.node.len() {
            if number % DEADLINE_CHECK_INTERVAL == DEADLINE_CHECK_INTERVAL - 1 {
                deadline.check()?;
            }
            let (name, kind) = (entered.node.name(number), entered.node.kind(number));
            let candidate = Candidate { root, path: at.with(name), start, kind };
            let Some(by_standard_rules) = self.shows(&candidate, &entered.node, number) else {
                continue;
            };
            if kind == Kind::Directory && depth < self.walk.depth {
                if depth >= MAX_DEPTH {
                    self.skipped.too_deep += 1;
                } else {
                    let task = Task::Directory {
                        root,
                        start,
                        path: RelPath::proved(candidate.path.to_vec()),
                        depth: depth + 1,
                        rules: rules.clone(),
                        may_watch: may_watch && by_standard_rules,
                    };
                    directories.push(Keyed { key: sort_key(root, candidate.path), task });
                }
            }
            shown.push(number as u32);
        }
        if !directories.is_empty() {
            self.work.add(directories.into_iter());
        }
        let directory = Arc::new(Directory::new(self.workspace, root, path, entered));
        // This thread shows the first batch, and any thread shows the others.
        let mut batch = if self.visitor.is_quick() { shown.len() } else { self.batch };
        let (now, mut later) = shown.split_at(shown.len().min(batch));
        let mut tasks = Vec::new();
        while let Some(first) = later.first() {
            batch = BATCH.min(2 * batch);
            let (entries, rest) = later.split_at(later.len().min(batch));
            let key = sort_key(root, at.with(directory.listed.node.name(*first as usize)));
            let (directory, entries) = (directory.clone(), entries.to_vec());
            tasks.push(Keyed { key, task: Task::Files { start, directory, entries } });
            later = rest;
        }
        if !tasks.is_empty() {
            self.work.add(tasks.into_iter());
        }
        self.show_all(start, &directory, now)
    }

    /// Whether an entry is shown, and entered if it is a directory. Returns `None` if not; otherwise, whether every
    /// walk shows it.
    fn shows(&mut self, candidate: &Candidate<'_>, node: &Node, number: usize) -> Option<bool> {
        let filter_decision = (self.walk.filter_decision)(candidate);
        if filter_decision == FilterDecision::Exclude {
            return None;
        }
        let by_standard_rules = match self.admits(filter_decision, candidate, node, number) {
            Ok(by_standard_rules) => by_standard_rules,
            Err(why) => {
                self.visitor.skip(candidate, why);
                return None;
            }
        };
        let visibility = (self.walk.visibility)(candidate);
        self.skipped.withheld += u64::from(visibility == Visibility::Withheld);
        if visibility != Visibility::Visible {
            self.visitor.skip(candidate, SkipReason::Withheld);
            return None;
        }
        Some(by_standard_rules)
    }

    /// Whether its name and the ignore files let an entry through. Returns the reason if not; otherwise, whether
    /// every walk lets it through.
    fn admits(
        &mut self,
        filter_decision: FilterDecision,
        candidate: &Candidate<'_>,
        node: &Node,
        number: usize,
    ) -> std::result::Result<bool, SkipReason> {
        if filter_decision == FilterDecision::Force {
            return Ok(false);
        }
        let name = candidate.name();
        let obeyed = self.walk.ignore_files;
        let is_skipped = SKIPPED_NAMES.contains(&name);
        if is_skipped && (obeyed != IgnoreFiles::NONE || name == b".git") {
            self.skipped.ignored += 1;
            return Err(SkipReason::Ignored);
        }
        if filter_decision == FilterDecision::Include {
            return Ok(false);
        }
        match node.matched(number, candidate.path, obeyed) {
            IgnoreMatch::Ignored => {
                self.skipped.ignored += 1;
                Err(SkipReason::Ignored)
            }
            IgnoreMatch::None if !self.walk.hidden && name.starts_with(b".") => {
                self.skipped.hidden += 1;
                Err(SkipReason::Hidden)
            }
            IgnoreMatch::Whitelisted | IgnoreMatch::None => {
                let standard = IgnoreFiles::STANDARD;
                let is_standard =
                    || node.matched(number, candidate.path, standard) != IgnoreMatch::Ignored;
                Ok(obeyed == standard || !is_skipped && is_standard())
            }
        }
    }

    fn show_all(
        &mut self,
        start: usize,
        directory: &Arc<Directory>,
        entries: &[u32],
    ) -> Result<()> {
        let mut at = PathBuffer::new(&directory.listed.path);
        let node = &directory.listed.node;
        if entries.iter().any(|number| node.kind(*number as usize) == Kind::File) {
            self.batch = BATCH.min(2 * self.batch);
        }
        for number in entries {
            self.walk.deadline.check()?;
            let number = *number as usize;
            let path = at.with(node.name(number));
            let found = WalkEntry {
                workspace: self.workspace,
                start,
                path,
                directory,
                number,
                kind: node.kind(number),
            };
            let visited = self.visitor.visit(&found);
            self.unless_failed(visited)?;
        }
        Ok(())
    }

    /// Counts an entry that could not be visited. Fails if the walk has to end.
    fn unless_failed(&mut self, visited: Result<()>) -> Result<()> {
        match visited {
            Ok(()) => {}
            Err(error @ Error::TimedOut) => return Err(error),
            // The entry was removed or replaced since it was listed.
            Err(Error::NotFound | Error::Changed | Error::NotRegular(_)) => {}
            Err(Error::TooLarge) => self.skipped.too_large += 1,
            Err(_) => self.skipped.unreadable += 1,
        }
        Ok(())
    }
}

/// Builds the paths of a directory's entries, one at a time in the same buffer.
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
