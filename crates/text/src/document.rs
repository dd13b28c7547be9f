//! Maps the decoded text of a file to the file's bytes.
//!
//! Edits are found in the folded text (decoded, with LF for every line ending) and made in the bytes. Each offset in
//! the text maps to an offset in the file, so bytes outside an edit are copied and never encoded again. A CRLF is one
//! character of the folded text, so no edit can split it.

use std::borrow::Cow;

use memchr::memchr_iter;

use crate::{Charset, Encoding, Unmappable};

/// A file's bytes, and its text with every line ending folded to LF.
#[derive(Debug)]
pub(crate) struct Document<'b> {
    bytes: &'b [u8],
    encoding: Encoding,
    text: Cow<'b, str>,
    /// The start of each line in the text and in the bytes. `None` if both offsets differ only by the byte order
    /// mark.
    lines: Option<Vec<Line>>,
}

/// The start of a line in the text and in the bytes.
#[derive(Clone, Copy, Debug)]
struct Line {
    text: usize,
    byte: usize,
    /// `Lf` for a last line without a line ending.
    newline: Newline,
}

/// The line ending of one line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Newline {
    Lf,
    Crlf,
}

impl<'b> Document<'b> {
    /// Decodes a file's bytes. UTF-8 with LF line endings is borrowed.
    pub(crate) fn new(bytes: &'b [u8], encoding: Encoding) -> Self {
        let body = &bytes[encoding.mark_len().min(bytes.len())..];
        if encoding.charset == Charset::Utf8
            && memchr::memmem::find(body, b"\r\n").is_none()
            && let Ok(text) = std::str::from_utf8(body)
        {
            return Self { bytes, encoding, text: Cow::Borrowed(text), lines: None };
        }
        let (text, lines) = fold(bytes, &encoding);
        Self { bytes, encoding, text: Cow::Owned(text), lines: Some(lines) }
    }

    /// The text, with LF for every line ending.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether a line may end with CRLF. True for all text that is not borrowed.
    pub(crate) fn has_crlf(&self) -> bool {
        self.lines.is_some()
    }

    /// The number of the line that contains an offset in the text, counting from 1.
    pub(crate) fn line_number(&self, offset: usize) -> u64 {
        memchr_iter(b'\n', &self.text.as_bytes()[..offset]).count() as u64 + 1
    }

    /// The index in `lines` of the line that contains an offset in the text.
    fn line_of(lines: &[Line], offset: usize) -> usize {
        lines.partition_point(|line| line.text <= offset).saturating_sub(1)
    }

    /// Maps ascending offsets in the text to offsets in the bytes. Returns `None` if one is inside a run of bytes
    /// that decodes as a whole.
    fn byte_offsets(&self, offsets: impl Iterator<Item = usize>) -> Option<Vec<usize>> {
        let Some(lines) = &self.lines else {
            return Some(offsets.map(|offset| offset + self.encoding.mark_len()).collect());
        };
        let mut found = Vec::new();
        let (mut current, mut pieces, mut at) = (usize::MAX, Vec::new().into_iter(), (0, 0));
        for offset in offsets {
            let line = Self::line_of(lines, offset);
            if line != current {
                current = line;
                let next = lines.get(line + 1).map_or(self.bytes.len(), |next| next.byte);
                at = (lines[line].text, lines[line].byte);
                pieces =
                    self::pieces(&self.bytes[lines[line].byte..next], &self.encoding).into_iter();
            }
            while at.0 < offset {
                let (text, bytes) = pieces.next()?;
                at = (at.0 + text, at.1 + bytes);
            }
            found.push((at.0 == offset).then_some(at.1)?);
        }
        Some(found)
    }

    /// The line ending of the line whose LF is at an offset in the text.
    pub(crate) fn newline_at(&self, offset: usize) -> Newline {
        match &self.lines {
            None => Newline::Lf,
            Some(lines) => lines[Self::line_of(lines, offset)].newline,
        }
    }

    /// The bytes of the whole file after spans of the text are replaced.
    ///
    /// `spans` are sorted and do not overlap; each has its new bytes. Returns `None` if a span starts or ends inside
    /// a run of bytes that decodes as a whole.
    pub(crate) fn splice(&self, spans: &[(usize, usize, Vec<u8>)]) -> Option<Vec<u8>> {
        let ends = self.byte_offsets(spans.iter().flat_map(|(start, end, _)| [*start, *end]))?;
        let grown: usize = spans.iter().map(|(_, _, new)| new.len()).sum();
        let mut out = Vec::with_capacity(self.bytes.len() + grown);
        let mut done = 0;
        for ((_, _, new), ends) in spans.iter().zip(ends.chunks_exact(2)) {
            out.extend_from_slice(&self.bytes[done..ends[0]]);
            out.extend_from_slice(new);
            done = ends[1];
        }
        out.extend_from_slice(&self.bytes[done..]);
        Some(out)
    }

    /// Whether every span already has its new bytes.
    pub(crate) fn holds(&self, spans: &[(usize, usize, Vec<u8>)]) -> bool {
        let ends = self.byte_offsets(spans.iter().flat_map(|(start, end, _)| [*start, *end]));
        ends.is_some_and(|ends| {
            let spans = spans.iter().zip(ends.chunks_exact(2));
            spans.into_iter().all(|((_, _, new), ends)| self.bytes[ends[0]..ends[1]] == **new)
        })
    }

    /// Encodes new text in the document's encoding, without a byte order mark.
    pub(crate) fn encode(&self, text: &str) -> Result<Vec<u8>, Unmappable> {
        Encoding { bom: false, ..self.encoding }.encode(text)
    }
}

/// Decodes a file line by line, with LF for every line ending.
fn fold(bytes: &[u8], encoding: &Encoding) -> (String, Vec<Line>) {
    let mut text = String::with_capacity(bytes.len());
    let mut lines = Vec::new();
    let mut byte = encoding.mark_len().min(bytes.len());
    while byte < bytes.len() || lines.is_empty() {
        let end = line_end(&bytes[byte..], encoding.charset);
        let crlf = end.whole - end.content > encoding.charset.unit();
        let newline = if crlf { Newline::Crlf } else { Newline::Lf };
        lines.push(Line { text: text.len(), byte, newline });
        let line = &bytes[byte..byte + end.content];
        decode_into(line, encoding, &mut text);
        if end.terminated {
            text.push('\n');
        }
        byte += end.whole;
    }
    (text, lines)
}

/// The end of a line.
struct LineEndAt {
    /// Bytes before the line ending.
    content: usize,
    /// Bytes including the line ending.
    whole: usize,
    /// Whether the line has a line ending. The last line may have none.
    terminated: bool,
}

fn line_end(rest: &[u8], charset: Charset) -> LineEndAt {
    let unit = charset.unit();
    let is = |at: usize, character: u8| {
        let Some(found) = rest.get(at..at + unit) else { return false };
        let low = match charset {
            Charset::Utf16Be | Charset::Utf32Be => unit - 1,
            _ => 0,
        };
        found.iter().enumerate().all(|(at, byte)| *byte == if at == low { character } else { 0 })
    };
    let lf = memchr_iter(b'\n', rest).map(|at| at / unit * unit).find(|at| is(*at, b'\n'));
    match lf {
        None => LineEndAt { content: rest.len(), whole: rest.len(), terminated: false },
        Some(lf) => {
            let crlf = lf >= unit && is(lf - unit, b'\r');
            let content = if crlf { lf - unit } else { lf };
            LineEndAt { content, whole: lf + unit, terminated: true }
        }
    }
}

fn decode_into(line: &[u8], encoding: &Encoding, text: &mut String) {
    match encoding.charset {
        Charset::Utf8 => text.push_str(&String::from_utf8_lossy(line)),
        _ => {
            let plain = Encoding { bom: false, ..*encoding };
            text.push_str(&plain.decode_lossy(line).0);
        }
    }
}

/// The runs of bytes in a line that decode as a whole, with the length of each in the text and in bytes.
///
/// The line ending is one run, with one LF in the text.
fn pieces(line: &[u8], encoding: &Encoding) -> Vec<(usize, usize)> {
    let end = line_end(line, encoding.charset);
    let content = &line[..end.content];
    let mut pieces = match encoding.charset {
        Charset::Utf8 => utf8_pieces(content),
        Charset::Utf16Le => utf16_pieces(content, u16::from_le_bytes),
        Charset::Utf16Be => utf16_pieces(content, u16::from_be_bytes),
        Charset::Utf32Le => utf32_pieces(content, u32::from_le_bytes),
        Charset::Utf32Be => utf32_pieces(content, u32::from_be_bytes),
        Charset::Legacy(table) => legacy_pieces(content, table),
    };
    if end.terminated {
        pieces.push((1, end.whole - end.content));
    }
    pieces
}

const REPLACED: usize = char::REPLACEMENT_CHARACTER.len_utf8();

fn utf8_pieces(content: &[u8]) -> Vec<(usize, usize)> {
    let mut pieces = Vec::new();
    for chunk in content.utf8_chunks() {
        pieces.extend(chunk.valid().chars().map(|c| (c.len_utf8(), c.len_utf8())));
        if !chunk.invalid().is_empty() {
            pieces.push((REPLACED, chunk.invalid().len()));
        }
    }
    pieces
}

fn utf16_pieces(content: &[u8], unit: fn([u8; 2]) -> u16) -> Vec<(usize, usize)> {
    let whole = content.chunks_exact(2);
    let rest = whole.remainder().len();
    let decoded = char::decode_utf16(whole.map(|pair| unit([pair[0], pair[1]])));
    let piece = |character: Result<char, _>| match character {
        Ok(character) => (character.len_utf8(), 2 * character.len_utf16()),
        Err::<_, std::char::DecodeUtf16Error>(_) => (REPLACED, 2),
    };
    decoded.map(piece).chain((rest > 0).then_some((REPLACED, rest))).collect()
}

fn utf32_pieces(content: &[u8], unit: fn([u8; 4]) -> u32) -> Vec<(usize, usize)> {
    let whole = content.chunks_exact(4);
    let rest = whole.remainder().len();
    let character = |four: &[u8]| char::from_u32(unit([four[0], four[1], four[2], four[3]]));
    let piece = |four: &[u8]| (character(four).map_or(REPLACED, char::len_utf8), 4);
    whole.map(piece).chain((rest > 0).then_some((REPLACED, rest))).collect()
}

fn legacy_pieces(content: &[u8], table: &'static encoding_rs::Encoding) -> Vec<(usize, usize)> {
    let mut decoder = table.new_decoder_without_bom_handling();
    let mut pieces = Vec::new();
    let mut pending = 0;
    let mut out = [0; 16];
    for byte in content {
        let (_, _, written, _) = decoder.decode_to_utf8(&[*byte], &mut out, false);
        pending += 1;
        match written {
            0 => {}
            // Malformed bytes, followed by an ASCII character.
            _ if written > REPLACED && pending > 1 && out[written - 1] == *byte => {
                pieces.push((written - 1, pending - 1));
                pieces.push((1, 1));
                pending = 0;
            }
            _ => {
                pieces.push((written, pending));
                pending = 0;
            }
        }
    }
    let (_, _, written, _) = decoder.decode_to_utf8(&[], &mut out, true);
    if pending > 0 {
        pieces.push((written, pending));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Content, sniff};

    impl Document<'_> {
        fn byte_offset(&self, offset: usize) -> Option<usize> {
            Some(self.byte_offsets(std::iter::once(offset))?[0])
        }
    }

    fn label(label: &str) -> Encoding {
        Encoding::for_label(label).unwrap()
    }

    #[test]
    fn line_endings_are_folded_and_remembered() {
        for encoding in ["utf-8", "utf-16", "utf-16be", "utf-32", "latin1"].map(label) {
            let bytes = encoding.encode("a\r\nb\nc\rd\r\n").unwrap();
            let document = Document::new(&bytes, encoding);
            assert_eq!(document.text(), "a\nb\nc\rd\n", "{encoding:?}");
            let ends = [(1, Newline::Crlf), (3, Newline::Lf), (7, Newline::Crlf)];
            for (offset, end) in ends {
                assert_eq!(document.newline_at(offset), end, "{encoding:?} at {offset}");
            }
            assert_eq!(document.line_number(7), 3);
        }
    }

    #[test]
    fn malformed_bytes_keep_their_offsets() {
        let bytes = b"a\xFFb\xE2\x82c\r\n";
        let document = Document::new(bytes, Encoding::UTF_8);
        assert_eq!(document.text(), "a\u{fffd}b\u{fffd}c\n");
        let changed = document.splice(&[(4, 5, b"B".to_vec())]).unwrap();
        assert_eq!(changed, b"a\xFFB\xE2\x82c\r\n");
        assert_eq!(document.byte_offset(2), None);
    }

    #[test]
    fn every_character_of_legacy_text_can_be_replaced() {
        for (encoding, text) in [
            ("shift_jis", "\u{65e5}\u{672c}\u{8a9e} abc \u{ff76}\u{ff85}"),
            ("big5", "\u{4e2d}\u{6587} abc"),
            ("gb18030", "\u{4e2d}\u{6587} abc \u{1f600}"),
            ("euc-kr", "\u{d55c}\u{ad6d}\u{c5b4} abc"),
            ("windows-1251", "\u{43f}\u{440}\u{438}\u{432}\u{435}\u{442}"),
        ] {
            let encoding = label(encoding);
            let bytes = encoding.encode(text).unwrap();
            let document = Document::new(&bytes, encoding);
            assert_eq!(document.text(), text);
            for (offset, character) in text.char_indices() {
                let mut replaced = text.to_owned();
                replaced.replace_range(offset..offset + character.len_utf8(), "x");
                let spliced =
                    document.splice(&[(offset, offset + character.len_utf8(), b"x".to_vec())]);
                assert_eq!(spliced.unwrap(), encoding.encode(&replaced).unwrap(), "{replaced}");
            }
        }
    }

    proptest! {
        #[test]
        fn replacing_a_span_by_its_own_bytes_changes_nothing(bytes: Vec<u8>, cuts: [prop::sample::Index; 2]) {
            if let Content::Text(encoding) = sniff(&bytes, true) {
                let document = Document::new(&bytes, encoding);
                prop_assert_eq!(&document.splice(&[]).unwrap(), &bytes);
                let mut offsets: Vec<usize> = document.text().char_indices().map(|(at, _)| at).collect();
                offsets.push(document.text().len());
                let mut cut = cuts.map(|cut| offsets[cut.index(offsets.len())]);
                cut.sort_unstable();
                if let [Some(start), Some(end)] = cut.map(|cut| document.byte_offset(cut)) {
                    let own = bytes[start..end].to_vec();
                    prop_assert_eq!(&document.splice(&[(cut[0], cut[1], own)]).unwrap(), &bytes);
                }
            }
        }

        #[test]
        fn every_character_of_mixed_text_has_a_byte_offset(
            text in "[a\u{e9}\u{4e2d}\u{1f600}\r\n]{0,40}",
            wide in prop::sample::select(vec!["utf-8", "utf-16", "utf-16be", "utf-32le"]),
        ) {
            let encoding = label(wide);
            let bytes = encoding.encode(&text).unwrap();
            let document = Document::new(&bytes, encoding);
            prop_assert_eq!(document.text(), text.replace("\r\n", "\n"));
            for (offset, _) in document.text().char_indices() {
                let byte = document.byte_offset(offset);
                prop_assert!(byte.is_some());
            }
        }
    }
}
