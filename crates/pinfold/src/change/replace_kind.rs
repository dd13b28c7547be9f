//! Replaces a file by a symlink, or a symlink by a file. Only undo does this.

use blake3::Hash;
use pinfold_confine::{Durability, Error as ConfineError, Place, RawPath, SharedLocks};

use super::{Applied, Change, Remove};
use crate::View;
use crate::journal::{Displaces, State};
use crate::permit::AccessRequest;
use crate::preview::Proposal;

/// Removes a file or symlink, and creates one of the other kind in its place.
///
/// If the process is killed in between, the next sweep of the directory puts the old one back.
#[derive(Debug)]
pub(crate) struct ReplaceKind {
    pub(crate) remove: Remove,
    /// Planned for the place that the removal leaves free.
    pub(crate) create: Box<dyn Change>,
}

impl Change for ReplaceKind {
    fn path(&self) -> &RawPath {
        self.remove.path()
    }

    fn place(&self) -> &Place {
        self.remove.place()
    }

    fn requests(&self) -> Vec<AccessRequest<'_>> {
        [self.remove.requests(), self.create.requests()].concat()
    }

    fn undoes(&self) -> &[String] {
        self.remove.undoes()
    }

    fn proposal(&mut self, view: &View<'_>) -> Result<Proposal, ConfineError> {
        let path = view.session().relative(self.place());
        let steps = [self.remove.proposal(view)?, self.create.proposal(view)?];
        let changes = steps.map(|step| (path.clone(), step)).into();
        Ok(Proposal::Several { asked: 2, changes })
    }

    fn change_hash(&self) -> Result<Hash, ConfineError> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.remove.change_hash()?.as_bytes());
        Ok(hasher.update(self.create.change_hash()?.as_bytes()).finalize())
    }

    fn answers_with_diff(&self) -> bool {
        self.create.answers_with_diff()
    }

    fn diff(&mut self, view: &View<'_>) -> Result<Option<String>, ConfineError> {
        self.create.diff(view)
    }

    fn check_possible(&self) -> Result<(), ConfineError> {
        self.remove.check_possible()
    }

    fn states(&self) -> Result<[State; 2], ConfineError> {
        let ([before, _], [_, after]) = (self.remove.states()?, self.create.states()?);
        Ok([before, after])
    }

    fn displaces(&mut self) -> Displaces<'_> {
        self.remove.displaces()
    }

    fn apply(self: Box<Self>, durability: Durability) -> Result<Applied, ConfineError> {
        // Both steps lock the directory.
        let _locks = SharedLocks::begin();
        let mut old = Box::new(self.remove).apply(durability)?;
        let new = match self.create.apply(durability) {
            Ok(new) => new,
            Err(error) => {
                (old.roll_back)()?;
                return Err(error);
            }
        };
        // From now on, the journal restores the old one after a kill.
        old.discard_rollback.take().into_iter().for_each(|discard| discard());
        let (put_back, take_away) = (old.roll_back, new.roll_back);
        Ok(Applied {
            roll_back: Box::new(move || take_away().and_then(|()| put_back())),
            unverified: [old.unverified, new.unverified].concat(),
            ..new
        })
    }
}
