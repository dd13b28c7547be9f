//! Remembers which trigrams files contain, so that a search opens only files that can match.
//!
//! The content of a file is known by its version. A file whose present version is not known is always searched, so what
//! is remembered never decides alone that a changed file does not match. Which files a search may look at was decided
//! before, by its `FileSet`. The index is built by a thread in the background, which waits while a search runs.

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use pinfold_confine::{FileOpener, memory_bytes};
use pinfold_index::{Segment, SegmentBuilder, TextId};

use crate::limits::{
    MAX_INDEX_BYTES, MAX_INDEXED_FILE_BYTES, MAX_UNSTOPPABLE_STEPS, MIN_INDEXED_BYTES,
};
use crate::search::Compiled;
use crate::search::file_set::{FileSet, SetFile};

/// The trigrams of the files that the sessions of a workspace search.
#[derive(Debug, Default)]
pub(crate) struct ContentIndex {
    state: Mutex<State>,
    /// How many searches run now.
    running: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    segments: Vec<Arc<Segment>>,
    /// By the version of the file.
    texts: HashMap<u64, IndexedText>,
    bytes: usize,
    /// Changes with the texts.
    generation: u64,
    searches: u64,
    is_building: bool,
}

/// Where the trigrams of a file are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexedText {
    segment: u32,
    text: TextId,
    len: u32,
    /// Whether it has a NUL byte: what is after it was not indexed.
    has_nul: bool,
}

/// For each file of a set where its trigrams are, and the generation of the index that says so.
pub(crate) type Coverage = (u64, Arc<Vec<Option<IndexedText>>>);

/// What the index holds, in numbers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct IndexSummary {
    /// How many versions of files are indexed.
    pub files: usize,
    /// How many bytes of memory that takes.
    pub bytes: usize,
    /// Whether files are being indexed now.
    pub is_building: bool,
}

/// A search that runs: the index is not built meanwhile.
pub(crate) struct Running<'i>(&'i ContentIndex);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ContentIndex {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn running(&self) -> Running<'_> {
        self.running.fetch_add(1, Ordering::Relaxed);
        Running(self)
    }

    pub(crate) fn summary(&self) -> IndexSummary {
        let state = self.lock();
        let State { texts, bytes, is_building, .. } = &*state;
        IndexSummary { files: texts.len(), bytes: *bytes, is_building: *is_building }
    }

    /// The numbers of the files of a set in which a match is possible; `None` if nothing is known.
    pub(crate) fn candidates(
        &self,
        set: &FileSet,
        pattern: &Compiled,
        spans_lines: bool,
    ) -> Option<Vec<u32>> {
        let query = pattern.query();
        if query.is_all() {
            return None;
        }
        let (coverage, segments) = {
            let state = self.lock();
            if state.segments.is_empty() {
                return None;
            }
            (set.coverage(state.generation, &state.texts), state.segments.clone())
        };
        let candidates: Vec<_> =
            segments.iter().map(|segment| segment.candidates(query, spans_lines)).collect();
        let is_possible = |text: &IndexedText| {
            // A search that may be refused as too costly has to be tried.
            let steps = u64::from(text.len).saturating_mul(pattern.weight as u64);
            text.has_nul && spans_lines
                || steps > MAX_UNSTOPPABLE_STEPS
                || candidates[text.segment as usize].contain(text.text)
        };
        let numbers = coverage.iter().zip(0..);
        let possible = numbers.filter(|(text, _)| text.as_ref().is_none_or(is_possible));
        Some(possible.map(|(_, number)| number).collect())
    }

    /// Notes that a set was searched. From the second search on its files are indexed, if that is worth it.
    pub(crate) fn learn(self: &Arc<Self>, set: &FileSet, max_bytes: Option<u64>) {
        let mut state = self.lock();
        state.searches += 1;
        if state.is_building || state.searches < 2 {
            return;
        }
        let coverage = set.coverage(state.generation, &state.texts);
        let unknown = || {
            let files = set.files.iter().zip(coverage.iter());
            files.filter(|(file, text)| text.is_none() && is_indexed(file)).map(|(file, _)| file)
        };
        let (files, bytes) =
            unknown().fold((0, 0), |(files, bytes), file| (files + 1, bytes + file.len));
        let worth = if state.texts.is_empty() {
            bytes >= MIN_INDEXED_BYTES
        } else {
            files > (set.files.len() / 50).max(256)
        };
        let max_bytes = max_bytes.unwrap_or_else(default_max_bytes);
        let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        if worth && state.bytes >= max_bytes && state.texts.len() > 2 * set.files.len() {
            // Most of it is about files as they were.
            let State { searches, generation, .. } = *state;
            *state = State { searches, generation: generation + 1, ..State::default() };
        } else if !worth || state.bytes >= max_bytes {
            return;
        }
        state.is_building = true;
        let files: Vec<SetFile> = unknown().cloned().collect();
        drop(state);
        let index = self.clone();
        let build = move || {
            index.build(&files, max_bytes);
            index.lock().is_building = false;
        };
        if thread::Builder::new().name("pinfold-index".into()).spawn(build).is_err() {
            self.lock().is_building = false;
        }
    }

    fn build(self: &Arc<Self>, files: &[SetFile], max_bytes: usize) {
        let mut opener = FileOpener::default();
        let mut builder = SegmentBuilder::default();
        let mut added = Vec::new();
        let mut buffer = Vec::new();
        for file in files {
            while self.running.load(Ordering::Relaxed) > 0 {
                thread::sleep(Duration::from_millis(1));
            }
            // Nobody will search any more.
            if Arc::strong_count(self) == 1 {
                return;
            }
            if !builder.has_room(usize::try_from(file.len).unwrap_or(usize::MAX)) {
                self.add(std::mem::take(&mut builder), &mut added);
                if self.lock().bytes >= max_bytes {
                    return;
                }
            }
            let Ok(mut opened) = opener.open(&file.file) else { continue };
            buffer.clear();
            let most = MAX_INDEXED_FILE_BYTES + 1;
            if opened.by_ref().take(most).read_to_end(&mut buffer).is_err()
                || buffer.len() as u64 != file.len
                || has_byte_order_mark(&buffer)
            {
                continue;
            }
            let nul = memchr::memchr(0, &buffer);
            let text = builder.add(&buffer[..nul.unwrap_or(buffer.len())]);
            let text =
                IndexedText { segment: 0, text, len: buffer.len() as u32, has_nul: nul.is_some() };
            added.push((file.version, text));
        }
        self.add(builder, &mut added);
    }

    fn add(&self, builder: SegmentBuilder, added: &mut Vec<(u64, IndexedText)>) {
        /// The memory of an entry of the map.
        const OVERHEAD: usize = 2 * size_of::<(u64, IndexedText)>();
        let segment = Arc::new(builder.build());
        let mut state = self.lock();
        let number = state.segments.len() as u32;
        state.bytes += segment.bytes() + added.len() * OVERHEAD;
        state.segments.push(segment);
        state.generation += 1;
        let placed = added
            .drain(..)
            .map(|(version, text)| (version, IndexedText { segment: number, ..text }));
        state.texts.extend(placed);
    }
}

/// Whether the content of a file is indexed. A large one may have lines that are not searched at all.
fn is_indexed(file: &SetFile) -> bool {
    file.len <= MAX_INDEXED_FILE_BYTES
}

/// Files with a byte order mark are decoded when they are searched, so their bytes tell nothing.
fn has_byte_order_mark(text: &[u8]) -> bool {
    text.starts_with(b"\xEF\xBB\xBF")
        || text.starts_with(b"\xFF\xFE")
        || text.starts_with(b"\xFE\xFF")
}

/// 3 % of the memory, and no more than is useful.
fn default_max_bytes() -> u64 {
    memory_bytes().map_or(MAX_INDEX_BYTES / 2, |bytes| (bytes / 100 * 3).min(MAX_INDEX_BYTES))
}
