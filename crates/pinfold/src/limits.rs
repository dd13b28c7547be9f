//! Every number that somebody chose, and why.

/// Lines that `Read` shows unless it is told otherwise: most source files whole, none endless.
pub const READ_LINES: u64 = 2_000;

/// The most lines that one call may ask for.
pub const MOST_READ_LINES: u64 = 10_000;

/// Bytes of text in one answer of the `classic` dialect: about 25,000 tokens, which is what a model
/// can take in at once without losing the thread.
pub const CLASSIC_OUTPUT_BYTES: usize = 100 * 1024;

/// Bytes of text in one answer of the other dialects, whose callers are programs as well.
pub const OUTPUT_BYTES: usize = 1024 * 1024;

/// Where a long line is cut, in characters: minified files and data must not fill an answer.
pub const MAX_LINE_CHARS: usize = 2_000;

/// How long a call may take, in seconds. A file of 10 GB is counted in less, from a warm cache.
pub const DEADLINE_SECONDS: u64 = 60;

/// The largest file that is edited, and shown as a diff: both versions are in memory meanwhile.
pub const EDIT_BYTES: u64 = 100 * 1024 * 1024;

/// For how many days a change can be taken back.
pub const JOURNAL_DAYS: u64 = 30;

/// How many bytes of displaced files are kept for that: a busy month of source code.
pub const JOURNAL_BYTES: u64 = 1024 * 1024 * 1024;

/// How often a change is planned anew because somebody else was faster.
pub(crate) const CONFLICTS: usize = 16;

/// How many files a session remembers having seen.
pub(crate) const LEDGER_FILES: usize = 50_000;

/// How many entries of a directory are compared with a name that was not found.
pub(crate) const NEAR_ENTRIES: usize = 5_000;

/// How many near misses are named.
pub(crate) const NEAR_NAMES: usize = 3;
