//! Walks the trees of a file set: collects its files, and counts the entries that are left out.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pinfold_confine::{
    Candidate, Error as ConfineError, FilterDecision, Kind, LeftOut, Place, Skipped, Visitor,
    WalkEntry, WalkedFile,
};

use crate::limits::MAX_LEFT_OUT_NAMES;
use crate::search::file_set::{Request, Selection, SetFile};
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

/// Walks the trees below `starts` for a set. The files of the result are sorted. Returns `None` if they have more
/// than `max_bytes` bytes.
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
    // The entries of one directory are already sorted, which makes a stable sort fast.
    whole.files.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(Some((whole, skipped, all_watched)))
}

/// The length of a file's sort key before its path below the start of the walk.
pub(super) fn key_before_start(starts: &[Place], root: usize) -> usize {
    let start = starts.iter().find(|start| start.root == root);
    let path = start.map_or(&[][..], |start| start.path.as_bytes());
    size_of::<usize>() + if path.is_empty() { 0 } else { path.len() + 1 }
}

/// The part of a set that one thread of the walk has found. Each file has its sort key.
#[derive(Default)]
pub(super) struct Part {
    pub(super) files: Vec<(Vec<u8>, SetFile)>,
    /// The size of the files in all parts, and the maximum size, at which the walk ends.
    limit: Option<(Arc<AtomicU64>, u64)>,
    pub(super) left_out_counts: Vec<(DirectoryKey, LeftOutCount)>,
    /// Whether the set is for finding files by name. The fields after this one are needed only for that.
    by_name: bool,
    pub(super) links: Vec<(Vec<u8>, WalkedFile)>,
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
                let file = SetFile::new(found.walked_file(), version, &meta);
                self.files.push((found.sort_key(), file));
            }
            Kind::Symlink if self.by_name => {
                self.links.push((found.below_start().to_vec(), found.walked_file()));
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
