//! Creates a symlink again, for undo.

use blake3::Hash;
use pinfold_confine::{Durability, Error as ConfineError, Place, RawPath, Target};

use super::{Applied, Change, file_request};
use crate::journal::{Displaces, State};
use crate::permit::AccessRequest;
use crate::preview::Proposal;
use crate::{Access, View};

/// Creates a symlink that was deleted. Only undo does this.
#[derive(Debug)]
pub(crate) struct RestoreLink {
    pub(crate) path: RawPath,
    /// The place of the link, which is empty.
    pub(crate) target: Target,
    /// Where the link points.
    pub(crate) to: String,
    pub(crate) undoes: Vec<String>,
}

impl Change for RestoreLink {
    fn path(&self) -> &RawPath {
        &self.path
    }

    fn place(&self) -> &Place {
        self.target.place()
    }

    fn requests(&self) -> Vec<AccessRequest<'_>> {
        file_request(self, Access::Write)
    }

    fn undoes(&self) -> &[String] {
        &self.undoes
    }

    fn proposal(&mut self, _: &View<'_>) -> Result<Proposal, ConfineError> {
        Ok(Proposal::CreateLink { to: self.to.as_bytes().to_vec() })
    }

    fn change_hash(&self) -> Result<Hash, ConfineError> {
        Ok(blake3::hash(self.to.as_bytes()))
    }

    fn check_possible(&self) -> Result<(), ConfineError> {
        self.target.check_writable()
    }

    fn states(&self) -> Result<[State; 2], ConfineError> {
        Ok([State::Absent, State::Link { target: self.to.clone() }])
    }

    fn displaces(&mut self) -> Displaces<'_> {
        Displaces::Nothing
    }

    fn made_parents(&self) -> usize {
        self.target.missing_parents().len()
    }

    fn apply(self: Box<Self>, durability: Durability) -> Result<Applied, ConfineError> {
        self.target.link(self.to.as_bytes(), durability)?;
        let (target, to) = (self.target, self.to);
        Ok(Applied::without_content(move || target.remove_link(to.as_bytes())))
    }
}
