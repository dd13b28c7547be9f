//! The entries of a walk: a candidate, before the filters, and an entry that is shown.

use std::os::fd::OwnedFd;

use rustix::fs::OFlags;

use crate::path::name_of;
use crate::workspace::opening;
use crate::{Error, File, Kind, Metadata, Place, RelPath, Result, Workspace, sys};

/// An entry that may be shown, or entered.
#[derive(Debug)]
pub struct Candidate<'c> {
    /// The number of the root that it is below.
    pub root: usize,
    pub(super) path: &'c [u8],
    pub(super) start: usize,
    /// Its type.
    pub kind: Kind,
}

impl Candidate<'_> {
    /// Its path, counted from its root.
    pub fn below_root(&self) -> &[u8] {
        self.path
    }

    /// Its path, counted from where the walk started.
    pub fn below_start(&self) -> &[u8] {
        &self.path[self.start..]
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        name_of(self.path)
    }
}

/// Something that a walk has found.
#[derive(Debug)]
pub struct WalkEntry<'f> {
    pub(super) workspace: &'f Workspace,
    pub(super) root: usize,
    pub(super) start: usize,
    pub(super) path: &'f [u8],
    pub(super) dir: &'f OwnedFd,
    /// Its type.
    pub kind: Kind,
}

impl WalkEntry<'_> {
    /// Its path, counted from where the walk started.
    pub fn below_start(&self) -> &[u8] {
        &self.path[self.start..]
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        name_of(self.path)
    }

    /// Where it is.
    pub fn place(&self) -> Place {
        Place { root: self.root, path: RelPath::proved(self.path.to_vec()) }
    }

    /// Its metadata. A symlink is not followed.
    pub fn meta(&self) -> Result<Metadata> {
        Ok(Metadata::of(&sys::stat_at(self.dir, self.name())?))
    }

    /// Opens it, if it is a regular file.
    pub fn open(&self) -> Result<File> {
        let fd = sys::open_at(self.dir, self.name(), OFlags::RDONLY);
        File::regular(fd.map_err(opening)?)
    }

    /// The regular file inside that a symlink leads to.
    pub fn linked_file(&self) -> Result<(Place, File)> {
        let path = RelPath::proved(self.path.to_vec());
        let (parent, _) = path.split().ok_or(Error::IsDirectory)?;
        self.workspace.linked_file(self.root, &parent, self.name())
    }

    /// The target of a symlink, as it is stored.
    pub fn link_target(&self) -> Result<Vec<u8>> {
        Ok(sys::read_link(self.dir, self.name())?)
    }
}
