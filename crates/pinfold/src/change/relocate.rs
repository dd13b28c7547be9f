//! Moves a file, a directory or a symlink to a free path.

use blake3::Hash;
use pinfold_confine::{Durability, Error as ConfineError, Kind, Place, RawPath, Relocation};

use super::replace::can_show;
use super::{Applied, Change};
use crate::journal::{Displaces, State};
use crate::permit::{AccessRequest, CheckedTree};
use crate::preview::{Proposal, Version};
use crate::{Access, View};

/// Moves something to a free path.
#[derive(Debug)]
pub(crate) struct Relocate {
    pub(crate) path: RawPath,
    /// The new path as it was given.
    pub(crate) to: RawPath,
    pub(crate) relocation: Relocation,
    /// The entries of a directory.
    pub(crate) tree: Option<CheckedTree>,
    pub(crate) undoes: Vec<String>,
}

impl Relocate {
    fn is_directory(&self) -> bool {
        self.relocation.meta().kind == Kind::Directory
    }

    /// Whether the approval request shows the content: it is needed because of the destination, and the file may be
    /// read without approval.
    fn shows_content(&self, view: &View<'_>) -> bool {
        let requests = self.requests();
        let [read, _, write, ..] = &requests[..] else { return false };
        matches!(view.check_policy(read), Ok(None))
            && matches!(view.check_policy(write), Ok(Some(reason)) if !reason.is_general())
    }
}

impl Change for Relocate {
    fn path(&self) -> &RawPath {
        &self.path
    }

    fn place(&self) -> &Place {
        self.relocation.from()
    }

    fn destination(&self) -> Option<(&RawPath, &Place)> {
        Some((&self.to, self.relocation.to()))
    }

    /// A move needs read access, too. Otherwise a file could be moved from a name where it may not be read to one
    /// where it may.
    fn requests(&self) -> Vec<AccessRequest<'_>> {
        let directory = self.is_directory();
        let (path, place) = (&self.path, self.relocation.from());
        let [read, delete] = [Access::Read, Access::Delete].map(|access| AccessRequest {
            access,
            path,
            place,
            directory,
        });
        let (path, place) = (&self.to, self.relocation.to());
        let write = AccessRequest { access: Access::Write, path, place, directory };
        let inside = self.tree.iter().flat_map(CheckedTree::requests);
        [read, delete, write].into_iter().chain(inside).collect()
    }

    fn undoes(&self) -> &[String] {
        &self.undoes
    }

    fn proposal(&mut self, view: &View<'_>) -> Result<Proposal, ConfineError> {
        let [from, to] = [self.relocation.from(), self.relocation.to()]
            .map(|place| view.session().relative(place));
        let meta = self.relocation.meta();
        let what = match (&self.tree, meta.kind) {
            (Some(tree), _) => format!("a directory with {} entries", tree.len()),
            (None, Kind::Symlink) => "a symlink".into(),
            (None, _) => format!("a file of {} bytes", meta.len),
        };
        let holds = self.tree.as_ref().map(|tree| tree.asked(view)).unwrap_or_default();
        let content = if self.shows_content(view) {
            // A file that cannot be read can be moved all the same.
            let content = can_show(meta.len, view).then(|| self.relocation.content().ok());
            let content = content.flatten().map(Into::into);
            self.relocation.hash().ok().flatten().map(|hash| Version {
                bytes: meta.len,
                hash,
                content,
            })
        } else {
            None
        };
        Ok(Proposal::Move { what, from, to, holds, content })
    }

    fn change_hash(&self) -> Result<Hash, ConfineError> {
        let (meta, to) = (self.relocation.meta(), self.relocation.to());
        let mut hasher = blake3::Hasher::new();
        hasher.update(format!("{:?} {:?} {to:?}", meta.kind, meta.identity).as_bytes());
        match &self.tree {
            Some(tree) => hasher.update(tree.hash().as_bytes()),
            None => {
                let content = self.relocation.hash().ok().flatten();
                hasher.update(format!("{} {:?} {content:?}", meta.len, meta.modified).as_bytes())
            }
        };
        Ok(hasher.finalize())
    }

    fn check_possible(&self) -> Result<(), ConfineError> {
        self.relocation.check_possible()
    }

    fn states(&self) -> Result<[State; 2], ConfineError> {
        let meta = self.relocation.meta();
        let before = match (self.relocation.link_target(), self.relocation.hash()?) {
            (Some(to), _) => State::Link { target: String::from_utf8_lossy(to).into_owned() },
            (None, Some(hash)) => State::of(meta, hash),
            (None, None) => State::Directory { mode: Some(meta.mode) },
        };
        Ok([before, State::Absent])
    }

    fn displaces(&mut self) -> Displaces<'_> {
        Displaces::Nothing
    }

    fn made_parents(&self) -> usize {
        self.relocation.missing_parents().len()
    }

    fn apply(self: Box<Self>, durability: Durability) -> Result<Applied, ConfineError> {
        self.relocation.relocate(durability)?;
        Ok(Applied::without_content(move || self.relocation.move_back()))
    }
}
