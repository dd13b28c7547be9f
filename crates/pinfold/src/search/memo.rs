//! Caches the results of the last searches in each file, as long as the file has the same version.
//!
//! A repeated search opens only files that changed since. The key of a result is the version of a file in the
//! search's `FileSet`, which has only files that policy shows.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::{MAX_MEMO_BYTES, MAX_MEMO_FILE_BYTES, MAX_MEMO_QUERIES};
use crate::search::{BinaryNote, FileMatches, Line, Scan, ScanMode, SearchPattern};

/// The results of the last searches.
#[derive(Debug, Default)]
pub(crate) struct ResultCache(Mutex<Vec<Arc<QueryResults>>>);

/// The result of one query in each file.
#[derive(Debug)]
pub(crate) struct QueryResults {
    query: Query,
    state: Mutex<State>,
}

/// Everything that a file's result depends on, except its content.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Query {
    search_pattern: SearchPattern,
    exclude: Option<SearchPattern>,
    max_matches: Option<u64>,
    mode: ScanMode,
    max_line_chars: usize,
}

#[derive(Debug, Default)]
struct State {
    /// The results, by the versions of the files.
    results: HashMap<u64, FileResult, BuildHasherDefault<VersionHasher>>,
    bytes: usize,
    /// The number of files of the largest set that was searched.
    max_files: usize,
}

#[derive(Clone, Debug)]
struct FileResult {
    count: u64,
    lines: Option<Arc<Vec<Line>>>,
    note: Option<BinaryNote>,
}

impl FileResult {
    /// The bytes of memory that it takes.
    fn bytes(&self) -> usize {
        let lines = self.lines.iter().flat_map(|lines| lines.iter());
        2 * size_of::<(u64, Self)>()
            + lines.map(|line| size_of::<Line>() + line.text.len()).sum::<usize>()
    }
}

/// Versions are consecutive numbers, so any of their bits make a good hash.
#[derive(Default)]
pub(super) struct VersionHasher(u64);

impl Hasher for VersionHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((self.0 << 8) ^ u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        // The map also uses the highest bits.
        self.0 = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl ResultCache {
    /// The results of a query. The least recently used query is evicted.
    pub(crate) fn query(&self, scan: &Scan<'_>) -> Arc<QueryResults> {
        let query = Query {
            search_pattern: scan.pattern.source().clone(),
            exclude: scan.exclude.map(|exclude| exclude.source().clone()),
            max_matches: scan.max_matches,
            mode: scan.mode,
            max_line_chars: scan.max_line_chars,
        };
        let mut queries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = queries.iter().position(|known| known.query == query);
        let memo = match known.map(|number| queries.remove(number)) {
            Some(memo) => memo,
            None => Arc::new(QueryResults { query, state: Mutex::default() }),
        };
        let mut bytes = 0;
        // From the newest to the oldest.
        queries.reverse();
        queries.truncate(MAX_MEMO_QUERIES - 1);
        queries.retain(|known| {
            bytes += known.lock().bytes;
            bytes < MAX_MEMO_BYTES
        });
        queries.reverse();
        queries.push(memo.clone());
        memo
    }
}

impl QueryResults {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The results in the files with these versions.
    pub(crate) fn get(&self, versions: impl Iterator<Item = u64>) -> Vec<Option<FileMatches>> {
        let state = self.lock();
        let result = |version| {
            let FileResult { count, lines, note } = state.results.get(&version)?.clone();
            Some(FileMatches { count, lines, first: 0, note })
        };
        versions.map(result).collect()
    }

    /// Stores the results in files with these versions.
    pub(crate) fn put<'h>(&self, results: impl Iterator<Item = (u64, &'h FileMatches)>) {
        let mut state = self.lock();
        for (version, hits) in results {
            let (count, lines, note) = (hits.count, hits.lines.clone(), hits.note);
            let result = FileResult { count, lines, note };
            let bytes = result.bytes();
            if bytes > MAX_MEMO_FILE_BYTES {
                continue;
            }
            if state.bytes >= MAX_MEMO_BYTES {
                // The tree is too large.
                *state = State::default();
            }
            state.bytes += bytes;
            state.results.insert(version, result);
        }
    }

    /// Drops the results for all versions but these, which are the current ones, if there are many others.
    pub(crate) fn forget_outdated(&self, versions: impl ExactSizeIterator<Item = u64>) {
        let mut state = self.lock();
        state.max_files = state.max_files.max(versions.len());
        if state.results.len() > 2 * state.max_files + 256 {
            let mut old = std::mem::take(&mut state.results);
            let kept = versions.filter_map(|version| old.remove_entry(&version));
            state.results = kept.collect();
            state.bytes = state.results.values().map(FileResult::bytes).sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_in_outdated_versions_do_not_pile_up() {
        let memo = QueryResults { query: query(), state: Mutex::default() };
        let hits = FileMatches { count: 1, lines: None, first: 0, note: None };
        let versions = |round: u64| (0..10).map(move |file| 10 * round + file);
        for round in 0..1_000 {
            memo.put(versions(round).map(|version| (version, &hits)));
            let current: Vec<u64> = versions(round).collect();
            memo.forget_outdated(current.iter().copied());
            assert!(memo.get(versions(round)).iter().all(Option::is_some));
        }
        let state = memo.lock();
        assert!(state.results.len() < 300, "{}", state.results.len());
        assert_eq!(state.bytes, state.results.values().map(FileResult::bytes).sum::<usize>());
    }

    #[test]
    fn a_search_of_a_part_forgets_nothing_of_the_whole() {
        let memo = QueryResults { query: query(), state: Mutex::default() };
        let hits = FileMatches { count: 1, lines: None, first: 0, note: None };
        memo.put((0..1_000).map(|version| (version, &hits)));
        let all: Vec<u64> = (0..1_000).collect();
        memo.forget_outdated(all.iter().copied());
        memo.forget_outdated(all[..3].iter().copied());
        assert!(memo.get(0..1_000).iter().all(Option::is_some));
    }

    fn query() -> Query {
        Query {
            search_pattern: SearchPattern {
                pattern: "x".into(),
                literal: true,
                ignore_case: false,
                multiline: false,
            },
            exclude: None,
            max_matches: None,
            mode: ScanMode::Files,
            max_line_chars: 2_000,
        }
    }
}
