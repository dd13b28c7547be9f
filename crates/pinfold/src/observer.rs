//! Lets a front end observe the calls and changes of sessions while they happen, and pause changes.
//!
//! While [`Observer::is_watching`] is false, no events are collected.

use std::fmt;

use crate::audit::AuditLine;

/// Observes the calls and changes of sessions. Its methods are called while a call runs, so they must not wait.
#[doc(hidden)]
pub trait Observer: fmt::Debug + Send + Sync {
    /// Whether a viewer watches.
    fn is_watching(&self) -> bool;

    /// Whether the user has paused changes. If so, every change needs approval.
    fn is_paused(&self) -> bool;

    /// Reports that a call starts. Returns the number that the call has in later events.
    fn call_started(&self, call: &CallStart<'_>) -> u64;

    /// Reports that a call has ended.
    fn call_ended(&self, number: u64, line: &AuditLine<'_>);

    /// Reports that a change was made.
    fn changed(&self, change: &ChangeEvent<'_>);
}

/// A call that starts.
#[doc(hidden)]
#[derive(Debug)]
pub struct CallStart<'c> {
    pub session: &'c str,
    pub client: Option<&'c str>,
    pub tool: &'c str,
    /// The arguments on one line; `None` if they are invalid.
    pub compact_params: Option<&'c str>,
}

/// A change that was made.
#[doc(hidden)]
#[derive(Debug)]
pub struct ChangeEvent<'c> {
    /// The number of the call that made it, if the call was observed from its start.
    pub call: Option<u64>,
    pub session: &'c str,
    pub tool: &'c str,
    /// The real path of the file.
    pub path: String,
    /// The real path that it was moved to, if it was moved.
    pub moved_to: Option<String>,
    /// `created`, `changed`, `deleted` or `moved`.
    pub kind: &'static str,
    /// The id of its journal entry.
    pub id: Option<&'c str>,
    /// The numbers of added and removed lines, if both versions are text of a moderate size.
    pub lines: Option<(u64, u64)>,
}
