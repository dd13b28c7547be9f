//! The files of a search, in the order of `rg --sort path`.
//!
//! A session caches its last sets. A set is used again only if nothing that it depends on has changed: the request,
//! the policy, and the tree, which has to be watched as a whole. While there are grants, no set is cached.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use pinfold_confine::{
    FileId, FileOpener, FilterDecision, IgnoreFiles, IndexMode, Kind, Metadata, Place, Skipped,
    TreeStamp, WalkedFile,
};

use crate::limits::MAX_LEFT_OUT_NAMES;
use crate::policy::Policy;
use crate::search::content_index::ContentIndex;
use crate::search::coverage::Coverage;
use crate::search::memo::QueryResults;
use crate::search::name_table::NameTable;
use crate::search::set_changes::SetChanges;
use crate::search::set_link::SetLink;
use crate::search::set_walk::{
    DirectoryKey, FilterBy, FoundFile, LeftOutCount, ThreadFiles, start_len, walk,
};
use crate::search::walk_search::{FirstPage, WalkResults, WalkSearch};
use crate::{Error, View};

/// A file of a set.
#[derive(Clone, Debug)]
pub(crate) struct SetFile {
    pub(crate) file: WalkedFile,
    /// Changes with the content. Data derived from the content is valid for one version.
    pub(crate) version: u64,
    pub(crate) len: u64,
    pub(crate) modified: SystemTime,
}

/// The files of a search.
#[derive(Debug)]
pub(crate) struct FileSet {
    pub(crate) files: Vec<SetFile>,
    /// Symlinks, if the set is for finding files by name.
    pub(crate) links: Vec<SetLink>,
    /// The number of entries that the walk left out.
    pub(crate) skipped: Skipped,
    pub(crate) left_out: Arc<SkippedEntries>,
    /// How many entries of each directory were left out, not counting directories.
    pub(super) left_out_counts: Arc<HashMap<DirectoryKey, LeftOutCount>>,
    /// The paths of the files, if the set is for finding files by name.
    pub(crate) names: Option<Arc<NameTable>>,
    pub(super) coverage: Mutex<Option<Arc<Coverage>>>,
}

/// The files of a search, collected.
pub(crate) enum Collected {
    /// All files, and the results in those that were searched meanwhile.
    All(Arc<FileSet>, WalkResults),
    /// The page is full, and the rest is too much to count.
    First(FirstPage),
}

/// Entries that one walk left out and another may show.
#[derive(Clone, Debug, Default)]
pub(crate) struct SkippedEntries {
    /// The names of hidden or ignored entries. `None` if there are too many.
    pub(crate) names: Option<HashSet<Vec<u8>>>,
    /// Entries that policy withholds, with their paths below the start of the walk.
    pub(crate) withheld: Vec<(Vec<u8>, Kind)>,
}

/// The given glob and type, and the ignore files that are obeyed.
pub(crate) type SetFilter = (Option<String>, Option<String>, IgnoreFiles);

/// Everything that a set depends on, except the tree.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(super) starts: Vec<Place>,
    pub(super) selection: Selection,
    policy: Weak<Policy>,
}

/// Which files a set has.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Selection {
    /// Those of a search by content. They include hidden files.
    Searched(SetFilter),
    /// Those of a search by name. They do not include hidden files.
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

/// The cached sets of a session's last searches.
#[derive(Debug, Default)]
pub(crate) struct FileSetCache {
    kept: Mutex<Vec<CachedSet>>,
    /// Requests that were made once, in watched trees.
    requested_once: Mutex<Vec<Request>>,
}

#[derive(Debug)]
struct CachedSet {
    request: Request,
    stamps: Vec<TreeStamp>,
    set: Arc<FileSet>,
}

/// A cached set.
enum Found {
    Current(Arc<FileSet>),
    Outdated(Arc<FileSet>, Vec<TreeStamp>),
}

/// The maximum number of cached sets. Agents search with a few globs. Each set takes some hundred bytes for a file.
const MAX_KEPT: usize = 4;

impl FileSetCache {
    /// Finds the cached set for a request. If its tree has other stamps now, the set is removed and returned with its
    /// old stamps.
    fn find(&self, request: &Request, now: &[TreeStamp]) -> Option<Found> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let number = kept.iter().position(|kept| kept.request == *request)?;
        let known = kept.remove(number);
        if known.stamps != now {
            return Some(Found::Outdated(known.set, known.stamps));
        }
        let set = known.set.clone();
        // The least recently used set is evicted first.
        kept.push(known);
        Some(Found::Current(set))
    }

    fn keep(&self, request: Request, stamps: Vec<TreeStamp>, set: &Arc<FileSet>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.request != request);
        if kept.len() >= MAX_KEPT {
            kept.remove(0);
        }
        kept.push(CachedSet { request, stamps, set: set.clone() });
    }

    /// Notes that a request was made in a watched tree. From the second time on, a set is worth its cost.
    pub(crate) fn record_first_request(&self, request: Request) {
        let mut requested_once = self.requested_once.lock().unwrap_or_else(PoisonError::into_inner);
        if !requested_once.contains(&request) {
            if requested_once.len() >= MAX_KEPT {
                requested_once.remove(0);
            }
            requested_once.push(request);
        }
    }

    fn was_requested(&self, request: &Request) -> bool {
        self.requested_once.lock().unwrap_or_else(PoisonError::into_inner).contains(request)
    }
}

impl FileSet {
    /// The files below `starts` that the filter admits. `filter` is what `filter_decision` was made from. If they have
    /// to be collected by a walk, `search` searches them meanwhile.
    pub(crate) fn of(
        view: &View<'_>,
        starts: &[Place],
        filter: SetFilter,
        filter_decision: FilterBy<'_>,
        search: Option<&WalkSearch<'_>>,
        memo: Option<&QueryResults>,
    ) -> Result<Collected, Error> {
        let request = Request::new(view, starts, Selection::Searched(filter));
        let stamps = caches_sets(view).then(|| view.session().workspace().tree_stamps(starts));
        if let Some(set) = Self::cached(view, &request, stamps.as_deref(), filter_decision)? {
            return Ok(Collected::All(set, WalkResults::default()));
        }
        let (mut part, skipped, all_watched) =
            walk(view, &request, &request.starts, filter_decision, search)?;
        let results = WalkResults::new(&part.files, std::mem::take(&mut part.hits).into_iter());
        if let Some(search) = search
            && let Some(first) = search.first_page(&part.files, &results, skipped, memo)
        {
            return Ok(Collected::First(first));
        }
        let set = Self::collected(view, request, stamps, part, skipped, all_watched);
        Ok(Collected::All(set, results))
    }

    /// The files below `starts` that are neither hidden nor ignored, if the session has cached them or should cache
    /// them now.
    pub(crate) fn by_name(view: &View<'_>, starts: &[Place]) -> Result<Option<Arc<Self>>, Error> {
        let request = Request::new(view, starts, Selection::ByName);
        if !view.session().file_sets().was_requested(&request) || !caches_sets(view) {
            return Ok(None);
        }
        let stamps = view.session().workspace().tree_stamps(starts);
        let filter_decision: FilterBy<'_> = &|_| FilterDecision::Default;
        if let Some(set) = Self::cached(view, &request, Some(&stamps), filter_decision)? {
            return Ok(Some(set));
        }
        let (part, skipped, all_watched) = walk(view, &request, starts, filter_decision, None)?;
        Ok(Some(Self::collected(view, request, Some(stamps), part, skipped, all_watched)))
    }

    /// The set from the cache, brought up to date. Without stamps, no set is cached.
    fn cached(
        view: &View<'_>,
        request: &Request,
        stamps: Option<&[TreeStamp]>,
        filter_decision: FilterBy<'_>,
    ) -> Result<Option<Arc<Self>>, Error> {
        let file_sets = view.session().file_sets();
        let Some(now) = stamps else { return Ok(None) };
        match file_sets.find(request, now) {
            Some(Found::Current(set)) => Ok(Some(set)),
            Some(Found::Outdated(set, then)) => {
                let changes = SetChanges { view, request, then: &then, filter_decision };
                let set = changes.applied_to(set)?;
                if let Some(set) = &set {
                    file_sets.keep(request.clone(), now.to_vec(), set);
                }
                Ok(set)
            }
            None => Ok(None),
        }
    }

    /// The set of the files that a walk found. It is cached if the whole tree is watched.
    fn collected(
        view: &View<'_>,
        request: Request,
        stamps: Option<Vec<TreeStamp>>,
        part: ThreadFiles,
        skipped: Skipped,
        all_watched: bool,
    ) -> Arc<Self> {
        let by_name = request.selection == Selection::ByName;
        let starts = &request.starts;
        let ThreadFiles { files, links, names, withheld, left_out_counts, .. } = part;
        let names = Some(names).filter(|names| names.len() < MAX_LEFT_OUT_NAMES);
        let left_out = SkippedEntries { names, withheld };
        let left_out_counts = Arc::new(left_out_counts.into_iter().collect());
        let names = by_name.then(|| {
            let mut table = NameTable::default();
            for FoundFile { file, .. } in &files {
                let path = file.file.place().path;
                table.push(&path.as_bytes()[start_len(starts, file.file.root())..]);
            }
            table
        });
        let (names, left_out) = (names.map(Arc::new), Arc::new(left_out));
        let files = files.into_iter().map(|file| file.file).collect();
        let coverage = Mutex::default();
        let mut set = Self { files, links, skipped, left_out, left_out_counts, names, coverage };
        let session = view.session();
        if session.workspace().has_new_links(starts) {
            set.update(None, session.content_index());
        }
        let set = Arc::new(set);
        if let Some(stamps) = stamps.filter(|_| all_watched) {
            session.file_sets().keep(request, stamps, &set);
        }
        set
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

    /// Reads the metadata of the files that may have changed, or of all files if `changed` is `None`. Returns false
    /// if that fails for one of them.
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

    /// The positions of the files' trigrams in an index of this generation.
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

/// Whether the session caches sets. It does not while there are approvals, since these also decide which files are
/// shown.
fn caches_sets(view: &View<'_>) -> bool {
    let session = view.session();
    session.settings().index == IndexMode::Auto
        && session.grants().is_empty()
        && view.grants().is_empty()
}

impl SetFile {
    /// A hash of the file's path.
    pub(crate) fn path_hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.file.place().hash(&mut hasher);
        hasher.finish()
    }

    pub(super) fn new(file: WalkedFile, version: u64, meta: &Metadata) -> Self {
        Self { file, version, len: meta.len, modified: meta.modified }
    }
}
