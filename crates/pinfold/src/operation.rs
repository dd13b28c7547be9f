//! The trait of operations: an operation plans on a view of the workspace, and the session commits its changes.

use pinfold_confine::RawPath;

use crate::change::ChangeSet;
use crate::commit::{CommitError, Receipt, commit};
use crate::{Error, View};

/// A request that a session can perform. Its implementations are in [`operations`](crate::operations).
///
/// `plan` reads through the [`View`] and returns the changes. The session commits them, so permissions, dry run,
/// journal and conflicts are handled in one place for all operations.
pub trait Operation: sealed::Sealed {
    /// [`ChangeSet`] if it can change something, [`NoChange`] if it only reads.
    type Changes: Changes;
    /// Its result.
    type Outcome;

    /// Whether it only reads one file.
    #[doc(hidden)]
    const READS_ONE_FILE: bool = false;

    /// Returns the outcome, and the changes that lead to it. Changes nothing itself.
    ///
    /// The session calls it again if the file changes before the commit.
    #[doc(hidden)]
    fn plan(&self, view: &View<'_>) -> Result<(Self::Outcome, Self::Changes), Error>;

    /// The files of which it has the old and the new content in memory, until they are changed.
    #[doc(hidden)]
    fn edited_files(&self) -> Vec<&RawPath> {
        Vec::new()
    }

    /// The file that it reads, if it only reads one file.
    #[doc(hidden)]
    fn file_to_read(&self) -> Option<&RawPath> {
        None
    }
}

/// The changes of an operation: [`NoChange`], or a [`ChangeSet`].
pub trait Changes: sealed::Sealed + Sized {
    /// Whether such an operation only reads.
    const READ_ONLY: bool;
    /// The receipt of the commit.
    type Receipt;

    #[doc(hidden)]
    fn commit(self, view: &View<'_>) -> Result<Self::Receipt, CommitError>;
}

/// The changes of an operation that only reads.
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
    use crate::operations::{
        ChangeFiles, Compare, Delete, Edit, EditNotebook, Find, Info, Insert, List, Mkdir, Move,
        Open, Read, ReadBytes, ReadMany, RemoveTree, Rewind, Search, Show, Tree, Undo, Update,
        Write,
    };

    pub trait Sealed {}

    macro_rules! seal {
        ($($name:ty),*) => { $(impl Sealed for $name {})* };
    }

    seal!(super::NoChange, super::ChangeSet);
    seal!(ChangeFiles, Compare, Delete, Edit, EditNotebook, Find, Info, Insert, List, Mkdir, Move);
    seal!(
        Open, Read, ReadBytes, ReadMany, RemoveTree, Rewind, Search, Show, Tree, Undo, Update,
        Write
    );
}

/// The result of an operation that was performed.
pub struct Done<O: Operation> {
    /// Its result.
    pub outcome: O::Outcome,
    /// The receipt of the commit; `()` for operations that only read.
    pub receipt: <O::Changes as Changes>::Receipt,
}

impl<O: Operation<Outcome: std::fmt::Debug>> std::fmt::Debug for Done<O> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.outcome.fmt(out)
    }
}
