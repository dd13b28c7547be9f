//! The `scoped` dialect: `read_file`, `write_file` and others, with relative paths and objects.

mod info;
mod list;
mod read;
mod search;
mod write;

use pinfold::Error;
use serde_json::json;

use crate::answer::as_text;
use crate::hint::{FailedCall, HintNames};
use crate::tool::{structured, structured_text};
use crate::{Answer, Dialect};

/// Answers are objects in camel case, and error codes are in upper case.
pub static SCOPED: Dialect = Dialect {
    name: "scoped",
    tools: &[
        structured_text::<read::Read>(),
        structured::<write::Write>(),
        structured::<list::List>(),
        structured::<search::Search>(),
        structured::<info::Info>(),
    ],
    error_answer,
    answers_unknown_tools: false,
    requires_reads: false,
};

static HINT_NAMES: HintNames = HintNames {
    relative_paths: true,
    read_tool: "read_file",
    list_tool: "list_directory",
    find_glob: "glob",
    filter_glob: "glob",
    ignore_glob: "ignore",
    multiline: None,
    plain_text: "leave out `regex`",
    create_parents: Some("createDirs"),
};

fn error_answer(error: &Error, call: &FailedCall) -> Answer {
    let message = HINT_NAMES.message(error, call);
    let error = json!({ "error": code(error), "message": message });
    Answer::Structured { json: as_text(&error), failed: true }
}

fn code(error: &Error) -> &'static str {
    match error {
        Error::Outside { .. } | Error::NoCommonRoot { .. } => "SCOPE_VIOLATION",
        Error::Denied { .. } => "PERMISSION_DENIED",
        Error::BadPath { .. }
        | Error::InvalidArgument(_)
        | Error::ChangedTwice { .. }
        | Error::EmptyOld { .. }
        | Error::BadGlob { .. }
        | Error::NoLines { .. }
        | Error::NoPages { .. }
        | Error::UnknownFileType { .. }
        | Error::BadRegex { .. }
        | Error::Unmappable { .. }
        | Error::NoChange { .. }
        | Error::BreaksNotebook { .. }
        | Error::NoCell { .. }
        | Error::UnknownTool { .. } => "INVALID_ARGUMENT",
        Error::AuditFailed
        | Error::NotFound { .. }
        | Error::DirectoryNotFound { .. }
        | Error::Dangling { .. }
        | Error::TooManyLinks { .. }
        | Error::ParentMissing { .. }
        | Error::Exists { .. }
        | Error::NotEmpty { .. }
        | Error::CrossDevice { .. }
        | Error::TooManyEntries { .. }
        | Error::IsDirectory { .. }
        | Error::NotADirectory { .. }
        | Error::NotRegular { .. }
        | Error::Binary { .. }
        | Error::OutOfRange { .. }
        | Error::PageOutOfRange { .. }
        | Error::UnsupportedDocument { .. }
        | Error::NotANotebook { .. }
        | Error::ImageTooLarge { .. }
        | Error::TooLargeToRead { .. }
        | Error::TooLargeToSearch { .. }
        | Error::NotRead { .. }
        | Error::Changed { .. }
        | Error::NoMatch { .. }
        | Error::ManyMatches { .. }
        | Error::BadAnchor { .. }
        | Error::TooLarge { .. }
        | Error::JournalFailed { .. }
        | Error::NothingToUndo { .. }
        | Error::NotAsLeft { .. }
        | Error::AccessDenied { .. }
        | Error::RootGone { .. }
        | Error::RootReplaced { .. }
        | Error::DirectoryMoved { .. }
        | Error::DirectoryUnreadable { .. }
        | Error::NoSpace { .. }
        | Error::ReadFailed { .. }
        | Error::WriteFailed { .. }
        | Error::Timeout { .. }
        | Error::TooManyStuck { .. }
        | Error::Locked { .. }
        | Error::Cancelled
        | Error::Internal { .. } => "FILESYSTEM_ERROR",
    }
}
