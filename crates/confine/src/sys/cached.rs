//! System calls that never wait for a disk, a network or another process: they answer from the kernel's
//! caches, or fail.
//!
//! Where a system has no such calls, they always fail, and the caller uses the ordinary ones.

use std::path::Path;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, OFlags};
use rustix::io::{Errno, Result};
#[cfg(target_os = "linux")]
use {
    crate::sys::{BENEATH, DIR_PATH, call, with_always},
    rustix::fs::{self, AtFlags, Mode},
};

/// As [`open_beneath`](super::open_beneath), but fails unless every name on the way is in the dentry cache.
/// Some file systems still ask a server when the file is opened without `O_PATH`.
#[cfg(target_os = "linux")]
pub(crate) fn open_cached(root: impl AsFd, path: &[u8], flags: OFlags) -> Result<OwnedFd> {
    call("openat2", || {
        let how = BENEATH | fs::ResolveFlags::CACHED;
        fs::openat2(root.as_fd(), path, with_always(flags), Mode::empty(), how)
    })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn open_cached(_: impl AsFd, _: &[u8], _: OFlags) -> Result<OwnedFd> {
    Err(Errno::AGAIN)
}

/// Whether an absolute path may have symlinks in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Symlinks {
    Follow,
    Refuse,
}

/// Opens the directory that an absolute path leads to, if every name on the way is in the dentry cache and no
/// server or process has to be asked whether it still is right.
#[cfg(target_os = "linux")]
pub(crate) fn open_root_cached(path: &Path, symlinks: Symlinks) -> Result<OwnedFd> {
    let mut how = fs::ResolveFlags::CACHED;
    how.set(fs::ResolveFlags::NO_SYMLINKS, symlinks == Symlinks::Refuse);
    call("openat2", || fs::openat2(fs::CWD, path, with_always(DIR_PATH), Mode::empty(), how))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn open_root_cached(_: &Path, _: Symlinks) -> Result<OwnedFd> {
    Err(Errno::AGAIN)
}

/// The metadata that the kernel has cached for a file.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "other systems do not say"))]
pub(crate) struct Cached {
    pub(crate) kind: FileType,
    pub(crate) len: u64,
    /// The id of the mount that it is reached by. No other mount gets it while a handle is open.
    pub(crate) mount: u64,
}

/// Stats an open file without asking a server or another process.
#[cfg(target_os = "linux")]
pub(crate) fn stat_cached(file: impl AsFd) -> Result<Cached> {
    use rustix::fs::StatxFlags;
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let stat = call("statx", || fs::statx(file.as_fd(), c"", flags, wanted))?;
    // Kernels before 5.8 do not know the mount.
    if !StatxFlags::from_bits_retain(stat.stx_mask).contains(wanted) {
        return Err(Errno::NOSYS);
    }
    let kind = FileType::from_raw_mode(stat.stx_mode.into());
    Ok(Cached { kind, len: stat.stx_size, mount: stat.stx_mnt_id })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn stat_cached(_: impl AsFd) -> Result<Cached> {
    Err(Errno::NOSYS)
}

/// Whether a file is on a file system that neither a server nor another process provides.
#[cfg(target_os = "linux")]
#[allow(clippy::unnecessary_cast, reason = "the field's type differs between systems")]
pub(crate) fn is_local(file: impl AsFd) -> Result<bool> {
    /// ext2 to ext4, XFS, Btrfs, tmpfs, overlayfs, F2FS, ZFS and bcachefs.
    const LOCAL: [u32; 8] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0x0102_1994,
        0x794c_7630,
        0xf2f5_2010,
        0x2fc1_2fc1,
        0xca45_1a4e,
    ];
    let stat = call("fstatfs", || fs::fstatfs(file.as_fd()))?;
    // Magic numbers have 32 bits; where the field has no more, large ones are negative.
    Ok(LOCAL.contains(&(stat.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_local(_: impl AsFd) -> Result<bool> {
    Ok(false)
}

/// Reads at a position of a file what is in the page cache.
#[cfg(target_os = "linux")]
pub(crate) fn read_cached(file: impl AsFd, buffer: &mut [u8], at: u64) -> Result<usize> {
    use rustix::io::{IoSliceMut, ReadWriteFlags, preadv2};
    call("preadv2", || {
        preadv2(file.as_fd(), &mut [IoSliceMut::new(buffer)], at, ReadWriteFlags::NOWAIT)
    })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn read_cached(_: impl AsFd, _: &mut [u8], _: u64) -> Result<usize> {
    Err(Errno::AGAIN)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::sys::open_root;

    #[test]
    fn procfs_is_no_local_file_system() {
        assert_eq!(is_local(open_root(Path::new("/proc")).unwrap()), Ok(false));
    }
}
