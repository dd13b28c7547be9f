//! Stores one hash for each line of a text, and finds later which lines changed.
//!
//! The hashes of a content are the same in every process, and for every division of the content into blocks. Memory
//! is bounded: a text with too many lines or bytes has no hashes.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use similar::DiffOp;

use crate::diff::{common_prefix_len, common_suffix_len};
use crate::edit_script::edit_script;
use crate::long_line::{LineLimits, ShownLine};
use crate::{Charset, Encoding};

/// The maximum number of lines and bytes of a text with hashes. Source files have fewer. The hashes take at most 256
/// KiB.
const MAX_LINES: usize = 65_536;
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// The maximum number of shown characters of a line.
const MAX_LINE_CHARS: usize = 300;
/// After this time the comparison still finds every change, but may name more lines than changed.
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
        if text.len() > MAX_LINES && memchr::memchr_iter(b'\n', text).count() > MAX_LINES {
            return None;
        }
        let mut hasher = LineHasher::default();
        hasher.update(text);
        hasher.finish()
    }

    /// The hashes of a changed text, from the hashes of the text before. Only the lines that differ are hashed.
    /// Returns `None` if the text is too large.
    pub fn after_change(&self, before: &[u8], after: &[u8]) -> Option<Self> {
        let lines = |text: &[u8]| memchr::memchr_iter(b'\n', text).count();
        let same = &after[..common_prefix_len(before, after)];
        let start = memchr::memrchr(b'\n', same).map_or(0, |end| end + 1);
        let same = common_suffix_len(&before[start..], &after[start..]);
        let tail = &after[after.len() - same..];
        // Its first line may have changed in the part before it.
        let tail = memchr::memchr(b'\n', tail).map_or(&[][..], |end| &tail[end + 1..]);
        let is_partial = tail.last().is_some_and(|last| *last != b'\n');
        let last = self.count().checked_sub(lines(tail) + usize::from(is_partial))?;
        let changed = Self::of(&after[start..after.len() - tail.len()])?;
        let head = self.0.get(..lines(&after[..start]))?;
        let hashes = [head, &changed.0[..], &self.0[last..]].concat();
        (hashes.len() <= MAX_LINES && after.len() <= MAX_BYTES).then(|| Self(hashes.into()))
    }

    /// The number of lines.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// One hash for each line.
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
    /// The beginning of a line that continues in the next block.
    partial: Vec<u8>,
    bytes: usize,
}

impl LineHasher {
    /// A hasher for a text of about this size. If that is too large, nothing is hashed.
    pub fn for_size(bytes: u64) -> Self {
        let is_too_large = bytes > MAX_BYTES as u64;
        Self { bytes: if is_too_large { usize::MAX } else { 0 }, ..Self::default() }
    }

    /// Adds the next block. Costs nothing once the text is too large.
    pub fn update(&mut self, block: &[u8]) {
        self.bytes = self.bytes.saturating_add(block.len());
        if !self.fits() {
            (self.hashes, self.partial) = (Vec::new(), Vec::new());
            return;
        }
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', block) {
            if self.hashes.len() > MAX_LINES {
                break;
            }
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
        if self.hashes.len() > MAX_LINES {
            self.bytes = usize::MAX;
            return;
        }
        self.partial.extend_from_slice(&block[start..]);
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

/// The hash of a line with its line ending. A collision only hides one changed line, so nobody gains from one.
fn hash(line: &[u8]) -> u32 {
    const KEYS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xE703_7ED1_A0B4_28DB];
    let word = |at: usize| u64::from_le_bytes(line[at..at + 8].try_into().expect("8 bytes"));
    let mixed = |one: u64, other: u64| {
        let product = u128::from(one) * u128::from(other);
        product as u64 ^ (product >> 64) as u64
    };
    let len = line.len();
    let mut state = len as u64 ^ KEYS[0];
    let [one, other] = match len {
        0..8 => [line.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0],
        8..=16 => [word(0), word(len - 8)],
        _ => {
            for at in (0..len - 16).step_by(16) {
                state = mixed(word(at) ^ KEYS[1], word(at + 8) ^ state);
            }
            [word(len - 16), word(len - 8)]
        }
    };
    let state = mixed(one ^ KEYS[1], other ^ state);
    (state ^ state >> 32) as u32
}

/// The lines that changed since a text was hashed, in their new form.
#[derive(Debug)]
pub struct ChangedLines {
    /// The lines with their numbers, and a note on removed lines.
    pub shown: String,
    /// Whether all of them are shown in full.
    pub complete: bool,
}

/// Compares a text with its earlier hashes. Shows the lines that changed, in about `budget` bytes.
///
/// Returns `None` if nothing changed, or if the encoding's line endings are not visible in the bytes.
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
    let changes = edit_script(then.as_slice(), hashes.as_slice(), MAX_SEARCH_TIME);
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

/// The numbers of lines added to and removed from a text.
pub fn line_counts(before: &LineHashes, after: &LineHashes) -> (usize, usize) {
    let (before, after) = without_common_ends(before.as_slice(), after.as_slice());
    // Lines that the other text does not have are never common, and the search takes long for them.
    let (old, new) = (Presence::of(before), Presence::of(after));
    let (old, new) = (new.shared(before), old.shared(after));
    let changes = edit_script(&old, &new, MAX_COUNT_TIME);
    let same = changes.iter().filter(|change| matches!(change, DiffOp::Equal { .. }));
    let same: usize = same.map(|change| change.new_range().len()).sum();
    (after.len() - same, before.len() - same)
}

/// Two sequences without their common beginning and end.
fn without_common_ends<'s>(one: &'s [u32], other: &'s [u32]) -> (&'s [u32], &'s [u32]) {
    let start = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let (one, other) = (&one[start..], &other[start..]);
    let end = one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other);
    let end = end.count();
    (&one[..one.len() - end], &other[..other.len() - end])
}

/// A Bloom filter of a text's line hashes. It may claim to have a hash that it lacks, but never the opposite.
struct Presence(Vec<u64>);

impl Presence {
    /// With 8 to 16 bits for each line, at most one claim in nine is wrong.
    fn of(hashes: &[u32]) -> Self {
        let mut filter = Self(vec![0; (hashes.len() / 8).next_power_of_two()]);
        for hash in hashes {
            let (word, bit) = filter.position(*hash);
            filter.0[word] |= bit;
        }
        filter
    }

    fn position(&self, hash: u32) -> (usize, u64) {
        ((hash >> 6) as usize % self.0.len(), 1 << (hash % 64))
    }

    /// The hashes that this text may have, too.
    fn shared(&self, hashes: &[u32]) -> Vec<u32> {
        let has = |hash: &u32| {
            let (word, bit) = self.position(*hash);
            self.0[word] & bit != 0
        };
        hashes.iter().copied().filter(has).collect()
    }
}

/// Finds lines by ascending numbers.
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

    fn counted(before: &str, after: &str) -> (usize, usize) {
        let [before, after] = [before, after].map(|text| LineHashes::of(text.as_bytes()).unwrap());
        line_counts(&before, &after)
    }

    #[test]
    fn lines_that_came_and_went_are_counted() {
        for (before, after, counts) in
            [("a\nb\nc\n", "a\nB\nc\nd\n", (2, 1)), ("", "a\n", (1, 0)), ("a\nb\n", "", (0, 2))]
        {
            assert_eq!(counted(before, after), counts);
        }
        // Without a common line there is nothing to search for, however long the texts are.
        let [before, after] = ["old\n", "new\n"].map(|line| line.repeat(MAX_LINES));
        assert_eq!(counted(&before, &after), (MAX_LINES, MAX_LINES));
    }

    #[test]
    fn a_text_that_is_too_large_has_no_hashes() {
        assert!(LineHashes::of(&vec![b'\n'; MAX_LINES]).is_some());
        assert!(LineHashes::of(&vec![b'\n'; MAX_LINES + 1]).is_none());
        assert!(LineHashes::of(&vec![b'x'; MAX_BYTES + 1]).is_none());
    }

    #[test]
    fn every_byte_of_a_line_counts() {
        for len in 1..70 {
            let line = vec![b'x'; len];
            for at in 0..len {
                let mut other = line.clone();
                other[at] = b'y';
                assert_ne!(hash(&line), hash(&other), "{at} of {len}");
            }
            assert_ne!(hash(&line), hash(&line[1..]), "{len}");
        }
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
        fn hashes_after_a_change_are_those_of_the_text(
            head in "[ab\n]{0,20}", old in "[ab\n]{0,9}", new in "[ab\n]{0,9}", tail in "[ab\n]{0,20}",
        ) {
            let [before, after] = [old, new].map(|middle| format!("{head}{middle}{tail}"));
            let known = LineHashes::of(before.as_bytes()).unwrap();
            let changed = known.after_change(before.as_bytes(), after.as_bytes());
            proptest::prop_assert_eq!(changed, LineHashes::of(after.as_bytes()));
        }

        #[test]
        fn lines_are_counted_as_the_shortest_script_has_them(
            before in "([a-f]\n){0,40}", after in "([d-i]\n){0,40}",
        ) {
            let [old, new] = [&before, &after].map(|text| LineHashes::of(text.as_bytes()).unwrap());
            let script = edit_script(old.as_slice(), new.as_slice(), MAX_SEARCH_TIME);
            let changed = script.iter().filter(|change| !matches!(change, DiffOp::Equal { .. }));
            let whole = changed.fold((0, 0), |(came, went), change| {
                (came + change.new_range().len(), went + change.old_range().len())
            });
            proptest::prop_assert_eq!(line_counts(&old, &new), whole);
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
