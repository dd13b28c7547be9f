//! The matches of a search, each with its context lines, and the message about the search as a whole.

use pinfold::operations::{Matched, Searched};
use pinfold::{BinaryNote, Line, Place, Role};

use crate::ToolContext;
use crate::words::{brief, fit, joined, left_out, skipped, unread};

/// A matching line and its context lines.
pub(crate) struct FoundMatch<'f> {
    pub(crate) place: &'f Place,
    pub(crate) number: u64,
    pub(crate) text: String,
    pub(crate) before: Vec<String>,
    pub(crate) after: Vec<String>,
}

/// The matches of a search that fit into a budget, each with up to `context` lines before and after it.
/// A line near several matches is repeated for each of them.
pub(crate) fn matches(searched: &Searched, context: u64, budget: usize) -> Vec<FoundMatch<'_>> {
    /// JSON overhead of a match in bytes: field names, quotes, line number.
    const OVERHEAD: usize = 60;
    fit(budget, all_matches(searched, context), |found| {
        let lines = found.before.iter().chain(&found.after).chain([&found.text]);
        let lines: usize = lines.map(|line| line.len() + 4).sum();
        found.place.path.as_bytes().len() + lines + OVERHEAD
    })
}

/// The requested number of context lines.
pub(crate) fn context(lines: Option<u64>) -> usize {
    usize::try_from(lines.unwrap_or(0)).unwrap_or(0)
}

/// A search on one line, for the user.
pub(crate) fn compact(pattern: &str, path: Option<&str>, ctx: &ToolContext<'_>) -> String {
    let pattern = format!("\"{}\"", brief(pattern).escape_debug());
    match path {
        None => pattern,
        Some(path) => format!("{pattern} in {}", ctx.brief(path)),
    }
}

/// The message about a search: matches left out, files skipped; `more` says how to see the others.
pub(crate) fn message(searched: &Searched, shown: usize, more: &str) -> Option<String> {
    let nothing = searched.total == 0;
    joined([
        left_out(shown as u64, searched.total, "matches", more),
        skipped(&searched.skipped, "name one in `path` to search it").filter(|_| nothing),
        nothing_searched(searched),
        searched_in_part(searched),
        unread(&searched.skipped),
    ])
}

/// A note on files that were searched only in part.
fn searched_in_part(searched: &Searched) -> Option<String> {
    let stopped = |file: &&Matched| matches!(file.note, Some(BinaryNote::Stopped(_)));
    match searched.files.iter().filter(stopped).count() {
        0 => None,
        1 => Some("1 file is binary after its last match and was not searched further".into()),
        files => Some(format!(
            "{files} files are binary after their last match and were not searched further"
        )),
    }
}

/// A note for a search that found no file to search.
pub(crate) fn nothing_searched(searched: &Searched) -> Option<String> {
    (searched.searched == 0).then(|| "no file was searched: none is there, or none fits".to_owned())
}

fn all_matches(searched: &Searched, context: u64) -> impl Iterator<Item = FoundMatch<'_>> {
    searched.files.iter().flat_map(move |file| {
        let lines = &file.lines;
        let found = lines.iter().enumerate().filter(|(_, line)| line.role == Role::Match);
        let found = found.map(move |(index, line)| {
            let near = |other: &&Line| other.number.abs_diff(line.number) <= context;
            let mut before: Vec<_> =
                lines[..index].iter().rev().take_while(near).map(text).collect();
            before.reverse();
            let after = lines[index + 1..].iter().take_while(near).map(text).collect();
            FoundMatch { place: &file.place, number: line.number, text: text(line), before, after }
        });
        // A binary file has no lines to show: one entry says that it matches.
        let binary = match file.note {
            Some(BinaryNote::Matches(_)) if lines.is_empty() => Some(FoundMatch {
                place: &file.place,
                number: 1,
                text: "(binary file matches)".into(),
                before: Vec::new(),
                after: Vec::new(),
            }),
            _ => None,
        };
        found.chain(binary)
    })
}

/// A line without its line ending.
fn text(line: &Line) -> String {
    let text = line.text.strip_suffix(b"\n").unwrap_or(&line.text);
    String::from_utf8_lossy(text.strip_suffix(b"\r").unwrap_or(text)).into_owned()
}
