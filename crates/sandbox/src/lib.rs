//! Restrictions that a process puts on itself, as a second wall behind the fence.
//!
//! None of them can be lifted again, and threads and child processes inherit them. Where the kernel or
//! a container has one of them not, the process works without it: [`restrict_files`] and
//! [`deny_system_calls`] then say why.

#![forbid(unsafe_code)]

mod files;
mod system_calls;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub use files::{
    FileAccess, FileRestriction, can_list_root_directory, program_files, restrict_files,
};
pub use system_calls::deny_system_calls;

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
