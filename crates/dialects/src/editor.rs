//! The `editor` dialects: Anthropic's text editor tool, one tool with several commands.
//!
//! `editor` has the tool of version 20250728, `editor-20250124` that of 20250124, which can also undo.

mod commands;
mod view;

use pinfold::Error;
use serde_json::json;

use crate::answer::Blocks;
use crate::editor::commands::Editor;
use crate::file_commands::{MAX_CHARACTERS, VOCABULARY};
use crate::hint::Refusal;
use crate::tool::parse_dispatch;
use crate::{Answer, Dialect, Entry, code};

/// The tool `str_replace_based_edit_tool`.
pub static EDITOR: Dialect = Dialect {
    name: "editor",
    tools: &[Entry {
        anthropic: Some(|| {
            json!({
                "type": "text_editor_20250728",
                "name": "str_replace_based_edit_tool",
                "max_characters": MAX_CHARACTERS,
            })
        }),
        ..entry::<false>()
    }],
    fault,
    answers_unknown_tools: false,
};

/// The tool `str_replace_editor`, which can undo.
pub static EDITOR_20250124: Dialect = Dialect {
    name: "editor-20250124",
    tools: &[Entry {
        anthropic: Some(|| json!({ "type": "text_editor_20250124", "name": "str_replace_editor" })),
        ..entry::<true>()
    }],
    fault,
    answers_unknown_tools: false,
};

const fn entry<const UNDO: bool>() -> Entry {
    Entry::dispatch::<Editor<UNDO>>(
        || None,
        |arguments| {
            parse_dispatch::<Editor<UNDO>>(arguments, |text| Answer::Blocks(Blocks::text(text)))
        },
    )
}

fn fault(error: &Error, refusal: &Refusal) -> Answer {
    let message = match (error, &refusal.problem) {
        // These sentences say already what to do.
        (Error::ManyMatches { .. } | Error::OutOfRange { .. }, Some(problem)) => problem.clone(),
        (_, Some(problem)) => VOCABULARY.message_after(problem.clone(), error, refusal),
        (_, None) => VOCABULARY.message(error, refusal),
    };
    Blocks::failure(message, code(error))
}
