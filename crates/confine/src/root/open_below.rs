//! Opens files and directories below a root. Nothing is reached through a symlink.

use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Root;
use crate::temp_name::is_temp;
use crate::{Error, Kind, Metadata, Name, RelPath, Result, sys};

/// How paths below a root are opened. Neither method follows a symlink.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OpenMethod {
    /// The kernel walks the whole path in one call: `openat2` (Linux 5.6 and later), or `openat` with
    /// `O_NOFOLLOW_ANY` on macOS.
    Kernel,
    /// One `openat` for each name, if the kernel has no such call or a filter forbids it.
    NameByName,
}

impl OpenMethod {
    /// The best method that the kernel supports.
    pub(super) fn best(handle: &OwnedFd) -> Self {
        // `ENOSYS`: an old kernel, or a system without such a call. `EPERM`: a seccomp filter that does not know the
        // call.
        match sys::open_beneath(handle, b".", sys::DIR_PATH) {
            Ok(_) => Self::Kernel,
            Err(_) => Self::NameByName,
        }
    }
}

impl Root {
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
