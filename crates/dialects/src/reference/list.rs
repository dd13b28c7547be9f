//! `list_directory` and `list_directory_with_sizes`

use std::cmp::{Ordering, Reverse};
use std::fmt::Write as _;

use pinfold::operations::{self, ListEntry, Listed};
use pinfold::{Done, Error, Kind};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::limits;
use crate::phrases::{fit, joined, left_out, unread};
use crate::reference::Text;
use crate::reference::error_text::SystemCall;
use crate::reference::path::ReferencePath;
use crate::{Tool, ToolContext};

/// Lists a directory: `[DIR]` or `[FILE]` and the name, a line each.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListDirectory {
    /// Absolute or relative path.
    path: ReferencePath,
}

/// Lists a directory with sizes, and totals.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ListDirectoryWithSizes {
    /// Absolute or relative path.
    path: ReferencePath,
    /// Order of the entries; `name` if left out.
    sort_by: Option<SortBy>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
enum SortBy {
    Name,
    Size,
}

impl Tool for ListDirectory {
    const NAME: &'static str = "list_directory";
    const TITLE: &'static str = "List Directory";
    const IDEMPOTENT: bool = true;
    type Op = operations::List;
    type Reply = Text;

    fn operation(&self, _: &ToolContext<'_>) -> Result<operations::List, Error> {
        Ok(operations::List::new(self.path.raw()).with_details(false))
    }

    fn reply(&self, done: Done<operations::List>, ctx: &ToolContext<'_>) -> Text {
        let listed = done.outcome;
        let budget = ctx.budget(limits::DEFAULT_MAX_LIBRARY_OUTPUT_BYTES);
        let (mut text, mut shown) = (String::new(), 0);
        for entry in &listed.entries {
            let end = text.len();
            let line_break = if shown > 0 { "\n" } else { "" };
            write!(text, "{line_break}{} {}", tag(entry), entry.place.path.name())
                .expect("a String takes anything");
            // The first line is always included.
            if text.len() > budget && shown > 0 {
                text.truncate(end);
                break;
            }
            shown += 1;
        }
        Text { note: note(&listed, shown), text }
    }

    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        SystemCall::Of("scandir", &self.path).error_text(error, ctx)
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        ctx.short_path(self.path.as_str())
    }
}

impl Tool for ListDirectoryWithSizes {
    const NAME: &'static str = "list_directory_with_sizes";
    const TITLE: &'static str = "List Directory with Sizes";
    const IDEMPOTENT: bool = true;
    type Op = operations::List;
    type Reply = Text;

    fn operation(&self, _: &ToolContext<'_>) -> Result<operations::List, Error> {
        Ok(operations::List::new(self.path.raw()).with_follow(true))
    }

    fn reply(&self, done: Done<operations::List>, ctx: &ToolContext<'_>) -> Text {
        let mut listed = done.outcome;
        if self.sort_by == Some(SortBy::Size) {
            listed.entries.sort_by_key(|entry| Reverse(entry.size));
        } else {
            listed.entries.sort_by_cached_key(|entry| Collated(name(entry)));
        }
        let lines = listed.entries.iter().map(|entry| {
            let size = match entry.kind {
                Kind::Directory => String::new(),
                _ => format!("{:>10}", size(entry.size)),
            };
            format!("{} {:<30} {size}", tag(entry), name(entry))
        });
        let mut lines =
            fit(ctx.budget(limits::DEFAULT_MAX_LIBRARY_OUTPUT_BYTES), lines, |line| line.len() + 1);
        let note = note(&listed, lines.len());
        let files = listed.entries.iter().filter(|entry| entry.kind != Kind::Directory);
        let (number, bytes) =
            files.fold((0, 0_u64), |(number, bytes), file| (number + 1, bytes + file.size));
        let directories = listed.entries.len() - number;
        lines.push(String::new());
        lines.push(format!("Total: {number} files, {directories} directories"));
        lines.push(format!("Combined size: {}", size(bytes)));
        Text { text: lines.join("\n"), note }
    }

    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        SystemCall::Of("scandir", &self.path).error_text(error, ctx)
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        ctx.short_path(self.path.as_str())
    }
}

/// A symlink counts as a file, whatever its target.
fn tag(entry: &ListEntry) -> &'static str {
    if entry.kind == Kind::Directory { "[DIR]" } else { "[FILE]" }
}

fn name(entry: &ListEntry) -> String {
    entry.place.path.name().to_string()
}

/// The note on entries that a list leaves out.
fn note(listed: &Listed, shown: usize) -> Option<String> {
    let how = "search it with search_files";
    let missing = left_out(shown as u64, listed.total, "entries", how);
    joined([missing, unread(&listed.skipped)])
}

/// A size with two decimals, in units of 1,024.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let unit = (bytes.ilog2() / 10).min(UNITS.len() as u32);
    let scale = 1_u64 << (10 * unit);
    format!("{:.2} {}", bytes as f64 / scale as f64, UNITS[unit as usize - 1])
}

/// A name with the order of a dictionary: punctuation, digits, letters. Case matters only between otherwise equal
/// names, lower case first.
#[derive(Eq, PartialEq)]
struct Collated(String);

impl Collated {
    fn rank(character: char) -> (usize, char) {
        const PUNCTUATION: &str = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";
        match PUNCTUATION.find(character) {
            Some(position) => (position, character),
            None => (PUNCTUATION.len(), character.to_lowercase().next().unwrap_or(character)),
        }
    }
}

impl Ord for Collated {
    fn cmp(&self, other: &Self) -> Ordering {
        let ranks = |name: &Self| name.0.chars().map(Self::rank).collect::<Vec<_>>();
        // Lower case letters have the greater codes.
        ranks(self).cmp(&ranks(other)).then_with(|| other.0.cmp(&self.0))
    }
}

impl PartialOrd for Collated {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_two_decimals() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KB"),
            (5000, "4.88 KB"),
            (1_048_575, "1024.00 KB"),
            (1 << 30, "1.00 GB"),
            (3 << 50, "3072.00 TB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }

    #[test]
    fn names_are_in_the_order_of_a_dictionary() {
        let sorted = ["_u", "-d", ".h", "10", "9", "a", "A", "a-b", "a.b", "b", "B", "z"];
        let mut names = sorted.map(|name| Collated(name.into()));
        names.reverse();
        names.sort();
        assert_eq!(names.map(|name| name.0), sorted);
    }
}
