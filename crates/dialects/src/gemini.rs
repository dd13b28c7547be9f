//! The `gemini` dialect: the file tools of gemini-cli, for models that were trained on them.
//!
//! The answers begin with the words of the original. The text after that is ours.

mod glob;
mod grep_search;
mod list_directory;
mod omission;
mod read_file;
mod replace;
mod write_file;

use pinfold::{DiffFormat, Error, IgnoreFiles, MatchKind};

use crate::answer::Blocks;
use crate::hint::{FailedCall, HintNames};
use crate::tool::{DispatchTool, parse, parse_dispatch};
use crate::tool_context::RelativePath;
use crate::{Answer, Dialect, Tool, ToolContext, ToolEntry, code};

/// The tools of gemini-cli.
pub static GEMINI: Dialect = Dialect {
    name: "gemini",
    tools: &[
        dispatch::<read_file::ReadFile>(),
        entry::<write_file::WriteFile>(),
        entry::<replace::Replace>(),
        entry::<list_directory::ListDirectory>(),
        entry::<glob::Glob>(),
        dispatch::<grep_search::GrepSearch>(),
    ],
    error_answer,
    answers_unknown_tools: false,
    requires_reads: true,
};

const fn entry<T: Tool<Reply = String>>() -> ToolEntry {
    ToolEntry::of::<T>(
        || None,
        |arguments| parse::<T>(arguments, |text| Answer::Blocks(Blocks::text(text))),
    )
}

const fn dispatch<T: DispatchTool<Reply = Blocks>>() -> ToolEntry {
    ToolEntry::dispatch::<T>(|| None, |arguments| parse_dispatch::<T>(arguments, Answer::Blocks))
}

static HINT_NAMES: HintNames = HintNames {
    relative_paths: false,
    read_tool: "read_file",
    list_tool: "list_directory",
    find_glob: "pattern",
    filter_glob: "include_pattern",
    ignore_glob: "ignore",
    multiline: None,
    plain_text: "set `fixed_strings`",
    create_parents: None,
};

fn error_answer(error: &Error, call: &FailedCall) -> Answer {
    let problem = call.error_text.clone().or_else(|| match error {
        Error::Outside { path, roots } => Some(format!(
            "Path not in workspace: Attempted path \"{path}\" resolves outside the allowed \
             workspace directories: {}",
            roots.join(", ")
        )),
        _ => None,
    });
    let mut message = match problem {
        Some(problem) => HINT_NAMES.message_after(problem, error, call),
        None => HINT_NAMES.message(error, call),
    };
    if let Error::ManyMatches { match_kind: MatchKind::Exact | MatchKind::LineEndings, .. } = error
    {
        message.push_str(" Or set `allow_multiple` to replace all of them.");
    }
    let error_type = Some(error_type(error));
    Answer::Blocks(Blocks { code: Some(code(error)), error_type, ..Blocks::text(message) })
}

/// The ignore files that apply, by the arguments of a tool.
fn ignore_files(git: Option<bool>, gemini: Option<bool>) -> IgnoreFiles {
    IgnoreFiles { git: git.unwrap_or(true), gemini: gemini.unwrap_or(true), ..IgnoreFiles::ALL }
}

/// The error message for the directory of a search, in the words of gemini-cli.
fn search_problem(
    error: &Error,
    directory: Option<&RelativePath>,
    ctx: &ToolContext<'_>,
) -> Option<String> {
    let path = ctx.searched_directory(directory);
    match error {
        Error::NotFound { .. } | Error::DirectoryNotFound { .. } | Error::Dangling { .. } => {
            Some(format!("Search path does not exist {path}"))
        }
        Error::NotADirectory { .. } => Some(format!("Search path is not a directory: {path}")),
        _ => None,
    }
}

/// The form in which a change is shown: the new lines, or the diff of a dry run.
fn diff_format(ctx: &ToolContext<'_>) -> DiffFormat {
    let dry_run = ctx.call.dry_run.unwrap_or(ctx.session.settings().dry_run);
    if dry_run { DiffFormat::Git } else { DiffFormat::Snippet }
}

/// The text after the first sentence of an answer to a change.
fn updated_code(diff: Option<&str>) -> String {
    let snippet = diff.unwrap_or_default();
    format!(" Here is the updated code:\n{}", snippet.strip_suffix('\n').unwrap_or(snippet))
}

/// The type of an error in gemini-cli. The match names every kind, so a new one cannot be forgotten.
fn error_type(error: &Error) -> &'static str {
    match error {
        Error::NotFound { .. }
        | Error::Dangling { .. }
        | Error::TooManyLinks { .. }
        | Error::RootGone { .. }
        | Error::RootReplaced { .. }
        | Error::ParentMissing { .. }
        | Error::NothingToUndo { .. } => "file_not_found",
        Error::DirectoryNotFound { .. } => "search_path_not_found",
        Error::Outside { .. } | Error::NoCommonRoot { .. } => "path_not_in_workspace",
        Error::Exists { .. } | Error::EmptyOld { .. } => "attempt_to_create_existing_file",
        Error::IsDirectory { .. } => "target_is_directory",
        Error::NotADirectory { .. } => "path_is_not_a_directory",
        Error::BadPath { .. }
        | Error::InvalidArgument(_)
        | Error::NoLines { .. }
        | Error::NoPages { .. }
        | Error::UnknownFileType { .. }
        | Error::BadGlob { .. }
        | Error::BadRegex { .. }
        | Error::OutOfRange { .. }
        | Error::PageOutOfRange { .. } => "invalid_tool_params",
        Error::NotRegular { .. }
        | Error::Binary { .. }
        | Error::UnsupportedDocument { .. }
        | Error::ReadFailed { .. } => "read_content_failure",
        Error::TooLarge { .. }
        | Error::TooManyEntries { .. }
        | Error::TooLargeToRead { .. }
        | Error::ImageTooLarge { .. }
        | Error::TooLargeToSearch { .. } => "file_too_large",
        Error::NoMatch { .. } | Error::NoCell { .. } | Error::BadAnchor { .. } => {
            "edit_no_occurrence_found"
        }
        Error::ManyMatches { .. } => "edit_expected_occurrence_mismatch",
        Error::NoChange { .. } => "edit_no_change",
        Error::NotRead { .. }
        | Error::Changed { .. }
        | Error::NotAsLeft { .. }
        | Error::DirectoryMoved { .. }
        | Error::BreaksNotebook { .. }
        | Error::NotANotebook { .. }
        | Error::ChangedTwice { .. }
        | Error::Unmappable { .. } => "edit_preparation_failure",
        Error::Denied { .. } => "policy_violation",
        Error::AccessDenied { .. } | Error::DirectoryUnreadable { .. } => "permission_denied",
        Error::NoSpace { .. } => "no_space_left",
        Error::WriteFailed { .. }
        | Error::NotEmpty { .. }
        | Error::CrossDevice { .. }
        | Error::JournalFailed { .. }
        | Error::AuditFailed => "file_write_failure",
        Error::Timeout { .. }
        | Error::TooManyStuck { .. }
        | Error::Locked { .. }
        | Error::Cancelled => "execution_failed",
        Error::UnknownTool { .. } => "tool_not_registered",
        Error::Internal { .. } => "unhandled_exception",
    }
}
