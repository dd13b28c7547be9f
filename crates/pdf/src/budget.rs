//! Limits the work for the pages of one document.
//!
//! A file of some kilobytes can decompress to gigabytes, or draw forms that draw forms. A [`Meter`] counts the
//! decompressed bytes and drawing operations of a page, and the CPU time of its thread. Counting past the [`Budget`]
//! returns an [`Interrupt`].

use std::io::Read as _;
use std::time::{Duration, Instant};

use flate2::read::ZlibDecoder;
use hayro_syntax::Filter;
use hayro_syntax::object::dict::keys::CONTENTS;
use hayro_syntax::object::{Object, Stream};
use hayro_syntax::page::Page;
use rustix::time::{ClockId, clock_gettime};

/// The maximum work for a page, and for all pages of one call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Budget {
    /// The decompressed size of a page's content.
    pub page_bytes: usize,
    /// The number of paths, images, clips, groups and glyphs on a page.
    pub page_operations: u64,
    /// The same for all pages of one call.
    pub operations: u64,
    /// The CPU time for a page.
    pub page_time: Duration,
}

impl Default for Budget {
    /// Several times what the most complex of some hundred real files takes: a map of vector graphics of 15 MB and a
    /// million paths.
    fn default() -> Self {
        Self {
            page_bytes: 64 * 1024 * 1024,
            page_operations: 5_000_000,
            operations: 20_000_000,
            page_time: Duration::from_secs(10),
        }
    }
}

/// The reason why a page is not drawn to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Interrupt {
    /// It exceeds the budget.
    OverBudget,
    /// The caller has stopped the extraction.
    Stopped,
    /// The text has reached the caller's limit.
    Full,
}

/// How often the clock is read and the caller is asked.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Counts the work of one call.
pub(crate) struct Meter<'k> {
    budget: Budget,
    keep_going: &'k dyn Fn() -> bool,
    page_operations: u64,
    operations: u64,
    page_start: Duration,
    last_check: Instant,
}

impl<'k> Meter<'k> {
    pub(crate) fn new(budget: Budget, keep_going: &'k dyn Fn() -> bool) -> Self {
        Self {
            budget,
            keep_going,
            page_operations: 0,
            operations: 0,
            page_start: thread_time(),
            last_check: Instant::now(),
        }
    }

    pub(crate) fn start_page(&mut self) {
        self.page_operations = 0;
        self.page_start = thread_time();
    }

    /// Counts `operations` more.
    pub(crate) fn count(&mut self, operations: u64) -> Result<(), Interrupt> {
        self.page_operations += operations;
        self.operations += operations;
        if self.page_operations > self.budget.page_operations
            || self.operations > self.budget.operations
        {
            return Err(Interrupt::OverBudget);
        }
        if self.last_check.elapsed() < CHECK_INTERVAL {
            return Ok(());
        }
        self.last_check = Instant::now();
        if !(self.keep_going)() {
            return Err(Interrupt::Stopped);
        }
        if thread_time().saturating_sub(self.page_start) > self.budget.page_time {
            return Err(Interrupt::OverBudget);
        }
        Ok(())
    }
}

/// The CPU time of this thread. Unlike elapsed time, it does not depend on the load of the machine.
fn thread_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// The content of a page, decompressed.
pub(crate) fn page_content(page: &Page<'_>, meter: &mut Meter<'_>) -> Result<Vec<u8>, Interrupt> {
    let mut content = Vec::new();
    let streams: Vec<Stream<'_>> = match page.raw().get::<Object<'_>>(CONTENTS) {
        Some(Object::Stream(stream)) => vec![stream],
        Some(Object::Array(array)) => {
            array.iter::<Object<'_>>().filter_map(Object::into_stream).collect()
        }
        _ => Vec::new(),
    };
    for stream in streams {
        meter.count(1)?;
        let room = meter.budget.page_bytes.saturating_sub(content.len());
        if expands_beyond(&stream, room) {
            return Err(Interrupt::OverBudget);
        }
        let Ok(decoded) = stream.decoded_data() else { continue };
        if decoded.len() > room {
            return Err(Interrupt::OverBudget);
        }
        content.extend_from_slice(&decoded);
        // The end of a stream ends its last token.
        content.push(b' ');
    }
    Ok(content)
}

/// The maximum compression ratio.
const MAX_DEFLATE_RATIO: usize = 1_032;

/// Whether a stream decompresses to more than `room`, checked without keeping the data. A stream that is compressed
/// twice counts as larger, since no program makes such content.
fn expands_beyond(stream: &Stream<'_>, room: usize) -> bool {
    let compresses = |filter: &&Filter| {
        matches!(filter, Filter::FlateDecode | Filter::LzwDecode | Filter::RunLengthDecode)
    };
    let filters = stream.filters();
    if filters.iter().filter(compresses).count() > 1 {
        return true;
    }
    if filters.first() != Some(&Filter::FlateDecode) {
        return false;
    }
    let raw = stream.raw_data();
    if raw.len().saturating_mul(MAX_DEFLATE_RATIO) <= room {
        return false;
    }
    let mut decoder = ZlibDecoder::new(&raw[..]).take(room as u64 + 1);
    let mut buffer = vec![0; 64 * 1024];
    let mut total = 0;
    // `hayro` uses a damaged stream up to the damage, which is no longer than this.
    while let Ok(read @ 1..) = decoder.read(&mut buffer) {
        total += read;
    }
    total > room
}
