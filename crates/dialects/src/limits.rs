//! The limits and defaults of tools, with the reasons for their values. Includes those of the engine.

pub(crate) use pinfold::limits::*;

/// Lines that a read shows by default. Most source files fit.
pub(crate) const DEFAULT_READ_LINES: u64 = 2_000;

/// Lines that one call may request. For most files, fewer fill the output.
pub(crate) const MAX_READ_LINES: u64 = 10_000;

/// Entries of one directory that `LS` lists with sizes and kinds. Each takes system calls.
pub(crate) const MAX_LS_ENTRIES: usize = 2_000;

/// Matches that `Grep` shows by default.
pub(crate) const DEFAULT_GREP_MATCHES: u64 = 250;

/// Matches that `file.search` shows by default.
pub(crate) const DEFAULT_SEARCH_RESULTS: u64 = 100;

/// Matches that a call of `file.search` may request.
pub(crate) const MAX_SEARCH_RESULTS: u64 = 10_000;

/// Matches that `search_files` shows: about as many as fit into the output.
pub(crate) const MAX_SCOPED_RESULTS: u64 = 1_000;

/// Context lines around a match. A longer passage is better read from the file.
pub(crate) const MAX_CONTEXT: u64 = 1_000;
