//! Listing what is in a directory.

use std::io::Read as _;

use pinfold_confine::{
    Candidate, Error as Fence, File, Found, Kind, Opinion, Place, RawPath, Skipped, Visitor,
};
use pinfold_text::{Content, SNIFF_BYTES, sniff};

use crate::glob::Filter;
use crate::limits::LIST_ENTRIES;
use crate::operations::search::by_path;
use crate::{Error, NoChange, Operation, View};

/// Lists the entries of a directory.
#[derive(Clone, Debug)]
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
            most: LIST_ENTRIES,
        }
    }
}

struct Listing {
    entries: Vec<(Place, Kind)>,
}

impl Visitor for Listing {
    fn visit(&mut self, found: &Found<'_>) -> Result<(), Fence> {
        self.entries.push((found.place(), found.kind));
        Ok(())
    }
}

impl Operation for List {
    type Changes = NoChange;
    type Outcome = Listed;

    fn plan(&self, view: &View<'_>) -> Result<(Listed, NoChange), Error> {
        let glob = self.glob.as_ref().map(|glob| Filter::parse("glob", glob)).transpose()?;
        let ignore = match self.ignore.is_empty() {
            true => None,
            false => Some(Filter::new("ignore", &self.ignore)?),
        };
        let place = view.directory(&self.path)?;
        let opinion = |candidate: &Candidate<'_>| match (&ignore, self.which) {
            (Some(ignore), _) if ignore.names(candidate.below_start(), candidate.kind) => {
                Opinion::Leave
            }
            (_, Which::All) => Opinion::Named,
            _ => glob.as_ref().map_or(Opinion::Usual, |glob| glob.spelled(candidate)),
        };
        let hidden = self.which != Which::Visible;
        let new_visitor = || Listing { entries: Vec::new() };
        let start = [place.clone()];
        let from = if place.path.is_root() { 0 } else { place.path.as_bytes().len() + 1 };
        let missed = |candidate: &Candidate<'_>| {
            let below = &candidate.below_root()[from..];
            candidate.kind == Kind::Directory
                || glob.as_ref().is_none_or(|glob| glob.names(below, candidate.kind))
        };
        let (parts, skipped) =
            view.walk(&start, self.depth, hidden, &opinion, &missed, new_visitor)?;
        let mut entries: Vec<_> = parts.into_iter().flat_map(|part| part.entries).collect();
        if let Some(glob) = &glob {
            entries.retain(|(place, kind)| glob.names(&place.path.as_bytes()[from..], *kind));
        }
        let later = |kind| self.order == ListOrder::DirectoriesFirst && kind != Kind::Directory;
        entries.sort_unstable_by(|(one, one_kind), (other, other_kind)| {
            later(*one_kind).cmp(&later(*other_kind)).then_with(|| by_path(one, other))
        });
        let mut total = entries.len() as u64;
        entries.truncate(self.most);
        let listed = entries.len();
        let entries = entries.into_iter().filter_map(|(place, kind)| self.look(view, place, kind));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        // What was gone when it was looked at was not left out.
        total -= (listed - entries.len()) as u64;
        Ok((Listed { place, entries, total, skipped }, NoChange))
    }
}

impl List {
    /// More about an entry; `None` if it is gone by now.
    fn look(&self, view: &View<'_>, place: Place, kind: Kind) -> Option<Result<ListEntry, Error>> {
        if let Err(ended) = view.check_time() {
            return Some(Err(ended));
        }
        let (meta, link_target) = view.found(&place).ok()?;
        let binary = self.sniff
            && kind == Kind::File
            && view.found_file(&place).is_ok_and(|file| is_binary(file).unwrap_or(false));
        Some(Ok(ListEntry { place, kind: meta.kind, size: meta.len, link_target, binary }))
    }
}

/// Whether a file is not text, by its beginning.
fn is_binary(mut file: File) -> std::io::Result<bool> {
    let len = usize::try_from(file.meta().len).unwrap_or(usize::MAX);
    let mut start = vec![0; len.saturating_add(1).min(SNIFF_BYTES)];
    let mut filled = 0;
    while filled < start.len() {
        match file.read(&mut start[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(matches!(sniff(&start[..filled], filled < start.len()), Content::Binary(_)))
}
