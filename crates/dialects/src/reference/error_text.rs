//! Errors in the words of the reference server: the POSIX error name and its phrase, the path as it was given, then a
//! hint.

use std::path::{Path, PathBuf};

use pinfold::operations::Info;
use pinfold::{Error, RawPath, escaped};

use crate::answer::Blocks;
use crate::hint::{FailedCall, HintNames};
use crate::reference::path::ReferencePath;
use crate::{Answer, ToolContext, code};

static HINT_NAMES: HintNames = HintNames {
    relative_paths: false,
    read_tool: "read_text_file",
    list_tool: "list_directory",
    find_glob: "pattern",
    filter_glob: "pattern",
    ignore_glob: "excludePatterns",
    multiline: None,
    plain_text: "leave it out",
    create_parents: None,
};

/// The answer to a call that failed.
pub(super) fn error_answer(error: &Error, call: &FailedCall) -> Answer {
    Blocks::failure(message(error, call), code(error))
}

/// The error message, with its hint.
pub(super) fn message(error: &Error, call: &FailedCall) -> String {
    let problem = call.error_text.clone().or_else(|| without_arguments(error, call));
    match (error, problem) {
        // These messages already say what to do.
        (Error::ManyMatches { .. } | Error::EmptyOld { .. }, Some(problem)) => problem,
        // The error is about the entry at the path, not about a directory above it.
        (Error::NotADirectory { .. }, Some(problem)) if problem.starts_with("EEXIST") => {
            format!("{problem}; choose another path")
        }
        // The problem ends with the text that was not found.
        (Error::NoMatch { .. }, Some(problem)) => HINT_NAMES.message_below(&problem, error, call),
        (Error::ParentMissing { path, .. }, Some(problem)) => {
            let parent = Path::new(path.as_str()).parent().unwrap_or(Path::new(".")).display();
            format!("{problem}; create the directory `{parent}` with create_directory first")
        }
        (_, Some(problem)) => HINT_NAMES.message_after(problem, error, call),
        (_, None) => HINT_NAMES.message(error, call),
    }
}

/// The error message for a call that did not reach its tool.
fn without_arguments(error: &Error, call: &FailedCall) -> Option<String> {
    match (error, call.tool) {
        (Error::UnknownTool { name, .. }, _) => {
            Some(format!("MCP error -32602: Tool {name} not found"))
        }
        (Error::InvalidArgument(problems), Some(tool)) => Some(format!(
            "MCP error -32602: Input validation error: Invalid arguments for tool {tool}: {problems}"
        )),
        (Error::InvalidArgument(problems), None) => {
            Some(format!("MCP error -32602: Input validation error: {problems}"))
        }
        _ => posix(error, |path| format!("open '{path}'")),
    }
}

/// The system call of an operation, which errors name.
#[derive(Clone, Copy)]
pub(super) enum SystemCall<'p> {
    /// A call with one path.
    Of(&'static str, &'p ReferencePath),
    /// `rename`, with source and destination.
    Rename(&'p ReferencePath, &'p ReferencePath),
}

impl SystemCall<'_> {
    /// The message for an error of this call.
    pub(super) fn error_text(self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        match error {
            // The tool itself has made this message.
            Error::InvalidArgument(problem) => Some(problem.clone()),
            Error::Outside { path, .. } => Some(self.outside(path, ctx)),
            Error::Dangling { path } => {
                let path = self.given(path);
                let above = path.absolute(ctx);
                let above = above.parent().unwrap_or(Path::new("/")).to_string_lossy();
                let (above, path) = (RawPath::from(above), path.shown());
                Some(format!(
                    "Parent directory does not exist: {above}; '{path}' is a symlink to something that does not exist"
                ))
            }
            Error::BadPath { path, problem } if path.as_str().contains('\0') => {
                let roots = roots(ctx).join(", ");
                let path = self.given(path).shown();
                Some(format!(
                    "Access denied - path outside allowed directories: {path} not in {roots}; it {problem}"
                ))
            }
            Error::BadPath { path, problem } if has_long_name(path.as_str()) => {
                let path = self.given(path).shown();
                Some(format!("ENAMETOOLONG: name too long, realpath '{path}'; it {problem}"))
            }
            Error::BadPath { path, problem } if matches!(self, Self::Rename(..)) => {
                Some(self.bad_rename(path, problem, ctx))
            }
            Error::Exists { path } if matches!(self, Self::Rename(..)) => {
                Some(format!("Destination already exists: {}", self.given(path).shown()))
            }
            // The original finds this error when it resolves the path, before the call itself.
            Error::NotADirectory { path } if !matches!(self, Self::Of("scandir", _)) => {
                Some(format!("ENOTDIR: not a directory, realpath '{}'", self.given(path).shown()))
            }
            other => posix(other, |_| self.shown()),
        }
    }

    /// The destination is the source itself, or the source cannot be moved there.
    fn bad_rename(self, path: &RawPath, problem: &str, ctx: &ToolContext<'_>) -> String {
        let is_there = || ctx.session.perform(&Info::new(path.clone())).is_ok();
        match self {
            Self::Rename(_, to) if to.raw() == *path && is_there() => {
                format!("Destination already exists: {}; it {problem}", to.shown())
            }
            _ => format!("EINVAL: invalid argument, {}; the path {problem}", self.shown()),
        }
    }

    /// The call with its paths as they were given.
    fn shown(self) -> String {
        match self {
            Self::Of(call, path) => format!("{call} '{}'", path.shown()),
            Self::Rename(from, to) => format!("rename '{}' -> '{}'", from.shown(), to.shown()),
        }
    }

    /// The given path that an error is about.
    fn given(&self, path: &RawPath) -> &ReferencePath {
        match self {
            Self::Of(_, given) => given,
            Self::Rename(_, to) if to.raw() == *path => to,
            Self::Rename(from, _) => from,
        }
    }

    /// The message for a path that leads outside, by itself or by a symlink. It does not reveal the target of the
    /// symlink.
    fn outside(self, path: &RawPath, ctx: &ToolContext<'_>) -> String {
        let given = self.given(path);
        let absolute = given.absolute(ctx);
        let leads_in = allowed(ctx).iter().any(|root| absolute.starts_with(root));
        let what = if leads_in { "symlink target" } else { "path" };
        let (given, allowed) = (given.shown(), roots(ctx).join(", "));
        format!("Access denied - {what} outside allowed directories: {given} not in {allowed}")
    }
}

/// The paths of the roots as they were given, each followed by its real path if that differs.
fn allowed(ctx: &ToolContext<'_>) -> Vec<PathBuf> {
    let given = ctx.session.roots().map(|root| root.components().collect());
    let both = given.zip(ctx.session.real_roots()).flat_map(<[PathBuf; 2]>::from);
    let mut paths: Vec<PathBuf> = both.collect();
    paths.dedup();
    paths
}

/// The same paths, in the form of answers.
pub(super) fn roots(ctx: &ToolContext<'_>) -> Vec<String> {
    let shown = |root: &PathBuf| escaped(root.as_os_str().as_encoded_bytes()).to_string();
    allowed(ctx).iter().map(shown).collect()
}

/// Whether a path or a name in it is longer than the system allows.
fn has_long_name(path: &str) -> bool {
    const MAX_PATH: usize = 4_096;
    const MAX_NAME: usize = 255;
    path.len() > MAX_PATH || path.split('/').any(|name| name.len() > MAX_NAME)
}

/// The POSIX error name and phrase for an error, with the system call, if there is one.
fn posix(error: &Error, call: impl Fn(&RawPath) -> String) -> Option<String> {
    let (phrase, path) = match error {
        Error::NotFound { path, .. }
        | Error::DirectoryNotFound { path, .. }
        | Error::ParentMissing { path, .. } => ("ENOENT: no such file or directory", path),
        Error::Exists { path } => ("EEXIST: file already exists", path),
        Error::NotEmpty { path } => ("ENOTEMPTY: directory not empty", path),
        Error::CrossDevice { path } => ("EXDEV: cross-device link not permitted", path),
        Error::NotADirectory { path } => ("ENOTDIR: not a directory", path),
        Error::TooManyLinks { path } => ("ELOOP: too many symbolic links encountered", path),
        Error::AccessDenied { path, why: Some(why) } => {
            return Some(format!("EACCES: permission denied, {} ({why})", call(path)));
        }
        Error::AccessDenied { path, why: None } | Error::DirectoryUnreadable { path } => {
            ("EACCES: permission denied", path)
        }
        Error::NoSpace { path } => ("ENOSPC: no space left on device", path),
        Error::IsDirectory { path } => {
            let call = call(path);
            // The original names `read` here for every call.
            let read = call.strip_prefix("open ").map(|path| format!("read {path}"));
            return Some(format!(
                "EISDIR: illegal operation on a directory, {}",
                read.unwrap_or(call)
            ));
        }
        Error::Outside { path, roots } => {
            let roots = roots.join(", ");
            return Some(format!(
                "Access denied - path outside allowed directories: {path} not in {roots}"
            ));
        }
        Error::Dangling { .. }
        | Error::NoCommonRoot { .. }
        | Error::RootGone { .. }
        | Error::RootReplaced { .. }
        | Error::DirectoryMoved { .. }
        | Error::Denied { .. }
        | Error::AuditFailed
        | Error::TooManyEntries { .. }
        | Error::NotRegular { .. }
        | Error::BadPath { .. }
        | Error::BadAnchor { .. }
        | Error::ChangedTwice { .. }
        | Error::NotANotebook { .. }
        | Error::NoCell { .. }
        | Error::Binary { .. }
        | Error::UnsupportedDocument { .. }
        | Error::ImageTooLarge { .. }
        | Error::PageOutOfRange { .. }
        | Error::OutOfRange { .. }
        | Error::InvalidArgument(_)
        | Error::NoLines { .. }
        | Error::NoPages { .. }
        | Error::UnknownFileType { .. }
        | Error::BadGlob { .. }
        | Error::BadRegex { .. }
        | Error::NotRead { .. }
        | Error::Changed { .. }
        | Error::NoMatch { .. }
        | Error::ManyMatches { .. }
        | Error::EmptyOld { .. }
        | Error::NoChange { .. }
        | Error::BreaksNotebook { .. }
        | Error::TooLarge { .. }
        | Error::TooLargeToRead { .. }
        | Error::TooLargeToSearch { .. }
        | Error::Unmappable { .. }
        | Error::ReadFailed { .. }
        | Error::WriteFailed { .. }
        | Error::JournalFailed { .. }
        | Error::NothingToUndo { .. }
        | Error::NotAsLeft { .. }
        | Error::Timeout { .. }
        | Error::TooManyStuck { .. }
        | Error::Locked { .. }
        | Error::Cancelled
        | Error::UnknownTool { .. }
        | Error::Internal { .. } => return None,
    };
    Some(format!("{phrase}, {}", call(path)))
}
