//! Hints: what to try after an error. They name no arguments and flags; dialects and front ends add those.
//!
//! The match names every kind, including those without a hint, so that a new kind needs a decision.

use super::{Denial, Error, RegexMistake};

impl Error {
    /// What to try after the error, if there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotFound { path, near } | Self::DirectoryNotFound { path, near }
                if near.iter().any(|near| near == path.as_str()) =>
            {
                Some(
                    "a name there is shown with escapes, like this: give the characters themselves, or work without it"
                        .into(),
                )
            }
            Self::NotFound { near, .. } | Self::DirectoryNotFound { near, .. }
                if !near.is_empty() =>
            {
                Some(did_you_mean(near))
            }
            Self::OutOfRange { total: 0, .. } => Some("the file is empty".into()),
            Self::OutOfRange { total: 1, .. } => Some("start at line 1".into()),
            Self::OutOfRange { total, .. } => Some(format!("start at line {total} or before")),
            Self::NotRead { names_setting, .. } => {
                Some(Self::not_read_hint("read it", *names_setting))
            }
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
            Self::BadAnchor { nearest: Some(nearest), .. } => Some(nearest.clone()),
            Self::BadAnchor { lines, .. } if lines.is_empty() => {
                Some("read the file to see what it says".into())
            }
            Self::BadAnchor { lines, .. } => {
                let lines: Vec<_> = lines.iter().map(u64::to_string).collect();
                Some(format!("choose a line that is there once; it is on lines {}", lines.join(", ")))
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
            Self::TooLarge { .. } => Some("tell the user, who can raise `max_edit_bytes`".into()),
            Self::Unmappable { .. } => {
                Some("leave that character out, or write the whole file as utf-8".into())
            }
            Self::UnknownTool { tools, .. } => Some(format!("the tools are {}", tools.join(", "))),
            Self::Denied {
                denial:
                    Denial::NoApprover { allow: Some(allow), .. }
                    | Denial::DontAsk { allow: Some(allow), .. },
                ..
            } => {
                Some(format!("tell the user, who can allow it with the rule `{allow}`"))
            }
            Self::Denied { denial: Denial::NoApprover { allow: None, .. }, .. } => {
                Some("tell the user".into())
            }
            Self::Denied {
                denial:
                    Denial::Policy(_) | Denial::DontAsk { allow: None, .. } | Denial::Unanswered(_),
                ..
            } => Some("work without it, or tell the user".into()),
            Self::RootGone { .. } => Some(
                "tell the user, who removed or moved it; it is used again once it is there".into(),
            ),
            Self::RootReplaced { .. } => Some("tell the user".into()),
            Self::DirectoryMoved { .. } => {
                Some("list the directories to see where it is now".into())
            }
            Self::AuditFailed => Some("tell the user".into()),
            Self::UnknownFileType { near, .. } if !near.is_empty() => Some(did_you_mean(near)),
            Self::NoCommonRoot { .. } => Some("tell the user".into()),
            Self::Timeout { .. } => Some(
                "ask for less at a time: a directory or a file instead of everything, or fewer lines"
                    .into(),
            ),
            Self::Dangling { .. } => {
                Some("use another path, or delete the symlink first".into())
            }
            Self::Denied { denial: Denial::User(Some(_)), .. } => Some("do as the user says".into()),
            Self::Denied { denial: Denial::User(None), .. } => {
                Some("do not try it again; work without it, or ask the user what to do".into())
            }
            Self::NotADirectory { .. } => Some("list the directories above it".into()),
            Self::NotRegular { .. } => Some("work without it".into()),
            Self::TooManyLinks { .. } => Some("use a path without symlinks".into()),
            Self::Binary { .. } => Some("work without its content, or tell the user".into()),
            Self::UnsupportedDocument { .. } => {
                Some("ask the user for its text in another format".into())
            }
            Self::ImageTooLarge { .. } => Some(
                "ask the user for a smaller copy, or to set `max_image_side`, which scales images down"
                    .into(),
            ),
            Self::TooLargeToSearch { .. } => Some("read the part of it that you need".into()),
            Self::PageOutOfRange { total, .. } => Some(format!("ask for pages up to {total}")),
            Self::BreaksNotebook { .. } => Some(
                "the text of a cell is JSON in the file: write `\\\"` for `\"` and `\\n` for a line break".into(),
            ),
            Self::NotANotebook { .. } => Some("change it as text".into()),
            Self::NoCell { near, .. } if !near.is_empty() => Some(did_you_mean(near)),
            Self::NoCell { .. } => Some("read the notebook to see its cells".into()),
            Self::AccessDenied { .. } | Self::DirectoryUnreadable { .. } => {
                Some("work without it, or tell the user, who can change its permissions".into())
            }
            Self::NoSpace { .. } => Some("tell the user, who can make room on the disk".into()),
            Self::ReadFailed { .. } | Self::WriteFailed { .. } => {
                Some("try again, and tell the user if it fails again".into())
            }
            Self::JournalFailed { .. } => Some(
                "tell the user, who can mend the journal's directory, or set `journal_failure = \"warn\"`"
                    .into(),
            ),
            Self::TooManyStuck { .. } => Some("tell the user to start the server again".into()),
            Self::Locked { .. } => Some("try again".into()),
            Self::Internal { .. } => Some("tell the user".into()),
            Self::BadRegex { kind: RegexMistake::Size, .. } => {
                Some("search for a part of it".into())
            }
            Self::NotFound { .. }
            | Self::TooLargeToRead { .. }
            | Self::DirectoryNotFound { .. }
            | Self::Denied { .. }
            | Self::ParentMissing { .. }
            | Self::IsDirectory { .. }
            | Self::NoLines { .. }
            | Self::NoPages { .. }
            | Self::UnknownFileType { .. }
            | Self::BadRegex { .. }
            | Self::InvalidArgument(_)
            | Self::ChangedTwice { .. }
            | Self::BadPath { .. }
            | Self::Outside { .. }
            | Self::BadGlob { .. }
            | Self::NoChange { .. }
            | Self::NothingToUndo { .. }
            | Self::NotAsLeft { .. }
            | Self::Cancelled => None,
        }
    }

    /// The hint for [`Error::NotRead`]. `read_it` says how to read the file.
    #[doc(hidden)]
    pub fn not_read_hint(read_it: &str, names_setting: bool) -> String {
        let setting = if names_setting {
            "; if that does not help, every call has a session of its own: tell the user to keep one session open, \
             or to set `read_before_write = \"off\"`"
        } else {
            ""
        };
        format!("{read_it} first, then try again{setting}")
    }

    /// The message, followed by the hint.
    pub fn with_hint(&self) -> String {
        match self.hint() {
            Some(hint) if self.has_hint_below(&hint) => format!("{self}\n{hint}"),
            Some(hint) => format!("{self}; {hint}"),
            None => self.to_string(),
        }
    }

    /// Whether a hint is a paragraph below the message, because it has an excerpt of the file.
    #[doc(hidden)]
    pub fn has_hint_below(&self, hint: &str) -> bool {
        hint.contains('\n') && !matches!(self, Self::Changed { .. })
    }
}

fn did_you_mean(near: &[String]) -> String {
    let near: Vec<_> = near.iter().map(|name| format!("`{name}`")).collect();
    format!("did you mean {}?", near.join(" or "))
}
