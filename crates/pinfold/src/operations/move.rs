//! `Move`: moves a file, a directory or a symlink.

use pinfold_confine::{Kind, Place, RawPath};

use super::Parents;
use crate::change::Relocate;
use crate::limits::MAX_MOVED_ENTRIES;
use crate::{ChangeSet, Error, Operation, View};

/// Moves a file, a directory or a symlink to a free path. Mode, owner and times stay.
///
/// A symlink is moved itself, wherever it points. Nothing is ever replaced: if the new path is taken, the move fails with
/// [`Error::Exists`]. A root, a move into itself and a move to another file system are refused.
///
/// ```
/// use pinfold::operations::{Move, Write};
/// use pinfold::{Error, Session};
///
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// let session = Session::open([workspace])?;
/// session.perform(&Write::new("draft.txt", "text\n"))?;
/// session.perform(&Move::new("draft.txt", "done/final.txt"))?;
/// assert_eq!(std::fs::read_to_string(workspace.join("done/final.txt"))?, "text\n");
///
/// session.perform(&Write::new("draft.txt", "other\n"))?;
/// let refused = session.perform(&Move::new("draft.txt", "done/final.txt")).unwrap_err();
/// assert!(matches!(refused, Error::Exists { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Move {
    /// The file or directory to move.
    pub from: RawPath,
    /// Its new path.
    pub to: RawPath,
    /// What to do if the directory of the new path does not exist.
    pub parents: Parents,
}

/// A moved file, directory or symlink.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Moved {
    /// The old place.
    pub from: Place,
    /// The new place.
    pub to: Place,
    /// Its kind.
    pub kind: Kind,
}

impl Move {
    /// Moves what is at `from` to `to`, and creates missing directories.
    pub fn new(from: impl Into<RawPath>, to: impl Into<RawPath>) -> Self {
        Self { from: from.into(), to: to.into(), parents: Parents::Make }
    }
}

builder!(Move { with_parents(parents: Parents) });

impl Operation for Move {
    type Changes = ChangeSet;
    type Outcome = Moved;

    fn plan(&self, view: &View<'_>) -> Result<(Moved, ChangeSet), Error> {
        let relocate = plan(view, &self.from, &self.to)?;
        let relocation = &relocate.relocation;
        if self.parents == Parents::Refuse {
            view.check_parents(&self.to, relocation.to(), relocation.missing_parents().len())?;
        }
        let (from, to) = (relocation.from().clone(), relocation.to().clone());
        let moved = Moved { from, to, kind: relocation.meta().kind };
        Ok((moved, ChangeSet::of(relocate)))
    }
}

/// The change that moves the file or directory at `from` to `to`.
pub(super) fn plan(view: &View<'_>, from: &RawPath, to: &RawPath) -> Result<Relocate, Error> {
    let relocation = view.relocation(from, to)?;
    let tree = if relocation.meta().kind == Kind::Directory {
        let (at, goes_to) = ((from, relocation.from()), (to, relocation.to()));
        Some(view.check_tree(at, Some(goes_to), MAX_MOVED_ENTRIES)?)
    } else {
        None
    };
    let (path, to) = (from.clone(), to.clone());
    Ok(Relocate { path, to, relocation, tree, undoes: Vec::new() })
}
