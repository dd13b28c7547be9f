//! Searches one file after the other, with the same results as ripgrep.
//!
//! A small file is read with one call and searched in memory. A file with NUL bytes or a byte order mark
//! is streamed, since its results depend on how it is read. A large file is streamed too, so that memory
//! stays bounded and the deadline is checked.

mod collect;

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};
use pinfold_confine::{Deadline, Error as ConfineError, File};

use crate::limits::{MAX_SEARCH_HEAP_BYTES, MAX_WHOLE_FILE_BYTES, MAX_WHOLE_NAMED_FILE_BYTES};
use crate::search::Compiled;
use crate::search::bounded::BoundedMatcher;
use crate::search::scan::collect::Collector;

/// What a search reports about a file.
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
pub(crate) struct Hits {
    /// How many lines match; how many matches, if they were counted and can span lines.
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
    pub(crate) search_pattern: &'s Compiled,
    /// Lines that this matches too are no matches; only where matches do not span lines.
    pub(crate) exclude: Option<&'s Compiled>,
    /// How many matches of a file count.
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
    /// All, while the remaining bytes, shared by all files, suffice.
    All(&'s AtomicUsize),
    /// Those of the matches `from..to` of a file, counting from 0, up to so many bytes.
    Window { from: u64, to: u64, bytes: usize },
}

/// The searcher of one thread.
pub(crate) struct Scanner<'s> {
    scan: &'s Scan<'s>,
    matcher: BoundedMatcher<'s>,
    searcher: Searcher,
    buffer: Vec<u8>,
}

/// Whether the call names the file, or the walk found it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Named {
    Yes,
    No,
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
        let matcher =
            BoundedMatcher::new(scan.search_pattern, scan.deadline).excluding(scan.exclude);
        Self { scan, matcher, searcher, buffer: Vec::new() }
    }

    /// Searches a file.
    pub(crate) fn search(&mut self, file: &mut File, named: Named) -> Result<Hits, ConfineError> {
        // Like ripgrep: a NUL byte ends the search of a file that the walk found, but not of a named file.
        let (detection, whole) = match named {
            Named::Yes => (BinaryDetection::convert(0), MAX_WHOLE_NAMED_FILE_BYTES),
            Named::No => (BinaryDetection::quit(0), MAX_WHOLE_FILE_BYTES),
        };
        self.searcher.set_binary_detection(detection);
        let matcher = &self.matcher;
        let mut sink = Collector::new(self.scan, matcher, named);
        let searcher = &mut self.searcher;
        let deadline = self.scan.deadline;
        let filled = if file.meta().len <= whole { fill(file, &mut self.buffer)? } else { None };
        let searched = match filled {
            Some(len) => {
                let content = &self.buffer[..len];
                let marked = content.starts_with(b"\xEF\xBB\xBF")
                    || content.starts_with(b"\xFF\xFE")
                    || content.starts_with(b"\xFE\xFF");
                let odd = marked || memchr::memchr(0, content).is_some();
                // Ripgrep maps a named file into memory and searches all of it at once.
                if !odd && len as u64 <= MAX_WHOLE_FILE_BYTES || odd && named == Named::Yes {
                    searcher.search_slice(matcher, content, &mut sink)
                } else {
                    let reader = DeadlineReader { inner: content, deadline };
                    searcher.search_reader(matcher, reader, &mut sink)
                }
            }
            None => {
                file.rewind();
                let reader = DeadlineReader { inner: file, deadline };
                searcher.search_reader(matcher, reader, &mut sink)
            }
        };
        match searched {
            Ok(()) => Ok(sink.into_hits()),
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

/// Reads a whole file into a reusable buffer; `None` if it has grown since it was opened.
fn fill(file: &mut File, buffer: &mut Vec<u8>) -> Result<Option<usize>, ConfineError> {
    let needed = usize::try_from(file.meta().len).unwrap_or(usize::MAX).saturating_add(1);
    if buffer.len() < needed {
        buffer.resize(needed.next_power_of_two(), 0);
    }
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]).map_err(ConfineError::Os)? {
            0 => return Ok(Some(filled)),
            read => filled += read,
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
