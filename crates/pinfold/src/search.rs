//! Searches the content of files with ripgrep's engine; files are opened through the fence.

mod bounded;
mod content_index;
mod coverage;
mod file_set;
mod memo;
mod name_table;
mod ordered;
mod page;
mod scan;
mod search_pattern;
mod status;

pub(crate) use content_index::ContentIndex;
pub use content_index::IndexSummary;
pub(crate) use file_set::{FileSet, FileSetCache, Request, Selection, SetFile};
pub(crate) use memo::ResultMemo;
pub(crate) use name_table::NameQuery;
pub(crate) use ordered::{Page, search_in_order};
pub use page::PageLine;
pub(crate) use page::{Hit, MatchWindow, page};
pub use scan::{BinaryNote, Line, Role};
pub(crate) use scan::{Hits, KeepLines, Named, Scan, ScanMode, Scanner};
pub(crate) use search_pattern::{Compiled, PatternCache, SearchPattern};
pub(crate) use status::status;
