//! Line endings, and the number of lines.
//!
//! A line ends with LF or CRLF. A final line ending does not start a new line: `"a\nb\n"` has 2 lines.

use memchr::{memchr, memchr_iter, memmem};

/// The line endings of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LineEnding {
    /// Every line ending is LF.
    Lf,
    /// Every line ending is CRLF.
    Crlf,
    /// Some line endings are LF, others are CRLF.
    Mixed,
    /// There are no line endings: the file is empty, or one line without one.
    None,
}

impl LineEnding {
    /// The name that tools report: `lf`, `crlf`, `mixed` or `none`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lf => "lf",
            Self::Crlf => "crlf",
            Self::Mixed => "mixed",
            Self::None => "none",
        }
    }
}

/// Counts lines and line endings in a file that arrives in pieces.
#[derive(Clone, Copy, Debug, Default)]
pub struct LineCount {
    ends: u64,
    crlf: u64,
    last: Option<u8>,
}

impl LineCount {
    /// Continues to count after this many lines, at the beginning of the next one.
    pub(crate) fn after(lines: u64) -> Self {
        Self { ends: lines, ..Self::default() }
    }

    /// Counts the next piece of the file.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let Some(&last) = bytes.last() else { return };
        self.ends += memchr_iter(b'\n', bytes).count() as u64;
        if self.last == Some(b'\r') && bytes[0] == b'\n' {
            self.crlf += 1;
        }
        // Most files have no CR at all, and searching for one byte is faster than for two.
        if let Some(first) = memchr(b'\r', bytes) {
            self.crlf += memmem::find_iter(&bytes[first..], b"\r\n").count() as u64;
        }
        self.last = Some(last);
    }

    /// The number of line endings so far.
    pub(crate) fn ended(&self) -> u64 {
        self.ends
    }

    /// The number of lines, after the whole file was fed.
    pub fn total(&self) -> u64 {
        self.ends + u64::from(self.last.is_some_and(|last| last != b'\n'))
    }

    /// The line endings, after the whole file was fed.
    pub fn ending(&self) -> LineEnding {
        match (self.ends, self.crlf) {
            (0, _) => LineEnding::None,
            (_, 0) => LineEnding::Lf,
            (ends, crlf) if ends == crlf => LineEnding::Crlf,
            _ => LineEnding::Mixed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_their_ends_are_counted_whatever_the_pieces() {
        for (text, total, ending) in [
            ("", 0, LineEnding::None),
            ("a", 1, LineEnding::None),
            ("a\n", 1, LineEnding::Lf),
            ("a\nb", 2, LineEnding::Lf),
            ("a\r\nb\r\n", 2, LineEnding::Crlf),
            ("a\r\nb\n", 2, LineEnding::Mixed),
            ("a\rb\n", 1, LineEnding::Lf),
            ("\n\n", 2, LineEnding::Lf),
            ("\r", 1, LineEnding::None),
            ("\r\r\n", 1, LineEnding::Crlf),
        ] {
            for size in 1..=text.len().max(1) {
                let mut count = LineCount::default();
                text.as_bytes().chunks(size).for_each(|piece| count.feed(piece));
                assert_eq!((count.total(), count.ending()), (total, ending), "{text:?} by {size}");
            }
        }
    }
}
