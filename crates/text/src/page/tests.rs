use proptest::prelude::*;

use super::window::push_number;
use super::*;

/// A reader that returns its bytes in pieces of a given size.
struct Trickle<'b>(&'b [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.0.len().min(self.1).min(buffer.len());
        buffer[..size].copy_from_slice(&self.0[..size]);
        self.0 = &self.0[size..];
        Ok(size)
    }
}

fn all() -> PageRequest {
    PageRequest {
        first: 1,
        lines: None,
        style: Style::Raw,
        budget: usize::MAX,
        max_line_chars: 2000,
        max_line_bytes: None,
        size_hint: 0,
        encoding: None,
        count_all: true,
    }
}

fn page(bytes: &[u8], request: PageRequest) -> Page {
    read_page(&mut &*bytes, &request).unwrap()
}

#[test]
fn line_numbers_look_like_those_of_cat_n() {
    let request = PageRequest { style: Style::Numbered, ..all() };
    assert_eq!(page(b"a\nb\n", request).content, "     1\ta\n     2\tb\n");
    assert_eq!(page(b"a\r\nb", request).content, "     1\ta\n     2\tb");
    assert_eq!(page(b"", request).content, "");
}

#[test]
fn numbers_of_any_length_are_aligned() {
    for number in [1, 9, 10, 99_999, 999_999, 1_000_000, u64::MAX] {
        let mut out = String::new();
        push_number(&mut out, number);
        assert_eq!(out, format!("{number:>6}"));
    }
}

#[test]
fn a_page_reports_why_it_ends() {
    for (first, lines, content, end) in [
        (1, None, "a\nb\nc\n", PageEnd::EndOfFile),
        (1, Some(3), "a\nb\nc\n", PageEnd::EndOfFile),
        (1, Some(2), "a\nb\n", PageEnd::LineLimit),
        (2, Some(1), "b\n", PageEnd::LineLimit),
        (3, Some(9), "c\n", PageEnd::EndOfFile),
        (4, None, "", PageEnd::EndOfFile),
        (99, Some(1), "", PageEnd::EndOfFile),
    ] {
        let page = page(b"a\nb\nc\n", PageRequest { first, lines, ..all() });
        assert_eq!((page.content.as_str(), page.end, page.total), (content, end, 3));
    }
}

#[test]
fn the_budget_cuts_between_lines_and_an_exact_fit_is_no_cut() {
    for (budget, content, end) in [
        (6, "aa\nbb\n", PageEnd::EndOfFile),
        (5, "aa\n", PageEnd::ByteBudget),
        (3, "aa\n", PageEnd::ByteBudget),
    ] {
        let page = page(b"aa\nbb\n", PageRequest { budget, ..all() });
        assert_eq!((page.content.as_str(), page.end), (content, end), "{budget}");
    }
}

#[test]
fn a_line_longer_than_a_block_is_cut() {
    let mut bytes = vec![b'x'; 3 * BLOCK];
    bytes.extend_from_slice(b"\nnext\n");
    let page = page(&bytes, PageRequest { max_line_chars: 10, ..all() });
    assert_eq!(page.content, format!("xxxxxxxxxx... [+{} characters]\nnext\n", 3 * BLOCK - 10));
    assert_eq!(page.total, 2);
}

#[test]
fn utf16_and_utf32_are_paged_like_utf8() {
    for label in ["utf-16", "utf-16le", "utf-16be", "utf-32"] {
        let encoding = Encoding::for_label(label).unwrap();
        let bytes = encoding.encode("one\r\ntwo \u{1f600}\r\nthree").unwrap();
        let page = page(&bytes, PageRequest { first: 2, lines: Some(1), ..all() });
        assert_eq!(page.content, "two \u{1f600}\r\n", "{label}");
        assert_eq!((page.total, page.line_ending), (3, LineEnding::Crlf), "{label}");
        let whole = self::page(&bytes, PageRequest { max_line_chars: 4, ..all() });
        assert_eq!(
            whole.content, "one\r\ntwo ... [+1 characters]\r\nthre... [+1 characters]",
            "{label}"
        );
    }
}

#[test]
fn malformed_bytes_are_reported_only_if_they_are_shown() {
    let bytes = "gr\u{fc}n\nb\u{e4}d: ".bytes().chain(*b"\xFF\n").collect::<Vec<_>>();
    let whole = page(&bytes, all());
    assert_eq!(whole.content, "gr\u{fc}n\nb\u{e4}d: \u{fffd}\n");
    assert!(whole.malformed);
    assert!(!page(&bytes, PageRequest { lines: Some(1), ..all() }).malformed);
}

#[test]
fn a_character_across_the_end_of_the_sniffed_bytes_is_no_legacy_text() {
    let mut bytes = vec![b'a'; SNIFF_BYTES - 1];
    bytes.extend_from_slice("\u{e9}\nnext \u{fc}\n".as_bytes());
    let request = PageRequest { first: 2, size_hint: bytes.len() as u64, ..all() };
    let page = page(&bytes, request);
    assert_eq!((page.content.as_str(), page.encoding), ("next \u{fc}\n", Encoding::UTF_8));
}

#[test]
fn a_first_line_longer_than_the_budget_is_cut_too() {
    let page = page(&[b'x'; 5000], PageRequest { budget: 10, max_line_chars: 10_000, ..all() });
    assert_eq!(page.content, "xxxxxxxxxx... [+4990 characters]");
}

/// A reader that returns its bytes, and then `TimedOut`.
struct TooSlow<'b>(&'b [u8]);

impl Read for TooSlow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::ErrorKind::TimedOut.into()),
            read => Ok(read),
        }
    }
}

#[test]
fn a_full_page_survives_the_deadline_with_an_incomplete_count() {
    let bytes = "line\n".repeat(20_000);
    let request = PageRequest { lines: Some(2), size_hint: u64::MAX, ..all() };
    let page = read_page(&mut TooSlow(bytes.as_bytes()), &request).unwrap();
    assert_eq!((page.content.as_str(), page.complete), ("line\nline\n", false));
    // The file may have lines after those that were read.
    let whole = PageRequest { lines: Some(20_000), ..request };
    let page = read_page(&mut TooSlow(bytes.as_bytes()), &whole).unwrap();
    assert_eq!((page.shown, page.total, page.complete), (20_000, 20_000, false));
    assert_eq!(page.end, PageEnd::LineLimit);
    let all = PageRequest { size_hint: u64::MAX, ..all() };
    assert!(matches!(read_page(&mut TooSlow(bytes.as_bytes()), &all), Err(PageError::Io(_))));
}

#[test]
fn lines_after_the_window_are_not_read_unless_they_are_counted() {
    let bytes = "line\n".repeat(100_000);
    let request = PageRequest { lines: Some(2), size_hint: 500_000, count_all: false, ..all() };
    let mut source = bytes.as_bytes();
    let page = read_page(&mut source, &request).unwrap();
    assert_eq!((page.content.as_str(), page.complete), ("line\nline\n", false));
    assert_eq!((page.end, source.len()), (PageEnd::LineLimit, bytes.len() - BLOCK));
    // If the budget ends the page, the answer has the number of lines.
    let cut = PageRequest { budget: 7, ..request };
    let page = read_page(&mut bytes.as_bytes(), &cut).unwrap();
    assert_eq!((page.end, page.total, page.complete), (PageEnd::ByteBudget, 100_000, true));
    let short = PageRequest { lines: Some(9), ..request };
    let page = read_page(&mut &b"a\nb"[..], &short).unwrap();
    assert_eq!((page.end, page.total, page.complete), (PageEnd::EndOfFile, 2, true));
}

#[test]
fn a_byte_order_mark_is_not_shown() {
    assert_eq!(page(b"\xEF\xBB\xBFa\n", all()).content, "a\n");
}

#[test]
fn binary_is_refused_with_its_type() {
    let error = read_page(&mut &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], &all()).unwrap_err();
    assert!(matches!(error, PageError::Binary(Binary { mime: "image/png" })));
}

proptest! {
    #[test]
    fn consecutive_pages_give_the_whole_text(
        text in "[ab\u{e9}\u{1f600}\r\n]{0,80}",
        budget in 1usize..40,
        limit in proptest::option::of(1u64..5),
        piece in 1usize..9,
    ) {
        let mut whole = String::new();
        let mut first = 1;
        loop {
            let request = PageRequest { first, lines: limit, budget: budget + 80, ..all() };
            let page = read_page(&mut Trickle(text.as_bytes(), piece), &request).unwrap();
            whole.push_str(&page.content);
            first += page.shown;
            if page.end == PageEnd::EndOfFile {
                prop_assert_eq!(first - 1, page.total);
                break;
            }
        }
        prop_assert_eq!(whole, text);
    }

    #[test]
    fn consecutive_pages_of_utf16_and_utf32_give_the_whole_text(
        text in "[ab\u{e9}\u{4e2d}\u{1f600}\r\n]{1,60}",
        budget in 1usize..40,
        piece in 1usize..9,
        label in prop::sample::select(vec!["utf-16", "utf-32"]),
    ) {
        let bytes = Encoding::for_label(label).unwrap().encode(&text).unwrap();
        let (mut whole, mut first) = (String::new(), 1);
        loop {
            let request = PageRequest { first, budget: budget + 100, lines: Some(1), ..all() };
            let page = read_page(&mut Trickle(&bytes, piece), &request).unwrap();
            whole.push_str(&page.content);
            first += page.shown;
            if page.end == PageEnd::EndOfFile {
                break;
            }
        }
        prop_assert_eq!(whole, text);
    }

    #[test]
    fn any_bytes_give_a_page_or_a_type(bytes: Vec<u8>, first in 1u64..9, budget: u8) {
        let request = PageRequest { first, budget: budget.into(), style: Style::Numbered, ..all() };
        if let Ok(page) = read_page(&mut &bytes[..], &request) {
            prop_assert!(page.shown <= page.total);
        }
    }
}
