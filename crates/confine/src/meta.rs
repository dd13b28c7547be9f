//! A file's metadata, and whether it proves that the content is unchanged.

use std::time::{Duration, SystemTime};

use rustix::fs::{FileType, Stat};

use crate::sys;

/// A file's type.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character or block device, or an unknown type.
    Device,
}

impl Kind {
    /// The kind in a word or two, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Symlink => "symlink",
            Self::Fifo => "named pipe",
            Self::Socket => "socket",
            Self::Device => "device",
        }
    }
}

impl From<FileType> for Kind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => Self::Device,
        }
    }
}

/// Device and inode, which identify a file under all of its names.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// The identity alone, which takes no clock, unlike the other metadata.
    #[allow(clippy::unnecessary_cast, reason = "field types differ between systems")]
    pub(crate) fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev as u64, inode: stat.st_ino as u64 }
    }

    pub(crate) fn inode(self) -> u64 {
        self.inode
    }

    pub(crate) fn device(self) -> u64 {
        self.device
    }

    pub(crate) fn same_device(self, other: Self) -> bool {
        self.device == other.device
    }
}

/// A file's metadata, from `stat`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Metadata {
    /// Its type.
    pub kind: Kind,
    /// Its device and inode.
    pub identity: Identity,
    /// Its size in bytes.
    pub len: u64,
    /// Its permission bits, including set-user-id, set-group-id and the sticky bit.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its owner's group.
    pub gid: u32,
    /// How many hard links it has.
    pub links: u64,
    /// When its content was last modified (mtime).
    pub modified: SystemTime,
    /// When its inode was last changed (ctime). No program can set it.
    changed: SystemTime,
    /// Whether the times are old enough that every later change shows in them.
    settled: bool,
}

/// The times of a file's creation and last access.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Times {
    /// The time of its creation, if the file system stores it.
    pub created: Option<SystemTime>,
    /// The time of its last access.
    pub accessed: SystemTime,
}

/// FAT has the coarsest timestamps of all file systems.
const SLOWEST_TICK: Duration = Duration::from_secs(2);

/// The kernel's clock for timestamps advances at least every 10 ms.
const KERNEL_TICK: Duration = Duration::from_millis(20);

impl Metadata {
    #[allow(clippy::unnecessary_cast, reason = "field types differ between systems")]
    pub(crate) fn of(stat: &Stat) -> Self {
        let modified = system_time(stat.st_mtime as i64, stat.st_mtime_nsec as u32);
        let changed = system_time(stat.st_ctime as i64, stat.st_ctime_nsec as u32);
        Self {
            kind: FileType::from_raw_mode(stat.st_mode as _).into(),
            identity: Identity::of(stat),
            len: stat.st_size as u64,
            mode: stat.st_mode as u32 & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            links: stat.st_nlink as u64,
            modified,
            changed,
            settled: is_settled(modified, changed, stat.st_dev as u64, sys::timestamp_now()),
        }
    }

    /// The same from `statx`, which returns more in one call.
    #[cfg(target_os = "linux")]
    pub(crate) fn of_statx(stat: &rustix::fs::Statx) -> Self {
        let time = |time: rustix::fs::StatxTimestamp| system_time(time.tv_sec, time.tv_nsec);
        let (modified, changed) = (time(stat.stx_mtime), time(stat.stx_ctime));
        let device = rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor);
        Self {
            kind: FileType::from_raw_mode(stat.stx_mode.into()).into(),
            identity: Identity { device, inode: stat.stx_ino },
            len: stat.stx_size,
            mode: u32::from(stat.stx_mode) & 0o7777,
            uid: stat.stx_uid,
            gid: stat.stx_gid,
            links: stat.stx_nlink.into(),
            modified,
            changed,
            settled: is_settled(modified, changed, device, sys::timestamp_now()),
        }
    }

    /// Whether a later `stat` of the same file proves that its content is the same.
    ///
    /// False does not prove a change: the times may be too recent.
    pub fn proven_unchanged(&self, later: &Self) -> bool {
        self.settled && self.same_times(later)
    }

    /// As [`Self::proven_unchanged`], for a file that this process has renamed in between. A rename changes ctime on
    /// some file systems.
    pub(crate) fn proven_unchanged_but_renamed(&self, later: &Self) -> bool {
        self.settled && self.same_stat(later)
    }

    /// Whether the times are old enough that every later change shows in them.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled
    }

    /// Updates ctime.
    pub(crate) fn update_ctime(&mut self, now: &Self) {
        self.changed = now.changed;
    }

    /// Whether everything is equal, even if the times are recent.
    pub(crate) fn same_times(&self, later: &Self) -> bool {
        self.same_stat(later) && self.changed == later.changed
    }

    /// Whether everything but ctime is equal, so that it may be the same file with the same content.
    pub(crate) fn same_stat(&self, later: &Self) -> bool {
        self.identity == later.identity
            && self.len == later.len
            && self.modified == later.modified
            && (self.mode, self.uid, self.gid) == (later.mode, later.uid, later.gid)
    }
}

/// Whether a change after `now` gets a later timestamp than these.
fn is_settled(modified: SystemTime, changed: SystemTime, device: u64, now: SystemTime) -> bool {
    let tick = if has_fine_times(changed, device) { KERNEL_TICK } else { SLOWEST_TICK };
    let quiet = now.duration_since(modified.max(changed));
    quiet.is_ok_and(|quiet| quiet > tick)
}

/// Whether a file system takes its timestamps from this kernel's clock, and stores them with more digits than that
/// clock's ticks.
///
/// Only file systems on a block device count. Others may have a server's clock.
/// A coarse timestamp ends in zeros; one in a hundred thousand fine ones does, too, and is treated as coarse.
fn has_fine_times(changed: SystemTime, device: u64) -> bool {
    let nanoseconds =
        changed.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.subsec_nanos());
    sys::is_block_device(device) && !nanoseconds.is_multiple_of(100_000)
}

pub(crate) fn system_time(seconds: i64, nanoseconds: u32) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let base = if seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(whole)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(whole)
    };
    let exact = base.and_then(|base| base.checked_add(Duration::from_nanos(nanoseconds.into())));
    exact.unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn fine_timestamps_of_this_kernel_settle_within_a_tick_and_others_do_not() {
        let (disk, server) = (rustix::fs::makedev(8, 1), rustix::fs::makedev(0, 40));
        let fine = system_time(1_700_000_000, 123_456_789);
        let coarse = system_time(1_700_000_000, 0);
        for (times, device, milliseconds, settled) in [
            ((fine, fine), disk, 21, true),
            ((fine, fine), disk, 20, false),
            ((fine, fine), server, 2_000, false),
            ((fine, fine), server, 2_001, true),
            ((coarse, coarse), disk, 2_000, false),
            ((coarse, coarse), disk, 2_001, true),
            // Programs can set the modification time, so it proves nothing about the file system.
            ((fine, coarse), disk, 1_000, false),
            ((fine + Duration::from_secs(60), fine), disk, 1_000, false),
        ] {
            let now = times.1 + Duration::from_millis(milliseconds);
            let found = is_settled(times.0, times.1, device, now);
            assert_eq!(found, settled, "{times:?} on {device} after {milliseconds} ms");
        }
    }
}
