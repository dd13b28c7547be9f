//! `List`: lists the entries of a directory or of a tree.

use std::sync::atomic::{AtomicUsize, Ordering};

use pinfold_confine::{
    Candidate, Error as ConfineError, FilterDecision, IgnoreFiles, Kind, Metadata, Place, RawPath,
    RelPath, Skipped, Stat, Visitor, WalkEntry,
};

use crate::file_caches::BinaryMarks;
use crate::glob::Filter;
use crate::limits::MAX_LIST_ENTRIES;
use crate::view::{WalkOptions, Walked};
use crate::{Error, GlobUsage, NoChange, Operation, View};

/// Lists the entries of a directory.
///
/// ```
/// use pinfold::operations::{List, Write};
/// use pinfold::Session;
///
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// let session = Session::open([workspace])?;
/// session.perform(&Write::new("src/main.rs", ""))?;
/// session.perform(&Write::new("README.md", "hello\n"))?;
/// let done = session.perform(&List::new("."))?;
/// let paths: Vec<_> = done.outcome.entries.iter().map(|entry| session.relative(&entry.place)).collect();
/// assert_eq!(paths, ["README.md", "src"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct List {
    /// The directory.
    pub path: RawPath,
    /// The number of levels. 1 lists the directory's own entries.
    pub depth: usize,
    /// Lists only the entries that this glob matches.
    pub glob: Option<String>,
    /// Leaves out the entries that one of these globs matches.
    pub ignore: Vec<String>,
    /// Which entries are listed.
    pub include: Include,
    /// Which ignore files are obeyed if ignored entries are left out.
    pub ignore_files: IgnoreFiles,
    /// Whether entries have their sizes and link targets, which takes a `stat` for each. Otherwise sizes are 0.
    pub details: bool,
    /// Whether the beginning of each file is read to see whether it is binary.
    pub sniff: bool,
    /// Whether the size of a symlink is that of its target. It is 0 if the target is outside, hidden by policy, or
    /// missing.
    pub follow: bool,
    /// The order of the entries.
    pub order: ListOrder,
    /// The maximum number of entries.
    pub max_entries: usize,
}

/// Which entries are listed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Include {
    /// All entries.
    All,
    /// Entries that no ignore file leaves out.
    NotIgnored,
    /// Entries that are neither ignored nor hidden.
    Visible,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ListOrder {
    /// Directories before everything else, each group by path.
    DirectoriesFirst,
    /// By path.
    Path,
    /// By path. Of too many entries, the deepest are left out.
    PathTopKept,
}

/// A directory and its entries.
#[derive(Debug)]
#[non_exhaustive]
pub struct Listed {
    /// The place of the directory.
    pub place: Place,
    /// Its entries.
    pub entries: Vec<ListEntry>,
    /// The total number of entries.
    pub total: u64,
    /// How many entries were left out, and why.
    pub skipped: Skipped,
}

/// One entry of a list.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListEntry {
    /// The place of the entry.
    pub place: Place,
    /// Whether it is a file, a directory, a symlink or something else.
    pub kind: Kind,
    /// Its size in bytes, if [`List::details`] is set.
    pub size: u64,
    /// The target of a symlink, as the link stores it, if [`List::details`] is set.
    pub link_target: Option<Vec<u8>>,
    /// Whether it is a binary file; false unless [`List::sniff`] is set.
    pub binary: bool,
}

impl List {
    /// Lists all entries of a directory, one level deep.
    pub fn new(path: impl Into<RawPath>) -> Self {
        Self {
            path: path.into(),
            depth: 1,
            glob: None,
            ignore: Vec::new(),
            include: Include::All,
            ignore_files: IgnoreFiles::STANDARD,
            details: true,
            sniff: false,
            follow: false,
            order: ListOrder::Path,
            max_entries: MAX_LIST_ENTRIES,
        }
    }
}

builder!(List {
    with_depth(depth: usize),
    with_glob(glob: Option<String>),
    with_ignore(ignore: Vec<String>),
    with_include(include: Include),
    with_ignore_files(ignore_files: IgnoreFiles),
    with_details(details: bool),
    with_sniff(sniff: bool),
    with_follow(follow: bool),
    with_order(order: ListOrder),
    with_max_entries(max_entries: usize),
});

/// The entries that one thread of the walk has found.
struct Listing<'l> {
    list: &'l List,
    glob: Option<&'l Filter>,
    /// The number of entries that all threads have found.
    found: &'l AtomicUsize,
    entries: Vec<Entry>,
    buffer: Vec<u8>,
    marks: &'l BinaryMarks,
}

struct Entry {
    place: Place,
    kind: Kind,
    /// `None` until the entry has been read.
    details: Option<Details>,
}

/// The metadata of an entry.
struct Details {
    meta: Metadata,
    link_target: Option<Vec<u8>>,
    binary: bool,
}

impl Visitor for Listing<'_> {
    fn visit(&mut self, found: &WalkEntry<'_>) -> Result<(), ConfineError> {
        if self.glob.is_some_and(|glob| !glob.includes(found.below_start(), found.kind)) {
            return Ok(());
        }
        // The directory is open now. If it has more than `max_entries` entries, the order decides later which are
        // listed, and only those are read.
        let details = if !self.list.details {
            None
        } else if self.found.fetch_add(1, Ordering::Relaxed) < self.list.max_entries {
            let details = self.details(found);
            Some(details.inspect_err(|_| {
                self.found.fetch_sub(1, Ordering::Relaxed);
            })?)
        } else {
            None
        };
        self.entries.push(Entry { place: found.place(), kind: found.kind, details });
        Ok(())
    }

    fn is_quick(&self) -> bool {
        !self.list.details
    }
}

impl Listing<'_> {
    fn details(&mut self, found: &WalkEntry<'_>) -> Result<Details, ConfineError> {
        let meta = found.meta()?;
        if self.list.sniff && found.kind == Kind::File {
            if let Some(binary) = self.marks.get(&meta) {
                return Ok(Details { meta, link_target: None, binary });
            }
            if let Ok(file) = found.open() {
                let meta = *file.meta();
                let binary = self.marks.sniff(file, &mut self.buffer);
                return Ok(Details { meta, link_target: None, binary });
            }
        }
        let link_target = match meta.kind {
            Kind::Symlink => found.link_target().ok(),
            _ => None,
        };
        Ok(Details { meta, link_target, binary: false })
    }
}

/// The globs of [`List::ignore`]. An absolute glob matches paths below the root, a relative one paths below the directory.
struct IgnoreGlobs {
    absolute: Option<Filter>,
    relative: Option<Filter>,
}

impl IgnoreGlobs {
    fn parse(globs: &[String], root: &str) -> Result<Self, Error> {
        let below_root = |glob: &String| {
            let below = glob.strip_prefix(root.trim_end_matches('/'))?;
            below.starts_with('/').then(|| below.to_owned())
        };
        let (mut absolute, mut relative) = (Vec::new(), Vec::new());
        for glob in globs {
            match below_root(glob) {
                Some(below) => absolute.push(below),
                None => relative.push(glob.clone()),
            }
        }
        let filter = |globs: Vec<String>| {
            (!globs.is_empty()).then(|| Filter::new(GlobUsage::Ignore, &globs)).transpose()
        };
        Ok(Self { absolute: filter(absolute)?, relative: filter(relative)? })
    }

    fn matches(&self, candidate: &Candidate<'_>) -> bool {
        let includes = |filter: &Option<Filter>, path: &[u8]| {
            filter.as_ref().is_some_and(|filter| filter.includes(path, candidate.kind))
        };
        includes(&self.relative, candidate.below_start())
            || includes(&self.absolute, candidate.below_root())
    }
}

impl Operation for List {
    type Changes = NoChange;
    type Outcome = Listed;

    fn plan(&self, view: &View<'_>) -> Result<(Listed, NoChange), Error> {
        let glob =
            self.glob.as_ref().map(|glob| Filter::parse(GlobUsage::Filter, glob)).transpose()?;
        let place = view.directory(&self.path)?;
        let root = view.session().absolute(&Place { path: RelPath::root(), ..place });
        let ignore = IgnoreGlobs::parse(&self.ignore, &root)?;
        let filter_decision = |candidate: &Candidate<'_>| {
            if ignore.matches(candidate) {
                FilterDecision::Exclude
            } else if self.include == Include::All {
                FilterDecision::Force
            } else {
                glob.as_ref().map_or(FilterDecision::Default, |glob| glob.name_decision(candidate))
            }
        };
        let found = AtomicUsize::new(0);
        let new_visitor = || Listing {
            list: self,
            glob: glob.as_ref(),
            found: &found,
            entries: Vec::new(),
            buffer: Vec::new(),
            marks: view.session().binary_marks(),
        };
        let start = [place.clone()];
        let counts_withheld = |candidate: &Candidate<'_>| {
            let included = |glob: &Filter| glob.includes(candidate.below_start(), candidate.kind);
            candidate.kind == Kind::Directory || glob.as_ref().is_none_or(included)
        };
        let options = WalkOptions {
            depth: self.depth,
            hidden: self.include != Include::Visible,
            ignore_files: self.ignore_files,
            counts_withheld: &counts_withheld,
            ..WalkOptions::new(&filter_decision)
        };
        let Walked { visitors, mut skipped, .. } = match view.walk(&start, options, new_visitor) {
            Err(Error::DirectoryUnreadable { .. }) => {
                return Err(Error::DirectoryUnreadable { path: self.path.clone() });
            }
            other => other?,
        };
        let mut entries: Vec<_> =
            visitors.into_iter().flat_map(|visitor| visitor.entries).collect();
        let later = |kind| self.order == ListOrder::DirectoriesFirst && kind != Kind::Directory;
        entries.sort_unstable_by(|one, other| {
            let kinds = later(one.kind).cmp(&later(other.kind));
            kinds.then_with(|| one.place.by_path(&other.place))
        });
        let mut total = entries.len() as u64;
        if self.order == ListOrder::PathTopKept && entries.len() > self.max_entries {
            entries.sort_by_key(|entry| entry.place.path.names().count());
            entries.truncate(self.max_entries);
            entries.sort_unstable_by(|one, other| one.place.by_path(&other.place));
        }
        entries.truncate(self.max_entries);
        let listed = entries.len();
        let mut buffer = Vec::new();
        let entries = entries
            .into_iter()
            .filter_map(|entry| self.listed(view, entry, (&mut skipped, &mut buffer)));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        // An entry that no longer exists does not count.
        total -= (listed - entries.len()) as u64;
        Ok((Listed { place, entries, total, skipped }, NoChange))
    }
}

impl List {
    /// The entry with its details. Returns `None` if it no longer exists.
    fn listed(
        &self,
        view: &View<'_>,
        entry: Entry,
        later: (&mut Skipped, &mut Vec<u8>),
    ) -> Option<Result<ListEntry, Error>> {
        let Entry { place, kind, details } = entry;
        if !self.details {
            return Some(Ok(ListEntry { place, kind, size: 0, link_target: None, binary: false }));
        }
        let details = match details {
            Some(details) => details,
            None => match self.later_details(view, &place, kind, later) {
                Ok(details) => details?,
                Err(ended) => return Some(Err(ended)),
            },
        };
        let Details { meta, link_target, binary } = details;
        let size = match meta.kind {
            Kind::Symlink if self.follow => linked_size(view, &place),
            _ => meta.len,
        };
        Some(Ok(ListEntry { place, kind: meta.kind, size, link_target, binary }))
    }

    /// The details of an entry that the walk did not read. Returns `None` if it no longer exists.
    fn later_details(
        &self,
        view: &View<'_>,
        place: &Place,
        kind: Kind,
        (skipped, buffer): (&mut Skipped, &mut Vec<u8>),
    ) -> Result<Option<Details>, Error> {
        view.check_time()?;
        let (meta, link_target) = match view.lstat_place(place) {
            Ok(found) => found,
            Err(ConfineError::NotFound | ConfineError::NotADirectory | ConfineError::Changed) => {
                return Ok(None);
            }
            Err(_) => {
                skipped.unreadable += 1;
                return Ok(None);
            }
        };
        let marks = view.session().binary_marks();
        let binary = self.sniff
            && kind == Kind::File
            && marks.get(&meta).unwrap_or_else(|| {
                view.open_place(place).is_ok_and(|file| marks.sniff(file, buffer))
            });
        Ok(Some(Details { meta, link_target, binary }))
    }
}

/// The size of a symlink's target, if it can be shown without approval.
fn linked_size(view: &View<'_>, link: &Place) -> u64 {
    let path = RawPath::from(view.session().absolute(link));
    let target = view.session().workspace().stat(&path).ok();
    let shown =
        |target: &Stat| view.shows_place(&target.place, target.meta.kind == Kind::Directory);
    target.filter(shown).map_or(0, |target| target.meta.len)
}
