//! Restrictions that a process puts on itself, as a second barrier behind the fence.
//!
//! They cannot be lifted, and threads and child processes inherit them. If the kernel or a container does not support
//! one of them, the process works without it: [`restrict_files`] and [`deny_system_calls`] then return the reason.

#![deny(unsafe_code)]

#[cfg(target_os = "linux")]
mod files;
#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod system_calls;

use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[cfg(not(target_os = "linux"))]
pub use other::{
    can_list_root_directory, deny_system_calls, end_with_parent, limit_memory, program_files,
    restrict_files,
};
#[cfg(target_os = "linux")]
pub use {
    files::{can_list_root_directory, program_files, restrict_files},
    process::{end_with_parent, limit_memory},
    system_calls::deny_system_calls,
};

/// The files and directories that a process may still open, with everything below them.
///
/// Paths that do not exist are ignored.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FileAccess {
    /// Paths that may be read.
    pub read: Vec<PathBuf>,
    /// Paths that may be read and changed.
    pub write: Vec<PathBuf>,
    /// Paths that may be read and executed.
    pub execute: Vec<PathBuf>,
}

/// Whether Landlock restricts the process.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FileRestriction {
    /// It does, with this version of the kernel's interface.
    Enforced(i32),
    /// It does not, for this reason.
    Unavailable(String),
}

/// Which threads are restricted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scope {
    /// The calling thread, and those that it starts.
    Thread,
    /// All threads of the process.
    Process,
}

/// Lowers a resource limit of this process, soft and hard.
pub fn limit(resource: Resource, max: u64) -> rustix::io::Result<()> {
    let Rlimit { current, maximum } = getrlimit(resource);
    let lowest = [current, maximum].into_iter().flatten().fold(max, u64::min);
    setrlimit(resource, Rlimit { current: Some(lowest), maximum: Some(lowest) })
}

/// Sets up glibc's allocator, before threads are started. It uses a few arenas only: by default it has eight for each
/// core, and each keeps memory that others could use, so that a server needs twice as much. And it keeps the memory of a
/// large text for the next call: by default, how much it keeps depends on the sizes of earlier texts, and a call may spend
/// a third of its time on getting pages from the system again.
pub fn set_up_allocator() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code, reason = "no safe function does this")]
    {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        for (setting, value) in [
            (libc::M_ARENA_MAX, cores.clamp(2, 4) as libc::c_int),
            // Larger texts than this have pages of their own, which are given back.
            (libc::M_MMAP_THRESHOLD, 16 * 1024 * 1024),
            // So much stays at the end of an arena.
            (libc::M_TRIM_THRESHOLD, 32 * 1024 * 1024),
        ] {
            // SAFETY: `mallopt` takes two numbers, and changes a setting of the allocator under its own lock.
            unsafe { libc::mallopt(setting, value) };
        }
    }
}
