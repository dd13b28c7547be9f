//! The errors of this crate.
//!
//! No variant has the requested path: the caller knows it as it was given, and a message may repeat only that
//! spelling.

use std::io;

use rustix::io::Errno;

use crate::Kind;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a path was refused or a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path leads out of the workspace.
    #[error("outside the workspace")]
    Outside,
    /// The path cannot name a file.
    #[error("the path {0}")]
    BadPath(&'static str),
    /// The root's path no longer leads to a directory that can be opened.
    #[error("the workspace root `{0}` is gone")]
    RootGone(String),
    /// Another directory has taken the place of a root, and the kernel does not let this process open it.
    #[error(
        "the workspace root `{0}` was replaced, and the kernel denies access to the new directory"
    )]
    RootReplaced(String),
    /// Nothing is at the path.
    #[error("not found")]
    NotFound,
    /// The symlink's target does not exist.
    #[error("the link points to nothing")]
    Dangling,
    /// More symlinks than the kernel would follow.
    #[error("too many links")]
    TooManyLinks,
    /// The path is a directory, and a file was expected.
    #[error("is a directory")]
    IsDirectory,
    /// The path is a file, and a directory was expected.
    #[error("not a directory")]
    NotADirectory,
    /// The path is a device, pipe or socket.
    #[error("not a regular file, but a {}", .0.name())]
    NotRegular(Kind),
    /// Something already exists at the path.
    #[error("already exists")]
    Exists,
    /// The directory has entries.
    #[error("the directory is not empty")]
    NotEmpty,
    /// A move would lead to another file system.
    #[error("it is on another file system")]
    CrossDevice,
    /// The file is larger than the limit.
    #[error("too large")]
    TooLarge,
    /// The file has changed since it was found.
    #[error("changed meanwhile")]
    Changed,
    /// The file's directory was moved, removed or replaced during the call. The change was rolled
    /// back.
    #[error("its directory was moved during the call")]
    DirectoryMoved,
    /// Another process kept the directory locked for too long.
    #[error("locked by another process")]
    Busy,
    /// The deadline has passed, or the call was cancelled.
    #[error("it took too long")]
    TimedOut,
    /// The file's directory may not be changed.
    #[error("its directory may not be written to")]
    DirectoryDenied,
    /// The file system is read-only.
    #[error("its file system is mounted read-only")]
    ReadOnly,
    /// The path is a mount point, which cannot be replaced.
    #[error("it is a mount point, which cannot be replaced or removed")]
    MountPoint,
    /// A rollback after a conflict failed. Both versions still exist.
    #[error("the content before this call is now in `{kept}` in the same directory")]
    RollbackFailed {
        /// The name of the file with the other version, in the same directory.
        kept: String,
    },
    /// The names in the directory could not be changed back, so the old content was written into the new file. The
    /// file has its old content.
    #[error(
        "its directory cannot be changed any more: the file has its old content again, and `{copy}` in the \
         same directory, which could not be removed, has it too"
    )]
    RestoredInPlace {
        /// The name of the old file, in the same directory.
        copy: String,
    },
    /// A created file or symlink could not be removed after a failure.
    #[error(
        "its directory cannot be changed any more: what was created is still there{}",
        if *.emptied { ", as an empty file" } else { "" }
    )]
    CreatedRemains {
        /// Whether the file was emptied.
        emptied: bool,
    },
    /// A file or directory could not be moved back after a conflict.
    #[error("it was moved, and could not be moved back")]
    NotMovedBack,
    /// The file's owner cannot be kept.
    #[error(
        "it belongs to user {uid} and group {gid}, and a new version could not be given to them"
    )]
    Owner {
        /// The owner.
        uid: u32,
        /// The owner's group.
        gid: u32,
    },
    /// The operating system denied access.
    #[error("permission denied")]
    Denied,
    /// The disk or a quota is full.
    #[error("no space left")]
    NoSpace,
    /// Any other error of the operating system.
    #[error("{0}")]
    Os(io::Error),
}

impl From<Errno> for Error {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::NotFound,
            Errno::NOTDIR => Self::NotADirectory,
            Errno::ISDIR => Self::IsDirectory,
            Errno::ACCESS | Errno::PERM => Self::Denied,
            Errno::ROFS => Self::ReadOnly,
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Self::NoSpace,
            Errno::NAMETOOLONG => Self::BadPath("has a name that is too long for the file system"),
            Errno::BUSY => Self::MountPoint,
            // The kernel's text, "Invalid cross-device link", would mislead.
            Errno::XDEV => Self::Outside,
            // On NFS: somebody has removed or replaced it since it was found.
            Errno::STALE => Self::Changed,
            other => Self::Os(other.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_machine_removed_meanwhile_has_changed() {
        assert!(matches!(Error::from(Errno::STALE), Error::Changed));
    }
}
