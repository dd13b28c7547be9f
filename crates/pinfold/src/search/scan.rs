//! Searches one file after the other, with the same results as ripgrep.
//!
//! A small file is read with one call and searched in memory, and so is cached content. A file with NUL bytes or a
//! byte order mark is streamed, since its results depend on how it is read. A large file is streamed, too, so that
//! memory stays bounded and the deadline is checked.

mod collect;

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};
use pinfold_confine::{Deadline, Error as ConfineError, File};

use crate::limits::{MAX_SEARCH_HEAP_BYTES, MAX_WHOLE_FILE_BYTES, MAX_WHOLE_NAMED_FILE_BYTES};
use crate::memory_budget::{DeadlinePassed, reserve_file};
use crate::search::CompiledPattern;
use crate::search::bounded::{BoundedMatcher, TextKind};
use crate::search::content_cache::{Content, TextProperties};
use crate::search::scan::collect::Collector;

/// The kind of result that a search reports about a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ScanMode {
    /// Whether it matches.
    Files,
    /// How many matches it has.
    Count,
    /// The matching lines and their context lines.
    Lines { before: usize, after: usize },
}

/// The matches in a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileMatches {
    /// The number of matching lines; or the number of matches, if they are counted and can span lines.
    pub(crate) count: u64,
    /// The lines; `None` if there were too many to keep.
    pub(crate) lines: Option<Arc<Vec<Line>>>,
    /// The number of the first match in `lines`, counting from 0.
    pub(crate) first: u64,
    pub(crate) note: Option<BinaryNote>,
}

/// A line of a file that was searched.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its number, counting from 1.
    pub number: u64,
    /// The line with its line ending, cut if it is long.
    pub text: Vec<u8>,
    /// Whether it matches or is context.
    pub role: Role,
}

/// Why a line is part of an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// It matches.
    Match,
    /// It is a context line of a match.
    Context,
    /// It matches, but belongs to another page; here it is a context line.
    Elsewhere,
}

/// A note on a file with NUL bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BinaryNote {
    /// The search stopped at the NUL byte at this offset, after a match.
    Stopped(u64),
    /// It matches, but its lines are not shown; the NUL byte is at this offset.
    Matches(u64),
}

/// The state that the threads of one search share.
#[derive(Debug)]
pub(crate) struct Scan<'s> {
    pub(crate) pattern: &'s CompiledPattern,
    /// Lines that this matches, too, are not matches. Only for matches that do not span lines.
    pub(crate) exclude: Option<&'s CompiledPattern>,
    /// The maximum number of matches in a file.
    pub(crate) max_matches: Option<u64>,
    pub(crate) multiline: bool,
    pub(crate) mode: ScanMode,
    pub(crate) max_line_chars: usize,
    pub(crate) deadline: &'s Deadline,
    pub(crate) keep: KeepLines<'s>,
}

/// Which lines are kept in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeepLines<'s> {
    /// All lines, until the remaining bytes, which all files share, are used up.
    All(&'s AtomicUsize),
    /// The lines of the matches `from..to` of a file, counting from 0, up to this many bytes.
    Window { from: u64, to: u64, bytes: usize },
}

/// The searcher of one thread.
pub(crate) struct Scanner<'s> {
    scan: &'s Scan<'s>,
    matcher: BoundedMatcher<'s>,
    searcher: Searcher,
    buffer: Vec<u8>,
}

/// How a file was found: the call names its path, or a walk found it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FoundBy {
    Path,
    Walk,
}

impl<'s> Scanner<'s> {
    pub(crate) fn new(scan: &'s Scan<'s>) -> Self {
        let mut builder = SearcherBuilder::new();
        builder
            .line_number(matches!(scan.mode, ScanMode::Lines { .. }))
            .multi_line(scan.multiline)
            .memory_map(MmapChoice::never())
            .heap_limit(Some(MAX_SEARCH_HEAP_BYTES));
        if let ScanMode::Lines { before, after } = scan.mode {
            builder.before_context(before).after_context(after);
        }
        let searcher = builder.build();
        let matcher = BoundedMatcher::new(scan.pattern, scan.deadline).excluding(scan.exclude);
        let matcher = matcher.for_any_line(scan.mode == ScanMode::Files);
        Self { scan, matcher, searcher, buffer: Vec::new() }
    }

    /// Searches a file.
    pub(crate) fn search(
        &mut self,
        file: &mut File,
        found_by: FoundBy,
    ) -> Result<FileMatches, ConfineError> {
        Ok(self.search_keeping(file, found_by, None)?.0)
    }

    /// Searches a file. Also returns its content, if that has at most `max_kept` bytes. Without `max_kept`, it never does.
    pub(crate) fn search_keeping(
        &mut self,
        file: &mut File,
        found_by: FoundBy,
        max_kept: Option<u64>,
    ) -> Result<(FileMatches, Option<Content>), ConfineError> {
        let whole = match found_by {
            FoundBy::Path => MAX_WHOLE_NAMED_FILE_BYTES,
            FoundBy::Walk => MAX_WHOLE_FILE_BYTES.max(max_kept.unwrap_or(0)),
        };
        // A search holds the whole file, or its longest line, in memory. A file that the call names is copied once more
        // if matches may span lines.
        let copies = if found_by == FoundBy::Path { 2 } else { 1 };
        let most = copies * file.meta().len.min(MAX_SEARCH_HEAP_BYTES as u64);
        let _permit = reserve_file(most, self.scan.deadline)
            .map_err(|DeadlinePassed| ConfineError::TimedOut)?;
        let filled = if file.meta().len <= whole { fill(file, &mut self.buffer)? } else { None };
        let Some(len) = filled else {
            file.rewind();
            self.matcher.set_text(TextKind::Unknown);
            let reader = DeadlineReader { inner: file, deadline: self.scan.deadline };
            let hits = self.collect(found_by, true, |searcher, matcher, sink| {
                searcher.search_reader(matcher, reader, sink)
            });
            return Ok((hits?, None));
        };
        let buffer = std::mem::take(&mut self.buffer);
        let text = &buffer[..len];
        let kept = max_kept.is_some_and(|max| len as u64 <= max);
        let needs_ascii = kept || self.matcher.has_ascii_matcher();
        let properties =
            if needs_ascii { TextProperties::of(text) } else { TextProperties::of_unknown(text) };
        let hits = self.search_text(text, properties, found_by);
        let content = kept.then(|| Content { bytes: text.into(), properties });
        self.buffer = buffer;
        Ok((hits?, content))
    }

    /// Searches the content of a file that a walk found.
    pub(crate) fn search_content(
        &mut self,
        content: &Content,
    ) -> Result<FileMatches, ConfineError> {
        self.search_text(&content.bytes, content.properties, FoundBy::Walk)
    }

    fn search_text(
        &mut self,
        text: &[u8],
        properties: TextProperties,
        found_by: FoundBy,
    ) -> Result<FileMatches, ConfineError> {
        // Ripgrep maps a named file into memory and searches all of it at once.
        let at_once = match found_by {
            FoundBy::Path => properties.has_nul_or_bom || text.len() as u64 <= MAX_WHOLE_FILE_BYTES,
            FoundBy::Walk => !properties.has_nul_or_bom,
        };
        let spans_lines = || self.searcher.multi_line_with_matcher(&self.matcher);
        self.matcher.set_text(if properties.is_ascii {
            TextKind::Ascii
        } else if !at_once || !self.matcher.has_ascii_matcher() || spans_lines() {
            TextKind::Unknown
        } else {
            TextKind::Mixed
        });
        let deadline = self.scan.deadline;
        self.collect(found_by, properties.has_nul_or_bom, |searcher, matcher, sink| {
            if at_once {
                searcher.search_slice(matcher, text, sink)
            } else {
                searcher.search_reader(matcher, DeadlineReader { inner: text, deadline }, sink)
            }
        })
    }

    /// Searches a file by `search`, and collects the matches. `has_nul_or_bom` says that it may have a NUL byte or a byte
    /// order mark.
    fn collect(
        &mut self,
        found_by: FoundBy,
        has_nul_or_bom: bool,
        search: impl FnOnce(&mut Searcher, &BoundedMatcher<'s>, &mut Collector<'_>) -> io::Result<()>,
    ) -> Result<FileMatches, ConfineError> {
        // Like ripgrep: a NUL byte ends the search of a file that the walk found, but not of a named file.
        self.searcher.set_binary_detection(match found_by {
            _ if !has_nul_or_bom => BinaryDetection::none(),
            FoundBy::Path => BinaryDetection::convert(0),
            FoundBy::Walk => BinaryDetection::quit(0),
        });
        let mut sink = Collector::new(self.scan, &self.matcher, found_by);
        match search(&mut self.searcher, &self.matcher, &mut sink) {
            Ok(()) => Ok(sink.into_matches()),
            Err(_) if self.scan.deadline.has_passed() => Err(ConfineError::TimedOut),
            Err(_) if self.matcher.too_costly.take() => Err(ConfineError::TooLarge),
            // The searcher reports a line that exceeds the heap limit only by this text; a test pins it.
            Err(error) if error.to_string().contains("allocation limit") => {
                Err(ConfineError::TooLarge)
            }
            Err(error) => Err(ConfineError::Os(error)),
        }
    }
}

/// Reads a whole file into a reusable buffer. Returns `None` if it has grown since it was opened.
pub(super) fn fill(file: &mut File, buffer: &mut Vec<u8>) -> Result<Option<usize>, ConfineError> {
    let needed = usize::try_from(file.meta().len).unwrap_or(usize::MAX).saturating_add(1);
    if buffer.len() < needed {
        buffer.resize(needed.next_power_of_two(), 0);
    }
    let mut filled = 0;
    while filled < buffer.len() {
        let read = file.read(&mut buffer[filled..]).map_err(ConfineError::Os)?;
        filled += read;
        // If the length was right, no further read is needed to find the end.
        if read == 0 || filled as u64 == file.meta().len {
            return Ok(Some(filled));
        }
    }
    Ok(None)
}

/// A reader that fails with `TimedOut` after the deadline.
struct DeadlineReader<'p, R> {
    inner: R,
    deadline: &'p Deadline,
}

impl<R: Read> Read for DeadlineReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.deadline.has_passed() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.inner.read(buffer)
    }
}
