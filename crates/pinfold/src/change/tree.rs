//! Removes a directory with everything in it.
//!
//! The directory is one change, and each of its entries is another, so policy, the user, the journal and the audit
//! log see every entry. Applying the directory's own change removes all entries; applying the others does nothing.

use std::rc::Rc;

use blake3::Hash;
use pinfold_confine::{
    Durability, Error as ConfineError, Kind, Metadata, Place, RawPath, RemovedTree, TreeEntry,
    TreeRemoval,
};

use super::{Applied, Change, file_request};
use crate::journal::{Displaces, State};
use crate::permit::AccessRequest;
use crate::preview::Proposal;
use crate::{Access, View};

/// The removal of a directory, or of an entry that is removed with it.
#[derive(Debug)]
pub(crate) struct RemoveFromTree {
    pub(crate) path: RawPath,
    place: Place,
    removal: Rc<TreeRemoval>,
    /// The entry; `None` for the directory itself.
    entry: Option<usize>,
    pub(crate) undoes: Vec<String>,
}

impl RemoveFromTree {
    /// The changes that remove a directory: its own first, then those of its entries in the order of their paths.
    pub(crate) fn all(path: &RawPath, removal: TreeRemoval) -> Vec<Self> {
        let removal = Rc::new(removal);
        let part = |path: RawPath, place: Place, entry: Option<usize>| {
            let (removal, undoes) = (removal.clone(), Vec::new());
            Self { path, place, removal, entry, undoes }
        };
        let top = removal.place();
        let mut parts = vec![part(path.clone(), top.clone(), None)];
        for (number, TreeEntry { path: below, .. }) in removal.entries().iter().enumerate() {
            let path = RawPath::from(format!("{}/{below}", path.as_str().trim_end_matches('/')));
            let inner = below.names().fold(top.path.clone(), |path, name| path.join(&name));
            parts.push(part(path, Place { root: top.root, path: inner }, Some(number)));
        }
        parts
    }

    fn entry(&self) -> Option<&TreeEntry> {
        self.entry.map(|entry| &self.removal.entries()[entry])
    }

    fn meta(&self) -> &Metadata {
        self.entry().map_or(self.removal.meta(), |entry| &entry.meta)
    }

    fn link_target(&self) -> Option<&[u8]> {
        self.entry()?.link_target.as_deref()
    }
}

impl Change for RemoveFromTree {
    fn path(&self) -> &RawPath {
        &self.path
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn requests(&self) -> Vec<AccessRequest<'_>> {
        let mut requests = file_request(self, Access::Delete);
        requests[0].directory = self.meta().kind == Kind::Directory;
        requests
    }

    fn undoes(&self) -> &[String] {
        &self.undoes
    }

    fn proposal(&mut self, _: &View<'_>) -> Result<Proposal, ConfineError> {
        Ok(match (self.entry, self.meta().kind) {
            (None, _) => Proposal::RemoveTree { entries: self.removal.entries().len() },
            (Some(_), Kind::Directory) => Proposal::RemoveSubdirectory,
            (Some(_), _) => {
                let link_target = self.link_target().map(<[u8]>::to_vec);
                Proposal::Delete { link_target, bytes: self.meta().len }
            }
        })
    }

    fn change_hash(&self) -> Result<Hash, ConfineError> {
        // A file that may be deleted need not be readable, so its inode and times identify it.
        let meta = self.meta();
        let identity = (&self.place, meta.kind, meta.identity, meta.len, meta.mode, meta.modified);
        Ok(blake3::hash(format!("{identity:?}").as_bytes()))
    }

    fn check_possible(&self) -> Result<(), ConfineError> {
        if self.entry.is_none() { self.removal.check_removable() } else { Ok(()) }
    }

    fn states(&self) -> Result<[State; 2], ConfineError> {
        let meta = self.meta();
        let hash = self.entry.map(|entry| self.removal.hash(entry)).transpose()?.flatten();
        let before = match (self.link_target(), hash) {
            (Some(to), _) => State::Link { target: String::from_utf8_lossy(to).into_owned() },
            (None, Some(hash)) => State::of(meta, hash),
            (None, None) => State::Directory { mode: Some(meta.mode) },
        };
        Ok([before, State::Absent])
    }

    fn displaces(&mut self) -> Displaces<'_> {
        self.entry.map_or(Displaces::Nothing, |entry| Displaces::InTree(&self.removal, entry))
    }

    fn apply(self: Box<Self>, durability: Durability) -> Result<Applied, ConfineError> {
        if self.entry.is_some() {
            return Ok(Applied::without_content(|| Ok(())));
        }
        let mut removed = self.removal.remove(durability)?;
        let unverified = std::mem::take(&mut removed.unverified);
        Ok(Applied {
            unverified,
            ..Applied::displacing(removed, RemovedTree::discard_rollback, RemovedTree::put_back)
        })
    }
}
