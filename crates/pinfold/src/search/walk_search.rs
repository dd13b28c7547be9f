//! Searches files while their tree is walked for the first time.
//!
//! Each file is opened once, and its metadata comes from the open file. The walk begins with the first paths. If the
//! results are sorted by path and the first files fill the page, the walk ends as soon as the rest is known to be too
//! much to count.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use pinfold_confine::{Error as ConfineError, Metadata, Skipped, WalkEntry};

use crate::search::memo::{QueryResults, VersionHasher};
use crate::search::ordered::rows_of;
use crate::search::set_walk::FoundFile;
use crate::search::{FileMatches, FoundBy, KeepLines, MatchedPlace, Scan, Scanner, StopWhen};

/// The search that the threads of a walk share.
pub(crate) struct WalkSearch<'s> {
    scan: &'s Scan<'s>,
    stop_when: StopWhen,
    sorted_by_path: bool,
    /// How many rows have been found. They need not be the first ones.
    rows: AtomicU64,
    /// Whether no more files are searched during the walk: the page is full, and the rest may be too much to count.
    is_enough: AtomicBool,
    /// The size of the files that have been found since then.
    bytes: AtomicU64,
    page: Mutex<Page>,
}

#[derive(Default)]
struct Page {
    /// The number of rows in each file that matches, by the file's sort key.
    rows: Vec<(Vec<u8>, u64)>,
    /// The file with the first row after the page.
    full_at: Option<Vec<u8>>,
}

impl<'s> WalkSearch<'s> {
    /// `sorted_by_path` says whether the results are.
    pub(crate) fn new(scan: &'s Scan<'s>, stop_when: StopWhen, sorted_by_path: bool) -> Self {
        Self {
            scan,
            stop_when,
            sorted_by_path,
            rows: AtomicU64::new(0),
            is_enough: AtomicBool::new(false),
            bytes: AtomicU64::new(0),
            page: Mutex::default(),
        }
    }

    fn note_rows(&self, found: &WalkEntry<'_>, rows: u64) {
        if self.stop_when.max_count_bytes.is_none() {
            return;
        }
        if self.sorted_by_path {
            let mut page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
            page.rows.push((found.sort_key(), rows));
        }
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// Whether the walk goes on. All files before the sort key `first_open` have been searched.
    fn goes_on(&self, first_open: &dyn Fn() -> Option<Vec<u8>>) -> bool {
        let Some(most) = self.stop_when.max_count_bytes else { return true };
        let end = self.stop_when.end;
        if !self.is_enough.load(Ordering::Relaxed) && self.rows.load(Ordering::Relaxed) > end {
            if self.sorted_by_path {
                self.fill_page(first_open());
            } else {
                self.is_enough.store(true, Ordering::Relaxed);
            }
        }
        !self.sorted_by_path || self.bytes.load(Ordering::Relaxed) <= most
    }

    fn fill_page(&self, first_open: Option<Vec<u8>>) {
        let mut page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        page.rows.sort_unstable();
        let mut rows = 0;
        let is_done = |key: &[u8]| first_open.as_ref().is_none_or(|first| key < first.as_slice());
        let full_at = page.rows.iter().take_while(|(key, _)| is_done(key)).find(|(_, more)| {
            rows += more;
            rows > self.stop_when.end
        });
        page.full_at = full_at.map(|(key, _)| key.clone());
        if page.full_at.is_some() {
            if let KeepLines::All(bytes_left) = self.scan.keep {
                // Later matches are only counted.
                bytes_left.store(0, Ordering::Relaxed);
            }
            self.is_enough.store(true, Ordering::Relaxed);
        }
    }

    /// The results of the first files, sorted by path, if they fill the page and the rest is too much to count.
    pub(super) fn first_page(
        &self,
        files: &[FoundFile],
        results: &WalkResults,
        skipped: Skipped,
        memo: Option<&QueryResults>,
    ) -> Option<FirstPage> {
        let most = self.stop_when.max_count_bytes?;
        let page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        let full_at = page.full_at.as_ref()?;
        let is_first = |file: &FoundFile| file.file.file.place().sort_key() <= *full_at;
        let (first, rest) = files.split_at(files.partition_point(is_first));
        if rest.iter().map(|file| file.file.len).sum::<u64>() <= most {
            return None;
        }
        let nothing = FileMatches::default();
        let (mut hits, mut searched) = (Vec::new(), 0);
        for FoundFile { file, was_searched, .. } in first {
            searched += u64::from(*was_searched);
            let found = results.hits.get(&file.version);
            if let Some(memo) = memo.filter(|_| *was_searched) {
                let found = found.map_or(&nothing, |(found, _)| found);
                memo.put([(file.version, found)].into_iter());
            }
            if let Some((found, modified)) = found {
                let matched = MatchedPlace { place: file.file.place(), matches: found.clone() };
                hits.push((matched, *modified));
            }
        }
        Some(FirstPage { hits, searched, skipped })
    }
}

/// The results of the files before the end of the page, where the rest is not counted.
pub(crate) struct FirstPage {
    pub(crate) hits: Vec<(MatchedPlace, SystemTime)>,
    /// How many files were searched.
    pub(crate) searched: u64,
    pub(crate) skipped: Skipped,
}

/// The search by one thread of a walk.
pub(super) struct ThreadSearch<'s> {
    search: &'s WalkSearch<'s>,
    scanner: Scanner<'s>,
    hits: Vec<(u64, (FileMatches, SystemTime))>,
}

impl<'s> ThreadSearch<'s> {
    pub(super) fn new(search: &'s WalkSearch<'s>) -> Self {
        Self { search, scanner: Scanner::new(search.scan), hits: Vec::new() }
    }

    /// Searches a file. Returns its version and metadata, or `None` if it was not searched.
    pub(super) fn search(
        &mut self,
        found: &WalkEntry<'_>,
    ) -> Result<Option<(u64, Metadata)>, ConfineError> {
        if self.search.is_enough.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // If it fails, it is tried again after the walk, where failures are counted.
        let Ok((mut opened, version, meta)) = found.open_with_version() else { return Ok(None) };
        let hits = match self.scanner.search(&mut opened, FoundBy::Walk) {
            Ok(hits) => hits,
            Err(error @ ConfineError::TimedOut) => return Err(error),
            Err(_) => return Ok(None),
        };
        if hits.count > 0 {
            self.search.note_rows(found, rows_of(self.search.scan.mode, &hits));
            self.hits.push((version, (hits, opened.meta().modified)));
        }
        Ok(Some((version, meta)))
    }

    /// Counts a file that was not searched.
    pub(super) fn note_unsearched(&self, len: u64) {
        if self.search.is_enough.load(Ordering::Relaxed) {
            self.search.bytes.fetch_add(len, Ordering::Relaxed);
        }
    }

    pub(super) fn goes_on(&self, first_open: &dyn Fn() -> Option<Vec<u8>>) -> bool {
        self.search.goes_on(first_open)
    }

    /// The matches, by the versions of the files.
    pub(super) fn into_matches(self) -> Vec<(u64, (FileMatches, SystemTime))> {
        self.hits
    }
}

/// The results of the files that were searched during a walk.
#[derive(Debug, Default)]
pub(crate) struct WalkResults {
    /// The version of each file of the set that was searched; 0 for other files.
    searched: Vec<u64>,
    hits: HashMap<u64, (FileMatches, SystemTime), BuildHasherDefault<VersionHasher>>,
}

impl WalkResults {
    pub(super) fn new(
        files: &[FoundFile],
        hits: impl Iterator<Item = (u64, (FileMatches, SystemTime))>,
    ) -> Self {
        let version = |file: &FoundFile| if file.was_searched { file.file.version } else { 0 };
        Self { searched: files.iter().map(version).collect(), hits: hits.collect() }
    }

    /// The result in a file with this version. Returns `None` if that was not searched.
    pub(super) fn get(
        &self,
        number: u32,
        version: u64,
    ) -> Option<(FileMatches, Option<SystemTime>)> {
        let is_searched = self.searched.get(number as usize) == Some(&version);
        is_searched.then(|| match self.hits.get(&version) {
            Some((hits, modified)) => (hits.clone(), Some(*modified)),
            None => (FileMatches::default(), None),
        })
    }
}
