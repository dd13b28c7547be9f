//! Finding the text that an edit wants to replace.
//!
//! The text as it is comes first, with line ends folded on both sides; looser readings only where
//! that is nowhere to be found: a file that holds `old` is never edited anywhere else. There are two
//! looser readings, of whole lines, and nothing beyond them: no similarity ever finds a place.

use memchr::memmem;

use crate::indent::{Shift, indentation};

/// How the text was found, from the strictest reading to the loosest.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Match {
    /// Word for word.
    Exact,
    /// With other line ends.
    LineEndings,
    /// Whole lines, but for blanks at their ends.
    TrailingBlanks,
    /// Whole lines, with the same shift of indentation on each.
    Indentation,
}

impl Match {
    /// The name that tools report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::LineEndings => "line_endings",
            Self::TrailingBlanks => "trailing_blanks",
            Self::Indentation => "indentation",
        }
    }
}

/// Which readings are tried.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Matching {
    /// All of them, one after the other.
    Ladder,
    /// Only the text as it is, line ends folded.
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

/// Occurrences past this many are no longer counted: nobody wants to be told where they are.
pub(crate) const MOST_COUNTED: usize = 10_000;

/// Lines that are compared before a looser reading is given up: enough for any file that people edit.
const MOST_WORK: usize = 5_000_000;

/// Every place where `old` stands in `text` as it is; overlapping ones count.
pub(crate) fn exact(text: &str, old: &str) -> Vec<Found> {
    let finder = memmem::Finder::new(old.as_bytes());
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = finder.find(&text.as_bytes()[from..]) {
        let start = from + at;
        found.push(Found { start, end: start + old.len(), shift: None });
        if found.len() == MOST_COUNTED {
            break;
        }
        from = start + text[start..].chars().next().map_or(1, char::len_utf8);
    }
    found
}

/// The places where `old` stands as it is, from left to right, none within another; one more than
/// can be replaced at the most.
pub(crate) fn disjoint(text: &str, old: &str) -> Vec<Found> {
    let found = |start| Found { start, end: start + old.len(), shift: None };
    memmem::find_iter(text.as_bytes(), old).take(MOST_REPLACED + 1).map(found).collect()
}

/// Occurrences that are replaced in one go: each takes memory while it is.
pub(crate) const MOST_REPLACED: usize = 200_000;

/// The places where whole lines read like `old`, in the first looser reading that finds any.
pub(crate) fn loose(text: &str, old: &str, new: &str) -> Option<(Match, Vec<Found>)> {
    let wanted = Wanted::new(old, new)?;
    [Match::TrailingBlanks, Match::Indentation].into_iter().find_map(|reading| {
        let found = wanted.find(text, reading);
        (!found.is_empty()).then_some((reading, found))
    })
}

/// Whole lines to look for.
struct Wanted<'o> {
    lines: Vec<&'o str>,
    new: &'o str,
    /// Whether the last line's end is part of it.
    ended: bool,
    /// The line that is looked for first: the longest, so that few others have it.
    anchor: usize,
}

impl<'o> Wanted<'o> {
    /// `None` if there is nothing but blanks: that could be anywhere.
    fn new(old: &'o str, new: &'o str) -> Option<Self> {
        let ended = old.ends_with('\n');
        let lines: Vec<_> = old.strip_suffix('\n').unwrap_or(old).split('\n').collect();
        let (anchor, longest) =
            lines.iter().enumerate().max_by_key(|(_, line)| line.trim_matches(BLANKS).len())?;
        if longest.trim_matches(BLANKS).is_empty() {
            return None;
        }
        Some(Self { lines, new, ended, anchor })
    }

    fn find(&self, text: &str, reading: Match) -> Vec<Found> {
        let anchor = self.lines[self.anchor].trim_matches(BLANKS);
        let mut found = Vec::new();
        let mut work = 0;
        for at in memmem::find_iter(text.as_bytes(), anchor) {
            let Some(start) = self.first_line(text, at, anchor.len()) else { continue };
            work += self.lines.len();
            if let Some(place) = self.read_at(text, start, reading)
                && found.last() != Some(&place)
            {
                found.push(place);
            }
            if found.len() == MOST_COUNTED || work > MOST_WORK {
                break;
            }
        }
        // Given up half-way, nothing is known to be unique.
        if work > MOST_WORK { Vec::new() } else { found }
    }

    /// Where the first line would start if the anchor is at `at` and takes its whole line there.
    fn first_line(&self, text: &str, at: usize, len: usize) -> Option<usize> {
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
        }
        Some(start)
    }

    fn read_at(&self, text: &str, start: usize, reading: Match) -> Option<Found> {
        let mut end = start;
        let mut pairs = Vec::with_capacity(self.lines.len());
        for (number, wanted) in self.lines.iter().enumerate() {
            if number > 0 {
                // Past the line end before it.
                end += 1;
            }
            let rest = text.get(end..)?;
            let line = &rest[..memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len())];
            let fits = match reading {
                Match::TrailingBlanks => {
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
        let shift = match reading {
            Match::Indentation => Some(Shift::between(&pairs, self.new, text)?),
            _ => None,
        };
        Some(Found { start, end: end + usize::from(self.ended), shift })
    }
}

pub(crate) const BLANKS: [char; 2] = [' ', '\t'];

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(found: &[Found]) -> Vec<usize> {
        found.iter().map(|found| found.start).collect()
    }

    #[test]
    fn overlapping_occurrences_count() {
        assert_eq!(starts(&exact("aaa", "aa")), [0, 1]);
        assert_eq!(starts(&disjoint("aaaa", "aa")), [0, 2]);
        assert_eq!(starts(&exact("\u{e9}\u{e9}\u{e9}", "\u{e9}\u{e9}")), [0, 2]);
    }

    #[test]
    fn looser_readings_are_of_whole_lines() {
        for (text, old, reading) in [
            ("a  \nb\n", "a\nb\n", Some(Match::TrailingBlanks)),
            ("a\nb\n", "a \nb\t\n", Some(Match::TrailingBlanks)),
            ("x = 10\n", "x = 1", None),
            ("  x = 1 # c\n", "x = 1", None),
            ("    a\n    b\n", "a\nb", Some(Match::Indentation)),
            ("a\nb\n", "    a\n    b", Some(Match::Indentation)),
            ("    a\n  b\n", "a\nb", None),
            ("x=1\n", "x = 1", None),
            ("   \n\t\n", " \n", None),
            ("\n\n", "   ", None),
            ("a \n", "  a", None),
        ] {
            assert_eq!(
                loose(text, old, "").map(|(reading, _)| reading),
                reading,
                "{text:?} {old:?}"
            );
        }
    }

    #[test]
    fn an_end_that_is_asked_for_must_be_there() {
        assert_eq!(loose("a ", "a\n", ""), None);
        let (_, found) = loose("x\na \n", "a\n", "").unwrap();
        assert_eq!((found[0].start, found[0].end), (2, 5));
        let (_, found) = loose("x\na \n", "a", "").unwrap();
        assert_eq!((found[0].start, found[0].end), (2, 4));
    }

    #[test]
    fn every_place_is_found() {
        let (_, found) = loose("  a\n  b\n\n    a\n    b\n", "a\nb\n", "").unwrap();
        assert_eq!(starts(&found), [0, 9]);
        let (_, found) = loose("  a\n  a\n  a\n", "a\na", "").unwrap();
        assert_eq!(starts(&found), [0, 4]);
    }
}
