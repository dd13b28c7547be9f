//! Finds the lines of a file that match the chunks of a patch.
//!
//! Chunks are matched from the top of the file to the bottom, by the same kinds of matching as an edit: exact lines
//! first, and lenient ones only if there are none. A place is never guessed: after the chunk before, the first header
//! must be unique, and without a header the lines must be.

use std::borrow::Cow;
use std::cell::Cell;

use super::{Chunk, PatchLine, PlaceError, PlaceProblem};
use crate::indent::{Shift, indentation};
use crate::locate::{MAX_NAMED, WHITESPACE};
use crate::{MatchKind, MatchMode};

/// A chunk with its place.
pub(super) struct Placed<'c> {
    /// The number of the chunk, counting from 1.
    pub(super) number: usize,
    /// The number of lines of the file before it.
    pub(super) start: usize,
    /// Its lines.
    pub(super) lines: Cow<'c, [PatchLine]>,
    /// How it was matched.
    pub(super) match_kind: MatchKind,
    /// The shift of indentation for its new lines.
    pub(super) shift: Option<Shift>,
    pub(super) final_newline: Option<bool>,
}

/// The lines of a text, without their line endings. A final line ending does not start a new line.
pub(super) fn lines_of(text: &str) -> Vec<&str> {
    if text.is_empty() {
        return Vec::new();
    }
    text.strip_suffix('\n').unwrap_or(text).split('\n').collect()
}

/// Finds the place of every chunk.
pub(super) fn place<'c>(
    text: &str,
    chunks: &'c [Chunk],
    matching: MatchMode,
    keep_going: &dyn Fn() -> bool,
) -> Result<Vec<Placed<'c>>, PlaceError> {
    let finder = Finder { text, lines: lines_of(text), matching, work: Cell::new(0), keep_going };
    let mut cursor = 0;
    let mut placed = Vec::new();
    for (number, chunk) in (1..).zip(chunks) {
        let found = finder.place(chunk, number, cursor);
        let found = found.map_err(|problem| PlaceError { chunk: number, problem })?;
        let old = found.lines.iter().filter(|line| line.old_text().is_some()).count();
        if old > 0 {
            cursor = found.start + old;
        }
        placed.push(found);
    }
    Ok(placed)
}

/// The index of matching lines, and the shift of their indentation.
type Hit = (usize, Option<Shift>);

struct Finder<'t> {
    text: &'t str,
    lines: Vec<&'t str>,
    matching: MatchMode,
    /// The number of compared lines.
    work: Cell<usize>,
    keep_going: &'t dyn Fn() -> bool,
}

impl Finder<'_> {
    fn place<'c>(
        &self,
        chunk: &'c Chunk,
        number: usize,
        cursor: usize,
    ) -> Result<Placed<'c>, PlaceProblem> {
        let from = self.behind_headers(&chunk.headers, cursor)?;
        let whole = Cow::Borrowed(chunk.lines.as_slice());
        let placed = |lines, (start, shift): Hit, match_kind| Placed {
            number,
            start,
            lines,
            match_kind,
            shift,
            final_newline: chunk.final_newline,
        };
        if chunk.old_lines().is_empty() {
            // In a unified diff, this means that the file is empty. In codex's notation, the lines are appended.
            if chunk.line.is_some() && !self.lines.is_empty() {
                return Err(PlaceProblem::NotFound);
            }
            return Ok(placed(whole, (self.lines.len(), None), MatchKind::Exact));
        }
        match self.find(chunk, &whole, from) {
            Ok((hit, match_kind)) => Ok(placed(whole, hit, match_kind)),
            Err(PlaceProblem::NotFound) => {
                let found = without_last_blank(&chunk.lines).and_then(|shorter| {
                    let (hit, match_kind) = self.find(chunk, &shorter, from)?;
                    Ok(placed(Cow::Owned(shorter), hit, match_kind))
                });
                found.map_err(|problem| match problem {
                    PlaceProblem::NotFound => self.elsewhere(chunk),
                    other => other,
                })
            }
            Err(other) => Err(other),
        }
    }

    /// The problem of old lines that are not where the patch has them.
    fn elsewhere(&self, chunk: &Chunk) -> PlaceProblem {
        match self.hits(&chunk.old_lines(), "", 0..self.lines.len(), MatchKind::Exact, 1) {
            Ok(found) => found.first().map_or(PlaceProblem::NotFound, |(start, _)| {
                PlaceProblem::Elsewhere { line: *start as u64 + 1, at_end: chunk.at_end }
            }),
            Err(problem) => problem,
        }
    }

    /// The kinds of match that are tried, the strictest first.
    fn kinds(&self, old: &[&str]) -> &'static [MatchKind] {
        let is_blank = |line: &&str| line.trim_matches(WHITESPACE).is_empty();
        match self.matching {
            // Blank lines could match anywhere.
            MatchMode::Lenient if !old.iter().all(is_blank) => {
                &[MatchKind::Exact, MatchKind::TrailingWhitespace, MatchKind::Indentation]
            }
            _ => &[MatchKind::Exact],
        }
    }

    /// The number of lines up to and including the headers.
    fn behind_headers(&self, headers: &[String], cursor: usize) -> Result<usize, PlaceProblem> {
        let mut from = cursor;
        for (number, header) in headers.iter().enumerate() {
            let old = [header.as_str()];
            let mut found = Vec::new();
            for kind in self.kinds(&old) {
                // Only the first header must be unique. The others select one of several places after it.
                let max = if number == 0 { usize::MAX } else { 1 };
                found = self.hits(&old, "", from..self.lines.len(), *kind, max)?;
                if !found.is_empty() {
                    break;
                }
            }
            from = match found.as_slice() {
                [] => return Err(PlaceProblem::NoHeader { header: header.clone() }),
                [(at, _)] => at + 1,
                several => {
                    let lines = named(several);
                    return Err(PlaceProblem::ManyHeaders { header: header.clone(), lines });
                }
            };
        }
        Ok(from)
    }

    /// The unique place of the old lines.
    fn find(
        &self,
        chunk: &Chunk,
        lines: &[PatchLine],
        from: usize,
    ) -> Result<(Hit, MatchKind), PlaceProblem> {
        let old: Vec<&str> = lines.iter().filter_map(PatchLine::old_text).collect();
        let new = lines.iter().filter_map(|line| match line {
            PatchLine::Add(text) => Some(text.as_str()),
            _ => None,
        });
        let new = new.collect::<Vec<_>>().join("\n");
        let ends = (self.lines.len() + 1).saturating_sub(old.len());
        let starts = if chunk.at_end { ends.saturating_sub(1).max(from)..ends } else { from..ends };
        let expected = chunk.line.and_then(|line| usize::try_from(line).ok()?.checked_sub(1));
        if let Some(at) = expected.filter(|at| starts.contains(at))
            && let Some(hit) = self.hits(&old, &new, at..at + 1, MatchKind::Exact, 1)?.pop()
        {
            return Ok((hit, MatchKind::Exact));
        }
        let max = if chunk.headers.is_empty() { usize::MAX } else { 1 };
        let mut best: Option<(Vec<Hit>, MatchKind)> = None;
        for kind in self.kinds(&old) {
            let found = self.hits(&old, &new, starts.clone(), *kind, max)?;
            match (&best, found.first()) {
                (None, Some(_)) => best = Some((found, *kind)),
                // The header selects the first place, but that one only matches leniently.
                (Some((exact, _)), Some(first)) if max == 1 && first.0 < exact[0].0 => {
                    let lines = named(&[first.clone(), exact[0].clone()]);
                    return Err(PlaceProblem::Many { count: 2, lines, match_kind: *kind });
                }
                _ => {}
            }
            if max > 1 && best.is_some() {
                break;
            }
        }
        let Some((mut found, match_kind)) = best else { return Err(PlaceProblem::NotFound) };
        if found.len() > 1 {
            let (count, lines) = (found.len(), named(&found));
            return Err(PlaceProblem::Many { count, lines, match_kind });
        }
        Ok((found.remove(0), match_kind))
    }

    /// The places where lines match, at most `max`.
    fn hits(
        &self,
        old: &[&str],
        new: &str,
        starts: std::ops::Range<usize>,
        kind: MatchKind,
        max: usize,
    ) -> Result<Vec<Hit>, PlaceProblem> {
        let mut found = Vec::new();
        for start in starts {
            let Some(lines) = self.lines.get(start..start + old.len()) else { break };
            if !self.fits(old, lines, kind)? {
                continue;
            }
            let shift = if kind == MatchKind::Indentation {
                let pairs: Vec<_> = old.iter().copied().zip(lines.iter().copied()).collect();
                match Shift::between(&pairs, new, self.text) {
                    Some(shift) => Some(shift),
                    None => continue,
                }
            } else {
                None
            };
            found.push((start, shift));
            if found.len() >= max {
                break;
            }
        }
        Ok(found)
    }

    fn fits(&self, old: &[&str], lines: &[&str], kind: MatchKind) -> Result<bool, PlaceProblem> {
        /// How many lines are compared between two checks of the deadline.
        const INTERVAL: usize = 65_536;
        for (old, line) in old.iter().zip(lines) {
            let work = self.work.get() + 1;
            self.work.set(work);
            if work.is_multiple_of(INTERVAL) && !(self.keep_going)() {
                return Err(PlaceProblem::TimedOut);
            }
            let same = match kind {
                MatchKind::Exact | MatchKind::LineEndings => old == line,
                MatchKind::TrailingWhitespace => {
                    old.trim_end_matches(WHITESPACE) == line.trim_end_matches(WHITESPACE)
                }
                MatchKind::Indentation => indentation(old).1 == indentation(line).1,
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The line numbers of the first hits, counting from 1.
fn named(hits: &[Hit]) -> Vec<u64> {
    hits.iter().take(MAX_NAMED).map(|(start, _)| *start as u64 + 1).collect()
}

/// The lines without the last old one, if that is empty. Many patches end with an empty line that the file does not
/// have.
fn without_last_blank(lines: &[PatchLine]) -> Result<Vec<PatchLine>, PlaceProblem> {
    let last = lines.iter().rposition(|line| line.old_text().is_some());
    let last = last.filter(|last| lines[*last].old_text() == Some(""));
    let last = last.ok_or(PlaceProblem::NotFound)?;
    let mut lines = lines.to_vec();
    if matches!(lines[last], PatchLine::Context(_)) && last + 1 < lines.len() {
        // The text after it is added, so it is added, too.
        lines[last] = PatchLine::Add(String::new());
    } else {
        lines.remove(last);
    }
    if lines.iter().any(|line| line.old_text().is_some()) {
        Ok(lines)
    } else {
        Err(PlaceProblem::NotFound)
    }
}
