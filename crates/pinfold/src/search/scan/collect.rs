//! Collects the matches that the searcher finds in one file: their count, and the lines to keep.
//!
//! When the memory for lines is used up, matches are still counted, so the count is always exact.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use grep_matcher::Matcher as _;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};

use super::{BinaryNote, FileMatches, FoundBy, KeepLines, Line, Role, Scan, ScanMode};
use crate::search::bounded::BoundedMatcher;
use crate::search::page::around;

impl Scan<'_> {
    fn new_lines(&self) -> Option<Vec<Line>> {
        let keeps = match self.keep {
            KeepLines::All(bytes_left) => bytes_left.load(Ordering::Relaxed) > 0,
            KeepLines::Window { .. } => true,
        };
        (keeps && matches!(self.mode, ScanMode::Lines { .. })).then(Vec::new)
    }

    fn first_kept(&self) -> u64 {
        match (self.keep, self.mode) {
            // Matches before the window can be context lines of matches in the window.
            (KeepLines::Window { from, .. }, ScanMode::Lines { before, .. }) => {
                from.saturating_sub(before as u64)
            }
            _ => 0,
        }
    }
}

/// Collects the matches in one file.
pub(super) struct Collector<'c> {
    scan: &'c Scan<'c>,
    matcher: &'c BoundedMatcher<'c>,
    /// Whether the search ends at the first NUL byte.
    quits: bool,
    hits: FileMatches,
    /// The lines; `None` if there were too many.
    lines: Option<Vec<Line>>,
    binary: Option<u64>,
    /// The number of matches so far. The deadline is checked at every 512th.
    matches_seen: usize,
    /// How many bytes of lines are kept.
    kept: usize,
    /// The line of the last counted match.
    last_match: u64,
}

impl<'c> Collector<'c> {
    pub(super) fn new(
        scan: &'c Scan<'c>,
        matcher: &'c BoundedMatcher<'c>,
        found_by: FoundBy,
    ) -> Self {
        Self {
            scan,
            matcher,
            quits: found_by == FoundBy::Walk,
            hits: FileMatches { first: scan.first_kept(), ..FileMatches::default() },
            lines: scan.new_lines(),
            binary: None,
            matches_seen: 0,
            kept: 0,
            last_match: 0,
        }
    }

    /// Whether the file has reached its maximum number of matches.
    fn is_full(&self) -> bool {
        self.scan.max_matches.is_some_and(|max| self.hits.count >= max)
    }

    /// Whether a line is context after the last counted match.
    fn is_after_last(&self, number: Option<u64>) -> bool {
        let ScanMode::Lines { after, .. } = self.scan.mode else { return false };
        number.is_some_and(|number| number <= self.last_match.saturating_add(after as u64))
    }

    /// The matches so far.
    pub(super) fn into_matches(self) -> FileMatches {
        FileMatches { lines: self.lines.map(Arc::new), ..self.hits }
    }

    /// Whether to keep the line of this match, or a context line before it.
    fn keeps(&self, number: u64) -> bool {
        let KeepLines::Window { to, bytes, .. } = self.scan.keep else { return true };
        let ScanMode::Lines { after, .. } = self.scan.mode else { return false };
        let last = to.saturating_add(after as u64);
        (self.hits.first..=last).contains(&number) && self.kept <= bytes
    }

    fn keep(&mut self, number: Option<u64>, text: &[u8], role: Role) {
        let Some(lines) = &mut self.lines else { return };
        let text = match role {
            Role::Context => around(text, 0, self.scan.max_line_chars),
            _ => {
                let body = text.strip_suffix(b"\n").unwrap_or(text);
                // Only a line that is cut has to be searched again, to find the start of its match.
                let start = if body.len() > self.scan.max_line_chars {
                    self.matcher.find(body).ok().flatten().map_or(0, |found| found.start())
                } else {
                    0
                };
                around(text, start, self.scan.max_line_chars)
            }
        };
        /// The memory of a line besides its text.
        const OVERHEAD: usize = size_of::<Line>();
        let size = text.len() + OVERHEAD;
        let has_room = match self.scan.keep {
            KeepLines::Window { .. } => true,
            KeepLines::All(bytes_left) => {
                let enough = |left: usize| left.checked_sub(size);
                let had = bytes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enough);
                had.map_err(|_| bytes_left.store(0, Ordering::Relaxed)).is_ok()
            }
        };
        if has_room {
            self.kept += text.len();
            lines.push(Line { number: number.unwrap_or(0), text, role });
        } else {
            // From here on, matches are only counted, in this file and in all later ones.
            self.lines = None;
        }
    }

    fn check_time(&mut self) -> io::Result<()> {
        self.matches_seen += 1;
        if self.matches_seen.is_multiple_of(512) && self.scan.deadline.has_passed() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    /// The number of matches in a reported match, which may span several lines.
    fn count(&self, found: &SinkMatch<'_>) -> io::Result<u64> {
        /// How many bytes after its lines ripgrep lets a match read.
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
        match self.scan.mode {
            ScanMode::Files => {
                self.hits.count = 1;
                return Ok(false);
            }
            ScanMode::Count => {
                let multi_line = searcher.multi_line_with_matcher(self.matcher);
                self.hits.count += if multi_line { self.count(found)? } else { 1 };
                if self.is_full() {
                    self.hits.count = self.scan.max_matches.unwrap_or(self.hits.count);
                    return Ok(false);
                }
            }
            ScanMode::Lines { .. } => {
                if !self.quits && self.binary.is_some() {
                    // A binary file is only reported as matching.
                    self.hits.count += 1;
                    return Ok(false);
                }
                for (line, number) in found.lines().zip(found.line_number().unwrap_or(1)..) {
                    if self.is_full() {
                        if !self.is_after_last(Some(number)) {
                            return Ok(false);
                        }
                        if self.keeps(self.hits.count) {
                            self.keep(Some(number), line, Role::Context);
                        }
                        continue;
                    }
                    if self.keeps(self.hits.count) {
                        self.keep(Some(number), line, Role::Match);
                    }
                    self.hits.count += 1;
                    self.last_match = number;
                }
            }
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        if !self.quits && self.binary.is_some() {
            return Ok(false);
        }
        if self.is_full() && !self.is_after_last(line.line_number()) {
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
        match self.scan.mode {
            ScanMode::Lines { .. } if self.hits.count > 0 => {
                self.hits.note = self.binary.map(if self.quits {
                    BinaryNote::Stopped
                } else {
                    BinaryNote::Matches
                });
            }
            // Matches before the NUL byte do not count.
            ScanMode::Files | ScanMode::Count
                if self.quits && finish.binary_byte_offset().is_some() =>
            {
                self.hits.count = 0;
            }
            _ => {}
        }
        Ok(())
    }
}
