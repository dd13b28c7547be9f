//! Every system call that is made below a root, in a backup store or to a log, one function each.
//!
//! All of them start at an open handle. Only [`open_root`], [`open_root_cached`], [`open_without_symlinks`],
//! [`stat_path`] and [`lstat_path`] take whole paths. Interrupted calls are made again. Tests can make any of them
//! fail.
//!
//! The differences between systems are in `sys/linux.rs` and `sys/other.rs`, which have the same functions, and in
//! `sys/errno.rs`. `sys/missing.rs` has what only Linux and macOS have, for all other systems.
//!
//! Elsewhere whole paths are used only if no agent gave them: those of roots, of a backup store,
//! and of the user's own files in `ambient`.

mod errno;
#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
mod missing;
mod names;
#[cfg(target_os = "linux")]
#[path = "sys/linux.rs"]
mod platform;
#[cfg(not(target_os = "linux"))]
#[path = "sys/other.rs"]
mod platform;

use std::path::Path;
use std::time::SystemTime;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{self, Access, AtFlags, FlockOperation, Mode, OFlags, Stat};
use rustix::io::{Errno, Result, retry_on_intr};

use crate::Metadata;

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
use missing as extended;
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
use rustix::fs as extended;

pub(crate) use errno::{is_missing_attribute, is_unlockable, is_unsupported};
pub(crate) use names::{
    exchange, link, link_across, make_dir, make_dir_with, make_link, remove, remove_dir, rename,
    rename_across, rename_new, rename_new_across,
};
pub(crate) use platform::{
    DIR_PATH, MAX_ATTRIBUTE_BYTES, PATH_ONLY, copy_access_list, create_unnamed, is_block_device,
    is_local, link_unnamed, list, open_beneath, open_cached, open_root_cached,
    open_without_symlinks, read_cached, start_writing_back, stat_cached, stat_with_times,
    sync_data, sync_dir, timestamp_now,
};

/// Flags of every open: it does not block, takes no controlling terminal, and the handle is not inherited.
const ALWAYS: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Adds [`ALWAYS`]. With `O_PATH`, the kernel accepts only `O_CLOEXEC` of these flags.
fn with_always(flags: OFlags) -> OFlags {
    if flags.contains(PATH_ONLY) && PATH_ONLY != OFlags::RDONLY {
        flags | OFlags::CLOEXEC
    } else {
        flags | ALWAYS
    }
}

/// A directory that can be listed, locked and flushed.
pub(crate) const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

fn call<T>(name: &'static str, mut make: impl FnMut() -> Result<T>) -> Result<T> {
    retry_on_intr(|| {
        #[cfg(feature = "fault-injection")]
        crate::fault::check(name)?;
        #[cfg(not(feature = "fault-injection"))]
        let _ = name;
        make()
    })
}

pub(crate) fn open_root(path: &Path) -> Result<OwnedFd> {
    call("open", || fs::open(path, DIR_PATH | OFlags::CLOEXEC, Mode::empty()))
}

/// Whether a directory cannot be opened although its mode allows it. Then the process itself is restricted, for
/// example by Landlock.
pub(crate) fn is_denied_by_policy(directory: &OwnedFd) -> bool {
    let readable = fs::accessat(directory, ".", Access::READ_OK, AtFlags::EACCESS);
    readable.is_ok()
        && open_at(directory, b".", DIRECTORY).is_err_and(|error| error == Errno::ACCESS)
}

/// The metadata at an absolute path. Symlinks are followed.
pub(crate) fn stat_path(path: &Path) -> Result<Stat> {
    call("stat", || fs::stat(path))
}

/// As [`stat_path`], but a symlink at the end is not followed.
pub(crate) fn lstat_path(path: &Path) -> Result<Stat> {
    call("stat", || fs::lstat(path))
}

/// How often a lookup that races with renames is tried.
pub(crate) const MAX_RACES: usize = 100;

/// Opens one name in a directory, or fails with `ELOOP` for a symlink.
pub(crate) fn open_at(dir: impl AsFd, name: &[u8], flags: OFlags) -> Result<OwnedFd> {
    call("openat", || {
        fs::openat(dir.as_fd(), name, with_always(flags) | OFlags::NOFOLLOW, Mode::empty())
    })
}

/// Creates a file. Fails if the name is taken.
pub(crate) fn create_at(dir: impl AsFd, name: &[u8], mode: u32) -> Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | ALWAYS;
    call("create", || fs::openat(dir.as_fd(), name, flags, Mode::from_raw_mode(mode as _)))
}

/// Opens a log for appending, and creates it if it is missing.
pub(crate) fn append_at(dir: impl AsFd, name: &[u8]) -> Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | ALWAYS;
    call("append", || fs::openat(dir.as_fd(), name, flags, Mode::from_raw_mode(0o600)))
}

pub(crate) fn truncate(file: impl AsFd, len: u64) -> Result<()> {
    call("ftruncate", || fs::ftruncate(file.as_fd(), len))
}

/// Sets a file's modification time.
pub(crate) fn set_modified(file: impl AsFd, modified: SystemTime) -> Result<()> {
    call("futimens", || fs::futimens(file.as_fd(), &with_modified(modified)))
}

/// As [`set_modified`], by name; a symlink is not followed.
pub(crate) fn set_modified_at(dir: impl AsFd, name: &[u8], modified: SystemTime) -> Result<()> {
    let times = with_modified(modified);
    call("utimensat", || fs::utimensat(dir.as_fd(), name, &times, AtFlags::SYMLINK_NOFOLLOW))
}

/// The access time becomes the current one: if it is left out, libfuse 2 sets neither, and reports success.
fn with_modified(modified: SystemTime) -> fs::Timestamps {
    let now = fs::Timespec { tv_sec: 0, tv_nsec: fs::UTIME_NOW };
    let modified = match modified.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => fs::Timespec {
            tv_sec: since.as_secs().cast_signed(),
            tv_nsec: since.subsec_nanos().into(),
        },
        // The time is before 1970.
        Err(_) => now,
    };
    fs::Timestamps { last_access: now, last_modification: modified }
}

pub(crate) fn stat(file: impl AsFd) -> Result<Stat> {
    call("fstat", || fs::fstat(file.as_fd()))
}

pub(crate) fn stat_at(dir: impl AsFd, name: &[u8]) -> Result<Stat> {
    call("fstatat", || fs::statat(dir.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW))
}

pub(crate) fn read_link(dir: impl AsFd, name: &[u8]) -> Result<Vec<u8>> {
    call("readlinkat", || fs::readlinkat(dir.as_fd(), name, Vec::new()))
        .map(std::ffi::CString::into_bytes)
}

pub(crate) fn read_from(file: impl AsFd, buffer: &mut [u8], offset: u64) -> Result<usize> {
    call("pread", || rustix::io::pread(file.as_fd(), &mut *buffer, offset))
}

fn write(file: impl AsFd, bytes: &[u8]) -> Result<usize> {
    call("write", || {
        #[cfg(feature = "fault-injection")]
        let bytes = crate::fault::shortened(bytes);
        rustix::io::write(file.as_fd(), bytes)
    })
}

/// Writes all bytes, in as many calls as necessary.
pub(crate) fn write_all(file: impl AsFd, bytes: &[u8]) -> Result<()> {
    write_counting(file, bytes).1
}

/// As [`write_all`]. Also returns how many bytes were written before a failure.
pub(crate) fn write_counting(file: impl AsFd, bytes: &[u8]) -> (usize, Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match write(file.as_fd(), &bytes[written..]) {
            Ok(0) => return (written, Err(Errno::NOSPC)),
            Ok(more) => written += more,
            Err(errno) => return (written, Err(errno)),
        }
    }
    (written, Ok(()))
}

/// Moves a handle's own position.
pub(crate) fn seek_to(file: impl AsFd, position: u64) -> Result<()> {
    call("lseek", || fs::seek(file.as_fd(), fs::SeekFrom::Start(position)).map(|_| ()))
}

/// The start and end of the next data in a file after a position. Returns `None` if the rest is a hole. On file
/// systems without holes, everything is data.
pub(crate) fn next_data(file: impl AsFd, from: u64) -> Result<Option<(u64, u64)>> {
    let seek = |to| call("lseek", || fs::seek(file.as_fd(), to));
    match seek(fs::SeekFrom::Data(from)) {
        Ok(start) => Ok(Some((start, seek(fs::SeekFrom::Hole(start))?))),
        Err(Errno::NXIO) => Ok(None),
        Err(errno) if is_unsupported(errno) || errno == Errno::NOTTY => Ok(Some((from, u64::MAX))),
        Err(other) => Err(other),
    }
}

pub(crate) fn change_owner(file: impl AsFd, uid: u32, gid: u32) -> Result<()> {
    let (uid, gid) = (fs::Uid::from_raw(uid), fs::Gid::from_raw(gid));
    call("fchown", || fs::fchown(file.as_fd(), Some(uid), Some(gid)))
}

pub(crate) fn change_mode(file: impl AsFd, mode: u32) -> Result<()> {
    call("fchmod", || fs::fchmod(file.as_fd(), Mode::from_raw_mode(mode as _)))
}

/// The names of a file's extended attributes, each terminated by NUL.
pub(crate) fn attribute_names(file: impl AsFd) -> Result<Vec<u8>> {
    sized("flistxattr", |buffer| extended::flistxattr(file.as_fd(), buffer))
}

pub(crate) fn attribute(file: impl AsFd, name: &[u8]) -> Result<Vec<u8>> {
    sized("fgetxattr", |buffer| extended::fgetxattr(file.as_fd(), name, buffer))
}

/// Calls `make` with a buffer that grows until it is large enough.
fn sized(name: &'static str, mut make: impl FnMut(&mut [u8]) -> Result<usize>) -> Result<Vec<u8>> {
    let mut buffer = vec![0; 256];
    loop {
        match call(name, || make(&mut buffer)) {
            Ok(size) => {
                buffer.truncate(size);
                return Ok(buffer);
            }
            Err(Errno::RANGE) if buffer.len() < MAX_ATTRIBUTE_BYTES => {
                buffer.resize((buffer.len() * 256).min(MAX_ATTRIBUTE_BYTES), 0);
            }
            Err(other) => return Err(other),
        }
    }
}

pub(crate) fn set_attribute(file: impl AsFd, name: &[u8], value: &[u8]) -> Result<()> {
    call("fsetxattr", || {
        extended::fsetxattr(file.as_fd(), name, value, extended::XattrFlags::empty())
    })
}

pub(crate) fn remove_attribute(file: impl AsFd, name: &[u8]) -> Result<()> {
    call("fremovexattr", || extended::fremovexattr(file.as_fd(), name))
}

/// Locks a directory or a log against all other handles. Fails with `EWOULDBLOCK` if it is locked.
pub(crate) fn try_lock(handle: impl AsFd) -> Result<()> {
    call("flock", || fs::flock(handle.as_fd(), FlockOperation::NonBlockingLockExclusive))
}

/// Locks a backup store, shared or exclusive. Fails with `EWOULDBLOCK` if it is locked.
pub(crate) fn lock_store(handle: impl AsFd, operation: FlockOperation) -> Result<()> {
    call("flock", || fs::flock(handle.as_fd(), operation))
}

/// A handle with a lock. The lock is released when this is dropped, even if a forked process also has the handle.
#[derive(Debug)]
pub(crate) struct Locked<F: AsFd = OwnedFd>(pub(crate) F);

impl<F: AsFd> Drop for Locked<F> {
    fn drop(&mut self) {
        // Even if this call fails, the lock is released when the handle is closed.
        let _ = fs::flock(&self.0, FlockOperation::Unlock);
    }
}

impl<F: AsFd> AsFd for Locked<F> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Locks a temp file for its writer. Fails with `EWOULDBLOCK` if another process has locked it.
pub(crate) fn try_lock_temp(temp: impl AsFd) -> Result<()> {
    call("lock_temp", || fs::flock(temp.as_fd(), FlockOperation::NonBlockingLockExclusive))
}

/// Fails with `EWOULDBLOCK` if a writer has locked a temp file.
///
/// On NFS, only a file that is open for writing can be locked exclusively.
pub(crate) fn check_temp_unlocked(temp: impl AsFd) -> Result<()> {
    call("lock_temp", || fs::flock(temp.as_fd(), FlockOperation::NonBlockingLockShared))
}

/// Fails if this process may not write to a name in a directory.
pub(crate) fn may_write(dir: impl AsFd, name: &[u8]) -> Result<()> {
    let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
    let may = || fs::accessat(dir.as_fd(), name, Access::WRITE_OK, flags);
    match call("faccessat", may) {
        // Old kernels have no `faccessat2`. Then the change itself fails.
        Err(Errno::NOSYS) => Ok(()),
        other => other,
    }
}

pub(crate) fn random() -> Result<[u8; 8]> {
    let mut bytes = [0; 8];
    call("getrandom", || {
        let failed = |error: getrandom::Error| {
            error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
        };
        getrandom::fill(&mut bytes).map_err(failed)
    })?;
    Ok(bytes)
}

/// Whether an absolute path may contain symlinks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Symlinks {
    Follow,
    Refuse,
}

/// Metadata from the kernel's caches.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "other systems do not say"))]
pub(crate) struct Cached {
    pub(crate) meta: Metadata,
    /// The id of its mount. It is not reused while a handle is open.
    pub(crate) mount: u64,
}
