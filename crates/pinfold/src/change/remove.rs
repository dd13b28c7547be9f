//! Deletes a file or a symlink.

use blake3::Hash;
use pinfold_confine::{Durability, Error as ConfineError, OldVersion, Place, RawPath, Removal};

use super::{Applied, Change, file_request};
use crate::journal::{Displaces, State};
use crate::permit::AccessRequest;
use crate::preview::Proposal;
use crate::{Access, View};

/// Deletes a file or a symlink.
#[derive(Debug)]
pub(crate) struct Remove {
    pub(crate) path: RawPath,
    pub(crate) removal: Removal,
    pub(crate) undoes: Vec<String>,
}

impl Change for Remove {
    fn path(&self) -> &RawPath {
        &self.path
    }

    fn place(&self) -> &Place {
        self.removal.place()
    }

    fn requests(&self) -> Vec<AccessRequest<'_>> {
        file_request(self, Access::Delete)
    }

    fn undoes(&self) -> &[String] {
        &self.undoes
    }

    fn proposal(&mut self, _: &View<'_>) -> Result<Proposal, ConfineError> {
        let link_target = self.removal.link_target().map(<[u8]>::to_vec);
        Ok(Proposal::Delete { link_target, bytes: self.removal.meta().len })
    }

    fn change_hash(&self) -> Result<Hash, ConfineError> {
        // A file that may be deleted need not be readable, so its inode and times identify it.
        let meta = self.removal.meta();
        let identity = (meta.kind, meta.identity, meta.len, meta.mode, meta.modified);
        Ok(blake3::hash(format!("{identity:?}").as_bytes()))
    }

    fn check_possible(&self) -> Result<(), ConfineError> {
        self.removal.check_removable()
    }

    fn states(&self) -> Result<[State; 2], ConfineError> {
        let before = match self.removal.link_target() {
            Some(to) => State::Link { target: String::from_utf8_lossy(to).into_owned() },
            None => match self.removal.hash()? {
                Some(hash) => State::of(self.removal.meta(), hash),
                None => State::Absent,
            },
        };
        Ok([before, State::Absent])
    }

    fn displaces(&mut self) -> Displaces<'_> {
        Displaces::Removal(&self.removal)
    }

    fn apply(self: Box<Self>, durability: Durability) -> Result<Applied, ConfineError> {
        let name = self.removal.place().path.split().map(|(_, name)| name);
        let mut old = self.removal.remove(durability)?;
        let unverified = std::mem::take(&mut old.unverified);
        let put_back = move |old: OldVersion| name.map_or(Ok(()), |name| old.put_back(&name));
        Ok(Applied {
            unverified,
            ..Applied::displacing(old, OldVersion::discard_rollback, put_back)
        })
    }
}
