//! The `scoped` dialect: `read_file`, `write_file` and their kin, with relative paths and objects.

mod info;
mod list;
mod read;
mod search;
mod write;

use pinfold::Error;
use serde_json::json;

use crate::answer::as_text;
use crate::tool::structured;
use crate::{Answer, Dialect};

/// Objects in camel case, and error codes in upper case.
pub static SCOPED: Dialect = Dialect {
    name: "scoped",
    tools: &[
        structured::<read::Read>(),
        structured::<write::Write>(),
        structured::<list::List>(),
        structured::<search::Search>(),
        structured::<info::Info>(),
    ],
    fault,
};

fn fault(error: &Error, _: bool) -> Answer {
    let mut message = error.with_hint();
    if let Error::ParentMissing { .. } = error {
        message.push_str("; set `createDirs` to create it");
    }
    let error = json!({ "error": code(error), "message": message });
    Answer::Structured { json: as_text(&error), failed: true }
}

fn code(error: &Error) -> &'static str {
    match error {
        Error::Outside { .. } | Error::NothingLeft { .. } => "SCOPE_VIOLATION",
        Error::Denied { .. } => "PERMISSION_DENIED",
        Error::BadPath { .. }
        | Error::InvalidArgument(_)
        | Error::BadGlob { .. }
        | Error::BadRegex { .. }
        | Error::Unmappable { .. }
        | Error::NoChange { .. }
        | Error::UnknownTool { .. } => "INVALID_ARGUMENT",
        Error::AuditFailed
        | Error::NotFound { .. }
        | Error::DirectoryNotFound { .. }
        | Error::Dangling { .. }
        | Error::TooManyLinks { .. }
        | Error::ParentMissing { .. }
        | Error::IsDirectory { .. }
        | Error::NotADirectory { .. }
        | Error::NotRegular { .. }
        | Error::Binary { .. }
        | Error::OutOfRange { .. }
        | Error::PageOutOfRange { .. }
        | Error::UnsupportedDocument { .. }
        | Error::ImageTooLarge { .. }
        | Error::TooLargeToSearch { .. }
        | Error::NotRead { .. }
        | Error::Changed { .. }
        | Error::NoMatch { .. }
        | Error::ManyMatches { .. }
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
        | Error::Locked { .. }
        | Error::Cancelled
        | Error::Internal { .. } => "FILESYSTEM_ERROR",
    }
}
