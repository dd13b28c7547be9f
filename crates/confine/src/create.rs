//! Creates symlinks and directories at free paths, and removes them again for a rollback.

use rustix::io::Errno;

use crate::dir::Dir;
use crate::temp_file::retry;
use crate::{Durability, Error, Result, Target, sys};

impl Target {
    /// Creates a symlink at a free path.
    pub fn link(&self, to: &[u8], durability: Durability) -> Result<()> {
        let parents = self.make_parents(durability)?;
        let dir = parents.dir();
        self.check_directory(dir)?;
        self.deadline.check()?;
        match sys::make_link(dir.fd(), to, self.name.as_bytes()) {
            Err(Errno::EXIST | Errno::NOENT) => return Err(Error::Changed),
            other => other?,
        }
        if let Err(error) = self.check_made(dir, durability, None) {
            let removed = retry(|| sys::remove(dir.fd(), self.name.as_bytes()));
            return Err(removed.map_or(Error::CreatedRemains { emptied: false }, |()| error));
        }
        parents.keep();
        Ok(())
    }

    /// Creates a directory at a free path, with `mode` if it is given.
    pub fn make_directory(&self, durability: Durability, mode: Option<u32>) -> Result<()> {
        let parents = self.make_parents(durability)?;
        let dir = parents.dir();
        let lock = dir.lock(&self.deadline)?;
        // If a killed process has set a directory aside, it gets its name back first.
        dir.sweep(&lock, None, &self.deadline);
        self.check_directory(dir)?;
        self.deadline.check()?;
        match sys::make_dir(dir.fd(), self.name.as_bytes()) {
            Err(Errno::EXIST | Errno::NOENT) => return Err(Error::Changed),
            other => other?,
        }
        if let Err(error) = self.check_made(dir, durability, mode) {
            // `rmdir` fails unless the directory is empty, so files of other processes are not lost.
            retry(|| sys::remove_dir(dir.fd(), self.name.as_bytes()));
            return Err(error);
        }
        parents.keep();
        Ok(())
    }

    fn check_made(&self, dir: &Dir, durability: Durability, mode: Option<u32>) -> Result<()> {
        if let Some(mode) = mode {
            let made = sys::open_at(dir.fd(), self.name.as_bytes(), sys::DIRECTORY)?;
            sys::change_mode(made, mode & 0o1777)?;
        }
        self.check_directory(dir)?;
        if durability == Durability::Full {
            dir.sync()?;
        }
        self.deadline.check()
    }

    /// Undoes [`Self::link`], if the symlink is still there.
    pub fn remove_link(&self, to: &[u8]) -> Result<()> {
        let dir = self.current_dir()?;
        match sys::read_link(dir.fd(), self.name.as_bytes()) {
            Ok(found) if found == to => {
                let removed = retry(|| sys::remove(dir.fd(), self.name.as_bytes()));
                removed.ok_or(Error::CreatedRemains { emptied: false })
            }
            Ok(_) => Err(Error::Changed),
            Err(Errno::NOENT) => Ok(()),
            Err(other) => Err(other.into()),
        }
    }

    /// Undoes [`Self::make_directory`], if the directory is empty.
    pub fn remove_directory(&self) -> Result<()> {
        match sys::remove_dir(self.current_dir()?.fd(), self.name.as_bytes()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Err(Error::NotEmpty),
            Err(other) => Err(other.into()),
        }
    }
}
