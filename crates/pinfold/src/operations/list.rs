//! Listing what is in a directory.

use std::io::Read as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use pinfold_confine::{
    Candidate, Error as ConfineError, File, FilterDecision, Kind, Metadata, Place, RawPath,
    RelPath, Skipped, Visitor, WalkEntry,
};
use pinfold_text::{Content, SNIFF_BYTES, sniff};

use crate::glob::Filter;
use crate::limits::MAX_LIST_ENTRIES;
use crate::operations::search::by_path;
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
    /// How many levels; 1 is the directory's own entries.
    pub depth: usize,
    /// Only entries that this glob is about.
    pub glob: Option<String>,
    /// No entries that one of these globs is about.
    pub ignore: Vec<String>,
    /// Which of the entries are meant.
    pub which: Which,
    /// Whether it is found out which files are binary.
    pub sniff: bool,
    /// The order in which they are listed.
    pub order: ListOrder,
    /// How many are listed at the most.
    pub most: usize,
}

/// Which entries are listed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Which {
    /// All that are there.
    All,
    /// All but what ignore files leave out.
    NotIgnored,
    /// All but what is ignored or hidden.
    Visible,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ListOrder {
    /// Directories before all others, both by path.
    DirectoriesFirst,
    /// By path.
    Path,
}

/// What is in a directory.
#[derive(Debug)]
#[non_exhaustive]
pub struct Listed {
    /// Where the directory is.
    pub place: Place,
    /// Its entries.
    pub entries: Vec<ListEntry>,
    /// How many there are in all.
    pub total: u64,
    /// What was left out.
    pub skipped: Skipped,
}

/// One entry of a list.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListEntry {
    /// Where it is.
    pub place: Place,
    /// What it is.
    pub kind: Kind,
    /// Its size in bytes.
    pub size: u64,
    /// Where it points, as it is written in the link.
    pub link_target: Option<Vec<u8>>,
    /// Whether it is a file that is not text, where that was to be found out.
    pub binary: bool,
}

impl List {
    /// Lists a directory's own entries, all of them.
    pub fn new(path: impl Into<RawPath>) -> Self {
        Self {
            path: path.into(),
            depth: 1,
            glob: None,
            ignore: Vec::new(),
            which: Which::All,
            sniff: false,
            order: ListOrder::Path,
            most: MAX_LIST_ENTRIES,
        }
    }
}

builder!(List {
    with_depth(depth: usize),
    with_glob(glob: Option<String>),
    with_ignore(ignore: Vec<String>),
    with_which(which: Which),
    with_sniff(sniff: bool),
    with_order(order: ListOrder),
    with_most(most: usize),
});

/// What one thread of the walk has found.
struct Listing<'l> {
    list: &'l List,
    glob: Option<&'l Filter>,
    /// How many were found by all threads.
    found: &'l AtomicUsize,
    entries: Vec<Entry>,
    buffer: Vec<u8>,
}

struct Entry {
    place: Place,
    kind: Kind,
    /// `None` as long as it was not looked at.
    about: Option<About>,
}

/// What is told about an entry besides its name.
struct About {
    meta: Metadata,
    link_target: Option<Vec<u8>>,
    binary: bool,
}

impl Visitor for Listing<'_> {
    fn visit(&mut self, found: &WalkEntry<'_>) -> Result<(), ConfineError> {
        if self.glob.is_some_and(|glob| !glob.includes(found.below_start(), found.kind)) {
            return Ok(());
        }
        // Most directories are listed as a whole, and here their handle is at hand. Of one that is larger,
        // it is not known yet which entries are listed.
        let about = match self.found.fetch_add(1, Ordering::Relaxed) < self.list.most {
            true => match self.look(found) {
                Ok(about) => Some(about),
                Err(gone) => {
                    self.found.fetch_sub(1, Ordering::Relaxed);
                    return Err(gone);
                }
            },
            false => None,
        };
        self.entries.push(Entry { place: found.place(), kind: found.kind, about });
        Ok(())
    }
}

impl Listing<'_> {
    fn look(&mut self, found: &WalkEntry<'_>) -> Result<About, ConfineError> {
        if self.list.sniff
            && found.kind == Kind::File
            && let Ok(file) = found.open()
        {
            let meta = *file.meta();
            let binary = is_binary(file, &mut self.buffer).unwrap_or(false);
            return Ok(About { meta, link_target: None, binary });
        }
        let meta = found.meta()?;
        let link_target = match meta.kind {
            Kind::Symlink => found.link_target().ok(),
            _ => None,
        };
        Ok(About { meta, link_target, binary: false })
    }
}

impl Operation for List {
    type Changes = NoChange;
    type Outcome = Listed;

    fn plan(&self, view: &View<'_>) -> Result<(Listed, NoChange), Error> {
        let glob =
            self.glob.as_ref().map(|glob| Filter::parse(GlobUsage::Filter, glob)).transpose()?;
        let place = view.directory(&self.path)?;
        // An absolute glob is about paths below the root, the others about paths below the directory.
        let root = view.session().absolute(&Place { path: RelPath::root(), ..place });
        let below_root = |glob: &String| {
            let below = glob.strip_prefix(root.trim_end_matches('/'))?;
            below.starts_with('/').then(|| below.to_owned())
        };
        let (mut absolute, mut relative) = (Vec::new(), Vec::new());
        for glob in &self.ignore {
            match below_root(glob) {
                Some(below) => absolute.push(below),
                None => relative.push(glob.clone()),
            }
        }
        let filter = |globs: Vec<String>| {
            (!globs.is_empty()).then(|| Filter::new(GlobUsage::Ignore, &globs)).transpose()
        };
        let (absolute, relative) = (filter(absolute)?, filter(relative)?);
        let includes = |filter: &Option<Filter>, path: &[u8], kind| {
            filter.as_ref().is_some_and(|filter| filter.includes(path, kind))
        };
        let is_ignored = |candidate: &Candidate<'_>| {
            includes(&relative, candidate.below_start(), candidate.kind)
                || includes(&absolute, candidate.below_root(), candidate.kind)
        };
        let filter_decision = |candidate: &Candidate<'_>| {
            if is_ignored(candidate) {
                FilterDecision::Exclude
            } else if self.which == Which::All {
                FilterDecision::Force
            } else {
                glob.as_ref().map_or(FilterDecision::Default, |glob| glob.name_decision(candidate))
            }
        };
        let hidden = self.which != Which::Visible;
        let found = AtomicUsize::new(0);
        let new_visitor = || Listing {
            list: self,
            glob: glob.as_ref(),
            found: &found,
            entries: Vec::new(),
            buffer: Vec::new(),
        };
        let start = [place.clone()];
        let missed = |candidate: &Candidate<'_>| {
            let included = |glob: &Filter| glob.includes(candidate.below_start(), candidate.kind);
            candidate.kind == Kind::Directory || glob.as_ref().is_none_or(included)
        };
        let (parts, mut skipped) =
            match view.walk(&start, self.depth, hidden, &filter_decision, &missed, new_visitor) {
                Err(Error::DirectoryUnreadable { .. }) => {
                    return Err(Error::DirectoryUnreadable { path: self.path.clone() });
                }
                other => other?,
            };
        let mut entries: Vec<_> = parts.into_iter().flat_map(|part| part.entries).collect();
        let later = |kind| self.order == ListOrder::DirectoriesFirst && kind != Kind::Directory;
        entries.sort_unstable_by(|one, other| {
            let kinds = later(one.kind).cmp(&later(other.kind));
            kinds.then_with(|| by_path(&one.place, &other.place))
        });
        let mut total = entries.len() as u64;
        entries.truncate(self.most);
        let listed = entries.len();
        let mut buffer = Vec::new();
        let entries = entries
            .into_iter()
            .filter_map(|entry| self.listed(view, entry, (&mut skipped, &mut buffer)));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        // What was gone when it was looked at was not left out.
        total -= (listed - entries.len()) as u64;
        Ok((Listed { place, entries, total, skipped }, NoChange))
    }
}

impl List {
    /// An entry with all that is told about it; `None` if it is gone by now.
    fn listed(
        &self,
        view: &View<'_>,
        entry: Entry,
        later: (&mut Skipped, &mut Vec<u8>),
    ) -> Option<Result<ListEntry, Error>> {
        let Entry { place, kind, about } = entry;
        let about = match about {
            Some(about) => about,
            None => match self.look_later(view, &place, kind, later) {
                Ok(about) => about?,
                Err(ended) => return Some(Err(ended)),
            },
        };
        let About { meta, link_target, binary } = about;
        Some(Ok(ListEntry { place, kind: meta.kind, size: meta.len, link_target, binary }))
    }

    /// Looks at an entry after the walk.
    fn look_later(
        &self,
        view: &View<'_>,
        place: &Place,
        kind: Kind,
        (skipped, buffer): (&mut Skipped, &mut Vec<u8>),
    ) -> Result<Option<About>, Error> {
        view.check_time()?;
        let (meta, link_target) = match view.found(place) {
            Ok(found) => found,
            Err(ConfineError::NotFound | ConfineError::NotADirectory | ConfineError::Changed) => {
                return Ok(None);
            }
            Err(_) => {
                skipped.unreadable += 1;
                return Ok(None);
            }
        };
        let binary = self.sniff
            && kind == Kind::File
            && view.found_file(place).is_ok_and(|file| is_binary(file, buffer).unwrap_or(false));
        Ok(Some(About { meta, link_target, binary }))
    }
}

/// Whether a file is not text, by its beginning.
fn is_binary(mut file: File, buffer: &mut Vec<u8>) -> std::io::Result<bool> {
    let len = usize::try_from(file.meta().len).unwrap_or(usize::MAX);
    let most = len.saturating_add(1).min(SNIFF_BYTES);
    if buffer.len() < most {
        buffer.resize(most, 0);
    }
    let start = &mut buffer[..most];
    let mut filled = 0;
    while filled < start.len() {
        match file.read(&mut start[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(matches!(sniff(&start[..filled], filled < start.len()), Content::Binary(_)))
}
