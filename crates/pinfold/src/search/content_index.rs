//! Remembers which trigrams files contain, so that a search opens only files that can match.
//!
//! The content of a file is known by its version. A file whose present version is not known is always searched, so what
//! is remembered never decides alone that a changed file does not match. Which files a search may look at was decided
//! before, by its `FileSet`. The index is built by a thread in the background, which waits while a search runs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use pinfold_confine::memory_bytes;
use pinfold_index::{Segment, SegmentBuilder, TextId};

use crate::limits::{MAX_INDEX_BYTES, MAX_INDEXED_FILE_BYTES, MIN_INDEXED_BYTES};
use crate::search::Compiled;
use crate::search::content_cache::ContentCache;
use crate::search::coverage::{Coverage, NO_FILE};
use crate::search::file_set::{FileSet, SetFile};
use crate::search::index_build::Build;

/// The trigrams of the files that the sessions of a workspace search.
#[derive(Debug, Default)]
pub(crate) struct ContentIndex {
    state: Mutex<State>,
    /// What the trigrams leave of the memory for the index is for contents.
    pub(crate) contents: ContentCache,
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
    pub(crate) segment: u32,
    pub(crate) text: TextId,
    /// The length of its longest line.
    pub(crate) longest_line: u32,
    /// Whether it has a NUL byte: what is after it was not indexed.
    pub(crate) has_nul: bool,
}

/// The size of the index.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct IndexSummary {
    /// How many versions of files are indexed.
    pub files: usize,
    /// How many bytes of memory their trigrams take.
    pub bytes: usize,
    /// How many bytes of memory the contents take that are kept of files.
    pub content_bytes: usize,
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

    /// Whether a search runs now.
    pub(super) fn is_searched(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn running(&self) -> Running<'_> {
        self.running.fetch_add(1, Ordering::Relaxed);
        Running(self)
    }

    pub(crate) fn summary(&self) -> IndexSummary {
        let state = self.lock();
        let State { texts, bytes, is_building, .. } = &*state;
        let content_bytes = self.contents.bytes();
        IndexSummary { files: texts.len(), bytes: *bytes, content_bytes, is_building: *is_building }
    }

    /// The numbers of the files of a set in which a match is possible, in order; `None` if nothing is known.
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
            (state.coverage(set), state.segments.clone())
        };
        let mut possible = coverage.unknown.clone();
        if spans_lines {
            possible.extend(&coverage.with_nul);
        }
        // A search that may be refused has to be tried.
        let longest = if spans_lines { coverage.longest } else { coverage.longest_line.into() };
        if pattern.may_be_refused(longest) {
            let numbers = set.files.iter().zip(0..);
            let refused = numbers.filter(|(file, _)| pattern.may_be_refused(file.len));
            possible.extend(refused.map(|(_, number)| number));
        }
        for (segment, files) in segments.iter().zip(&coverage.segments) {
            let numbers = segment.candidates(query, spans_lines).map(|text| files[text as usize]);
            possible.extend(numbers.filter(|number| *number != NO_FILE));
        }
        possible.sort_unstable();
        possible.dedup();
        Some(possible)
    }

    /// Notes that some files of a set are not what they were any more: their numbers, and the versions that they had.
    pub(crate) fn forget(&self, coverage: &mut Coverage, changed: &[(u32, u64)]) {
        let state = self.lock();
        if coverage.generation == state.generation {
            for (number, version) in changed {
                coverage.forget(*number, state.texts.get(version));
            }
        }
    }

    /// Notes that a set was searched. From the second search on its files are indexed, if that is worth it.
    pub(crate) fn learn(self: &Arc<Self>, set: &FileSet, max_bytes: Option<u64>) {
        let mut state = self.lock();
        state.searches += 1;
        if state.is_building || state.searches < 2 {
            return;
        }
        let coverage = state.coverage(set);
        let unknown = || {
            let files = coverage.unknown.iter().map(|number| &set.files[*number as usize]);
            files.filter(|file| is_indexed(file))
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
        self.contents.limit(max_bytes.saturating_sub(state.bytes));
        drop(state);
        let index = self.clone();
        let build = move || {
            let build = Build { index: &index, files: &files, bytes, max_bytes };
            build.run();
            index.lock().is_building = false;
        };
        if thread::Builder::new().name("pinfold-index".into()).spawn(build).is_err() {
            self.lock().is_building = false;
        }
    }

    /// Adds some texts. What they leave of the memory is for contents. False if the index is full.
    pub(super) fn add(
        &self,
        builder: SegmentBuilder,
        added: &mut Vec<(u64, IndexedText)>,
        max_bytes: usize,
    ) -> bool {
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
        self.contents.limit(max_bytes.saturating_sub(state.bytes));
        state.bytes < max_bytes
    }
}

impl State {
    fn coverage(&self, set: &FileSet) -> Arc<Coverage> {
        let segments: Vec<_> = self.segments.iter().map(|segment| segment.len()).collect();
        set.coverage(self.generation, || {
            Coverage::new(self.generation, &self.texts, &segments, &set.files)
        })
    }
}

/// Whether the content of a file is indexed. A large one may have lines that are not searched at all.
fn is_indexed(file: &SetFile) -> bool {
    file.len <= MAX_INDEXED_FILE_BYTES
}

/// 3 % of the memory, and no more than is useful.
fn default_max_bytes() -> u64 {
    memory_bytes().map_or(MAX_INDEX_BYTES / 2, |bytes| (bytes / 100 * 3).min(MAX_INDEX_BYTES))
}
