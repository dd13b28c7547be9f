//! Searches text that is not all ASCII by a pattern with an ASCII matcher.
//!
//! The ASCII matcher searches the lines that are ASCII. The pattern itself is compiled only for a line that is not ASCII and may
//! match.

use std::io;

use grep_matcher::{LineMatchKind, Matcher};

use super::BoundedMatcher;

impl BoundedMatcher<'_> {
    /// The offset of the first non-ASCII byte in `text`, which is the rest of the searched text.
    fn first_non_ascii(&self, text: &[u8]) -> Option<usize> {
        /// The standard library checks this many bytes at once.
        const CHUNK: usize = 256;
        let known = text.len().checked_sub(self.next_non_ascii.get());
        if let Some(known) = known.filter(|at| text.get(*at).is_some_and(|byte| !byte.is_ascii())) {
            return Some(known);
        }
        // Otherwise every matching line would have the rest of the text checked again.
        if text.len() <= self.ascii_tail.get() {
            return None;
        }
        let mut chunks = text.chunks(CHUNK).enumerate();
        let Some((number, chunk)) = chunks.find(|(_, chunk)| !chunk.is_ascii()) else {
            self.ascii_tail.set(text.len());
            return None;
        };
        let at = number * CHUNK + chunk.iter().position(|byte| !byte.is_ascii())?;
        self.next_non_ascii.set(text.len() - at);
        Some(at)
    }

    /// The first line that may match. The ASCII matcher searches ASCII lines. Any other line is a candidate if it has the
    /// trigrams of the pattern.
    pub(super) fn candidate_by_lines(&self, text: &[u8]) -> io::Result<Option<LineMatchKind>> {
        /// In a longer line, looking for the trigrams takes longer than searching it.
        const MAX_LINE: usize = 4_096;
        if self.any_line && !self.ascii_lines_done.replace(true) {
            let found = self.matching_ascii_line(text)?;
            if found.is_some() {
                return Ok(found.map(LineMatchKind::Candidate));
            }
            // The search for ASCII lines has advanced it to the end of the text.
            self.next_non_ascii.set(0);
        }
        let skips_ascii = self.any_line;
        let mut start = 0;
        while start < text.len() {
            let rest = &text[start..];
            let Some(non_ascii) = self.first_non_ascii(rest) else {
                if skips_ascii {
                    return Ok(None);
                }
                let found = self.candidate(self.for_ascii(), rest)?;
                return Ok(found.map(|found| self.unconfirmed(found, start)));
            };
            let line = memchr::memrchr(b'\n', &rest[..non_ascii]).map_or(0, |end| end + 1);
            // The piece ends before its last line feed, since the line after that is not part of it.
            if line > 0
                && !skips_ascii
                && let Some(found) = self.candidate(self.for_ascii(), &rest[..line - 1])?
            {
                return Ok(Some(self.unconfirmed(found, start)));
            }
            let end =
                memchr::memchr(b'\n', &rest[non_ascii..]).map_or(rest.len(), |end| non_ascii + end);
            if end - line > MAX_LINE || self.compiled.query().admits(&rest[line..end]) {
                return Ok(Some(LineMatchKind::Candidate(start + non_ascii)));
            }
            start += end + 1;
        }
        Ok(None)
    }

    /// The offset of a matching ASCII line.
    fn matching_ascii_line(&self, text: &[u8]) -> io::Result<Option<usize>> {
        let mut start = 0;
        while start < text.len() {
            let rest = &text[start..];
            let non_ascii = self.first_non_ascii(rest);
            // The lines before the non-ASCII one, without their last line feed.
            let line = non_ascii.map(|non_ascii| {
                memchr::memrchr(b'\n', &rest[..non_ascii]).map_or(0, |end| end + 1)
            });
            let piece = match line {
                None => Some(rest),
                Some(line) => line.checked_sub(1).map(|end| &rest[..end]),
            };
            let found = match piece {
                Some(piece) => self.candidate(self.for_ascii(), piece)?,
                None => None,
            };
            let (Some(piece), Some(found)) = (piece, found) else {
                let after = non_ascii.and_then(|non_ascii| {
                    Some(non_ascii + memchr::memchr(b'\n', &rest[non_ascii..])? + 1)
                });
                let Some(after) = after else { return Ok(None) };
                start += after;
                continue;
            };
            let (LineMatchKind::Confirmed(at) | LineMatchKind::Candidate(at)) = found;
            let from = memchr::memrchr(b'\n', &piece[..at]).map_or(0, |end| end + 1);
            if non_ascii.is_none() && from == rest.len() {
                // This is after the last line.
                return Ok(None);
            }
            let to = memchr::memchr(b'\n', &piece[from..]).map_or(piece.len(), |to| from + to);
            if (&self).shortest_match_at(&piece[from..to], 0)?.is_some() {
                return Ok(Some(start + from));
            }
            start += to + 1;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use pinfold_confine::Deadline;

    use super::*;
    use crate::search::bounded::TextKind;
    use crate::search::{PatternCache, SearchPattern};

    #[test]
    fn the_ascii_end_of_a_text_is_checked_once_and_forgotten_with_the_text() {
        let (pattern, literal) = ("x".to_owned(), true);
        let search_pattern =
            SearchPattern { pattern, literal, ignore_case: false, multiline: false };
        let compiled = PatternCache::default().compiled(&search_pattern, &|_| Ok(None)).unwrap().0;
        let deadline = Deadline::default();
        let matcher = BoundedMatcher::new(&compiled, &deadline);
        let text = format!("x é\n{}", "x\n".repeat(500)).into_bytes();
        matcher.set_text(TextKind::Mixed);
        for start in 0..text.len() {
            let rest = &text[start..];
            let expected = rest.iter().position(|byte| !byte.is_ascii());
            assert_eq!(matcher.first_non_ascii(rest), expected, "{start}");
        }
        assert_eq!(matcher.ascii_tail.get(), "\n".len() + 2 * 500);
        matcher.set_text(TextKind::Mixed);
        assert_eq!(matcher.first_non_ascii("aé".as_bytes()), Some(1));
    }
}
