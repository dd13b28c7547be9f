//! Error messages and hints for models, with the dialect's names for tools and arguments.
//!
//! The matches in this file name every kind of error without `_`, so that a new kind cannot be forgotten.

use pinfold::{Error, GlobUsage, RegexMistake};

use crate::export::without_dots;

/// The names that a dialect's hints use for tools and arguments.
pub(crate) struct HintNames {
    /// Whether paths are relative to the workspace root, which is not shown.
    pub(crate) relative_paths: bool,
    /// The tool that reads a file.
    pub(crate) read_tool: &'static str,
    /// The tool that lists a directory.
    pub(crate) list_tool: &'static str,
    /// The argument with a glob that finds files.
    pub(crate) find_glob: &'static str,
    /// The argument with globs that filter files.
    pub(crate) filter_glob: &'static str,
    /// The argument with globs for entries to leave out.
    pub(crate) ignore_glob: &'static str,
    /// The argument that lets matches span lines, if there is one.
    pub(crate) multiline: Option<&'static str>,
    /// How to search for plain text.
    pub(crate) plain_text: &'static str,
    /// The argument that creates missing directories, if there is one.
    pub(crate) create_parents: Option<&'static str>,
}

/// The failed call, as far as the wording of its error depends on it.
pub(crate) struct FailedCall {
    /// The tool that was called, if it was found.
    pub(crate) tool: Option<&'static str>,
    /// Whether the tool only reads.
    pub(crate) read_only: bool,
    /// Whether tools have only names that every framework accepts.
    pub(crate) portable: bool,
    /// The tool's own error message, which repeats arguments: see [`Tool::error_text`](crate::Tool::error_text).
    pub(crate) error_text: Option<String>,
    /// The hint of the front end, for example a flag that would help.
    pub(crate) front_end_hint: Option<String>,
}

impl HintNames {
    /// The error message, with its hint.
    pub(crate) fn message(&self, error: &Error, call: &FailedCall) -> String {
        self.message_after(self.error_text(error), error, call)
    }

    /// The given message, followed by the hint.
    pub(crate) fn message_after(
        &self,
        problem: String,
        error: &Error,
        call: &FailedCall,
    ) -> String {
        let Some(mut hint) = self.hint(error, call) else { return problem };
        if let Some(more) = &call.front_end_hint {
            hint = format!("{hint}: {more}");
        }
        if error.has_hint_below(&hint) {
            format!("{problem}\n{hint}")
        } else if problem.ends_with('.') {
            format!("{problem} {}", sentence(&hint))
        } else {
            format!("{problem}; {hint}")
        }
    }

    /// The given message, with the hint below it, for a message that ends with lines of a file.
    pub(crate) fn message_below(&self, problem: &str, error: &Error, call: &FailedCall) -> String {
        match self.hint(error, call) {
            Some(hint) if hint.contains('\n') => format!("{problem}\n{hint}"),
            Some(hint) => format!("{problem}\n{}", sentence(&hint)),
            None => problem.to_owned(),
        }
    }

    /// The error message, with the name of the argument that it is about.
    fn error_text(&self, error: &Error) -> String {
        match error {
            Error::BadGlob { usage, .. } => {
                let argument = match usage {
                    GlobUsage::Find => self.find_glob,
                    GlobUsage::Filter => self.filter_glob,
                    GlobUsage::Ignore => self.ignore_glob,
                };
                format!("`{argument}`: {error}")
            }
            // Only one dialect has these arguments.
            Error::UnknownFileType { .. } => format!("`type`: {error}"),
            Error::NoLines { path, what, .. } => {
                format!("`offset` and `limit` are for text, and `{path}` is {what}")
            }
            Error::NoPages { .. } => "`pages` is for PDF files only".into(),
            other => other.to_string(),
        }
    }

    fn hint(&self, error: &Error, call: &FailedCall) -> Option<String> {
        let listed = |name: &str| {
            if call.portable { without_dots(name) } else { name.to_owned() }
        };
        let list = || listed(self.list_tool);
        match error {
            Error::NotFound { near, .. } if near.is_empty() => {
                Some(format!("list its directory with {} to see what is there", list()))
            }
            Error::DirectoryNotFound { near, .. } if near.is_empty() => {
                Some(format!("list the directory above it with {} to see what is there", list()))
            }
            // Mostly it is the path itself that is a file.
            Error::NotADirectory { .. } if call.tool == Some(self.list_tool) => {
                let read = listed(self.read_tool);
                Some(format!(
                    "read it with {read}, or list the directories above it with {}",
                    list()
                ))
            }
            Error::NotADirectory { .. } => {
                Some(format!("list the directories above it with {} to see which", list()))
            }
            Error::DirectoryMoved { .. } => {
                Some(format!("list the directories with {} to see where it is now", list()))
            }
            Error::NotRead { names_setting, .. } => {
                let read_it = format!("read it with {}", listed(self.read_tool));
                Some(Error::not_read_hint(&read_it, *names_setting))
            }
            Error::NoLines { has_pages, .. } => {
                Some(if *has_pages { "use `pages`" } else { "leave them out" }.into())
            }
            Error::NoPages { .. } => Some("leave it out".into()),
            Error::UnknownFileType { .. } => {
                let glob = self.filter_glob;
                Some(match error.hint() {
                    Some(near) => format!("{near} Or use `{glob}`, such as `*.ext`"),
                    None => format!("use `{glob}` instead, such as `*.ext`"),
                })
            }
            Error::BadRegex { kind: RegexMistake::LineEnd, .. } => Some(match self.multiline {
                Some(argument) => format!("set `{argument}`, or search for one of the lines"),
                None => "search for one of the lines".into(),
            }),
            Error::BadRegex { kind: RegexMistake::LookAround, .. } => {
                Some("leave it out and look at the lines that are found".into())
            }
            Error::BadRegex { kind: RegexMistake::Syntax, pattern, .. }
                if looks_like_text(pattern) =>
            {
                Some(format!("{} to search for it as plain text", self.plain_text))
            }
            Error::BadRegex { kind: RegexMistake::Syntax, .. } => {
                Some(format!("correct it, or {} to search for it as plain text", self.plain_text))
            }
            Error::ParentMissing { .. } => {
                self.create_parents.map(|argument| format!("set `{argument}` to create it"))
            }
            Error::Outside { path, .. }
                if self.relative_paths && path.as_str().starts_with('/') =>
            {
                Some("give a path relative to its root".into())
            }
            Error::IsDirectory { .. } if call.read_only => Some(format!("list it with {}", list())),
            Error::IsDirectory { .. } => Some("give the path of a file in it".into()),
            Error::NotFound { .. }
            | Error::DirectoryNotFound { .. }
            | Error::Dangling { .. }
            | Error::Outside { .. }
            | Error::RootGone { .. }
            | Error::RootReplaced { .. }
            | Error::DirectoryUnreadable { .. }
            | Error::NoCommonRoot { .. }
            | Error::Denied { .. }
            | Error::AuditFailed
            | Error::Exists { .. }
            | Error::NotEmpty { .. }
            | Error::CrossDevice { .. }
            | Error::TooManyEntries { .. }
            | Error::NotRegular { .. }
            | Error::BadPath { .. }
            | Error::TooManyLinks { .. }
            | Error::Binary { .. }
            | Error::UnsupportedDocument { .. }
            | Error::ImageTooLarge { .. }
            | Error::PageOutOfRange { .. }
            | Error::OutOfRange { .. }
            | Error::InvalidArgument(_)
            | Error::ChangedTwice { .. }
            | Error::BadGlob { .. }
            | Error::BadRegex { kind: RegexMistake::Size, .. }
            | Error::Changed { .. }
            | Error::NoMatch { .. }
            | Error::ManyMatches { .. }
            | Error::BadAnchor { .. }
            | Error::EmptyOld { .. }
            | Error::NoChange { .. }
            | Error::TooLarge { .. }
            | Error::BreaksNotebook { .. }
            | Error::NotANotebook { .. }
            | Error::NoCell { .. }
            | Error::TooLargeToRead { .. }
            | Error::TooLargeToSearch { .. }
            | Error::Unmappable { .. }
            | Error::AccessDenied { .. }
            | Error::NoSpace { .. }
            | Error::ReadFailed { .. }
            | Error::WriteFailed { .. }
            | Error::JournalFailed { .. }
            | Error::NothingToUndo { .. }
            | Error::NotAsLeft { .. }
            | Error::Timeout { .. }
            | Error::Locked { .. }
            | Error::TooManyStuck { .. }
            | Error::Cancelled
            | Error::UnknownTool { .. }
            | Error::Internal { .. } => error.hint(),
        }
    }
}

/// A hint as a sentence.
fn sentence(hint: &str) -> String {
    let mut letters = hint.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase()).into_iter();
    let end = if hint.ends_with(['.', '?']) { "" } else { "." };
    first.chain(letters).chain(end.chars()).collect()
}

/// Whether an invalid regex was probably meant as plain text, such as `foo(` or `a[0`.
fn looks_like_text(pattern: &str) -> bool {
    let means_regex = [".*", ".+", "|", "^", "$", "\\", "(?", "[^"];
    !means_regex.iter().any(|part| pattern.contains(part))
        && pattern.chars().any(char::is_alphanumeric)
}
