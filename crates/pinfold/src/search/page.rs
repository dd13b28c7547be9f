//! The part of what was found that one answer shows.

use pinfold_confine::Place;

use crate::search::{BinaryNote, Hits, Line, Role};

/// A file in which something was found.
#[derive(Debug)]
pub(crate) struct Hit {
    pub(crate) place: Place,
    pub(crate) hits: Hits,
}

/// The matching lines of one page.
#[derive(Debug, Default)]
pub(crate) struct MatchPage {
    pub(crate) files: Vec<(Place, Vec<Line>, Option<BinaryNote>)>,
    /// How many matching lines are shown.
    pub(crate) matches: u64,
    /// How many there are in all.
    pub(crate) total: u64,
}

/// Which matches a page shows, and how much of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatchWindow {
    /// How many matches are left out at the beginning, and how many are shown at the most.
    pub(crate) skip: u64,
    pub(crate) most: u64,
    /// How many lines are shown before and after each.
    pub(crate) before: usize,
    pub(crate) after: usize,
    /// How many bytes all of it may take, and how many a line does.
    pub(crate) budget: usize,
    pub(crate) line_cost: fn(&PageLine<'_>) -> usize,
}

/// A line on its way to a page, for whoever says how many bytes it takes there.
#[derive(Debug)]
pub struct PageLine<'l> {
    /// The absolute path of its file.
    pub path: &'l str,
    /// Its number, counting from 1.
    pub number: u64,
    /// The line with its end.
    pub text: &'l [u8],
    /// Whether context was asked for, and the line does not follow the one before it on the page.
    pub after_gap: bool,
}

/// The lines of the matches in the window.
///
/// `path_of` is a file's absolute path. `again` searches a file whose lines were
/// not kept, for the matches with these numbers.
pub(crate) fn page<E>(
    files: Vec<Hit>,
    request: MatchWindow,
    path_of: impl Fn(&Place) -> String,
    mut again: impl FnMut(&Place, (u64, u64)) -> Result<Hits, E>,
) -> Result<MatchPage, E> {
    let end = request.skip.saturating_add(request.most);
    let mut shown = MatchPage::default();
    let mut filling = Filling { request, left: request.budget, any: false, full: false };
    for Hit { place, mut hits } in files {
        let first = shown.total;
        let window = (request.skip.saturating_sub(first), end.saturating_sub(first));
        let wanted = |count: u64| first < end && count > window.0;
        if !filling.full && wanted(hits.count) && hits.lines.is_none() {
            hits = again(&place, window)?;
        }
        shown.total += hits.count;
        if filling.full || !wanted(hits.count) {
            continue;
        }
        let lines = window_of(hits.lines.unwrap_or_default(), hits.first, window, request);
        let (lines, mut matches) = filling.take(lines, &path_of(&place), shown.matches > 0);
        // Of a binary file it is only said that it matches.
        let note = hits.note.filter(|_| !filling.full && window.1 >= hits.count);
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

/// A page while it is filled.
struct Filling {
    request: MatchWindow,
    left: usize,
    /// Whether there is a line on it already.
    any: bool,
    full: bool,
}

impl Filling {
    /// As many of a file's lines as fit, and how many of them are matches.
    fn take(&mut self, lines: Vec<Line>, path: &str, mut has_match: bool) -> (Vec<Line>, u64) {
        let mut taken: Vec<Line> = Vec::new();
        let mut waiting: Vec<Line> = Vec::new();
        let mut matches = 0;
        for line in lines {
            if line.role != Role::Match {
                waiting.push(line);
                continue;
            }
            // What is nearest to the first match is kept, if its lines do not fit.
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
        // What is left came after the last match, or before one that did not fit or is not shown.
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

/// The matches with numbers in a window of one file, and the lines around them. `first` is the number
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
        let next = inside.partition_point(|wanted| *wanted < number);
        inside.get(next).is_some_and(|wanted| wanted - number <= before)
            || next.checked_sub(1).is_some_and(|last| number - inside[last] <= after)
    };
    let mut number = 0;
    let mut window = Vec::new();
    for mut line in lines {
        let is_match = line.role == Role::Match;
        let wanted = is_match && (from..to).contains(&number);
        number += usize::from(is_match);
        if wanted || near(line.number) {
            if is_match && !wanted {
                line.role = Role::Elsewhere;
            }
            window.push(line);
        }
    }
    window
}

/// A line, cut to some characters around the byte at `place` if it has more.
pub(crate) fn around(line: &[u8], place: usize, most: usize) -> Vec<u8> {
    let body = line.strip_suffix(b"\n").unwrap_or(line);
    // There are at least as many bytes as characters.
    if body.len() <= most {
        return line.to_vec();
    }
    let characters = |bytes: &[u8]| bytes.utf8_chunks().map(characters_in).sum::<usize>();
    let total = characters(body);
    if total <= most {
        return line.to_vec();
    }
    let match_at = characters(&body[..place.min(body.len())]);
    // Most of what is shown comes after the start of the match.
    let from = match_at.saturating_sub(most / 4).min(total - most);
    let (start, end) = (offset_of(body, from), offset_of(body, from + most));
    let mut text = Vec::with_capacity(end - start + 50);
    if from > 0 {
        text.extend_from_slice(format!("[+{from} characters] ...").as_bytes());
    }
    text.extend_from_slice(&body[start..end]);
    let left = total - from - most;
    if left > 0 {
        text.extend_from_slice(format!("... [+{left} characters]").as_bytes());
    }
    text.extend_from_slice(&line[body.len()..]);
    text
}

fn characters_in(chunk: std::str::Utf8Chunk<'_>) -> usize {
    chunk.valid().chars().count() + usize::from(!chunk.invalid().is_empty())
}

/// Where the character with a number starts.
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
