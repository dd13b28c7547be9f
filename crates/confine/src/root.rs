//! A root directory: a path, and the directory that it leads to.
//!
//! A root is a path, not an inode: [`Root::refresh`] compares the directory that the path leads to with the one that is
//! open, and opens the new one if they differ. A root that is inside another one is not reached through a symlink.
//! `root/open_below.rs` opens what is below a root.

mod cached_file;
mod open_below;

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustix::io::Errno;

use crate::ambient::symlinks_and_target;
use crate::path::{Step, bytes_of, escaped, steps, without_parent_steps};
use crate::tree::Tree;
use crate::{Error, Identity, Metadata, Name, RelPath, Result, sys};
use cached_file::local_mount;
pub use open_below::OpenMethod;
pub(crate) use open_below::{OpenError, open_error, step_into};

#[derive(Debug)]
pub(crate) struct Root {
    /// The path as the user gave it, made absolute.
    given: PathBuf,
    /// The given path, escaped for printing.
    shown: String,
    given_names: Vec<Name>,
    method: OpenMethod,
    /// Whether it is a read root, below which nothing is changed.
    read_root: bool,
    /// Whether files and directories that are created below it are private to the owner.
    private: bool,
    /// The directory that this one is in, and the path from there, if it was made by narrowing or is pinned.
    outer: Option<(Arc<Self>, RelPath)>,
    opened: RwLock<Arc<OpenedRoot>>,
    tree: Tree,
}

/// The directory that a root's path leads to.
///
/// The open handle prevents reuse of the inode number, so the identity is unique.
#[derive(Debug)]
pub(crate) struct OpenedRoot {
    handle: OwnedFd,
    identity: Identity,
    canonical_names: Vec<Name>,
    /// These names as a path.
    canonical_path: PathBuf,
    /// The mount of the root, if its file system is known to be local.
    local_mount: Option<u64>,
}

impl OpenedRoot {
    fn new(handle: OwnedFd, canonical_names: Vec<Name>) -> Result<Self> {
        let identity = Metadata::of(&sys::stat(&handle)?).identity;
        let local_mount = local_mount(&handle);
        let canonical_path = path_of(&canonical_names);
        Ok(Self { handle, identity, canonical_names, canonical_path, local_mount })
    }

    pub(crate) fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }
}

impl Root {
    /// Opens a root. If no method is given, it depends on what the kernel supports.
    pub(crate) fn open(path: &Path, method: Option<OpenMethod>) -> Result<Self> {
        let mut given = std::path::absolute(path).map_err(Error::Os)?;
        let opened = open(&given)?;
        if given.components().any(|part| part == std::path::Component::ParentDir) {
            // After a symlink, `..` has another meaning, so only the real path can be used.
            given = path_of(&opened.canonical_names);
        }
        Ok(Self {
            given_names: names(&given)?,
            shown: shown(&given),
            given,
            method: method.unwrap_or_else(|| OpenMethod::best(&opened.handle)),
            read_root: false,
            private: false,
            outer: None,
            opened: RwLock::new(Arc::new(opened)),
            tree: Tree::default(),
        })
    }

    /// Whether another root holds this one, or a symlink on the way to it. Then whoever may write there could make this
    /// root's path lead elsewhere.
    pub(crate) fn is_reached_through(&self, other: &Self) -> bool {
        let holder = other.canonical_path();
        let mut ways = symlinks_and_target(&self.given).into_iter();
        ways.any(|way| way != holder && way.starts_with(&holder))
    }

    /// The same root at its real path, on which no symlink is followed from now on.
    pub(crate) fn pinned(&self) -> Result<Self> {
        let top = Arc::new(Self::open(Path::new("/"), Some(self.method))?);
        let path: RelPath = self.canonical_names().into_iter().collect();
        self.reached_from(top, path, self.given.clone())
    }

    /// A root at the path `below` in `outer`, with the options of this one.
    fn reached_from(&self, outer: Arc<Self>, below: RelPath, given: PathBuf) -> Result<Self> {
        let opened = OpenedRoot::new(outer.open_below(&below, sys::DIR_PATH)?, Vec::new())?;
        Ok(Self {
            given_names: names(&given)?,
            shown: shown(&given),
            given,
            method: self.method,
            read_root: self.read_root,
            private: self.private,
            outer: Some((outer, below)),
            opened: RwLock::new(Arc::new(opened)),
            tree: Tree::default(),
        })
    }

    /// Opens the directory that the path leads to now, if that is not the one that is open.
    pub(crate) fn refresh(&self) -> Result<()> {
        let gone = || Error::RootGone(self.given.display().to_string());
        let opened = self.opened();
        let fresh = match &self.outer {
            // This takes one or two system calls, since every tool call does it.
            None if self.is_where_it_was(&opened) => return Ok(()),
            None => open(&self.given).map_err(|_| gone())?,
            // Only a lookup that follows no symlink proves that it is still in the outer root.
            Some((outer, path)) => {
                outer.refresh()?;
                let handle = outer.open_below(path, sys::DIR_PATH).map_err(|_| gone())?;
                OpenedRoot::new(handle, Vec::new())?
            }
        };
        let same_names = fresh.canonical_names == opened.canonical_names;
        if fresh.identity != opened.identity || !same_names {
            if sys::is_denied_by_policy(&fresh.handle) {
                return Err(Error::RootReplaced(self.given.display().to_string()));
            }
            *self.opened.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(fresh);
        }
        Ok(())
    }

    /// Whether the given path and the real path both still lead to the open directory. It may have been moved and
    /// replaced by a symlink to its new place.
    fn is_where_it_was(&self, opened: &OpenedRoot) -> bool {
        let leads =
            |stat: Result<_, Errno>| stat.is_ok_and(|stat| Identity::of(&stat) == opened.identity);
        let is_real = self.given_names == opened.canonical_names;
        leads(sys::lstat_path(&opened.canonical_path))
            && (is_real || leads(sys::stat_path(&self.given)))
    }

    /// Whether a path below this root still leads to a directory that was opened before.
    pub(crate) fn leads_to(&self, path: &RelPath, directory: Identity) -> Result<bool> {
        let is_there = |handle| Ok(Identity::of(&sys::stat(handle)?) == directory);
        // If this fails, the root may have another path now.
        if let Some(handle) = self.open_by_real_path(path)
            && is_there(handle)?
        {
            return Ok(true);
        }
        match self.refresh() {
            Err(Error::RootGone(_) | Error::RootReplaced(_)) => return Ok(false),
            other => other?,
        }
        if path.is_root() {
            return Ok(self.opened().identity == directory);
        }
        match self.open_below(path, sys::DIR_PATH) {
            Ok(handle) => is_there(handle),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(false),
            Err(other) => Err(other.into()),
        }
    }

    /// Opens a directory by the root's real path and its own in one call, without symlinks. So this also shows that the
    /// root's path leads there. Returns `None` if that cannot be shown.
    fn open_by_real_path(&self, path: &RelPath) -> Option<OwnedFd> {
        let opened = self.opened();
        let is_real = self.outer.is_none() && self.given_names == opened.canonical_names;
        if !is_real || path.is_root() || self.method != OpenMethod::Kernel {
            return None;
        }
        let whole = opened.canonical_path.join(OsStr::from_bytes(path.as_bytes()));
        sys::open_without_symlinks(&whole).ok()
    }

    /// The directory that the last refresh found.
    pub(crate) fn opened(&self) -> Arc<OpenedRoot> {
        self.opened.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The part of this root inside a directory, which is given by the names of its real path: the whole root, a
    /// directory in it, or nothing.
    pub(crate) fn narrowed(self: &Arc<Self>, directory: &[Name]) -> Option<Arc<Self>> {
        let is_in = || self.canonical_names().starts_with(directory);
        // An unrelated root is not accessed, since it may be on a mount that hangs.
        if is_in() && self.refresh().is_ok() && is_in() {
            return Some(self.clone());
        }
        self.inside(directory)
    }

    /// The same root as a read root, below which nothing is changed.
    pub(crate) fn into_read_root(self) -> Self {
        Self { read_root: true, ..self }
    }

    /// The same root, with new files and directories private to the owner.
    pub(crate) fn for_owner(self) -> Self {
        Self { private: true, ..self }
    }

    pub(crate) fn is_private(&self) -> bool {
        self.private
    }

    pub(crate) fn is_read_root(&self) -> bool {
        self.read_root
    }

    /// A directory in a root, or the root itself, as a root.
    pub(crate) fn inside(self: &Arc<Self>, directory: &[Name]) -> Option<Arc<Self>> {
        directory.strip_prefix(self.canonical_names().as_slice())?;
        _ = self.refresh();
        let below = directory.strip_prefix(self.canonical_names().as_slice())?;
        if below.is_empty() {
            return Some(self.clone());
        }
        // This is below the outer root's given path, so that paths which start with that lead here.
        let given: Vec<Name> = self.given_names.iter().chain(below).cloned().collect();
        let below = below.iter().cloned().collect();
        self.reached_from(self.clone(), below, path_of(&given)).ok().map(Arc::new)
    }

    /// The tree that searches have cached.
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) fn given(&self) -> &Path {
        &self.given
    }

    /// Its path as it was given, escaped for printing.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    pub(crate) fn open_method(&self) -> OpenMethod {
        self.method
    }

    /// The names of the root's real path, which has no symlinks.
    pub(crate) fn canonical_names(&self) -> Vec<Name> {
        match &self.outer {
            None => self.opened().canonical_names.clone(),
            Some((outer, path)) => {
                outer.canonical_names().into_iter().chain(path.names()).collect()
            }
        }
    }

    /// The root's real path, whose names are [`Self::canonical_names`].
    pub(crate) fn canonical_path(&self) -> PathBuf {
        match &self.outer {
            None => self.opened().canonical_path.clone(),
            Some((outer, path)) => {
                let mut real = outer.canonical_path();
                real.push(OsStr::from_bytes(path.as_bytes()));
                real
            }
        }
    }

    /// Whether this is the root's real path.
    pub(crate) fn is_canonical_path(&self, path: &Path) -> bool {
        match &self.outer {
            None => self.opened().canonical_path == path,
            Some(_) => self.canonical_path() == path,
        }
    }

    /// How many of an absolute path's first steps name this root, by its given or its real path. Makes system calls
    /// only if the names differ in case or Unicode form: a file system may fold such names to the same directory.
    pub(crate) fn matching_prefix(&self, path: &[Step]) -> Option<usize> {
        let leads = |names: &[Name]| {
            let first = path.get(..names.len())?;
            let begins = |same: fn(&Name, &Name) -> bool| {
                let mut both = first.iter().zip(names);
                both.all(|(step, name)| matches!(step, Step::Name(given) if same(given, name)))
            };
            let is_root = begins(|given, name| given == name)
                || begins(|given, name| given == name || given.folded() == name.folded())
                    && is_directory(first, names);
            is_root.then_some(names.len())
        };
        let by_real_path = match &self.outer {
            None => leads(&self.opened().canonical_names),
            Some(_) => leads(&self.canonical_names()),
        };
        by_real_path.max(leads(&self.given_names))
    }
}

/// Opens the directory that an absolute path leads to. Symlinks are followed.
fn open(given: &Path) -> Result<OpenedRoot> {
    for _ in 0..sys::MAX_RACES {
        let handle = sys::open_root(given)?;
        let canonical = std::fs::canonicalize(given).map_err(Error::Os)?;
        let opened = OpenedRoot::new(handle, names(&canonical)?)?;
        // Checks that the names belong to this directory, and not to one that was there a moment before.
        if sys::stat_path(&canonical).is_ok_and(|it| Metadata::of(&it).identity == opened.identity)
        {
            return Ok(opened);
        }
    }
    Err(Error::Changed)
}

/// Whether an absolute path leads to the directory with these names.
fn is_directory(path: &[Step], names: &[Name]) -> bool {
    let name = |step: &Step| match step {
        Step::Name(name) => Some(name.clone()),
        Step::Parent => None,
    };
    let given: Option<Vec<Name>> = path.iter().map(name).collect();
    let identity =
        |names: &[Name]| Some(Metadata::of(&sys::stat_path(&path_of(names)).ok()?).identity);
    given.is_some_and(|given| identity(&given).is_some_and(|it| identity(names) == Some(it)))
}

/// A path, escaped for printing.
fn shown(path: &Path) -> String {
    escaped(bytes_of(path)).to_string()
}

fn path_of(names: &[Name]) -> PathBuf {
    names
        .iter()
        .fold(PathBuf::from("/"), |path, name| path.join(OsStr::from_bytes(name.as_bytes())))
}

/// The names of the real path of a directory.
pub(crate) fn real_names(directory: &Path) -> Option<Vec<Name>> {
    names(&std::fs::canonicalize(directory).ok()?).ok()
}

fn names(absolute: &Path) -> Result<Vec<Name>> {
    let path = without_parent_steps(&steps(bytes_of(absolute))?);
    Ok(path.ok_or(Error::BadPath("of the root has `..` in it"))?.names().collect())
}
