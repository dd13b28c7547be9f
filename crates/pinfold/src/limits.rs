//! The limits and defaults of the engine, each with the reason for its value.

/// Bytes of text in one result of a tool, unless its dialect says otherwise: about 25,000 tokens, more than most models
/// use well at once.
pub const DEFAULT_OUTPUT_BYTES: usize = 100 * 1024;

/// Bytes of text in one result of an operation of the library, which programs call, and of the dialect `reference`.
pub const MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// Characters of a line that are shown: a minified file must not fill a result.
pub const MAX_LINE_CHARS: usize = 2_000;

/// The deadline of a call, in seconds. Counting the lines of a 10 GB file in the page cache takes less.
pub const DEADLINE_SECONDS: u64 = 60;

/// The largest file that is edited or shown as a diff: both versions are in memory.
pub const MAX_EDIT_BYTES: u64 = 100 * 1024 * 1024;

pub use pinfold_text::MAX_REPLACEMENTS;

/// For how many days a change can be undone.
pub const JOURNAL_DAYS: u64 = 30;

/// Bytes of backups in the journal: a busy month of source code.
pub const MAX_JOURNAL_BYTES: u64 = 1024 * 1024 * 1024;

/// Characters of a path, or of the name of a tool or client, in an audit line: `PATH_MAX`.
pub(crate) const MAX_AUDIT_CHARS: usize = 4_096;

/// How often a change is planned again because the file was modified meanwhile.
pub(crate) const MAX_ATTEMPTS: usize = 16;

/// Files up to this size may be read on the thread that moves a server's messages: that takes less time than
/// waking another thread.
pub(crate) const MAX_CACHED_FILE_BYTES: usize = 64 * 1024;

/// Files in the ledger of a session.
pub(crate) const MAX_LEDGER_FILES: usize = 50_000;
/// Lines whose hashes are in the ledger of a session: 1 MiB.
pub(crate) const MAX_LEDGER_LINES: usize = 256 * 1024;
/// The largest file of which a write counts the lines that come and go.
pub(crate) const MAX_COMPARED_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes of a `file_changed` error: what changed, and the region that an edit was about.
pub(crate) const MAX_CHANGED_BYTES: usize = 3_600;

/// Files that a process leaves for later ones of the same parent process, and lines of each of them that are hashed:
/// a server that was started for one call has read few.
pub(crate) const MAX_SAVED_READS: usize = 200;
pub(crate) const MAX_SAVED_LINES: usize = 5_000;

/// Entries of a directory that are compared with a name that was not found: some milliseconds.
pub(crate) const MAX_COMPARED_NAMES: usize = 5_000;

/// Similar names that an error suggests: more would hide the likely one.
pub(crate) const MAX_SUGGESTED_NAMES: usize = 3;

/// Entries of the workspace that are compared with the name of a file that was not found: some milliseconds.
pub(crate) const MAX_WALKED_NAMES: usize = 10_000;

/// Entries of a directory that is moved: policy is asked about each, some hundred thousand in a second.
pub const MAX_MOVED_ENTRIES: usize = 100_000;

/// Entries of a directory that is deleted: each has an entry and a backup in the journal, and the user is shown each.
pub const MAX_REMOVED_ENTRIES: usize = 1_000;

/// Changes that are made together: each holds up to three open files, and a process has about a thousand.
pub const MAX_SET_CHANGES: usize = 200;

/// Bytes of a checkpoint's label: it is a name, and every log shows it.
pub const MAX_LABEL_BYTES: usize = 200;

/// Changes of the journal that a rewind looks at: some megabytes of log.
pub(crate) const MAX_REWOUND_CHANGES: usize = 10_000;

/// Names of hidden and ignored entries that are remembered. Of more, a pattern for files is matched in a walk.
pub(crate) const MAX_LEFT_OUT_NAMES: usize = 10_000;

/// Files that a search by name lists: more than a model can use, fewer than fill its context.
pub const MAX_GLOB_FILES: usize = 1_000;

/// Entries in a list: about as many as fit into the output.
pub const MAX_LIST_ENTRIES: usize = 5_000;

/// Files of which a session remembers whether they are binary: some megabytes.
pub(crate) const MAX_BINARY_MARKS: usize = 20_000;

/// Bytes of a search pattern: a longer one is a mistake.
pub(crate) const MAX_PATTERN_BYTES: usize = 16 * 1024;
/// Characters of a glob, and the nesting depth of its braces: compiling braces recurses.
pub(crate) const MAX_GLOB_CHARS: usize = 1_000;
pub(crate) const MAX_GLOB_BRACES: usize = 10;
/// Bytes of all globs in one argument: enough for a hundred long ones.
pub(crate) const MAX_GLOBS_BYTES: usize = 100 * 1024;
/// Alternatives of a brace glob that are expanded to find the names in them: several groups multiply.
pub(crate) const MAX_GLOB_EXPANSIONS: usize = 100;

/// Bytes of a compiled regex: the limit of ripgrep.
pub(crate) const MAX_REGEX_BYTES: usize = 100 * 1024 * 1024;
/// Bytes of the lazy DFA cache of a regex, in each thread.
pub(crate) const MAX_REGEX_CACHE_BYTES: usize = 16 * 1024 * 1024;

/// How many steps one call of the regex engine may take, counted as bytes times positions in the pattern.
/// A step takes up to 25 ns, so a call ends within a quarter of a second.
pub(crate) const MAX_CALL_STEPS: u64 = 10_000_000;
/// The same where only the regex engine itself can search a line, and it cannot be stopped.
pub(crate) const MAX_UNSTOPPABLE_STEPS: u64 = 50_000_000;
/// A line, or a file if matches span lines, that takes more is not searched: some minutes, which is
/// longer than any deadline.
pub(crate) const MAX_LINE_STEPS: u64 = 10_000_000_000;
/// Compiled patterns with more positions than this take too much memory to be kept.
pub(crate) const MAX_KEPT_PATTERN_WEIGHT: usize = 500;

/// Patterns with more positions than this are compiled with Unicode at once, since they may prove too large.
pub(crate) const MAX_TWIN_WEIGHT: usize = 50;

/// Bytes of a file that is read whole and searched in memory; a larger file is streamed.
pub(crate) const MAX_WHOLE_FILE_BYTES: u64 = 128 * 1024;
/// The same for a file that the call names: ripgrep maps such a file into memory.
pub(crate) const MAX_WHOLE_NAMED_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Bytes of one file that a search holds: its longest line, or the whole file if matches can span lines.
pub(crate) const MAX_SEARCH_HEAP_BYTES: usize = 64 * 1024 * 1024;

/// Bytes of matching lines that are kept during a search. A file whose lines did not fit is searched again if it is
/// on the page.
pub(crate) const MAX_KEPT_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of text that a search reads after its page is full, to count the other matches: a fraction of a second.
pub const MAX_COUNT_BYTES: u64 = 256 * 1024 * 1024;

/// Bytes of memory that the index of contents takes: the trigrams of some gigabytes of source code.
pub const MAX_INDEX_BYTES: u64 = 256 * 1024 * 1024;
/// Less text is searched as quickly without an index.
pub(crate) const MIN_INDEXED_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes of changed files that are indexed again. Until then a search reads them from memory, in half a millisecond.
pub(crate) const MIN_REINDEXED_BYTES: u64 = 4 * 1024 * 1024;
/// Bytes of a file that is indexed: a larger one is always searched.
pub(crate) const MAX_INDEXED_FILE_BYTES: u64 = 32 * 1024 * 1024;

/// Bytes of text that is kept in memory as a whole when it is indexed; of more, what searches look at is kept. Both
/// only as far as the index leaves room below its limit.
pub(crate) const MAX_KEPT_TEXT_BYTES: u64 = 64 * 1024 * 1024;
/// Bytes of a file whose content is kept in memory.
pub(crate) const MAX_KEPT_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Compiled patterns that a session caches: agents repeat their last few, and compiling `\w` takes 2 ms.
pub(crate) const MAX_KEPT_PATTERNS: usize = 64;

/// Bytes of what searches found that are kept for when they are repeated, and how many searches that are.
pub(crate) const MAX_MEMO_BYTES: usize = 32 * 1024 * 1024;
pub(crate) const MAX_MEMO_QUERIES: usize = 64;
/// A file with longer results is searched again: they would displace those of many other files.
pub(crate) const MAX_MEMO_FILE_BYTES: usize = 32 * 1024;

/// Bytes of a file that is read whole, whatever it holds: what a client takes as one attachment, in base64.
pub const MAX_READ_BYTES: u64 = 20 * 1024 * 1024;

/// Bytes of an image that is shown: no model accepts more, and base64 makes it a third larger.
pub const MAX_IMAGE_BYTES: u64 = 20 * 1024 * 1024;
/// The longest side of an image that is shown, in pixels.
pub const MAX_IMAGE_SIDE: usize = 8_000;

/// The longest side of an image that is decoded to be scaled down, and the memory that decoding may take.
#[cfg(feature = "images")]
pub(crate) const MAX_DECODED_SIDE: usize = 20_000;
#[cfg(feature = "images")]
pub(crate) const MAX_DECODED_BYTES: u64 = 256 * 1024 * 1024;

/// Characters of one notebook output that are shown: a log must not hide the cells after it.
pub(crate) const MAX_NOTEBOOK_OUTPUT_CHARS: usize = 10_000;
/// Images of a notebook that are shown.
pub(crate) const MAX_NOTEBOOK_IMAGES: usize = 20;
/// A larger notebook, or one with more JSON values, is shown as text: each value takes some hundred bytes of memory.
pub(crate) const MAX_NOTEBOOK_BYTES: u64 = 50 * 1024 * 1024;
pub(crate) const MAX_NOTEBOOK_PARTS: usize = 500_000;

/// Large files whose line index a session keeps: each index takes up to 64 KiB.
pub(crate) const MAX_INDEXED_FILES: usize = 32;

/// The largest PDF that is opened: it is in memory as a whole.
pub(crate) const MAX_PDF_BYTES: u64 = 200 * 1024 * 1024;
/// How many PDFs a process reads at once, and how many bytes they have together: each is in memory as a
/// whole, and a hostile one takes as much memory as a child process may have.
pub(crate) const MAX_PDFS_AT_ONCE: usize = 4;
pub(crate) const MAX_PDF_BYTES_AT_ONCE: u64 = 256 * 1024 * 1024;

/// The largest file whose added and removed lines are counted for an observer: the call waits for the count.
pub(crate) const MAX_COUNTED_BYTES: u64 = 1024 * 1024;
