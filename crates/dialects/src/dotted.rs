//! The `dotted` dialect: `file.read`, `file.write` and others, with relative paths and objects.

mod delete;
mod list;
mod r#move;
mod patch;
mod read;
mod search;
mod write;

use pinfold::Error;
use serde_json::json;

use crate::answer::as_text;
use crate::hint::{FailedCall, HintNames};
use crate::tool::{structured, structured_text};
use crate::{Answer, Dialect, code};

/// Answers are objects in snake case, and error codes are in lower case.
pub static DOTTED: Dialect = Dialect {
    name: "dotted",
    tools: &[
        structured_text::<read::Read>(),
        structured::<write::Write>(),
        structured::<patch::Patch>(),
        structured::<delete::Delete>(),
        structured::<r#move::Move>(),
        structured::<list::List>(),
        structured::<search::Search>(),
    ],
    error_answer,
    answers_unknown_tools: false,
    requires_reads: false,
};

static HINT_NAMES: HintNames = HintNames {
    relative_paths: true,
    read_tool: "file.read",
    list_tool: "file.list",
    find_glob: "pattern",
    filter_glob: "glob",
    ignore_glob: "ignore",
    multiline: None,
    plain_text: "put `\\` before each special character",
    create_parents: None,
};

fn error_answer(error: &Error, call: &FailedCall) -> Answer {
    let code = match error {
        Error::NoSpace { .. } => "write_failed",
        other => code(other),
    };
    let message = match error {
        Error::EmptyOld { path, number } => {
            let edit = number.map(|number| format!("patch {number}: ")).unwrap_or_default();
            let words = format!("{edit}`find` is empty, and `{path}` is not");
            HINT_NAMES.message_after(words, error, call)
        }
        _ => HINT_NAMES.message(error, call),
    };
    let error = json!({ "error": code, "message": message });
    Answer::Structured { json: as_text(&error), failed: true }
}
