//! Taking down what the searcher finds in one file: how often it matches, and the lines that are kept.
//!
//! When the room for lines is used up, matches are only counted, so the count is right all the same.

use std::io;
use std::sync::atomic::Ordering;

use grep_matcher::Matcher as _;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};

use super::{BinaryNote, Hits, Keeping, Line, Named, Role, Scan, Wanted};
use crate::search::bounded::BoundedMatcher;
use crate::search::page::around;

impl Scan<'_> {
    fn keeps(&self) -> Option<Vec<Line>> {
        let room = match self.keeping {
            Keeping::While(room) => room.load(Ordering::Relaxed) > 0,
            Keeping::Window { .. } => true,
        };
        (room && matches!(self.wanted, Wanted::Lines { .. })).then(Vec::new)
    }

    fn first_kept(&self) -> u64 {
        match (self.keeping, self.wanted) {
            // Matches before the window can be context for those in it.
            (Keeping::Window { from, .. }, Wanted::Lines { before, .. }) => {
                from.saturating_sub(before as u64)
            }
            _ => 0,
        }
    }
}

/// What takes down the matches of one file.
pub(super) struct Collector<'c> {
    scan: &'c Scan<'c>,
    matcher: &'c BoundedMatcher<'c>,
    /// Whether the search ends at the first NUL.
    quits: bool,
    pub(super) hits: Hits,
    binary: Option<u64>,
    /// The number of matches so far. Every 512th checks the deadline.
    matches_seen: usize,
    /// How many bytes of lines were kept.
    kept: usize,
}

impl<'c> Collector<'c> {
    pub(super) fn new(scan: &'c Scan<'c>, matcher: &'c BoundedMatcher<'c>, named: Named) -> Self {
        Self {
            scan,
            matcher,
            quits: named == Named::No,
            hits: Hits { lines: scan.keeps(), first: scan.first_kept(), ..Hits::default() },
            binary: None,
            matches_seen: 0,
            kept: 0,
        }
    }

    /// Whether a line is kept that is, or comes before, the match with a number.
    fn keeps(&self, number: u64) -> bool {
        let Keeping::Window { to, bytes, .. } = self.scan.keeping else { return true };
        let Wanted::Lines { after, .. } = self.scan.wanted else { return false };
        let last = to.saturating_add(after as u64);
        (self.hits.first..=last).contains(&number) && self.kept <= bytes
    }

    fn keep(&mut self, number: Option<u64>, text: &[u8], role: Role) {
        let Some(lines) = &mut self.hits.lines else { return };
        let text = match role {
            Role::Context => around(text, 0, self.scan.max_line_chars),
            _ => {
                let body = text.strip_suffix(b"\n").unwrap_or(text);
                // Only a line that is too long has to be searched again.
                let start = match body.len() > self.scan.max_line_chars {
                    true => self.matcher.find(body).ok().flatten().map_or(0, |found| found.start()),
                    false => 0,
                };
                around(text, start, self.scan.max_line_chars)
            }
        };
        /// What a line takes besides its text.
        const OVERHEAD: usize = size_of::<Line>();
        let size = text.len() + OVERHEAD;
        let has_room = match self.scan.keeping {
            Keeping::Window { .. } => true,
            Keeping::While(room) => {
                let enough = |room: usize| room.checked_sub(size);
                let had = room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enough);
                had.map_err(|_| room.store(0, Ordering::Relaxed)).is_ok()
            }
        };
        match has_room {
            true => {
                self.kept += text.len();
                lines.push(Line { number: number.unwrap_or(0), text, role });
            }
            // From here on only counted, in this file and all later ones.
            false => self.hits.lines = None,
        }
    }

    fn check_time(&mut self) -> io::Result<()> {
        self.matches_seen += 1;
        if self.matches_seen.is_multiple_of(512) && self.scan.deadline.has_passed() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    /// How many matches there are in what was found, which may be several lines.
    fn count(&self, found: &SinkMatch<'_>) -> io::Result<u64> {
        /// How far ripgrep lets a match look beyond the lines that it is in.
        const LOOK_AHEAD: usize = 128;
        let range = found.bytes_range_in_buffer();
        let text = found.buffer();
        let text = &text[..text.len().min(range.end + LOOK_AHEAD)];
        let mut count = 0;
        let counted = self.matcher.find_iter_at(text, range.start, |found| {
            let inside = found.start() < range.end;
            count += u64::from(inside);
            inside
        });
        counted?;
        Ok(count.max(1))
    }
}

impl Sink for &mut Collector<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.check_time()?;
        match self.scan.wanted {
            Wanted::Whether => {
                self.hits.count = 1;
                return Ok(false);
            }
            Wanted::Count => {
                self.hits.count += match searcher.multi_line_with_matcher(self.matcher) {
                    true => self.count(found)?,
                    false => 1,
                };
            }
            Wanted::Lines { .. } => {
                if !self.quits && self.binary.is_some() {
                    // It matches, which is all that is said of a binary file.
                    self.hits.count += 1;
                    return Ok(false);
                }
                for (line, number) in found.lines().zip(found.line_number().unwrap_or(1)..) {
                    if self.keeps(self.hits.count) {
                        self.keep(Some(number), line, Role::Match);
                    }
                    self.hits.count += 1;
                }
            }
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        if !self.quits && self.binary.is_some() {
            return Ok(false);
        }
        if self.keeps(self.hits.count) {
            self.keep(line.line_number(), line.bytes(), Role::Context);
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, offset: u64) -> io::Result<bool> {
        self.binary = Some(offset);
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        match self.scan.wanted {
            Wanted::Lines { .. } if self.hits.count > 0 => {
                self.hits.note = self.binary.map(|offset| match self.quits {
                    true => BinaryNote::Stopped(offset),
                    false => BinaryNote::Matches(offset),
                });
            }
            // What was found before it turned out to be binary does not count.
            Wanted::Whether | Wanted::Count
                if self.quits && finish.binary_byte_offset().is_some() =>
            {
                self.hits.count = 0;
            }
            _ => {}
        }
        Ok(())
    }
}
