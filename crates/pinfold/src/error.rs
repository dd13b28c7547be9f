//! The errors of operations.
//!
//! The message says what is wrong, and [`Error::hint`] says what to try next. A message repeats a path as it was
//! given, never the path that it leads to. The enum is exhaustive, so each dialect has a code for every kind.

mod denial;
mod from_confine;
mod hint;

use std::io;

use pinfold_confine::{Kind, RawPath};
use pinfold_text::MatchKind;

pub use denial::Denial;

use crate::Access;

/// The reason why an operation was refused or failed. Nothing was changed, unless the error says otherwise.
///
/// The enum is exhaustive on purpose: each dialect has a code for every kind, and a kind without one does not
/// compile.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing is at the path.
    #[error("`{path}` does not exist")]
    NotFound {
        /// The path as it was given.
        path: RawPath,
        /// Existing paths with a similar name.
        near: Vec<String>,
    },
    /// No directory is at the path.
    #[error("the directory `{path}` does not exist")]
    DirectoryNotFound {
        /// The path as it was given.
        path: RawPath,
        /// Existing paths with a similar name.
        near: Vec<String>,
    },
    /// A symlink whose target does not exist.
    #[error("`{path}` is a symlink to something that does not exist")]
    Dangling {
        /// The path as it was given.
        path: RawPath,
    },
    /// The directory for a new file does not exist, and the call does not create it.
    #[error("the directory `{parent}` for `{path}` does not exist")]
    ParentMissing {
        /// The path as it was given.
        path: RawPath,
        /// The first directory that is missing.
        parent: String,
    },
    /// The path leads out of the workspace.
    #[error("`{path}` is outside the workspace")]
    Outside {
        /// The path as it was given.
        path: RawPath,
        /// The workspace's roots.
        roots: Vec<String>,
    },
    /// A root's path no longer leads to a directory.
    #[error("the workspace root `{root}` is gone")]
    RootGone {
        /// The root as the user gave it.
        root: String,
    },
    /// Another directory has taken the place of a root, and Landlock does not allow access to it.
    #[error(
        "the workspace root `{root}` was replaced, and Landlock restricts this server to the directory \
         that was there when it started"
    )]
    RootReplaced {
        /// The root as the user gave it.
        root: String,
    },
    /// The file's directory was moved, removed or replaced during the call.
    #[error("the directory of `{path}` was moved during the call; nothing was changed")]
    DirectoryMoved {
        /// The path as it was given.
        path: RawPath,
    },
    /// The operating system does not allow listing the directory.
    #[error("cannot read the directory `{path}`: permission denied")]
    DirectoryUnreadable {
        /// The path as it was given.
        path: RawPath,
    },
    /// The client asked for directories that have nothing in common with the workspace.
    #[error("no part of the workspace ({}) is in the client's roots ({})", .workspace.join(", "), .client.join(", "))]
    NoCommonRoot {
        /// The workspace's roots.
        workspace: Vec<String>,
        /// The directories that the client asked for.
        client: Vec<String>,
    },
    /// Denied by a rule or by the user.
    #[error("{} `{path}` is not allowed: {denial}", .access.doing())]
    Denied {
        /// The path as it was given.
        path: RawPath,
        /// The operation.
        access: Access,
        /// Why it was denied.
        denial: Denial,
    },
    /// The audit log cannot be written, and the settings allow no changes without it.
    #[error("the audit log cannot be written, so nothing is changed")]
    AuditFailed,
    /// Something exists at a path that must be free.
    #[error("`{path}` already exists")]
    Exists {
        /// The path as it was given.
        path: RawPath,
    },
    /// A directory that has to be empty is not empty.
    #[error("the directory `{path}` is not empty")]
    NotEmpty {
        /// The path as it was given.
        path: RawPath,
    },
    /// A move would lead to another file system.
    #[error(
        "`{path}` is on another file system, or the directory is in a lower layer of an overlay, so it cannot be moved there; nothing was changed"
    )]
    CrossDevice {
        /// The new path, as it was given.
        path: RawPath,
    },
    /// A directory has more entries than one call can handle.
    #[error("`{path}` holds more than {limit} entries; nothing was changed")]
    TooManyEntries {
        /// The path as it was given.
        path: RawPath,
        /// The limit.
        limit: usize,
    },
    /// The path is a directory, and a file was expected.
    #[error("`{path}` is a directory")]
    IsDirectory {
        /// The path as it was given.
        path: RawPath,
    },
    /// The path is a file, and a directory was expected.
    #[error("`{path}`, or a part of it, is a file and not a directory")]
    NotADirectory {
        /// The path as it was given.
        path: RawPath,
    },
    /// The path is a pipe, socket or device, and a file was expected.
    #[error("`{path}` is a {} and not a regular file", .kind.name())]
    NotRegular {
        /// The path as it was given.
        path: RawPath,
        /// Its kind.
        kind: Kind,
    },
    /// The path cannot name anything.
    #[error("the path `{path}` {problem}")]
    BadPath {
        /// The path as it was given.
        path: RawPath,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The path leads through too many symlinks.
    #[error("`{path}` leads through too many symlinks")]
    TooManyLinks {
        /// The path as it was given.
        path: RawPath,
    },
    /// The file is not text.
    #[error("`{path}` is binary ({mime}, {size} bytes)")]
    Binary {
        /// The path as it was given.
        path: RawPath,
        /// Its media type, guessed from the content.
        mime: &'static str,
        /// Its size in bytes.
        size: u64,
    },
    /// A document whose text cannot be extracted.
    #[error("the text of `{path}` cannot be read: {problem}")]
    UnsupportedDocument {
        /// The path as it was given.
        path: RawPath,
        /// The reason.
        problem: String,
    },
    /// An image that is too large for models.
    #[error("the image `{path}` is too large: {problem}")]
    ImageTooLarge {
        /// The path as it was given.
        path: RawPath,
        /// What is too large about it.
        problem: String,
    },
    /// The pages start after the last one.
    #[error("page {first} is past the end of `{path}`, which has {}", count(*.total, "page"))]
    PageOutOfRange {
        /// The path as it was given.
        path: RawPath,
        /// The first page that was requested.
        first: u64,
        /// How many pages there are.
        total: u64,
    },
    /// The window starts after the last line.
    #[error("line {first} is past the end of `{path}`, which has {}", count(*.total, "line"))]
    OutOfRange {
        /// The path as it was given.
        path: RawPath,
        /// The first line that was requested.
        first: u64,
        /// How many lines there are.
        total: u64,
    },
    /// An argument is missing, unknown, or of the wrong kind.
    #[error("{0}")]
    InvalidArgument(String),
    /// Lines were requested of a file that has none.
    #[error("`{path}` is {what} and has no lines")]
    NoLines {
        /// The path as it was given.
        path: RawPath,
        /// What it is, such as `an image`.
        what: &'static str,
        /// Whether it has pages instead.
        has_pages: bool,
    },
    /// Pages were requested of a file that is not a PDF.
    #[error("`{path}` is not a PDF and has no pages")]
    NoPages {
        /// The path as it was given.
        path: RawPath,
    },
    /// No type of files has this name.
    #[error("there is no file type `{name}`")]
    UnknownFileType {
        /// The name as it was given, cut if it is long.
        name: String,
        /// Names of types that are similar.
        near: Vec<String>,
    },
    /// A glob that does not parse.
    #[error("`{pattern}` is not a glob: {problem}")]
    BadGlob {
        /// The use of the glob.
        usage: GlobUsage,
        /// The pattern as it was given.
        pattern: RawPath,
        /// What is wrong with it.
        problem: String,
    },
    /// A regex that does not parse.
    #[error("the regex is not valid: {problem}")]
    BadRegex {
        /// The pattern as it was given.
        pattern: String,
        /// What is wrong with it.
        problem: String,
        /// The kind of mistake.
        kind: RegexMistake,
    },
    /// The file is there, but this session has not read it.
    #[error("`{path}` exists but has not been read in this session")]
    NotRead {
        /// The path as it was given.
        path: RawPath,
        /// Whether every call may have its own session, so that reading the file first does not help.
        names_setting: bool,
    },
    /// The file changed since this session read it, or keeps changing.
    #[error("`{path}` has changed since it was last read")]
    Changed {
        /// The path as it was given.
        path: RawPath,
        /// The changed lines, and the region that an edit tried to change, as they are now.
        now: Option<String>,
        /// Whether the file has to be read again, because `now` does not show every change.
        read_again: bool,
    },
    /// The text to replace is nowhere in the file.
    #[error("{}the text to replace is not in `{path}`", edit(*.number))]
    NoMatch {
        /// The path as it was given.
        path: RawPath,
        /// The number of the edit, if there are several.
        number: Option<usize>,
        /// The nearest region, why it differs, and whether the new text is there already.
        nearest: Option<String>,
    },
    /// The text to replace is in several places.
    #[error("{}the text to replace is in `{path}` {count}{} times", edit(*.number), if *.or_more { " or more" } else { "" })]
    ManyMatches {
        /// The path as it was given.
        path: RawPath,
        /// The number of the edit, if there are several.
        number: Option<usize>,
        /// How often it was found.
        count: usize,
        /// Whether there may be more.
        or_more: bool,
        /// The lines on which the first ones start.
        lines: Vec<u64>,
        /// How they were found.
        match_kind: MatchKind,
    },
    /// The line that marks a position in a file does not occur, or occurs several times.
    #[error("the line `{anchor}` is {}in `{path}`{}", if .lines.is_empty() { "not " } else { "" }, times(.lines.len()))]
    BadAnchor {
        /// The path as it was given.
        path: RawPath,
        /// The line.
        anchor: String,
        /// The first lines where it occurs.
        lines: Vec<u64>,
        /// The nearest region, and how it differs, if the line does not occur.
        nearest: Option<String>,
    },
    /// Two changes of a set change the same path.
    #[error("`{path}` is changed twice; each path can be changed once")]
    ChangedTwice {
        /// The path as it was given.
        path: RawPath,
    },
    /// The text to replace is empty. Only the first edit of a new or empty file may have an empty one.
    #[error("{}the text to replace is empty, and `{path}` is not", edit(*.number))]
    EmptyOld {
        /// The path as it was given.
        path: RawPath,
        /// The number of the edit, if there are several.
        number: Option<usize>,
    },
    /// The edit would change nothing.
    #[error("{}the old and the new text are the same (line endings do not count)", edit(*.number))]
    NoChange {
        /// The number of the edit, if there are several.
        number: Option<usize>,
    },
    /// After the change, the notebook would not be a valid notebook.
    #[error("`{path}` would no longer be a notebook: {problem}; nothing was changed")]
    BreaksNotebook {
        /// The path as it was given.
        path: RawPath,
        /// What would be wrong with it.
        problem: String,
    },
    /// The file has no cells that can be changed.
    #[error("the cells of `{path}` cannot be changed: {problem}")]
    NotANotebook {
        /// The path as it was given.
        path: RawPath,
        /// The reason why it is not a notebook.
        problem: String,
    },
    /// A notebook has no such cell.
    #[error("`{path}` has no cell `{cell}`")]
    NoCell {
        /// The path as it was given.
        path: RawPath,
        /// The cell as it was given, cut if it is long.
        cell: String,
        /// Names of similar cells.
        near: Vec<String>,
    },
    /// The file is too large to edit.
    #[error("`{path}` has or would have {size} bytes, and more than {limit} cannot be edited")]
    TooLarge {
        /// The path as it was given.
        path: RawPath,
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The file is too large to read whole.
    #[error("`{path}` has {size} bytes, and more than {limit} cannot be read whole")]
    TooLargeToRead {
        /// The path as it was given.
        path: RawPath,
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The file cannot be searched.
    #[error(
        "`{path}` cannot be searched: a line is too long, or the whole file if matches span lines"
    )]
    TooLargeToSearch {
        /// The path as it was given.
        path: RawPath,
    },
    /// The text has a character that the encoding cannot express.
    #[error("{}{encoding} cannot express `{character}` (line {line} of the text)", edit(*.number))]
    Unmappable {
        /// The number of the edit, if there are several.
        number: Option<usize>,
        /// The encoding's name.
        encoding: String,
        /// The first such character, escaped if it cannot be seen.
        character: String,
        /// The line that it is on.
        line: u64,
    },
    /// The operating system denied access.
    #[error("permission denied: `{path}`{}", .why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default())]
    AccessDenied {
        /// The path as it was given.
        path: RawPath,
        /// Details, if they are known.
        why: Option<String>,
    },
    /// The disk is full.
    #[error("no space left to write `{path}`; nothing was changed")]
    NoSpace {
        /// The path as it was given.
        path: RawPath,
    },
    /// Reading failed.
    #[error("cannot read `{path}`: {cause}")]
    ReadFailed {
        /// The path as it was given.
        path: RawPath,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// Writing failed.
    #[error("cannot write `{path}`: {cause}")]
    WriteFailed {
        /// The path as it was given.
        path: RawPath,
        /// The error of the operating system.
        cause: String,
    },
    /// The journal could not be written or read.
    #[error("the journal failed, so nothing was changed: {cause}")]
    JournalFailed {
        /// What went wrong.
        cause: String,
    },
    /// There is no such change in the journal.
    #[error("{}", .id.as_ref().map_or("there is no change to undo".into(), |id| format!("the journal has no change or checkpoint `{id}` in this workspace, or no longer has its backup")))]
    NothingToUndo {
        /// The id of the requested change.
        id: Option<String>,
    },
    /// The file was modified after the change.
    #[error("`{path}` is not as the change left it: {what}")]
    NotAsLeft {
        /// The file.
        path: RawPath,
        /// What is different.
        what: &'static str,
    },
    /// The call took too long.
    #[error("stopped after {seconds} s, the deadline for one call")]
    Timeout {
        /// The deadline.
        seconds: u64,
    },
    /// Earlier calls hang, and use up the threads that may hang.
    #[error(
        "{calls} earlier calls hang, most likely on a file system that does not answer; nothing was done"
    )]
    TooManyStuck {
        /// The number of those calls.
        calls: usize,
    },
    /// Another process kept the directory locked.
    #[error("another process keeps the directory of `{path}` locked; nothing was changed")]
    Locked {
        /// The path as it was given.
        path: RawPath,
    },
    /// The call was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// No tool has this name.
    #[error("there is no tool `{name}`")]
    UnknownTool {
        /// The name as it was given.
        name: String,
        /// The names of the available tools.
        tools: Vec<String>,
    },
    /// A bug in Pinfold.
    #[error("internal error: {what}")]
    Internal {
        /// What went wrong.
        what: String,
    },
}

/// What a glob is used for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GlobUsage {
    /// To find files.
    Find,
    /// To select the files to search or list.
    Filter,
    /// To leave entries out of a list.
    Ignore,
}

/// What kind of mistake makes a regex invalid.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RegexMistake {
    /// Its syntax.
    Syntax,
    /// A line end, where matches do not span lines.
    LineEnd,
    /// Look-around, which the engine does not have.
    LookAround,
    /// It is too large.
    Size,
}

/// `1 line`, `2 lines`.
fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// ` 2 times`, or nothing for 0.
fn times(number: usize) -> String {
    if number == 0 { String::new() } else { format!(" {number} times") }
}

/// The prefix with the number of the edit, if there are several.
fn edit(number: Option<usize>) -> String {
    number.map(|number| format!("edit {number}: ")).unwrap_or_default()
}
