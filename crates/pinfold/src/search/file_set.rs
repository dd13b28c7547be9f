//! The files that a search looks at, in the order of `rg --sort path`.
//!
//! A session keeps its last sets. A set is used again only if nothing that it depends on has changed: the request, the
//! policy, and the tree, which has to be watched as a whole.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use pinfold_confine::{
    Candidate, Error as ConfineError, FileId, FileOpener, FilterDecision, IgnoreFiles, IndexMode,
    Kind, LeftOut, Metadata, Place, RememberedFile, Skipped, TreeStamp, Visitor, WalkEntry,
};

use crate::limits::MAX_LEFT_OUT_NAMES;
use crate::policy::Policy;
use crate::search::content_index::ContentIndex;
use crate::search::coverage::Coverage;
use crate::search::name_table::NameTable;
use crate::search::set_changes::SetChanges;
use crate::view::WalkOptions;
use crate::{Error, View};

/// A file of a set.
#[derive(Clone, Debug)]
pub(crate) struct SetFile {
    pub(crate) file: RememberedFile,
    /// Changes with the content: data derived from the content is valid for one version.
    pub(crate) version: u64,
    pub(crate) len: u64,
    pub(crate) modified: SystemTime,
}

impl SetFile {
    /// A hash of the file's path.
    pub(crate) fn path_hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.file.place().hash(&mut hasher);
        hasher.finish()
    }
}

/// The files that a search looks at.
#[derive(Debug)]
pub(crate) struct FileSet {
    pub(crate) files: Vec<SetFile>,
    /// Symlinks, with their paths below the start of the walk.
    pub(crate) links: Vec<(Vec<u8>, RememberedFile)>,
    /// The number of entries that the walk left out.
    pub(crate) skipped: Skipped,
    pub(crate) left_out: Arc<LeftOutEntries>,
    /// How many entries of each directory, other than directories, were left out.
    pub(super) left_out_counts: Arc<HashMap<DirectoryKey, LeftOutCount>>,
    /// The paths of the files, if they are to be found by name.
    pub(crate) names: Option<Arc<NameTable>>,
    pub(super) coverage: Mutex<Option<Arc<Coverage>>>,
}

/// The number of a root, and the path of a directory below it.
pub(super) type DirectoryKey = (usize, Vec<u8>);

/// How many entries of a directory, other than directories, a walk left out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LeftOutCount {
    pub(super) hidden: u64,
    pub(super) ignored: u64,
    pub(super) withheld: u64,
}

/// Entries that a walk left out, which another walk may show.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeftOutEntries {
    /// The names of what is hidden or ignored. `None` if there are too many.
    pub(crate) names: Option<HashSet<Vec<u8>>>,
    /// Entries that policy withholds: the path below the start of the walk.
    pub(crate) withheld: Vec<(Vec<u8>, Kind)>,
}

/// The glob and the type, as they were given, and the ignore files that are obeyed.
pub(crate) type SetFilter = (Option<String>, Option<String>, IgnoreFiles);

/// Everything that a set depends on, besides the tree.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(super) starts: Vec<Place>,
    pub(super) selection: Selection,
    policy: Weak<Policy>,
}

/// Which files a set has.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Selection {
    /// Those that a search looks at, hidden ones too.
    Searched(SetFilter),
    /// Those that are found by name: no hidden ones.
    ByName,
}

impl PartialEq for Request {
    fn eq(&self, other: &Self) -> bool {
        self.starts == other.starts
            && self.selection == other.selection
            && self.policy.ptr_eq(&other.policy)
    }
}

impl Request {
    pub(crate) fn new(view: &View<'_>, starts: &[Place], selection: Selection) -> Self {
        let policy = Arc::downgrade(&view.session().policy());
        Self { starts: starts.to_vec(), selection, policy }
    }
}

/// The sets of the last searches of a session.
#[derive(Debug, Default)]
pub(crate) struct FileSetCache {
    kept: Mutex<Vec<Kept>>,
    /// Requests that were made once, in trees that are watched.
    noted: Mutex<Vec<Request>>,
}

#[derive(Debug)]
struct Kept {
    request: Request,
    stamps: Vec<TreeStamp>,
    set: Arc<FileSet>,
}

/// A set that was kept.
enum Found {
    Current(Arc<FileSet>),
    Outdated(Arc<FileSet>, Vec<TreeStamp>),
}

/// Which entries a walk of a set shows.
pub(super) type FilterBy<'f> = &'f (dyn Fn(&Candidate<'_>) -> FilterDecision + Sync);

/// How many sets are kept: agents search with a few globs. Each takes some hundred bytes for a file.
const MAX_KEPT: usize = 4;

impl FileSetCache {
    /// The set for a request: itself, if its tree has these stamps, else it is taken out, with the stamps that its
    /// tree had.
    fn find(&self, request: &Request, now: &[TreeStamp]) -> Option<Found> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let number = kept.iter().position(|kept| kept.request == *request)?;
        let known = kept.remove(number);
        if known.stamps != now {
            return Some(Found::Outdated(known.set, known.stamps));
        }
        let set = known.set.clone();
        // The last that was used is the last to go.
        kept.push(known);
        Some(Found::Current(set))
    }

    fn keep(&self, request: Request, stamps: Vec<TreeStamp>, set: &Arc<FileSet>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.request != request);
        if kept.len() >= MAX_KEPT {
            kept.remove(0);
        }
        kept.push(Kept { request, stamps, set: set.clone() });
    }

    /// Notes that a request was made in a tree that is watched: the next time a set is worth its cost.
    pub(crate) fn note(&self, request: Request) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if !noted.contains(&request) {
            if noted.len() >= MAX_KEPT {
                noted.remove(0);
            }
            noted.push(request);
        }
    }

    fn is_noted(&self, request: &Request) -> bool {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).contains(request)
    }
}

impl FileSet {
    /// The files below `starts` that the filter admits. `filter` is what the filter was made from. `None` if a walk
    /// finds files with more bytes than this.
    pub(crate) fn of_at_most(
        view: &View<'_>,
        starts: &[Place],
        filter: SetFilter,
        filter_decision: FilterBy<'_>,
        max_bytes: Option<u64>,
    ) -> Result<Option<Arc<Self>>, Error> {
        let request = Request::new(view, starts, Selection::Searched(filter));
        let stamps = remembers(view).then(|| view.session().workspace().tree_stamps(starts));
        Self::current(view, request, stamps, filter_decision, max_bytes)
    }

    /// The files below `starts` that are neither hidden nor ignored, if the session remembers them, or if it is worth
    /// to remember them.
    pub(crate) fn by_name(view: &View<'_>, starts: &[Place]) -> Result<Option<Arc<Self>>, Error> {
        let request = Request::new(view, starts, Selection::ByName);
        if !view.session().file_sets().is_noted(&request) || !remembers(view) {
            return Ok(None);
        }
        let stamps = view.session().workspace().tree_stamps(starts);
        Self::current(view, request, Some(stamps), &|_| FilterDecision::Default, None)
    }

    /// The set as it is remembered, brought up to date, or from a walk. There are no stamps if sets are not remembered.
    fn current(
        view: &View<'_>,
        request: Request,
        stamps: Option<Vec<TreeStamp>>,
        filter_decision: FilterBy<'_>,
        max_bytes: Option<u64>,
    ) -> Result<Option<Arc<Self>>, Error> {
        let file_sets = view.session().file_sets();
        let known = stamps.as_ref().and_then(|now| Some((file_sets.find(&request, now)?, now)));
        match known {
            Some((Found::Current(set), _)) => return Ok(Some(set)),
            Some((Found::Outdated(set, then), now)) => {
                let changes = SetChanges { view, request: &request, then: &then, filter_decision };
                if let Some(set) = changes.brought_into(set)? {
                    file_sets.keep(request, now.clone(), &set);
                    return Ok(Some(set));
                }
            }
            None => {}
        }
        Self::walked(view, request, stamps, filter_decision, max_bytes)
    }

    fn walked(
        view: &View<'_>,
        request: Request,
        stamps: Option<Vec<TreeStamp>>,
        filter_decision: FilterBy<'_>,
        max_bytes: Option<u64>,
    ) -> Result<Option<Arc<Self>>, Error> {
        let by_name = request.selection == Selection::ByName;
        let starts = &request.starts;
        let walked = walk(view, &request, starts, filter_decision, max_bytes)?;
        let Some((part, skipped, all_watched)) = walked else { return Ok(None) };
        let Part { files, links, names, withheld, left_out_counts, .. } = part;
        let names = Some(names).filter(|names| names.len() < MAX_LEFT_OUT_NAMES);
        let left_out = LeftOutEntries { names, withheld };
        let left_out_counts = Arc::new(left_out_counts.into_iter().collect());
        let names = by_name.then(|| {
            // Before the path is the number of the root, and the path is matched below the start of the walk.
            let skipped = |file: &SetFile| key_before_start(starts, file.file.root());
            NameTable::new(files.iter().map(|(key, file)| &key[skipped(file)..]))
        });
        let (names, left_out) = (names.map(Arc::new), Arc::new(left_out));
        let files = files.into_iter().map(|(_, file)| file).collect();
        let coverage = Mutex::default();
        let mut set = Self { files, links, skipped, left_out, left_out_counts, names, coverage };
        let (session, starts) = (view.session(), &request.starts);
        if session.workspace().has_new_links(starts) {
            set.update(None, session.content_index());
        }
        let set = Arc::new(set);
        if let Some(stamps) = stamps.filter(|_| all_watched) {
            view.session().file_sets().keep(request, stamps, &set);
        }
        Ok(Some(set))
    }

    pub(super) fn copy(&self) -> Self {
        let coverage = self.coverage.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Self {
            files: self.files.clone(),
            links: self.links.clone(),
            skipped: self.skipped,
            left_out: self.left_out.clone(),
            left_out_counts: self.left_out_counts.clone(),
            names: self.names.clone(),
            coverage: Mutex::new(coverage),
        }
    }

    /// Looks at the files again that may have changed; at all of them, if that is not known. False if one cannot be
    /// looked at.
    pub(super) fn update(&mut self, changed: Option<&[Vec<FileId>]>, index: &ContentIndex) -> bool {
        let mut opener = FileOpener::default();
        let mut outdated = Vec::new();
        for (file, number) in self.files.iter_mut().zip(0..) {
            let id = file.file.id();
            let is_known = changed
                .is_some_and(|lists| lists.iter().all(|list| list.binary_search(&id).is_err()));
            if !is_known && file.file.version() != file.version {
                let Ok((version, meta)) = opener.meta(&file.file) else { return false };
                outdated.push((number, file.version));
                *file = SetFile::new(file.file.clone(), version, &meta);
            }
        }
        let coverage = self.coverage.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(coverage) = coverage {
            index.forget(Arc::make_mut(coverage), &outdated);
        }
        true
    }

    /// Where the trigrams of the files are, by an index of this generation.
    pub(crate) fn coverage(
        &self,
        generation: u64,
        new: impl FnOnce() -> Coverage,
    ) -> Arc<Coverage> {
        let mut coverage = self.coverage.lock().unwrap_or_else(PoisonError::into_inner);
        match &*coverage {
            Some(known) if known.generation == generation => known.clone(),
            _ => coverage.insert(Arc::new(new())).clone(),
        }
    }
}

/// Whether the session remembers sets: what the user approved decides, too, which files are shown.
fn remembers(view: &View<'_>) -> bool {
    let session = view.session();
    session.settings().index == IndexMode::Auto
        && session.grants().is_empty()
        && view.grants().is_empty()
}

/// Walks for a set. The files of the part are in order. `None` if the files have more bytes than this.
pub(super) fn walk(
    view: &View<'_>,
    request: &Request,
    starts: &[Place],
    filter_decision: FilterBy<'_>,
    max_bytes: Option<u64>,
) -> Result<Option<(Part, Skipped, bool)>, Error> {
    let by_name = request.selection == Selection::ByName;
    let options = match &request.selection {
        Selection::ByName => WalkOptions::from(false),
        Selection::Searched(filter) => WalkOptions { hidden: true, ignore_files: filter.2 },
    };
    let found_bytes = Arc::new(AtomicU64::new(0));
    let limit = max_bytes.map(|max_bytes| (found_bytes.clone(), max_bytes));
    let new_part = || Part { by_name, limit: limit.clone(), ..Part::default() };
    let walked =
        view.walk_watched(starts, usize::MAX, options, filter_decision, &|_| true, new_part);
    if max_bytes.is_some_and(|max_bytes| found_bytes.load(Ordering::Relaxed) > max_bytes) {
        return Ok(None);
    }
    let (parts, skipped, all_watched) = walked?;
    let mut whole = new_part();
    for part in parts {
        whole.files.extend(part.files);
        whole.links.extend(part.links);
        whole.names.extend(part.names);
        whole.withheld.extend(part.withheld);
        whole.left_out_counts.extend(part.left_out_counts);
    }
    // Entries of one directory are in order already, which this kind of sorting uses.
    whole.files.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(Some((whole, skipped, all_watched)))
}

/// How many bytes of a file's sort key come before its path below the start of the walk.
pub(super) fn key_before_start(starts: &[Place], root: usize) -> usize {
    let start = starts.iter().find(|start| start.root == root);
    let path = start.map_or(&[][..], |start| start.path.as_bytes());
    size_of::<usize>() + if path.is_empty() { 0 } else { path.len() + 1 }
}

impl SetFile {
    fn new(file: RememberedFile, version: u64, meta: &Metadata) -> Self {
        Self { file, version, len: meta.len, modified: meta.modified }
    }
}

/// One thread's part of a set: each file with what its place in the order is compared by.
#[derive(Default)]
pub(super) struct Part {
    pub(super) files: Vec<(Vec<u8>, SetFile)>,
    /// How many bytes the files of all parts have, and how many end the walk.
    limit: Option<(Arc<AtomicU64>, u64)>,
    pub(super) left_out_counts: Vec<(DirectoryKey, LeftOutCount)>,
    /// Whether the files are to be found by name. What follows is needed only for that.
    by_name: bool,
    pub(super) links: Vec<(Vec<u8>, RememberedFile)>,
    pub(super) names: HashSet<Vec<u8>>,
    pub(super) withheld: Vec<(Vec<u8>, Kind)>,
}

impl Visitor for Part {
    fn visit(&mut self, found: &WalkEntry<'_>) -> Result<(), ConfineError> {
        match found.kind {
            Kind::File => {
                let (version, meta) = found.version_and_meta()?;
                if let Some((bytes, max_bytes)) = &self.limit
                    && bytes.fetch_add(meta.len, Ordering::Relaxed) + meta.len > *max_bytes
                {
                    return Err(ConfineError::TimedOut);
                }
                let file = SetFile::new(found.remembered(), version, &meta);
                self.files.push((found.sort_key(), file));
            }
            Kind::Symlink if self.by_name => {
                self.links.push((found.below_start().to_vec(), found.remembered()));
            }
            _ => {}
        }
        Ok(())
    }

    fn leave_out(&mut self, candidate: &Candidate<'_>, why: LeftOut) {
        if candidate.kind != Kind::Directory {
            let count = self.left_out_count(candidate);
            match why {
                LeftOut::Hidden => count.hidden += 1,
                LeftOut::Ignored => count.ignored += 1,
                LeftOut::NotVisible => count.withheld += 1,
            }
        }
        if !self.by_name {
            return;
        }
        match why {
            LeftOut::NotVisible => {
                self.withheld.push((candidate.below_start().to_vec(), candidate.kind));
            }
            LeftOut::Hidden | LeftOut::Ignored => {
                if self.names.len() < MAX_LEFT_OUT_NAMES && !self.names.contains(candidate.name()) {
                    self.names.insert(candidate.name().to_vec());
                }
            }
        }
    }
}

impl Part {
    /// The count for the directory of an entry. The entries of one directory follow each other.
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

/// The path of the directory that an entry is in.
pub(super) fn parent_of(path: &[u8]) -> &[u8] {
    memchr::memrchr(b'/', path).map_or(&[], |end| &path[..end])
}
