//! Reads the last lines of a file from its end.

use std::io::{self, Read, Seek, SeekFrom};

use memchr::memrchr;

use super::window::Window;
use super::{Blocks, Page, PageEnd, PageError, PageRequest, is_bytewise};
use crate::Encoding;

/// Reads the last `request.lines` lines of a file, and its beginning to detect the encoding. The lines before are not
/// counted: `first` is ignored, and [`Page::total`] is the number of shown lines.
///
/// Returns `None` if the lines have to be counted from the beginning: for UTF-16 and UTF-32, if the lines do not fit
/// into the budget or begin with the file, or if the file is now shorter than `request.size_hint`.
pub fn read_tail(
    source: &mut (impl Read + Seek),
    request: &PageRequest,
) -> Result<Option<Page>, PageError> {
    let Some(count) = request.lines.filter(|lines| *lines > 0) else { return Ok(None) };
    source.rewind()?;
    let (encoding, is_doubtful) = match request.encoding {
        Some(known) => (known, false),
        None => {
            let blocks = Blocks::start(source, request.size_hint)?;
            (blocks.encoding?, blocks.ascii)
        }
    };
    if !is_bytewise(encoding) {
        return Ok(None);
    }
    let Some(start) = start_of_tail(source, count, request)? else { return Ok(None) };
    source.seek(SeekFrom::Start(start))?;
    let mut lines = Window::new(PageRequest { first: 1, ..*request }, encoding);
    lines.doubtful = is_doubtful.then(Vec::new);
    // The byte order mark is before the tail.
    let unmarked = Encoding { bom: false, ..encoding };
    Blocks::resume(source, unmarked)?.each(unmarked, |bytes| {
        lines.feed(bytes);
        !lines.is_full()
    })?;
    let page = lines.finish_checked()?;
    let has_all = page.end != PageEnd::ByteBudget && page.shown == count;
    Ok(has_all.then_some(Page { complete: false, ..page }))
}

/// The offset of the first of the last lines. Returns `None` if they begin with the file, have more bytes than the
/// budget, or cannot be read.
fn start_of_tail(
    source: &mut (impl Read + Seek),
    count: u64,
    request: &PageRequest,
) -> io::Result<Option<u64>> {
    let budget = u64::try_from(request.budget).unwrap_or(u64::MAX);
    let mut left = count;
    let mut block = [0; 16 * 1024];
    let mut end = request.size_hint;
    while end > 0 && request.size_hint - end <= budget {
        let start = end.saturating_sub(block.len() as u64);
        let block = &mut block[..usize::try_from(end - start).unwrap_or(0)];
        source.seek(SeekFrom::Start(start))?;
        match source.read_exact(block) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let mut rest = &*block;
        // A line ending at the end of the file does not start a line.
        if end == request.size_hint {
            rest = rest.strip_suffix(b"\n").unwrap_or(rest);
        }
        while let Some(line_end) = memrchr(b'\n', rest) {
            left -= 1;
            if left == 0 {
                return Ok(Some(start + line_end as u64 + 1));
            }
            rest = &rest[..line_end];
        }
        end = start;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;
    use crate::page::{Style, read_page};

    fn request(bytes: &[u8], lines: u64) -> PageRequest {
        PageRequest {
            first: 1,
            lines: Some(lines),
            style: Style::Raw,
            budget: usize::MAX,
            max_line_chars: usize::MAX,
            max_line_bytes: None,
            size_hint: bytes.len() as u64,
            encoding: None,
            count_all: false,
        }
    }

    /// The last lines, found by counting from the beginning.
    fn counted(bytes: &[u8], lines: u64) -> Page {
        let whole = PageRequest { lines: None, count_all: true, ..request(bytes, lines) };
        let total = read_page(&mut &*bytes, &whole).unwrap().total;
        let first = total.saturating_sub(lines) + 1;
        read_page(&mut &*bytes, &PageRequest { first, ..whole }).unwrap()
    }

    fn tail(bytes: &[u8], lines: u64) -> Option<Page> {
        read_tail(&mut Cursor::new(bytes), &request(bytes, lines)).unwrap()
    }

    #[test]
    fn the_last_lines_are_the_same_as_if_all_were_counted() {
        let many: String =
            (0..3_000).map(|line| format!("{line:>width$}\n", width = line % 97 + 4)).collect();
        let long = "x".repeat(40_000);
        for text in [
            many.clone(),
            format!("{many}no line end"),
            format!("{many}\n\n\n"),
            many.replace('\n', "\r\n"),
            format!("a\n{long}\n{long}\r\n{long}"),
            format!("\u{feff}{many}\u{e9}\n"),
        ] {
            for lines in [1, 2, 3, 7, 100, 1_000] {
                let counted = counted(text.as_bytes(), lines);
                match tail(text.as_bytes(), lines) {
                    Some(tail) => {
                        assert_eq!((tail.content, tail.end), (counted.content, PageEnd::EndOfFile));
                        assert_eq!((tail.encoding, tail.complete), (counted.encoding, false));
                    }
                    None => assert!(counted.total <= lines, "{lines}"),
                }
            }
        }
    }

    #[test]
    fn lines_that_have_to_be_counted_are_not_read_from_the_end() {
        let encode = |label: &str| Encoding::for_label(label).unwrap().encode("a\nb\nc\n");
        for label in ["utf-16", "utf-16be", "utf-32"] {
            assert!(tail(&encode(label).unwrap(), 1).is_none(), "{label}");
        }
        let text = "line\n".repeat(100);
        assert!(tail(text.as_bytes(), 0).is_none());
        let small = PageRequest { budget: 20, ..request(text.as_bytes(), 9) };
        assert!(read_tail(&mut Cursor::new(&text), &small).unwrap().is_none());
        // The file was truncated since its size was read.
        let larger = PageRequest { size_hint: 600, ..request(text.as_bytes(), 1) };
        assert!(read_tail(&mut Cursor::new(&text), &larger).unwrap().is_none());
    }

    #[test]
    fn lines_that_a_file_gets_meanwhile_are_not_in_its_tail() {
        let (text, more) = ("line\n".repeat(100), "more\n".repeat(10));
        let grown = format!("{text}{more}");
        let tail = read_tail(&mut Cursor::new(&grown), &request(text.as_bytes(), 2));
        assert_eq!(tail.unwrap().unwrap().content, "line\nline\n");
    }

    #[test]
    fn a_tail_tells_the_encoding_of_a_file_that_begins_with_ascii() {
        let mut bytes = b"ascii\n".repeat(20_000);
        // Shift_JIS: こんにちは世界
        bytes.extend_from_slice(
            b"\x82\xb1\x82\xf1\x82\xc9\x82\xbf\x82\xcd\x90\xa2\x8a\x45\n".repeat(9).as_slice(),
        );
        let refused = read_tail(&mut Cursor::new(&bytes), &request(&bytes, 1));
        let Err(PageError::Encoding(encoding)) = refused else { panic!("{refused:?}") };
        let known = PageRequest { encoding: Some(encoding), ..request(&bytes, 1) };
        let page = read_tail(&mut Cursor::new(&bytes), &known).unwrap().unwrap();
        assert_eq!(page.content, "\u{3053}\u{3093}\u{306b}\u{3061}\u{306f}\u{4e16}\u{754c}\n");
    }

    proptest! {
        #[test]
        fn any_text_has_the_tail_that_counting_finds(text in "[ab\u{e9}\r\n]{0,60}", lines in 1u64..9) {
            let counted = counted(text.as_bytes(), lines);
            match tail(text.as_bytes(), lines) {
                Some(tail) => prop_assert_eq!(tail.content, counted.content),
                None => prop_assert!(counted.total <= lines),
            }
        }
    }
}
