//! Ends a process with its parent, and limits its memory.

use rustix::process::{Resource, Signal, set_parent_process_death_signal};

/// Lets the kernel kill this process when the thread that started it ends.
pub fn end_with_parent() -> std::io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Limits the memory that this process can map. A larger allocation fails.
pub fn limit_memory(max_bytes: u64) -> std::io::Result<()> {
    Ok(crate::limit(Resource::As, max_bytes)?)
}
