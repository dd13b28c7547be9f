//! The dialects that there are.

use pinfold::Error;

use crate::{Answer, CLASSIC, DOTTED, Entry, SCOPED};

/// A family of tools with its own names, arguments, answers and error codes.
#[derive(Debug)]
pub struct Dialect {
    /// What people call it.
    pub name: &'static str,
    /// Its tools, in the order in which they are listed.
    pub tools: &'static [Entry],
    /// The answer that an error becomes; the flag says that the tool only looks.
    pub(crate) fault: fn(&Error, bool) -> Answer,
}

/// Every dialect, the default first.
pub fn dialects() -> [&'static Dialect; 3] {
    [&CLASSIC, &DOTTED, &SCOPED]
}

/// The dialect with a name.
pub fn dialect(name: &str) -> Option<&'static Dialect> {
    dialects().into_iter().find(|dialect| dialect.name == name)
}
