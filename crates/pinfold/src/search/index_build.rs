//! Builds the content index in the background, on threads of low priority that wait while a search runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use pinfold_confine::{FileOpener, lower_priority};
use pinfold_index::SegmentBuilder;

use crate::limits::{MAX_KEPT_FILE_BYTES, MAX_KEPT_TEXT_BYTES};
use crate::search::content_cache::{Content, TextProperties, has_byte_order_mark};
use crate::search::content_index::{AddedText, ContentIndex, IndexedText};
use crate::search::file_set::SetFile;
use crate::search::scan::fill;

/// Indexes some files, on several threads of low priority.
pub(super) struct Build<'b> {
    pub(super) index: &'b Arc<ContentIndex>,
    pub(super) files: &'b [SetFile],
    /// The size of the files.
    pub(super) bytes: u64,
    pub(super) max_bytes: usize,
}

/// How many files a thread takes at once.
const BATCH: usize = 32;

/// Less text than this is indexed by one thread, so that there are not many small segments.
const MIN_THREAD_BYTES: u64 = 4 * 1024 * 1024;

/// The maximum number of threads. Each collects the trigrams of a segment, which takes memory.
const MAX_THREADS: u64 = 4;

impl Build<'_> {
    pub(super) fn run(&self) {
        let next = AtomicUsize::new(0);
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let threads = (self.bytes / MIN_THREAD_BYTES).clamp(1, cores.min(MAX_THREADS));
        thread::scope(|scope| {
            for _ in 1..threads {
                // If the system cannot start a thread, fewer threads do the work.
                let _ = thread::Builder::new().spawn_scoped(scope, || self.work(&next));
            }
            self.work(&next);
        });
    }

    /// Indexes files until none is left, or the index is full.
    fn work(&self, next: &AtomicUsize) {
        lower_priority();
        let mut opener = FileOpener::default();
        let mut builder = SegmentBuilder::default();
        let mut added = Vec::new();
        let mut buffer = Vec::new();
        let batches = self.files.chunks(BATCH).len();
        while let Some(batch) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|n| *n < batches)
        {
            for file in self.files.chunks(BATCH).nth(batch).unwrap_or_default() {
                while self.index.has_running_search() {
                    thread::sleep(Duration::from_millis(1));
                }
                // The index is no longer used.
                if Arc::strong_count(self.index) == 1 {
                    return;
                }
                if !builder.has_room(usize::try_from(file.len).unwrap_or(usize::MAX))
                    && !self.index.add(std::mem::take(&mut builder), &mut added, self.max_bytes)
                {
                    next.store(batches, Ordering::Relaxed);
                    return;
                }
                if let Some(text) = self.text(file, &mut opener, &mut buffer, &mut builder) {
                    added.push(AddedText { path: file.path_hash(), version: file.version, text });
                }
            }
        }
        if !builder.is_empty() {
            self.index.add(builder, &mut added, self.max_bytes);
        }
    }

    /// Reads a file and adds its trigrams.
    fn text(
        &self,
        file: &SetFile,
        opener: &mut FileOpener,
        buffer: &mut Vec<u8>,
        builder: &mut SegmentBuilder,
    ) -> Option<IndexedText> {
        let mut opened = opener.open(&file.file).ok()?;
        // The file may have grown.
        if opened.meta().len != file.len {
            return None;
        }
        let len = fill(&mut opened, buffer).ok()??;
        let bytes = buffer.get(..len).filter(|bytes| bytes.len() as u64 == file.len)?;
        let is_marked = has_byte_order_mark(bytes);
        let nul = memchr::memchr(0, bytes);
        if self.bytes <= MAX_KEPT_TEXT_BYTES && file.len <= MAX_KEPT_FILE_BYTES {
            let has_nul_or_bom = is_marked || nul.is_some();
            let properties = TextProperties { is_ascii: bytes.is_ascii(), has_nul_or_bom };
            self.index.contents.put(file, Content { bytes: bytes.into(), properties });
        }
        if is_marked {
            return None;
        }
        let text = builder.add(&bytes[..nul.unwrap_or(len)]);
        let (longest_line, has_nul) = (longest_line(bytes), nul.is_some());
        Some(IndexedText { segment: 0, text, longest_line, has_nul })
    }
}

/// The length of the longest line.
fn longest_line(text: &[u8]) -> u32 {
    let (mut start, mut longest) = (0, 0);
    // Most lines are shorter than the longest one so far: only the last newline that it would reach is looked for.
    while let Some(reach) = text.get(start..).filter(|rest| rest.len() > longest) {
        match memchr::memrchr(b'\n', &reach[..=longest]) {
            Some(end) => start += end + 1,
            None => longest = memchr::memchr(b'\n', reach).unwrap_or(reach.len()),
        }
    }
    longest as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_line_is_found_wherever_it_is() {
        for (text, longest) in [
            ("", 0),
            ("\n", 0),
            ("\n\n\n", 0),
            ("abc", 3),
            ("abc\n", 3),
            ("a\nabc\nab", 3),
            ("abc\nabcd\nabc\nab\n", 4),
            ("a\n\nb\nabcdef", 6),
        ] {
            assert_eq!(longest_line(text.as_bytes()), longest, "{text:?}");
        }
    }
}
