//! `Tree`: lists a directory and everything below it, level by level.
//!
//! Levels are listed from the top, so a limit leaves out the deepest entries. Symlinks are listed but not followed.

use pinfold_confine::{
    Candidate, Error as ConfineError, FilterDecision, Kind, Place, RawPath, Skipped, Visitor,
    WalkEntry,
};

use crate::glob::PathGlob;
use crate::limits::MAX_LIST_ENTRIES;
use crate::view::WalkOptions;
use crate::{Error, NoChange, Operation, View};

/// Lists a directory and all that is below it, hidden and ignored entries too.
///
/// ```
/// use pinfold::operations::{Tree, Write};
/// use pinfold::Session;
///
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// let session = Session::open([workspace])?;
/// session.perform(&Write::new("src/tools/read.rs", ""))?;
/// session.perform(&Write::new("README.md", ""))?;
/// let tree = session.perform(&Tree::new(".").with_limit(3))?.outcome;
/// let paths: Vec<_> = tree.entries.iter().map(|entry| session.relative(&entry.place)).collect();
/// assert_eq!(paths, ["README.md", "src", "src/tools"]);
/// // The limit was reached before this directory was listed.
/// assert!(!tree.entries[2].listed.is_complete());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tree {
    /// The directory.
    pub path: RawPath,
    /// The number of levels. 1 lists the directory's own entries.
    pub depth: usize,
    /// Globs for paths below the directory. A matching entry is left out, with everything below it.
    pub exclude: Vec<String>,
    /// The maximum number of entries.
    pub limit: usize,
}

/// The entries of a tree.
#[derive(Debug)]
#[non_exhaustive]
pub struct TreeEntries {
    /// The directory's place.
    pub place: Place,
    /// How much of the directory itself is listed.
    pub listed: ListedPart,
    /// The entries below it, by path.
    pub entries: Vec<TreeEntry>,
    /// Whether entries were left out because of the limit.
    pub truncated: bool,
    /// The directories that were not listed.
    pub skipped: Skipped,
}

/// An entry of a tree.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TreeEntry {
    /// Its place.
    pub place: Place,
    /// Its type.
    pub kind: Kind,
    /// How much of it is listed, if it is a directory.
    pub listed: ListedPart,
}

/// How much of a directory is listed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ListedPart {
    /// Nothing: the limit or the depth was reached before it, or it cannot be read.
    None,
    /// Its first entries.
    Some,
    /// All its entries.
    All,
}

impl ListedPart {
    /// Whether all entries are listed.
    pub fn is_complete(self) -> bool {
        self == Self::All
    }
}

impl Tree {
    /// Lists all levels of a directory.
    pub fn new(path: impl Into<RawPath>) -> Self {
        Self { path: path.into(), depth: usize::MAX, exclude: Vec::new(), limit: MAX_LIST_ENTRIES }
    }
}

builder!(Tree {
    with_depth(depth: usize),
    with_exclude(exclude: Vec<String>),
    with_limit(limit: usize),
});

/// The number of directories that one walk opens. More would list too many entries beyond the limit.
const BATCH: usize = 256;

/// The entries that one thread of a walk has found.
struct Found(Vec<TreeEntry>);

impl Visitor for Found {
    fn visit(&mut self, found: &WalkEntry<'_>) -> Result<(), ConfineError> {
        let (place, kind) = (found.place(), found.kind);
        self.0.push(TreeEntry { place, kind, listed: ListedPart::None });
        Ok(())
    }
}

impl Operation for Tree {
    type Changes = NoChange;
    type Outcome = TreeEntries;

    fn plan(&self, view: &View<'_>) -> Result<(TreeEntries, NoChange), Error> {
        let exclude = self.exclude.iter().map(|glob| PathGlob::parse(glob));
        let exclude = exclude.collect::<Result<Vec<_>, _>>()?;
        let place = view.directory(&self.path)?;
        let mut tree = TreeEntries {
            listed: ListedPart::None,
            entries: Vec::new(),
            truncated: false,
            skipped: Skipped::default(),
            place,
        };
        // The directories of one level, with their indexes in the entries. The start has no index.
        let mut level = vec![(tree.place.clone(), None)];
        for depth in 1..=self.depth {
            let first_of_next = tree.entries.len();
            for batch in level.chunks(BATCH) {
                self.list_batch(view, &exclude, batch, depth, &mut tree)?;
            }
            let next = tree.entries.iter().enumerate().skip(first_of_next);
            let next = next.filter(|(_, entry)| entry.kind == Kind::Directory);
            level = next.map(|(index, entry)| (entry.place.clone(), Some(index))).collect();
            if level.is_empty() {
                break;
            }
        }
        tree.entries.sort_unstable_by(|one, other| one.place.by_path(&other.place));
        Ok((tree, NoChange))
    }
}

impl Tree {
    /// Lists some directories of one level, as far as the limit allows.
    fn list_batch(
        &self,
        view: &View<'_>,
        exclude: &[PathGlob],
        batch: &[(Place, Option<usize>)],
        depth: usize,
        tree: &mut TreeEntries,
    ) -> Result<(), Error> {
        if tree.entries.len() >= self.limit && depth > 1 {
            tree.truncated = true;
            return Ok(());
        }
        let start = tree.place.path.as_bytes().len();
        let filter_decision = |candidate: &Candidate<'_>| {
            let below = &candidate.below_root()[start..];
            let below = below.strip_prefix(b"/").unwrap_or(below);
            if exclude.iter().any(|glob| glob.fits(below)) {
                FilterDecision::Exclude
            } else {
                FilterDecision::Force
            }
        };
        let starts: Vec<_> = batch.iter().map(|(place, _)| place.clone()).collect();
        let new_visitor = || Found(Vec::new());
        let options = WalkOptions { depth: 1, hidden: true, ..WalkOptions::new(&filter_decision) };
        let walked = match view.walk(&starts, options, new_visitor) {
            Err(Error::DirectoryUnreadable { .. }) if depth == 1 => {
                return Err(Error::DirectoryUnreadable { path: self.path.clone() });
            }
            // The directory was alone in its batch.
            Err(Error::DirectoryUnreadable { .. }) => {
                tree.skipped.unreadable += 1;
                return Ok(());
            }
            walked => walked?,
        };
        tree.skipped.add(&walked.skipped);
        let mut found: Vec<_> = walked.visitors.into_iter().flat_map(|found| found.0).collect();
        found.sort_unstable_by(|one, other| one.place.by_path(&other.place));
        let mut found = found.into_iter().peekable();
        for (directory, index) in batch {
            let is_child = |entry: &TreeEntry| {
                entry.place.path.split().is_some_and(|(parent, _)| parent == directory.path)
            };
            let mut listed = ListedPart::All;
            while let Some(child) = found.next_if(is_child) {
                if tree.entries.len() < self.limit {
                    tree.entries.push(child);
                } else {
                    tree.truncated = true;
                    listed = ListedPart::Some;
                }
            }
            match index {
                Some(index) => tree.entries[*index].listed = listed,
                None => tree.listed = listed,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Session;
    use crate::operations::Write;

    fn tree(session: &Session, tree: &Tree) -> (Vec<String>, bool) {
        let tree = session.perform(tree).unwrap().outcome;
        let shown = tree.entries.iter().map(|entry| {
            let cut = entry.kind == Kind::Directory && !entry.listed.is_complete();
            session.relative(&entry.place) + if cut { " ..." } else { "" }
        });
        (shown.collect(), tree.truncated)
    }

    #[test]
    fn a_limit_leaves_out_what_is_deepest() {
        let dir = tempfile::tempdir().unwrap();
        let session = Session::open([dir.path()]).unwrap();
        for path in ["a/b/c/d.txt", "a/b/e.txt", "f/g.txt", "z.txt", ".hidden/node_modules/x"] {
            session.perform(&Write::new(path, "")).unwrap();
        }
        let all = |limit| tree(&session, &Tree::new(".").with_limit(limit));
        let paths = |text: &str| text.split(", ").map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(all(4), (paths(".hidden ..., a ..., f ..., z.txt"), true));
        let cut = ".hidden, .hidden/node_modules ..., a, a/b ..., f ..., z.txt";
        assert_eq!(all(6), (paths(cut), true));
        let whole = ".hidden, .hidden/node_modules, .hidden/node_modules/x, a, a/b, a/b/c, \
                     a/b/c/d.txt, a/b/e.txt, f, f/g.txt, z.txt";
        assert_eq!(all(11), (paths(whole), false));
        let two_levels = Tree::new(".").with_depth(2).with_exclude(vec!["**/.*".into()]);
        assert_eq!(tree(&session, &two_levels), (paths("a, a/b ..., f, f/g.txt, z.txt"), false));
        let below = Tree::new("a").with_exclude(vec!["*/c".into()]);
        assert_eq!(tree(&session, &below), (paths("a/b, a/b/e.txt"), false));
    }
}
