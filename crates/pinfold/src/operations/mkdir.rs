//! `Mkdir`: creates a directory.

use pinfold_confine::{Place, RawPath};

use crate::change::MakeDirectory;
use crate::{ChangeSet, Error, Operation, View};

/// Creates a directory, and those above it that are missing. An existing directory is a success; a file is
/// refused.
///
/// ```
/// use pinfold::Session;
/// use pinfold::operations::Mkdir;
///
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// let session = Session::open([workspace])?;
/// assert!(session.perform(&Mkdir::new("notes/2026"))?.outcome.created);
/// assert!(workspace.join("notes/2026").is_dir());
/// assert!(!session.perform(&Mkdir::new("notes/2026"))?.outcome.created);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Mkdir {
    /// The directory.
    pub path: RawPath,
}

/// A directory that was created or already existed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DirectoryMade {
    /// The directory's place.
    pub place: Place,
    /// Whether it was created.
    pub created: bool,
}

impl Mkdir {
    /// Creates the directory at a path.
    pub fn new(path: impl Into<RawPath>) -> Self {
        Self { path: path.into() }
    }
}

impl Operation for Mkdir {
    type Changes = ChangeSet;
    type Outcome = DirectoryMade;

    fn plan(&self, view: &View<'_>) -> Result<(DirectoryMade, ChangeSet), Error> {
        let target = match view.directory_target(&self.path) {
            Err(Error::IsDirectory { .. }) => {
                let place = view.directory(&self.path)?;
                return Ok((DirectoryMade { place, created: false }, ChangeSet::default()));
            }
            other => other?,
        };
        let made = DirectoryMade { place: target.place().clone(), created: true };
        let change =
            MakeDirectory { path: self.path.clone(), target, mode: None, undoes: Vec::new() };
        Ok((made, ChangeSet::of(change)))
    }
}
