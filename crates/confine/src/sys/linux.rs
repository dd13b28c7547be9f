//! The system calls that only Linux has. `other.rs` has the same functions for other systems.

use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::SystemTime;

use rustix::fd::{AsFd, AsRawFd as _, OwnedFd};
use rustix::fs::{self, Advice, AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::{Errno, IoSliceMut, ReadWriteFlags, Result, preadv2};

use super::{Cached, MAX_RACES, Symlinks, call, stat_at, with_always};
use crate::meta::system_time;
use crate::{Metadata, Times};

/// An `O_PATH` handle on a directory, to open entries below it.
pub(crate) const DIR_PATH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

/// An `O_PATH` handle on an entry of any kind.
pub(crate) const PATH_ONLY: OFlags = OFlags::PATH;

/// The kernel's limit for the names and the value of extended attributes.
pub(crate) const MAX_ATTRIBUTE_BYTES: usize = 64 * 1024;

/// Only paths below the handle, without any symlinks.
const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS).union(ResolveFlags::NO_SYMLINKS);

/// The clock of timestamps, which is up to one tick behind [`SystemTime::now`]. A file that is changed from now on gets
/// no earlier timestamp.
pub(crate) fn timestamp_now() -> SystemTime {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    system_time(now.tv_sec, now.tv_nsec as u32)
}

/// Whether a file system's device number is that of a block device. Network file systems, and some local ones, have
/// the major number 0.
pub(crate) fn is_block_device(device: u64) -> bool {
    fs::major(device) != 0
}

/// Opens `path` below `root`. The kernel follows no symlinks.
pub(crate) fn open_beneath(root: impl AsFd, path: &[u8], flags: OFlags) -> Result<OwnedFd> {
    // `EAGAIN`: a rename raced with the lookup.
    for _ in 0..MAX_RACES {
        let opened = call("openat2", || {
            fs::openat2(root.as_fd(), path, with_always(flags), Mode::empty(), BENEATH)
        });
        if !matches!(opened, Err(Errno::AGAIN)) {
            return opened;
        }
    }
    Err(Errno::AGAIN)
}

/// Opens the directory at an absolute path. Fails if any part of it is a symlink.
pub(crate) fn open_without_symlinks(path: &Path) -> Result<OwnedFd> {
    let how = ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
    call("openat2", || fs::openat2(fs::CWD, path, with_always(DIR_PATH), Mode::empty(), how))
}

/// As [`open_beneath`], but fails unless every component is in the dentry cache. Without `O_PATH`, some file systems
/// still ask a server when the file is opened.
pub(crate) fn open_cached(root: impl AsFd, path: &[u8], flags: OFlags) -> Result<OwnedFd> {
    call("openat2", || {
        let how = BENEATH | ResolveFlags::CACHED;
        fs::openat2(root.as_fd(), path, with_always(flags), Mode::empty(), how)
    })
}

/// Opens the directory that an absolute path leads to, if every component is in the dentry cache, and no server or
/// process has to be asked whether the entry is still valid.
pub(crate) fn open_root_cached(path: &Path, symlinks: Symlinks) -> Result<OwnedFd> {
    let mut how = ResolveFlags::CACHED;
    how.set(ResolveFlags::NO_SYMLINKS, symlinks == Symlinks::Refuse);
    call("openat2", || fs::openat2(fs::CWD, path, with_always(DIR_PATH), Mode::empty(), how))
}

/// Stats an open file without asking a server or another process.
pub(crate) fn stat_cached(file: impl AsFd) -> Result<Cached> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let mask = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let stat = call("statx", || fs::statx(file.as_fd(), c"", flags, mask))?;
    // Kernels before 5.8 do not return the mount id.
    if !StatxFlags::from_bits_retain(stat.stx_mask).contains(mask) {
        return Err(Errno::NOSYS);
    }
    Ok(Cached { meta: Metadata::of_statx(&stat), mount: stat.stx_mnt_id })
}

/// Whether a file is on a local file system: neither a server nor another process provides it.
pub(crate) fn is_local(file: impl AsFd) -> Result<bool> {
    /// Btrfs, overlayfs, F2FS, ZFS and bcachefs.
    const OTHERS: [u32; 5] = [0x9123_683e, 0x794c_7630, 0xf2f5_2010, 0x2fc1_2fc1, 0xca45_1a4e];
    let magic = magic_number(file)?;
    Ok(FLUSHES_UNNAMED.contains(&magic) || OTHERS.contains(&magic))
}

/// ext2 to ext4, XFS and tmpfs. A flush of a file without a name is known to be one there. Btrfs of older kernels flushes
/// nothing of such a file: after a loss of power it is empty, even if it had a name by then.
const FLUSHES_UNNAMED: [u32; 3] = [0xef53, 0x5846_5342, 0x0102_1994];

/// The number that tells a type of file systems.
#[allow(clippy::unnecessary_cast, reason = "the field's type differs between systems")]
fn magic_number(file: impl AsFd) -> Result<u32> {
    let stat = call("fstatfs", || fs::fstatfs(file.as_fd()))?;
    // Magic numbers have 32 bits. If the field has no more, large ones are negative.
    Ok(stat.f_type as u32)
}

/// Reads from the page cache at a position of a file.
pub(crate) fn read_cached(file: impl AsFd, buffer: &mut [u8], at: u64) -> Result<usize> {
    call("preadv2", || {
        preadv2(file.as_fd(), &mut [IoSliceMut::new(buffer)], at, ReadWriteFlags::NOWAIT)
    })
}

/// The metadata of a file, and the times of its creation and last access. A symlink is not followed.
#[allow(clippy::unnecessary_cast, reason = "field types differ between processors")]
pub(crate) fn stat_with_times(dir: impl AsFd, name: &[u8]) -> Result<(Metadata, Times)> {
    let mask = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let stat = call("statx", || fs::statx(dir.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW, mask));
    let stat = match stat {
        // A seccomp filter does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => {
            let stat = stat_at(dir, name)?;
            let accessed = system_time(stat.st_atime as i64, stat.st_atime_nsec as u32);
            return Ok((Metadata::of(&stat), Times { created: None, accessed }));
        }
        other => other?,
    };
    let has_created = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
    let time = |time: fs::StatxTimestamp| system_time(time.tv_sec, time.tv_nsec);
    let created = has_created.then(|| time(stat.stx_btime));
    let times = Times { created, accessed: time(stat.stx_atime) };
    Ok((Metadata::of_statx(&stat), times))
}

/// On Linux, access lists are extended attributes and are copied with them.
#[allow(clippy::unnecessary_wraps, reason = "other systems have something to do, which may fail")]
pub(crate) fn copy_access_list(_: &OwnedFd, _: &OwnedFd) -> Result<()> {
    Ok(())
}

/// Creates a file in a directory, but without a name. It is gone when it is closed, unless [`link_unnamed`] names it.
/// Fails with `EOPNOTSUPP` if the file system is not known to flush such a file.
pub(crate) fn create_unnamed(dir: impl AsFd, mode: u32) -> Result<OwnedFd> {
    if !FLUSHES_UNNAMED.contains(&magic_number(&dir)?) {
        return Err(Errno::OPNOTSUPP);
    }
    let flags = with_always(OFlags::RDWR | OFlags::TMPFILE);
    call("create_unnamed", || fs::openat(dir.as_fd(), c".", flags, Mode::from_raw_mode(mode)))
}

/// Gives a file of [`create_unnamed`] a name in its directory. Fails if the name is taken.
pub(crate) fn link_unnamed(file: &OwnedFd, dir: impl AsFd, name: &[u8]) -> Result<()> {
    let linked = call("link_unnamed", || {
        fs::linkat(file.as_fd(), c"", dir.as_fd(), name, AtFlags::EMPTY_PATH)
    });
    // Before Linux 6.10, only privileged processes can link a handle itself.
    let Err(Errno::NOENT) = linked else { return linked };
    let file = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = AtFlags::SYMLINK_FOLLOW;
    call("link_unnamed", || fs::linkat(fs::CWD, file.as_str(), dir.as_fd(), name, flags))
}

/// Asks the kernel to begin writing a small file's content to the disk, so that a flush soon after waits less. Does
/// not wait, and no other program sees a difference.
pub(crate) fn start_writing_back(file: impl AsFd, len: usize) {
    // The kernel writes every page of the range, and then drops from its cache the pages that are wholly in it. If both
    // ends of the range are inside a page, two pages of the smallest size have none of these.
    const MAX_LEN: usize = 2 * 4096;
    if len <= MAX_LEN
        && let Some(inner) = NonZeroU64::new(len.saturating_sub(2) as u64)
    {
        // This is a hint. The flush reports errors of the disk.
        let _ = fs::fadvise(file.as_fd(), 1, Some(inner), Advice::DontNeed);
    }
}

/// Flushes a file's content to the disk.
pub(crate) fn sync_data(file: impl AsFd) -> Result<()> {
    call("fdatasync", || fs::fdatasync(file.as_fd()))
}

/// Flushes a directory's entries to the disk.
pub(crate) fn sync_dir(dir: impl AsFd) -> Result<()> {
    call("fsync", || fs::fsync(dir.as_fd()))
}

/// Calls `each` with every entry of a directory except `.` and `..`, until it breaks.
///
/// The buffer is reused from call to call.
pub(crate) fn list(
    dir: impl AsFd,
    buffer: &mut Vec<u8>,
    mut each: impl FnMut(&[u8], FileType) -> ControlFlow<()>,
) -> Result<()> {
    // Room for a few hundred names. Most directories take one call, and a second one that reports the end.
    const BUFFER: usize = 32 * 1024;
    buffer.clear();
    buffer.reserve(BUFFER);
    let mut entries = fs::RawDir::new(dir.as_fd(), buffer.spare_capacity_mut());
    loop {
        if entries.is_buffer_empty() {
            // Only now does the next entry take a system call.
            call("getdents", || Ok(()))?;
        }
        let entry = match entries.next() {
            None => return Ok(()),
            Some(Err(Errno::INTR)) => continue,
            Some(entry) => entry?,
        };
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") && each(name, entry.file_type()).is_break() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::open_root;

    #[test]
    fn procfs_is_no_local_file_system() {
        assert_eq!(is_local(open_root(Path::new("/proc")).unwrap()), Ok(false));
    }
}
