//! Searches the contents of files with ripgrep's engine. Files are opened through the fence.

mod ascii_regex;
mod bounded;
mod content_cache;
mod content_index;
mod coverage;
mod file_set;
mod file_type;
mod index_build;
mod memo;
mod name_table;
mod ordered;
mod page;
mod scan;
mod search_pattern;
mod set_changes;
mod set_link;
mod set_walk;
mod status;
mod stepped;
mod walk_search;

pub(crate) use content_index::ContentIndex;
pub use content_index::IndexSummary;
pub(crate) use file_set::{Collected, FileSet, FileSetCache, Request, Selection, SetFile};
pub(crate) use file_type::file_type_matcher;
pub(crate) use memo::ResultCache;
pub(crate) use name_table::NameQuery;
pub(crate) use ordered::{OrderedSearch, StopWhen};
pub use page::PageLine;
pub(crate) use page::{MatchWindow, MatchedPlace, page};
pub use scan::{BinaryNote, Line, Role};
pub(crate) use scan::{FileMatches, FoundBy, KeepLines, Scan, ScanMode, Scanner};
pub(crate) use search_pattern::{CompiledPattern, PatternCache, SearchPattern};
pub(crate) use status::status;
pub(crate) use walk_search::{FirstPage, WalkSearch};
