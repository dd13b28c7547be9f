//! `Search`: searches the contents of files.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::AtomicUsize;
use std::time::SystemTime;

use ignore::types::Types;
use pinfold_confine::{
    Candidate, FilterDecision, IgnoreFiles, IndexMode, Kind, Place, RawPath, Skipped,
};

use crate::glob::Filter;
use crate::limits::{DEFAULT_MAX_LIBRARY_OUTPUT_BYTES, MAX_KEPT_BYTES, MIN_RESERVED_BYTES};
use crate::search::{
    BinaryNote, Collected, FileMatches, FileSet, FirstPage, FoundBy, KeepLines, Line, MatchWindow,
    MatchedPlace, OrderedSearch, PageLine, Scan, ScanMode, Scanner, SearchPattern, StopWhen,
    WalkSearch, file_type_matcher, page,
};
use crate::{Error, GlobUsage, NoChange, Operation, RegexMistake, View};

/// Searches files for a pattern.
///
/// ```
/// use pinfold::operations::{Search, Write};
/// use pinfold::Session;
///
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// let session = Session::open([workspace])?;
/// session.perform(&Write::new("a.rs", "fn one() {}\nfn two() {}\n"))?;
/// session.perform(&Write::new("b.txt", "fn three\n"))?;
/// let done = session.perform(&Search::new(r"fn \w+").with_glob(Some("*.rs".into())))?;
/// assert_eq!(done.outcome.matching_files, 1);
/// assert_eq!(done.outcome.matches, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Search {
    /// The regex, or the text if `literal` is set.
    pub pattern: String,
    /// Whether the pattern is literal text instead of a regex.
    pub literal: bool,
    /// Whether the pattern and `exclude` ignore case.
    pub ignore_case: bool,
    /// Whether matches may span lines, and `.` matches line ends.
    pub multiline: bool,
    /// A regex. A line that it matches is not a match. Not allowed with `multiline`.
    pub exclude: Option<String>,
    /// The file or directory to search; all roots if `None`.
    pub path: Option<RawPath>,
    /// Which files to search: globs separated by commas, `!` excludes.
    pub glob: Option<String>,
    /// Which files to search: the name of one of ripgrep's file types.
    pub file_type: Option<String>,
    /// Which ignore files are obeyed.
    pub ignore_files: IgnoreFiles,
    /// The maximum number of matching lines in one file; `None` for all.
    pub max_per_file: Option<u64>,
    /// The form of the results.
    pub answer: AnswerWith,
    /// How many matching lines, or files, are skipped before the first one on the page.
    pub skip: u64,
    /// The maximum number of results; `None` for as many as fit.
    pub max_results: Option<u64>,
    /// The maximum size of the lines on the page in bytes. It does not apply to files and counts.
    pub budget: usize,
    /// How many bytes of the budget a line takes in the caller's format.
    pub line_cost: fn(&PageLine<'_>) -> usize,
    /// How many bytes of text are read after the page is full, to count the other matches; `None` for no limit.
    pub max_count_bytes: Option<u64>,
}

/// The form of a search's results.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AnswerWith {
    /// The matching files, the newest first.
    Files,
    /// The matching files, by path, with the number of matches in each.
    Counts,
    /// The matching lines, with context lines.
    Lines {
        /// Lines before a match.
        before: usize,
        /// Lines after a match.
        after: usize,
    },
}

/// The results of a search.
#[derive(Debug)]
#[non_exhaustive]
pub struct Searched {
    /// The files on this page, in order.
    pub files: Vec<Matched>,
    /// How many matching lines, or files, are on this page.
    pub shown: u64,
    /// The total number of matching lines, or files. If `counted_all` is false, there are more.
    pub total: u64,
    /// Whether all files were searched. If not, `matches` and `matching_files` count only the searched files.
    pub counted_all: bool,
    /// The total number of matches; with [`AnswerWith::Files`], the number of files.
    pub matches: u64,
    /// How many files match.
    pub matching_files: u64,
    /// How many files were searched.
    pub searched: u64,
    /// How many entries were not searched, and why.
    pub skipped: Skipped,
}

/// A matching file, as the outcome returns it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Matched {
    /// The place of the file.
    pub place: Place,
    /// The number of matches, with [`AnswerWith::Counts`].
    pub count: u64,
    /// The lines on this page, with [`AnswerWith::Lines`].
    pub lines: Vec<Line>,
    /// A note about a binary file.
    pub note: Option<BinaryNote>,
}

impl Search {
    /// Searches all roots for a regex, and returns lines.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            literal: false,
            ignore_case: false,
            multiline: false,
            exclude: None,
            path: None,
            glob: None,
            file_type: None,
            ignore_files: IgnoreFiles::STANDARD,
            max_per_file: None,
            answer: AnswerWith::Lines { before: 0, after: 0 },
            skip: 0,
            max_results: None,
            budget: DEFAULT_MAX_LIBRARY_OUTPUT_BYTES,
            line_cost: |line| line.text.len(),
            max_count_bytes: None,
        }
    }

    fn scan_mode(&self) -> ScanMode {
        match self.answer {
            AnswerWith::Files => ScanMode::Files,
            AnswerWith::Counts => ScanMode::Count,
            AnswerWith::Lines { before, after } => ScanMode::Lines { before, after },
        }
    }
}

builder!(Search {
    with_literal(literal: bool),
    with_ignore_case(ignore_case: bool),
    with_multiline(multiline: bool),
    with_exclude(exclude: Option<String>),
    with_path(path: Option<RawPath>),
    with_glob(glob: Option<String>),
    with_file_type(file_type: Option<String>),
    with_ignore_files(ignore_files: IgnoreFiles),
    with_max_per_file(max_per_file: Option<u64>),
    with_answer(answer: AnswerWith),
    with_skip(skip: u64),
    with_max_results(max_results: Option<u64>),
    with_budget(budget: usize),
    with_line_cost(line_cost: fn(&PageLine<'_>) -> usize),
    with_max_count_bytes(max_count_bytes: Option<u64>),
});

impl Operation for Search {
    type Changes = NoChange;
    type Outcome = Searched;

    fn plan(&self, view: &View<'_>) -> Result<(Searched, NoChange), Error> {
        let search_pattern = SearchPattern {
            pattern: self.pattern.clone(),
            literal: self.literal,
            ignore_case: self.ignore_case,
            // A literal that contains a line ending can only match across lines.
            multiline: self.multiline || self.literal && self.pattern.contains('\n'),
        };
        let cache = view.session().pattern_cache();
        let wait = |bytes| view.reserve_pattern(bytes);
        let (compiled, pattern_permit) = cache.compiled(&search_pattern, &wait)?;
        let exclude = self.exclude.clone().map(|pattern| SearchPattern {
            pattern,
            literal: false,
            ignore_case: self.ignore_case,
            multiline: false,
        });
        // A search with memory for one pattern does not wait for more.
        let wait = |bytes| match &pattern_permit {
            None => view.reserve_pattern(bytes),
            Some(_) if bytes < MIN_RESERVED_BYTES => Ok(None),
            Some(_) => Err(Error::BadRegex {
                pattern: self.exclude.clone().unwrap_or_default(),
                problem: "it is too large beside the other pattern".into(),
                kind: RegexMistake::Size,
            }),
        };
        let exclude = exclude.map(|exclude| cache.compiled(&exclude, &wait)).transpose()?;
        let (exclude, _exclude_permit) = exclude.unzip();
        let exclude = exclude.filter(|_| !search_pattern.multiline);
        let filter =
            self.glob.as_ref().map(|glob| Filter::parse(GlobUsage::Filter, glob)).transpose()?;
        let types = self.file_type.as_ref().map(|name| file_type_matcher(name)).transpose()?;
        let (deadline, bytes_left) = (view.deadline(), AtomicUsize::new(MAX_KEPT_BYTES));
        let scan = Scan {
            pattern: &compiled,
            exclude: exclude.as_deref(),
            max_matches: self.max_per_file,
            multiline: search_pattern.multiline,
            mode: self.scan_mode(),
            max_line_chars: view.session().settings().max_line_chars,
            deadline: &deadline,
            keep: KeepLines::All(&bytes_left),
        };
        let mut found_by = FoundBy::Walk;
        let TreeMatches { mut hits, searched, skipped, counted_all } = match self
            .named_file(view)?
        {
            Some(place) => {
                found_by = FoundBy::Path;
                let (hits, modified) = self.search_one(view, &scan, &place, found_by)?;
                let hits = vec![(MatchedPlace { place, matches: hits }, modified)];
                TreeMatches { hits, searched: 1, skipped: Skipped::default(), counted_all: true }
            }
            None => self.search_all(view, &scan, filter.as_ref(), types.as_ref())?,
        };
        hits.retain(|(matched, _)| matched.matches.count > 0);
        view.check_time()?;
        let matching_files = hits.len() as u64;
        let matches = hits.iter().map(|(matched, _)| matched.matches.count).sum();
        let mut outcome = Searched {
            files: Vec::new(),
            shown: 0,
            total: matching_files,
            counted_all,
            matches,
            matching_files,
            searched,
            skipped,
        };
        match self.answer {
            AnswerWith::Files => {
                hits.sort_unstable_by(|(one, one_time), (other, other_time)| {
                    other_time.cmp(one_time).then_with(|| one.place.by_path(&other.place))
                });
                self.rows(hits, &mut outcome);
            }
            AnswerWith::Counts => {
                hits.sort_unstable_by(|(one, _), (other, _)| one.place.by_path(&other.place));
                self.rows(hits, &mut outcome);
            }
            AnswerWith::Lines { before, after } => {
                hits.sort_unstable_by(|(one, _), (other, _)| one.place.by_path(&other.place));
                let window = MatchWindow {
                    skip: self.skip,
                    max_matches: self.max_results.unwrap_or(u64::MAX),
                    before,
                    after,
                    budget: self.budget,
                    line_cost: self.line_cost,
                };
                self.lines(view, &scan, found_by, window, hits, &mut outcome)?;
            }
        }
        if !outcome.counted_all {
            // The search stopped at the first result after the page. The answer says `more than N`, so that result is
            // not part of N.
            outcome.total = outcome.total.saturating_sub(1);
        }
        Ok((outcome, NoChange))
    }
}

/// The hits of a walk, how many files it searched, and how many entries it skipped.
struct TreeMatches {
    hits: Vec<(MatchedPlace, SystemTime)>,
    searched: u64,
    skipped: Skipped,
    /// Whether no file was left out because the page is full.
    counted_all: bool,
}

impl Search {
    /// The file at the path, if the path is a file.
    fn named_file(&self, view: &View<'_>) -> Result<Option<Place>, Error> {
        let Some(path) = &self.path else { return Ok(None) };
        match view.file(path) {
            Ok((place, _)) => Ok(Some(place)),
            Err(Error::IsDirectory { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    fn search_all(
        &self,
        view: &View<'_>,
        scan: &Scan<'_>,
        filter: Option<&Filter>,
        types: Option<&Types>,
    ) -> Result<TreeMatches, Error> {
        let starts = view.walk_starts(self.path.as_ref())?;
        let filter_decision = |candidate: &Candidate<'_>| {
            let by_glob =
                filter.map_or(FilterDecision::Default, |filter| filter.filter_decision(candidate));
            let other = |types: &Types| {
                let name = OsStr::from_bytes(candidate.name());
                candidate.kind != Kind::Directory && types.matched(name, false).is_ignore()
            };
            // As with ripgrep, a file that the glob includes may be of any type.
            match by_glob {
                FilterDecision::Default if types.is_some_and(other) => FilterDecision::Exclude,
                by_glob => by_glob,
            }
        };
        let filter = (self.glob.clone(), self.file_type.clone(), self.ignore_files);
        let index = Some(view.session().content_index())
            .filter(|_| view.session().settings().index != IndexMode::Off);
        let memo = index.map(|_| view.session().result_memo().query(scan));
        let end = self.max_results.map_or(u64::MAX, |most| self.skip.saturating_add(most));
        // The setting is a number; its largest value means no limit.
        let max_count_bytes = self.max_count_bytes.filter(|most| *most < u64::MAX);
        let stop_when = StopWhen { end, max_count_bytes };
        let sorted_by_path = self.answer != AnswerWith::Files;
        // A tree that is cached is walked fast, and later searches open only some of the files.
        let search =
            view.is_first_walk(&starts).then(|| WalkSearch::new(scan, stop_when, sorted_by_path));
        let memo = memo.as_deref();
        let collected =
            FileSet::of(view, &starts, filter, &filter_decision, search.as_ref(), memo)?;
        if search.is_some() {
            view.watch_later(&starts);
        }
        let (set, walked) = match collected {
            Collected::All(set, walked) => (set, walked),
            Collected::First(FirstPage { hits, searched, skipped }) => {
                return Ok(TreeMatches { hits, searched, skipped, counted_all: false });
            }
        };
        let running = index.map(|index| index.begin_search());
        let possible = index.and_then(|index| index.candidates(&set, scan.pattern, scan.multiline));
        let mut order = possible.unwrap_or_else(|| (0..set.files.len() as u32).collect());
        if self.answer == AnswerWith::Files {
            // The files of a set are sorted by path, and a stable sort keeps that order.
            let modified = |number: &u32| set.files[*number as usize].modified;
            order.sort_by_key(|number| Reverse(modified(number)));
        }
        let progress = &view.call().progress;
        let contents = index.map(|index| &index.contents);
        let search = OrderedSearch {
            scan,
            set: &set,
            order: &order,
            stop_when,
            memo,
            contents,
            walked: &walked,
            progress,
        };
        let found = search.run().map_err(|error| view.path_error(&RawPath::from("."), error))?;
        drop(running);
        if let Some(index) = index {
            index.record_search(&set, view.session().settings().max_index_bytes);
        }
        let mut skipped = set.skipped;
        skipped.unreadable += found.skipped.unreadable;
        skipped.too_large += found.skipped.too_large;
        let searched = (set.files.len() as u64).saturating_sub(found.failed);
        let counted_all = !found.ended_early;
        Ok(TreeMatches { hits: found.hits, searched, skipped, counted_all })
    }

    fn search_one(
        &self,
        view: &View<'_>,
        scan: &Scan<'_>,
        place: &Place,
        found_by: FoundBy,
    ) -> Result<(FileMatches, SystemTime), Error> {
        let path = || self.path.clone().unwrap_or_else(|| view.session().absolute(place).into());
        let mut file = view.open_place(place).map_err(|error| Error::from_read(&path(), error))?;
        let hits = Scanner::new(scan).search(&mut file, found_by);
        let hits = hits.map_err(|error| view.path_error(&path(), error))?;
        Ok((hits, file.meta().modified))
    }

    /// Puts the matching lines on this page into the outcome.
    fn lines(
        &self,
        view: &View<'_>,
        scan: &Scan<'_>,
        found_by: FoundBy,
        window: MatchWindow,
        hits: Vec<(MatchedPlace, SystemTime)>,
        outcome: &mut Searched,
    ) -> Result<(), Error> {
        let bytes = self.budget.saturating_add(1);
        let again = |place: &Place, (from, to): (u64, u64)| {
            let scan = Scan { keep: KeepLines::Window { from, to, bytes }, ..*scan };
            match self.search_one(view, &scan, place, found_by) {
                // The file was removed or replaced, so it has no matches.
                Err(Error::NotFound { .. } | Error::Changed { .. }) => Ok(FileMatches::default()),
                other => other.map(|(hits, _)| hits),
            }
        };
        let files = hits.into_iter().map(|(matched, _)| matched).collect();
        let shown = page(files, window, |place| view.session().absolute(place), again)?;
        outcome.shown = shown.matches;
        outcome.total = shown.total;
        outcome.matches = shown.total;
        let files = shown.files.into_iter();
        outcome.files =
            files.map(|(place, lines, note)| Matched { place, count: 0, lines, note }).collect();
        Ok(())
    }

    /// Puts the files on this page into the outcome.
    fn rows(&self, hits: Vec<(MatchedPlace, SystemTime)>, outcome: &mut Searched) {
        let skip = usize::try_from(self.skip).unwrap_or(usize::MAX);
        let most =
            self.max_results.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        let hits = hits.into_iter().skip(skip).take(most);
        let row = |(MatchedPlace { place, matches: hits }, _)| Matched {
            place,
            count: hits.count,
            lines: Vec::new(),
            note: None,
        };
        outcome.files = hits.map(row).collect();
        outcome.shown = outcome.files.len() as u64;
    }
}
