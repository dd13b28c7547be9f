//! Remembers a text as one hash for each line, and tells later which lines changed.
//!
//! Hashes of one content are equal in every process and however the content was cut into blocks. Memory is bounded: a
//! text with too many lines or bytes has no hashes.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use crate::long_line::{LineLimits, ShownLine};
use crate::{Charset, Encoding};

/// Lines and bytes of a text that has hashes: more than source files have, and 256 KiB of memory at the most.
const MAX_LINES: usize = 65_536;
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Characters that are shown of a line.
const MAX_LINE_CHARS: usize = 300;
/// After this time the comparison still finds every change, but maybe names more lines than changed.
const MAX_SEARCH_TIME: Duration = Duration::from_millis(200);
/// The same for counting, which is part of every write.
const MAX_COUNT_TIME: Duration = Duration::from_millis(20);

const INFALLIBLE: &str = "a String takes anything";

/// The hash of every line of a text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LineHashes(Arc<[u32]>);

impl LineHashes {
    /// The hashes of a whole text. `None` if it is too large.
    pub fn of(text: &[u8]) -> Option<Self> {
        let mut hasher = LineHasher::default();
        hasher.update(text);
        hasher.finish()
    }

    /// The number of lines.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// One number for each line.
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }
}

impl FromIterator<u32> for LineHashes {
    fn from_iter<I: IntoIterator<Item = u32>>(hashes: I) -> Self {
        Self(hashes.into_iter().collect())
    }
}

/// Hashes the lines of a text that arrives in blocks.
#[derive(Debug, Default)]
pub struct LineHasher {
    hashes: Vec<u32>,
    /// The beginning of a line that the next block continues.
    partial: Vec<u8>,
    bytes: usize,
}

impl LineHasher {
    /// Takes the next block. Costs nothing once the text is too large.
    pub fn update(&mut self, block: &[u8]) {
        self.bytes = self.bytes.saturating_add(block.len());
        if !self.fits() {
            (self.hashes, self.partial) = (Vec::new(), Vec::new());
            return;
        }
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', block) {
            let line = &block[start..=end];
            start = end + 1;
            if self.partial.is_empty() {
                self.hashes.push(hash(line));
            } else {
                self.partial.extend_from_slice(line);
                self.hashes.push(hash(&self.partial));
                self.partial.clear();
            }
        }
        self.partial.extend_from_slice(&block[start..]);
        if self.hashes.len() > MAX_LINES {
            self.bytes = usize::MAX;
        }
    }

    /// The hashes of all lines. `None` if the text is too large.
    pub fn finish(mut self) -> Option<LineHashes> {
        if !self.fits() {
            return None;
        }
        if !self.partial.is_empty() {
            self.hashes.push(hash(&self.partial));
        }
        Some(LineHashes(self.hashes.into()))
    }

    fn fits(&self) -> bool {
        self.bytes <= MAX_BYTES
    }
}

/// The hash of a line with its line ending. Nobody gains from a collision: it leaves one changed line out.
fn hash(line: &[u8]) -> u32 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let (words, rest) = line.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mut state = line.len() as u64;
    for word in words.iter().chain([&last]) {
        state = (state ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
        state ^= state >> 32;
    }
    state as u32
}

/// The lines that changed since a text was hashed, as they are now.
#[derive(Debug)]
pub struct ChangedLines {
    /// The lines with their numbers, and a note on lines that are gone.
    pub shown: String,
    /// Whether all of them are shown in full.
    pub complete: bool,
}

/// Compares a text with its hashes of some time before. Shows the lines that changed, in about `budget` bytes.
///
/// `None` if nothing changed, or the line endings of the encoding are not visible in the bytes.
pub fn changed_lines(
    then: &LineHashes,
    now: &[u8],
    encoding: Encoding,
    budget: usize,
) -> Option<ChangedLines> {
    if !matches!(encoding.charset, Charset::Utf8 | Charset::Legacy(_)) {
        return None;
    }
    let hashes = LineHashes::of(now)?;
    let (old, new) = (then.as_slice(), hashes.as_slice());
    let deadline = Some(Instant::now() + MAX_SEARCH_TIME);
    let changes = capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline);
    let mut lines = Numbered { lines: now.split_inclusive(|byte| *byte == b'\n'), next: 0 };
    let (mut shown, mut complete, mut left_out) = (String::new(), true, 0);
    for change in changes.iter().filter(|change| !matches!(change, DiffOp::Equal { .. })) {
        let (gone, range) = (change.old_range().len(), change.new_range());
        if range.is_empty() && shown.len() < budget {
            let what = if gone == 1 { "1 line is".into() } else { format!("{gone} lines are") };
            let place = match range.start {
                0 => "at the start".into(),
                line => format!("after line {line}"),
            };
            writeln!(shown, "({what} gone {place})").expect(INFALLIBLE);
        }
        for number in range {
            if shown.len() >= budget {
                left_out += 1;
                continue;
            }
            let line = lines.get(number);
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let line = ShownLine::of(line, &encoding, LineLimits::chars(MAX_LINE_CHARS));
            complete &= line.cut_chars == 0;
            writeln!(shown, "{:>6}\t{}", number + 1, line.into_text()).expect(INFALLIBLE);
        }
    }
    if left_out > 0 {
        let what = if left_out == 1 { "line" } else { "lines" };
        writeln!(shown, "(and {left_out} more {what})").expect(INFALLIBLE);
    }
    shown.truncate(shown.trim_end_matches('\n').len());
    (!shown.is_empty()).then_some(ChangedLines { shown, complete: complete && left_out == 0 })
}

/// How many lines came and how many went from one text to another. `None` if one is too large.
pub fn line_counts(before: &[u8], after: &[u8]) -> Option<(usize, usize)> {
    let (before, after) = (LineHashes::of(before)?, LineHashes::of(after)?);
    let deadline = Some(Instant::now() + MAX_COUNT_TIME);
    let changes = capture_diff_slices_deadline(
        Algorithm::Myers,
        before.as_slice(),
        after.as_slice(),
        deadline,
    );
    let changed = changes.iter().filter(|change| !matches!(change, DiffOp::Equal { .. }));
    Some(changed.fold((0, 0), |(came, went), change| {
        (came + change.new_range().len(), went + change.old_range().len())
    }))
}

/// Finds lines by their numbers, which only grow.
struct Numbered<'t, I: Iterator<Item = &'t [u8]>> {
    lines: I,
    next: usize,
}

impl<'t, I: Iterator<Item = &'t [u8]>> Numbered<'t, I> {
    fn get(&mut self, number: usize) -> &'t [u8] {
        let line = self.lines.nth(number - self.next).unwrap_or_default();
        self.next = number + 1;
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(then: &str, now: &str, budget: usize) -> Option<(String, bool)> {
        let then = LineHashes::of(then.as_bytes()).unwrap();
        let changed = changed_lines(&then, now.as_bytes(), Encoding::UTF_8, budget)?;
        Some((changed.shown, changed.complete))
    }

    #[test]
    fn the_changed_lines_are_shown_as_they_are_now() {
        let then = "one\ntwo\nthree\nfour\nfive\n";
        for (now, shown) in [
            ("one\n2\nthree\nfour\nfive\n", "     2\t2"),
            ("zero\none\ntwo\nthree\nfour\nV\n", "     1\tzero\n     6\tV"),
            ("one\ntwo\nfive\n", "(2 lines are gone after line 2)"),
            ("two\nthree\nfour\nfive\n", "(1 line is gone at the start)"),
            ("one\r\ntwo\nthree\nfour\nfive\n", "     1\tone"),
            ("one\ntwo\nthree\nfour\nfive", "     5\tfive"),
        ] {
            assert_eq!(changed(then, now, 1000), Some((shown.into(), true)), "{now:?}");
        }
        assert_eq!(changed(then, then, 1000), None);
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let now = "changed\n".repeat(100);
        let (shown, complete) = changed("one\n", &now, 60).unwrap();
        assert!(!complete && shown.len() < 120, "{shown}");
        assert!(shown.ends_with("(and 96 more lines)"), "{shown}");
        let long = "x".repeat(MAX_LINE_CHARS + 7);
        let (shown, complete) = changed("one\n", &long, 1000).unwrap();
        assert!(!complete && shown.ends_with("x... [+7 characters]"), "{shown}");
    }

    #[test]
    fn lines_that_came_and_went_are_counted() {
        for (before, after, counts) in
            [("a\nb\nc\n", "a\nB\nc\nd\n", (2, 1)), ("", "a\n", (1, 0)), ("a\nb\n", "", (0, 2))]
        {
            assert_eq!(line_counts(before.as_bytes(), after.as_bytes()), Some(counts));
        }
    }

    #[test]
    fn a_text_that_is_too_large_has_no_hashes() {
        assert!(LineHashes::of(&vec![b'\n'; MAX_LINES]).is_some());
        assert!(LineHashes::of(&vec![b'\n'; MAX_LINES + 1]).is_none());
        assert!(LineHashes::of(&vec![b'x'; MAX_BYTES + 1]).is_none());
    }

    proptest::proptest! {
        #[test]
        fn blocks_do_not_matter(text in "[ab\n]{0,60}", at in 0usize..60) {
            let at = at.min(text.len());
            let mut hasher = LineHasher::default();
            hasher.update(&text.as_bytes()[..at]);
            hasher.update(&text.as_bytes()[at..]);
            proptest::prop_assert_eq!(hasher.finish(), LineHashes::of(text.as_bytes()));
        }

        #[test]
        fn every_new_line_is_shown(then in "[a-c\n]{0,30}", now in "[a-e\n]{0,30}") {
            let shown = changed(&then, &now, usize::MAX).map(|(shown, _)| shown).unwrap_or_default();
            for (number, line) in now.split_inclusive('\n').enumerate() {
                if !then.split_inclusive('\n').any(|old| old == line) {
                    let wanted = format!("{:>6}\t{}", number + 1, line.trim_end_matches('\n'));
                    proptest::prop_assert!(shown.lines().any(|it| it == wanted), "{shown}");
                }
            }
        }
    }
}
