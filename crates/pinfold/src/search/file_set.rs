//! The files that a search looks at, in the order of `rg --sort path`.
//!
//! A session keeps its last sets. A set is used again only if nothing that it depends on has changed: the request, the
//! policy, and the tree, which has to be watched as a whole.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use pinfold_confine::{
    Candidate, Error as ConfineError, FileOpener, FilterDecision, IgnoreFiles, IndexMode, Kind,
    Metadata, Place, RememberedFile, Skipped, TreeStamp, Visitor, WalkEntry,
};

use crate::policy::Policy;
use crate::search::content_index::{Coverage, IndexedText};
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
    /// What the walk left out.
    pub(crate) skipped: Skipped,
    coverage: Mutex<Option<Coverage>>,
}

/// The glob and the type, as they were given, and the ignore files that are obeyed.
pub(crate) type SetFilter = (Option<String>, Option<String>, IgnoreFiles);

/// What a set depends on besides the tree.
#[derive(Clone, Debug)]
struct Request {
    starts: Vec<Place>,
    filter: SetFilter,
    policy: Weak<Policy>,
}

impl PartialEq for Request {
    fn eq(&self, other: &Self) -> bool {
        self.starts == other.starts
            && self.filter == other.filter
            && self.policy.ptr_eq(&other.policy)
    }
}

/// The sets of the last searches of a session.
#[derive(Debug, Default)]
pub(crate) struct FileSetCache(Mutex<Vec<Kept>>);

#[derive(Debug)]
struct Kept {
    request: Request,
    stamps: Vec<TreeStamp>,
    set: Arc<FileSet>,
}

/// How many sets are kept: agents search with a few globs. Each takes some fifty bytes for a file.
const MAX_KEPT: usize = 4;

impl FileSetCache {
    fn find(&self, request: &Request, stamps: &[TreeStamp]) -> Option<Arc<FileSet>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = kept.iter().position(|kept| kept.request == *request)?;
        // The last that was used is the last to go.
        let mut known = kept.remove(number);
        let same_names = known.stamps.len() == stamps.len()
            && known.stamps.iter().zip(stamps).all(|(one, other)| one.names == other.names);
        if !same_names {
            return None;
        }
        if known.stamps != stamps {
            known.set = Arc::new(known.set.updated()?);
            known.stamps = stamps.to_vec();
        }
        let set = known.set.clone();
        kept.push(known);
        Some(set)
    }

    fn keep(&self, request: Request, stamps: Vec<TreeStamp>, set: &Arc<FileSet>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.request != request);
        if kept.len() >= MAX_KEPT {
            kept.remove(0);
        }
        kept.push(Kept { request, stamps, set: set.clone() });
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
        let session = view.session();
        let policy = Arc::downgrade(&session.policy());
        let shown = Shown { hidden: true, ignore_files: filter.2 };
        let request = Request { starts: starts.to_vec(), filter, policy };
        // What the user approved decides, too, which files are shown.
        let remembers = session.settings().index == IndexMode::Auto
            && session.grants().is_empty()
            && view.grants().is_empty();
        let stamps = if remembers { session.workspace().tree_stamps(starts) } else { Vec::new() };
        if remembers && let Some(set) = session.file_sets().find(&request, &stamps) {
            return Ok(set);
        }
        let (parts, skipped, all_watched) = view.walk_watched(
            starts,
            usize::MAX,
            shown,
            filter_decision,
            &|_| true,
            Part::default,
        )?;
        let mut files: Vec<_> = parts.into_iter().flat_map(|part| part.files).collect();
        // Entries of one directory are in order already, which this kind of sorting uses.
        files.sort_by(|(one, _), (other, _)| one.cmp(other));
        let files = files.into_iter().map(|(_, file)| file).collect();
        let set = Arc::new(Self { files, skipped, coverage: Mutex::default() });
        if remembers && all_watched {
            session.file_sets().keep(request, stamps, &set);
        }
        Ok(set)
    }

    /// The same files with their metadata as they are now. `None` if one cannot be looked at.
    fn updated(&self) -> Option<Self> {
        let mut opener = FileOpener::default();
        let mut files = self.files.clone();
        for file in &mut files {
            if file.file.version() != file.version {
                let (version, meta) = opener.meta(&file.file).ok()?;
                *file = SetFile::new(file.file.clone(), version, &meta);
            }
        }
        Some(Self { files, skipped: self.skipped, coverage: Mutex::default() })
    }

    /// For each file where its trigrams are, by an index of this generation with these texts.
    pub(crate) fn coverage(
        &self,
        generation: u64,
        texts: &HashMap<u64, IndexedText>,
    ) -> Arc<Vec<Option<IndexedText>>> {
        let mut coverage = self.coverage.lock().unwrap_or_else(PoisonError::into_inner);
        match &*coverage {
            Some((known, covered)) if *known == generation => covered.clone(),
            _ => {
                let covered = self.files.iter().map(|file| texts.get(&file.version).copied());
                let covered: Arc<Vec<_>> = Arc::new(covered.collect());
                *coverage = Some((generation, covered.clone()));
                covered
            }
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
}

impl Visitor for Part {
    fn visit(&mut self, found: &WalkEntry<'_>) -> Result<(), ConfineError> {
        if found.kind != Kind::File {
            return Ok(());
        }
        let (version, meta) = found.version_and_meta()?;
        let file = SetFile::new(found.remembered(), version, &meta);
        self.files.push((found.sort_key(), file));
        Ok(())
    }
}
