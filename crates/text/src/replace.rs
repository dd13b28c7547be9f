//! Replaces text in a document.
//!
//! Only the difference between the old and the new text is spliced, so all other bytes stay the same, in any
//! encoding.

use std::borrow::Cow;

use crate::document::{Document, Newline};
use crate::locate::{
    MAX_NAMED, MAX_REPLACEMENTS, Occurrence, Occurrences, disjoint, exact, lenient,
};
use crate::{Encoding, MatchKind, MatchMode, Unmappable};

/// A text to find, and the text that replaces it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Replacement {
    /// The text to find.
    pub old: String,
    /// The new text, literal except for its line endings.
    pub new: String,
    /// Whether to replace every occurrence.
    pub all: bool,
}

/// The result of a replacement.
#[derive(Clone, Debug)]
pub(crate) struct Replaced {
    /// The whole file's new bytes.
    pub bytes: Vec<u8>,
    /// How the text was matched.
    pub match_kind: MatchKind,
    /// How many occurrences were replaced.
    pub count: usize,
    /// The first and last line of each occurrence in the new text, counting from 1.
    pub lines: Vec<(u64, u64)>,
    /// For each occurrence, the number of lines that were added (or removed, if negative).
    growth: Vec<i64>,
}

/// The reason why nothing was replaced.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ReplaceError {
    /// The text does not occur in the file.
    NotFound,
    /// The text occurs several times.
    Many {
        /// The number of occurrences.
        count: usize,
        /// Whether there may be more than `count`.
        or_more: bool,
        /// The lines on which the first occurrences start.
        lines: Vec<u64>,
        /// How they were matched.
        match_kind: MatchKind,
    },
    /// The new text is the old one.
    Same,
    /// The file would become larger than the maximum.
    TooLarge {
        /// The minimum size that it would have.
        size: u64,
    },
    /// The new text has a character that the file's encoding cannot express.
    Unmappable(Unmappable),
    /// The deadline has passed, or the call was cancelled.
    TimedOut,
}

/// Replaces `replacement.old`, which must not be empty. `matching` says how leniently it is matched.
pub(crate) fn replace(
    document: &Document<'_>,
    replacement: &Replacement,
    matching: MatchMode,
    max_bytes: u64,
) -> Result<Replaced, ReplaceError> {
    let old = fold_line_endings(&replacement.old);
    let new = fold_line_endings(&replacement.new);
    if old == new {
        return Err(ReplaceError::Same);
    }
    let text = document.text();
    let mut places = if replacement.all { disjoint(text, &old) } else { exact(text, &old) };
    let mut match_kind = MatchKind::Exact;
    if places.found.is_empty() && matching == MatchMode::Lenient && !replacement.all {
        (match_kind, places) = lenient(text, &old, &new).ok_or(ReplaceError::NotFound)?;
    }
    let Occurrences { found, count, or_more } = places;
    if found.is_empty() {
        return Err(ReplaceError::NotFound);
    }
    // The matches are counted before `new` is re-indented. If re-indenting would fail at one of several matches, the
    // edit is still ambiguous.
    let max = if replacement.all { MAX_REPLACEMENTS } else { 1 };
    if count > max {
        let named = found.iter().take(MAX_NAMED);
        let lines = named.map(|found| document.line_number(found.start)).collect();
        return Err(ReplaceError::Many { count, or_more, lines, match_kind });
    }
    let placed = found.into_iter().map(|found| {
        let moved = match &found.shift {
            Some(shift) => Cow::Owned(shift.apply(&new, max_bytes)?),
            None => Cow::Borrowed(&*new),
        };
        Ok((found, moved))
    });
    let mut placed = placed.collect::<Result<Vec<_>, ReplaceError>>()?;
    placed.sort_by_key(|(found, _)| found.start);
    if match_kind == MatchKind::Exact
        && !placed.iter().all(|(found, _)| has_same_line_endings(document, found, &replacement.old))
    {
        match_kind = MatchKind::LineEndings;
    }
    splice(document, &placed, match_kind, max_bytes)
}

/// The result of replacements that were made one after the other.
#[derive(Clone, Debug)]
pub struct ReplacedInOrder {
    /// The whole file's new bytes.
    pub bytes: Vec<u8>,
    /// The most lenient way in which one of the texts was found.
    pub match_kind: MatchKind,
    /// How many occurrences each replacement replaced.
    pub counts: Vec<usize>,
    /// The first and last line of each occurrence in the final text, in the order in which they were replaced.
    pub lines: Vec<(u64, u64)>,
}

/// The replacement that could not be made.
#[derive(Clone, Debug)]
pub struct FailedReplacement {
    /// Its number, counting from 1.
    pub number: usize,
    /// The reason.
    pub why: ReplaceError,
    /// The file with the replacements before it.
    pub bytes: Vec<u8>,
}

/// Makes replacements in order, each on the result of the one before. Before each of them, `keep_going` is called; if
/// it returns false, this fails.
pub fn replace_in_order(
    bytes: &[u8],
    encoding: Encoding,
    replacements: &[Replacement],
    matching: MatchMode,
    max_bytes: u64,
    keep_going: &dyn Fn() -> bool,
) -> Result<ReplacedInOrder, FailedReplacement> {
    let (mut match_kind, mut counts, mut lines) = (MatchKind::Exact, Vec::new(), Vec::new());
    let mut bytes = Cow::Borrowed(bytes);
    for (number, replacement) in (1..).zip(replacements) {
        let replaced = if keep_going() {
            replace(&Document::new(&bytes, encoding), replacement, matching, max_bytes)
        } else {
            Err(ReplaceError::TimedOut)
        };
        let replaced = match replaced {
            Ok(replaced) => replaced,
            Err(why) => return Err(FailedReplacement { number, why, bytes: bytes.into_owned() }),
        };
        shift_lines(&mut lines, &replaced);
        match_kind = match_kind.max(replaced.match_kind);
        counts.push(replaced.count);
        lines.extend(replaced.lines);
        bytes = Cow::Owned(replaced.bytes);
    }
    Ok(ReplacedInOrder { bytes: bytes.into_owned(), match_kind, counts, lines })
}

/// Shifts the line numbers of earlier replacements by the number of lines that `replaced` added or removed above them.
fn shift_lines(lines: &mut [(u64, u64)], replaced: &Replaced) {
    let mut grown = 0;
    let sums: Vec<i64> = std::iter::once(0)
        .chain(replaced.growth.iter().map(|growth| {
            grown += growth;
            grown
        }))
        .collect();
    // `replaced.lines` are line numbers in the new text. Subtracting the growth so far gives those in the old text.
    let firsts: Vec<u64> = replaced
        .lines
        .iter()
        .zip(&sums)
        .map(|((first, _), grown)| first.saturating_add_signed(-grown))
        .collect();
    for lines in lines {
        let shift = sums[firsts.partition_point(|first| *first < lines.0)];
        *lines = (lines.0.saturating_add_signed(shift), lines.1.saturating_add_signed(shift));
    }
}

fn splice(
    document: &Document<'_>,
    placed: &[(Occurrence, Cow<'_, str>)],
    match_kind: MatchKind,
    max_bytes: u64,
) -> Result<Replaced, ReplaceError> {
    let text = document.text();
    let mut spans = Vec::with_capacity(placed.len());
    let mut lines = Vec::with_capacity(placed.len());
    let mut growths = Vec::with_capacity(placed.len());
    let (mut counted, mut line, mut grown) = (0, 1, 0);
    // Checks the size of the new text before the whole file is built.
    let mut size = 0;
    for (found, new) in placed {
        let old = &text[found.start..found.end];
        let (before, after) = shared(old, new);
        let (start, end) = (found.start + before, found.end - after);
        let middle = with_line_endings(document, start, end, &new[before..new.len() - after]);
        let bytes = document.encode(&middle).map_err(|missing| {
            // Counted from the beginning of the new text, not from the difference.
            let line = missing.line + count_newlines(&new[..before]).unsigned_abs();
            ReplaceError::Unmappable(Unmappable { line, ..missing })
        })?;
        size += bytes.len() as u64;
        if size > max_bytes {
            return Err(ReplaceError::TooLarge { size });
        }
        spans.push((start, end, bytes));

        line += count_newlines(&text[counted..found.start]);
        counted = found.start;
        let first = line + grown;
        let ends = count_newlines(new);
        // If the text ends with a line ending, it does not include the line after it.
        let last = first + if new.ends_with('\n') { ends - 1 } else { ends };
        lines.push((first as u64, last.max(first) as u64));
        let growth = ends - count_newlines(old);
        growths.push(growth);
        grown += growth;
    }
    if document.holds(&spans) {
        return Err(ReplaceError::Same);
    }
    let bytes = document.splice(&spans).ok_or(ReplaceError::NotFound)?;
    let size = bytes.len() as u64;
    if size > max_bytes {
        return Err(ReplaceError::TooLarge { size });
    }
    Ok(Replaced { bytes, match_kind, count: placed.len(), lines, growth: growths })
}

fn count_newlines(text: &str) -> i64 {
    memchr::memchr_iter(b'\n', text.as_bytes()).count() as i64
}

/// A text with LF for every CRLF.
pub(crate) fn fold_line_endings(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

/// The lengths of the common prefix and the common suffix of two texts, without overlap.
fn shared(old: &str, new: &str) -> (usize, usize) {
    let alike = |(one, other): &(char, char)| one == other;
    let before = old.chars().zip(new.chars()).take_while(alike).map(|(c, _)| c.len_utf8()).sum();
    let (old, new) = (&old[before..], &new[before..]);
    let backwards = old.chars().rev().zip(new.chars().rev());
    let after = backwards.take_while(alike).map(|(c, _)| c.len_utf8()).sum();
    (before, after)
}

/// The new text with the line endings of the replaced lines.
pub(crate) fn with_line_endings<'n>(
    document: &Document<'_>,
    start: usize,
    end: usize,
    new: &'n str,
) -> Cow<'n, str> {
    if !new.contains('\n') || !document.has_crlf() {
        return Cow::Borrowed(new);
    }
    let text = document.text();
    let ends = memchr::memchr_iter(b'\n', &text.as_bytes()[start..end]);
    let ends: Vec<Newline> = ends.map(|at| document.newline_at(start + at)).collect();
    let other = || text[..start].rfind('\n').or_else(|| text.find('\n'));
    let default = ends.last().copied().or_else(|| Some(document.newline_at(other()?)));
    let mut out = String::with_capacity(new.len() + 8);
    for (number, line) in new.split('\n').enumerate() {
        if number > 0 {
            let end = ends.get(number - 1).copied().or(default).unwrap_or(Newline::Lf);
            out.push_str(if end == Newline::Crlf { "\r\n" } else { "\n" });
        }
        out.push_str(line);
    }
    Cow::Owned(out)
}

/// Whether the line endings of an occurrence are those of `old`.
fn has_same_line_endings(document: &Document<'_>, found: &Occurrence, old: &str) -> bool {
    let text = &document.text().as_bytes()[found.start..found.end];
    let old_ends = memchr::memchr_iter(b'\n', old.as_bytes());
    let old_ends =
        old_ends.map(|at| if old[..at].ends_with('\r') { Newline::Crlf } else { Newline::Lf });
    let ends = memchr::memchr_iter(b'\n', text).map(|at| document.newline_at(found.start + at));
    old_ends.eq(ends)
}

#[cfg(test)]
mod tests;
