//! The same functions for systems without Landlock and seccomp, such as macOS.
//!
//! They were type-checked, but never run on such a system.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};

use crate::{FileAccess, FileRestriction, Scope};

/// How often a process checks its parent and its memory.
const CHECK: Duration = Duration::from_millis(200);

/// Restricts nothing, and returns that as the reason.
pub fn restrict_files(_: &FileAccess, _: Scope) -> FileRestriction {
    FileRestriction::Unavailable("only Linux has Landlock".into())
}

/// Forbids nothing, and returns that as the reason.
pub fn deny_system_calls(_: Scope) -> Result<(), String> {
    Err("only Linux has seccomp".into())
}

/// Whether this thread can list the root directory.
pub fn can_list_root_directory() -> bool {
    std::fs::read_dir("/").is_ok()
}

/// There are no rules, so no file needs one.
pub fn program_files() -> Vec<PathBuf> {
    Vec::new()
}

/// Ends this process when its parent ends. A thread checks the parent's process id.
pub fn end_with_parent() -> std::io::Result<()> {
    let parent = rustix::process::getppid();
    end_when(move || rustix::process::getppid() != parent)
}

/// Ends this process when it takes more memory. The limit of mapped memory is not reliable here.
pub fn limit_memory(max_bytes: u64) -> std::io::Result<()> {
    // macOS reports the maximum resident size in bytes, other systems in KiB.
    let unit = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
    let max = i64::try_from(max_bytes / unit).unwrap_or(i64::MAX);
    end_when(move || getrusage(UsageWho::RUSAGE_SELF).is_ok_and(|usage| usage.max_rss() > max))
}

/// Ends this process once a condition is true.
fn end_when(is_so: impl Fn() -> bool + Send + 'static) -> std::io::Result<()> {
    let watch = move || {
        while !is_so() {
            thread::sleep(CHECK);
        }
        std::process::exit(1);
    };
    thread::Builder::new().spawn(watch).map(|_| ())
}
