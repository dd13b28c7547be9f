//! Shows the lines of a file around the nearest region, within a budget.
//!
//! If a few lines of context suffice, the shown lines are unique in the file, so that an edit which copies them finds
//! them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

use memchr::memmem;

use super::{INFALLIBLE, line_end, line_number, line_start, mark_whitespace};

/// The maximum number of shown lines and bytes of the region. With the reasons, that is less than 4 KB.
const MAX_SHOWN_LINES: usize = 60;
pub(super) const MAX_SHOWN_BYTES: usize = 2_400;
/// How many bytes of a longer line are shown.
const LONG_LINE_BYTES: usize = 600;
/// The maximum number of context lines that are added to make the excerpt unique.
const MAX_CONTEXT: usize = 20;

/// The lines of the file in the explanation.
pub(super) struct Excerpt {
    range: Range<usize>,
    /// The number of lines of the region that are not shown.
    more: usize,
}

impl Excerpt {
    pub(super) fn new(
        file: &str,
        region: Range<usize>,
        context: (usize, usize),
        focus: usize,
    ) -> Self {
        let mut range = line_start(file, region.start)..line_end(file, region.end);
        for _ in 0..context.0 {
            range.start = line_start(file, range.start.saturating_sub(1));
        }
        for _ in 0..context.1 {
            range.end = line_end(file, (range.end + 1).min(file.len()));
        }
        let whole = range.end;
        if !fits(&file[range.clone()]) {
            let start = line_start(file, region.start);
            range = if fits(&file[start..line_end(file, region.end)]) {
                start..line_end(file, region.end)
            } else if fits(&file[region.clone()]) {
                region.clone()
            } else if line_end(file, start) - start > MAX_SHOWN_BYTES {
                // A part of a long line, starting where the text begins in it.
                let end = line_end(file, start).min(focus + LONG_LINE_BYTES);
                focus..file.floor_char_boundary(end)
            } else {
                start..beginning(file, start, line_end(file, region.end))
            };
        }
        let more = if range.end < region.end {
            memchr::memchr_iter(b'\n', &file.as_bytes()[range.end..whole]).count()
        } else {
            0
        };
        Self { range: unique(file, range), more }
    }

    pub(super) fn write(
        &self,
        file: &str,
        marked: &BTreeSet<usize>,
        more_lines: usize,
        out: &mut String,
    ) {
        let shown = &file[self.range.clone()];
        let first = line_number(file, self.range.start);
        let column = file[line_start(file, self.range.start)..self.range.start].chars().count();
        match column {
            0 => writeln!(out, "nearest is line {first}:"),
            _ => writeln!(out, "nearest is line {first}, from its character {} on:", column + 1),
        }
        .expect(INFALLIBLE);
        let literal = shown.contains(['\u{b7}', '\u{2192}']);
        for (number, line) in (first..).zip(shown.split('\n')) {
            let line =
                if marked.contains(&number) && !literal { visible(line) } else { line.to_owned() };
            writeln!(out, "{number:>6}\t{line}").expect(INFALLIBLE);
        }
        if literal {
            writeln!(out, "(\u{b7} and \u{2192} are in the file as they are shown)")
                .expect(INFALLIBLE);
        }
        if self.more + more_lines > 0 {
            writeln!(out, "(and {} more lines)", self.more + more_lines).expect(INFALLIBLE);
        }
    }
}

/// Makes the spaces and tabs of a line visible, except single spaces between other characters.
fn visible(line: &str) -> String {
    let content = line.trim_matches([' ', '\t']);
    if content.is_empty() {
        return mark_whitespace(line);
    }
    let start = line.len() - line.trim_start_matches([' ', '\t']).len();
    let end = start + content.len();
    let mut inner = content.replace('\t', "\u{2192}");
    if inner.contains("  ") {
        inner = inner.replace(' ', "\u{b7}");
    }
    format!("{}{inner}{}", mark_whitespace(&line[..start]), mark_whitespace(&line[end..]))
}

fn fits(text: &str) -> bool {
    text.len() <= MAX_SHOWN_BYTES
        && memchr::memchr_iter(b'\n', text.as_bytes()).count() < MAX_SHOWN_LINES
}

/// The end of the lines from `start` on that fit into the budget.
fn beginning(file: &str, start: usize, end: usize) -> usize {
    let mut at = line_end(file, start);
    while at < end {
        let next = line_end(file, at + 1);
        if !fits(&file[start..next]) {
            break;
        }
        at = next;
    }
    at
}

/// Adds lines of context until the range is unique, if a few are enough.
fn unique(file: &str, range: Range<usize>) -> Range<usize> {
    let occurs_once = |range: &Range<usize>| {
        let needle = memmem::Finder::new(file[range.clone()].as_bytes());
        let first = needle.find(file.as_bytes());
        let again = |at: usize| needle.find(&file.as_bytes()[at + 1..]);
        range.is_empty() || first.and_then(again).is_none()
    };
    let mut wider = range.clone();
    for round in 0..MAX_CONTEXT {
        if occurs_once(&wider) {
            return wider;
        }
        let below = line_end(file, (wider.end + 1).min(file.len()));
        let above = line_start(file, wider.start.saturating_sub(1));
        if round % 2 == 0 && below > wider.end || above == wider.start {
            wider.end = below;
        } else {
            wider.start = above;
        }
        if !fits(&file[wider.clone()]) {
            break;
        }
    }
    if occurs_once(&wider) && fits(&file[wider.clone()]) { wider } else { range }
}
