//! Collects the lines of a page from the blocks of a file.

use memchr::memchr;

use super::{Page, PageEnd, PageError, PageRequest, Style};
use crate::binary::SNIFF_BYTES;
use crate::long_line::{LineLimits, PartialLine, ShownLine};
use crate::{Charset, Encoding, LineCount};

/// The maximum capacity that is reserved for a block in advance. Most pages are smaller.
const MAX_RESERVED: usize = 64 * 1024;
/// The maximum capacity that is reserved for a whole file. A larger page grows while it is read.
const MAX_WHOLE_FILE: u64 = 16 * 1024 * 1024;

/// The shown lines, collected block by block.
pub(super) struct Window {
    request: PageRequest,
    encoding: Encoding,
    /// The encoding of the bytes passed to `feed`.
    feed_encoding: Encoding,
    pub(super) count: LineCount,
    content: String,
    shown: u64,
    over_budget: bool,
    /// Whether the whole file was counted.
    pub(super) complete: bool,
    /// The beginning of a line that continues in the next block.
    partial: Option<PartialLine>,
    malformed: bool,
    /// The lines of the window that are not ASCII, if the encoding is uncertain.
    pub(super) doubtful: Option<Vec<u8>>,
}

impl Window {
    pub(super) fn new(request: PageRequest, encoding: Encoding) -> Self {
        // UTF-16 and UTF-32 have been transcoded to UTF-8 before.
        let feed_encoding = match encoding.charset {
            Charset::Utf8 | Charset::Legacy(_) => encoding,
            _ => Encoding::UTF_8,
        };
        // Without a maximum of lines, the page is often the whole file.
        let whole = request.lines.map_or(request.size_hint, |_| 0);
        let reserved = request.budget.min(whole.min(MAX_WHOLE_FILE) as usize);
        // A cut line must fit into the budget.
        let max_line_chars = request.max_line_chars.min(request.budget.max(1));
        Self {
            request: PageRequest { max_line_chars, ..request },
            encoding,
            feed_encoding,
            count: LineCount::default(),
            content: String::with_capacity(reserved),
            shown: 0,
            over_budget: false,
            complete: true,
            partial: None,
            malformed: false,
            doubtful: None,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.over_budget || self.request.lines.is_some_and(|lines| self.shown >= lines)
    }

    /// Whether the page has the requested number of lines, and the file has the first of them.
    pub(super) fn has_all_lines(&self) -> bool {
        self.is_full() && !self.over_budget && self.count.ended() >= self.request.first
    }

    pub(super) fn feed(&mut self, block: &[u8]) {
        let before = self.count.ended();
        self.count.feed(block);
        if self.is_full() || self.count.ended() + 1 < self.request.first {
            return;
        }
        let mut rest = block;
        // Skips the lines before the window whose line endings are in this block.
        for _ in before + 1..self.request.first {
            let Some(end) = memchr(b'\n', rest) else { return };
            rest = &rest[end + 1..];
        }
        let left = self.request.budget.saturating_sub(self.content.len());
        let numbers = if self.request.style == Style::Raw { 0 } else { rest.len() / 4 };
        self.content.reserve(left.min(rest.len() + numbers).min(MAX_RESERVED));
        // Most blocks are valid UTF-8, and one check of a block is faster than one of each line.
        let mut text = std::str::from_utf8(rest).ok();
        while !rest.is_empty() && !self.is_full() {
            match memchr(b'\n', rest) {
                Some(end) => {
                    self.keep_if_doubtful(&rest[..end + 1]);
                    self.end_line(&rest[..end], text.map(|text| &text[..end]));
                    rest = &rest[end + 1..];
                    text = text.map(|text| &text[end + 1..]);
                }
                None => {
                    self.keep_if_doubtful(rest);
                    self.partial().feed(rest);
                    return;
                }
            }
        }
    }

    /// Keeps about `SNIFF_BYTES` bytes that are not ASCII, for another guess at the encoding.
    fn keep_if_doubtful(&mut self, bytes: &[u8]) {
        if let Some(kept) = &mut self.doubtful
            && kept.len() < SNIFF_BYTES
            && !bytes.is_ascii()
        {
            kept.extend_from_slice(&bytes[..bytes.len().min(SNIFF_BYTES)]);
        }
    }

    fn partial(&mut self) -> &mut PartialLine {
        let limits = self.request.line_limits();
        self.partial.get_or_insert_with(|| PartialLine::new(&self.feed_encoding, limits))
    }

    /// Adds a line whose LF was found. `line` is the part of it in this block, and `text` is the same if it is known
    /// to be UTF-8.
    fn end_line(&mut self, line: &[u8], text: Option<&str>) {
        if let Some(mut partial) = self.partial.take() {
            partial.feed(line);
            let (shown, crlf) = partial.finish(true);
            self.push_shown(shown, if crlf { "\r\n" } else { "\n" });
            return;
        }
        let (line, end) = match line.strip_suffix(b"\r") {
            Some(line) => (line, "\r\n"),
            None => (line, "\n"),
        };
        let text = match text {
            Some(text) => Ok(&text[..line.len()]),
            None => std::str::from_utf8(line),
        };
        match text {
            Ok(text) if self.is_shown_verbatim(line) => self.push(text, end),
            _ => {
                let limits = self.request.line_limits();
                self.push_shown(ShownLine::of(line, &self.feed_encoding, limits), end);
            }
        }
    }

    fn is_shown_verbatim(&self, line: &[u8]) -> bool {
        let LineLimits { chars, bytes } = self.request.line_limits();
        line.len() <= chars.min(bytes) && !matches!(self.encoding.charset, Charset::Legacy(_))
    }

    fn push_shown(&mut self, line: ShownLine, end: &str) {
        let malformed = line.malformed;
        let shown = self.shown;
        self.push(&line.into_text(), end);
        self.malformed |= malformed && self.shown > shown;
    }

    fn push(&mut self, text: &str, end: &str) {
        let number = self.request.first + self.shown;
        let digits = number.checked_ilog10().map_or(1, |log| log as usize + 1);
        let needed = match self.request.style {
            Style::Numbered => digits.max(6) + 1 + text.len() + usize::from(!end.is_empty()),
            Style::Labelled => digits + 3 + text.len() + usize::from(!end.is_empty()),
            Style::Raw => text.len() + end.len(),
        };
        if self.shown > 0 && self.content.len() + needed > self.request.budget {
            self.over_budget = true;
            return;
        }
        match self.request.style {
            Style::Numbered => {
                push_number(&mut self.content, number);
                self.content.push('\t');
                self.content.push_str(text);
                if !end.is_empty() {
                    self.content.push('\n');
                }
            }
            Style::Labelled => {
                self.content.push_str(&format!("L{number}: {text}"));
                if !end.is_empty() {
                    self.content.push('\n');
                }
            }
            Style::Raw => {
                self.content.push_str(text);
                self.content.push_str(end);
            }
        }
        self.shown += 1;
    }

    /// The page, or an error if its bytes show that the file has another encoding.
    pub(super) fn finish_checked(mut self) -> Result<Page, PageError> {
        let doubtful = self.doubtful.take();
        let page = self.finish();
        if let Some(bytes) = doubtful
            && page.malformed
            && let whole = page.end == PageEnd::EndOfFile
            && let legacy @ Encoding { charset: Charset::Legacy(_), .. } =
                Encoding::guess(&bytes, whole)
        {
            return Err(PageError::Encoding(legacy));
        }
        Ok(page)
    }

    pub(super) fn finish(mut self) -> Page {
        if let Some(partial) = self.partial.take() {
            let (shown, _) = partial.finish(false);
            self.push_shown(shown, "");
        }
        let total = self.count.total();
        let next = self.request.first.saturating_add(self.shown);
        Page {
            // If the count is incomplete, the file may have more lines.
            end: match (self.over_budget, self.complete && next > total) {
                (true, _) => PageEnd::ByteBudget,
                (false, true) => PageEnd::EndOfFile,
                (false, false) => PageEnd::LineLimit,
            },
            content: self.content,
            shown: self.shown,
            total,
            complete: self.complete,
            encoding: self.encoding,
            line_ending: self.count.ending(),
            malformed: self.malformed,
            line_offsets: Vec::new(),
            encoding_certain: true,
        }
    }
}

impl PageRequest {
    fn line_limits(&self) -> LineLimits {
        LineLimits { chars: self.max_line_chars, bytes: self.max_line_bytes.unwrap_or(usize::MAX) }
    }
}

/// Appends a number, right-aligned in 6 columns. It is called for every line, and is faster than `write!`.
pub(super) fn push_number(out: &mut String, mut number: u64) {
    let mut digits = [b' '; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    let aligned = &digits[first.min(digits.len() - 6)..];
    out.push_str(std::str::from_utf8(aligned).expect("digits and spaces are ASCII"));
}
