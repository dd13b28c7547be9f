//! The same functions as in `linux.rs`, for macOS and other systems.
//!
//! Type-checked for macOS and FreeBSD, and never run there or on any other of these systems.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::SystemTime;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{self, FileType, OFlags};
use rustix::io::{Errno, Result};

use super::{Cached, Symlinks, call, stat_at};
use crate::meta::system_time;
use crate::{Metadata, Times};

/// A handle on a directory, to open entries below it. There is no `O_PATH`, so it is an ordinary one.
pub(crate) const DIR_PATH: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// A handle on an entry of any kind. There is no `O_PATH`, so it is an ordinary one.
pub(crate) const PATH_ONLY: OFlags = OFlags::RDONLY;

/// A resource fork is an extended attribute, too. This limit is our own; they rarely have more than some megabytes.
pub(crate) const MAX_ATTRIBUTE_BYTES: usize = 64 * 1024 * 1024;

/// The current time. The clock of timestamps cannot be read.
pub(crate) fn timestamp_now() -> SystemTime {
    SystemTime::now()
}

/// Always false: the number does not tell.
pub(crate) fn is_block_device(_: u64) -> bool {
    false
}

/// Opens `path` below `root`. The kernel follows no symlink in it. A path below a root has no `..`.
#[cfg(target_vendor = "apple")]
pub(crate) fn open_beneath(root: impl AsFd, path: &[u8], flags: OFlags) -> Result<OwnedFd> {
    let flags = super::with_always(flags) | OFlags::NOFOLLOW_ANY;
    call("openat", || fs::openat(root.as_fd(), path, flags, fs::Mode::empty()))
}

/// This system has no such call, so names are opened one by one.
#[cfg(not(target_vendor = "apple"))]
pub(crate) fn open_beneath(_: impl AsFd, _: &[u8], _: OFlags) -> Result<OwnedFd> {
    Err(Errno::NOSYS)
}

/// Always fails: there is no such call here. The caller uses the ordinary calls.
pub(crate) fn open_without_symlinks(_: &Path) -> Result<OwnedFd> {
    Err(Errno::NOSYS)
}

/// Always fails: no system call here promises to answer from caches alone. The caller uses the ordinary calls.
pub(crate) fn open_cached(_: impl AsFd, _: &[u8], _: OFlags) -> Result<OwnedFd> {
    Err(Errno::AGAIN)
}

/// As [`open_cached`].
pub(crate) fn open_root_cached(_: &Path, _: Symlinks) -> Result<OwnedFd> {
    Err(Errno::AGAIN)
}

/// As [`open_cached`].
pub(crate) fn stat_cached(_: impl AsFd) -> Result<Cached> {
    Err(Errno::NOSYS)
}

/// As [`open_cached`].
pub(crate) fn read_cached(_: impl AsFd, _: &mut [u8], _: u64) -> Result<usize> {
    Err(Errno::AGAIN)
}

/// Always false, since it is unknown. The caller takes the slower path, which is always right.
pub(crate) fn is_local(_: impl AsFd) -> Result<bool> {
    Ok(false)
}

/// The metadata of a file, and the time of its last access. A symlink is not followed.
#[allow(clippy::unnecessary_cast, reason = "field types differ between systems")]
pub(crate) fn stat_with_times(dir: impl AsFd, name: &[u8]) -> Result<(Metadata, Times)> {
    let stat = stat_at(dir, name)?;
    let accessed = system_time(stat.st_atime as i64, stat.st_atime_nsec as u32);
    #[cfg(target_vendor = "apple")]
    let created = Some(system_time(stat.st_birthtime as i64, stat.st_birthtime_nsec as u32));
    #[cfg(not(target_vendor = "apple"))]
    let created = None;
    Ok((Metadata::of(&stat), Times { created, accessed }))
}

/// Copies a file's access list, which is not an extended attribute here.
#[cfg(target_vendor = "apple")]
#[allow(unsafe_code, reason = "no safe function does this")]
pub(crate) fn copy_access_list(from: &OwnedFd, to: &OwnedFd) -> Result<()> {
    use rustix::fd::AsRawFd as _;
    call("fcopyfile", || {
        let (from, to) = (from.as_raw_fd(), to.as_raw_fd());
        // SAFETY: both handles are open during the call, and it keeps no state.
        let result = unsafe { libc::fcopyfile(from, to, std::ptr::null_mut(), libc::COPYFILE_ACL) };
        match result {
            0 => Ok(()),
            _ => match Errno::from_io_error(&std::io::Error::last_os_error()) {
                // The file system has no access lists.
                Some(errno) if super::is_unsupported(errno) => Ok(()),
                errno => Err(errno.unwrap_or(Errno::IO)),
            },
        }
    })
}

/// Access lists are not copied here.
#[cfg(not(target_vendor = "apple"))]
pub(crate) fn copy_access_list(_: &OwnedFd, _: &OwnedFd) -> Result<()> {
    Ok(())
}

/// Always fails: every file has a name here.
pub(crate) fn create_unnamed(_: impl AsFd, _: u32) -> Result<OwnedFd> {
    Err(Errno::OPNOTSUPP)
}

/// As [`create_unnamed`].
pub(crate) fn link_unnamed(_: &OwnedFd, _: impl AsFd, _: &[u8]) -> Result<()> {
    Err(Errno::OPNOTSUPP)
}

/// Does nothing: there is no such hint here.
pub(crate) fn start_writing_back(_: impl AsFd, _: usize) {}

/// Flushes a file's content to the disk. On macOS, `fsync` alone leaves it in the disk's own cache.
pub(crate) fn sync_data(file: impl AsFd) -> Result<()> {
    #[cfg(target_vendor = "apple")]
    match call("fdatasync", || fs::fcntl_fullfsync(file.as_fd())) {
        // Other kinds of file systems, and servers.
        Err(errno) if super::is_unsupported(errno) || errno == Errno::NOTTY => {}
        other => return other,
    }
    call("fsync", || fs::fsync(file.as_fd()))
}

/// Flushes a directory's entries to the disk.
pub(crate) fn sync_dir(dir: impl AsFd) -> Result<()> {
    sync_data(dir)
}

/// Calls `each` with every entry of a directory except `.` and `..`, until it breaks.
pub(crate) fn list(
    dir: impl AsFd,
    _: &mut Vec<u8>,
    mut each: impl FnMut(&[u8], FileType) -> ControlFlow<()>,
) -> Result<()> {
    for entry in call("getdents", || fs::Dir::read_from(dir.as_fd()))? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") && each(name, entry.file_type()).is_break() {
            break;
        }
    }
    Ok(())
}
