//! The limits of the engine, each with the reason for its value. `DEFAULT_*` is the default of a setting, `MAX_*` a limit
//! that no setting raises.

/// Bytes of text in one result of a tool, unless its dialect has another limit: about 25,000 tokens, more than most
/// models use well at once.
pub const DEFAULT_MAX_OUTPUT_BYTES: usize = 100 * 1024;

/// Bytes of text in one result of a library call or of the dialect `reference`, whose callers page through text
/// themselves.
pub const DEFAULT_MAX_LIBRARY_OUTPUT_BYTES: usize = 1024 * 1024;

/// Characters shown of a line. A minified file must not fill a result.
pub const DEFAULT_MAX_LINE_CHARS: usize = 2_000;

/// The deadline of a call, in seconds. Counting the lines of a 10 GB file in the page cache takes less.
pub const DEFAULT_DEADLINE_SECONDS: u64 = 60;

/// The largest file that is edited or shown as a diff: both versions are in memory.
pub const DEFAULT_MAX_EDIT_BYTES: u64 = 100 * 1024 * 1024;

pub use pinfold_text::MAX_REPLACEMENTS;

/// For how many days a change can be undone.
pub const DEFAULT_JOURNAL_DAYS: u64 = 30;

/// Bytes of backups in the journal: enough for a busy month of source code.
pub const DEFAULT_MAX_JOURNAL_BYTES: u64 = 1024 * 1024 * 1024;

/// Characters of a path, or of the name of a tool or client, in an audit line: `PATH_MAX`.
pub(crate) const MAX_AUDIT_CHARS: usize = 4_096;

/// How often a change is planned again because the file was modified.
pub(crate) const MAX_ATTEMPTS: usize = 16;

/// The largest file that is read on the event-loop thread. Such a read takes less time than
/// waking another thread.
pub(crate) const MAX_CACHED_FILE_BYTES: usize = 64 * 1024;

/// The maximum number of files in the ledger of a session.
pub(crate) const MAX_LEDGER_FILES: usize = 50_000;
/// The maximum number of line hashes in the ledger of a session: 1 MiB.
pub(crate) const MAX_LEDGER_LINES: usize = 256 * 1024;
/// The largest file for which a write counts the added and removed lines.
pub(crate) const MAX_COMPARED_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes of a `file_changed` error: the changed lines, and the region that an edit tried to change.
pub(crate) const MAX_CHANGED_BYTES: usize = 3_600;

/// The maximum number of files that a process saves for later processes of the same parent, and of hashed lines in
/// each. A server that was started for one call has read few.
pub(crate) const MAX_SAVED_READS: usize = 200;
pub(crate) const MAX_SAVED_LINES: usize = 5_000;

/// Directory entries that are compared with a missing name. This takes some milliseconds.
pub(crate) const MAX_COMPARED_NAMES: usize = 5_000;

/// Similar names in an error. More would hide the likely one.
pub(crate) const MAX_SUGGESTED_NAMES: usize = 3;

/// Entries of the workspace that are compared with the name of a missing file. This takes some milliseconds.
pub(crate) const MAX_WALKED_NAMES: usize = 10_000;

/// Entries of a directory that is moved. Policy decides about each, at some hundred thousand per second.
pub const MAX_MOVED_ENTRIES: usize = 100_000;

/// Entries of a directory that is deleted. Each has an entry and a backup in the journal, and the user sees each.
pub const MAX_REMOVED_ENTRIES: usize = 1_000;

/// Changes in one set. Each holds up to three open files, and a process may have about a thousand.
pub const MAX_SET_CHANGES: usize = 200;

/// Bytes of all files that one set edits. Their old and new contents are in memory together.
pub(crate) const MAX_SET_BYTES: u64 = 256 * 1024 * 1024;

/// Bytes of a checkpoint's label. It is a name, and every log shows it.
pub const MAX_LABEL_BYTES: usize = 200;

/// Changes of the journal that a rewind reads: some megabytes of log.
pub(crate) const MAX_REWOUND_CHANGES: usize = 10_000;

/// Names of hidden and ignored entries that a file set keeps. If there are more, a glob for them takes a walk.
pub(crate) const MAX_LEFT_OUT_NAMES: usize = 10_000;

/// Files that a search by name lists. A model can use fewer, and more would fill its context.
pub const DEFAULT_MAX_GLOB_FILES: usize = 1_000;

/// Entries in a list: about as many as fit into a result.
pub const MAX_LIST_ENTRIES: usize = 5_000;

/// The maximum number of files in the cache of binary marks: some megabytes.
pub(crate) const MAX_BINARY_MARKS: usize = 20_000;

/// Bytes of a search pattern. A longer one is a mistake.
pub(crate) const MAX_PATTERN_BYTES: usize = 16 * 1024;
/// Characters of a glob, and the nesting depth of its braces, since compiling them recurses.
pub(crate) const MAX_GLOB_CHARS: usize = 1_000;
pub(crate) const MAX_GLOB_BRACES: usize = 10;
/// Bytes of all globs in one argument: enough for a hundred long ones.
pub(crate) const MAX_GLOBS_BYTES: usize = 100 * 1024;
/// Expansions of a glob's braces, in which literal names are looked for. Several groups multiply.
pub(crate) const MAX_GLOB_EXPANSIONS: usize = 100;

/// Bytes of a compiled regex: the same limit as in ripgrep.
pub(crate) const MAX_REGEX_BYTES: usize = 100 * 1024 * 1024;
/// Bytes of a lazy DFA cache of a regex, in each thread and direction. These are kept with the compiled regex.
pub(crate) const MAX_KEPT_REGEX_CACHE_BYTES: usize = 4 * 1024 * 1024;
/// The same for a text that is searched step by step. These end with the search.
pub(crate) const MAX_REGEX_CACHE_BYTES: usize = 16 * 1024 * 1024;

/// How many steps one call of the regex engine may take, counted as bytes times NFA states of the pattern.
/// A step takes up to 25 ns, so a call ends within a quarter of a second.
pub(crate) const MAX_CALL_STEPS: u64 = 10_000_000;
/// The maximum number of steps if only the regex engine can search a line. It cannot be interrupted.
pub(crate) const MAX_UNSTOPPABLE_STEPS: u64 = 50_000_000;
/// A line that would take more steps, or a file if matches span lines, is not searched. It would take minutes, longer
/// than any deadline.
pub(crate) const MAX_LINE_STEPS: u64 = 10_000_000_000;
/// Patterns with more NFA states than this are compiled with Unicode at once, since they may be too large.
pub(crate) const MAX_ASCII_REGEX_STATES: usize = 50;

/// The largest file that is read whole and searched in memory. A larger one is streamed.
pub(crate) const MAX_WHOLE_FILE_BYTES: u64 = 128 * 1024;
/// The same for a file that the call names. Ripgrep maps such a file into memory.
pub(crate) const MAX_WHOLE_NAMED_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Bytes of one file that a search holds in memory: its longest line, or the whole file if matches can span lines.
pub(crate) const MAX_SEARCH_HEAP_BYTES: usize = 64 * 1024 * 1024;

/// Bytes of matching lines that a search keeps. If the lines of a file on the page did not fit, the file is searched
/// again.
pub(crate) const MAX_KEPT_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of text that a search reads after its page is full, to count the other matches. This takes a fraction of a
/// second.
pub const DEFAULT_MAX_COUNT_BYTES: u64 = 256 * 1024 * 1024;

/// Bytes of memory for the content index: the trigrams of some gigabytes of source code.
pub const MAX_INDEX_BYTES: u64 = 256 * 1024 * 1024;
/// Less text than this is searched as quickly without an index.
pub(crate) const MIN_INDEXED_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes of changed files that are indexed again. Until then a search reads them from memory, in half a millisecond.
pub(crate) const MIN_REINDEXED_BYTES: u64 = 4 * 1024 * 1024;
/// The largest file that is indexed. A larger one is always searched.
pub(crate) const MAX_INDEXED_FILE_BYTES: u64 = 32 * 1024 * 1024;

/// The maximum size of a text that is cached as a whole when it is indexed. Of a larger one, the cache has what
/// searches read. The cache gets only the memory that the index leaves below its limit.
pub(crate) const MAX_KEPT_TEXT_BYTES: u64 = 64 * 1024 * 1024;
/// The largest file that is cached.
pub(crate) const MAX_KEPT_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Compiled patterns that a session caches: agents repeat their last few, and compiling `\w` takes 2 ms. Each keeps what its
/// lazy DFAs have cached.
pub(crate) const MAX_KEPT_PATTERNS: usize = 32;
/// Bytes of memory that they take together, about.
pub(crate) const MAX_KEPT_PATTERN_BYTES: u64 = 32 * 1024 * 1024;
/// Bytes of memory that compiled patterns take at once: three of the largest.
pub(crate) const MAX_PATTERN_BYTES_AT_ONCE: u64 = 6 * MAX_REGEX_BYTES as u64;

/// Bytes of cached search results, and the maximum number of searches.
pub(crate) const MAX_MEMO_BYTES: usize = 32 * 1024 * 1024;
pub(crate) const MAX_MEMO_QUERIES: usize = 64;
/// The longest results of one file that are cached. Longer ones would evict those of many other files.
pub(crate) const MAX_MEMO_FILE_BYTES: usize = 32 * 1024;

/// The largest file that is read whole, whatever its kind: what a client accepts as one attachment, in base64.
pub const MAX_READ_BYTES: u64 = 20 * 1024 * 1024;

/// Bytes of an image that is shown: no model accepts more, and base64 makes it a third larger.
pub const MAX_SHOWN_IMAGE_BYTES: u64 = 20 * 1024 * 1024;
/// The longest side of an image that is shown, in pixels.
pub const MAX_SHOWN_IMAGE_SIDE: usize = 8_000;

/// The longest side of an image that is decoded to scale it down, and the memory for decoding.
#[cfg(feature = "images")]
pub(crate) const MAX_DECODED_SIDE: usize = 20_000;
#[cfg(feature = "images")]
pub(crate) const MAX_DECODED_BYTES: u64 = 256 * 1024 * 1024;

/// Characters of one notebook output that are shown. A log must not hide the cells after it.
pub(crate) const MAX_NOTEBOOK_OUTPUT_CHARS: usize = 10_000;
/// Images of a notebook that are shown.
pub(crate) const MAX_NOTEBOOK_IMAGES: usize = 20;
/// A larger notebook, or one with more JSON values, is shown as text. Each value takes some hundred bytes of memory.
pub(crate) const MAX_NOTEBOOK_BYTES: u64 = 50 * 1024 * 1024;
pub(crate) const MAX_NOTEBOOK_PARTS: usize = 500_000;

/// Large files whose line index a session caches. Each takes up to 64 KiB.
pub(crate) const MAX_INDEXED_FILES: usize = 32;

/// The largest PDF that is opened. It is in memory as a whole.
pub(crate) const MAX_PDF_BYTES: u64 = 200 * 1024 * 1024;
/// How many PDFs a process reads at once, and their total size. Each is in memory as a whole, and a hostile one takes
/// as much memory as a child process may have.
pub(crate) const MAX_PDFS_AT_ONCE: usize = 4;
pub(crate) const MAX_PDF_BYTES_AT_ONCE: u64 = 256 * 1024 * 1024;

/// The largest file whose added and removed lines are counted for an observer. The call waits for the count.
pub(crate) const MAX_COUNTED_BYTES: u64 = 1024 * 1024;

/// Bytes of memory that files take at once which are in memory as a whole, to be parsed or searched: sixteen of the largest
/// that are searched.
pub(crate) const MAX_FILE_BYTES_AT_ONCE: u64 = 1024 * 1024 * 1024;

/// Bytes of memory that answers take at once which have a whole file in them, until they are sent: three of the largest.
pub(crate) const MAX_ANSWER_BYTES_AT_ONCE: u64 = 256 * 1024 * 1024;

/// Bytes of memory that edits take at once: two of the largest sets.
pub(crate) const MAX_EDITED_BYTES_AT_ONCE: u64 = 4 * MAX_SET_BYTES;

/// Less memory is not counted: many small files take little together.
pub(crate) const MIN_RESERVED_BYTES: u64 = 1024 * 1024;
