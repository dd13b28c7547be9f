//! A window of lines out of a file of any size.
//!
//! The file streams by in blocks: what is shown is kept, everything else is only counted, so memory
//! does not grow with the file, nor with its longest line. The total is exact, unless time ran out once
//! the window was full, which is said.

mod window;

use std::io::{self, Read};

use memchr::memrchr;

use crate::binary::{Binary, Content, SNIFF_BYTES, sniff};
use crate::page::window::Window;
use crate::transcode::Transcoder;
use crate::{Charset, Encoding, LineCount, LineEnding};

/// Which lines to show, and how.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest {
    /// The first line to show, counting from 1.
    pub first: u64,
    /// How many lines to show at the most; `None` for all that there are.
    pub lines: Option<u64>,
    /// How lines are written.
    pub style: Style,
    /// How many bytes the shown lines may take together. One line is always shown.
    pub budget: usize,
    /// Where a long line is cut, in characters.
    pub max_line_chars: usize,
    /// The file's size, as far as it is known: how large a block is worth reading at once.
    pub size_hint: u64,
    /// The encoding, if it is known already.
    pub encoding: Option<Encoding>,
}

/// How the lines of a page are written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Style {
    /// As `cat -n` does: the number right-aligned in 6, a tab, the line, LF.
    Numbered,
    /// The line with the end that it has in the file.
    Raw,
}

/// A window of lines.
#[derive(Clone, Debug)]
pub struct Page {
    /// The lines, written in the style that was asked for.
    pub content: String,
    /// How many lines `content` holds.
    pub shown: u64,
    /// How many lines the file has, or has at least.
    pub total: u64,
    /// Whether the whole file was counted: false if time ran out after the window was full.
    pub complete: bool,
    /// Why the page ends where it does.
    pub end: PageEnd,
    /// The file's encoding.
    pub encoding: Encoding,
    /// How the file's lines end.
    pub line_ending: LineEnding,
    /// Some bytes in the window had no meaning in the encoding and stand as U+FFFD.
    pub malformed: bool,
    /// Where some lines begin, in a large file.
    pub line_offsets: Vec<LineOffset>,
    /// Whether the file's beginning told its encoding, which it does not if it is all ASCII.
    pub encoding_certain: bool,
}

/// Where a line of a large file begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LineOffset {
    /// How many lines come before it.
    pub lines: u64,
    /// How many bytes come before it.
    pub bytes: u64,
}

/// What is known about a file from having read all of it before.
#[derive(Clone, Copy, Debug)]
pub struct ResumePoint {
    /// Where to go on from.
    pub mark: LineOffset,
    /// How many lines there are.
    pub total: u64,
    /// The encoding.
    pub encoding: Encoding,
    /// How the lines end.
    pub line_ending: LineEnding,
    /// Whether the encoding is certain.
    pub encoding_certain: bool,
}

/// Files below this size are read in no time; in larger ones some places are remembered.
pub const LARGE_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// How many places, at the most.
const MAX_LINE_OFFSETS: u64 = 4_096;

/// Why a page ends where it does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PageEnd {
    /// The file has no more lines.
    EndOfFile,
    /// As many lines as were asked for are there, and the file has more.
    LineLimit,
    /// The budget is used up, and lines that were asked for are missing.
    ByteBudget,
}

/// Why there is no page.
#[derive(Debug)]
pub enum PageError {
    /// Reading failed.
    Io(io::Error),
    /// The file is not text.
    Binary(Binary),
    /// The file begins with nothing but ASCII, but the window shows that it is in this encoding. It has
    /// to be read again from its beginning.
    Encoding(Encoding),
}

impl From<io::Error> for PageError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads a window of lines and counts all of them.
pub fn read_page(source: &mut impl Read, request: &PageRequest) -> Result<Page, PageError> {
    let mut blocks = Blocks::start(source, request.size_hint)?;
    let encoding = match request.encoding {
        Some(known) => known,
        None => blocks.encoding?,
    };
    // A line that is cut takes no more than the budget.
    let max_line_chars = request.max_line_chars.min(request.budget.max(1));
    let mut lines = Window::new(PageRequest { max_line_chars, ..*request }, encoding);
    if request.encoding.is_none() && blocks.ascii {
        lines.doubtful = Some(Vec::new());
    }
    let mut line_offsets = LineOffsets::new(request.size_hint, encoding);
    let taken = blocks.each(encoding, |bytes| {
        lines.feed(bytes);
        line_offsets.feed(bytes, lines.count.ended());
        true
    });
    let wide = match taken {
        Ok(wide) => wide,
        // Time is up, but all that was asked for is there: only the rest is not counted.
        Err(error) if error.kind() == io::ErrorKind::TimedOut && lines.is_full() => {
            lines.complete = false;
            false
        }
        Err(error) => return Err(error.into()),
    };
    let encoding_certain = lines.doubtful.is_none();
    let mut page = lines.finish_in_doubt()?;
    page.encoding_certain = encoding_certain;
    page.malformed |= wide;
    page.line_offsets = line_offsets.line_offsets;
    Ok(page)
}

/// Reads a window of lines from a source that stands at a mark, and no further.
pub fn read_page_from(
    source: &mut impl Read,
    known: ResumePoint,
    request: &PageRequest,
) -> Result<Page, PageError> {
    let max_line_chars = request.max_line_chars.min(request.budget.max(1));
    // The byte order mark is far behind.
    let encoding = Encoding { bom: false, ..known.encoding };
    let mut lines = Window::new(PageRequest { max_line_chars, ..*request }, encoding);
    lines.count = LineCount::after(known.mark.lines);
    lines.doubtful = (!known.encoding_certain).then(Vec::new);
    let mut buffer = vec![0; BLOCK];
    let filled = read_some(source, &mut buffer)?;
    let mut blocks = Blocks { source, buffer, filled, encoding: Ok(encoding), ascii: false };
    blocks.each(encoding, |bytes| {
        lines.feed(bytes);
        !lines.is_full()
    })?;
    let page = lines.finish_in_doubt()?;
    let end = request.first.saturating_add(page.shown) > known.total;
    Ok(Page {
        total: known.total,
        encoding: known.encoding,
        line_ending: known.line_ending,
        end: match page.end {
            PageEnd::ByteBudget => PageEnd::ByteBudget,
            _ if end => PageEnd::EndOfFile,
            _ => PageEnd::LineLimit,
        },
        ..page
    })
}

/// Places that are remembered while a large file streams by.
struct LineOffsets {
    line_offsets: Vec<LineOffset>,
    offset: u64,
    next: u64,
    apart: u64,
}

impl LineOffsets {
    fn new(size: u64, encoding: Encoding) -> Self {
        let bytewise = matches!(encoding.charset, Charset::Utf8 | Charset::Legacy(_));
        let apart = match size >= LARGE_FILE_BYTES && bytewise {
            true => (size / MAX_LINE_OFFSETS).max(BLOCK as u64),
            false => u64::MAX,
        };
        Self { line_offsets: Vec::new(), offset: encoding.mark_len() as u64, next: apart, apart }
    }

    fn feed(&mut self, block: &[u8], ended: u64) {
        let start = self.offset;
        self.offset += block.len() as u64;
        if self.offset >= self.next
            && self.line_offsets.len() < MAX_LINE_OFFSETS as usize
            && let Some(end) = memrchr(b'\n', block)
        {
            self.line_offsets.push(LineOffset { lines: ended, bytes: start + end as u64 + 1 });
            self.next = self.offset.saturating_add(self.apart);
        }
    }
}

/// Counts the lines of a text file; `Err` carries what it is if it is not text.
pub fn count_lines(
    source: &mut impl Read,
    size_hint: u64,
) -> Result<(LineCount, Encoding), PageError> {
    let mut blocks = Blocks::start(source, size_hint)?;
    let encoding = blocks.encoding?;
    let mut count = LineCount::default();
    blocks.each(encoding, |bytes| {
        count.feed(bytes);
        true
    })?;
    Ok((count, encoding))
}

/// A file's bytes in blocks, the first of them looked at for what the file is.
struct Blocks<'s, R> {
    source: &'s mut R,
    buffer: Vec<u8>,
    filled: usize,
    encoding: Result<Encoding, Binary>,
    /// Whether there is more than was looked at, which was all ASCII and could be in any encoding.
    ascii: bool,
}

impl From<Binary> for PageError {
    fn from(binary: Binary) -> Self {
        Self::Binary(binary)
    }
}

/// How much is read at once from a large file: system calls no longer matter, caches still hold it.
const BLOCK: usize = 256 * 1024;

impl<'s, R: Read> Blocks<'s, R> {
    fn start(source: &'s mut R, size_hint: u64) -> io::Result<Self> {
        // One byte more than the file has, so that the first read also sees its end.
        let size = usize::try_from(size_hint).unwrap_or(BLOCK).saturating_add(1);
        let mut buffer = vec![0; size.clamp(512, BLOCK)];
        let mut filled = 0;
        let wanted = buffer.len().min(SNIFF_BYTES);
        let mut whole = false;
        while filled < wanted && !whole {
            let read = read_some(source, &mut buffer[filled..])?;
            filled += read;
            whole = read == 0;
        }
        // Whether the whole file is what is looked at, not only what was read.
        let whole = (whole || filled as u64 == size_hint) && filled <= SNIFF_BYTES;
        let encoding = match sniff(&buffer[..filled.min(SNIFF_BYTES)], whole) {
            Content::Text(encoding) => Ok(encoding),
            Content::Binary(binary) => Err(binary),
        };
        let ascii = !whole && buffer[..filled.min(SNIFF_BYTES)].is_ascii();
        Ok(Self { source, buffer, filled, encoding, ascii })
    }

    /// Gives every block to `take`, as bytes in which 0x0A is a line end and nothing else is, until it
    /// wants no more.
    ///
    /// True if a wide charset held units without meaning.
    fn each(
        &mut self,
        encoding: Encoding,
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> io::Result<bool> {
        let mut wide = match encoding.charset {
            Charset::Utf8 | Charset::Legacy(_) => None,
            charset => Some((Transcoder::new(charset), Vec::new())),
        };
        let mut start = encoding.mark_len();
        while self.filled > 0 {
            let block = &self.buffer[start..self.filled];
            start = 0;
            let more = match &mut wide {
                None => take(block),
                Some((transcoder, text)) => {
                    transcoder.feed(block, text);
                    let more = take(text);
                    text.clear();
                    more
                }
            };
            if !more {
                return Ok(false);
            }
            self.filled = read_some(self.source, &mut self.buffer)?;
        }
        Ok(wide.is_some_and(|(transcoder, mut text)| {
            let malformed = transcoder.finish(&mut text);
            take(&text);
            malformed
        }))
    }
}

fn read_some(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests;
