//! The matches of a search, each with its context lines, and the message about the search as a whole.

use pinfold::operations::{AnswerWith, Matched, Search, Searched};
use pinfold::{BinaryNote, Error, Line, Place, Role};

use crate::ToolContext;
use crate::phrases::{brackets, count, fit, joined, left_out, shortened, skipped, unread};

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
pub(crate) fn compact_params(pattern: &str, path: Option<&str>, ctx: &ToolContext<'_>) -> String {
    let pattern = format!("\"{}\"", shortened(pattern).escape_debug());
    match path {
        None => pattern,
        Some(path) => format!("{pattern} in {}", ctx.short_path(path)),
    }
}

/// Hints in the message about a search, with the names of the tool's arguments.
pub(crate) struct SearchHints {
    /// How to see more matches.
    pub(crate) more: &'static str,
    /// How to ignore case.
    pub(crate) ignore_case: &'static str,
}

/// The message about a search: which matches and files it left out.
pub(crate) fn message(
    (search, searched): (Result<Search, Error>, &Searched),
    shown: usize,
    hints: SearchHints,
    ctx: &ToolContext<'_>,
) -> Option<String> {
    let nothing = searched.total == 0;
    joined([
        left_out(shown as u64, searched.total, "matches", hints.more),
        nothing_found(search, searched, hints.ignore_case, ctx),
        skipped(&searched.skipped, "name one in `path` to search it").filter(|_| nothing),
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

/// How many files of a search without matches are searched again with case ignored. This takes some milliseconds.
const MAX_CASE_FILES: u64 = 500;

/// A note for a search without matches: what was searched, and how many matches there are if case is ignored.
pub(crate) fn nothing_found(
    search: Result<Search, Error>,
    searched: &Searched,
    ignore_case: &str,
    ctx: &ToolContext<'_>,
) -> Option<String> {
    let search = search.ok().filter(|_| searched.total == 0)?;
    if searched.searched == 0 {
        let none = Some("no file was searched: none is there, or none fits".to_owned());
        return joined([none, search.glob.as_deref().and_then(brackets)]);
    }
    let files = count(searched.searched, "file");
    let mut note = match &search.path {
        Some(path) => format!("searched {files} in {path}"),
        None => format!("searched {files} in the whole workspace"),
    };
    for (words, filter) in [("that fit", &search.glob), ("of type", &search.file_type)] {
        let filter = filter.as_ref().map(|filter| shortened(filter).escape_debug().to_string());
        note.extend(filter.map(|filter| format!(" {words} `{filter}`")));
    }
    let has_case =
        search.pattern.chars().any(|letter| letter.is_lowercase() || letter.is_uppercase());
    if search.ignore_case || !has_case || searched.searched > MAX_CASE_FILES {
        return Some(note);
    }
    let again = search.with_ignore_case(true).with_answer(AnswerWith::Counts).with_skip(0);
    let found = ctx.session.perform_with(&again, ctx.call).map(|done| done.outcome);
    if let Ok(found) = found.as_ref().map(|found| (found.matches, found.matching_files))
        && found.0 > 0
    {
        let (matches, files) = (matching(found.0), count(found.1, "file"));
        note.push_str(&format!("; {ignore_case} for {matches} in {files} with other case"));
    }
    Some(note)
}

/// `1 match`, `2 matches`.
pub(crate) fn matching(number: u64) -> String {
    if number == 1 { "1 match".into() } else { format!("{number} matches") }
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
        // A binary file has no lines to show, so one entry says that it matches.
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
