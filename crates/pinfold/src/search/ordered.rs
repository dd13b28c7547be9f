//! Searches the files of a set on several threads, and stops in the order of the results.
//!
//! The result does not depend on the scheduling of the threads: it covers all files, or those up to the first one
//! that fills the page.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::SystemTime;

use pinfold_confine::{Error as ConfineError, FileOpener, Skipped};

use crate::Progress;
use crate::limits::MAX_KEPT_FILE_BYTES;
use crate::search::content_cache::ContentCache;
use crate::search::file_set::FileSet;
use crate::search::memo::QueryResults;
use crate::search::walk_search::WalkResults;
use crate::search::{FileMatches, FoundBy, KeepLines, MatchedPlace, Scan, ScanMode, Scanner};

/// The maximum number of threads. More would wait for each other, not for the disk.
const MAX_THREADS: usize = 8;

/// How many files a thread takes at once.
const BATCH: usize = 16;

/// Less text is searched before a second thread could start.
const MIN_SHARED_BYTES: u64 = 512 * 1024;

/// When a search may stop before all files are searched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StopWhen {
    /// The number of matching lines, or files, up to the end of the page.
    pub(crate) end: u64,
    /// How many bytes of text are read to count the matches after the page; `None` for no limit.
    pub(crate) max_count_bytes: Option<u64>,
}

/// The results in a set of files.
#[derive(Debug, Default)]
pub(crate) struct Results {
    /// In the order of the results.
    pub(crate) hits: Vec<(MatchedPlace, SystemTime)>,
    /// How many files could not be searched.
    pub(crate) failed: u64,
    pub(crate) skipped: Skipped,
    /// Whether files were not searched because the page is full.
    pub(crate) ended_early: bool,
}

/// The results in one batch of files.
#[derive(Default)]
struct Batch {
    is_done: bool,
    hits: Vec<(MatchedPlace, SystemTime)>,
    skipped: Skipped,
    failed: u64,
}

/// A search of files of a set, in a given order.
#[derive(Clone, Copy)]
pub(crate) struct OrderedSearch<'s> {
    pub(crate) scan: &'s Scan<'s>,
    pub(crate) set: &'s FileSet,
    /// The numbers of the files to search, in order.
    pub(crate) order: &'s [u32],
    pub(crate) stop_when: StopWhen,
    pub(crate) memo: Option<&'s QueryResults>,
    pub(crate) contents: Option<&'s ContentCache>,
    /// The results of files that were already searched.
    pub(crate) walked: &'s WalkResults,
    pub(crate) progress: &'s Progress,
}

/// The state that the threads of a search share.
struct Shared<'s> {
    search: OrderedSearch<'s>,
    /// The largest file whose content is cached; `None` if none is.
    max_kept: Option<u64>,
    next: AtomicUsize,
    stop: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    batches: Vec<Batch>,
    /// The number of batches without a gap from the first on that are done, the number of rows in them, and the size
    /// of their files.
    done: usize,
    rows: u64,
    bytes: u64,
    failure: Option<ConfineError>,
}

impl OrderedSearch<'_> {
    /// Searches the files.
    pub(crate) fn run(self) -> Result<Results, ConfineError> {
        let Self { scan, set, order, stop_when, memo, contents, .. } = self;
        let total: u64 = order.iter().map(|number| set.files[*number as usize].len).sum();
        // Caching a larger search would evict what other searches use.
        let keeps = contents.is_some_and(|contents| total <= contents.max_bytes() as u64);
        let mut batches = Vec::new();
        batches.resize_with(order.len().div_ceil(BATCH), Batch::default);
        let shared = Shared {
            search: self,
            max_kept: keeps.then_some(MAX_KEPT_FILE_BYTES),
            next: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            state: Mutex::new(State { batches, ..State::default() }),
        };
        let threads = if total < MIN_SHARED_BYTES {
            1
        } else {
            thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
        };
        thread::scope(|scope| {
            for _ in 1..threads {
                // If the system cannot start a thread, fewer threads do the work.
                let _ = thread::Builder::new().spawn_scoped(scope, || shared.run(total));
            }
            shared.run(total);
        });
        if let Some(memo) = memo {
            memo.forget_outdated(set.files.iter().map(|file| file.version));
        }
        let state = shared.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        match state.failure {
            Some(error) => Err(error),
            None => Ok(collected(scan.mode, state.batches, stop_when, shared.stop.into_inner())),
        }
    }
}

impl Shared<'_> {
    fn run(&self, total: u64) {
        let mut scanner = Scanner::new(self.search.scan);
        let mut opener = FileOpener::default();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let first = number * BATCH;
            if first >= self.search.order.len() || self.stop.load(Ordering::Relaxed) {
                return;
            }
            let files = first..self.search.order.len().min(first + BATCH);
            match self.search(files, &mut scanner, &mut opener) {
                Ok(batch) => self.finish(number, batch, total),
                Err(error) => {
                    self.stop.store(true, Ordering::Relaxed);
                    let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                    state.failure = Some(error);
                    return;
                }
            }
        }
    }

    fn search(
        &self,
        files: std::ops::Range<usize>,
        scanner: &mut Scanner<'_>,
        opener: &mut FileOpener,
    ) -> Result<Batch, ConfineError> {
        let mut batch = Batch { is_done: true, ..Batch::default() };
        let numbers = &self.search.order[files];
        let files = numbers.iter().map(|number| &self.search.set.files[*number as usize]);
        let versions = || files.clone().map(|file| file.version);
        let known = self.search.memo.map(|memo| memo.get(versions())).unwrap_or_default();
        let contents =
            self.search.contents.map(|contents| contents.get(versions())).unwrap_or_default();
        let (mut known, mut contents) = (known.into_iter(), contents.into_iter());
        let mut searched = Vec::new();
        for (file, number) in files.zip(numbers) {
            if self.search.scan.deadline.has_passed() {
                return Err(ConfineError::TimedOut);
            }
            self.search.progress.count_entry();
            let mut matched = |hits, modified| {
                batch
                    .hits
                    .push((MatchedPlace { place: file.file.place(), matches: hits }, modified));
            };
            let content = contents.next().flatten();
            if let Some(hits) = known.next().flatten() {
                if hits.count > 0 {
                    matched(hits, file.modified);
                }
                continue;
            }
            let found = if let Some((hits, modified)) =
                self.search.walked.get(*number, file.version)
            {
                Ok((hits, modified.unwrap_or(file.modified)))
            } else if let Some(content) = content {
                scanner.search_content(&content).map(|hits| (hits, file.modified))
            } else {
                opener.open(&file.file).and_then(|mut opened| {
                    let kept = scanner.search_keeping(&mut opened, FoundBy::Walk, self.max_kept)?;
                    if let (Some(contents), Some(content)) = (self.search.contents, kept.1) {
                        contents.put(file, content);
                    }
                    Ok((kept.0, opened.meta().modified))
                })
            };
            match found {
                Ok((hits, modified)) => {
                    if self.search.memo.is_some() {
                        searched.push((file.version, hits.clone()));
                    }
                    if hits.count > 0 {
                        matched(hits, modified);
                    }
                    continue;
                }
                Err(error @ ConfineError::TimedOut) => return Err(error),
                // The file was removed or replaced since it was listed.
                Err(
                    ConfineError::NotFound
                    | ConfineError::NotADirectory
                    | ConfineError::Changed
                    | ConfineError::NotRegular(_),
                ) => {}
                Err(ConfineError::TooLarge) => batch.skipped.too_large += 1,
                Err(_) => batch.skipped.unreadable += 1,
            }
            batch.failed += 1;
        }
        if let Some(memo) = self.search.memo {
            memo.put(searched.iter().map(|(version, hits)| (*version, hits)));
        }
        Ok(batch)
    }

    /// Records that a batch is done. Stops the search if the page is full and the rest is too much to count.
    fn finish(&self, number: usize, batch: Batch, total: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.batches[number] = batch;
        while state.batches.get(state.done).is_some_and(|batch| batch.is_done) {
            let first = state.done * BATCH;
            let files = &self.search.order[first..self.search.order.len().min(first + BATCH)];
            state.bytes +=
                files.iter().map(|number| self.search.set.files[*number as usize].len).sum::<u64>();
            state.rows += state.batches[state.done]
                .hits
                .iter()
                .map(|(matched, _)| rows_of(self.search.scan.mode, &matched.matches))
                .sum::<u64>();
            state.done += 1;
            if let KeepLines::All(bytes_left) = self.search.scan.keep
                && state.rows >= self.search.stop_when.end
            {
                // The page is full, so later matches are only counted.
                bytes_left.store(0, Ordering::Relaxed);
            }
            let rest = total.saturating_sub(state.bytes);
            if state.rows > self.search.stop_when.end
                && self.search.stop_when.max_count_bytes.is_some_and(|most| rest > most)
            {
                self.stop.store(true, Ordering::Relaxed);
                return;
            }
        }
    }
}

/// The number of rows that a matching file has in the results.
pub(super) fn rows_of(mode: ScanMode, hits: &FileMatches) -> u64 {
    match mode {
        ScanMode::Lines { .. } => hits.count,
        ScanMode::Files | ScanMode::Count => 1,
    }
}

/// The results of all batches. If the search was stopped, the results up to the batch that fills the page.
fn collected(
    mode: ScanMode,
    batches: Vec<Batch>,
    stop_when: StopWhen,
    ended_early: bool,
) -> Results {
    let mut found = Results { ended_early, ..Results::default() };
    let mut counted = 0;
    for batch in batches {
        if !batch.is_done || ended_early && counted > stop_when.end {
            break;
        }
        found.skipped.too_large += batch.skipped.too_large;
        found.skipped.unreadable += batch.skipped.unreadable;
        found.failed += batch.failed;
        for (matched, modified) in batch.hits {
            if !ended_early || counted <= stop_when.end {
                counted += rows_of(mode, &matched.matches);
                found.hits.push((matched, modified));
            }
        }
    }
    found
}
