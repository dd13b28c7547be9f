//! The dialects that there are.

use pinfold::Error;

use crate::hint::Refusal;
use crate::{Answer, CLASSIC, DOTTED, Entry, SCOPED};

/// A family of tools with its own names, arguments, answers and error codes.
#[derive(Debug)]
pub struct Dialect {
    /// What people call it.
    pub name: &'static str,
    /// Its tools, in the order in which they are listed.
    pub tools: &'static [Entry],
    /// The answer that an error becomes.
    pub(crate) fault: fn(&Error, &Refusal) -> Answer,
}

/// Every dialect, the default first.
pub fn dialects() -> [&'static Dialect; 3] {
    [&CLASSIC, &DOTTED, &SCOPED]
}

/// The dialects that some names mean, each of them once; `all` means all of them. Or what there is to
/// choose from, if a name means none.
pub fn named_dialects<'n>(
    names: impl IntoIterator<Item = &'n str>,
) -> Result<Vec<&'static Dialect>, String> {
    let mut chosen: Vec<&'static Dialect> = Vec::new();
    for name in names {
        let mut meant =
            dialects().into_iter().filter(|dialect| name == "all" || name == dialect.name);
        let first = meant.next().ok_or_else(|| {
            let names = dialects().map(|dialect| dialect.name).join(", ");
            format!("the dialects are {names}, and `all` for all of them")
        })?;
        for dialect in std::iter::once(first).chain(meant) {
            if !chosen.iter().any(|known| known.name == dialect.name) {
                chosen.push(dialect);
            }
        }
    }
    Ok(chosen)
}
