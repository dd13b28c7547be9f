//! Finds the text that an edit replaces.
//!
//! The exact text is tried first, with line endings folded on both sides. Lenient matches are tried only if it does
//! not occur at all, so a file that contains `old` is never edited anywhere else. There are two kinds of lenient
//! matches, both of whole lines. Similarity never finds a place.

use memchr::memmem;

use crate::indent::{Shift, indentation};

/// How the text was matched, from the strictest kind to the most lenient.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum MatchKind {
    /// The exact text.
    Exact,
    /// The same text with other line endings.
    LineEndings,
    /// Whole lines, ignoring trailing whitespace.
    TrailingWhitespace,
    /// Whole lines, with the same shift of indentation on each line.
    Indentation,
}

impl MatchKind {
    /// The name that tools report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::LineEndings => "line_endings",
            Self::TrailingWhitespace => "trailing_blanks",
            Self::Indentation => "indentation",
        }
    }
}

/// How an edit finds the text that it replaces.
#[derive(Clone, Copy, Debug, serde::Deserialize, Eq, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub enum MatchMode {
    /// The exact text, else whole lines ignoring trailing whitespace, else whole lines with another indentation. A
    /// replacement of all occurrences replaces exact ones only.
    Lenient,
    /// The exact text, with any line endings.
    Exact,
}

/// A place in the text where `old` matches.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Occurrence {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The shift of indentation for the new text.
    pub(crate) shift: Option<Shift>,
}

/// The places where `old` matches.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Occurrences {
    /// The first places, or all of them if they are to be replaced.
    pub(crate) found: Vec<Occurrence>,
    /// The number of places.
    pub(crate) count: usize,
    /// Whether there may be more than `count`. If so, there are at least two.
    pub(crate) or_more: bool,
}

/// The maximum number of occurrences whose lines are named.
pub(crate) const MAX_NAMED: usize = 20;

/// The maximum number of compared bytes. After that, a lenient match is given up, and occurrences of a large text are
/// counted in another way. It is enough for any file that people edit.
const MAX_WORK: usize = 200_000_000;
/// The cost of a line, in addition to its bytes.
const LINE_WORK: usize = 40;

/// The first exact occurrences of `old` in `text`, and their number. Overlapping ones count.
pub(crate) fn exact(text: &str, old: &str) -> Occurrences {
    let finder = memmem::Finder::new(old.as_bytes());
    let mut all = Occurrences::default();
    let mut from = 0;
    while let Some(at) = finder.find(&text.as_bytes()[from..]) {
        let start = from + at;
        // Each search starts from the last match, which takes quadratic time for a large text that repeats itself.
        if all.count > 1 && all.count.saturating_mul(old.len()) > MAX_WORK {
            all.count += count_overlapping(&text.as_bytes()[start..], old.as_bytes());
            break;
        }
        all.count += 1;
        if all.found.len() < MAX_NAMED {
            all.found.push(Occurrence { start, end: start + old.len(), shift: None });
        }
        from = start + text[start..].chars().next().map_or(1, char::len_utf8);
    }
    all
}

/// The number of occurrences of `old`, including overlapping ones, in linear time (Knuth, Morris and Pratt).
fn count_overlapping(text: &[u8], old: &[u8]) -> usize {
    // For each prefix of `old`, the length of its longest proper prefix that is also its suffix.
    let mut borders = vec![0_u32; old.len()];
    let mut matched = 0;
    for at in 1..old.len() {
        while matched > 0 && old[at] != old[matched] {
            matched = borders[matched - 1] as usize;
        }
        matched += usize::from(old[at] == old[matched]);
        borders[at] = u32::try_from(matched).unwrap_or(0);
    }
    let (mut count, mut matched) = (0, 0);
    for byte in text {
        while matched > 0 && *byte != old[matched] {
            matched = borders[matched - 1] as usize;
        }
        matched += usize::from(*byte == old[matched]);
        if matched == old.len() {
            count += 1;
            matched = borders[matched - 1] as usize;
        }
    }
    count
}

/// The exact occurrences of `old` from left to right, without overlaps, and their number. If there are more than can
/// be replaced, only the first ones are returned.
pub(crate) fn disjoint(text: &str, old: &str) -> Occurrences {
    let found = |start| Occurrence { start, end: start + old.len(), shift: None };
    let mut places = memmem::find_iter(text.as_bytes(), old);
    let found: Vec<_> = places.by_ref().take(MAX_REPLACEMENTS).map(found).collect();
    let count = found.len() + places.count();
    Occurrences { found, count, or_more: false }
}

/// The maximum number of occurrences that one edit replaces. Each takes memory meanwhile.
pub const MAX_REPLACEMENTS: usize = 200_000;

/// The places where whole lines match `old`, by the first kind of lenient match that finds any. Returns `None` if
/// none does, or if the search was given up.
pub(crate) fn lenient(text: &str, old: &str, new: &str) -> Option<(MatchKind, Occurrences)> {
    let pattern = LinePattern::new(old, new)?;
    for match_kind in [MatchKind::TrailingWhitespace, MatchKind::Indentation] {
        let places = pattern.find(text, match_kind)?;
        if !places.found.is_empty() {
            return Some((match_kind, places));
        }
    }
    None
}

/// Whole lines to find.
struct LinePattern<'o> {
    lines: Vec<&'o str>,
    new: &'o str,
    /// Whether the pattern includes the last line's ending.
    includes_last_newline: bool,
    /// The line that is searched for first: the first of the longest, since few other lines contain it.
    anchor: usize,
}

impl<'o> LinePattern<'o> {
    /// Returns `None` if the text has only whitespace, which could match anywhere.
    fn new(old: &'o str, new: &'o str) -> Option<Self> {
        let includes_last_newline = old.ends_with('\n');
        let lines: Vec<_> = old.strip_suffix('\n').unwrap_or(old).split('\n').collect();
        let by_length = lines.iter().enumerate().rev();
        let (anchor, longest) =
            by_length.max_by_key(|(_, line)| line.trim_matches(WHITESPACE).len())?;
        if longest.trim_matches(WHITESPACE).is_empty() {
            return None;
        }
        Some(Self { lines, new, includes_last_newline, anchor })
    }

    /// The places for one kind of match. Returns `None` if the search was given up, so that it is unknown whether a
    /// match is unique.
    fn find(&self, text: &str, match_kind: MatchKind) -> Option<Occurrences> {
        let anchor = self.lines[self.anchor].trim_matches(WHITESPACE);
        let mut all = Occurrences::default();
        let (mut work, mut last) = (0, None);
        for at in memmem::find_iter(text.as_bytes(), anchor) {
            if let Some(start) = self.first_line(text, at, anchor.len(), &mut work)
                && let Some(place) = self.match_at(text, start, match_kind, &mut work)
                && last != Some(place.start)
            {
                last = Some(place.start);
                all.count += 1;
                if all.found.len() < MAX_NAMED {
                    all.found.push(place);
                }
            }
            if work > MAX_WORK {
                all.or_more = true;
                return (all.count > 1).then_some(all);
            }
        }
        Some(all)
    }

    /// The start of the first line, if the anchor is at `at` and fills its line there.
    fn first_line(&self, text: &str, at: usize, len: usize, work: &mut usize) -> Option<usize> {
        let bytes = text.as_bytes();
        let blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
        let indent = bytes[..at].iter().rev().take_while(blank).count();
        let mut start = at - indent;
        let begins = start == 0 || bytes[start - 1] == b'\n';
        let after = bytes[at + len..].iter().find(|byte| !blank(byte));
        if !begins || after.is_some_and(|after| *after != b'\n') {
            return None;
        }
        for _ in 0..self.anchor {
            let above = start.checked_sub(1)?;
            start = memchr::memrchr(b'\n', &bytes[..above]).map_or(0, |lf| lf + 1);
            *work += above - start + LINE_WORK;
        }
        Some(start)
    }

    /// Compares the lines of the file from `start` on with those of the pattern.
    fn match_at(
        &self,
        text: &str,
        start: usize,
        match_kind: MatchKind,
        work: &mut usize,
    ) -> Option<Occurrence> {
        let mut end = start;
        let mut pairs = Vec::new();
        for (number, old) in self.lines.iter().enumerate() {
            if number > 0 {
                // Skips the line ending.
                end += 1;
            }
            let rest = text.get(end..)?;
            let line = &rest[..memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len())];
            *work += line.len() + LINE_WORK;
            let fits = match match_kind {
                MatchKind::TrailingWhitespace => {
                    line.trim_end_matches(WHITESPACE) == old.trim_end_matches(WHITESPACE)
                }
                _ => {
                    let [(_, line), (_, old)] = [line, old].map(indentation);
                    line == old
                }
            };
            if !fits {
                return None;
            }
            pairs.push((*old, line));
            end += line.len();
            let more = number + 1 < self.lines.len() || self.includes_last_newline;
            if more && text.as_bytes().get(end) != Some(&b'\n') {
                return None;
            }
        }
        let shift = match match_kind {
            MatchKind::Indentation => {
                *work += self.new.len();
                Some(Shift::between(&pairs, self.new, text)?)
            }
            _ => None,
        };
        Some(Occurrence { start, end: end + usize::from(self.includes_last_newline), shift })
    }
}

pub(crate) const WHITESPACE: [char; 2] = [' ', '\t'];

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(places: &Occurrences) -> Vec<usize> {
        places.found.iter().map(|found| found.start).collect()
    }

    #[test]
    fn overlapping_occurrences_count() {
        assert_eq!(starts(&exact("aaa", "aa")), [0, 1]);
        assert_eq!(starts(&disjoint("aaaa", "aa")), [0, 2]);
        assert_eq!(starts(&exact("\u{e9}\u{e9}\u{e9}", "\u{e9}\u{e9}")), [0, 2]);
    }

    #[test]
    fn lenient_matches_are_of_whole_lines() {
        for (text, old, match_kind) in [
            ("a  \nb\n", "a\nb\n", Some(MatchKind::TrailingWhitespace)),
            ("a\nb\n", "a \nb\t\n", Some(MatchKind::TrailingWhitespace)),
            ("x = 10\n", "x = 1", None),
            ("  x = 1 # c\n", "x = 1", None),
            ("    a\n    b\n", "a\nb", Some(MatchKind::Indentation)),
            ("a\nb\n", "    a\n    b", Some(MatchKind::Indentation)),
            ("    a\n  b\n", "a\nb", None),
            ("x=1\n", "x = 1", None),
            ("   \n\t\n", " \n", None),
            ("\n\n", "   ", None),
            ("a \n", "  a", None),
        ] {
            assert_eq!(
                lenient(text, old, "").map(|(match_kind, _)| match_kind),
                match_kind,
                "{text:?} {old:?}"
            );
        }
    }

    #[test]
    fn an_end_that_is_asked_for_must_be_there() {
        assert_eq!(lenient("a ", "a\n", ""), None);
        let place = |old| lenient("x\na \n", old, "").unwrap().1.found.remove(0);
        assert_eq!((place("a\n").start, place("a\n").end), (2, 5));
        assert_eq!((place("a").start, place("a").end), (2, 4));
    }

    #[test]
    fn work_ends_with_what_is_known() {
        // Without a limit, each of these would take minutes.
        let text = "a".repeat(20_000_000);
        let places = exact(&text, &text[..10_000_000]);
        assert_eq!((places.count, places.or_more), (10_000_001, false));
        // A unique occurrence is found, however large it is.
        let places = exact(&text, &text);
        assert_eq!((starts(&places), places.or_more), (vec![0], false));
        let lines = "  aaaa\n".repeat(200_000);
        let old = "aaaa\n".repeat(100_000);
        let (match_kind, places) = lenient(&lines, &old, "").unwrap();
        assert_eq!((match_kind, places.or_more), (MatchKind::Indentation, true));
        assert!(places.found.len() > 1);
        // The anchor is far below the first line, which would be before the beginning of the file.
        assert_eq!(lenient(&lines, &old.replacen("aaaa", "a", 50_000), ""), None);
        // The search was given up, so it is unknown whether the text occurs.
        assert_eq!(lenient(&lines, &(old + "b\n"), ""), None);
    }

    proptest::proptest! {
        #[test]
        fn both_ways_to_count_agree(text in "[ab]{0,40}", old in "[ab]{1,4}") {
            let count = count_overlapping(text.as_bytes(), old.as_bytes());
            proptest::prop_assert_eq!(exact(&text, &old).count, count);
        }
    }

    #[test]
    fn every_place_is_found() {
        let (_, places) = lenient("  a\n  b\n\n    a\n    b\n", "a\nb\n", "").unwrap();
        assert_eq!(starts(&places), [0, 9]);
        let (_, places) = lenient("  a\n  a\n  a\n", "a\na", "").unwrap();
        assert_eq!(starts(&places), [0, 4]);
    }
}
