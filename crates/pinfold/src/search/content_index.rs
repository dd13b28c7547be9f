//! Indexes the trigrams of files, so that a search opens only files that may match.
//!
//! The key of a content is the version of its file. A file whose current version is not indexed is always searched,
//! so the index never excludes a changed file. The `FileSet` of a search has only files that policy shows. The index
//! has one version of each path, and drops a segment with more outdated than current texts, so edits do not fill the
//! memory. A thread in the background builds the index, and waits while a search runs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use pinfold_confine::memory_bytes;
use pinfold_index::{Segment, SegmentBuilder, TextId};

use crate::limits::{
    MAX_INDEX_BYTES, MAX_INDEXED_FILE_BYTES, MIN_INDEXED_BYTES, MIN_REINDEXED_BYTES,
};
use crate::search::CompiledPattern;
use crate::search::content_cache::ContentCache;
use crate::search::coverage::{Coverage, NO_FILE};
use crate::search::file_set::{FileSet, SetFile};
use crate::search::index_build::Build;

/// The trigrams of the files that the sessions of a workspace search.
#[derive(Debug, Default)]
pub(crate) struct ContentIndex {
    state: Mutex<State>,
    /// Contents get the memory that the trigrams leave below the maximum.
    pub(crate) contents: ContentCache,
    /// The number of running searches.
    running: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    /// `None` for a segment that was dropped.
    segments: Vec<Option<CountedSegment>>,
    /// The indexed texts, by the version of the file.
    texts: HashMap<u64, IndexedText>,
    /// The indexed version of each path, by a hash of the path.
    versions: HashMap<u64, u64>,
    /// Changes with the texts.
    generation: u64,
    searches: u64,
    is_building: bool,
}

#[derive(Debug)]
struct CountedSegment {
    segment: Arc<Segment>,
    /// How many of its texts are the indexed version of their path.
    current: usize,
}

/// The position of a file's trigrams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexedText {
    pub(crate) segment: u32,
    pub(crate) text: TextId,
    /// The length of its longest line.
    pub(crate) longest_line: u32,
    /// Whether it has a NUL byte. The text after it was not indexed.
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
    /// How many bytes of memory the cached contents take.
    pub content_bytes: usize,
    /// Whether files are being indexed now.
    pub is_building: bool,
}

/// A running search. The index is not built meanwhile.
pub(crate) struct RunningSearch<'i>(&'i ContentIndex);

impl Drop for RunningSearch<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ContentIndex {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a search is running.
    pub(super) fn has_running_search(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn begin_search(&self) -> RunningSearch<'_> {
        self.running.fetch_add(1, Ordering::Relaxed);
        RunningSearch(self)
    }

    pub(crate) fn summary(&self) -> IndexSummary {
        let state = self.lock();
        IndexSummary {
            files: state.texts.len(),
            bytes: state.bytes(),
            content_bytes: self.contents.bytes(),
            is_building: state.is_building,
        }
    }

    /// The indexes of the files of a set that may have a match, in order. Returns `None` if all of
    /// them have to be searched: no file is indexed, or the pattern has no trigrams.
    pub(crate) fn candidates(
        &self,
        set: &FileSet,
        pattern: &CompiledPattern,
        multiline: bool,
    ) -> Option<Vec<u32>> {
        let query = pattern.query();
        if query.is_all() {
            return None;
        }
        let (coverage, segments) = {
            let state = self.lock();
            if state.texts.is_empty() {
                return None;
            }
            let segments = state.segments.iter();
            let segments: Vec<_> =
                segments.map(|known| Some(known.as_ref()?.segment.clone())).collect();
            (state.coverage(set), segments)
        };
        let mut possible = coverage.unknown.clone();
        if multiline {
            possible.extend(&coverage.with_nul);
        }
        // The regex engine refuses a text that takes too many steps. Such a file is searched, so that the answer reports it.
        let longest = if multiline { coverage.longest } else { coverage.longest_line.into() };
        if pattern.may_be_refused(longest) {
            let numbers = set.files.iter().zip(0..);
            let refused = numbers.filter(|(file, _)| pattern.may_be_refused(file.len));
            possible.extend(refused.map(|(_, number)| number));
        }
        for (segment, files) in segments.iter().zip(&coverage.segments) {
            let Some(segment) = segment else { continue };
            let numbers = segment.candidates(query, multiline).map(|text| files[text as usize]);
            possible.extend(numbers.filter(|number| *number != NO_FILE));
        }
        possible.sort_unstable();
        possible.dedup();
        Some(possible)
    }

    /// Records that some files of a set have changed. `changed` has their indexes, and their old versions.
    pub(crate) fn forget(&self, coverage: &mut Coverage, changed: &[(u32, u64)]) {
        let state = self.lock();
        if coverage.generation == state.generation {
            for (number, version) in changed {
                coverage.forget(*number, state.texts.get(version));
            }
        }
    }

    /// Records that a set was searched. From the second search on, contents are cached, and the files are indexed if
    /// it is worth it.
    pub(crate) fn record_search(self: &Arc<Self>, set: &FileSet, max_bytes: Option<u64>) {
        let mut state = self.lock();
        state.searches += 1;
        if state.is_building || state.searches < 2 {
            return;
        }
        let max_bytes = max_bytes.unwrap_or_else(default_max_bytes);
        let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        self.contents.limit(max_bytes.saturating_sub(state.bytes()));
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
            files > (set.files.len() / 50).max(256) || bytes >= MIN_REINDEXED_BYTES
        };
        let is_full = state.bytes() >= max_bytes;
        if worth && is_full && state.texts.len() > 2 * set.files.len() {
            // Most of it is about files that no longer exist.
            let State { searches, generation, .. } = *state;
            *state = State { searches, generation: generation + 1, ..State::default() };
        } else if !worth || is_full {
            return;
        }
        state.is_building = true;
        let files: Vec<SetFile> = unknown().cloned().collect();
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

    /// Adds some texts. Contents get the remaining memory. Returns false if the index is full.
    pub(super) fn add(
        &self,
        builder: SegmentBuilder,
        added: &mut Vec<AddedText>,
        max_bytes: usize,
    ) -> bool {
        let segment = Arc::new(builder.build());
        let mut state = self.lock();
        state.add(segment, added.drain(..));
        let bytes = state.bytes();
        self.contents.limit(max_bytes.saturating_sub(bytes));
        bytes < max_bytes
    }
}

/// A text of a new segment.
pub(super) struct AddedText {
    /// The hash of the file's path.
    pub(super) path: u64,
    pub(super) version: u64,
    pub(super) text: IndexedText,
}

impl State {
    fn coverage(&self, set: &FileSet) -> Arc<Coverage> {
        set.coverage(self.generation, || {
            let segments = self.segments.iter();
            let lens: Vec<_> = segments
                .map(|known| known.as_ref().map_or(0, |known| known.segment.len()))
                .collect();
            Coverage::new(self.generation, &self.texts, &lens, &set.files)
        })
    }

    /// How many bytes of memory the index takes.
    fn bytes(&self) -> usize {
        /// The memory of a text's entries in both maps.
        const OVERHEAD: usize = 2 * (size_of::<(u64, IndexedText)>() + size_of::<(u64, u64)>());
        let segments = self.segments.iter().flatten();
        segments.map(|known| known.segment.bytes()).sum::<usize>() + self.texts.len() * OVERHEAD
    }

    fn add(&mut self, segment: Arc<Segment>, added: impl Iterator<Item = AddedText>) {
        self.generation += 1;
        let free = self.segments.iter().position(Option::is_none);
        let number = free.unwrap_or(self.segments.len());
        if free.is_none() {
            self.segments.push(None);
        }
        self.segments[number] = Some(CountedSegment { segment, current: 0 });
        for AddedText { path, version, text } in added {
            if let Some(outdated) = self.versions.insert(path, version) {
                self.forget(outdated);
            }
            // Two paths may lead to one file.
            self.forget(version);
            self.texts.insert(version, IndexedText { segment: number as u32, ..text });
            if let Some(known) = &mut self.segments[number] {
                known.current += 1;
            }
        }
        for number in 0..self.segments.len() {
            let is_outdated = |known: &mut CountedSegment| 2 * known.current < known.segment.len();
            if self.segments[number].take_if(is_outdated).is_some() {
                self.texts.retain(|_, text| text.segment as usize != number);
                self.versions.retain(|_, version| self.texts.contains_key(version));
            }
        }
    }

    fn forget(&mut self, version: u64) {
        let Some(text) = self.texts.remove(&version) else { return };
        if let Some(known) = &mut self.segments[text.segment as usize] {
            known.current -= 1;
        }
    }
}

/// Whether the content of a file is indexed. A large file may have lines that are never searched.
fn is_indexed(file: &SetFile) -> bool {
    file.len <= MAX_INDEXED_FILE_BYTES
}

/// 3 % of the memory, up to a useful maximum.
fn default_max_bytes() -> u64 {
    memory_bytes().map_or(MAX_INDEX_BYTES / 2, |bytes| (bytes / 100 * 3).min(MAX_INDEX_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment with a text for each of these paths.
    fn segment(
        paths: std::ops::Range<u64>,
        version_of: impl Fn(u64) -> u64,
    ) -> (Arc<Segment>, Vec<AddedText>) {
        let mut builder = SegmentBuilder::default();
        let added = paths.map(|path| {
            let text = builder.add(b"some text");
            let text = IndexedText { segment: 0, text, longest_line: 9, has_nul: false };
            AddedText { path, version: version_of(path), text }
        });
        let added: Vec<_> = added.collect();
        (Arc::new(builder.build()), added)
    }

    #[test]
    fn versions_that_are_gone_do_not_fill_the_memory() {
        let mut state = State::default();
        let (all, added) = segment(0..100, |path| path);
        state.add(all, added.into_iter());
        for round in 1..50 {
            let paths = (round % 5) * 20..(round % 5) * 20 + 20;
            let (some, added) = segment(paths, |path| 1_000 * round + path);
            state.add(some, added.into_iter());
            for (path, version) in &state.versions {
                assert!(state.texts.contains_key(version), "{path}");
            }
            let counted: usize = state.segments.iter().flatten().map(|known| known.current).sum();
            assert_eq!(counted, state.texts.len());
        }
        assert_eq!(state.texts.len(), 100, "every path was indexed again");
        assert!(state.segments.len() <= 7, "{}", state.segments.len());
    }
}
