//! The kinds of change that an operation can plan, each with an implementation of [`Change`].
//!
//! A change locks its file from planning until it is applied or dropped, so no other change of the file starts in
//! this process meanwhile. [`commit`](crate::commit) decides whether a change may be made, in the same steps for
//! every kind.

mod directory;
mod link;
mod relocate;
mod remove;
mod replace;
mod replace_kind;
mod tree;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use blake3::Hash;
use pinfold_confine::{Durability, Error as ConfineError, Name, Place, RawPath};

use crate::journal::{Displaces, State};
use crate::ledger::Fingerprint;
use crate::permit::AccessRequest;
use crate::preview::Proposal;
use crate::{Access, View};

pub(crate) use directory::MakeDirectory;
pub(crate) use link::RestoreLink;
pub(crate) use relocate::Relocate;
pub(crate) use remove::Remove;
pub(crate) use replace::{Replace, can_compare, diff, line_counts};
pub(crate) use replace_kind::ReplaceKind;
pub(crate) use tree::RemoveFromTree;

/// Planned changes that are not made yet.
#[derive(Debug, Default)]
pub struct ChangeSet(pub(crate) Vec<Box<dyn Change>>);

impl ChangeSet {
    /// A set of one change.
    pub(crate) fn of(change: impl Change + 'static) -> Self {
        Self(vec![Box::new(change)])
    }
}

/// A change of one kind, to one place.
pub(crate) trait Change: fmt::Debug {
    /// The path as it was given.
    fn path(&self) -> &RawPath;

    /// The place that the path leads to.
    fn place(&self) -> &Place;

    /// The path and place that the change moves something to.
    fn destination(&self) -> Option<(&RawPath, &Place)> {
        None
    }

    /// The accesses that policy has to allow. All of them are needed.
    fn requests(&self) -> Vec<AccessRequest<'_>>;

    /// The ids of the journal entries that this change undoes, the newest first.
    fn undoes(&self) -> &[String];

    /// The proposal that the user sees in the approval request.
    fn proposal(&mut self, view: &View<'_>) -> Result<Proposal, ConfineError>;

    /// The hash that an approval covers: of the state before and after the change.
    fn change_hash(&self) -> Result<Hash, ConfineError>;

    /// Whether the answer includes the diff even if this is not a dry run.
    fn answers_with_diff(&self) -> bool {
        false
    }

    /// The diff for the answer, if both versions are text and small enough to compare.
    fn diff(&mut self, _: &View<'_>) -> Result<Option<String>, ConfineError> {
        Ok(None)
    }

    /// The numbers of added and removed lines, if both versions are text of a moderate size.
    fn line_counts(&mut self, _: &View<'_>) -> Option<(u64, u64)> {
        None
    }

    /// Fails if the operating system would refuse the change. Does not try it.
    fn check_possible(&self) -> Result<(), ConfineError>;

    /// The states before and after it, for the journal and the audit log.
    fn states(&self) -> Result<[State; 2], ConfineError>;

    /// The file that the change displaces, which the journal backs up.
    fn displaces(&mut self) -> Displaces<'_>;

    /// How many directories the change creates above its place, or above the place that it moves something to.
    fn made_parents(&self) -> usize {
        0
    }

    /// Writes new content ahead of the change, so that it is on its way to the disk while the journal gets its entry.
    fn write_ahead(&mut self) -> Result<(), ConfineError> {
        Ok(())
    }

    /// Makes the change.
    fn apply(self: Box<Self>, durability: Durability) -> Result<Applied, ConfineError>;
}

/// The access request of a change to one file.
fn file_request<'c>(change: &'c dyn Change, access: Access) -> Vec<AccessRequest<'c>> {
    vec![AccessRequest { access, path: change.path(), place: change.place(), directory: false }]
}

/// A change that was applied to the disk, and can still be rolled back.
pub(crate) struct Applied {
    /// The file after the change, for the ledger; `None` if there is none.
    pub(crate) fingerprint: Option<Fingerprint>,
    /// Undoes the change, unless another process has changed the file since. Until this is dropped, the old version
    /// is on the disk and the file is locked.
    pub(crate) roll_back: RollBack,
    /// Discards what only a rollback needs. If the process is killed after that, the next sweep restores nothing.
    pub(crate) discard_rollback: Option<Box<dyn FnOnce()>>,
    /// Displaced files of killed processes in the same directory, which the sweep could not verify.
    pub(crate) unverified: Vec<Name>,
    /// Whether the change may have replaced a file that another process created at the same moment.
    pub(crate) may_have_replaced: bool,
}

/// Undoes a change.
pub(crate) type RollBack = Box<dyn FnOnce() -> Result<(), ConfineError>>;

impl Applied {
    /// A change without content: it displaced no file and wrote none.
    fn without_content(roll_back: impl FnOnce() -> Result<(), ConfineError> + 'static) -> Self {
        let (unverified, roll_back) = (Vec::new(), Box::new(roll_back));
        Self {
            fingerprint: None,
            roll_back,
            discard_rollback: None,
            unverified,
            may_have_replaced: false,
        }
    }

    /// A change that displaced something, which stays on the disk until this is dropped.
    fn displacing<T: 'static>(
        displaced: T,
        discard_rollback: impl FnOnce(&mut T) + 'static,
        put_back: impl FnOnce(T) -> Result<(), ConfineError> + 'static,
    ) -> Self {
        let displaced = Rc::new(RefCell::new(Some(displaced)));
        let kept = displaced.clone();
        let discard_rollback = move || {
            if let Some(displaced) = kept.borrow_mut().as_mut() {
                discard_rollback(displaced);
            }
        };
        let roll_back = move || displaced.take().map_or(Ok(()), put_back);
        let discard_rollback: Option<Box<dyn FnOnce()>> = Some(Box::new(discard_rollback));
        Self { discard_rollback, ..Self::without_content(roll_back) }
    }
}
