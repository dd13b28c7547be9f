//! The files that a search looks at, in the order of `rg --sort path`.
//!
//! A session keeps its last sets. A set is used again only if nothing that it depends on has changed: the request, the
//! policy, and the tree, which has to be watched as a whole.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use pinfold_confine::{
    Candidate, Error as ConfineError, FileId, FileOpener, FilterDecision, IgnoreFiles, IndexMode,
    Kind, LeftOut, Metadata, Place, RememberedFile, Skipped, TreeStamp, Visitor, WalkEntry,
    Workspace,
};

use crate::limits::MAX_LEFT_OUT_NAMES;
use crate::policy::Policy;
use crate::search::content_index::ContentIndex;
use crate::search::coverage::Coverage;
use crate::search::name_table::NameTable;
use crate::view::Shown;
use crate::{Error, View};

/// A file of a set.
#[derive(Clone, Debug)]
pub(crate) struct SetFile {
    pub(crate) file: RememberedFile,
    /// What was derived from its content holds as long as this.
    pub(crate) version: u64,
    pub(crate) len: u64,
    pub(crate) modified: SystemTime,
}

/// The files that a search looks at.
#[derive(Debug)]
pub(crate) struct FileSet {
    pub(crate) files: Vec<SetFile>,
    /// Symlinks, with their paths below the start of the walk.
    pub(crate) links: Vec<(Vec<u8>, RememberedFile)>,
    /// What the walk left out.
    pub(crate) skipped: Skipped,
    pub(crate) left_out: Arc<LeftOutEntries>,
    /// The paths of the files, if they are to be found by name.
    pub(crate) names: Option<Arc<NameTable>>,
    coverage: Mutex<Option<Arc<Coverage>>>,
}

/// Entries that a walk left out, which another walk may show.
#[derive(Debug, Default)]
pub(crate) struct LeftOutEntries {
    /// The names of what is hidden or ignored. `None` if there are too many.
    pub(crate) names: Option<HashSet<Vec<u8>>>,
    /// What may not be seen: the path below the start of the walk.
    pub(crate) withheld: Vec<(Vec<u8>, Kind)>,
}

/// The glob and the type, as they were given, and the ignore files that are obeyed.
pub(crate) type SetFilter = (Option<String>, Option<String>, IgnoreFiles);

/// What a set depends on besides the tree.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    starts: Vec<Place>,
    selection: Selection,
    policy: Weak<Policy>,
}

/// Which files a set has.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Selection {
    /// Those that a search looks at, hidden ones too.
    Searched(SetFilter),
    /// Those that are found by name: no hidden ones.
    Found,
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

/// How many sets are kept: agents search with a few globs. Each takes some hundred bytes for a file.
const MAX_KEPT: usize = 4;

impl FileSetCache {
    fn find(
        &self,
        request: &Request,
        stamps: &[TreeStamp],
        workspace: &Workspace,
        index: &ContentIndex,
    ) -> Option<Arc<FileSet>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let number = kept.iter().position(|kept| kept.request == *request)?;
        // The last that was used is the last to go.
        let mut known = kept.remove(number);
        let same_names = known.stamps.len() == stamps.len()
            && known.stamps.iter().zip(stamps).all(|(one, other)| one.names == other.names);
        if !same_names {
            return None;
        }
        if known.stamps != stamps {
            let changed = known.stamps.iter().zip(&request.starts).map(|(stamp, start)| {
                workspace.changed_files(start, *stamp).map(|mut changed| {
                    changed.sort_unstable();
                    changed
                })
            });
            let changed: Option<Vec<_>> = changed.collect();
            let mut set = Arc::try_unwrap(known.set).unwrap_or_else(|shared| shared.copy());
            if !set.update(changed.as_deref(), index) {
                return None;
            }
            known.set = Arc::new(set);
            known.stamps = stamps.to_vec();
        }
        let set = known.set.clone();
        kept.push(known);
        Some(set)
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
    /// The files below `starts` that the filter admits. `filter` is what the filter was made from.
    pub(crate) fn of(
        view: &View<'_>,
        starts: &[Place],
        filter: SetFilter,
        filter_decision: &(dyn Fn(&Candidate<'_>) -> FilterDecision + Sync),
    ) -> Result<Arc<Self>, Error> {
        let request = Request::new(view, starts, Selection::Searched(filter));
        match Self::remembered(view, &request) {
            (Some(set), _) => Ok(set),
            (None, stamps) => Self::walked(view, request, stamps, filter_decision),
        }
    }

    /// The files below `starts` that are neither hidden nor ignored, if the session remembers them, or if it is worth
    /// to remember them.
    pub(crate) fn found(view: &View<'_>, starts: &[Place]) -> Result<Option<Arc<Self>>, Error> {
        let request = Request::new(view, starts, Selection::Found);
        let file_sets = view.session().file_sets();
        if !file_sets.is_noted(&request) {
            return Ok(None);
        }
        match Self::remembered(view, &request) {
            (Some(set), _) => Ok(Some(set)),
            (None, None) => Ok(None),
            (None, stamps) => {
                Self::walked(view, request, stamps, &|_| FilterDecision::Default).map(Some)
            }
        }
    }

    /// The set as it is remembered, and the stamps of the tree if sets are remembered at all.
    fn remembered(
        view: &View<'_>,
        request: &Request,
    ) -> (Option<Arc<Self>>, Option<Vec<TreeStamp>>) {
        let session = view.session();
        // What the user approved decides, too, which files are shown.
        let remembers = session.settings().index == IndexMode::Auto
            && session.grants().is_empty()
            && view.grants().is_empty();
        if !remembers {
            return (None, None);
        }
        let workspace = session.workspace();
        let stamps = workspace.tree_stamps(&request.starts);
        let index = session.content_index();
        (session.file_sets().find(request, &stamps, workspace, index), Some(stamps))
    }

    fn walked(
        view: &View<'_>,
        request: Request,
        stamps: Option<Vec<TreeStamp>>,
        filter_decision: &(dyn Fn(&Candidate<'_>) -> FilterDecision + Sync),
    ) -> Result<Arc<Self>, Error> {
        let is_found = request.selection == Selection::Found;
        let shown = match &request.selection {
            Selection::Found => Shown::from(false),
            Selection::Searched(filter) => Shown { hidden: true, ignore_files: filter.2 },
        };
        let new_part = || Part { is_found, ..Part::default() };
        let starts = &request.starts;
        let (parts, skipped, all_watched) =
            view.walk_watched(starts, usize::MAX, shown, filter_decision, &|_| true, new_part)?;
        let (mut files, mut links) = (Vec::new(), Vec::new());
        let mut left_out = LeftOutEntries { names: Some(HashSet::new()), withheld: Vec::new() };
        for part in parts {
            files.extend(part.files);
            links.extend(part.links);
            left_out.withheld.extend(part.withheld);
            if let Some(names) = &mut left_out.names {
                names.extend(part.names);
            }
        }
        left_out.names = left_out.names.filter(|names| names.len() < MAX_LEFT_OUT_NAMES);
        // Entries of one directory are in order already, which this kind of sorting uses.
        files.sort_by(|(one, _), (other, _)| one.cmp(other));
        let names = is_found.then(|| {
            // Before the path is the number of the root, and the path is matched below the start of the walk.
            let skipped = |file: &SetFile| {
                let start = starts.iter().find(|start| start.root == file.file.root());
                let path = start.map_or(&[][..], |start| start.path.as_bytes());
                size_of::<usize>() + if path.is_empty() { 0 } else { path.len() + 1 }
            };
            NameTable::new(files.iter().map(|(key, file)| &key[skipped(file)..]))
        });
        let (names, left_out) = (names.map(Arc::new), Arc::new(left_out));
        let files = files.into_iter().map(|(_, file)| file).collect();
        let coverage = Mutex::default();
        let mut set = Self { files, links, skipped, left_out, names, coverage };
        let (session, starts) = (view.session(), &request.starts);
        if session.workspace().has_new_links(starts) {
            set.update(None, session.content_index());
        }
        let set = Arc::new(set);
        if let Some(stamps) = stamps.filter(|_| all_watched) {
            view.session().file_sets().keep(request, stamps, &set);
        }
        Ok(set)
    }

    fn copy(&self) -> Self {
        let coverage = self.coverage.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Self {
            files: self.files.clone(),
            links: self.links.clone(),
            skipped: self.skipped,
            left_out: self.left_out.clone(),
            names: self.names.clone(),
            coverage: Mutex::new(coverage),
        }
    }

    /// Looks at the files again that may have changed; at all of them, if that is not known. False if one cannot be
    /// looked at.
    fn update(&mut self, changed: Option<&[Vec<FileId>]>, index: &ContentIndex) -> bool {
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

impl SetFile {
    fn new(file: RememberedFile, version: u64, meta: &Metadata) -> Self {
        Self { file, version, len: meta.len, modified: meta.modified }
    }
}

/// One thread's part of a set: each file with what its place in the order is compared by.
#[derive(Default)]
struct Part {
    files: Vec<(Vec<u8>, SetFile)>,
    /// Whether the files are to be found by name. What follows is needed only for that.
    is_found: bool,
    links: Vec<(Vec<u8>, RememberedFile)>,
    names: HashSet<Vec<u8>>,
    withheld: Vec<(Vec<u8>, Kind)>,
}

impl Visitor for Part {
    fn visit(&mut self, found: &WalkEntry<'_>) -> Result<(), ConfineError> {
        match found.kind {
            Kind::File => {
                let (version, meta) = found.version_and_meta()?;
                let file = SetFile::new(found.remembered(), version, &meta);
                self.files.push((found.sort_key(), file));
            }
            Kind::Symlink if self.is_found => {
                self.links.push((found.below_start().to_vec(), found.remembered()));
            }
            _ => {}
        }
        Ok(())
    }

    fn leave_out(&mut self, candidate: &Candidate<'_>, why: LeftOut) {
        if !self.is_found {
            return;
        }
        match why {
            LeftOut::NotVisible => {
                self.withheld.push((candidate.below_start().to_vec(), candidate.kind));
            }
            LeftOut::ByName => {
                if self.names.len() < MAX_LEFT_OUT_NAMES && !self.names.contains(candidate.name()) {
                    self.names.insert(candidate.name().to_vec());
                }
            }
        }
    }
}
