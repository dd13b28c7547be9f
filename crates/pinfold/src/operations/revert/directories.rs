//! Undoes changes of directories: removes those that were created, and moves back those that were moved.
//!
//! This comes after the changes of files, which are planned for the current paths of directories. One rename removes
//! a directory with everything in it, so the same plan must remove every entry.

use std::collections::{HashMap, HashSet};

use pinfold_confine::RawPath;

use super::net_changes::{MovedDirectory, NetChange, below};
use super::{RevertedPath, removed_lines};
use crate::change::{Change, Relocate, RemoveFromTree};
use crate::limits::MAX_REWOUND_CHANGES;
use crate::operations::r#move;
use crate::operations::undo::{CurrentState, state_matches};
use crate::{Error, View};

/// The changes of directories.
pub(super) struct Directories<'n> {
    nets: &'n [NetChange<'n>],
    numbers: HashMap<&'n str, usize>,
    /// Paths that are free by the time directories are removed, because their files are moved back. Everything below
    /// them is free, too.
    leaving: Vec<&'n str>,
    /// The net changes of paths that are removed with a directory.
    removed: HashSet<usize>,
    steps: Vec<DirectoryStep>,
}

/// A directory that is removed or moved.
struct DirectoryStep {
    path: String,
    moves_to: Option<String>,
    changes: Vec<Box<dyn Change>>,
}

impl<'n> Directories<'n> {
    pub(super) fn new(
        nets: &'n [NetChange<'n>],
        moved: &'n [MovedDirectory],
        sources: &HashSet<usize>,
    ) -> Self {
        let files = sources.iter().map(|source| nets[*source].path.as_str());
        Self {
            nets,
            numbers: nets.iter().enumerate().map(|(number, net)| (&*net.path, number)).collect(),
            leaving: files.chain(moved.iter().map(|moved| moved.path.as_str())).collect(),
            removed: HashSet::new(),
            steps: Vec::new(),
        }
    }

    /// Whether a path is removed with a directory above it.
    pub(super) fn has(&self, net: usize) -> bool {
        self.removed.contains(&net)
    }

    /// Plans to remove a directory with everything in it.
    pub(super) fn remove(
        &mut self,
        view: &View<'_>,
        number: usize,
        files: &mut Vec<RevertedPath>,
    ) -> Result<(), Error> {
        let net = &self.nets[number];
        let path = RawPath::from(net.path.as_str());
        let holds_others =
            || Error::NotAsLeft { path: path.clone(), what: "the directory holds other files" };
        let mut removal = view.tree_removal(&path, MAX_REWOUND_CHANGES)?;
        let inner = |path: &pinfold_confine::RelPath| {
            format!("{}/{}", net.path, String::from_utf8_lossy(path.as_bytes()))
        };
        removal.retain(|path| {
            let path = inner(path);
            !self.leaving.iter().any(|leaving| below(&path, leaving).is_some())
        });
        let mut inside = vec![number];
        for (entry, found) in removal.entries().iter().enumerate() {
            let known = self.numbers.get(&*inner(&found.path)).copied();
            let is_free = |number: &usize| {
                let net = &self.nets[*number];
                net.before == crate::State::Absent && net.conflict.is_none()
            };
            let known = known.filter(is_free).ok_or_else(holds_others)?;
            let hash = removal.hash(entry).map_err(|error| view.path_error(&path, error))?;
            let now = match (&found.link_target, hash) {
                (Some(to), _) => CurrentState::link(to),
                (None, Some(hash)) => CurrentState::File(hash),
                (None, None) => CurrentState::Directory,
            };
            if !state_matches(&self.nets[known].after, &now) {
                return Err(holds_others());
            }
            inside.push(known);
        }
        let mut changes: Vec<Box<dyn Change>> = Vec::new();
        for (mut part, number) in RemoveFromTree::all(&path, removal).into_iter().zip(&inside) {
            let net = &self.nets[*number];
            if !net.is_made_parent {
                let lines = removed_lines(view, part.place());
                let (path, what) = (net.path.clone(), "removed");
                files.push(RevertedPath { path, what, back_to: None, lines });
            }
            part.undoes.clone_from(&net.ids);
            changes.push(Box::new(part));
        }
        self.removed.extend(inside);
        self.steps.push(DirectoryStep { path: net.path.clone(), moves_to: None, changes });
        Ok(())
    }

    /// Plans to move a directory back.
    pub(super) fn move_back(
        &mut self,
        view: &View<'_>,
        moved: &MovedDirectory,
    ) -> Result<(), Error> {
        let MovedDirectory { path, back_to, ids } = moved;
        let change =
            r#move::plan(view, &RawPath::from(path.as_str()), &RawPath::from(back_to.as_str()))?;
        let change = Relocate { undoes: ids.clone(), ..change };
        let (path, moves_to) = (path.clone(), Some(back_to.clone()));
        self.steps.push(DirectoryStep { path, moves_to, changes: vec![Box::new(change)] });
        Ok(())
    }

    /// The changes. A directory comes after everything below it.
    pub(super) fn changes(mut self) -> Vec<Box<dyn Change>> {
        let mut changes = Vec::new();
        while !self.steps.is_empty() {
            let is_last = |number: &usize| {
                let others = self.steps.iter().enumerate().filter(|(other, _)| other != number);
                let mut paths =
                    others.flat_map(|(_, other)| [&other.path].into_iter().chain(&other.moves_to));
                paths.all(|path| below(path, &self.steps[*number].path).is_none())
            };
            let next = (0..self.steps.len()).find(is_last).unwrap_or_default();
            changes.extend(self.steps.remove(next).changes);
        }
        changes
    }
}
