//! Permission for everything that is inside a directory which is moved or deleted.
//!
//! Rules and protected paths hold for each entry, at the place where it is and at the place where it would be: so
//! moving a directory changes nothing about what an agent may read or change.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use blake3::{Hash, Hasher};
use pinfold_confine::{Kind, Place, RawPath, RelPath};

use super::AccessRequest;
use crate::policy::Decision;
use crate::{Access, Error, Reason, View};

/// The entries of a directory that is moved or deleted, after the policy check.
#[derive(Debug)]
pub(crate) struct CheckedTree {
    /// Every entry, a directory before what is in it.
    entries: Vec<(RelPath, Kind)>,
    /// The first entry of each access and reason that the user has to be asked about, unless the directory itself
    /// asks for the same reason.
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

    /// The accesses that the user has to be asked about.
    pub(crate) fn requests(&self) -> impl Iterator<Item = AccessRequest<'_>> {
        self.asked.iter().map(|asked| {
            let AskedAccess { access, path, place, directory, .. } = asked;
            AccessRequest { access: *access, path, place, directory: *directory }
        })
    }

    /// The entries that the user has to be asked about, with the reason, for the user.
    pub(crate) fn asked(&self, view: &View<'_>) -> Vec<String> {
        let shown = self.asked.iter().map(|AskedAccess { place, reason, .. }| {
            format!("{} ({reason})", view.session().relative(place))
        });
        let mut shown: Vec<_> = shown.collect();
        shown.dedup();
        shown
    }
}

impl View<'_> {
    /// Finds everything that is inside a directory, and checks that all of it may be deleted there, and written at
    /// the place that it goes to if there is one. Refuses a directory with more than `max_entries`.
    pub(crate) fn check_tree(
        &self,
        from: (&RawPath, &Place),
        to: Option<(&RawPath, &Place)>,
        max_entries: usize,
    ) -> Result<CheckedTree, Error> {
        let (path, top) = from;
        let sides: Vec<_> = [(Access::Read, from), (Access::Delete, from)]
            .into_iter()
            .chain(to.map(|to| (Access::Write, to)))
            .map(|(access, (path, place))| (access, path, place, self.given_path(path)))
            .collect();
        let policy = self.session().policy();
        let own_reasons: Vec<_> = sides
            .iter()
            .filter_map(|(access, _, place, given)| {
                let real = self.real(place);
                match policy.decide(*access, Some(given), Some(&real), true) {
                    Decision::Ask(reason) => Some((*access, reason)),
                    Decision::Allow(_) | Decision::Deny(_) => None,
                }
            })
            .collect();
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
                for (access, path, place, given) in &sides {
                    let inner = joined(place, &below);
                    let given = given.join(OsStr::from_bytes(below.as_bytes()));
                    let real = self.real(&inner);
                    let decision = policy.decide(*access, Some(&given), Some(&real), directory);
                    let inner_path = || RawPath::from(format!("{path}/{below}"));
                    match decision {
                        Decision::Allow(_) => {}
                        // An entry that may not be read is not named.
                        Decision::Deny(reason) if *access == Access::Read => {
                            return Err(self.denied(*access, path, None, reason));
                        }
                        Decision::Deny(reason) => {
                            return Err(self.denied(*access, &inner_path(), Some(&real), reason));
                        }
                        Decision::Ask(reason) => {
                            let known = |asked: &AskedAccess| {
                                asked.access == *access && asked.reason == reason
                            };
                            if !own_reasons.contains(&(*access, reason.clone()))
                                && !tree.asked.iter().any(known)
                            {
                                let (access, path) = (*access, inner_path());
                                let place = inner;
                                tree.asked.push(AskedAccess {
                                    access,
                                    reason,
                                    path,
                                    place,
                                    directory,
                                });
                            }
                        }
                    }
                }
                if directory {
                    waiting.push_back(below.clone());
                }
                tree.entries.push((below, entry.kind));
            }
        }
        Ok(tree)
    }
}

fn joined(place: &Place, below: &RelPath) -> Place {
    let path = below.names().fold(place.path.clone(), |path, name| path.join(&name));
    Place { root: place.root, path }
}
