//! Searching the content of files: ripgrep's engine, fed through the fence.

mod bounded;
mod page;
mod scan;
mod search_pattern;

pub use page::PageLine;
pub(crate) use page::{Hit, MatchWindow, page};
pub use scan::{BinaryNote, Line, Role};
pub(crate) use scan::{Hits, Keeping, Named, Scan, Scanner, Wanted};
pub(crate) use search_pattern::{Compiled, PatternCache, SearchPattern};
