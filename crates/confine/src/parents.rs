//! Creates the missing directories for a new file, and removes them if the file is not created.

use std::sync::Arc;

use rustix::io::Errno;

use crate::dir::Dir;
use crate::root::step_into;
use crate::temp_file::retry;
use crate::{Durability, Error, Name, Result, sys};

/// The directory of a new file, with the directories that were created for it.
pub(crate) struct Parents<'t> {
    start: &'t Arc<Dir>,
    /// The directories below `start`, each inside the one before it. The flag says whether this call created it.
    below: Vec<(Name, bool, Option<Arc<Dir>>)>,
    /// The mode of created directories.
    mode: u32,
    keep: bool,
}

impl<'t> Parents<'t> {
    /// Creates the directories `missing`, each below the one before it.
    pub(crate) fn make(
        start: &'t Arc<Dir>,
        missing: &[Name],
        mode: u32,
        durability: Durability,
    ) -> Result<Self> {
        let mut parents = Self { start, below: Vec::new(), mode, keep: false };
        for name in missing {
            parents.make_one(name, durability)?;
        }
        Ok(parents)
    }

    fn make_one(&mut self, name: &Name, durability: Durability) -> Result<()> {
        let made = match sys::make_dir_with(self.dir().fd(), name.as_bytes(), self.mode) {
            Ok(()) => true,
            // Another process created it first.
            Err(Errno::EXIST) => false,
            // The directory above was removed, for example by another call that failed.
            Err(Errno::NOENT) => return Err(Error::Changed),
            Err(other) => return Err(other.into()),
        };
        // Recorded before anything else can fail, so that it is removed in that case.
        self.below.push((name.clone(), made, None));
        let parent = self.dir();
        if made && durability == Durability::Full {
            parent.sync()?;
        }
        let dir = match step_into(parent.fd(), name, sys::DIR_PATH) {
            Ok(fd) => Dir::new(fd)?,
            Err(Errno::LOOP | Errno::NOENT) => return Err(Error::Changed),
            Err(other) => return Err(other.into()),
        };
        if let Some((_, _, opened)) = self.below.last_mut() {
            *opened = Some(Arc::new(dir));
        }
        Ok(())
    }

    /// The deepest open directory.
    pub(crate) fn dir(&self) -> &Arc<Dir> {
        self.below.iter().rev().find_map(|(_, _, dir)| dir.as_ref()).unwrap_or(self.start)
    }

    /// Keeps the directories, since the file was created.
    pub(crate) fn keep(mut self) {
        self.keep = true;
    }
}

impl Drop for Parents<'_> {
    fn drop(&mut self) {
        while let Some((name, made, dir)) = self.below.pop() {
            drop(dir);
            if made && !self.keep {
                // `rmdir` fails unless the directory is empty, so no other file is lost.
                retry(|| sys::remove_dir(self.dir().fd(), name.as_bytes()));
            }
        }
    }
}
