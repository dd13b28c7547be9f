//! The `editor` dialects: Anthropic's text editor tool, one tool with several commands.
//!
//! `editor` has the tool of version 20250728, `editor-20250124` that of 20250124, which can also undo.

mod commands;
mod view;

use serde_json::json;

use crate::answer::Blocks;
use crate::editor::commands::Editor;
use crate::file_commands::{MAX_CHARACTERS, error_answer};
use crate::tool::parse_dispatch;
use crate::{Answer, Dialect, ToolEntry};

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
