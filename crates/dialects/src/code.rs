//! The error codes of `dotted`. `classic` has them in its metadata.

use pinfold::Error;

/// The code of an error. The match names every kind, so a new one cannot be forgotten.
pub fn code(error: &Error) -> &'static str {
    match error {
        Error::NotFound { .. }
        | Error::DirectoryNotFound { .. }
        | Error::Dangling { .. }
        | Error::TooManyLinks { .. }
        | Error::RootGone { .. }
        | Error::RootReplaced { .. }
        | Error::ParentMissing { .. } => "file_not_found",
        Error::Outside { .. } | Error::NoCommonRoot { .. } => "path_outside_workspace",
        Error::Exists { .. } => "file_exists",
        Error::IsDirectory { .. } => "is_directory",
        Error::NotADirectory { .. } => "not_a_directory",
        Error::NotRegular { .. } => "not_a_regular_file",
        Error::BadPath { .. }
        | Error::InvalidArgument(_)
        | Error::ChangedTwice { .. }
        | Error::BreaksNotebook { .. }
        | Error::EmptyOld { .. }
        | Error::NoLines { .. }
        | Error::NoPages { .. }
        | Error::UnknownFileType { .. } => "invalid_argument",
        Error::BadGlob { .. } | Error::BadRegex { .. } => "invalid_pattern",
        Error::Binary { .. } => "binary_file",
        Error::UnsupportedDocument { .. } | Error::NotANotebook { .. } => "unsupported_document",
        Error::OutOfRange { .. } | Error::PageOutOfRange { .. } => "out_of_range",
        Error::NotRead { .. } => "not_read",
        Error::Changed { .. } | Error::NotAsLeft { .. } | Error::DirectoryMoved { .. } => {
            "file_changed"
        }
        Error::NothingToUndo { .. } => "file_not_found",
        Error::NoMatch { .. } | Error::NoCell { .. } => "find_not_found",
        Error::BadAnchor { lines, .. } if lines.is_empty() => "find_not_found",
        Error::ManyMatches { .. } | Error::BadAnchor { .. } => "find_not_unique",
        Error::NoChange { .. } => "no_change",
        Error::TooLarge { .. }
        | Error::TooManyEntries { .. }
        | Error::TooLargeToRead { .. }
        | Error::ImageTooLarge { .. }
        | Error::TooLargeToSearch { .. } => "file_too_large",
        Error::Unmappable { .. } => "encoding_error",
        Error::Denied { .. } => "permission_denied",
        Error::AccessDenied { .. } | Error::DirectoryUnreadable { .. } => "access_denied",
        Error::NoSpace { .. } => "no_space",
        Error::WriteFailed { .. }
        | Error::NotEmpty { .. }
        | Error::CrossDevice { .. }
        | Error::JournalFailed { .. }
        | Error::AuditFailed => "write_failed",
        Error::Timeout { .. } | Error::TooManyStuck { .. } | Error::Locked { .. } => "timeout",
        Error::Cancelled => "cancelled",
        Error::UnknownTool { .. } => "unknown_tool",
        Error::ReadFailed { .. } | Error::Internal { .. } => "internal",
    }
}
