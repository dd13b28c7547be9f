//! What an operation can answer instead of an outcome.
//!
//! The message says what is so, [`Error::hint`] what to try next. Paths are repeated as they were
//! given, never as what they led to. The kinds are closed: each dialect names a code for every one.

use std::io;

use pinfold_confine::{Error as Fence, Kind, RawPath};
use pinfold_text::Match;

use crate::{Access, Reason};

/// Why an operation was refused or failed. Nothing was changed, unless it says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing is at the path.
    #[error("`{path}` does not exist")]
    NotFound {
        /// The path as it was given.
        path: RawPath,
        /// Paths of things that do exist and are called almost the same.
        near: Vec<String>,
    },
    /// No directory is at the path.
    #[error("the directory `{path}` does not exist")]
    DirectoryNotFound {
        /// The path as it was given.
        path: RawPath,
        /// Paths of things that do exist and are called almost the same.
        near: Vec<String>,
    },
    /// A link is at the path, and what it points to does not exist.
    #[error("`{path}` is a symlink to something that does not exist")]
    Dangling {
        /// The path as it was given.
        path: RawPath,
    },
    /// The directory for a new file does not exist, and was not to be made.
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
    /// The client asked for directories that have nothing in common with the workspace.
    #[error("nothing of the workspace ({}) is in the client's roots ({})", .workspace.join(", "), .client.join(", "))]
    NothingLeft {
        /// The workspace's roots.
        workspace: Vec<String>,
        /// The directories that the client asked for.
        client: Vec<String>,
    },
    /// The person who runs Pinfold does not want it, by a rule or when asked.
    #[error("{} `{path}` is not allowed: {denial}", .access.doing())]
    Denied {
        /// The path as it was given.
        path: RawPath,
        /// What was to be done.
        access: Access,
        /// Who said no, and why.
        denial: Denial,
    },
    /// The audit log cannot be written, and nothing is to be changed without it.
    #[error("the audit log cannot be written, so nothing is changed")]
    AuditFailed,
    /// A directory is where a file was wanted.
    #[error("`{path}` is a directory")]
    IsDirectory {
        /// The path as it was given.
        path: RawPath,
    },
    /// A file is where a directory was wanted.
    #[error("`{path}`, or a part of it, is a file and not a directory")]
    NotADirectory {
        /// The path as it was given.
        path: RawPath,
    },
    /// A pipe, socket or device is where a file was wanted.
    #[error("`{path}` is a {} and not a regular file", .kind.name())]
    NotRegular {
        /// The path as it was given.
        path: RawPath,
        /// What it is.
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
    /// Links lead to links without an end.
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
        /// What it seems to be.
        mime: &'static str,
        /// Its size in bytes.
        size: u64,
    },
    /// A document whose text is not read.
    #[error("the text of `{path}` cannot be read: {problem}")]
    UnsupportedDocument {
        /// The path as it was given.
        path: RawPath,
        /// Why not.
        problem: String,
    },
    /// An image that no model would take.
    #[error("the image `{path}` is too large: {problem}")]
    ImageTooLarge {
        /// The path as it was given.
        path: RawPath,
        /// What is too large about it.
        problem: String,
    },
    /// The pages start after the last one.
    #[error("page {first} is past the end of `{path}`, which has {total} pages")]
    PageOutOfRange {
        /// The path as it was given.
        path: RawPath,
        /// The first page that was asked for.
        first: u64,
        /// How many pages there are.
        total: u64,
    },
    /// The window starts after the last line.
    #[error("line {first} is past the end of `{path}`, which has {total} lines")]
    OutOfRange {
        /// The path as it was given.
        path: RawPath,
        /// The first line that was asked for.
        first: u64,
        /// How many lines there are.
        total: u64,
    },
    /// An argument is missing, unknown, or of the wrong kind.
    #[error("{0}")]
    InvalidArgument(String),
    /// A pattern for paths that is none.
    #[error("`{argument}`: `{pattern}` is not a glob: {problem}")]
    BadGlob {
        /// The argument that it was given as.
        argument: &'static str,
        /// The pattern as it was given.
        pattern: RawPath,
        /// What is wrong with it.
        problem: String,
    },
    /// A pattern for text that is none.
    #[error("the regex is not valid: {problem}")]
    BadRegex {
        /// What is wrong with it, and what to try.
        problem: String,
    },
    /// The file is there, but this session has not read it.
    #[error("`{path}` exists but has not been read in this session")]
    NotRead {
        /// The path as it was given.
        path: RawPath,
    },
    /// The file is not as this session last saw it, or somebody changes it all the time.
    #[error("`{path}` has changed since it was last read")]
    Changed {
        /// The path as it was given.
        path: RawPath,
        /// How the part that an edit was about reads now.
        region: Option<String>,
    },
    /// The text to replace is nowhere in the file.
    #[error("{}the text to replace is not in `{path}`", edit(*.number))]
    NoMatch {
        /// The path as it was given.
        path: RawPath,
        /// Which edit it was, where there are several.
        number: Option<usize>,
        /// The nearest region, why it differs, and whether the new text is there already.
        nearest: Option<String>,
    },
    /// The text to replace is in several places.
    #[error("{}the text to replace is in `{path}` {count}{} times", edit(*.number), if *.or_more { " or more" } else { "" })]
    ManyMatches {
        /// The path as it was given.
        path: RawPath,
        /// Which edit it was, where there are several.
        number: Option<usize>,
        /// How often it was found.
        count: usize,
        /// Whether there may be more.
        or_more: bool,
        /// The lines on which the first ones start.
        lines: Vec<u64>,
        /// How they were found.
        reading: Match,
    },
    /// The edit would change nothing.
    #[error("{}the old and the new text are the same, but for line ends perhaps", edit(*.number))]
    NoChange {
        /// Which edit it was, where there are several.
        number: Option<usize>,
    },
    /// The file is larger than what can be edited.
    #[error("`{path}` has or would have {size} bytes, and more than {limit} cannot be edited")]
    TooLarge {
        /// The path as it was given.
        path: RawPath,
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The file cannot be searched.
    #[error(
        "`{path}` cannot be searched: a line, or all of it where matches span lines, is too long"
    )]
    TooLargeToSearch {
        /// The path as it was given.
        path: RawPath,
    },
    /// The text has a character that the encoding cannot express.
    #[error("{}{encoding} cannot express `{character}` (line {line} of the text)", edit(*.number))]
    Unmappable {
        /// Which edit it was, where there are several.
        number: Option<usize>,
        /// The encoding's name.
        encoding: String,
        /// The first such character, escaped if it cannot be seen.
        character: String,
        /// The line that it is on.
        line: u64,
    },
    /// The operating system said no.
    #[error("permission denied: `{path}`{}", .why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default())]
    AccessDenied {
        /// The path as it was given.
        path: RawPath,
        /// More than that, where more is known.
        why: Option<String>,
    },
    /// The disk is full.
    #[error("no space left to write `{path}`; nothing was changed")]
    NoSpace {
        /// The path as it was given.
        path: RawPath,
    },
    /// Reading or looking failed.
    #[error("cannot read `{path}`: {cause}")]
    ReadFailed {
        /// The path as it was given.
        path: RawPath,
        /// What the operating system said.
        cause: io::Error,
    },
    /// Writing failed.
    #[error("cannot write `{path}`: {cause}")]
    WriteFailed {
        /// The path as it was given.
        path: RawPath,
        /// What the operating system said.
        cause: String,
    },
    /// The journal could not be written or read.
    #[error("the journal failed, so nothing was changed: {cause}")]
    JournalFailed {
        /// What went wrong.
        cause: String,
    },
    /// There is no such change in the journal.
    #[error("{}", .id.as_ref().map_or("there is no change to take back".into(), |id| format!("the journal has no change `{id}` in this workspace, or no longer what it displaced")))]
    NothingToUndo {
        /// The change that was asked for.
        id: Option<String>,
    },
    /// The file is not as the change left it.
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
    /// Another process kept the directory locked.
    #[error("another process keeps the directory of `{path}` locked; nothing was changed")]
    Locked {
        /// The path as it was given.
        path: RawPath,
    },
    /// Somebody ended the call.
    #[error("cancelled")]
    Cancelled,
    /// No tool has this name.
    #[error("there is no tool `{name}`")]
    UnknownTool {
        /// The name as it was given.
        name: String,
        /// The names of tools that there are.
        tools: Vec<String>,
    },
    /// A mistake in Pinfold itself.
    #[error("internal error: {what}")]
    Internal {
        /// What went wrong.
        what: String,
    },
}

/// Who said no, and why.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Denial {
    /// A rule, the mode, or that it is Pinfold's own.
    #[error("{}", said(.0))]
    Policy(Reason),
    /// A person, maybe with words for the agent.
    #[error("the person said no{}", words(.0.as_deref()))]
    Person(Option<String>),
    /// A person would have to be asked, and nobody can be.
    #[error("a person has to be asked ({reason}), and nobody can be")]
    Nobody {
        /// Why somebody would have to be.
        reason: Reason,
        /// The rule that would allow it, if one would.
        allow: Option<String>,
    },
    /// A person is being asked, and the call will be made again with the answer.
    #[error("a person is being asked")]
    Later,
}

fn said(reason: &Reason) -> String {
    match reason {
        Reason::Mode(mode) => format!("the mode `{}` changes nothing", mode.name()),
        Reason::Own => "it is Pinfold's own, and out of reach".into(),
        other => format!("{other} forbids it"),
    }
}

fn words(words: Option<&str>) -> String {
    words.map(|words| format!(": {words}")).unwrap_or_default()
}

/// Which edit it is about, where there are several.
fn edit(number: Option<usize>) -> String {
    number.map(|number| format!("edit {number}: ")).unwrap_or_default()
}

impl Error {
    /// What to try next, where there is something to try.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotFound { near, .. } | Self::DirectoryNotFound { near, .. }
                if !near.is_empty() =>
            {
                let near: Vec<_> = near.iter().map(|path| format!("`{path}`")).collect();
                Some(format!("did you mean {}?", near.join(" or ")))
            }
            Self::OutOfRange { total: 0, .. } => Some("the file is empty".into()),
            Self::OutOfRange { total, .. } => Some(format!("start at line {total} or before")),
            Self::NotRead { .. } => Some("read it first, then try again".into()),
            Self::Changed { region: None, .. } => {
                Some("read it again, then redo the change".into())
            }
            Self::Changed { region: Some(region), .. } => {
                Some(format!("redo the change on what it says now\n{region}"))
            }
            Self::NoMatch { nearest: Some(nearest), .. } => Some(nearest.clone()),
            Self::NoMatch { nearest: None, .. } => Some("read the file to see what it says".into()),
            Self::ManyMatches { lines, .. } => {
                let lines: Vec<_> = lines.iter().map(u64::to_string).collect();
                let lines = lines.join(", ");
                Some(format!("add lines around it to make it unique; it is on lines {lines}"))
            }
            Self::TooLarge { .. } => Some("write it anew, in parts".into()),
            Self::Unmappable { .. } => {
                Some("leave that character out, or write the whole file as utf-8".into())
            }
            Self::UnknownTool { tools, .. } => Some(format!("the tools are {}", tools.join(", "))),
            Self::Denied { denial: Denial::Nobody { allow: Some(allow), .. }, .. } => {
                // The person may paste it, and the agent has chosen the name.
                let quoted = allow.replace('\'', "'\\''");
                Some(format!(
                    "tell the person, who can allow it: `--allow '{quoted}'`, or `allow` in the permissions"
                ))
            }
            Self::Denied { denial: Denial::Nobody { allow: None, .. }, .. } => {
                Some("tell the person".into())
            }
            Self::Denied { denial: Denial::Policy(_), .. } => {
                Some("work without it, or tell the person".into())
            }
            Self::AuditFailed => Some("tell the person".into()),
            Self::NothingLeft { .. } => Some(
                "tell the person: start Pinfold with a `--root` that the client has open, or with \
                 `--client-roots ignore`"
                    .into(),
            ),
            Self::Denied { .. }
            | Self::NotFound { .. }
            | Self::Dangling { .. }
            | Self::ParentMissing { .. }
            | Self::Outside { .. }
            | Self::IsDirectory { .. }
            | Self::NotADirectory { .. }
            | Self::NotRegular { .. }
            | Self::BadPath { .. }
            | Self::TooManyLinks { .. }
            | Self::Binary { .. }
            | Self::UnsupportedDocument { .. }
            | Self::ImageTooLarge { .. }
            | Self::TooLargeToSearch { .. }
            | Self::PageOutOfRange { .. }
            | Self::DirectoryNotFound { .. }
            | Self::BadGlob { .. }
            | Self::BadRegex { .. }
            | Self::InvalidArgument(_)
            | Self::NoChange { .. }
            | Self::AccessDenied { .. }
            | Self::NoSpace { .. }
            | Self::ReadFailed { .. }
            | Self::WriteFailed { .. }
            | Self::JournalFailed { .. }
            | Self::NothingToUndo { .. }
            | Self::NotAsLeft { .. }
            | Self::Timeout { .. }
            | Self::Locked { .. }
            | Self::Cancelled
            | Self::Internal { .. } => None,
        }
    }

    /// The message and the hint.
    pub fn with_hint(&self) -> String {
        self.hint_after(self.to_string())
    }

    /// The hint, after other words for the message.
    pub fn hint_after(&self, message: String) -> String {
        match self.hint() {
            // What shows a part of the file stands by itself.
            Some(hint) if hint.contains('\n') && !matches!(self, Self::Changed { .. }) => {
                format!("{message}\n{hint}")
            }
            Some(hint) => format!("{message}; {hint}"),
            None => message,
        }
    }

    /// What the fence said of `path` when something was to be read or found there.
    pub(crate) fn looking(path: &RawPath, error: Fence) -> Self {
        Self::of_fence(path, error, |path, cause| Self::ReadFailed { path, cause })
    }

    /// What the fence said of `path` when something was to be changed there.
    pub(crate) fn changing(path: &RawPath, error: Fence) -> Self {
        Self::of_fence(path, error, |path, cause| Self::WriteFailed {
            path,
            cause: cause.to_string(),
        })
    }

    fn of_fence(
        path: &RawPath,
        error: Fence,
        failed: impl FnOnce(RawPath, io::Error) -> Self,
    ) -> Self {
        let path = path.clone();
        match error {
            Fence::Outside => Self::Outside { path, roots: Vec::new() },
            Fence::BadPath(problem) => Self::BadPath { path, problem },
            Fence::NotFound => Self::NotFound { path, near: Vec::new() },
            Fence::Dangling => Self::Dangling { path },
            Fence::TooManyLinks => Self::TooManyLinks { path },
            Fence::IsDirectory => Self::IsDirectory { path },
            Fence::NotADirectory => Self::NotADirectory { path },
            Fence::NotRegular(kind) => Self::NotRegular { path, kind },
            Fence::TooLarge => Self::TooLargeToSearch { path },
            Fence::Changed => Self::Changed { path, region: None },
            Fence::Busy | Fence::Impatient => Self::Locked { path },
            Fence::DirectoryDenied => Self::AccessDenied { path, why: Some(error.to_string()) },
            Fence::MountPoint => Self::WriteFailed { path, cause: error.to_string() },
            Fence::Stranded { .. } => Self::WriteFailed { path, cause: error.to_string() },
            Fence::Owner { .. } => Self::AccessDenied { path, why: Some(error.to_string()) },
            Fence::Denied => Self::AccessDenied { path, why: None },
            Fence::NoSpace => Self::NoSpace { path },
            Fence::Os(cause) => failed(path, cause),
        }
    }
}
