//! The part of what was found that one answer shows.

use pinfold_confine::Place;

use crate::search::{BinaryNote, Hits, Line, Role};

/// A file in which something was found.
#[derive(Debug)]
pub(crate) struct Hit {
    pub(crate) place: Place,
    pub(crate) hits: Hits,
}

/// A window of matching lines.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    pub(crate) files: Vec<(Place, Vec<Line>, Option<BinaryNote>)>,
    /// How many matching lines are shown.
    pub(crate) matches: u64,
    /// How many there are in all.
    pub(crate) total: u64,
}

/// The lines of the matches from number `skip` on, as many as `most` and `budget` allow.
///
/// `size` is what a line takes besides its text. `again` searches a file whose lines were not kept.
pub(crate) fn page<E>(
    files: Vec<Hit>,
    (skip, most): (u64, u64),
    (before, after): (usize, usize),
    mut budget: usize,
    size: impl Fn(&Place) -> usize,
    mut again: impl FnMut(&Place) -> Result<Hits, E>,
) -> Result<Shown, E> {
    let end = skip.saturating_add(most);
    let mut shown = Shown::default();
    let mut full = false;
    for Hit { place, mut hits } in files {
        let mut first = shown.total;
        let wanted = |first: u64, count: u64| !full && first < end && first + count > skip;
        if wanted(first, hits.count) && hits.lines.is_none() {
            hits = again(&place)?;
            first = shown.total;
        }
        shown.total += hits.count;
        if !wanted(first, hits.count) {
            continue;
        }
        let window = (skip.saturating_sub(first), end - first);
        let overhead = size(&place);
        let all = hits.lines.unwrap_or_default();
        let mut lines = window_of(all, window, (before as u64, after as u64));
        let mut matches = 0;
        let mut fits = lines.len();
        for (index, line) in lines.iter().enumerate() {
            let cost = line.text.len() + overhead;
            // One match is always shown, so that whoever pages gets on.
            if cost > budget && shown.matches + matches > 0 {
                fits = index;
                full = true;
                break;
            }
            budget = budget.saturating_sub(cost);
            matches += u64::from(line.role == Role::Match);
        }
        if full {
            // Context of a match that did not fit goes with it.
            lines.truncate(fits);
            while lines.last().is_some_and(|line| line.role != Role::Match) {
                lines.pop();
            }
        }
        // Of a binary file it is only said that it matches.
        let unsaid = hits.count.min(window.1) - window.0.min(hits.count);
        let note = hits.note.filter(|_| !full && window.1 >= hits.count);
        if note.is_some() {
            matches = matches.max(unsaid);
        }
        shown.matches += matches;
        if !lines.is_empty() || note.is_some() {
            shown.files.push((place, lines, note));
        }
    }
    Ok(shown)
}

/// The matches with numbers in a window of one file, and the lines around them.
fn window_of(lines: Vec<Line>, (from, to): (u64, u64), (before, after): (u64, u64)) -> Vec<Line> {
    let matches: Vec<u64> =
        lines.iter().filter(|line| line.role == Role::Match).map(|line| line.number).collect();
    if from == 0 && to >= matches.len() as u64 {
        return lines;
    }
    let from = matches.len().min(usize::try_from(from).unwrap_or(usize::MAX));
    let to = matches.len().min(usize::try_from(to).unwrap_or(usize::MAX));
    let inside = &matches[from..to];
    let near = |number: u64| {
        let next = inside.partition_point(|wanted| *wanted < number);
        inside.get(next).is_some_and(|wanted| wanted - number <= before)
            || next.checked_sub(1).is_some_and(|last| number - inside[last] <= after)
    };
    let mut number = 0;
    let mut window = Vec::new();
    for mut line in lines {
        let wanted = match line.role {
            Role::Match => {
                number += 1;
                (from..to).contains(&(number - 1))
            }
            _ => false,
        };
        if wanted {
            window.push(line);
        } else if near(line.number) {
            if line.role == Role::Match {
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
