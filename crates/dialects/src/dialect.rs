//! The list of all dialects.

use pinfold::Error;

use crate::hint::FailedCall;
use crate::phrases::shortened;
use crate::{
    Answer, CLASSIC, DOTTED, EDITOR, EDITOR_20250124, GEMINI, MEMORY, OPENCODE, PATCH, REFERENCE,
    SCOPED, TOOLSET, ToolEntry,
};

/// A family of tools with its own names, arguments, answers and error codes.
#[derive(Debug)]
pub struct Dialect {
    /// Its name.
    pub name: &'static str,
    /// Its tools, in the order in which they are listed.
    pub tools: &'static [ToolEntry],
    /// Turns an error into an answer.
    pub(crate) error_answer: fn(&Error, &FailedCall) -> Answer,
    /// Whether a call of an unknown tool gets a result that says so. Otherwise it gets an error of the protocol.
    pub answers_unknown_tools: bool,
    /// Whether some of its tools require that the session has read a file before they change it, unless the settings
    /// override this.
    pub(crate) requires_reads: bool,
}

/// The dialects of the name `all`, the default first. Their tools have different names.
pub fn core_dialects() -> [&'static Dialect; 3] {
    [&CLASSIC, &DOTTED, &SCOPED]
}

/// Every dialect, the default first. Some of them have tools of the same name.
pub fn every_dialect() -> &'static [&'static Dialect] {
    static ALL: [&Dialect; 11] = [
        &CLASSIC,
        &DOTTED,
        &SCOPED,
        &REFERENCE,
        &EDITOR,
        &EDITOR_20250124,
        &PATCH,
        &GEMINI,
        &MEMORY,
        &TOOLSET,
        &OPENCODE,
    ];
    &ALL
}

/// The dialects with these names, without duplicates; `all` stands for [`core_dialects`]. Fails if a name is
/// unknown, or if two dialects have a tool of the same name.
pub fn named_dialects<'n>(
    names: impl IntoIterator<Item = &'n str>,
) -> Result<Vec<&'static Dialect>, String> {
    let mut chosen: Vec<&'static Dialect> = Vec::new();
    for name in names {
        let named = every_dialect().iter().copied().find(|dialect| name == dialect.name);
        let meant = match named {
            Some(named) => vec![named],
            None if name == "all" => core_dialects().to_vec(),
            None => {
                let names: Vec<_> = every_dialect().iter().map(|dialect| dialect.name).collect();
                let names = names.join(", ");
                let all = core_dialects().map(|dialect| dialect.name).join(", ");
                let name = shortened(name).escape_debug().to_string();
                return Err(format!(
                    "there is no dialect `{name}`; the dialects are {names}, and `all` for {all}"
                ));
            }
        };
        for dialect in meant {
            if !chosen.iter().any(|known| known.name == dialect.name) {
                chosen.push(dialect);
            }
        }
    }
    check_names(&chosen)?;
    Ok(chosen)
}

/// Refuses dialects that have a tool of the same name.
fn check_names(chosen: &[&'static Dialect]) -> Result<(), String> {
    for (number, dialect) in chosen.iter().enumerate() {
        let names = dialect.tools.iter().map(|tool| tool.name);
        for other in &chosen[..number] {
            let mut shared =
                names.clone().filter(|name| other.tools.iter().any(|o| o.name == *name));
            if let Some(tool) = shared.next() {
                let (one, other) = (other.name, dialect.name);
                return Err(format!("the dialects {one} and {other} both have a tool `{tool}`"));
            }
        }
    }
    Ok(())
}
