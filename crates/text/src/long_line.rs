//! Cuts lines that are too long to show, and joins lines that span several blocks.
//!
//! Only the shown part of a line is kept in memory; the rest is counted.

use std::borrow::Cow;

use encoding_rs::Decoder;

use crate::encoding::{Encoding, decode_piece};

/// The maximum size of a shown line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineLimits {
    pub(crate) chars: usize,
    pub(crate) bytes: usize,
}

impl LineLimits {
    /// This many characters, of any size.
    pub(crate) fn chars(chars: usize) -> Self {
        Self { chars, bytes: usize::MAX }
    }
}

/// A text of at most this many characters, followed by `…` if it is longer.
pub fn cut_to_chars(text: &str, max_chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// A line in the form in which it is shown.
pub(crate) struct ShownLine {
    pub(crate) text: String,
    /// How many characters were cut off.
    pub(crate) cut_chars: u64,
    pub(crate) malformed: bool,
}

impl ShownLine {
    /// The shown form of a whole line, which is passed without its line ending.
    pub(crate) fn of(line: &[u8], encoding: &Encoding, limits: LineLimits) -> Self {
        let mut partial = PartialLine::new(encoding, limits);
        partial.feed(line);
        partial.finish(false).0
    }

    /// The text, with a note of how many characters were cut.
    pub(crate) fn into_text(self) -> String {
        match self.cut_chars {
            0 => self.text,
            cut_chars => format!("{}... [+{cut_chars} characters]", self.text),
        }
    }
}

/// A line whose line ending has not been read yet.
pub(crate) struct PartialLine {
    decoder: Decoder,
    limits: LineLimits,
    text: String,
    chars: usize,
    cut_chars: u64,
    malformed: bool,
    /// Whether the last byte was a CR, which may be part of a CRLF.
    held_cr: bool,
}

impl PartialLine {
    pub(crate) fn new(encoding: &Encoding, limits: LineLimits) -> Self {
        Self {
            decoder: encoding.table().new_decoder_without_bom_handling(),
            limits,
            text: String::new(),
            chars: 0,
            cut_chars: 0,
            malformed: false,
            held_cr: false,
        }
    }

    /// Adds the next bytes of the line, without its LF.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let Some((&last, before)) = bytes.split_last() else { return };
        if std::mem::take(&mut self.held_cr) {
            self.decode(b"\r", false);
        }
        self.held_cr = last == b'\r';
        self.decode(if self.held_cr { before } else { bytes }, false);
    }

    /// Ends the line, with or without LF. Also returns whether the line ended with CRLF.
    pub(crate) fn finish(mut self, with_lf: bool) -> (ShownLine, bool) {
        if self.held_cr && !with_lf {
            self.decode(b"\r", false);
        }
        self.decode(b"", true);
        let Self { text, cut_chars, malformed, held_cr, .. } = self;
        (ShownLine { text, cut_chars, malformed }, held_cr && with_lf)
    }

    fn decode(&mut self, bytes: &[u8], last: bool) {
        let Self { decoder, limits, text, chars, cut_chars, .. } = self;
        let malformed = decode_piece(decoder, bytes, last, |piece| {
            let room = limits.chars.saturating_sub(*chars);
            let bytes = limits.bytes.saturating_sub(text.len());
            // Everything after a cut is cut, too, even if it would fit.
            let cut = if *cut_chars > 0 {
                Some(0)
            } else {
                let mut letters = piece.char_indices().enumerate();
                letters
                    .find(|(number, (at, letter))| {
                        *number == room || at + letter.len_utf8() > bytes
                    })
                    .map(|(_, (at, _))| at)
            };
            match cut {
                Some(cut) => {
                    text.push_str(&piece[..cut]);
                    *cut_chars += piece[cut..].chars().count() as u64;
                }
                None => {
                    text.push_str(piece);
                    *chars += piece.chars().count();
                }
            }
        });
        self.malformed |= malformed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_line_shows_how_many_characters_are_missing() {
        for (line, shown) in [
            ("abcde", "abcde"),
            ("abcdef", "abcde... [+1 characters]"),
            ("\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}", "\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}"),
            ("\u{1f600}bcdefgh", "\u{1f600}bcde... [+3 characters]"),
        ] {
            let line = ShownLine::of(line.as_bytes(), &Encoding::UTF_8, LineLimits::chars(5));
            assert_eq!(line.into_text(), shown);
        }
    }

    #[test]
    fn a_line_is_cut_at_a_whole_character_by_bytes() {
        for (line, shown) in [
            ("abcde", "abcde"),
            ("\u{e4}\u{e4}\u{e4}", "\u{e4}\u{e4}... [+1 characters]"),
            ("abcd\u{e4}f", "abcd... [+2 characters]"),
        ] {
            let limits = LineLimits { chars: 100, bytes: 5 };
            for size in 1..=line.len() {
                let mut partial = PartialLine::new(&Encoding::UTF_8, limits);
                line.as_bytes().chunks(size).for_each(|piece| partial.feed(piece));
                assert_eq!(partial.finish(false).0.into_text(), shown, "by {size}");
            }
        }
    }

    #[test]
    fn a_line_in_pieces_is_shown_like_the_whole_line() {
        let line = "a\r\u{e9}\u{4e2d}xyz\r";
        for size in 1..=line.len() {
            let mut partial = PartialLine::new(&Encoding::UTF_8, LineLimits::chars(4));
            line.as_bytes().chunks(size).for_each(|piece| partial.feed(piece));
            let (shown, crlf) = partial.finish(true);
            assert!(crlf, "by {size}");
            assert_eq!(shown.into_text(), "a\r\u{e9}\u{4e2d}... [+3 characters]", "by {size}");
        }
    }
}
