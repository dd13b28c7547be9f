//! `RemoveTree`: deletes a directory with everything in it.

use pinfold_confine::{Kind, Place, RawPath};

use crate::change::{Change, RemoveFromTree};
use crate::limits::MAX_REMOVED_ENTRIES;
use crate::{ChangeSet, Error, Operation, View};

/// Deletes a directory with everything in it, or nothing. Undo restores all of it.
///
/// A symlink inside is deleted itself, wherever it points. A root, a directory with more than
/// [`MAX_REMOVED_ENTRIES`](crate::limits::MAX_REMOVED_ENTRIES) entries, and one that holds a mount point, a named pipe,
/// a socket or a device are refused.
///
/// ```
/// use pinfold::operations::{RemoveTree, Write};
/// use pinfold::Session;
///
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// let session = Session::open([workspace])?;
/// session.perform(&Write::new("old/notes/a.txt", "one\n"))?;
/// session.perform(&Write::new("old/b.txt", "two\n"))?;
/// let done = session.perform(&RemoveTree::new("old"))?;
/// assert_eq!((done.outcome.files, done.outcome.directories), (2, 2));
/// assert!(!workspace.join("old").exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RemoveTree {
    /// The directory.
    pub path: RawPath,
}

/// A directory that was deleted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TreeRemoved {
    /// The place where it was.
    pub place: Place,
    /// How many files and symlinks were in it.
    pub files: usize,
    /// How many directories were deleted, including itself.
    pub directories: usize,
}

impl RemoveTree {
    /// Deletes the directory at a path.
    pub fn new(path: impl Into<RawPath>) -> Self {
        Self { path: path.into() }
    }
}

impl Operation for RemoveTree {
    type Changes = ChangeSet;
    type Outcome = TreeRemoved;

    fn plan(&self, view: &View<'_>) -> Result<(TreeRemoved, ChangeSet), Error> {
        let removal = view.tree_removal(&self.path, MAX_REMOVED_ENTRIES)?;
        let is_directory = |kind: Kind| kind == Kind::Directory;
        let entries = removal.entries().iter();
        let directories = entries.filter(|entry| is_directory(entry.meta.kind)).count();
        let removed = TreeRemoved {
            place: removal.place().clone(),
            files: removal.entries().len() - directories,
            directories: directories + 1,
        };
        let parts = RemoveFromTree::all(&self.path, removal).into_iter();
        let changes = parts.map(|part| Box::new(part) as Box<dyn Change>).collect();
        Ok((removed, ChangeSet(changes)))
    }
}
