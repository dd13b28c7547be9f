//! Permission for everything inside a directory that is moved or deleted.
//!
//! Rules and protected paths apply to each entry, at its old and at its new place. So moving a directory does not
//! change what an agent may read or change.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use blake3::{Hash, Hasher};
use pinfold_confine::{Kind, Place, RawPath, RelPath};

use super::AccessRequest;
use crate::policy::Decision;
use crate::{Access, Error, Reason, View};

/// The entries of a directory that is moved or deleted, after the policy check.
#[derive(Debug)]
pub(crate) struct CheckedTree {
    /// Every entry. A directory comes before its entries.
    entries: Vec<(RelPath, Kind)>,
    /// The first entry for each access and reason that needs approval, unless the directory itself needs it for the
    /// same reason.
    asked: Vec<AskedAccess>,
}

#[derive(Debug)]
struct AskedAccess {
    access: Access,
    reason: Reason,
    path: RawPath,
    place: Place,
    directory: bool,
}

impl CheckedTree {
    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The hash of all names and kinds.
    pub(crate) fn hash(&self) -> Hash {
        let mut hasher = Hasher::new();
        for (path, kind) in &self.entries {
            hasher.update(path.as_bytes()).update(format!("\0{kind:?}\0").as_bytes());
        }
        hasher.finalize()
    }

    /// The accesses that need approval.
    pub(crate) fn requests(&self) -> impl Iterator<Item = AccessRequest<'_>> {
        self.asked.iter().map(|asked| {
            let AskedAccess { access, path, place, directory, .. } = asked;
            AccessRequest { access: *access, path, place, directory: *directory }
        })
    }

    /// The entries that need approval, each with the reason, for the preview.
    pub(crate) fn asked(&self, view: &View<'_>) -> Vec<String> {
        let shown = self.asked.iter().map(|AskedAccess { place, reason, .. }| {
            format!("{} ({reason})", view.session().relative(place))
        });
        let mut shown: Vec<_> = shown.collect();
        shown.dedup();
        shown
    }
}

/// One access that a move or a deletion makes to each entry of a directory.
struct TreeAccess<'t> {
    access: Access,
    /// The directory's path as it was given, and its place.
    path: &'t RawPath,
    place: &'t Place,
    /// The given path, made absolute.
    given: PathBuf,
    /// The reason why the access to the directory itself needs approval, if it does.
    own_reason: Option<Reason>,
}

impl View<'_> {
    /// Lists everything inside a directory, and checks that all of it may be deleted there and, for a move, written
    /// at the new place. Refuses a directory with more than `max_entries`.
    pub(crate) fn check_tree(
        &self,
        from: (&RawPath, &Place),
        to: Option<(&RawPath, &Place)>,
        max_entries: usize,
    ) -> Result<CheckedTree, Error> {
        let (path, top) = from;
        let accesses = [(Access::Read, from), (Access::Delete, from)]
            .into_iter()
            .chain(to.map(|to| (Access::Write, to)))
            .map(|(access, (path, place))| self.tree_access(access, path, place));
        let accesses: Vec<_> = accesses.collect();
        let mut tree = CheckedTree { entries: Vec::new(), asked: Vec::new() };
        let mut waiting = VecDeque::from([RelPath::root()]);
        while let Some(below) = waiting.pop_front() {
            self.check_time()?;
            let place = joined(top, &below);
            let left = max_entries - tree.entries.len();
            let found = self.session().workspace().entries(&place, left.saturating_add(1));
            let mut found = found.map_err(|error| self.path_error(path, error))?;
            if found.len() > left {
                return Err(Error::TooManyEntries { path: path.clone(), limit: max_entries });
            }
            found.sort_by(|one, other| one.name.cmp(&other.name));
            for entry in found {
                let below = below.join(&entry.name);
                let directory = entry.kind == Kind::Directory;
                for access in &accesses {
                    self.check_entry(access, &below, directory, &mut tree.asked)?;
                }
                if directory {
                    waiting.push_back(below.clone());
                }
                tree.entries.push((below, entry.kind));
            }
        }
        Ok(tree)
    }

    fn tree_access<'t>(
        &self,
        access: Access,
        path: &'t RawPath,
        place: &'t Place,
    ) -> TreeAccess<'t> {
        let given = self.given_path(path);
        let real = self.real(place);
        let own_reason =
            match self.session().policy().decide(access, Some(&given), Some(&real), true) {
                Decision::Ask(reason) => Some(reason),
                Decision::Allow(_) | Decision::Deny(_) => None,
            };
        TreeAccess { access, path, place, given, own_reason }
    }

    /// Fails if policy denies an access to the entry `below` a directory. Adds the access to `asked` if it is the first
    /// one that needs approval for its reason.
    fn check_entry(
        &self,
        tree: &TreeAccess<'_>,
        below: &RelPath,
        directory: bool,
        asked: &mut Vec<AskedAccess>,
    ) -> Result<(), Error> {
        let access = tree.access;
        let place = joined(tree.place, below);
        let given = tree.given.join(OsStr::from_bytes(below.as_bytes()));
        let real = self.real(&place);
        let path = || RawPath::from(format!("{}/{below}", tree.path));
        match self.session().policy().decide(access, Some(&given), Some(&real), directory) {
            Decision::Allow(_) => {}
            // The error does not name an entry that may not be read.
            Decision::Deny(reason) if access == Access::Read => {
                return Err(self.denied(access, tree.path, None, reason));
            }
            Decision::Deny(reason) => {
                return Err(self.denied(access, &path(), Some(&real), reason));
            }
            Decision::Ask(reason) => {
                let is_same = |it: &AskedAccess| it.access == access && it.reason == reason;
                if tree.own_reason.as_ref() != Some(&reason) && !asked.iter().any(is_same) {
                    asked.push(AskedAccess { access, reason, path: path(), place, directory });
                }
            }
        }
        Ok(())
    }
}

fn joined(place: &Place, below: &RelPath) -> Place {
    let path = below.names().fold(place.path.clone(), |path, name| path.join(&name));
    Place { root: place.root, path }
}
