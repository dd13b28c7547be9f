//! `Find`: finds files by their names.

use std::cmp::{Ordering, Reverse};
use std::time::SystemTime;

use pinfold_confine::{
    Candidate, Error as ConfineError, FilterDecision, IgnoreFiles, Kind, Metadata, Place, RawPath,
    Skipped, Visitor, WalkEntry,
};

use crate::glob::{PathGlob, Pattern};
use crate::limits::DEFAULT_MAX_GLOB_FILES;
use crate::search::{FileSet, Request, Selection, SetFile};
use crate::view::{WalkOptions, Walked};
use crate::{Error, NoChange, Operation, View};

/// Finds files below a directory.
///
/// ```
/// use pinfold::operations::{Find, FindOrder, Write};
/// use pinfold::Session;
///
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// let session = Session::open([workspace])?;
/// session.perform(&Write::new("src/main.rs", ""))?;
/// session.perform(&Write::new("src/tools/read.rs", ""))?;
/// let done = session.perform(&Find::new("**/*.rs").with_order(FindOrder::Path))?;
/// let paths: Vec<_> = done.outcome.files.iter().map(|file| session.relative(&file.place)).collect();
/// assert_eq!(paths, ["src/main.rs", "src/tools/read.rs"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Find {
    /// The directory; all roots if `None`.
    pub path: Option<RawPath>,
    /// A glob for paths below the directory. `None` finds all files of the directory itself.
    pub pattern: Option<String>,
    /// Whether directories are found, too.
    pub directories: bool,
    /// Whether the pattern ignores case.
    pub ignore_case: bool,
    /// Whether hidden and ignored entries are found, even if the pattern does not name them.
    pub all: bool,
    /// Whether hidden entries are found.
    pub hidden: bool,
    /// Which ignore files are obeyed.
    pub ignore_files: IgnoreFiles,
    /// Globs for paths below the directory. A matching entry is left out, with everything below it.
    pub exclude: Vec<String>,
    /// The order of the files.
    pub order: FindOrder,
    /// The maximum number of files.
    pub max_files: usize,
}

/// The order of files that were found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FindOrder {
    /// By modification time, the newest first, then by path.
    NewestFirst,
    /// By path.
    Path,
}

/// The files that match.
#[derive(Debug)]
#[non_exhaustive]
pub struct FoundFiles {
    /// The files.
    pub files: Vec<FoundFile>,
    /// The directories in the same directory, by path, if there is no pattern.
    pub directories: Vec<Place>,
    /// The total number of files that match.
    pub total: u64,
    /// How many entries were skipped, and why.
    pub skipped: Skipped,
}

/// A file that was found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FoundFile {
    /// The place of the file or symlink.
    pub place: Place,
    /// The size in bytes. For a symlink, it is the size of its target.
    pub size: u64,
    /// The modification time.
    pub modified: SystemTime,
}

impl Find {
    /// Finds files in all roots, the newest first.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self { pattern: Some(pattern.into()), ..Self::default() }
    }

    /// Finds the files of a directory itself, the newest first.
    pub fn in_directory(path: impl Into<RawPath>) -> Self {
        Self { path: Some(path.into()), ..Self::default() }
    }

    /// Where the walk starts: the path, joined with the part of the pattern before its first wildcard.
    fn start(&self, pattern: Option<&Pattern>) -> Option<RawPath> {
        let directory = pattern.map(|pattern| pattern.directory.as_str()).unwrap_or_default();
        match &self.path {
            _ if directory.starts_with('/') => Some(directory.into()),
            None if directory.is_empty() => None,
            None => Some(directory.into()),
            Some(path) if directory.is_empty() => Some(path.clone()),
            // An error names the path as the caller gave it, without this dot.
            Some(path) if path.as_str() == "." => Some(directory.into()),
            Some(path) => Some(format!("{}/{directory}", path.as_str()).into()),
        }
    }
}

impl Default for Find {
    fn default() -> Self {
        Self {
            path: None,
            pattern: None,
            directories: false,
            ignore_case: false,
            all: false,
            hidden: false,
            ignore_files: IgnoreFiles::STANDARD,
            exclude: Vec::new(),
            order: FindOrder::NewestFirst,
            max_files: DEFAULT_MAX_GLOB_FILES,
        }
    }
}

builder!(Find {
    with_path(path: Option<RawPath>),
    with_pattern(pattern: Option<String>),
    with_directories(directories: bool),
    with_ignore_case(ignore_case: bool),
    with_all(all: bool),
    with_hidden(hidden: bool),
    with_ignore_files(ignore_files: IgnoreFiles),
    with_exclude(exclude: Vec<String>),
    with_order(order: FindOrder),
    with_max_files(max_files: usize),
});

struct FindVisitor<'f> {
    find: &'f Find,
    pattern: Option<&'f Pattern>,
    view: &'f View<'f>,
    /// The files, or the first ones if there are many more than are returned.
    files: Vec<FoundFile>,
    /// Whether the last file that may be returned is in its place.
    has_last: bool,
    total: u64,
    directories: Vec<Place>,
    withheld: u64,
}

impl FindVisitor<'_> {
    fn add(&mut self, file: FoundFile) {
        let max_files = self.find.max_files;
        self.total += 1;
        if self.has_last && self.find.compare(&file, &self.files[max_files - 1]).is_gt() {
            return;
        }
        self.files.push(file);
        if self.files.len() / 2 > max_files {
            self.find.keep_first(&mut self.files);
            self.has_last = max_files > 0;
        }
    }
}

impl Visitor for FindVisitor<'_> {
    fn visit(&mut self, found: &WalkEntry<'_>) -> Result<(), ConfineError> {
        if found.kind == Kind::Directory && self.pattern.is_none() {
            self.directories.push(found.place());
        }
        let is_found = match found.kind {
            Kind::File | Kind::Symlink => true,
            Kind::Directory => self.find.directories,
            Kind::Fifo | Kind::Socket | Kind::Device => false,
        };
        if !is_found || !self.pattern.is_none_or(|pattern| pattern.fits(found.below_start())) {
            return Ok(());
        }
        let meta: Metadata = match found.kind {
            Kind::Symlink => match found.linked_file() {
                // Policy decides by the real path of the target.
                Ok((place, _)) if !self.view.shows_place(&place, false) => {
                    self.withheld += 1;
                    return Ok(());
                }
                Ok((_, file)) => *file.meta(),
                Err(ConfineError::IsDirectory) if self.find.directories => found.meta()?,
                // The link points outside, to a directory, or to nothing.
                Err(_) => return Ok(()),
            },
            _ => found.meta()?,
        };
        if meta.kind == Kind::File || self.find.directories {
            let (size, modified) = (meta.len, meta.modified);
            self.add(FoundFile { place: found.place(), size, modified });
        }
        Ok(())
    }
}

impl Operation for Find {
    type Changes = NoChange;
    type Outcome = FoundFiles;

    fn plan(&self, view: &View<'_>) -> Result<(FoundFiles, NoChange), Error> {
        let parse = |text: &String| Pattern::parse(text, self.ignore_case);
        let pattern = self.pattern.as_ref().map(parse).transpose()?;
        let pattern = pattern.as_ref();
        let exclude = self.exclude.iter().map(|glob| PathGlob::parse(glob));
        let exclude = exclude.collect::<Result<Vec<_>, _>>()?;
        let directory = self.path.as_ref().map(|path| view.directory(path)).transpose()?;
        let above = directory.map_or(0, |place| place.path.as_bytes().len());
        let start = self.start(pattern);
        let starts = match view.walk_starts(start.as_ref()) {
            // The path exists, so the directory in the pattern does not. Nothing matches.
            Err(Error::DirectoryNotFound { .. } | Error::NotADirectory { .. }) => Vec::new(),
            other => other?,
        };
        let filter_decision = |candidate: &Candidate<'_>| {
            let below = candidate.below_root().get(above..).unwrap_or_default();
            let below = below.strip_prefix(b"/").unwrap_or(below);
            if exclude.iter().any(|glob| glob.fits(below)) {
                return FilterDecision::Exclude;
            }
            if self.all {
                return FilterDecision::Force;
            }
            pattern.map_or(FilterDecision::Default, |pattern| pattern.filter_decision(candidate))
        };
        let is_plain = !self.all
            && !self.directories
            && !self.hidden
            && self.ignore_files == IgnoreFiles::STANDARD
            && exclude.is_empty();
        let deep = pattern.filter(|pattern| is_plain && pattern.depth.is_none());
        if let Some(pattern) = deep
            && let Some(set) = FileSet::by_name(view, &starts)?
            && let Some(found) = self.find_in(&set, pattern, view)
        {
            return Ok((found, NoChange));
        }
        let depth = pattern.map_or(Some(1), |pattern| pattern.depth).unwrap_or(usize::MAX);
        let new_visitor = || FindVisitor {
            find: self,
            pattern,
            view,
            files: Vec::new(),
            has_last: false,
            total: 0,
            directories: Vec::new(),
            withheld: 0,
        };
        let counts_withheld = |candidate: &Candidate<'_>| {
            candidate.kind == Kind::Directory
                || pattern.is_none_or(|pattern| pattern.fits(candidate.below_start()))
        };
        let is_first = deep.is_some() && view.is_first_walk(&starts);
        let hidden = self.all || self.hidden;
        let options = WalkOptions {
            depth,
            hidden,
            ignore_files: self.ignore_files,
            watch: !is_first,
            filter: &filter_decision,
            counts_withheld: &counts_withheld,
        };
        let walked = view.walk(&starts, options, new_visitor);
        let Walked { visitors, mut skipped, all_watched } = match walked {
            Err(Error::DirectoryUnreadable { path }) => {
                return Err(Error::DirectoryUnreadable { path: start.unwrap_or(path) });
            }
            other => other?,
        };
        if is_first {
            view.watch_later(&starts);
        }
        if all_watched && deep.is_some() {
            view.session().file_sets().record_first_request(Request::new(
                view,
                &starts,
                Selection::ByName,
            ));
        }
        skipped.withheld += visitors.iter().map(|visitor| visitor.withheld).sum::<u64>();
        let (mut files, mut directories, mut total) = (Vec::new(), Vec::new(), 0);
        for visitor in visitors {
            total += visitor.total;
            files.extend(visitor.files);
            directories.extend(visitor.directories);
        }
        directories.sort_unstable_by(Place::by_path);
        directories.truncate(self.max_files);
        self.sort(&mut files);
        Ok((FoundFiles { files, directories, total, skipped }, NoChange))
    }
}

impl Find {
    /// Compares two files in the order in which they are returned.
    fn compare(&self, one: &FoundFile, other: &FoundFile) -> Ordering {
        let newer = match self.order {
            FindOrder::NewestFirst => other.modified.cmp(&one.modified),
            FindOrder::Path => Ordering::Equal,
        };
        newer.then_with(|| one.place.by_path(&other.place))
    }

    /// Keeps as many files as are returned, the last one in its place.
    fn keep_first(&self, files: &mut Vec<FoundFile>) {
        let last = self.max_files.saturating_sub(1);
        files.select_nth_unstable_by(last, |one, other| self.compare(one, other));
        files.truncate(self.max_files);
    }

    /// Sorts the files, and keeps as many as are returned.
    fn sort(&self, files: &mut Vec<FoundFile>) {
        if files.len() / 2 > self.max_files {
            // Only the returned files have to be sorted.
            self.keep_first(files);
        }
        // Most files of a set are already sorted, which makes a stable sort fast.
        files.sort_by(|one, other| self.compare(one, other));
        files.truncate(self.max_files);
    }

    /// Finds files in a set. Returns `None` if a walk for this pattern would show files that are not in the set.
    fn find_in(&self, set: &FileSet, pattern: &Pattern, view: &View<'_>) -> Option<FoundFiles> {
        let left_out = set.left_out.names.as_ref()?;
        if left_out.iter().any(|name| pattern.includes_name(name)) {
            return None;
        }
        let found = set.names.as_ref()?.matching(&pattern.name_queries, |path| pattern.fits(path));
        let found_files = found.len() as u64;
        let mut total = found_files;
        let file = |number: u32| {
            let SetFile { file, len, modified, .. } = &set.files[number as usize];
            FoundFile { place: file.place(), size: *len, modified: *modified }
        };
        // The files of a set are sorted by path, so files with the same time stay in that order.
        let mut files: Vec<_> = match self.order {
            FindOrder::Path => found.into_iter().take(self.max_files).map(file).collect(),
            FindOrder::NewestFirst => {
                let modified = |number: u32| Reverse(set.files[number as usize].modified);
                let found = found.into_iter().map(|number| (modified(number), number));
                first_sorted(found, self.max_files)
                    .into_iter()
                    .map(|(_, number)| file(number))
                    .collect()
            }
        };
        let mut skipped = set.skipped;
        let is_missed =
            |(path, kind): &&(Vec<u8>, Kind)| *kind == Kind::Directory || pattern.fits(path);
        skipped.withheld = set.left_out.withheld.iter().filter(is_missed).count() as u64;
        let workspace = view.session().workspace();
        for link in set.links.iter().filter(|link| pattern.fits(&link.path)) {
            let place = link.link.place();
            if let Some(SetFile { len, modified, .. }) = link.target_in(set, workspace) {
                files.push(FoundFile { place, size: *len, modified: *modified });
                total += 1;
                continue;
            }
            match workspace.linked_to(&link.link) {
                // Policy decides by the real path of the target.
                Ok((target, _)) if !view.shows_place(&target, false) => skipped.withheld += 1,
                Ok((_, file)) => {
                    let (size, modified) = (file.meta().len, file.meta().modified);
                    files.push(FoundFile { place, size, modified });
                    total += 1;
                }
                // The link points outside, to a directory, or to nothing.
                Err(_) => {}
            }
        }
        // Without links, the files are already sorted.
        if total > found_files {
            self.sort(&mut files);
        }
        Some(FoundFiles { files, directories: Vec::new(), total, skipped })
    }
}

/// The first items in their order, sorted. Most items are only compared with the last one that is kept so far.
fn first_sorted<T: Ord>(items: impl Iterator<Item = T>, max_items: usize) -> Vec<T> {
    let mut first: Vec<T> = Vec::new();
    // Whether the last of the first `max_items` is in its place.
    let mut has_last = false;
    for item in items {
        if !has_last || item < first[max_items - 1] {
            first.push(item);
        }
        if first.len() >= max_items.saturating_mul(2).max(1) {
            first.select_nth_unstable(max_items.max(1) - 1);
            first.truncate(max_items);
            has_last = max_items > 0;
        }
    }
    first.sort_unstable();
    first.truncate(max_items);
    first
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::first_sorted;

    proptest! {
        #[test]
        fn the_first_items_are_those_of_a_full_sort(
            items in prop::collection::vec(0_u32..50, 0..100),
            max_items in 0_usize..60,
        ) {
            let mut all = items.clone();
            all.sort_unstable();
            all.truncate(max_items);
            prop_assert_eq!(first_sorted(items.into_iter(), max_items), all);
        }
    }
}
