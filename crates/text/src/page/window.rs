//! The lines of a page, taken from what streams by.

use memchr::memchr;

use super::{Page, PageEnd, PageError, PageRequest, Style};
use crate::binary::SNIFF_BYTES;
use crate::long_line::{PartialLine, ShownLine};
use crate::{Charset, Encoding, LineCount};

/// How much room a page is given before its length is known.
const RESERVED: usize = 64 * 1024;

/// The lines that are shown, while the file streams by.
pub(super) struct Window {
    request: PageRequest,
    encoding: Encoding,
    /// The encoding of the bytes that are fed.
    lines_in: Encoding,
    pub(super) count: LineCount,
    content: String,
    shown: u64,
    over_budget: bool,
    /// Whether the whole file was counted.
    pub(super) complete: bool,
    /// The beginning of a line whose end is in a later block.
    partial: Option<PartialLine>,
    malformed: bool,
    /// Where the encoding is not certain: bytes of lines in the window that are not ASCII.
    pub(super) doubtful: Option<Vec<u8>>,
}

impl Window {
    pub(super) fn new(request: PageRequest, encoding: Encoding) -> Self {
        // What comes from a wide charset has been made UTF-8 on the way.
        let lines_in = match encoding.charset {
            Charset::Utf8 | Charset::Legacy(_) => encoding,
            _ => Encoding::UTF_8,
        };
        Self {
            request,
            encoding,
            lines_in,
            count: LineCount::default(),
            content: String::new(),
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

    pub(super) fn feed(&mut self, block: &[u8]) {
        let before = self.count.ended();
        self.count.feed(block);
        if self.is_full() || self.count.ended() + 1 < self.request.first {
            return;
        }
        let mut rest = block;
        // Lines before the window: the last end among them is in this block, or was in an earlier one.
        for _ in before + 1..self.request.first {
            let Some(end) = memchr(b'\n', rest) else { return };
            rest = &rest[end + 1..];
        }
        let most = self.request.budget.saturating_sub(self.content.len());
        self.content.reserve(most.min(rest.len() + rest.len() / 4).min(RESERVED));
        // Most blocks are valid as a whole, which is found out faster than that of each line.
        let mut text = std::str::from_utf8(rest).ok();
        while !rest.is_empty() && !self.is_full() {
            match memchr(b'\n', rest) {
                Some(end) => {
                    self.doubt(&rest[..end + 1]);
                    self.line_ends(&rest[..end], text.map(|text| &text[..end]));
                    rest = &rest[end + 1..];
                    text = text.map(|text| &text[end + 1..]);
                }
                None => {
                    self.doubt(rest);
                    self.partial().feed(rest);
                    return;
                }
            }
        }
    }

    /// Keeps what may tell the encoding, up to what is looked at of any file.
    fn doubt(&mut self, bytes: &[u8]) {
        if let Some(kept) = &mut self.doubtful
            && kept.len() < SNIFF_BYTES
            && !bytes.is_ascii()
        {
            kept.extend_from_slice(&bytes[..bytes.len().min(SNIFF_BYTES)]);
        }
    }

    fn partial(&mut self) -> &mut PartialLine {
        let most_chars = self.request.max_line_chars;
        self.partial.get_or_insert_with(|| PartialLine::new(&self.lines_in, most_chars))
    }

    /// A line's LF has been reached; `line` is what this block holds of it, and `text` the same if it is
    /// known to be UTF-8.
    fn line_ends(&mut self, line: &[u8], text: Option<&str>) {
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
            Ok(text) if self.shows_as_it_is(line) => self.push(text, end),
            _ => {
                let most_chars = self.request.max_line_chars;
                self.push_shown(ShownLine::of(line, &self.lines_in, most_chars), end);
            }
        }
    }

    fn shows_as_it_is(&self, line: &[u8]) -> bool {
        line.len() <= self.request.max_line_chars
            && !matches!(self.encoding.charset, Charset::Legacy(_))
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
            Style::Raw => {
                self.content.push_str(text);
                self.content.push_str(end);
            }
        }
        self.shown += 1;
    }

    /// The page, unless it shows that the file is in another encoding.
    pub(super) fn finish_in_doubt(mut self) -> Result<Page, PageError> {
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
            // Where the count is not complete, nobody knows that there are no more lines.
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

/// Appends a number, right-aligned in 6. Every line has one, so it is not formatted the general way.
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
    out.push_str(std::str::from_utf8(aligned).expect("digits and blanks are ASCII"));
}
