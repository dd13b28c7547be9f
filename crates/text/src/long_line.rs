//! Lines too long to show, and lines that span several pieces of the input.
//!
//! A line is never held whole: what is shown of it is kept, the rest is only counted.

use encoding_rs::Decoder;

use crate::encoding::{Encoding, decode_piece};

/// One line as it will be shown.
pub(crate) struct ShownLine {
    pub(crate) text: String,
    /// Characters that were left out at the end.
    pub(crate) left_out: u64,
    pub(crate) malformed: bool,
}

impl ShownLine {
    /// The shown form of a whole line, given without its end.
    pub(crate) fn of(line: &[u8], encoding: &Encoding, most_chars: usize) -> Self {
        let mut partial = PartialLine::new(encoding, most_chars);
        partial.feed(line);
        partial.finish(false).0
    }

    /// The text, with a note of what was left out.
    pub(crate) fn into_text(self) -> String {
        match self.left_out {
            0 => self.text,
            left_out => format!("{}... [+{left_out} characters]", self.text),
        }
    }
}

/// A line whose end has not been seen yet.
pub(crate) struct PartialLine {
    decoder: Decoder,
    most_chars: usize,
    text: String,
    chars: usize,
    left_out: u64,
    malformed: bool,
    /// A CR that may turn out to be half of the line's end.
    held_cr: bool,
}

impl PartialLine {
    pub(crate) fn new(encoding: &Encoding, most_chars: usize) -> Self {
        Self {
            decoder: encoding.table().new_decoder_without_bom_handling(),
            most_chars,
            text: String::new(),
            chars: 0,
            left_out: 0,
            malformed: false,
            held_cr: false,
        }
    }

    /// Takes the next bytes of the line, its LF not among them.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let Some((&last, most)) = bytes.split_last() else { return };
        if std::mem::take(&mut self.held_cr) {
            self.decode(b"\r", false);
        }
        self.held_cr = last == b'\r';
        self.decode(if self.held_cr { most } else { bytes }, false);
    }

    /// Ends the line, with or without an LF; also tells whether the LF had a CR before it.
    pub(crate) fn finish(mut self, with_lf: bool) -> (ShownLine, bool) {
        if self.held_cr && !with_lf {
            self.decode(b"\r", false);
        }
        self.decode(b"", true);
        let Self { text, left_out, malformed, held_cr, .. } = self;
        (ShownLine { text, left_out, malformed }, held_cr && with_lf)
    }

    fn decode(&mut self, bytes: &[u8], last: bool) {
        let Self { decoder, most_chars, text, chars, left_out, .. } = self;
        let malformed = decode_piece(decoder, bytes, last, |piece| {
            let room = *most_chars - *chars;
            match piece.char_indices().nth(room) {
                Some((cut, _)) => {
                    text.push_str(&piece[..cut]);
                    *left_out += piece[cut..].chars().count() as u64;
                    *chars = *most_chars;
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
    fn a_line_is_cut_by_characters_and_says_how_many_are_missing() {
        for (line, shown) in [
            ("abcde", "abcde"),
            ("abcdef", "abcde... [+1 characters]"),
            ("\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}", "\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}"),
            ("\u{1f600}bcdefgh", "\u{1f600}bcde... [+3 characters]"),
        ] {
            let line = ShownLine::of(line.as_bytes(), &Encoding::UTF_8, 5);
            assert_eq!(line.into_text(), shown);
        }
    }

    #[test]
    fn pieces_give_the_line_that_the_whole_gives() {
        let line = "a\r\u{e9}\u{4e2d}xyz\r";
        for size in 1..=line.len() {
            let mut partial = PartialLine::new(&Encoding::UTF_8, 4);
            line.as_bytes().chunks(size).for_each(|piece| partial.feed(piece));
            let (shown, crlf) = partial.finish(true);
            assert!(crlf, "by {size}");
            assert_eq!(shown.into_text(), "a\r\u{e9}\u{4e2d}... [+3 characters]", "by {size}");
        }
    }
}
