//! Searching one file after the other, as ripgrep does.
//!
//! A small file is read with one call and searched in place. One with NUL bytes or a byte order mark
//! goes through the searcher that streams, since what is found in such files depends on how they are
//! read; a large one too, so that memory stays bounded and the call's time is watched.

use std::io::{self, Read};
use std::sync::atomic::{AtomicUsize, Ordering};

use grep_matcher::{Match, Matcher as _, NoCaptures};
use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish,
    SinkMatch,
};
use pinfold_confine::{Error as Fence, File, Patience};

use crate::limits::{HEAVY_STEPS, SEARCH_HEAP, WHOLE_FILE, WHOLE_NAMED_FILE};
use crate::search::Compiled;
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
    pub(crate) needle: &'s Compiled,
    pub(crate) multiline: bool,
    pub(crate) wanted: Wanted,
    pub(crate) max_line_chars: usize,
    pub(crate) patience: &'s Patience,
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
        Self { scan, matcher: scan.needle.matcher.clone(), searcher, buffer: Vec::new() }
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
            hits: Hits { lines: self.keeps(), first: self.first_kept(), ..Hits::default() },
            binary: None,
            unseen: 0,
            kept: 0,
        };
        if let Some(weight) = self.scan.needle.heavy
            && self.scan.multiline
            && file.meta().len.saturating_mul(weight as u64) > HEAVY_STEPS
        {
            return Err(Fence::TooLarge);
        }
        let searcher = &mut self.searcher;
        let patience = self.scan.patience;
        let heavy = self.scan.needle.heavy.filter(|_| !self.scan.multiline);
        let careful = heavy.map(|weight| Careful { matcher: &self.matcher, patience, weight });
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
                let at_once = !odd && len as u64 <= WHOLE_FILE || odd && named == Named::Yes;
                let reader = Steady { inner: content, patience };
                match (careful, at_once) {
                    (None, true) => searcher.search_slice(&self.matcher, content, &mut sink),
                    (None, false) => searcher.search_reader(&self.matcher, reader, &mut sink),
                    (Some(careful), true) => searcher.search_slice(careful, content, &mut sink),
                    (Some(careful), false) => searcher.search_reader(careful, reader, &mut sink),
                }
            }
            None => {
                file.rewind();
                let reader = Steady { inner: file, patience };
                match careful {
                    None => searcher.search_reader(&self.matcher, reader, &mut sink),
                    Some(careful) => searcher.search_reader(careful, reader, &mut sink),
                }
            }
        };
        match searched {
            Ok(()) => Ok(sink.hits),
            Err(_) if self.scan.patience.is_over() => Err(Fence::Impatient),
            // The searcher has no other word for a line that is longer than it may hold.
            Err(error)
                if ["allocation limit", TOO_COSTLY]
                    .iter()
                    .any(|words| error.to_string().contains(words)) =>
            {
                Err(Fence::TooLarge)
            }
            Err(error) => Err(Fence::Os(error)),
        }
    }

    fn keeps(&self) -> Option<Vec<Line>> {
        let room = match self.scan.keeping {
            Keeping::While(room) => room.load(Ordering::Relaxed) > 0,
            Keeping::Window { .. } => true,
        };
        (room && matches!(self.scan.wanted, Wanted::Lines { .. })).then(Vec::new)
    }

    fn first_kept(&self) -> u64 {
        match (self.scan.keeping, self.scan.wanted) {
            // Matches before the window can be context for those in it.
            (Keeping::Window { from, .. }, Wanted::Lines { before, .. }) => {
                from.saturating_sub(before as u64)
            }
            _ => 0,
        }
    }
}

/// What is said of a line that would take too long to search.
const TOO_COSTLY: &str = "too much work";

/// A matcher that looks at the time before each line. The searcher gives it one line at a time, because
/// it does not say that it could take more.
#[derive(Clone, Copy)]
struct Careful<'m> {
    matcher: &'m RegexMatcher,
    patience: &'m Patience,
    weight: usize,
}

impl grep_matcher::Matcher for Careful<'_> {
    type Captures = NoCaptures;
    type Error = io::Error;

    fn find_at(&self, haystack: &[u8], at: usize) -> io::Result<Option<Match>> {
        if self.patience.is_over() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if (haystack.len() as u64).saturating_mul(self.weight as u64) > HEAVY_STEPS {
            return Err(io::Error::other(TOO_COSTLY));
        }
        self.matcher.find_at(haystack, at).map_err(io::Error::other)
    }

    fn new_captures(&self) -> io::Result<NoCaptures> {
        Ok(NoCaptures::new())
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
    /// How many bytes of lines were kept.
    kept: usize,
}

impl Collector<'_> {
    /// Whether a line is kept that is, or comes before, the match with a number.
    fn keeps(&self, number: u64) -> bool {
        let Keeping::Window { to, bytes, .. } = self.scan.keeping else { return true };
        let Wanted::Lines { after, .. } = self.scan.wanted else { return false };
        let last = to.saturating_add(after as u64);
        (self.hits.first..=last).contains(&number) && self.kept <= bytes
    }

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
        let has_room = match self.scan.keeping {
            Keeping::Window { .. } => true,
            Keeping::While(room) => {
                let enough = |room: usize| room.checked_sub(size);
                let had = room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enough);
                had.map_err(|_| room.store(0, Ordering::Relaxed)).is_ok()
            }
        };
        match has_room {
            true => {
                self.kept += text.len();
                lines.push(Line { number: number.unwrap_or(0), text, role });
            }
            // From here on only counted, in this file and all later ones.
            false => self.hits.lines = None,
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
                    if self.keeps(self.hits.count) {
                        self.keep(Some(number), line, Role::Match);
                    }
                    self.hits.count += 1;
                }
            }
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        if !self.quits && self.binary.is_some() {
            return Ok(false);
        }
        if self.keeps(self.hits.count) {
            self.keep(line.line_number(), line.bytes(), Role::Context);
        }
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
