//! Every number that somebody chose, and why.

/// Lines that `Read` shows unless it is told otherwise: most source files whole, none endless.
pub const READ_LINES: u64 = 2_000;

/// The most lines that one call may ask for.
pub const MAX_READ_LINES: u64 = 10_000;

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

/// Where a path, or the name of a tool or a client, is cut in the audit log, in characters: no path that the system
/// takes is longer.
pub(crate) const AUDIT_CHARS: usize = 4_096;

/// How often a change is planned anew because somebody else was faster.
pub(crate) const CONFLICTS: usize = 16;

/// Files up to this size may be read on the thread that moves a server's messages: that takes less time than
/// waking another thread.
pub(crate) const CACHED_FILE_BYTES: usize = 64 * 1024;

/// How many files a session remembers having seen.
pub(crate) const LEDGER_FILES: usize = 50_000;

/// How many entries of a directory are compared with a name that was not found.
pub(crate) const NEAR_ENTRIES: usize = 5_000;

/// How many near misses are named.
pub(crate) const NEAR_NAMES: usize = 3;

/// How many files `Glob` names: more than a model can use, fewer than fill its memory.
pub const GLOB_FILES: usize = 1_000;

/// How many entries a list may have.
pub const LIST_ENTRIES: usize = 5_000;

/// How many entries of one directory are listed with their sizes and kinds.
pub const LS_ENTRIES: usize = 2_000;

/// Matches that `Grep` shows unless it is told otherwise.
pub const GREP_MATCHES: u64 = 250;

/// Matches that `file.search` shows unless it is told otherwise.
pub const SEARCH_RESULTS: u64 = 100;

/// The most matches that `search_files` shows.
pub const MAX_SEARCH_RESULTS: u64 = 10_000;

/// The most lines of context around a match.
pub const MAX_CONTEXT: u64 = 1_000;

/// Longer patterns are no patterns, but something that was put there by mistake.
pub(crate) const PATTERN_BYTES: usize = 16 * 1024;
/// The same for globs, and how deep their braces may be nested: compiling them recurses.
pub(crate) const GLOB_CHARS: usize = 1_000;
pub(crate) const GLOB_BRACES: usize = 10;
/// How long several globs in one argument may be together: enough for a hundred long ones.
pub(crate) const GLOBS_BYTES: usize = 100 * 1024;
/// In how many ways the braces of a glob are looked at for the names in them.
pub(crate) const GLOB_EXPANSIONS: usize = 100;

/// How large a compiled regex may be: as large as ripgrep lets it be.
pub(crate) const REGEX_BYTES: usize = 100 * 1024 * 1024;
/// What a regex may take while it searches, in each thread.
pub(crate) const REGEX_CACHE_BYTES: usize = 16 * 1024 * 1024;

/// How many steps one call of the regex engine may take, counted as bytes times positions in the pattern.
/// A step takes up to 25 ns, so a call ends within a quarter of a second.
pub(crate) const MAX_CALL_STEPS: u64 = 10_000_000;
/// The same where only the regex engine itself can search a line, and it cannot be stopped.
pub(crate) const MAX_UNSTOPPABLE_STEPS: u64 = 50_000_000;
/// A line, or a file if matches span lines, that takes more is not searched: some minutes, which is
/// longer than any deadline.
pub(crate) const MAX_LINE_STEPS: u64 = 10_000_000_000;
/// Compiled patterns with more positions than this take too much memory to be kept.
pub(crate) const KEPT_PATTERN_WEIGHT: usize = 500;

/// Files up to this size are read as a whole and searched in place; larger ones in pieces.
pub(crate) const WHOLE_FILE: u64 = 128 * 1024;
/// The same for a file that was asked for by name: ripgrep looks at all of it at once too.
pub(crate) const WHOLE_NAMED_FILE: u64 = 64 * 1024 * 1024;

/// What a search may hold of one file: its longest line, or all of it where matches span lines.
pub(crate) const SEARCH_HEAP: usize = 64 * 1024 * 1024;

/// How many bytes of matching lines are kept while the search goes on. What did not fit is searched
/// again if it turns out to be on the page.
pub(crate) const KEPT_BYTES: usize = 8 * 1024 * 1024;

/// How many compiled patterns a session keeps.
pub(crate) const KEPT_PATTERNS: usize = 8;

/// The largest image that is shown: no model takes more, and base64 makes it a third larger still.
pub const IMAGE_BYTES: u64 = 20 * 1024 * 1024;
/// The longest side of an image, in pixels.
pub const IMAGE_SIDE: usize = 8_000;

/// The longest side of an image that is decoded to be shrunk, and the memory that this may take.
pub(crate) const DECODED_SIDE: usize = 20_000;
pub(crate) const DECODED_BYTES: u64 = 256 * 1024 * 1024;

/// How much of one output of a notebook is shown, in characters.
pub(crate) const NOTEBOOK_OUTPUT_CHARS: usize = 10_000;
/// How many images of a notebook are shown.
pub(crate) const NOTEBOOK_IMAGES: usize = 20;
/// A larger notebook, or one of more parts, is shown as the text that it is: in memory each part takes
/// some hundred bytes, however small it is.
pub(crate) const NOTEBOOK_BYTES: u64 = 50 * 1024 * 1024;
pub(crate) const NOTEBOOK_PARTS: usize = 500_000;

/// How many large files a session remembers the places of lines in.
pub(crate) const POSITION_FILES: usize = 32;

/// The largest PDF that is opened.
pub(crate) const PDF_BYTES: u64 = 200 * 1024 * 1024;
/// How many PDFs a process reads at once, and how many bytes they have together: each is in memory as a
/// whole, and a hostile one takes as much memory as a child process may have.
pub(crate) const MAX_PDFS_AT_ONCE: usize = 4;
pub(crate) const MAX_PDF_BYTES_AT_ONCE: u64 = 256 * 1024 * 1024;
