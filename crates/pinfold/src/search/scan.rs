//! Searching one file after the other, as ripgrep does.
//!
//! A small file is read with one call and searched in place. One with NUL bytes or a byte order mark
//! goes through the searcher that streams, since what is found in such files depends on how they are
//! read; a large one too, so that memory stays bounded and the call's time is watched.

use std::io::{self, Read};
use std::sync::atomic::{AtomicUsize, Ordering};

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish,
    SinkMatch,
};
use pinfold_confine::{Error as Fence, File, Patience};

use crate::limits::{SEARCH_HEAP, WHOLE_FILE, WHOLE_NAMED_FILE};
use crate::search::page::around;

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
    pub(crate) matcher: &'s RegexMatcher,
    pub(crate) multiline: bool,
    pub(crate) wanted: Wanted,
    pub(crate) max_line_chars: usize,
    pub(crate) patience: &'s Patience,
    /// How many more bytes of lines can be kept.
    pub(crate) room: &'s AtomicUsize,
}

/// One thread's tools for a search.
pub(crate) struct Scanner<'s> {
    scan: &'s Scan<'s>,
    /// Its own, since what a regex remembers while it searches cannot be shared.
    matcher: RegexMatcher,
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
            .heap_limit(Some(SEARCH_HEAP));
        if let Wanted::Lines { before, after } = scan.wanted {
            builder.before_context(before).after_context(after);
        }
        let searcher = builder.build();
        Self { scan, matcher: scan.matcher.clone(), searcher, buffer: Vec::new() }
    }

    /// Searches a file.
    pub(crate) fn search(&mut self, file: &mut File, named: Named) -> Result<Hits, Fence> {
        // Ripgrep gives up on binary files that it comes across, but not on those it is told to search.
        let (detection, whole) = match named {
            Named::Yes => (BinaryDetection::convert(0), WHOLE_NAMED_FILE),
            Named::No => (BinaryDetection::quit(0), WHOLE_FILE),
        };
        self.searcher.set_binary_detection(detection);
        let mut sink = Collector {
            scan: self.scan,
            matcher: &self.matcher,
            quits: named == Named::No,
            hits: Hits { lines: self.keeps(), ..Hits::default() },
            binary: None,
            unseen: 0,
        };
        let searcher = &mut self.searcher;
        let filled = match file.meta().len <= whole {
            true => fill(file, &mut self.buffer)?,
            false => None,
        };
        let searched = match filled {
            Some(len) => {
                let content = &self.buffer[..len];
                let marked = content.starts_with(b"\xEF\xBB\xBF")
                    || content.starts_with(b"\xFF\xFE")
                    || content.starts_with(b"\xFE\xFF");
                let odd = marked || memchr::memchr(0, content).is_some();
                // Ripgrep maps a file that it is told to search, and so looks at all of it at once.
                if !odd && len as u64 <= WHOLE_FILE || odd && named == Named::Yes {
                    searcher.search_slice(&self.matcher, content, &mut sink)
                } else {
                    let reader = Steady { inner: content, patience: self.scan.patience };
                    searcher.search_reader(&self.matcher, reader, &mut sink)
                }
            }
            None => {
                file.rewind();
                let reader = Steady { inner: file, patience: self.scan.patience };
                searcher.search_reader(&self.matcher, reader, &mut sink)
            }
        };
        match searched {
            Ok(()) => Ok(sink.hits),
            Err(_) if self.scan.patience.is_over() => Err(Fence::Impatient),
            Err(error) => Err(Fence::Os(error)),
        }
    }

    fn keeps(&self) -> Option<Vec<Line>> {
        let lines = matches!(self.scan.wanted, Wanted::Lines { .. });
        (lines && self.scan.room.load(Ordering::Relaxed) > 0).then(Vec::new)
    }
}

/// Reads a whole file into a buffer that is used again; `None` if it has grown since it was opened.
fn fill(file: &mut File, buffer: &mut Vec<u8>) -> Result<Option<usize>, Fence> {
    let needed = usize::try_from(file.meta().len).unwrap_or(usize::MAX).saturating_add(1);
    if buffer.len() < needed {
        buffer.resize(needed.next_power_of_two(), 0);
    }
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]).map_err(Fence::Os)? {
            0 => return Ok(Some(filled)),
            read => filled += read,
        }
    }
    Ok(None)
}

/// A reader that ends with an error when the call's time is up.
struct Steady<'p, R> {
    inner: R,
    patience: &'p Patience,
}

impl<R: Read> Read for Steady<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.patience.is_over() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.inner.read(buffer)
    }
}

struct Collector<'c> {
    scan: &'c Scan<'c>,
    matcher: &'c RegexMatcher,
    /// Whether the search ends at the first NUL.
    quits: bool,
    hits: Hits,
    binary: Option<u64>,
    /// How many matches there were since the time was looked at.
    unseen: usize,
}

impl Collector<'_> {
    fn keep(&mut self, number: Option<u64>, text: &[u8], role: Role) {
        let Some(lines) = &mut self.hits.lines else { return };
        let text = match role {
            Role::Context => around(text, 0, self.scan.max_line_chars),
            _ => {
                let body = text.strip_suffix(b"\n").unwrap_or(text);
                // Only a line that is too long has to be searched again.
                let start = match body.len() > self.scan.max_line_chars {
                    true => self.matcher.find(body).ok().flatten().map_or(0, |found| found.start()),
                    false => 0,
                };
                around(text, start, self.scan.max_line_chars)
            }
        };
        /// What a line takes besides its text.
        const OVERHEAD: usize = size_of::<Line>();
        let size = text.len() + OVERHEAD;
        let enough = |room: usize| room.checked_sub(size);
        match self.scan.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enough) {
            Ok(_) => lines.push(Line { number: number.unwrap_or(0), text, role }),
            Err(_) => {
                // From here on only counted, in this file and all later ones.
                self.scan.room.store(0, Ordering::Relaxed);
                self.hits.lines = None;
            }
        }
    }

    fn check_time(&mut self) -> io::Result<()> {
        self.unseen += 1;
        if self.unseen.is_multiple_of(512) && self.scan.patience.is_over() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    /// How many matches there are in what was found, which may be several lines.
    fn count(&self, found: &SinkMatch<'_>) -> io::Result<u64> {
        /// How far ripgrep lets a match look beyond the lines that it is in.
        const LOOK_AHEAD: usize = 128;
        let range = found.bytes_range_in_buffer();
        let text = found.buffer();
        let text = &text[..text.len().min(range.end + LOOK_AHEAD)];
        let mut count = 0;
        let counted = self.matcher.find_iter_at(text, range.start, |found| {
            let inside = found.start() < range.end;
            count += u64::from(inside);
            inside
        });
        counted.map_err(io::Error::other)?;
        Ok(count.max(1))
    }
}

impl Sink for &mut Collector<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.check_time()?;
        match self.scan.wanted {
            Wanted::Whether => {
                self.hits.count = 1;
                return Ok(false);
            }
            Wanted::Count => {
                self.hits.count += match searcher.multi_line_with_matcher(self.matcher) {
                    true => self.count(found)?,
                    false => 1,
                };
            }
            Wanted::Lines { .. } => {
                if !self.quits && self.binary.is_some() {
                    // It matches, which is all that is said of a binary file.
                    self.hits.count += 1;
                    return Ok(false);
                }
                for (line, number) in found.lines().zip(found.line_number().unwrap_or(1)..) {
                    self.hits.count += 1;
                    self.keep(Some(number), line, Role::Match);
                }
            }
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        if !self.quits && self.binary.is_some() {
            return Ok(false);
        }
        self.keep(line.line_number(), line.bytes(), Role::Context);
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, offset: u64) -> io::Result<bool> {
        self.binary = Some(offset);
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        match self.scan.wanted {
            Wanted::Lines { .. } if self.hits.count > 0 => {
                self.hits.note = self.binary.map(|offset| match self.quits {
                    true => BinaryNote::Stopped(offset),
                    false => BinaryNote::Matches(offset),
                });
            }
            // What was found before it turned out to be binary does not count.
            Wanted::Whether | Wanted::Count
                if self.quits && finish.binary_byte_offset().is_some() =>
            {
                self.hits.count = 0;
            }
            _ => {}
        }
        Ok(())
    }
}
