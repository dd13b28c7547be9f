//! Finding the text that an edit wants to replace.
//!
//! The text as it is comes first, with line ends folded on both sides; looser readings only where
//! that is nowhere to be found: a file that holds `old` is never edited anywhere else. There are two
//! looser readings, of whole lines, and nothing beyond them: no similarity ever finds a place.

use memchr::memmem;

use crate::indent::{Shift, indentation};

/// How the text was found, from the strictest reading to the loosest.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum MatchKind {
    /// Word for word.
    Exact,
    /// With other line ends.
    LineEndings,
    /// Whole lines, but for blanks at their ends.
    TrailingWhitespace,
    /// Whole lines, with the same shift of indentation on each.
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
    /// The exact text, else whole lines ignoring trailing whitespace, else whole lines with another indentation.
    Lenient,
    /// The exact text, whatever its line endings.
    Exact,
}

/// A place in the text where `old` was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// What the new text has to be shifted by.
    pub(crate) shift: Option<Shift>,
}

/// The places where `old` was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Places {
    pub(crate) found: Vec<Found>,
    /// Whether there may be more than were counted. Then there are several.
    pub(crate) or_more: bool,
}

/// Occurrences past this many are no longer counted: nobody wants to be told where they are.
pub(crate) const MAX_COUNTED: usize = 10_000;

/// Bytes that are compared before a looser reading is given up, and before occurrences of a large text
/// are counted no further: enough for any file that people edit.
const MAX_WORK: usize = 200_000_000;
/// What a line costs besides its bytes.
const LINE_WORK: usize = 40;

/// Every place where `old` stands in `text` as it is; overlapping ones count.
pub(crate) fn exact(text: &str, old: &str) -> Places {
    let finder = memmem::Finder::new(old.as_bytes());
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = finder.find(&text.as_bytes()[from..]) {
        let start = from + at;
        found.push(Found { start, end: start + old.len(), shift: None });
        // Two are enough to know that it is not unique.
        let work = found.len().saturating_mul(old.len());
        if found.len() == MAX_COUNTED || found.len() > 1 && work > MAX_WORK {
            return Places { found, or_more: true };
        }
        from = start + text[start..].chars().next().map_or(1, char::len_utf8);
    }
    Places { found, or_more: false }
}

/// The places where `old` stands as it is, from left to right, none within another; one more than
/// can be replaced at the most.
pub(crate) fn disjoint(text: &str, old: &str) -> Places {
    let found = |start| Found { start, end: start + old.len(), shift: None };
    let places = memmem::find_iter(text.as_bytes(), old).take(MAX_REPLACED + 1);
    let found: Vec<_> = places.map(found).collect();
    let or_more = found.len() > MAX_REPLACED;
    Places { found, or_more }
}

/// Occurrences that are replaced in one go: each takes memory while it is.
pub(crate) const MAX_REPLACED: usize = 200_000;

/// The places where whole lines read like `old`, in the first looser reading that finds any. `None` if
/// there are none, or if it is too much work to say so.
pub(crate) fn loose(text: &str, old: &str, new: &str) -> Option<(MatchKind, Places)> {
    let wanted = Wanted::new(old, new)?;
    for match_kind in [MatchKind::TrailingWhitespace, MatchKind::Indentation] {
        let places = wanted.find(text, match_kind)?;
        if !places.found.is_empty() {
            return Some((match_kind, places));
        }
    }
    None
}

/// Whole lines to look for.
struct Wanted<'o> {
    lines: Vec<&'o str>,
    new: &'o str,
    /// Whether the last line's end is part of it.
    ended: bool,
    /// The line that is looked for first: the first of the longest, so that few others have it.
    anchor: usize,
}

impl<'o> Wanted<'o> {
    /// `None` if there is nothing but blanks: that could be anywhere.
    fn new(old: &'o str, new: &'o str) -> Option<Self> {
        let ended = old.ends_with('\n');
        let lines: Vec<_> = old.strip_suffix('\n').unwrap_or(old).split('\n').collect();
        let by_length = lines.iter().enumerate().rev();
        let (anchor, longest) =
            by_length.max_by_key(|(_, line)| line.trim_matches(BLANKS).len())?;
        if longest.trim_matches(BLANKS).is_empty() {
            return None;
        }
        Some(Self { lines, new, ended, anchor })
    }

    /// The places in one reading; `None` if it was given up half-way and nothing is known to be unique.
    fn find(&self, text: &str, match_kind: MatchKind) -> Option<Places> {
        let anchor = self.lines[self.anchor].trim_matches(BLANKS);
        let mut found = Vec::new();
        let mut work = 0;
        for at in memmem::find_iter(text.as_bytes(), anchor) {
            if let Some(start) = self.first_line(text, at, anchor.len(), &mut work)
                && let Some(place) = self.read_at(text, start, match_kind, &mut work)
                && found.last() != Some(&place)
            {
                found.push(place);
            }
            if found.len() == MAX_COUNTED || work > MAX_WORK {
                return (found.len() > 1).then_some(Places { found, or_more: true });
            }
        }
        Some(Places { found, or_more: false })
    }

    /// Where the first line would start if the anchor is at `at` and takes its whole line there.
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

    fn read_at(
        &self,
        text: &str,
        start: usize,
        match_kind: MatchKind,
        work: &mut usize,
    ) -> Option<Found> {
        let mut end = start;
        let mut pairs = Vec::new();
        for (number, wanted) in self.lines.iter().enumerate() {
            if number > 0 {
                // Past the line end before it.
                end += 1;
            }
            let rest = text.get(end..)?;
            let line = &rest[..memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len())];
            *work += line.len() + LINE_WORK;
            let fits = match match_kind {
                MatchKind::TrailingWhitespace => {
                    line.trim_end_matches(BLANKS) == wanted.trim_end_matches(BLANKS)
                }
                _ => {
                    let (_, found) = indentation(line);
                    let (_, wanted) = indentation(wanted);
                    found == wanted
                }
            };
            if !fits {
                return None;
            }
            pairs.push((*wanted, line));
            end += line.len();
            let more = number + 1 < self.lines.len() || self.ended;
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
        Some(Found { start, end: end + usize::from(self.ended), shift })
    }
}

pub(crate) const BLANKS: [char; 2] = [' ', '\t'];

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(places: &Places) -> Vec<usize> {
        places.found.iter().map(|found| found.start).collect()
    }

    #[test]
    fn overlapping_occurrences_count() {
        assert_eq!(starts(&exact("aaa", "aa")), [0, 1]);
        assert_eq!(starts(&disjoint("aaaa", "aa")), [0, 2]);
        assert_eq!(starts(&exact("\u{e9}\u{e9}\u{e9}", "\u{e9}\u{e9}")), [0, 2]);
    }

    #[test]
    fn looser_readings_are_of_whole_lines() {
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
                loose(text, old, "").map(|(match_kind, _)| match_kind),
                match_kind,
                "{text:?} {old:?}"
            );
        }
    }

    #[test]
    fn an_end_that_is_asked_for_must_be_there() {
        assert_eq!(loose("a ", "a\n", ""), None);
        let place = |old| loose("x\na \n", old, "").unwrap().1.found.remove(0);
        assert_eq!((place("a\n").start, place("a\n").end), (2, 5));
        assert_eq!((place("a").start, place("a").end), (2, 4));
    }

    #[test]
    fn work_ends_with_what_is_known() {
        // Each of these would go on for minutes.
        let text = "a".repeat(20_000_000);
        let places = exact(&text, &text[..10_000_000]);
        assert!(places.or_more && places.found.len() > 1, "{}", places.found.len());
        // One that is unique is, however large.
        let places = exact(&text, &text);
        assert_eq!((starts(&places), places.or_more), (vec![0], false));
        let lines = "  aaaa\n".repeat(200_000);
        let old = "aaaa\n".repeat(100_000);
        let (match_kind, places) = loose(&lines, &old, "").unwrap();
        assert_eq!((match_kind, places.or_more), (MatchKind::Indentation, true));
        assert!(places.found.len() > 1);
        // The line that is looked for is far below the first, which is above the file.
        assert_eq!(loose(&lines, &old.replacen("aaaa", "a", 50_000), ""), None);
        // Whether it is anywhere was not found out.
        assert_eq!(loose(&lines, &(old + "b\n"), ""), None);
    }

    #[test]
    fn every_place_is_found() {
        let (_, places) = loose("  a\n  b\n\n    a\n    b\n", "a\nb\n", "").unwrap();
        assert_eq!(starts(&places), [0, 9]);
        let (_, places) = loose("  a\n  a\n  a\n", "a\na", "").unwrap();
        assert_eq!(starts(&places), [0, 4]);
    }
}
