//! The `dotted` dialect: `file.read`, `file.write` and their kin, with relative paths and objects.

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
use crate::hint::{Refusal, Vocabulary};
use crate::tool::structured;
use crate::{Answer, Dialect, code};

/// Objects in snake case, and error codes in lower case.
pub static DOTTED: Dialect = Dialect {
    name: "dotted",
    tools: &[
        structured::<read::Read>(),
        structured::<write::Write>(),
        structured::<patch::Patch>(),
        structured::<delete::Delete>(),
        structured::<r#move::Move>(),
        structured::<list::List>(),
        structured::<search::Search>(),
    ],
    fault,
    answers_unknown_tools: false,
};

static VOCABULARY: Vocabulary = Vocabulary {
    read_tool: "file.read",
    list_tool: "file.list",
    find_glob: "pattern",
    filter_glob: "glob",
    ignore_glob: "ignore",
    multiline: None,
    plain_text: "put `\\` before each special character",
    create_parents: None,
};

fn fault(error: &Error, refusal: &Refusal) -> Answer {
    let code = match error {
        Error::NoSpace { .. } => "write_failed",
        other => code(other),
    };
    let message = match error {
        Error::EmptyOld { path, number } => {
            let edit = number.map(|number| format!("patch {number}: ")).unwrap_or_default();
            let words = format!("{edit}`find` is empty, and `{path}` is not");
            VOCABULARY.message_after(words, error, refusal)
        }
        _ => VOCABULARY.message(error, refusal),
    };
    let error = json!({ "error": code, "message": message });
    Answer::Structured { json: as_text(&error), failed: true }
}
