//! The `classic` dialect: `Read`, `Write` and their kin, with absolute paths and text for a model.

mod read;
mod write;

use pinfold::Error;
use serde_json::{Map, Value};

use crate::tool::perform;
use crate::{Answer, Dialect, Entry, Tool, ToolResult, code};

/// The dialect that is served by default.
pub static CLASSIC: Dialect =
    Dialect { name: "classic", tools: &[entry::<read::Read>(), entry::<write::Write>()], fault };

const fn entry<T: Tool<Reply = ToolResult>>() -> Entry {
    Entry::of::<T>(|| None, |desk, arguments| perform::<T>(desk, arguments).map(Answer::Classic))
}

fn fault(error: &Error, read_only: bool) -> Answer {
    let message = match words(error, read_only) {
        Some(words) => match error.hint() {
            Some(hint) => format!("{words}; {hint}"),
            None => words,
        },
        None => error.with_hint(),
    };
    let metadata = Map::from_iter([("code".into(), Value::from(code(error)))]);
    Answer::Classic(ToolResult { error: Some(message), metadata, ..ToolResult::default() })
}

/// The words that agents know for some errors; `None` where the engine's own will do.
fn words(error: &Error, read_only: bool) -> Option<String> {
    Some(match error {
        Error::NotFound { path, .. } => format!("File not found: {path}"),
        Error::Dangling { path } => {
            format!("File not found: {path} (it is a symlink to something that does not exist)")
        }
        Error::ParentMissing { parent, .. } => format!("Directory not found: {parent}"),
        Error::IsDirectory { path } if read_only => format!("Cannot read directory: {path}"),
        Error::IsDirectory { path } => format!("Cannot write to a directory: {path}"),
        Error::AccessDenied { path, why: None } => format!("Permission denied: {path}"),
        Error::AccessDenied { path, why: Some(why) } => {
            format!("Permission denied: {path} ({why})")
        }
        Error::Binary { path, mime, size } => {
            format!("Cannot read binary file: {path} ({mime}, {size} bytes)")
        }
        Error::Outside { path, roots } => {
            format!("`{path}` is outside the workspace, which is {}", roots.join(" and "))
        }
        Error::NotADirectory { .. }
        | Error::NotRegular { .. }
        | Error::BadPath { .. }
        | Error::TooManyLinks { .. }
        | Error::OutOfRange { .. }
        | Error::InvalidArgument(_)
        | Error::NotRead { .. }
        | Error::Changed { .. }
        | Error::Unmappable { .. }
        | Error::NoSpace { .. }
        | Error::ReadFailed { .. }
        | Error::WriteFailed { .. }
        | Error::Timeout { .. }
        | Error::Locked { .. }
        | Error::Cancelled
        | Error::UnknownTool { .. }
        | Error::Internal { .. } => return None,
    })
}
