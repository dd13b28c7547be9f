//! A root directory: a handle on it, and the two ways to open what is below.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::path::{Step, bytes_of, steps, without_parent_steps};
use crate::{Error, Kind, Metadata, Name, RelPath, Result, sys};

/// How paths below a root are opened. Both ways follow no link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OpenMethod {
    /// The kernel walks the whole path in one call (`openat2`, Linux 5.6 and later).
    Openat2,
    /// One handle after the other, name by name: where the kernel cannot, or may not.
    Walk,
}

#[derive(Debug)]
pub(crate) struct Root {
    /// As the person who started us wrote it, made absolute.
    given: PathBuf,
    given_names: Vec<Name>,
    canonical_names: Vec<Name>,
    handle: Arc<OwnedFd>,
    method: OpenMethod,
    /// The mount that the root is on, if its file system is known to wait for no network and no
    /// other process.
    local_mount: Option<u64>,
}

impl Root {
    /// Opens a root, once. `way` is chosen by what the kernel can, unless it is given.
    pub(crate) fn open(path: &Path, method: Option<OpenMethod>) -> Result<Self> {
        let mut given = std::path::absolute(path).map_err(Error::Os)?;
        let handle = Arc::new(sys::open_root(&given)?);
        let canonical = std::fs::canonicalize(&given).map_err(Error::Os)?;
        if given.components().any(|part| part == std::path::Component::ParentDir) {
            // What `..` stands for depends on links before it: only the real path will do.
            given.clone_from(&canonical);
        }
        let method = method.unwrap_or_else(|| Self::best_method(&handle));
        Ok(Self {
            given_names: names(&given)?,
            canonical_names: names(&canonical)?,
            given,
            local_mount: local_mount(&handle),
            handle,
            method,
        })
    }

    /// What of this root is in a directory too: all of it, a part, or nothing.
    pub(crate) fn narrowed(&self, directory: &Path) -> Option<Self> {
        let canonical = std::fs::canonicalize(directory).ok()?;
        if self.canonical_names.starts_with(&names(&canonical).ok()?) {
            return Some(self.again());
        }
        self.inside(&canonical)
    }

    /// This root once more, by the same handle.
    pub(crate) fn again(&self) -> Self {
        Self {
            given: self.given.clone(),
            given_names: self.given_names.clone(),
            canonical_names: self.canonical_names.clone(),
            handle: self.handle.clone(),
            method: self.method,
            local_mount: self.local_mount,
        }
    }

    /// A directory in this root, or the root itself, as a root.
    pub(crate) fn inside(&self, directory: &Path) -> Option<Self> {
        let canonical = names(&std::fs::canonicalize(directory).ok()?).ok()?;
        let below = canonical.strip_prefix(self.canonical_names.as_slice())?;
        let path: RelPath = below.iter().cloned().collect();
        let handle = Arc::new(self.open_below(&path, sys::DIR_PATH).ok()?);
        // As it is called below the root's own name, so that it is found under that.
        let given_names: Vec<Name> = self.given_names.iter().chain(below).cloned().collect();
        let given = given_names
            .iter()
            .fold(PathBuf::from("/"), |path, name| path.join(OsStr::from_bytes(name.as_bytes())));
        Some(Self {
            given,
            given_names,
            canonical_names: canonical,
            // Something else may be mounted there.
            local_mount: local_mount(&handle),
            handle,
            method: self.method,
        })
    }

    #[cfg(target_os = "linux")]
    fn best_method(handle: &OwnedFd) -> OpenMethod {
        // ENOSYS: an old kernel. EPERM: a seccomp filter that does not know the call.
        match sys::open_beneath(handle, b".", sys::DIR_PATH) {
            Ok(_) => OpenMethod::Openat2,
            Err(_) => OpenMethod::Walk,
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn best_method(_: &OwnedFd) -> OpenMethod {
        OpenMethod::Walk
    }

    pub(crate) fn given(&self) -> &Path {
        &self.given
    }

    pub(crate) fn open_method(&self) -> OpenMethod {
        self.method
    }

    pub(crate) fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    pub(crate) fn local_mount(&self) -> Option<u64> {
        self.local_mount
    }

    pub(crate) fn canonical_names(&self) -> &[Name] {
        &self.canonical_names
    }

    /// How many of an absolute path's first steps name this root, in either spelling of it.
    pub(crate) fn leads(&self, path: &[Step]) -> Option<usize> {
        let leads = |names: &[Name]| {
            let begins = path.len() >= names.len()
                && names.iter().zip(path).all(|(name, step)| *step == Step::Name(name.clone()));
            begins.then_some(names.len())
        };
        leads(&self.canonical_names).max(leads(&self.given_names))
    }

    /// Opens what is at `path`. A link anywhere in it is `ELOOP`.
    pub(crate) fn open_below(&self, path: &RelPath, flags: OFlags) -> Result<OwnedFd, Errno> {
        // Longer paths do not fit into one system call.
        const MAX_OPENAT2_BYTES: usize = 4000;
        match self.method {
            #[cfg(target_os = "linux")]
            OpenMethod::Openat2 if path.as_bytes().len() <= MAX_OPENAT2_BYTES => {
                sys::open_beneath(&self.handle, path.for_kernel(), flags)
            }
            _ => self.walk(path, flags),
        }
    }

    /// As [`Self::open_below`], but a pipe, socket or device is not opened: whoever waits at its
    /// other end would be disturbed. It is `EPIPE`, `ENXIO` or `ENODEV`.
    pub(crate) fn open_checked(&self, path: &RelPath, flags: OFlags) -> Result<OwnedFd, Errno> {
        let Some((parent, name)) = path.split() else {
            return self.open_below(path, flags);
        };
        let parent = match parent.is_root() {
            true => None,
            false => Some(self.open_below(&parent, sys::DIR_PATH)?),
        };
        let dir = parent.as_ref().unwrap_or(&self.handle);
        match Metadata::of(&sys::stat_at(dir, name.as_bytes())?).kind {
            Kind::Fifo => Err(Errno::PIPE),
            Kind::Socket => Err(Errno::NXIO),
            Kind::Device => Err(Errno::NODEV),
            Kind::Symlink => Err(Errno::LOOP),
            Kind::File | Kind::Directory => step_into(dir, &name, flags),
        }
    }

    /// As [`Self::open_below`], but only if the system has the way there in memory.
    pub(crate) fn open_cached(&self, path: &RelPath, flags: OFlags) -> Result<OwnedFd, Errno> {
        match self.method {
            OpenMethod::Openat2 => sys::open_cached(&self.handle, path.for_kernel(), flags),
            OpenMethod::Walk => Err(Errno::AGAIN),
        }
    }

    fn walk(&self, path: &RelPath, flags: OFlags) -> Result<OwnedFd, Errno> {
        let Some((parent, last)) = path.split() else {
            return sys::open_at(&self.handle, b".", flags);
        };
        let mut dir: Option<OwnedFd> = None;
        for name in parent.names() {
            dir = Some(step_into(dir.as_ref().unwrap_or(&self.handle), &name, sys::DIR_PATH)?);
        }
        step_into(dir.as_ref().unwrap_or(&self.handle), &last, flags)
    }
}

/// The mount that a handle is on, if its file system is a local one.
fn local_mount(handle: &OwnedFd) -> Option<u64> {
    sys::is_local(handle).ok().filter(|local| *local)?;
    Some(sys::stat_cached(handle).ok()?.mount)
}

/// Opens one name in a directory; a link is `ELOOP`, whatever the flags.
pub(crate) fn step_into(dir: &OwnedFd, name: &Name, flags: OFlags) -> Result<OwnedFd, Errno> {
    for _ in 0..sys::MAX_RACES {
        match sys::open_at(dir, name.as_bytes(), flags) {
            // Asked for a directory, the kernel says of a link too that it is none.
            Err(Errno::NOTDIR) => match Metadata::of(&sys::stat_at(dir, name.as_bytes())?).kind {
                Kind::Symlink => return Err(Errno::LOOP),
                // It was something else a moment ago.
                Kind::Directory => {}
                _ => return Err(Errno::NOTDIR),
            },
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

fn names(absolute: &Path) -> Result<Vec<Name>> {
    let path = without_parent_steps(&steps(bytes_of(absolute))?);
    Ok(path.ok_or(Error::BadPath("of the root has `..` in it"))?.names().collect())
}
