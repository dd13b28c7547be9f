//! Walking a tree by directory handles, on several threads.
//!
//! Every directory is opened below its root, following no link, and its entries are reached by single
//! names on its handle: nobody can lead the walk out by swapping a directory for a link. Links are
//! shown and never entered, so there are no circles.

mod work;

use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;

use rustix::fs::OFlags;

use crate::dir::kind_of;
use crate::ignoring::{Rules, Ruling, is_ignore_file};
use crate::walk::work::{Doing, Work};
use crate::workspace::opening;
use crate::{
    Error, File, Kind, Meta, Name, Patience, Place, RelPath, Result, Workspace, is_temporary, sys,
};

/// Names that are skipped wherever they are: nobody means them who does not say so.
const SKIPPED_NAMES: [&[u8]; 4] = [b".git", b"node_modules", b"__pycache__", b".venv"];

/// Trees are not that deep unless somebody made them so.
const DEEPEST: usize = 1_000;

/// So many files of one directory are work for one thread; more are shared out.
const BATCH: usize = 64;

/// So many entries of one directory are listed, or judged, before patience is asked again.
const ASKED_AFTER: usize = 1_000;

/// More threads wait for each other rather than for the disk.
const MOST_THREADS: usize = 8;

/// What to walk over, and how.
pub struct Walk<'a> {
    /// How many levels below the start are looked at; 1 is the start's own entries.
    pub depth: usize,
    /// Whether hidden entries are shown.
    pub hidden: bool,
    /// What the caller thinks of an entry before ignore files are asked.
    pub opinion: &'a (dyn Fn(&Candidate<'_>) -> Opinion + Sync),
    /// Whether an entry that would be shown may be.
    pub secrecy: &'a (dyn Fn(&Candidate<'_>) -> Secrecy + Sync),
    /// Ends the walk when it ends.
    pub patience: &'a Patience,
}

/// An entry that may be shown, or entered.
#[derive(Debug)]
pub struct Candidate<'c> {
    /// The number of the root that it is below.
    pub root: usize,
    path: &'c [u8],
    start: usize,
    /// What it is.
    pub kind: Kind,
}

impl Candidate<'_> {
    /// Its path, counted from its root.
    pub fn below_root(&self) -> &[u8] {
        self.path
    }

    /// Its path, counted from where the walk started.
    pub fn below_start(&self) -> &[u8] {
        &self.path[self.start..]
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        name_of(self.path)
    }
}

/// Whether an entry may be shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Secrecy {
    /// It may.
    Shown,
    /// Neither it nor what is below it, and that is counted.
    Withheld,
    /// Neither, and nobody would have missed it.
    Unmissed,
}

/// What becomes of an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Opinion {
    /// It was named, so it is shown whatever it is.
    Named,
    /// It is shown even if it is hidden or ignored, unless it has a name that is always skipped.
    Take,
    /// It is not shown, nor what is below it, and not counted as skipped.
    Leave,
    /// As its name and the ignore files say.
    Usual,
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
    pub rules: u64,
}

impl Skipped {
    fn add(&mut self, other: &Self) {
        self.hidden += other.hidden;
        self.ignored += other.ignored;
        self.unreadable += other.unreadable;
        self.too_deep += other.too_deep;
        self.too_large += other.too_large;
        self.withheld += other.withheld;
        self.rules += other.rules;
    }
}

/// Is shown what a walk finds. Each thread has its own, in no order that anybody could rely on.
pub trait Visitor: Send {
    /// Something was found. What it cannot read it returns, for the count.
    fn visit(&mut self, found: &Found<'_>) -> Result<()>;
}

/// Something that a walk has found.
#[derive(Debug)]
pub struct Found<'f> {
    workspace: &'f Workspace,
    root: usize,
    start: usize,
    path: &'f [u8],
    dir: &'f OwnedFd,
    /// What it is.
    pub kind: Kind,
}

impl Found<'_> {
    /// Its path, counted from where the walk started.
    pub fn below_start(&self) -> &[u8] {
        &self.path[self.start..]
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        name_of(self.path)
    }

    /// Where it is.
    pub fn place(&self) -> Place {
        Place { root: self.root, path: RelPath::proved(self.path.to_vec()) }
    }

    /// What the file system knows about it. A link is not followed.
    pub fn meta(&self) -> Result<Meta> {
        Ok(Meta::of(&sys::stat_at(self.dir, self.name())?))
    }

    /// Opens it, if it is a regular file.
    pub fn open(&self) -> Result<File> {
        let fd = sys::open_at(self.dir, self.name(), OFlags::RDONLY);
        File::regular(fd.map_err(opening)?)
    }

    /// The regular file inside that a link leads to.
    pub fn linked_file(&self) -> Result<(Place, File)> {
        let path = RelPath::proved(self.path.to_vec());
        let (parent, _) = path.split().ok_or(Error::IsDirectory)?;
        self.workspace.linked_file(self.root, &parent, self.name())
    }

    /// Where a link points, as it is written in it.
    pub fn link_target(&self) -> Result<Vec<u8>> {
        Ok(sys::read_link(self.dir, self.name())?)
    }
}

fn name_of(path: &[u8]) -> &[u8] {
    let slash = path.iter().rposition(|byte| *byte == b'/');
    slash.map_or(path, |slash| &path[slash + 1..])
}

/// Something for one thread to do.
enum Task {
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

impl Workspace {
    /// Walks over what is below `starts`, which are directories. Gives back the visitors.
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
        let worker = || Worker {
            workspace: self,
            walk,
            work: &work,
            visitor: new_visitor(),
            skipped: Skipped::default(),
            buffer: Vec::new(),
        };
        let outcome = thread::scope(|scope| {
            let mut first = worker();
            // A small tree is done before another thread has started.
            first.run_until(|| work.waiting() >= 4);
            let more = match work.is_done() {
                true => 0,
                false => {
                    thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS) - 1
                }
            };
            let others: Vec<_> = (0..more)
                .map(|_| {
                    scope.spawn(|| {
                        let mut worker = worker();
                        worker.run_until(|| false);
                        (worker.visitor, worker.skipped)
                    })
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

struct Worker<'w, V> {
    workspace: &'w Workspace,
    walk: &'w Walk<'w>,
    work: &'w Work<Task>,
    visitor: V,
    skipped: Skipped,
    buffer: Vec<u8>,
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

impl<V: Visitor> Worker<'_, V> {
    fn run_until(&mut self, enough: impl Fn() -> bool) {
        while let Some(task) = self.work.next() {
            let doing = Doing(self.work);
            if let Err(error) = self.perform(task) {
                self.work.fail(error);
            }
            drop(doing);
            if enough() {
                return;
            }
        }
    }

    fn perform(&mut self, task: Task) -> Result<()> {
        self.walk.patience.check()?;
        match task {
            Task::Directory { root, start, path, depth, rules } => {
                match self.enter(root, start, &path, depth, &rules) {
                    // Gone or swapped since it was listed: then it is not there.
                    Err(Error::NotFound | Error::NotADirectory | Error::Changed) => Ok(()),
                    Err(error @ Error::Impatient) => Err(error),
                    Err(_) => {
                        self.skipped.unreadable += 1;
                        Ok(())
                    }
                    Ok(()) => Ok(()),
                }
            }
            Task::Files { root, start, dir, path, files } => {
                let mut at = Path::new(&path);
                for (name, kind) in &files {
                    self.show(root, start, &dir, at.with(name), *kind)?;
                }
                Ok(())
            }
        }
    }

    fn list(&mut self, dir: &OwnedFd) -> Result<Listing> {
        let mut listing = Listing::default();
        let mut patient = Ok(());
        sys::list(dir, &mut self.buffer, |name, kind| {
            if is_temporary(name) {
                return ControlFlow::Continue(());
            }
            let start = listing.names.len();
            listing.names.extend_from_slice(name);
            listing.entries.push((start, listing.names.len(), kind_of(dir, name, kind)));
            if listing.entries.len().is_multiple_of(ASKED_AFTER) {
                patient = self.walk.patience.check();
            }
            if patient.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        patient.map(|()| listing)
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
        let rules = match listing.iter().any(|(name, _)| is_ignore_file(name)) {
            false => above.clone(),
            true => Rules::below(above, path, &self.workspace.known_patterns, |wanted| {
                let (name, kind) = listing.iter().find(|(name, _)| *name == wanted)?;
                self.workspace.ignore_file(root, &dir, path, name, kind)
            }),
        };
        self.skipped.rules += rules.cut(above);
        let mut at = Path::new(path);
        let mut directories = Vec::new();
        let mut others = Vec::new();
        for (number, (name, kind)) in listing.iter().enumerate() {
            if number % ASKED_AFTER == ASKED_AFTER - 1 {
                self.walk.patience.check()?;
            }
            if !self.shows(root, start, at.with(name), kind, &rules) {
                continue;
            }
            if kind == Kind::Directory && depth < self.walk.depth {
                if depth >= DEEPEST {
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
        // The first are done here and now; what is more than that can be anybody's work.
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
        let secrecy = (self.walk.secrecy)(&candidate);
        self.skipped.withheld += u64::from(secrecy == Secrecy::Withheld);
        secrecy == Secrecy::Shown
    }

    fn admits(&mut self, candidate: &Candidate<'_>, rules: &Rules) -> bool {
        let opinion = (self.walk.opinion)(candidate);
        match opinion {
            Opinion::Named => return true,
            Opinion::Leave => return false,
            Opinion::Take | Opinion::Usual => {}
        }
        let name = candidate.name();
        if SKIPPED_NAMES.contains(&name) {
            self.skipped.ignored += 1;
            return false;
        }
        if opinion == Opinion::Take {
            return true;
        }
        match rules.ruling(candidate.path, candidate.kind == Kind::Directory) {
            Ruling::Ignored => {
                self.skipped.ignored += 1;
                false
            }
            Ruling::Wanted => true,
            Ruling::Silent if !self.walk.hidden && name.starts_with(b".") => {
                self.skipped.hidden += 1;
                false
            }
            Ruling::Silent => true,
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
        self.walk.patience.check()?;
        let found = Found { workspace: self.workspace, root, start, path, dir, kind };
        match self.visitor.visit(&found) {
            Err(error @ Error::Impatient) => Err(error),
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
struct Path {
    bytes: Vec<u8>,
    directory: usize,
}

impl Path {
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
