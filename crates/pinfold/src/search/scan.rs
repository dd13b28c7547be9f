//! Searching one file after the other, as ripgrep does.
//!
//! A small file is read with one call and searched in place. One with NUL bytes or a byte order mark
//! goes through the searcher that streams, since what is found in such files depends on how they are
//! read; a large one too, so that memory stays bounded and the call's time is watched.

mod collect;

use std::io::{self, Read};
use std::sync::atomic::AtomicUsize;

use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};
use pinfold_confine::{Deadline, Error as ConfineError, File};

use crate::limits::{MAX_SEARCH_HEAP_BYTES, MAX_WHOLE_FILE_BYTES, MAX_WHOLE_NAMED_FILE_BYTES};
use crate::search::Compiled;
use crate::search::bounded::BoundedMatcher;
use crate::search::scan::collect::Collector;

/// What is to be known about a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wanted {
    /// Whether it matches.
    Whether,
    /// How often.
    Count,
    /// The lines that match, with some around them.
    Lines { before: usize, after: usize },
}

/// What was found in a file.
#[derive(Debug, Default)]
pub(crate) struct Hits {
    /// How many lines match; matches, where they were counted and can span lines.
    pub(crate) count: u64,
    /// The lines, unless they were too many to be kept.
    pub(crate) lines: Option<Vec<Line>>,
    /// The number of the first match among the lines, counting from 0.
    pub(crate) first: u64,
    pub(crate) note: Option<BinaryNote>,
}

/// A line of a file that was searched.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its number, counting from 1.
    pub number: u64,
    /// The line with its end, cut if it is long.
    pub text: Vec<u8>,
    /// Why it is here.
    pub role: Role,
}

/// Why a line is part of an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// It matches.
    Match,
    /// It is near one that does.
    Context,
    /// It matches and is near one on this page, but is itself on another.
    Elsewhere,
}

/// What else there is to say about a file with NUL bytes in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BinaryNote {
    /// The search stopped at this byte, after some lines had matched.
    Stopped(u64),
    /// It matches, but its lines are not shown; this byte is not text.
    Matches(u64),
}

/// What the threads of one search share.
#[derive(Debug)]
pub(crate) struct Scan<'s> {
    pub(crate) search_pattern: &'s Compiled,
    pub(crate) multiline: bool,
    pub(crate) wanted: Wanted,
    pub(crate) max_line_chars: usize,
    pub(crate) deadline: &'s Deadline,
    pub(crate) keeping: Keeping<'s>,
}

/// Which lines are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keeping<'s> {
    /// All, as long as there is room for so many bytes in all files together.
    While(&'s AtomicUsize),
    /// Those of some matches of a file, by their numbers counted from 0, up to so many bytes.
    Window { from: u64, to: u64, bytes: usize },
}

/// One thread's tools for a search.
pub(crate) struct Scanner<'s> {
    scan: &'s Scan<'s>,
    matcher: BoundedMatcher<'s>,
    searcher: Searcher,
    buffer: Vec<u8>,
}

/// Whether a file was asked for by name, or found on the way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Named {
    Yes,
    No,
}

impl<'s> Scanner<'s> {
    pub(crate) fn new(scan: &'s Scan<'s>) -> Self {
        let mut builder = SearcherBuilder::new();
        builder
            .line_number(matches!(scan.wanted, Wanted::Lines { .. }))
            .multi_line(scan.multiline)
            .memory_map(MmapChoice::never())
            .heap_limit(Some(MAX_SEARCH_HEAP_BYTES));
        if let Wanted::Lines { before, after } = scan.wanted {
            builder.before_context(before).after_context(after);
        }
        let searcher = builder.build();
        let matcher = BoundedMatcher::new(scan.search_pattern, scan.deadline);
        Self { scan, matcher, searcher, buffer: Vec::new() }
    }

    /// Searches a file.
    pub(crate) fn search(&mut self, file: &mut File, named: Named) -> Result<Hits, ConfineError> {
        // Ripgrep gives up on binary files that it comes across, but not on those it is told to search.
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
                // Ripgrep maps a file that it is told to search, and so looks at all of it at once.
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
            Ok(()) => Ok(sink.hits),
            Err(_) if self.scan.deadline.has_passed() => Err(ConfineError::TimedOut),
            Err(_) if self.matcher.too_costly.take() => Err(ConfineError::TooLarge),
            // The searcher has no other word for a line that is longer than it may hold; a test of
            // such a line pins these.
            Err(error) if error.to_string().contains("allocation limit") => {
                Err(ConfineError::TooLarge)
            }
            Err(error) => Err(ConfineError::Os(error)),
        }
    }
}

/// Reads a whole file into a buffer that is used again; `None` if it has grown since it was opened.
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

/// A reader that ends with an error when the call's time is up.
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
