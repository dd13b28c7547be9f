//! Replaces a file's content, all of it or nothing.
//!
//! The new content goes into a temp file beside the file, which takes the file's place (`exchange`). A
//! lock on the directory keeps other Pinfold processes out meanwhile; other programs are noticed.
//! Whatever fails, the file has its old content, and the temp file and new directories are gone. Where
//! a directory was moved to where Landlock forbids to change it, the error says what is left in it.

use std::sync::Arc;

use rustix::io::Errno;

use crate::dir::Dir;
use crate::exchange::Swap;
use crate::lock::DirLock;
use crate::parents::Parents;
use crate::target::Original;
use crate::temp_file::{PutBack, TempEntry, TempFile, retry};
use crate::temp_name::Digest;
use crate::{Error, Metadata, Name, Result, Target, sys};

/// How much is flushed to the disk before a change is complete.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, Eq, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Nothing: the change survives a crash of the process, but perhaps not a loss of power.
    None,
    /// The content, before the rename: a loss of power leaves the old or the new content.
    #[default]
    Data,
    /// The directory too: a loss of power after the call leaves the new content.
    Full,
}

/// A change that was made.
#[derive(Debug)]
pub struct Committed {
    /// The new file; `None` in the rare case that `fstat` fails afterwards.
    pub meta: Option<Metadata>,
    /// The old file; `None` for a new one.
    pub old_version: Option<OldVersion>,
    /// Files in the same directory with content that a killed process displaced. It may exist
    /// nowhere else.
    pub unverified: Vec<Name>,
    /// Whether the file system has no call that gives a file a name without replacing another. A file that
    /// another process created at the same moment was then replaced.
    pub may_have_replaced: bool,
}

/// The file that was replaced or removed, still on the disk under a temp name. Dropping this
/// deletes it.
///
/// The directory stays locked meanwhile, so that no other process takes it for left behind.
#[derive(Debug)]
pub struct OldVersion {
    entry: TempEntry,
    _lock: DirLock,
    /// As [`Committed::unverified`].
    pub unverified: Vec<Name>,
}

impl OldVersion {
    pub(crate) fn new(entry: TempEntry, lock: DirLock, unverified: Vec<Name>) -> Self {
        Self { entry, _lock: lock, unverified }
    }

    /// It will not be put back any more: nor does a sweep, if this process is killed before it is deleted.
    pub fn settle(&mut self) {
        self.entry.give_up();
    }

    /// Gives the old file its name back, unless that is taken.
    pub fn put_back(mut self, name: &Name) -> Result<()> {
        self.entry.delete_on_drop = false;
        match self.entry.dir.put_back(&self.entry.name, name) {
            PutBack::Done => Ok(()),
            PutBack::Taken | PutBack::Failed => Err(self.entry.keep()),
        }
    }

    /// Exchanges the old file with the new one, which has the name.
    fn exchange_back(mut self, name: &Name) -> Result<()> {
        let TempEntry { dir, name: temp, delete_on_drop, .. } = &mut self.entry;
        match retry(|| sys::exchange(dir.fd(), temp.as_bytes(), name.as_bytes())) {
            Some(()) => {
                // The temp name has the new content now.
                *delete_on_drop = true;
                Ok(())
            }
            None => {
                // Not every file system can exchange.
                retry(|| sys::remove(dir.fd(), name.as_bytes()));
                self.put_back(name)
            }
        }
    }
}

impl Target {
    /// Makes `content` the file's content.
    ///
    /// [`Error::Changed`] means that the file is not as it was found. Mode, owner and extended
    /// attributes of an existing file are kept, without set-user-id and set-group-id; missing
    /// directories are created.
    pub fn replace(&self, content: &[u8], durability: Durability) -> Result<Committed> {
        self.replace_with_mode(content, durability, None)
    }

    /// As [`Self::replace`]; a new file gets `mode`.
    pub fn replace_with_mode(
        &self,
        content: &[u8],
        durability: Durability,
        mode: Option<u32>,
    ) -> Result<Committed> {
        if let Some(original) = &self.original {
            match sys::may_write(self.dir.fd(), self.name.as_bytes()) {
                Err(Errno::NOENT) => return Err(Error::Changed),
                other => other?,
            }
            original.prepare()?;
        }
        let parents = self.make_parents(durability)?;
        let committed = self.write_and_exchange(parents.dir(), content, durability, mode)?;
        parents.keep();
        Ok(committed)
    }

    fn write_and_exchange(
        &self,
        dir: &Arc<Dir>,
        content: &[u8],
        durability: Durability,
        mode: Option<u32>,
    ) -> Result<Committed> {
        let mode = mode.or(self.location.root.is_private().then_some(0o600));
        // A new file has the mode that the system gives new files, from the start. Only the owner
        // can read the new content of an existing file until it has that file's mode.
        let first = if self.original.is_some() || mode.is_some() { 0o600 } else { 0o666 };
        let temp = TempFile::create(dir, first, self.original.as_ref().map(Original::digest));
        // The file itself may be written, so it is the directory.
        let temp = temp.map_err(|error| match error {
            Error::Denied if self.original.is_some() => Error::DirectoryDenied,
            other => other,
        })?;
        sys::write_all(&temp.fd, content)?;
        match (&self.original, mode) {
            (Some(original), _) => temp.copy_metadata(original)?,
            (None, Some(mode)) => sys::change_mode(&temp.fd, mode & 0o1777)?,
            (None, None) => {}
        }
        if durability != Durability::None {
            sys::sync_data(&temp.fd)?;
        }
        let lock = dir.lock(&self.deadline)?;
        let unverified = dir.sweep(&lock, Some(&temp.entry.name), &self.deadline);
        self.check_directory(dir)?;
        // The call may have been answered while a system call above hung: it must change nothing then.
        self.deadline.check()?;
        let swap = Swap::new(self, dir, temp, lock, unverified, durability);
        match &self.original {
            Some(original) => swap.exchange(original),
            None => swap.create(),
        }
    }

    /// Undoes [`Self::replace`]: the old file has its name again, or the new one is gone.
    ///
    /// Refuses a file that another process has changed since.
    pub fn roll_back(&self, made: Committed) -> Result<()> {
        let dir = match &made.old_version {
            Some(old) => old.entry.dir.clone(),
            None => self.current_dir()?,
        };
        let now = match dir.meta(&self.name) {
            Err(Error::NotFound) => None,
            other => Some(other?),
        };
        let is_ours = now.is_some_and(|now| made.meta.is_some_and(|made| made.same_stat(&now)));
        match (made.old_version, now) {
            (Some(old), None) => old.put_back(&self.name),
            (Some(old), Some(_)) if is_ours => old.exchange_back(&self.name),
            (Some(mut old), Some(_)) => Err(old.entry.keep()),
            (None, None) => Ok(()),
            (None, Some(_)) if is_ours => {
                let removed = retry(|| sys::remove(dir.fd(), self.name.as_bytes()));
                removed.ok_or(Error::CreatedRemains { emptied: false })
            }
            (None, Some(_)) => Err(Error::Changed),
        }
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

    /// The directory that the path leads to now.
    pub(crate) fn current_dir(&self) -> Result<Arc<Dir>> {
        let fd = self.location.root.open_below(&self.location.directory, sys::DIR_PATH)?;
        Ok(Arc::new(Dir::new(fd)?))
    }

    /// Creates the directories that the file needs.
    pub(crate) fn make_parents(&self, durability: Durability) -> Result<Parents<'_>> {
        let mode = if self.location.root.is_private() { 0o700 } else { 0o777 };
        Parents::make(&self.dir, &self.missing, mode, durability)
    }

    /// Creates a symlink where nothing is.
    pub fn link(&self, to: &[u8]) -> Result<()> {
        let parents = self.make_parents(Durability::None)?;
        let dir = parents.dir();
        self.check_directory(dir)?;
        self.deadline.check()?;
        match sys::make_link(dir.fd(), to, self.name.as_bytes()) {
            Err(Errno::EXIST | Errno::NOENT) => return Err(Error::Changed),
            other => other?,
        }
        if let Err(error) = self.check_directory(dir).and_then(|()| self.deadline.check()) {
            let removed = retry(|| sys::remove(dir.fd(), self.name.as_bytes()));
            return Err(removed.map_or(Error::CreatedRemains { emptied: false }, |()| error));
        }
        parents.keep();
        Ok(())
    }

    /// Creates a directory where nothing is, with `mode` if it is to have a certain one.
    pub fn make_directory(&self, durability: Durability, mode: Option<u32>) -> Result<()> {
        let parents = self.make_parents(durability)?;
        let dir = parents.dir();
        let lock = dir.lock(&self.deadline)?;
        // A directory that a killed process has set aside goes back first.
        dir.sweep(&lock, None, &self.deadline);
        self.check_directory(dir)?;
        self.deadline.check()?;
        match sys::make_dir(dir.fd(), self.name.as_bytes()) {
            Err(Errno::EXIST | Errno::NOENT) => return Err(Error::Changed),
            other => other?,
        }
        if let Err(error) = self.check_made(dir, durability, mode) {
            // `rmdir` fails unless it is empty, so nothing that others put there is lost.
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

    /// Fails if the path no longer leads to the directory that the change goes to.
    pub(crate) fn check_directory(&self, dir: &Dir) -> Result<()> {
        self.location.check(dir)
    }
}

impl Original {
    /// Hashes the content, unless the times alone will show whether it has changed.
    fn prepare(&self) -> Result<()> {
        if !self.file.meta().is_settled() {
            self.hash()?;
        }
        Ok(())
    }

    pub(crate) fn digest(&self) -> Digest {
        Digest::new(self.file.meta(), self.hash.get())
    }

    /// Whether `found` may be this file with this content.
    ///
    /// Where the times are too recent to tell, [`Self::is_renamed`] hashes the content anyway.
    pub(crate) fn may_be(&self, found: &Metadata) -> Result<bool> {
        let known = self.file.meta();
        if known.proven_unchanged(found) {
            return Ok(true);
        }
        // A modification time that was set back does not hide the change of ctime.
        let hidden = known.proven_unchanged_but_renamed(found);
        if hidden { self.has_same_content(found) } else { Ok(known.same_stat(found)) }
    }

    /// Whether `found`, which this process has renamed, is this file with this content.
    pub(crate) fn is_renamed(&self, found: &Metadata) -> Result<bool> {
        let same = self.file.meta().proven_unchanged_but_renamed(found);
        Ok(same || self.has_same_content(found)?)
    }

    /// If it is the same inode, the open handle reads it.
    fn has_same_content(&self, found: &Metadata) -> Result<bool> {
        match self.hash.get() {
            Some(hash) if self.file.meta().same_stat(found) => Ok(self.hash_now()? == *hash),
            _ => Ok(false),
        }
    }
}
