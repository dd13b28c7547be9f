//! Hints: what to try after an error, without names of arguments and flags.
//! Dialects and doors add those.
//!
//! Every kind is named here, also those that have no hint, so that a new kind asks for one.

use super::{Denial, Error};

impl Error {
    /// What to try next, where there is something to try.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotFound { near, .. } | Self::DirectoryNotFound { near, .. }
                if !near.is_empty() =>
            {
                Some(did_you_mean(near))
            }
            Self::OutOfRange { total: 0, .. } => Some("the file is empty".into()),
            Self::OutOfRange { total, .. } => Some(format!("start at line {total} or before")),
            Self::NotRead { names_setting: false, .. } => {
                Some("read it first, then try again".into())
            }
            Self::NotRead { names_setting: true, .. } => Some(
                "read it first, then try again; if that does not help, every call has a session of its own: \
                 tell the user to keep one session open, or to set `read_before_write = \"off\"`"
                    .into(),
            ),
            Self::Changed { now, read_again, .. } => {
                let next = if *read_again {
                    "read it again, then redo the change"
                } else {
                    "redo the change on what it says now"
                };
                Some(now.iter().fold(next.into(), |next, now| format!("{next}\n{now}")))
            }
            Self::NoMatch { nearest: Some(nearest), .. } => Some(nearest.clone()),
            Self::NoMatch { nearest: None, .. } => Some("read the file to see what it says".into()),
            Self::ManyMatches { lines, count, .. } => {
                let more = count - lines.len().min(*count);
                let lines: Vec<_> = lines.iter().map(u64::to_string).collect();
                let lines = lines.join(", ");
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                Some(format!("add lines around it to make it unique; it is on lines {lines}{more}"))
            }
            Self::EmptyOld { .. } => {
                Some("give the text to replace; an empty one only creates a file".into())
            }
            Self::Exists { .. } => {
                Some("choose another path, or remove what is there first".into())
            }
            Self::CrossDevice { .. } => Some("write a copy there, then delete the original".into()),
            Self::NotEmpty { .. } => Some("remove what is in it first".into()),
            Self::TooManyEntries { .. } => Some("take its subdirectories one by one".into()),
            Self::TooLarge { .. } => Some("write it anew, in parts".into()),
            Self::Unmappable { .. } => {
                Some("leave that character out, or write the whole file as utf-8".into())
            }
            Self::UnknownTool { tools, .. } => Some(format!("the tools are {}", tools.join(", "))),
            Self::Denied { denial: Denial::NoApprover { allow: Some(allow), .. }, .. } => {
                Some(format!("tell the user, who can allow it with the rule `{allow}`"))
            }
            Self::Denied { denial: Denial::NoApprover { allow: None, .. }, .. } => {
                Some("tell the user".into())
            }
            Self::Denied { denial: Denial::Policy(_), .. } => {
                Some("work without it, or tell the user".into())
            }
            Self::RootGone { .. } => Some(
                "tell the user, who removed or moved it; it is used again once it is there".into(),
            ),
            Self::RootReplaced { .. } => Some(
                "tell the user to start the server again, or to set `landlock = \"off\"`".into(),
            ),
            Self::DirectoryMoved { .. } => {
                Some("list the directories to see where it is now".into())
            }
            Self::AuditFailed => Some("tell the user".into()),
            Self::UnknownFileType { near, .. } if !near.is_empty() => Some(did_you_mean(near)),
            Self::NothingLeft { .. } => Some("tell the user".into()),
            Self::Timeout { .. } => Some("ask for less at a time".into()),
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
            | Self::NoLines { .. }
            | Self::NoPages { .. }
            | Self::UnknownFileType { .. }
            | Self::BadGlob { .. }
            | Self::BadRegex { .. }
            | Self::InvalidArgument(_)
            | Self::NoChange { .. }
            | Self::AccessDenied { .. }
            | Self::DirectoryUnreadable { .. }
            | Self::NoSpace { .. }
            | Self::ReadFailed { .. }
            | Self::WriteFailed { .. }
            | Self::JournalFailed { .. }
            | Self::NothingToUndo { .. }
            | Self::NotAsLeft { .. }
            | Self::TooManyStuck { .. }
            | Self::Locked { .. }
            | Self::Cancelled
            | Self::Internal { .. } => None,
        }
    }

    /// The message and the hint.
    pub fn with_hint(&self) -> String {
        self.hint_after(self.to_string())
    }

    /// The hint, after another wording of the message.
    pub fn hint_after(&self, message: String) -> String {
        match self.hint() {
            // An excerpt of the file is a paragraph of its own.
            Some(hint) if hint.contains('\n') && !matches!(self, Self::Changed { .. }) => {
                format!("{message}\n{hint}")
            }
            Some(hint) => format!("{message}; {hint}"),
            None => message,
        }
    }
}

fn did_you_mean(near: &[String]) -> String {
    let near: Vec<_> = near.iter().map(|name| format!("`{name}`")).collect();
    format!("did you mean {}?", near.join(" or "))
}
