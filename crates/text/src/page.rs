//! Reads a page: a window of lines of a file of any size.
//!
//! The file is read in blocks. Lines of the window are kept, and all others are only counted, so memory does not grow
//! with the file or with its longest line. The total is exact, unless the deadline passed after the window was full,
//! or only the window was requested; then `Page::complete` is false.

mod tail;
mod window;

use std::io::{self, Read};

use memchr::memrchr;

use crate::binary::{Binary, Content, SNIFF_BYTES, sniff};
use crate::page::window::Window;
use crate::transcode::Transcoder;
use crate::{Charset, Encoding, LineCount, LineEnding};
pub use tail::read_tail;

/// Which lines to show, and how.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest {
    /// The first line to show, counting from 1.
    pub first: u64,
    /// The maximum number of lines to show; `None` for no maximum.
    pub lines: Option<u64>,
    /// The format of lines.
    pub style: Style,
    /// The maximum size of the shown lines in bytes. One line is always shown.
    pub budget: usize,
    /// The maximum length of a shown line in characters; longer lines are cut.
    pub max_line_chars: usize,
    /// The same in bytes.
    pub max_line_bytes: Option<usize>,
    /// The file's size, if it is known. It decides the size of the first block.
    pub size_hint: u64,
    /// The encoding, if it is already known.
    pub encoding: Option<Encoding>,
    /// Whether the lines after the window are counted. If the budget ends the page, they are always counted.
    pub count_all: bool,
}

/// The format of a page's lines.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Style {
    /// Like `cat -n`: the number right-aligned in 6 columns, a tab, the line, LF.
    Numbered,
    /// `L`, the number, a colon, a blank, the line, LF.
    Labelled,
    /// The line with its line ending in the file.
    Raw,
}

/// A window of lines.
#[derive(Clone, Debug)]
pub struct Page {
    /// The lines, written in the requested style.
    pub content: String,
    /// How many lines `content` holds.
    pub shown: u64,
    /// The number of lines in the file; the minimum if `complete` is false.
    pub total: u64,
    /// Whether the whole file was counted. It is false if the deadline passed after the window was full, or if the
    /// other lines were not to be counted.
    pub complete: bool,
    /// The reason why the page ends there.
    pub end: PageEnd,
    /// The file's encoding.
    pub encoding: Encoding,
    /// The file's line endings.
    pub line_ending: LineEnding,
    /// Whether bytes in the window were malformed and are shown as U+FFFD.
    pub malformed: bool,
    /// The offsets of some lines, in a large file.
    pub line_offsets: Vec<LineOffset>,
    /// Whether the encoding is certain. It is not if the file's beginning is all ASCII.
    pub encoding_certain: bool,
}

/// The offset of a line in a large file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LineOffset {
    /// The number of lines before it.
    pub lines: u64,
    /// The number of bytes before it.
    pub bytes: u64,
}

/// Facts about a file that was read completely before, and an offset to resume from.
#[derive(Clone, Copy, Debug)]
pub struct ResumePoint {
    /// The offset at which reading resumes.
    pub mark: LineOffset,
    /// How many lines there are.
    pub total: u64,
    /// The encoding.
    pub encoding: Encoding,
    /// The line endings.
    pub line_ending: LineEnding,
    /// Whether the encoding is certain.
    pub encoding_certain: bool,
}

/// The size of a large file. Smaller ones are fast to read from the start; larger ones get line offsets.
pub const LARGE_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// The maximum number of offsets: one for each block of a 256 MiB file. They take 64 KiB of memory.
const MAX_LINE_OFFSETS: u64 = 4_096;

/// The reason why a page ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PageEnd {
    /// The file has no more lines.
    EndOfFile,
    /// The page has the requested number of lines, and the file has more.
    LineLimit,
    /// The next requested line does not fit into the budget.
    ByteBudget,
}

/// The reason why there is no page.
#[derive(Debug)]
pub enum PageError {
    /// Reading failed.
    Io(io::Error),
    /// The file is not text.
    Binary(Binary),
    /// The file starts with ASCII only, but the window shows that it has this encoding. The caller has to read it
    /// again from the start.
    Encoding(Encoding),
}

impl From<io::Error> for PageError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads a window of lines, and counts all lines.
pub fn read_page(source: &mut impl Read, request: &PageRequest) -> Result<Page, PageError> {
    let mut blocks = Blocks::start(source, request.size_hint)?;
    let encoding = match request.encoding {
        Some(known) => known,
        None => blocks.encoding?,
    };
    let mut lines = Window::new(*request, encoding);
    if request.encoding.is_none() && blocks.ascii {
        lines.doubtful = Some(Vec::new());
    }
    let mut line_offsets = LineOffsets::new(request.size_hint, encoding);
    let taken = blocks.each(encoding, |bytes| {
        lines.feed(bytes);
        line_offsets.feed(bytes, lines.count.ended());
        lines.complete = request.count_all || !lines.has_all_lines();
        lines.complete
    });
    let wide = match taken {
        Ok(wide) => wide,
        // The deadline passed, but the window is full. Only the count is incomplete.
        Err(error) if error.kind() == io::ErrorKind::TimedOut && lines.is_full() => {
            lines.complete = false;
            false
        }
        Err(error) => return Err(error.into()),
    };
    let encoding_certain = lines.doubtful.is_none();
    let mut page = lines.finish_checked()?;
    page.encoding_certain = encoding_certain;
    page.malformed |= wide;
    page.line_offsets = line_offsets.line_offsets;
    Ok(page)
}

/// Reads a window of lines from a source positioned at `known.mark`, and stops after it.
pub fn read_page_from(
    source: &mut impl Read,
    known: ResumePoint,
    request: &PageRequest,
) -> Result<Page, PageError> {
    // The byte order mark is before the resume point.
    let encoding = Encoding { bom: false, ..known.encoding };
    let mut lines = Window::new(*request, encoding);
    lines.count = LineCount::after(known.mark.lines);
    lines.doubtful = (!known.encoding_certain).then(Vec::new);
    Blocks::resume(source, encoding)?.each(encoding, |bytes| {
        lines.feed(bytes);
        !lines.is_full()
    })?;
    let page = lines.finish_checked()?;
    let at_end = request.first.saturating_add(page.shown) > known.total;
    Ok(Page {
        total: known.total,
        encoding: known.encoding,
        line_ending: known.line_ending,
        end: match page.end {
            PageEnd::ByteBudget => PageEnd::ByteBudget,
            _ if at_end => PageEnd::EndOfFile,
            _ => PageEnd::LineLimit,
        },
        ..page
    })
}

/// Whether a byte 0x0A is always a line feed.
fn is_bytewise(encoding: Encoding) -> bool {
    matches!(encoding.charset, Charset::Utf8 | Charset::Legacy(_))
}

/// Collects line offsets while a large file is read.
struct LineOffsets {
    line_offsets: Vec<LineOffset>,
    offset: u64,
    next: u64,
    /// The minimum number of bytes between two offsets.
    spacing: u64,
}

impl LineOffsets {
    fn new(size: u64, encoding: Encoding) -> Self {
        let spacing = if size >= LARGE_FILE_BYTES && is_bytewise(encoding) {
            (size / MAX_LINE_OFFSETS).max(BLOCK as u64)
        } else {
            u64::MAX
        };
        Self {
            line_offsets: Vec::new(),
            offset: encoding.mark_len() as u64,
            next: spacing,
            spacing,
        }
    }

    fn feed(&mut self, block: &[u8], ended: u64) {
        let start = self.offset;
        self.offset += block.len() as u64;
        if self.offset >= self.next
            && self.line_offsets.len() < MAX_LINE_OFFSETS as usize
            && let Some(end) = memrchr(b'\n', block)
        {
            self.line_offsets.push(LineOffset { lines: ended, bytes: start + end as u64 + 1 });
            self.next = self.offset.saturating_add(self.spacing);
        }
    }
}

/// Counts the lines of a text file. The error for a binary file has its type.
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

/// Reads a file in blocks and detects its encoding from the first bytes.
struct Blocks<'s, R> {
    source: &'s mut R,
    buffer: Vec<u8>,
    filled: usize,
    encoding: Result<Encoding, Binary>,
    /// Whether the sniffed bytes are all ASCII and the file has more, so that its encoding is uncertain.
    ascii: bool,
}

impl From<Binary> for PageError {
    fn from(binary: Binary) -> Self {
        Self::Binary(binary)
    }
}

/// The block size for large files. System calls cost little at this size, a block fits into the CPU cache, and a page
/// reads only a block or two.
const BLOCK: usize = SNIFF_BYTES;

impl<'s, R: Read> Blocks<'s, R> {
    /// Continues in the middle of a file with a known encoding.
    fn resume(source: &'s mut R, encoding: Encoding) -> io::Result<Self> {
        let mut buffer = vec![0; BLOCK];
        let filled = read_some(source, &mut buffer)?;
        Ok(Self { source, buffer, filled, encoding: Ok(encoding), ascii: false })
    }

    fn start(source: &'s mut R, size_hint: u64) -> io::Result<Self> {
        // One more byte than the file's size, so that the first read also finds the end of the file.
        let size = usize::try_from(size_hint).unwrap_or(BLOCK).saturating_add(1);
        let mut buffer = vec![0; size.clamp(512, BLOCK)];
        let mut filled = 0;
        let needed = buffer.len().min(SNIFF_BYTES);
        let mut whole = false;
        while filled < needed && !whole {
            let read = read_some(source, &mut buffer[filled..])?;
            filled += read;
            whole = read == 0;
        }
        // Whether the sniffed bytes are the whole file, not only the bytes read so far.
        let whole = (whole || filled as u64 == size_hint) && filled <= SNIFF_BYTES;
        let encoding = match sniff(&buffer[..filled.min(SNIFF_BYTES)], whole) {
            Content::Text(encoding) => Ok(encoding),
            Content::Binary(binary) => Err(binary),
        };
        let ascii = !whole && buffer[..filled.min(SNIFF_BYTES)].is_ascii();
        Ok(Self { source, buffer, filled, encoding, ascii })
    }

    /// Passes every block to `take` until it returns false. UTF-16 and UTF-32 are transcoded to UTF-8, so a byte 0x0A
    /// is always a line feed.
    ///
    /// Returns whether UTF-16 or UTF-32 text was malformed.
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
