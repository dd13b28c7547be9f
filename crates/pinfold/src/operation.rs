//! What an operation is: it looks, and says what should change.

use std::ops::Deref;

use pinfold_confine::RawPath;

use crate::change::ChangeSet;
use crate::commit::{CommitError, Receipt, commit};
use crate::{Error, View};

/// Something that a session can be asked to do.
///
/// `plan` only looks, through the [`View`]. What it wants changed it returns; the session commits it,
/// so checks, dry run and conflicts are dealt with in one place for all operations.
pub trait Operation {
    /// [`ChangeSet`] if it can change something, [`NoChange`] if it only looks.
    type Changes: Changes;
    /// What came of it.
    type Outcome;

    /// Whether all that it does is to read one file.
    const READS: bool = false;

    /// Works out the outcome and the changes that lead there. Nothing is touched yet.
    ///
    /// Called again if somebody else changes the file before the commit.
    fn plan(&self, view: &View<'_>) -> Result<(Self::Outcome, Self::Changes), Error>;

    /// The file that it reads, if that is all that it does: see [`Self::READS`].
    fn reads(&self) -> Option<&RawPath> {
        None
    }
}

/// What an operation may change: nothing, or what is in a [`ChangeSet`].
pub trait Changes: sealed::Sealed + Sized {
    /// Whether an operation with such changes leaves the disk alone.
    const READ_ONLY: bool;
    /// What the commit says about itself.
    type Receipt;

    #[doc(hidden)]
    fn commit(self, view: &View<'_>) -> Result<Self::Receipt, CommitError>;
}

/// The changes of an operation that only looks.
#[derive(Clone, Copy, Debug)]
pub struct NoChange;

impl Changes for NoChange {
    const READ_ONLY: bool = true;
    type Receipt = ();

    fn commit(self, _: &View<'_>) -> Result<(), CommitError> {
        Ok(())
    }
}

impl Changes for ChangeSet {
    const READ_ONLY: bool = false;
    type Receipt = Receipt;

    fn commit(self, view: &View<'_>) -> Result<Receipt, CommitError> {
        commit(self, view)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::NoChange {}
    impl Sealed for super::ChangeSet {}
}

/// An operation that was performed: its outcome, and what the commit said.
pub struct Done<O: Operation> {
    /// What came of it.
    pub outcome: O::Outcome,
    /// What the commit said: nothing, for operations that only look.
    pub receipt: <O::Changes as Changes>::Receipt,
}

impl<O: Operation> Deref for Done<O> {
    type Target = O::Outcome;

    fn deref(&self) -> &O::Outcome {
        &self.outcome
    }
}

impl<O: Operation<Outcome: std::fmt::Debug>> std::fmt::Debug for Done<O> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.outcome.fmt(out)
    }
}
