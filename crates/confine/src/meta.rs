//! What the file system knows about a file, and whether two looks saw the same one.

use std::time::{Duration, SystemTime};

use rustix::fs::{FileType, Stat};

/// What kind of thing a name stands for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A pipe with a name.
    Fifo,
    /// A socket.
    Socket,
    /// A character or block device, or something that this crate has no word for.
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

/// Which file it is, whatever it is called: device and inode.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub(crate) fn inode(self) -> u64 {
        self.inode
    }

    pub(crate) fn same_device(self, other: Self) -> bool {
        self.device == other.device
    }
}

/// What the file system knows about a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Metadata {
    /// What it is.
    pub kind: Kind,
    /// Which one it is.
    pub identity: Identity,
    /// Its size in bytes.
    pub len: u64,
    /// Its permission bits, set-user-id and the like included.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its owner's group.
    pub gid: u32,
    /// How many names it has.
    pub links: u64,
    /// When its content was last changed, since 1970.
    pub modified: SystemTime,
    /// When anything about it was last changed; nobody can set it back.
    changed: SystemTime,
    /// Whether every later change will show in the times.
    settled: bool,
}

/// Clocks of file systems tick at different paces; FAT's is the slowest, with two seconds.
const SLOWEST_TICK: Duration = Duration::from_secs(2);

impl Metadata {
    #[allow(clippy::unnecessary_cast, reason = "field types differ between systems")]
    pub(crate) fn of(stat: &Stat) -> Self {
        let modified = time(stat.st_mtime as i64, stat.st_mtime_nsec as u32);
        let changed = time(stat.st_ctime as i64, stat.st_ctime_nsec as u32);
        let quiet = SystemTime::now().duration_since(modified.max(changed));
        Self {
            kind: FileType::from_raw_mode(stat.st_mode as _).into(),
            identity: Identity { device: stat.st_dev as u64, inode: stat.st_ino as u64 },
            len: stat.st_size as u64,
            mode: stat.st_mode as u32 & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            links: stat.st_nlink as u64,
            modified,
            changed,
            settled: quiet.is_ok_and(|quiet| quiet > SLOWEST_TICK),
        }
    }

    /// Whether a later look at the same file surely saw the same content.
    ///
    /// False means "look at the content", not "changed": the times may be too fresh to tell.
    pub fn proven_unchanged(&self, later: &Self) -> bool {
        self.settled && self.same_stat(later) && self.changed == later.changed
    }

    /// As [`Self::proven_unchanged`], for a file that this process itself has renamed in between,
    /// which is a change of the inode on some file systems.
    pub(crate) fn proven_unchanged_but_renamed(&self, later: &Self) -> bool {
        self.settled && self.same_stat(later)
    }

    /// Whether every later change will show in the times.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled
    }

    /// Forgets when it was last changed for when it was changed now.
    pub(crate) fn update_ctime(&mut self, now: &Self) {
        self.changed = now.changed;
    }

    /// Whether nothing speaks against it being the same file with the same content.
    pub(crate) fn same_stat(&self, later: &Self) -> bool {
        self.identity == later.identity
            && self.len == later.len
            && self.modified == later.modified
            && (self.mode, self.uid, self.gid) == (later.mode, later.uid, later.gid)
    }
}

fn time(seconds: i64, nanoseconds: u32) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let base = if seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(whole)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(whole)
    };
    let exact = base.and_then(|base| base.checked_add(Duration::from_nanos(nanoseconds.into())));
    exact.unwrap_or(SystemTime::UNIX_EPOCH)
}
