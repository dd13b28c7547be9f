//! The `editor` dialects: Anthropic's text editor tool, one tool with several commands.
//!
//! `editor` has the tool of version 20250728, `editor-20250124` that of 20250124, which can also undo.

mod commands;
mod view;

use pinfold::Error;
use serde_json::json;

use crate::answer::Blocks;
use crate::editor::commands::Editor;
use crate::file_commands::{HINT_NAMES, MAX_CHARACTERS};
use crate::hint::FailedCall;
use crate::tool::parse_dispatch;
use crate::{Answer, Dialect, ToolEntry, code};

/// The tool `str_replace_based_edit_tool`.
pub static EDITOR: Dialect = Dialect {
    name: "editor",
    tools: &[ToolEntry {
        anthropic: Some(|| {
            json!({
                "type": "text_editor_20250728",
                "name": "str_replace_based_edit_tool",
                "max_characters": MAX_CHARACTERS,
            })
        }),
        ..entry::<false>()
    }],
    error_answer,
    answers_unknown_tools: false,
    requires_reads: true,
};

/// The tool `str_replace_editor`, which can undo.
pub static EDITOR_20250124: Dialect = Dialect {
    name: "editor-20250124",
    tools: &[ToolEntry {
        anthropic: Some(|| json!({ "type": "text_editor_20250124", "name": "str_replace_editor" })),
        ..entry::<true>()
    }],
    error_answer,
    answers_unknown_tools: false,
    requires_reads: true,
};

const fn entry<const UNDO: bool>() -> ToolEntry {
    ToolEntry::dispatch::<Editor<UNDO>>(
        || None,
        |arguments| {
            parse_dispatch::<Editor<UNDO>>(arguments, |text| Answer::Blocks(Blocks::text(text)))
        },
    )
}

fn error_answer(error: &Error, call: &FailedCall) -> Answer {
    let message = match (error, &call.error_text) {
        // These sentences say already what to do.
        (
            Error::ManyMatches { .. }
            | Error::OutOfRange { .. }
            | Error::EmptyOld { .. }
            | Error::Exists { .. },
            Some(problem),
        ) => problem.clone(),
        (_, Some(problem)) => HINT_NAMES.message_after(problem.clone(), error, call),
        (_, None) => HINT_NAMES.message(error, call),
    };
    Blocks::failure(message, code(error))
}
