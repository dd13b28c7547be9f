//! What a search has found, one match at a time with the lines around it.

use pinfold::operations::Searched;
use pinfold::{BinaryNote, Line, Place, Role};

use crate::words::lossy;

/// A matching line and its neighbours.
pub(crate) struct FoundMatch<'f> {
    pub(crate) place: &'f Place,
    pub(crate) number: u64,
    pub(crate) text: String,
    pub(crate) before: Vec<String>,
    pub(crate) after: Vec<String>,
}

/// The matches of a search, each with up to `context` lines before and after it.
pub(crate) fn matches(searched: &Searched, context: u64) -> impl Iterator<Item = FoundMatch<'_>> {
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
        // Of a binary file it is only known that it matches.
        let binary = match file.note {
            Some(BinaryNote::Matches(_)) if lines.is_empty() => Some(FoundMatch {
                place: &file.place,
                number: 0,
                text: "(binary file matches)".into(),
                before: Vec::new(),
                after: Vec::new(),
            }),
            _ => None,
        };
        found.chain(binary)
    })
}

/// A line without its end.
fn text(line: &Line) -> String {
    let text = line.text.strip_suffix(b"\n").unwrap_or(&line.text);
    lossy(text.strip_suffix(b"\r").unwrap_or(text)).into_owned()
}
