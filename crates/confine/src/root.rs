//! A root directory: opens files and directories below it.
//!
//! A root is a path, not an inode: [`Root::refresh`] compares the directory that the path leads to
//! with the one that is open, and opens the new one if they differ. Nothing below a root is reached
//! through a symlink, and neither is a root that is inside another one.

mod cached_file;

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::ambient::symlinks_and_target;
use crate::path::{Step, bytes_of, steps, without_parent_steps};
use crate::temp_name::is_temp;
use crate::tree::Tree;
use crate::{Error, Identity, Kind, Metadata, Name, RelPath, Result, sys};
use cached_file::local_mount;

/// How paths below a root are opened. Neither method follows a symlink.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OpenMethod {
    /// The kernel walks the whole path in one call: `openat2` (Linux 5.6 and later), or `openat` with
    /// `O_NOFOLLOW_ANY` on macOS.
    Kernel,
    /// One `openat` for each name, if the kernel has no such call or a filter forbids it.
    NameByName,
}

#[derive(Debug)]
pub(crate) struct Root {
    /// The path as the user gave it, made absolute.
    given: PathBuf,
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
            given,
            method: method.unwrap_or_else(|| Self::best_method(&opened.handle)),
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
        let opened = OpenedRoot::new(top.open_below(&path, sys::DIR_PATH)?, Vec::new())?;
        Ok(Self {
            given: self.given.clone(),
            given_names: self.given_names.clone(),
            method: self.method,
            read_root: self.read_root,
            private: self.private,
            outer: Some((top, path)),
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
        let leads = |stat: Result<_, Errno>| {
            stat.is_ok_and(|stat| Metadata::of(&stat).identity == opened.identity)
        };
        let is_real = self.given_names == opened.canonical_names;
        leads(sys::lstat_path(&opened.canonical_path))
            && (is_real || leads(sys::stat_path(&self.given)))
    }

    /// Whether a path below this root still leads to a directory that was opened before.
    pub(crate) fn leads_to(&self, path: &RelPath, directory: Identity) -> Result<bool> {
        match self.refresh() {
            Err(Error::RootGone(_) | Error::RootReplaced(_)) => return Ok(false),
            other => other?,
        }
        if path.is_root() {
            return Ok(self.opened().identity == directory);
        }
        match self.open_below(path, sys::DIR_PATH) {
            Ok(handle) => Ok(Metadata::of(&sys::stat(handle)?).identity == directory),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(false),
            Err(other) => Err(other.into()),
        }
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
        let path: RelPath = below.iter().cloned().collect();
        let opened =
            OpenedRoot::new(self.open_below(&path, sys::DIR_PATH).ok()?, Vec::new()).ok()?;
        // This is below the outer root's given path, so that paths which start with that lead here.
        let given_names: Vec<Name> = self.given_names.iter().chain(below).cloned().collect();
        Some(Arc::new(Self {
            given: path_of(&given_names),
            given_names,
            method: self.method,
            read_root: self.read_root,
            private: self.private,
            outer: Some((self.clone(), path)),
            opened: RwLock::new(Arc::new(opened)),
            tree: Tree::default(),
        }))
    }

    fn best_method(handle: &OwnedFd) -> OpenMethod {
        // `ENOSYS`: an old kernel, or a system without such a call. `EPERM`: a seccomp filter that does not know the
        // call.
        match sys::open_beneath(handle, b".", sys::DIR_PATH) {
            Ok(_) => OpenMethod::Kernel,
            Err(_) => OpenMethod::NameByName,
        }
    }

    /// The tree that searches have cached.
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) fn given(&self) -> &Path {
        &self.given
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

    /// Opens the entry at `path`. Fails with `ELOOP` if any part of the path is a symlink.
    pub(crate) fn open_below(&self, path: &RelPath, flags: OFlags) -> Result<OwnedFd, Errno> {
        // The kernel does not accept longer paths.
        const MAX_KERNEL_BYTES: usize = 4000;
        match self.method {
            OpenMethod::Kernel if path.as_bytes().len() <= MAX_KERNEL_BYTES => {
                sys::open_beneath(self.opened().handle(), path.for_kernel(), flags)
            }
            _ => self.open_name_by_name(path, flags),
        }
    }

    /// As [`Self::open_below`], but does not open a FIFO, socket or device, because the process at its other end would
    /// notice the open.
    pub(crate) fn open_checked(&self, path: &RelPath, flags: OFlags) -> Result<OwnedFd, OpenError> {
        let Some((parent, name)) = path.split() else {
            return Ok(self.open_below(path, flags)?);
        };
        self.in_directory(&parent, |dir| Ok(open_entry(dir, &name, flags)))?
    }

    /// Calls a function with a handle on a directory below this root. The root itself is already open.
    pub(crate) fn in_directory<T>(
        &self,
        path: &RelPath,
        action: impl FnOnce(&OwnedFd) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        if path.is_root() {
            return action(self.opened().handle());
        }
        action(&self.open_below(path, sys::DIR_PATH)?)
    }

    fn open_name_by_name(&self, path: &RelPath, flags: OFlags) -> Result<OwnedFd, Errno> {
        let opened = self.opened();
        let Some((parent, last)) = path.split() else {
            return sys::open_at(opened.handle(), b".", flags);
        };
        let mut dir: Option<OwnedFd> = None;
        for name in parent.names() {
            dir = Some(step_into(dir.as_ref().unwrap_or(opened.handle()), &name, sys::DIR_PATH)?);
        }
        step_into(dir.as_ref().unwrap_or(opened.handle()), &last, flags)
    }
}

/// Why an entry was not opened.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// A part of its path is a symlink.
    Symlink,
    /// It is a FIFO, a socket or a device.
    NotRegular(Kind),
    /// A system call failed.
    Os(Errno),
}

impl From<Errno> for OpenError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::LOOP => Self::Symlink,
            other => Self::Os(other),
        }
    }
}

impl OpenError {
    pub(crate) fn into_error(self) -> Error {
        match self {
            // Callers that resolve symlinks have handled this, so another process has put one there.
            Self::Symlink => Error::Changed,
            Self::NotRegular(kind) => Error::NotRegular(kind),
            Self::Os(errno) => errno.into(),
        }
    }
}

/// The error for a failed open or stat.
pub(crate) fn open_error(errno: Errno) -> Error {
    OpenError::from(errno).into_error()
}

/// Opens one name in a directory, if it is a file or a directory. Temp files do not exist for callers.
fn open_entry(dir: &OwnedFd, name: &Name, flags: OFlags) -> Result<OwnedFd, OpenError> {
    let meta = Metadata::of(&sys::stat_at(dir, name.as_bytes())?);
    if is_temp(name.as_bytes(), &meta) {
        return Err(OpenError::Os(Errno::NOENT));
    }
    match meta.kind {
        Kind::Fifo | Kind::Socket | Kind::Device => Err(OpenError::NotRegular(meta.kind)),
        Kind::Symlink => Err(OpenError::Symlink),
        Kind::File | Kind::Directory => Ok(step_into(dir, name, flags)?),
    }
}

/// Opens one name in a directory. Fails with `ELOOP` for a symlink, with any flags.
pub(crate) fn step_into(dir: &OwnedFd, name: &Name, flags: OFlags) -> Result<OwnedFd, Errno> {
    for _ in 0..sys::MAX_RACES {
        match sys::open_at(dir, name.as_bytes(), flags) {
            // With `O_DIRECTORY`, the kernel also returns `ENOTDIR` for a symlink.
            Err(Errno::NOTDIR) => match Metadata::of(&sys::stat_at(dir, name.as_bytes())?).kind {
                Kind::Symlink => return Err(Errno::LOOP),
                // Another process has just replaced it.
                Kind::Directory => {}
                _ => return Err(Errno::NOTDIR),
            },
            other => return other,
        }
    }
    Err(Errno::AGAIN)
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
