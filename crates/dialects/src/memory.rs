//! The `memory` dialect: Anthropic's memory tool, one tool with several commands on a separate directory.
//!
//! `/memories` stands for the directory in the setting `memory`. The tool does not use the workspace.

mod commands;
mod list;

use pinfold::{Error, Settings};
use serde_json::json;

use crate::answer::Blocks;
use crate::file_commands::HINT_NAMES;
use crate::hint::FailedCall;
use crate::memory::commands::Memory;
use crate::tool::parse_dispatch;
use crate::{Answer, Dialect, ToolEntry, code};

/// The tool `memory`.
pub static MEMORY: Dialect = Dialect {
    name: "memory",
    tools: &[ToolEntry {
        anthropic: Some(|| json!({ "type": "memory_20250818", "name": "memory" })),
        ..ToolEntry::dispatch::<Memory>(
            || None,
            |arguments| parse_dispatch::<Memory>(arguments, Answer::Blocks),
        )
    }],
    error_answer,
    answers_unknown_tools: false,
    requires_reads: false,
};

/// Refuses dialects if a setting that they need is missing.
pub fn check_settings(dialects: &[&'static Dialect], settings: &Settings) -> Result<(), String> {
    let has_memory = dialects.iter().any(|dialect| dialect.name == MEMORY.name);
    if has_memory && settings.memory.is_none() {
        return Err("the dialect `memory` needs a directory for its files: set `memory`".into());
    }
    Ok(())
}

fn error_answer(error: &Error, call: &FailedCall) -> Answer {
    let message = match (error, &call.error_text) {
        // These messages already say what to do.
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
