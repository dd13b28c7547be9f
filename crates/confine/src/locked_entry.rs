//! An entry of a directory, locked for one change: a file, a symlink or a directory.

use std::sync::Arc;

use rustix::io::Errno;

use crate::dir::Dir;
use crate::lock::FileLock;
use crate::target::FoundDirectory;
use crate::temp_file::retry;
use crate::{
    Deadline, Durability, Error, Kind, Metadata, Name, Place, RawPath, Result, Workspace, sys,
};

/// An entry, locked for one change, with its state when it was found. A symlink is not followed.
#[derive(Debug)]
pub(crate) struct LockedEntry {
    pub(crate) place: Place,
    pub(crate) location: FoundDirectory,
    pub(crate) dir: Arc<Dir>,
    pub(crate) name: Name,
    pub(crate) meta: Metadata,
    /// The target of a symlink, as the link stores it.
    pub(crate) link_target: Option<Vec<u8>>,
    pub(crate) lock: Arc<FileLock>,
}

impl Workspace {
    /// Finds and locks an entry. A root is [`Error::IsDirectory`], since it is not an entry of a directory in the
    /// workspace.
    ///
    /// Waits for other changes of the entry until `deadline`.
    pub(crate) fn lock_entry(&self, path: &RawPath, deadline: &Deadline) -> Result<LockedEntry> {
        for _ in 0..sys::MAX_RACES {
            let place = self.lstat(path)?.place;
            let Some((parent, name)) = place.path.split() else { return Err(Error::IsDirectory) };
            let dir = match self.root(place.root).open_below(&parent, sys::DIR_PATH) {
                // Another process has just put a symlink there, so the path is resolved again.
                Err(Errno::LOOP) => continue,
                other => Dir::shared(other?)?,
            };
            let lock = Arc::new(FileLock::take(dir.identity(), vec![name.clone()], deadline)?);
            let meta = dir.meta(&name)?;
            let link_target = match meta.kind {
                Kind::Symlink => Some(sys::read_link(dir.fd(), name.as_bytes())?),
                Kind::File | Kind::Directory => None,
                other => return Err(Error::NotRegular(other)),
            };
            if path.names_a_directory() && meta.kind != Kind::Directory {
                return Err(Error::NotADirectory);
            }
            let location =
                FoundDirectory { root: self.root(place.root).clone(), directory: parent };
            return Ok(LockedEntry { place, location, dir, name, meta, link_target, lock });
        }
        Err(Error::Changed)
    }

    /// Finds and locks an empty directory for its removal. A symlink is not followed.
    pub fn directory_removal(
        &self,
        path: &RawPath,
        deadline: &Deadline,
    ) -> Result<DirectoryRemoval> {
        let entry = self.lock_entry(path, deadline)?;
        if entry.meta.kind != Kind::Directory {
            return Err(Error::NotADirectory);
        }
        Ok(DirectoryRemoval { entry, deadline: deadline.clone() })
    }

    /// Removes the empty directories above a place. Removes at most `max` of them, and never a root.
    pub fn remove_empty_parents(&self, place: &Place, max: usize) {
        let mut path = place.path.clone();
        for _ in 0..max {
            let Some((parent, _)) = path.split() else { return };
            let Some((above, name)) = parent.split() else { return };
            // `rmdir` fails unless the directory is empty, so nothing is lost.
            let remove = || {
                let dir = self.root(place.root).open_below(&above, sys::DIR_PATH)?;
                match sys::remove_dir(dir, name.as_bytes()) {
                    Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
                    other => other.map(|()| true),
                }
            };
            if retry(remove) != Some(true) {
                return;
            }
            path = parent;
        }
    }
}

/// An empty directory, locked for its removal, with its state when it was found.
#[derive(Debug)]
pub struct DirectoryRemoval {
    entry: LockedEntry,
    deadline: Deadline,
}

impl DirectoryRemoval {
    /// Its place.
    pub fn place(&self) -> &Place {
        &self.entry.place
    }

    /// Its metadata when it was found.
    pub fn meta(&self) -> &Metadata {
        &self.entry.meta
    }

    /// Fails if the operating system would not let this process remove it. Does not try it.
    pub fn check_removable(&self) -> Result<()> {
        self.entry.dir.check_writable()
    }

    /// Removes it, if it is still the same directory and empty. Otherwise fails with [`Error::Changed`] or
    /// [`Error::NotEmpty`].
    pub fn remove(&self, durability: Durability) -> Result<()> {
        let LockedEntry { location, dir, name, meta, .. } = &self.entry;
        let _lock = dir.lock(&self.deadline)?;
        location.check(dir)?;
        match dir.meta(name) {
            Ok(found) if found.identity == meta.identity => {}
            Ok(_) | Err(Error::NotFound) => return Err(Error::Changed),
            Err(other) => return Err(other),
        }
        self.deadline.check()?;
        match sys::remove_dir(dir.fd(), name.as_bytes()) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Err(Error::Changed),
            Err(Errno::NOTEMPTY | Errno::EXIST) => return Err(Error::NotEmpty),
            other => other?,
        }
        if durability == Durability::Full {
            // The directory is removed. Only a loss of power could restore it.
            let _ = dir.sync();
        }
        Ok(())
    }
}
