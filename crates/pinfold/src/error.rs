//! What an operation can answer instead of an outcome.
//!
//! The message says what is so, [`Error::hint`] what to try next. Paths are repeated as they were
//! given, never as what they led to. The kinds are closed: each dialect names a code for every one.

use std::io;

use pinfold_confine::{Error as Fence, Kind, RawPath};

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
    },
    /// The text has a character that the encoding cannot express.
    #[error("{encoding} cannot express `{character}` (line {line})")]
    Unmappable {
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

impl Error {
    /// What to try next, where there is something to try.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotFound { near, .. } if !near.is_empty() => {
                let near: Vec<_> = near.iter().map(|path| format!("`{path}`")).collect();
                Some(format!("did you mean {}?", near.join(" or ")))
            }
            Self::OutOfRange { total: 0, .. } => Some("the file is empty".into()),
            Self::OutOfRange { total, .. } => Some(format!("start at line {total} or before")),
            Self::NotRead { .. } => Some("read it first, then try again".into()),
            Self::Changed { .. } => Some("read it again, then redo the change".into()),
            Self::Unmappable { .. } => Some("write it as utf-8, or without that character".into()),
            Self::UnknownTool { tools, .. } => Some(format!("the tools are {}", tools.join(", "))),
            Self::NotFound { .. }
            | Self::Dangling { .. }
            | Self::ParentMissing { .. }
            | Self::Outside { .. }
            | Self::IsDirectory { .. }
            | Self::NotADirectory { .. }
            | Self::NotRegular { .. }
            | Self::BadPath { .. }
            | Self::TooManyLinks { .. }
            | Self::Binary { .. }
            | Self::InvalidArgument(_)
            | Self::AccessDenied { .. }
            | Self::NoSpace { .. }
            | Self::ReadFailed { .. }
            | Self::WriteFailed { .. }
            | Self::Timeout { .. }
            | Self::Locked { .. }
            | Self::Cancelled
            | Self::Internal { .. } => None,
        }
    }

    /// The message and the hint, on one line.
    pub fn with_hint(&self) -> String {
        match self.hint() {
            Some(hint) => format!("{self}; {hint}"),
            None => self.to_string(),
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
            Fence::Changed => Self::Changed { path },
            Fence::Busy => Self::Locked { path },
            Fence::Stranded { .. } => Self::WriteFailed { path, cause: error.to_string() },
            Fence::Owner { .. } => Self::AccessDenied { path, why: Some(error.to_string()) },
            Fence::Denied => Self::AccessDenied { path, why: None },
            Fence::NoSpace => Self::NoSpace { path },
            Fence::Os(cause) => failed(path, cause),
        }
    }
}
