//! Selects the matches of a search that one answer shows, within its budget.

use std::sync::Arc;

use pinfold_confine::Place;

use crate::search::{BinaryNote, FileMatches, Line, Role};

/// The matches in one file.
#[derive(Debug)]
pub(crate) struct MatchedPlace {
    pub(crate) place: Place,
    pub(crate) matches: FileMatches,
}

/// The matching lines of one page.
#[derive(Debug, Default)]
pub(crate) struct MatchPage {
    pub(crate) files: Vec<(Place, Vec<Line>, Option<BinaryNote>)>,
    /// How many matching lines are shown.
    pub(crate) matches: u64,
    /// How many matching lines there are in total.
    pub(crate) total: u64,
}

/// Which matches a page shows, and how much of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatchWindow {
    /// How many matches to skip, and the maximum number to show.
    pub(crate) skip: u64,
    pub(crate) max_matches: u64,
    /// How many context lines to show before and after each match.
    pub(crate) before: usize,
    pub(crate) after: usize,
    /// The maximum size of the page in bytes, and the function that returns the size of a line.
    pub(crate) budget: usize,
    pub(crate) line_cost: fn(&PageLine<'_>) -> usize,
}

/// A line of a page, passed to the function that returns its size in the answer.
#[derive(Debug)]
pub struct PageLine<'l> {
    /// The absolute path of its file.
    pub path: &'l str,
    /// Its number, counting from 1.
    pub number: u64,
    /// The line with its line ending.
    pub text: &'l [u8],
    /// Whether context was requested, and lines are missing between this line and the one before it.
    pub after_gap: bool,
}

/// The lines of the matches in the window.
///
/// `path_of` is a file's absolute path. `again` searches a file whose lines were
/// not kept, for the matches with these numbers.
pub(crate) fn page<E>(
    files: Vec<MatchedPlace>,
    request: MatchWindow,
    path_of: impl Fn(&Place) -> String,
    mut again: impl FnMut(&Place, (u64, u64)) -> Result<FileMatches, E>,
) -> Result<MatchPage, E> {
    let end = request.skip.saturating_add(request.max_matches);
    let mut shown = MatchPage::default();
    let mut filler = PageFiller { request, left: request.budget, any: false, full: false };
    for MatchedPlace { place, matches: mut hits } in files {
        let first = shown.total;
        let window = (request.skip.saturating_sub(first), end.saturating_sub(first));
        let in_window = |count: u64| first < end && count > window.0;
        if !filler.full && in_window(hits.count) && hits.lines.is_none() {
            hits = again(&place, window)?;
        }
        shown.total += hits.count;
        if filler.full || !in_window(hits.count) {
            continue;
        }
        let lines = hits.lines.map(Arc::unwrap_or_clone).unwrap_or_default();
        let lines = window_of(lines, hits.first, window, request);
        let (lines, mut matches) = filler.take(lines, &path_of(&place), shown.matches > 0);
        // A binary file is only reported as matching.
        let note = hits.note.filter(|_| !filler.full && window.1 >= hits.count);
        if note.is_some() {
            matches = matches.max(hits.count - window.0);
        }
        shown.matches += matches;
        if !lines.is_empty() || note.is_some() {
            shown.files.push((place, lines, note));
        }
    }
    Ok(shown)
}

/// Fills a page until its budget is used up.
struct PageFiller {
    request: MatchWindow,
    left: usize,
    /// Whether the page has a line.
    any: bool,
    full: bool,
}

impl PageFiller {
    /// Returns the lines of a file that fit, and how many of them are matches.
    fn take(&mut self, lines: Vec<Line>, path: &str, mut has_match: bool) -> (Vec<Line>, u64) {
        let mut taken: Vec<Line> = Vec::new();
        let mut waiting: Vec<Line> = Vec::new();
        let mut matches = 0;
        for line in lines {
            if line.role != Role::Match {
                waiting.push(line);
                continue;
            }
            // If the context of the first match does not fit, the lines nearest to the match are kept.
            while !has_match
                && !waiting.is_empty()
                && self.cost(&taken, &waiting, &line, path) > self.left
            {
                waiting.remove(0);
            }
            if has_match && self.cost(&taken, &waiting, &line, path) > self.left {
                self.full = true;
                break;
            }
            waiting.push(line);
            self.push_all(&mut taken, &mut waiting, path);
            matches += 1;
            has_match = true;
        }
        // The other lines follow the last match, or precede a match that does not fit or is not shown.
        let last = taken.last().map_or(0, |line| line.number);
        for line in waiting {
            let near = line.number - last <= self.request.after as u64 && !taken.is_empty();
            let cost = self.line_cost(taken.last(), &line, path);
            if self.full && !near {
                break;
            }
            if cost > self.left {
                self.full = true;
                break;
            }
            self.left -= cost;
            self.any = true;
            taken.push(line);
        }
        (taken, matches)
    }

    fn push_all(&mut self, taken: &mut Vec<Line>, waiting: &mut Vec<Line>, path: &str) {
        for line in waiting.drain(..) {
            self.left = self.left.saturating_sub(self.line_cost(taken.last(), &line, path));
            self.any = true;
            taken.push(line);
        }
    }

    fn cost(&self, taken: &[Line], waiting: &[Line], line: &Line, path: &str) -> usize {
        let mut last = taken.last();
        let mut cost = 0;
        for line in waiting.iter().chain([line]) {
            cost += self.line_cost(last, line, path);
            last = Some(line);
        }
        cost
    }

    fn line_cost(&self, last: Option<&Line>, line: &Line, path: &str) -> usize {
        let has_context = self.request.before + self.request.after > 0;
        let apart = match last {
            Some(last) => last.number + 1 != line.number,
            None => self.any,
        };
        let after_gap = has_context && apart;
        (self.request.line_cost)(&PageLine {
            path,
            number: line.number,
            text: &line.text,
            after_gap,
        })
    }
}

/// The matches of one file whose numbers are in a window, and their context lines. `first` is the number
/// of the first match among `lines`.
fn window_of(
    lines: Vec<Line>,
    first: u64,
    (from, to): (u64, u64),
    request: MatchWindow,
) -> Vec<Line> {
    let (before, after) = (request.before as u64, request.after as u64);
    let matches: Vec<u64> =
        lines.iter().filter(|line| line.role == Role::Match).map(|line| line.number).collect();
    if from <= first && to >= first + matches.len() as u64 && first == 0 {
        return lines;
    }
    let index = |number: u64| {
        usize::try_from(number.saturating_sub(first)).unwrap_or(usize::MAX).min(matches.len())
    };
    let (from, to) = (index(from), index(to));
    let inside = &matches[from..to];
    let near = |number: u64| {
        let next = inside.partition_point(|found| *found < number);
        inside.get(next).is_some_and(|found| found - number <= before)
            || next.checked_sub(1).is_some_and(|last| number - inside[last] <= after)
    };
    let mut number = 0;
    let mut window = Vec::new();
    for mut line in lines {
        let is_match = line.role == Role::Match;
        let is_shown = is_match && (from..to).contains(&number);
        number += usize::from(is_match);
        if is_shown || near(line.number) {
            if is_match && !is_shown {
                line.role = Role::Elsewhere;
            }
            window.push(line);
        }
    }
    window
}

/// A line; if it has more than `max_chars` characters, cut around the byte at `offset`.
pub(crate) fn around(line: &[u8], offset: usize, max_chars: usize) -> Vec<u8> {
    let body = line.strip_suffix(b"\n").unwrap_or(line);
    // A text has at least as many bytes as characters.
    if body.len() <= max_chars {
        return line.to_vec();
    }
    let characters = |bytes: &[u8]| bytes.utf8_chunks().map(characters_in).sum::<usize>();
    let total = characters(body);
    if total <= max_chars {
        return line.to_vec();
    }
    let match_at = characters(&body[..offset.min(body.len())]);
    // At most a quarter of the shown text precedes the match, unless the line ends before.
    let from = match_at.saturating_sub(max_chars / 4).min(total - max_chars);
    let (start, end) = (offset_of(body, from), offset_of(body, from + max_chars));
    let mut text = Vec::with_capacity(end - start + 50);
    if from > 0 {
        text.extend_from_slice(format!("[+{from} characters] ...").as_bytes());
    }
    text.extend_from_slice(&body[start..end]);
    let left = total - from - max_chars;
    if left > 0 {
        text.extend_from_slice(format!("... [+{left} characters]").as_bytes());
    }
    text.extend_from_slice(&line[body.len()..]);
    text
}

fn characters_in(chunk: std::str::Utf8Chunk<'_>) -> usize {
    chunk.valid().chars().count() + usize::from(!chunk.invalid().is_empty())
}

/// The offset of the character with this number.
fn offset_of(text: &[u8], number: usize) -> usize {
    let (mut left, mut offset) = (number, 0);
    for chunk in text.utf8_chunks() {
        let valid = chunk.valid();
        match valid.char_indices().nth(left) {
            Some((inside, _)) => return offset + inside,
            None => {
                left -= valid.chars().count();
                offset += valid.len();
            }
        }
        if left == 0 {
            return offset;
        }
        if !chunk.invalid().is_empty() {
            left -= 1;
            offset += chunk.invalid().len();
        }
    }
    offset
}
