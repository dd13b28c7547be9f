//! Detects whether a file is text, by its content and not by its name.

use memchr::memmem;

use crate::Encoding;

/// How many bytes of a file's beginning are read for the detection.
pub const SNIFF_BYTES: usize = 64 * 1024;

/// A binary file, by its first bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Binary {
    /// The media type, e.g. `image/png`, or `application/octet-stream` if it is unknown.
    pub mime: &'static str,
}

/// The content of a file: text, or binary data.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Content {
    /// Text in this encoding.
    Text(Encoding),
    /// Something else.
    Binary(Binary),
}

/// Distinguishes text from binary data by a file's beginning.
///
/// `whole` says whether `bytes` is the whole file.
pub fn sniff(bytes: &[u8], whole: bool) -> Content {
    // A small PDF can be all ASCII, but is not text to read.
    if bytes.starts_with(b"%PDF-") {
        return Content::Binary(Binary { mime: "application/pdf" });
    }
    if let Some(encoding) = Encoding::from_mark(bytes) {
        return Content::Text(encoding);
    }
    if memchr::memchr(0, bytes).is_some() {
        return Encoding::unmarked_utf16(bytes).map_or_else(|| binary(bytes), Content::Text);
    }
    let encoding = Encoding::guess(bytes, whole);
    if encoding == Encoding::UTF_8 || controls(bytes) * MAX_CONTROLS <= bytes.len() {
        Content::Text(encoding)
    } else {
        binary(bytes)
    }
}

/// Detects whether the whole content of a file is text. Its beginning decides, unless that is all ASCII and so fits
/// many encodings.
pub fn sniff_content(content: &[u8]) -> Content {
    let beginning = &content[..content.len().min(SNIFF_BYTES)];
    let whole = content.len() <= SNIFF_BYTES;
    let rest = &content[beginning.len()..];
    match sniff(beginning, whole) {
        // The beginning is all ASCII, so the first bytes that are not decide.
        // Most texts are all ASCII, and this check is faster than a search.
        text @ Content::Text(Encoding::UTF_8) if !whole && content.is_ascii() => text,
        Content::Text(Encoding::UTF_8) if !whole && beginning.is_ascii() => {
            let start = encoding_rs::Encoding::ascii_valid_up_to(rest);
            let telling = &rest[start..rest.len().min(start + SNIFF_BYTES)];
            Content::Text(Encoding::guess(telling, start + telling.len() == rest.len()))
        }
        content => content,
    }
}

/// The detected encoding of a file's whole content, if it is text.
pub fn text_encoding(content: &[u8]) -> Option<Encoding> {
    match sniff_content(content) {
        Content::Text(encoding) => Some(encoding),
        Content::Binary(_) => None,
    }
}

/// In legacy text, at most one byte in this many is a control character. In noise, one in ten is.
const MAX_CONTROLS: usize = 50;

fn controls(bytes: &[u8]) -> usize {
    let is_control = |byte: &&u8| **byte < b' ' && !b"\t\n\r\x08\x0c\x1b".contains(byte);
    bytes.iter().filter(is_control).count()
}

fn binary(bytes: &[u8]) -> Content {
    let known = || infer::get(bytes).map(|kind| kind.mime_type());
    let archive = bytes.starts_with(b"PK\x03\x04");
    let office = archive.then(|| office_type(bytes)).flatten();
    let mime = office.or_else(known).unwrap_or("application/octet-stream");
    Content::Binary(Binary { mime })
}

/// The media type of an office document, from a part of it.
///
/// These documents are ZIP archives, and the file names at the end of the archive decide.
pub fn office_type(bytes: &[u8]) -> Option<&'static str> {
    memmem::find(bytes, b"[Content_Types].xml")?;
    let kinds = [
        ("word/", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("xl/", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("ppt/", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ];
    kinds.into_iter().find_map(|(name, mime)| memmem::find(bytes, name.as_bytes()).map(|_| mime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_has_an_encoding() {
        assert_eq!(text_encoding(b"plain\n"), Some(Encoding::UTF_8));
        assert_eq!(text_encoding(b"GIF\0"), None);
    }

    #[test]
    fn content_decides() {
        let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
        elf.resize(64, 0);
        for (bytes, expected) in [
            (&b"fn main() {}\n"[..], "utf-8"),
            (b"", "utf-8"),
            (b"BM and MZ are how words can begin\n", "utf-8"),
            (b"GIF\0", "image/gif"),
            (b"%PDF-1.4\n", "application/pdf"),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png"),
            (&elf, "application/x-executable"),
            (b"a\0b\0c\0d\0", "utf-16le"),
            (b"caf\xE9 au lait, d\xE9j\xE0 vu\n", "windows-1252"),
            (b"\x01\x02\x03\xFE\xFD\x04\x05\x06", "application/octet-stream"),
            (b"colour \x1b[31mred\x1b[0m\n", "utf-8"),
        ] {
            let found = match sniff(bytes, true) {
                Content::Text(encoding) => encoding.name(),
                Content::Binary(binary) => binary.mime.to_owned(),
            };
            assert_eq!(found, expected, "{bytes:?}");
        }
    }
}
