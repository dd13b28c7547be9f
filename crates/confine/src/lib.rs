//! The fence: all of Pinfold's file system access is in this crate.
//!
//! A [`Workspace`] has an open handle on each root directory. Every access starts at such a handle and follows no
//! symlink: symlinks are read and resolved here, and their targets are opened as paths of their own. So nothing
//! outside the roots is ever opened, whatever a path contains and whatever other processes swap meanwhile, and a
//! [`RelPath`] always names the file itself, never an alias.

#![cfg_attr(not(target_vendor = "apple"), forbid(unsafe_code))]
#![cfg_attr(target_vendor = "apple", deny(unsafe_code))]

mod ambient;
mod atomic;
mod backups;
mod create;
mod deadline;
mod dir;
mod error;
mod exchange;
#[cfg(feature = "fault-injection")]
pub mod fault;
mod file;
mod ignore_files;
mod lines;
mod lock;
mod locked_entry;
mod meta;
mod parent_file;
mod parents;
mod path;
mod relocation;
mod removal;
mod resolve;
mod root;
mod sockets;
mod sweep;
mod sys;
mod target;
mod temp_file;
mod temp_name;
mod tree;
mod tree_removal;
mod walk;
mod workspace;

pub use ambient::{
    LogFile, create_marker_file, device_and_inode, file_system_type, lock_secret, lower_priority,
    make_private_directory, may_write, memory_bytes, owner, read_secret, read_user_file,
    remove_secret, symlinks_and_target, terminal, write_secret,
};
pub use atomic::{Durability, OldVersion, ReplacedFile, WrittenAhead};
pub use backups::{BackupStore, LinesFromEnd, Segment, StoreLock, StoredFile};
pub use blake3::{Hash, hash};
pub use deadline::Deadline;
pub use dir::Entry;
pub use error::{Error, Result};
pub use file::File;
pub use ignore_files::{IgnoreFiles, brace_depth};
pub use lock::{SharedLocks, SuspendedLocks};
pub use locked_entry::DirectoryRemoval;
pub use meta::{Identity, Kind, Metadata, Times};
pub use parent_file::ParentFile;
pub use path::{Name, RawPath, RelPath, escaped, push_escaped};
pub use relocation::{Relocation, RelocationError};
pub use removal::Removal;
pub use root::OpenMethod;
pub use sockets::{connect_all, listen_in, make_socket_directory, remove_socket};
pub use target::Target;
pub use temp_name::{random_number, random_secret};
pub use tree::{IndexMode, TreeStamp, TreeSummary};
pub use tree_removal::{RemovedTree, TreeEntry, TreeRemoval};
pub use walk::{
    Candidate, FileId, FileOpener, FilterDecision, SkipReason, Skipped, Visibility, Visitor, Walk,
    WalkEntry, WalkedFile,
};
pub use workspace::{Place, Stat, Workspace};
