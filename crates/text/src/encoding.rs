//! Detects a file's encoding, decodes its bytes and encodes text.
//!
//! A byte order mark decides. Without one, a file with NUL bytes is UTF-16 if it can hardly be anything else;
//! otherwise it is binary. Other bytes are UTF-8 if they are valid or almost valid; otherwise they are in the legacy
//! encoding that `chardetng` guesses. Encoding never substitutes: a character that an encoding lacks is an error.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{CoderResult, Encoding as Table};

/// A character encoding.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Charset {
    /// UTF-8, and therefore ASCII.
    Utf8,
    /// UTF-16, little-endian.
    Utf16Le,
    /// UTF-16, big-endian.
    Utf16Be,
    /// UTF-32, little-endian.
    Utf32Le,
    /// UTF-32, big-endian.
    Utf32Be,
    /// An encoding older than Unicode, such as windows-1252.
    Legacy(&'static Table),
}

impl Charset {
    /// The size of a code unit in bytes.
    pub(crate) fn unit(self) -> usize {
        match self {
            Self::Utf8 | Self::Legacy(_) => 1,
            Self::Utf16Le | Self::Utf16Be => 2,
            Self::Utf32Le | Self::Utf32Be => 4,
        }
    }
}

/// A charset, and whether the file starts with a byte order mark.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Encoding {
    /// The character encoding.
    pub charset: Charset,
    /// Whether the file starts with a byte order mark.
    pub bom: bool,
}

/// The error for a character that an encoding cannot represent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Unmappable {
    /// The first character that cannot be encoded.
    pub character: char,
    /// Its line, counting from 1.
    pub line: u64,
}

const MARKS: [(&[u8], Charset); 5] = [
    // The longer mark comes first, since UTF-32's begins with UTF-16's.
    (b"\xFF\xFE\0\0", Charset::Utf32Le),
    (b"\0\0\xFE\xFF", Charset::Utf32Be),
    (b"\xEF\xBB\xBF", Charset::Utf8),
    (b"\xFF\xFE", Charset::Utf16Le),
    (b"\xFE\xFF", Charset::Utf16Be),
];

impl Encoding {
    /// UTF-8 without a byte order mark: the encoding of new files.
    pub const UTF_8: Self = Self { charset: Charset::Utf8, bom: false };

    /// The encoding that a byte order mark at the start of `bytes` announces.
    pub(crate) fn from_mark(bytes: &[u8]) -> Option<Self> {
        let (_, charset) = MARKS.iter().find(|(mark, _)| bytes.starts_with(mark))?;
        Some(Self { charset: *charset, bom: true })
    }

    /// Guesses the encoding of text without a byte order mark and without NUL bytes from its beginning.
    ///
    /// Unless `bytes` is the `whole` file, its last character may be cut.
    pub(crate) fn guess(bytes: &[u8], whole: bool) -> Self {
        let evidence = Utf8Evidence::of(bytes, whole);
        // A long file that is valid UTF-8 except for a few bytes is still UTF-8.
        let tolerated =
            if evidence.multibyte > 0 { evidence.multibyte.max(bytes.len() / 1000) } else { 0 };
        let charset = if evidence.malformed <= tolerated {
            Charset::Utf8
        } else {
            let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
            detector.feed(bytes, whole);
            Charset::Legacy(detector.guess(None, Utf8Detection::Deny))
        };
        Self { charset, bom: false }
    }

    /// UTF-16 without a byte order mark, if `bytes` can hardly be anything else.
    ///
    /// Every unit must decode, three in four must be ASCII, and the only control characters may be line endings, tabs
    /// and form feeds.
    pub(crate) fn unmarked_utf16(bytes: &[u8]) -> Option<Self> {
        let even = &bytes[..bytes.len() & !1];
        if even.len() < 4 {
            return None;
        }
        [Charset::Utf16Le, Charset::Utf16Be].into_iter().find_map(|charset| {
            let units = even.chunks_exact(2).map(|pair| match charset {
                Charset::Utf16Le => u16::from_le_bytes([pair[0], pair[1]]),
                _ => u16::from_be_bytes([pair[0], pair[1]]),
            });
            let (mut ascii, mut all) = (0usize, 0usize);
            let mut decoded = char::decode_utf16(units).peekable();
            while let Some(character) = decoded.next() {
                match character {
                    Ok('\t' | '\n' | '\r' | '\u{c}' | ' '..='\u{7e}') => ascii += 1,
                    Ok(other) if other.is_control() => return None,
                    Ok(_) => {}
                    // The bytes may end between the halves of a surrogate pair.
                    Err(_) if decoded.peek().is_none() => {}
                    Err(_) => return None,
                }
                all += 1;
            }
            (ascii * 4 >= all * 3).then_some(Self { charset, bom: false })
        })
    }

    /// The encoding with a label such as `utf-8`, `latin1` or `shift_jis`.
    ///
    /// `utf-16` and `utf-32` without a byte order are little-endian, with a byte order mark.
    pub fn for_label(label: &str) -> Option<Self> {
        let plain = |charset| Self { charset, bom: false };
        let marked = |charset| Self { charset, bom: true };
        Some(match label.trim().to_ascii_lowercase().as_str() {
            "utf-16" | "utf16" => marked(Charset::Utf16Le),
            "utf-32" | "utf32" => marked(Charset::Utf32Le),
            "utf-32le" => plain(Charset::Utf32Le),
            "utf-32be" => plain(Charset::Utf32Be),
            other => {
                let table = Table::for_label_no_replacement(other.as_bytes())?;
                plain(match table.name() {
                    "UTF-8" => Charset::Utf8,
                    "UTF-16LE" => Charset::Utf16Le,
                    "UTF-16BE" => Charset::Utf16Be,
                    _ => Charset::Legacy(table),
                })
            }
        })
    }

    /// The encoding's name in lower case, e.g. `utf-8` or `windows-1252`.
    pub fn name(&self) -> String {
        match self.charset {
            Charset::Utf8 => "utf-8".into(),
            Charset::Utf16Le => "utf-16le".into(),
            Charset::Utf16Be => "utf-16be".into(),
            Charset::Utf32Le => "utf-32le".into(),
            Charset::Utf32Be => "utf-32be".into(),
            Charset::Legacy(table) => table.name().to_ascii_lowercase(),
        }
    }

    /// The length in bytes of the byte order mark at the start of the file.
    pub fn mark_len(&self) -> usize {
        self.mark().len()
    }

    fn mark(&self) -> &'static [u8] {
        let found = MARKS.iter().find(|(_, charset)| self.bom && *charset == self.charset);
        found.map_or(&[], |(mark, _)| mark)
    }

    /// Encodes `text`, after a byte order mark if this encoding has one. Never substitutes a character.
    pub fn encode(&self, text: &str) -> Result<Vec<u8>, Unmappable> {
        let mut bytes = self.mark().to_vec();
        match self.charset {
            Charset::Utf8 => bytes.extend_from_slice(text.as_bytes()),
            Charset::Utf16Le => bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes)),
            Charset::Utf16Be => bytes.extend(text.encode_utf16().flat_map(u16::to_be_bytes)),
            Charset::Utf32Le => {
                bytes.extend(text.chars().flat_map(|c| u32::from(c).to_le_bytes()));
            }
            Charset::Utf32Be => {
                bytes.extend(text.chars().flat_map(|c| u32::from(c).to_be_bytes()));
            }
            Charset::Legacy(table) => encode_legacy(table, text, &mut bytes)?,
        }
        Ok(bytes)
    }

    /// Decodes `bytes` without the byte order mark. The flag says that some bytes were malformed and became U+FFFD.
    pub fn decode_lossy<'b>(&self, bytes: &'b [u8]) -> (Cow<'b, str>, bool) {
        let body = &bytes[self.mark_len().min(bytes.len())..];
        match self.charset {
            Charset::Utf32Le | Charset::Utf32Be => {
                let mut text = Vec::new();
                let mut transcoder = crate::transcode::Transcoder::new(self.charset);
                transcoder.feed(body, &mut text);
                let malformed = transcoder.finish(&mut text);
                let text = String::from_utf8(text).expect("the transcoder writes UTF-8");
                (Cow::Owned(text), malformed)
            }
            _ => self.table().decode_without_bom_handling(body),
        }
    }

    /// The `encoding_rs` table of this charset. `encoding_rs` has none for UTF-32, which is transcoded to UTF-8
    /// first.
    pub(crate) fn table(&self) -> &'static Table {
        match self.charset {
            Charset::Utf8 | Charset::Utf32Le | Charset::Utf32Be => encoding_rs::UTF_8,
            Charset::Utf16Le => encoding_rs::UTF_16LE,
            Charset::Utf16Be => encoding_rs::UTF_16BE,
            Charset::Legacy(table) => table,
        }
    }
}

fn encode_legacy(table: &'static Table, text: &str, out: &mut Vec<u8>) -> Result<(), Unmappable> {
    let mut encoder = table.new_encoder();
    let mut rest = text;
    loop {
        let room = encoder
            .max_buffer_length_from_utf8_without_replacement(rest.len())
            .unwrap_or(rest.len().saturating_mul(4));
        out.reserve(room.max(16));
        let (result, read) = encoder.encode_from_utf8_to_vec_without_replacement(rest, out, true);
        match result {
            encoding_rs::EncoderResult::InputEmpty => return Ok(()),
            encoding_rs::EncoderResult::OutputFull => rest = &rest[read..],
            encoding_rs::EncoderResult::Unmappable(character) => {
                let done = text.len() - rest.len() + read;
                let line = text[..done].matches('\n').count() as u64 + 1;
                return Err(Unmappable { character, line });
            }
        }
    }
}

/// The numbers of sequences that are valid only in UTF-8, and of malformed ones.
struct Utf8Evidence {
    multibyte: usize,
    malformed: usize,
}

impl Utf8Evidence {
    fn of(bytes: &[u8], whole: bool) -> Self {
        let mut evidence = Self { multibyte: 0, malformed: 0 };
        if bytes.is_ascii() {
            return evidence;
        }
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            evidence.multibyte += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
            let cut = !whole && chunks.peek().is_none();
            if !chunk.invalid().is_empty() && !cut {
                evidence.malformed += 1;
            }
        }
        evidence
    }
}

/// Decodes the next piece of a line and returns whether it had malformed bytes.
pub(crate) fn decode_piece(
    decoder: &mut encoding_rs::Decoder,
    mut bytes: &[u8],
    last: bool,
    mut take: impl FnMut(&str),
) -> bool {
    let mut scratch = String::with_capacity(4096);
    let mut malformed = false;
    loop {
        let (result, read, had_errors) = decoder.decode_to_string(bytes, &mut scratch, last);
        malformed |= had_errors;
        take(&scratch);
        scratch.clear();
        bytes = &bytes[read..];
        if result == CoderResult::InputEmpty {
            return malformed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_decides_before_anything_else() {
        for (bytes, name) in [
            (&b"\xEF\xBB\xBFa"[..], "utf-8"),
            (b"\xFF\xFEa\0", "utf-16le"),
            (b"\xFE\xFF\0a", "utf-16be"),
            (b"\xFF\xFE\0\0a\0\0\0", "utf-32le"),
            (b"\0\0\xFE\xFF\0\0\0a", "utf-32be"),
        ] {
            let encoding = Encoding::from_mark(bytes).unwrap();
            assert_eq!(encoding.name(), name);
            assert_eq!(encoding.decode_lossy(bytes), ("a".into(), false), "{name}");
            assert_eq!(encoding.encode("a").unwrap(), bytes, "{name}");
        }
        assert_eq!(Encoding::from_mark(b"a"), None);
    }

    #[test]
    fn mostly_valid_utf8_stays_utf8_and_latin_1_does_not() {
        for (bytes, name) in [
            (&b"plain"[..], "utf-8"),
            ("gr\u{fc}n".as_bytes(), "utf-8"),
            (b"gr\xC3\xBCn und \xFF", "utf-8"),
            (b"gr\xFCn und blau, sch\xF6n", "windows-1252"),
        ] {
            assert_eq!(Encoding::guess(bytes, true).name(), name, "{bytes:?}");
        }
    }

    #[test]
    fn a_character_cut_by_the_prefix_is_no_evidence_against_utf8() {
        let cut = &"abc\u{20ac}".as_bytes()[..5];
        assert_eq!(Encoding::guess(cut, false).name(), "utf-8");
        assert!(matches!(Encoding::guess(cut, true).charset, Charset::Legacy(_)));
    }

    #[test]
    fn utf16_without_a_mark_differs_from_binary() {
        let le: Vec<u8> = "Hello, world\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let be: Vec<u8> = "Hello, world\r\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(Encoding::unmarked_utf16(&le).unwrap().charset, Charset::Utf16Le);
        assert_eq!(Encoding::unmarked_utf16(&be).unwrap().charset, Charset::Utf16Be);
        for binary in [&b"\x7fELF\x02\x01\x01\0\0\0"[..], b"a\0", b"\0\0\0\0\0\0", b"a\0b\0\0\0"] {
            assert_eq!(Encoding::unmarked_utf16(binary), None, "{binary:?}");
        }
    }

    #[test]
    fn a_character_that_the_encoding_lacks_is_refused_with_its_line() {
        let latin = Encoding::for_label("latin1").unwrap();
        assert_eq!(latin.encode("gr\u{fc}n").unwrap(), b"gr\xFCn");
        let refused = latin.encode("one\ntwo \u{65e5}").unwrap_err();
        assert_eq!(refused, Unmappable { character: '\u{65e5}', line: 2 });
    }

    #[test]
    fn labels_give_the_encodings_that_they_name() {
        for (label, bytes) in [
            ("UTF-8", &b"a\xC3\xA9"[..]),
            ("utf-16le", b"a\0\xE9\0"),
            ("utf-16be", b"\0a\0\xE9"),
            ("utf-16", b"\xFF\xFEa\0\xE9\0"),
            ("utf-32be", b"\0\0\0a\0\0\0\xE9"),
            ("utf-32", b"\xFF\xFE\0\0a\0\0\0\xE9\0\0\0"),
            ("windows-1252", b"a\xE9"),
        ] {
            let encoding = Encoding::for_label(label).unwrap();
            assert_eq!(encoding.encode("a\u{e9}").unwrap(), bytes, "{label}");
        }
        for unknown in ["", "klingon", "iso-2022-kr"] {
            assert_eq!(Encoding::for_label(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn text_longer_than_a_buffer_is_encoded_completely() {
        let text = "\u{3042}".repeat(10_000);
        let encoding = Encoding::for_label("shift_jis").unwrap();
        let bytes = encoding.encode(&text).unwrap();
        assert_eq!(bytes.len(), 20_000);
        assert_eq!(encoding.decode_lossy(&bytes), (text.into(), false));
    }
}
