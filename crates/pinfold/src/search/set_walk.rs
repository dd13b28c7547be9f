//! Walks the trees of a file set: collects its files, and counts the entries that are left out. A first search has the
//! files searched at the same time.

use std::collections::HashSet;
use std::time::SystemTime;

use pinfold_confine::{
    Candidate, Error as ConfineError, FilterDecision, Kind, Place, SkipReason, Skipped, Visitor,
    WalkEntry,
};

use crate::limits::MAX_LEFT_OUT_NAMES;
use crate::search::FileMatches;
use crate::search::file_set::{Request, Selection, SetFile};
use crate::search::set_link::SetLink;
use crate::search::walk_search::{ThreadSearch, WalkSearch};
use crate::view::WalkOptions;
use crate::{Error, View};

/// Decides which entries a walk for a set shows.
pub(super) type FilterBy<'f> = &'f (dyn Fn(&Candidate<'_>) -> FilterDecision + Sync);

/// The number of a root, and the path of a directory below it.
pub(super) type DirectoryKey = (usize, Vec<u8>);

/// How many entries of a directory a walk left out, not counting directories.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LeftOutCount {
    pub(super) hidden: u64,
    pub(super) ignored: u64,
    pub(super) withheld: u64,
}

/// Walks the trees below `starts` for a set, and searches the files if there is a `search`. The files of the result are
/// sorted. Also returns whether every directory is watched.
pub(super) fn walk(
    view: &View<'_>,
    request: &Request,
    starts: &[Place],
    filter_decision: FilterBy<'_>,
    search: Option<&WalkSearch<'_>>,
) -> Result<(ThreadFiles, Skipped, bool), Error> {
    let by_name = request.selection == Selection::ByName;
    let options = match &request.selection {
        Selection::ByName => WalkOptions::new(filter_decision),
        Selection::Searched(filter) => WalkOptions {
            hidden: true,
            ignore_files: filter.2,
            watch: search.is_none(),
            ..WalkOptions::new(filter_decision)
        },
    };
    let new_part = || ThreadFiles { by_name, ..ThreadFiles::default() };
    let new_visitor = || FileSetVisitor { part: new_part(), search: search.map(ThreadSearch::new) };
    let walked = view.walk(starts, options, new_visitor)?;
    let mut whole = new_part();
    for FileSetVisitor { part, search } in walked.visitors {
        whole.files.extend(part.files);
        whole.links.extend(part.links);
        whole.names.extend(part.names);
        whole.withheld.extend(part.withheld);
        whole.left_out_counts.extend(part.left_out_counts);
        whole.hits.extend(search.into_iter().flat_map(ThreadSearch::into_matches));
    }
    // Each part is sorted, so this only merges them.
    whole.sort();
    Ok((whole, walked.skipped, walked.all_watched))
}

/// The length of the path of a start, with its slash. Globs match the path below it.
pub(super) fn start_len(starts: &[Place], root: usize) -> usize {
    let start = starts.iter().find(|start| start.root == root);
    let path = start.map_or(&[][..], |start| start.path.as_bytes());
    if path.is_empty() { 0 } else { path.len() + 1 }
}

/// A file that a walk for a set has found.
pub(super) struct FoundFile {
    pub(super) file: SetFile,
    /// Whether it was searched during the walk.
    pub(super) was_searched: bool,
}

/// The part of a set that one thread of the walk has found.
#[derive(Default)]
pub(super) struct ThreadFiles {
    pub(super) files: Vec<FoundFile>,
    /// The matches in files that were searched, by the files' versions.
    pub(super) hits: Vec<(u64, (FileMatches, SystemTime))>,
    pub(super) left_out_counts: Vec<(DirectoryKey, LeftOutCount)>,
    /// Whether the set is for finding files by name. The fields after this one are needed only for that.
    by_name: bool,
    pub(super) links: Vec<SetLink>,
    pub(super) names: HashSet<Vec<u8>>,
    pub(super) withheld: Vec<(Vec<u8>, Kind)>,
}

/// Collects the part of one thread.
struct FileSetVisitor<'s> {
    part: ThreadFiles,
    search: Option<ThreadSearch<'s>>,
}

impl FileSetVisitor<'_> {
    fn visit_file(&mut self, found: &WalkEntry<'_>) -> Result<(), ConfineError> {
        let searched = match &mut self.search {
            Some(search) => search.search(found)?,
            None => None,
        };
        let was_searched = searched.is_some();
        let (version, meta) = searched.map_or_else(|| found.version_and_meta(), Ok)?;
        if let Some(search) = self.search.as_ref().filter(|_| !was_searched) {
            search.note_unsearched(meta.len);
        }
        let file = SetFile::new(found.walked_file(), version, &meta);
        self.part.files.push(FoundFile { file, was_searched });
        Ok(())
    }
}

impl Visitor for FileSetVisitor<'_> {
    fn visit(&mut self, found: &WalkEntry<'_>) -> Result<(), ConfineError> {
        match found.kind {
            Kind::File => self.visit_file(found)?,
            Kind::Symlink if self.part.by_name => {
                let path = found.below_start().to_vec();
                self.part.links.push(SetLink::new(path, found.walked_file()));
            }
            _ => {}
        }
        Ok(())
    }

    fn goes_on(&mut self, first_open: &dyn Fn() -> Option<Vec<u8>>) -> bool {
        self.search.as_ref().is_none_or(|search| search.goes_on(first_open))
    }

    fn finish(&mut self) {
        self.part.sort();
    }

    fn skip(&mut self, candidate: &Candidate<'_>, why: SkipReason) {
        self.part.skip(candidate, why);
    }
}

impl ThreadFiles {
    /// Sorts the files by path.
    fn sort(&mut self) {
        self.files.sort_by(|one, other| one.file.file.by_path(&other.file.file));
    }

    fn skip(&mut self, candidate: &Candidate<'_>, why: SkipReason) {
        if candidate.kind != Kind::Directory {
            let count = self.left_out_count(candidate);
            match why {
                SkipReason::Hidden => count.hidden += 1,
                SkipReason::Ignored => count.ignored += 1,
                SkipReason::Withheld => count.withheld += 1,
            }
        }
        if !self.by_name {
            return;
        }
        match why {
            SkipReason::Withheld => {
                self.withheld.push((candidate.below_start().to_vec(), candidate.kind));
            }
            SkipReason::Hidden | SkipReason::Ignored => {
                if self.names.len() < MAX_LEFT_OUT_NAMES && !self.names.contains(candidate.name()) {
                    self.names.insert(candidate.name().to_vec());
                }
            }
        }
    }

    /// The count for the directory of an entry. The entries of a directory are adjacent.
    fn left_out_count(&mut self, candidate: &Candidate<'_>) -> &mut LeftOutCount {
        let directory = parent_of(candidate.below_root());
        let is_last = |((root, path), _): &(DirectoryKey, LeftOutCount)| {
            *root == candidate.root && path == directory
        };
        if !self.left_out_counts.last().is_some_and(is_last) {
            let key = (candidate.root, directory.to_vec());
            self.left_out_counts.push((key, LeftOutCount::default()));
        }
        let last = self.left_out_counts.len() - 1;
        &mut self.left_out_counts[last].1
    }
}

/// The path of the directory of an entry.
pub(super) fn parent_of(path: &[u8]) -> &[u8] {
    memchr::memrchr(b'/', path).map_or(&[], |end| &path[..end])
}
