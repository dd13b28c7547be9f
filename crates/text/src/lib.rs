//! Text: encodings, line endings, pages of lines, matching and replacing, diffs.
//!
//! Everything here is a pure function of its arguments: it uses no files, and the clock only to end the search for
//! the shortest diff. The engine provides the bytes.

#![forbid(unsafe_code)]

mod binary;
mod changed_lines;
mod diff;
mod document;
mod edit_script;
mod encoding;
mod indent;
mod insert;
mod json;
mod line_ending;
mod locate;
mod long_line;
mod media_type;
mod nearest;
mod page;
pub mod patch;
mod replace;
mod transcode;

pub use binary::{Binary, Content, SNIFF_BYTES, office_type, sniff, sniff_content, text_encoding};
pub use changed_lines::{ChangedLines, LineHasher, LineHashes, changed_lines, line_counts};
pub use diff::{DiffFormat, unified_diff};
pub use encoding::{Charset, Encoding, Unmappable};
pub use insert::{InsertError, Inserted, insert_lines};
pub use json::{
    escape_json, escape_json_bytes, exceeds_json_values, json_elements, json_member, unescape_json,
};
pub use line_ending::{LineCount, LineEnding};
pub use locate::{MAX_REPLACEMENTS, MatchKind, MatchMode};
pub use long_line::cut_to_chars;
pub use media_type::text_type;
pub use nearest::nearest;
pub use page::{
    LARGE_FILE_BYTES, LineOffset, Page, PageEnd, PageError, PageRequest, ResumePoint, Style,
    count_lines, read_page, read_page_from, read_tail,
};
pub use replace::{
    FailedReplacement, ReplaceError, ReplacedInOrder, Replacement, replace_in_order,
};
