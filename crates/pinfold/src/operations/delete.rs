//! `Delete`: deletes one file or symlink.

use pinfold_confine::{Place, RawPath};

use crate::change::Remove;
use crate::{ChangeSet, Error, Operation, View};

/// Deletes one file. A symlink is deleted itself, wherever it points; a directory is refused.
///
/// ```
/// use pinfold::Session;
/// use pinfold::operations::{Delete, Write};
///
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// let session = Session::open([workspace])?;
/// session.perform(&Write::new("old.txt", "gone\n"))?;
/// let done = session.perform(&Delete::new("old.txt"))?;
/// assert_eq!(done.outcome.bytes, 5);
/// assert!(!workspace.join("old.txt").exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Delete {
    /// The file.
    pub path: RawPath,
}

/// A file that was deleted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Deleted {
    /// The place where it was.
    pub place: Place,
    /// Whether it was a symlink.
    pub link: bool,
    /// Its size in bytes.
    pub bytes: u64,
}

impl Delete {
    /// Deletes the file at a path.
    pub fn new(path: impl Into<RawPath>) -> Self {
        Self { path: path.into() }
    }
}

impl Operation for Delete {
    type Changes = ChangeSet;
    type Outcome = Deleted;

    fn plan(&self, view: &View<'_>) -> Result<(Deleted, ChangeSet), Error> {
        let removal = view.removal(&self.path)?;
        let deleted = Deleted {
            place: removal.place().clone(),
            link: removal.link_target().is_some(),
            bytes: removal.meta().len,
        };
        let remove = Remove { path: self.path.clone(), removal, undoes: Vec::new() };
        Ok((deleted, ChangeSet::of(remove)))
    }
}
