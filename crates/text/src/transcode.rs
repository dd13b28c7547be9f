//! Transcodes a stream of UTF-16 or UTF-32 to UTF-8.
//!
//! In these charsets a byte 0x0A need not be a line feed, so lines are split after transcoding.

use encoding_rs::Decoder;

use crate::Charset;
use crate::encoding::decode_piece;

/// Transcodes UTF-16 or UTF-32 to UTF-8, in pieces of any size.
pub(crate) enum Transcoder {
    Utf16 { decoder: Box<Decoder>, malformed: bool },
    Utf32 { unit: fn([u8; 4]) -> u32, held: Vec<u8>, malformed: bool },
}

impl Transcoder {
    /// A transcoder for UTF-16 or UTF-32.
    pub(crate) fn new(charset: Charset) -> Self {
        let utf16 = |table: &'static encoding_rs::Encoding| Self::Utf16 {
            decoder: Box::new(table.new_decoder_without_bom_handling()),
            malformed: false,
        };
        let utf32 = |unit| Self::Utf32 { unit, held: Vec::new(), malformed: false };
        match charset {
            Charset::Utf16Le => utf16(encoding_rs::UTF_16LE),
            Charset::Utf16Be => utf16(encoding_rs::UTF_16BE),
            Charset::Utf32Le => utf32(u32::from_le_bytes),
            Charset::Utf32Be => utf32(u32::from_be_bytes),
            Charset::Utf8 | Charset::Legacy(_) => {
                unreachable!("other charsets are split into lines without transcoding")
            }
        }
    }

    /// Appends the text of `bytes` to `out` as UTF-8.
    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Utf16 { decoder, malformed } => {
                *malformed |= decode_piece(decoder, bytes, false, |text| {
                    out.extend_from_slice(text.as_bytes());
                });
            }
            Self::Utf32 { unit, held, malformed } => {
                held.extend_from_slice(bytes);
                let whole = held.len() & !3;
                for four in held[..whole].chunks_exact(4) {
                    let character = char::from_u32(unit([four[0], four[1], four[2], four[3]]));
                    *malformed |= character.is_none();
                    let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
                    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                held.drain(..whole);
            }
        }
    }

    /// Ends the stream. Returns whether bytes were malformed and became U+FFFD.
    pub(crate) fn finish(self, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Utf16 { mut decoder, malformed } => {
                let cut = decode_piece(&mut decoder, &[], true, |text| {
                    out.extend_from_slice(text.as_bytes());
                });
                malformed | cut
            }
            Self::Utf32 { held, malformed, .. } => {
                if !held.is_empty() {
                    out.extend_from_slice("\u{fffd}".as_bytes());
                }
                malformed | !held.is_empty()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Encoding;

    #[test]
    fn pieces_of_any_size_give_the_same_text() {
        let text = "a\u{e9}\u{4e2d}\u{1f600}\n";
        for label in ["utf-16le", "utf-16be", "utf-32le", "utf-32be"] {
            let encoding = Encoding::for_label(label).unwrap();
            let bytes = encoding.encode(text).unwrap();
            for size in 1..=bytes.len() {
                let mut out = Vec::new();
                let mut transcoder = Transcoder::new(encoding.charset);
                bytes.chunks(size).for_each(|piece| transcoder.feed(piece, &mut out));
                assert!(!transcoder.finish(&mut out));
                assert_eq!(String::from_utf8(out).unwrap(), text, "{label} by {size}");
            }
        }
    }

    #[test]
    fn a_cut_unit_at_the_end_is_malformed() {
        for (charset, bytes) in [(Charset::Utf16Le, &b"a\0b"[..]), (Charset::Utf32Le, b"a\0\0\0b")]
        {
            let mut out = Vec::new();
            let mut transcoder = Transcoder::new(charset);
            transcoder.feed(bytes, &mut out);
            assert!(transcoder.finish(&mut out));
            assert_eq!(out, "a\u{fffd}".as_bytes());
        }
    }
}
