//! Creates a directory.

use blake3::Hash;
use pinfold_confine::{Durability, Error as ConfineError, Place, RawPath, Target};

use super::{Applied, Change};
use crate::journal::{Displaces, State};
use crate::permit::AccessRequest;
use crate::preview::Proposal;
use crate::{Access, View};

/// Creates a directory at a free path.
#[derive(Debug)]
pub(crate) struct MakeDirectory {
    pub(crate) path: RawPath,
    /// The place of the directory, which is empty.
    pub(crate) target: Target,
    /// The directory's mode, if the change sets one.
    pub(crate) mode: Option<u32>,
    pub(crate) undoes: Vec<String>,
}

impl Change for MakeDirectory {
    fn path(&self) -> &RawPath {
        &self.path
    }

    fn place(&self) -> &Place {
        self.target.place()
    }

    fn requests(&self) -> Vec<AccessRequest<'_>> {
        let (path, place) = (&self.path, self.target.place());
        vec![AccessRequest { access: Access::Write, path, place, directory: true }]
    }

    fn undoes(&self) -> &[String] {
        &self.undoes
    }

    fn proposal(&mut self, _: &View<'_>) -> Result<Proposal, ConfineError> {
        Ok(Proposal::MakeDirectory)
    }

    fn change_hash(&self) -> Result<Hash, ConfineError> {
        Ok(blake3::hash(format!("directory {:?}", self.mode).as_bytes()))
    }

    fn check_possible(&self) -> Result<(), ConfineError> {
        self.target.check_writable()
    }

    fn states(&self) -> Result<[State; 2], ConfineError> {
        Ok([State::Absent, State::Directory { mode: self.mode }])
    }

    fn displaces(&mut self) -> Displaces<'_> {
        Displaces::Nothing
    }

    fn made_parents(&self) -> usize {
        self.target.missing_parents().len()
    }

    fn apply(self: Box<Self>, durability: Durability) -> Result<Applied, ConfineError> {
        self.target.make_directory(durability, self.mode)?;
        Ok(Applied::without_content(move || self.target.remove_directory()))
    }
}
