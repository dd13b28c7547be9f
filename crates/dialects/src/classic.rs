//! The `classic` dialect: `Read`, `Write` and others, with absolute paths and text for a model.

mod delete;
pub(crate) mod edit;
pub(crate) mod glob;
pub(crate) mod grep;
mod ls;
mod r#move;
mod notebook_edit;
pub(crate) mod read;
pub(crate) mod write;

use pinfold::{Error, MatchKind, Receipt};
use serde_json::{Map, Value};

use crate::change_summary::ChangeSummary;
use crate::hint::{FailedCall, HintNames};
use crate::limits;
use crate::names::{self, AnswerNames};
use crate::tool::parse;
use crate::{Answer, Dialect, Tool, ToolEntry, ToolResult, code};

/// The dialect that is served by default.
pub static CLASSIC: Dialect = Dialect {
    name: "classic",
    tools: &[
        entry::<read::Read>(),
        entry::<write::Write>(),
        entry::<edit::Edit>(),
        entry::<edit::MultiEdit>(),
        entry::<notebook_edit::NotebookEdit>(),
        entry::<delete::Delete>(),
        entry::<r#move::Move>(),
        entry::<ls::List>(),
        entry::<glob::Glob>(),
        entry::<grep::Grep>(),
    ],
    error_answer,
    answers_unknown_tools: false,
    requires_reads: true,
};

const fn entry<T: Tool<Reply = ToolResult>>() -> ToolEntry {
    ToolEntry::of::<T>(|| None, |arguments| parse::<T>(arguments, Answer::Classic))
}

/// The answer to a change: its summary, and metadata for programs.
fn changed(summary: ChangeSummary, path: String, receipt: &Receipt, facts: Value) -> ToolResult {
    let mut metadata = match facts {
        Value::Object(facts) => facts,
        _ => Map::new(),
    };
    metadata.insert("dry_run".into(), receipt.dry_run.into());
    metadata.extend(receipt.id.iter().map(|id| ("id".into(), id.as_str().into())));
    ToolResult {
        success: true,
        content: summary.long(),
        short_result: Some(summary.short),
        file_path: Some(path),
        metadata,
        ..ToolResult::default()
    }
}

static HINT_NAMES: HintNames = HintNames {
    relative_paths: false,
    read_tool: "Read",
    list_tool: "LS",
    find_glob: "pattern",
    filter_glob: "glob",
    ignore_glob: "ignore",
    multiline: Some("multiline"),
    plain_text: "set `literal`",
    create_parents: None,
};

fn error_answer(error: &Error, call: &FailedCall) -> Answer {
    let message = match error {
        Error::BreaksNotebook { .. } => format!("{error}; change its cells with NotebookEdit"),
        Error::NotANotebook { .. } => format!("{error}; change it as text, with Edit"),
        _ => message(error, call, &HINT_NAMES, &names::CLASSIC_NAMES),
    };
    let metadata = Map::from_iter([("code".into(), Value::from(code(error)))]);
    Answer::Classic(ToolResult { error: Some(message), metadata, ..ToolResult::default() })
}

/// The error message with its hint. Dialects with the same tools under other names share it.
pub(crate) fn message(
    error: &Error,
    call: &FailedCall,
    hint_names: &HintNames,
    names: &AnswerNames,
) -> String {
    match (error, classic_message(error, call.read_only, names)) {
        // The message includes the hint.
        (Error::ManyMatches { .. }, Some(message)) => message,
        (Error::NoLines { path, what, has_pages }, _) => {
            let AnswerNames { lines_are, omit_lines_hint, .. } = names;
            let hint = if *has_pages && names.pages { "use `pages`" } else { omit_lines_hint };
            format!("{lines_are} for text, and `{path}` is {what}; {hint}")
        }
        (_, Some(message)) => hint_names.message_after(message, error, call),
        (_, None) => hint_names.message(error, call),
    }
}

/// A prefix with the number of the edit, if there are several.
fn edit(number: Option<usize>) -> String {
    number.map(|number| format!("edit {number}: ")).unwrap_or_default()
}

/// The messages that agents expect for some errors. Returns `None` for the engine's own message.
fn classic_message(error: &Error, read_only: bool, names: &AnswerNames) -> Option<String> {
    let AnswerNames { old_text, new_text, replace_all, .. } = names;
    Some(match error {
        Error::NotFound { path, .. } => format!("File not found: {path}"),
        Error::DirectoryNotFound { path, .. } => format!("Directory not found: {path}"),
        Error::Exists { path } => format!("File already exists: {path}"),
        Error::BadRegex { problem, .. } => format!("Invalid regex pattern: {problem}"),
        Error::Dangling { path } => {
            format!("File not found: {path} (it is a symlink to something that does not exist)")
        }
        Error::ParentMissing { parent, .. } => format!("Directory not found: {parent}"),
        Error::IsDirectory { path } if read_only => format!("Cannot read directory: {path}"),
        Error::DirectoryUnreadable { path } => {
            format!("Cannot read directory: {path} (permission denied)")
        }
        Error::IsDirectory { path } => format!("Cannot change a directory: {path}"),
        Error::AccessDenied { path, why: None } => format!("Permission denied: {path}"),
        Error::AccessDenied { path, why: Some(why) } => {
            format!("Permission denied: {path} ({why})")
        }
        Error::Denied { path, denial, .. } => format!("Permission denied: {path} ({denial})"),
        Error::Binary { path, mime, size } => {
            format!("Cannot read binary file: {path} ({mime}, {size} bytes)")
        }
        Error::NoMatch { path, number, .. } => {
            format!("{}{old_text} not found in {path}", edit(*number))
        }
        Error::ManyMatches { number, count, or_more, lines, match_kind, .. } => {
            let more = if *or_more { " or more" } else { "" };
            let found = format!("{}{old_text} found {count}{more} times", edit(*number));
            let out = match match_kind {
                _ if *or_more || *count > limits::MAX_REPLACEMENTS => {
                    format!(
                        "that is too many for {replace_all}; add lines around it to make it unique"
                    )
                }
                MatchKind::Exact | MatchKind::LineEndings => format!(
                    "add lines around it to make it unique, or set {replace_all} to replace all of them"
                ),
                MatchKind::TrailingWhitespace | MatchKind::Indentation => {
                    "none is word for word the same: copy the one that you mean, or add lines around it"
                        .into()
                }
            };
            let more = match count - lines.len().min(*count) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("{found} (lines: {lines:?}{more}); {out}")
        }
        Error::EmptyOld { path, number } => {
            format!("{}{old_text} is empty, and {path} is not", edit(*number))
        }
        Error::NoChange { number } => {
            format!("{}{old_text} and {new_text} must be different", edit(*number))
        }
        Error::Outside { path, roots } => {
            format!("`{path}` is outside the workspace, which is {}", roots.join(" and "))
        }
        Error::NoCommonRoot { .. }
        | Error::RootGone { .. }
        | Error::RootReplaced { .. }
        | Error::DirectoryMoved { .. }
        | Error::AuditFailed
        | Error::NotADirectory { .. }
        | Error::NotEmpty { .. }
        | Error::CrossDevice { .. }
        | Error::TooManyEntries { .. }
        | Error::NotRegular { .. }
        | Error::BadPath { .. }
        | Error::BadGlob { .. }
        | Error::NoLines { .. }
        | Error::NoPages { .. }
        | Error::UnknownFileType { .. }
        | Error::TooManyLinks { .. }
        | Error::OutOfRange { .. }
        | Error::PageOutOfRange { .. }
        | Error::UnsupportedDocument { .. }
        | Error::ImageTooLarge { .. }
        | Error::TooLargeToRead { .. }
        | Error::TooLargeToSearch { .. }
        | Error::InvalidArgument(_)
        | Error::ChangedTwice { .. }
        | Error::BadAnchor { .. }
        | Error::NotRead { .. }
        | Error::Changed { .. }
        | Error::TooLarge { .. }
        | Error::BreaksNotebook { .. }
        | Error::NotANotebook { .. }
        | Error::NoCell { .. }
        | Error::JournalFailed { .. }
        | Error::NothingToUndo { .. }
        | Error::NotAsLeft { .. }
        | Error::Unmappable { .. }
        | Error::NoSpace { .. }
        | Error::ReadFailed { .. }
        | Error::WriteFailed { .. }
        | Error::Timeout { .. }
        | Error::TooManyStuck { .. }
        | Error::Locked { .. }
        | Error::Cancelled
        | Error::UnknownTool { .. }
        | Error::Internal { .. } => return None,
    })
}
