//! Replaces a file's content atomically.
//!
//! The new content goes into a temp file beside the file, which then takes the file's place (`exchange`). That of a new
//! file has no name before it is complete, if the file system can do that. A lock on the directory excludes other
//! Pinfold processes meanwhile, and changes of other programs are detected. If anything fails, the file has its old
//! content, and the temp file and new directories are removed. If the directory was moved to where Landlock forbids
//! changes, the error says what is left in it.

use std::sync::Arc;

use rustix::io::Errno;

use crate::dir::Dir;
use crate::exchange::Swap;
use crate::lock::DirLock;
use crate::parents::Parents;
use crate::target::Original;
use crate::temp_file::{PutBack, TempEntry, TempFile, retry};
use crate::temp_name::Digest;
use crate::{Error, File, Metadata, Name, Result, Target, sys};

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

/// A file that was replaced or created.
#[derive(Debug)]
pub struct ReplacedFile {
    /// The new file; `None` in the rare case that `fstat` fails afterwards.
    pub meta: Option<Metadata>,
    /// The old file; `None` for a new one.
    pub old_version: Option<OldVersion>,
    /// Displaced files of killed processes in the same directory. Their content may exist nowhere else.
    pub unverified: Vec<Name>,
    /// Whether a file that another process created at the same moment may have been overwritten, because the file
    /// system has neither `RENAME_NOREPLACE` nor hard links.
    pub may_have_replaced: bool,
}

/// New content that is written beside its target, but not in its place. See [`Target::write_ahead`].
#[derive(Debug)]
pub struct WrittenAhead {
    temp: TempFile,
}

/// The replaced or removed file, still on the disk under a temp name. Dropping this deletes it.
///
/// The directory stays locked meanwhile, so that no other process sweeps it.
#[derive(Debug)]
pub struct OldVersion {
    entry: TempEntry,
    _lock: DirLock,
    /// As [`ReplacedFile::unverified`].
    pub unverified: Vec<Name>,
}

impl OldVersion {
    pub(crate) fn new(entry: TempEntry, lock: DirLock, unverified: Vec<Name>) -> Self {
        Self { entry, _lock: lock, unverified }
    }

    /// Gives up the rollback: from now on, neither this process nor a sweep puts the file back.
    pub fn discard_rollback(&mut self) {
        self.entry.discard_rollback();
    }

    /// Gives the old file its name back, unless the name is taken.
    pub fn put_back(mut self, name: &Name) -> Result<()> {
        self.entry.delete_on_drop = false;
        match self.entry.dir.put_back(&self.entry.name, name) {
            PutBack::Done => Ok(()),
            PutBack::Taken | PutBack::Failed => Err(self.entry.keep_and_report()),
        }
    }

    /// Exchanges the old file with the new one.
    fn exchange_back(mut self, name: &Name) -> Result<()> {
        let TempEntry { dir, name: temp, delete_on_drop, .. } = &mut self.entry;
        match retry(|| sys::exchange(dir.fd(), temp.as_bytes(), name.as_bytes())) {
            Some(()) => {
                // The temp name has the new content now.
                *delete_on_drop = true;
                Ok(())
            }
            None => {
                // Some file systems cannot exchange.
                retry(|| sys::remove(dir.fd(), name.as_bytes()));
                self.put_back(name)
            }
        }
    }
}

impl Target {
    /// Replaces the file's content.
    ///
    /// Fails with [`Error::Changed`] if the file has changed since it was found. Keeps mode, owner and extended
    /// attributes of an existing file, without set-user-id and set-group-id. Creates missing directories.
    pub fn replace(&self, content: &[u8], durability: Durability) -> Result<ReplacedFile> {
        self.replace_with_metadata(content, durability, None, None)
    }

    /// As [`Self::replace`]; a new file gets `mode`. With `like`, the file gets the owner and extended attributes of
    /// that file, and `mode`, even if it exists. If this process may not give it to the owner, it stays its own.
    pub fn replace_with_metadata(
        &self,
        content: &[u8],
        durability: Durability,
        mode: Option<u32>,
        like: Option<&File>,
    ) -> Result<ReplacedFile> {
        self.check_original()?;
        let parents = self.make_parents(durability)?;
        let temp = self.write_temp(parents.dir(), content, (mode, like))?;
        let committed = self.put_in_place(parents.dir(), temp, durability)?;
        parents.keep();
        Ok(committed)
    }

    /// The first part of [`Self::replace_with_metadata`]: writes the content beside the file, and begins to write it to
    /// the disk, so that the flush waits less. [`Self::replace_with_written`] makes the change. Dropping the result
    /// deletes the content. Returns `None` if directories are missing, since nothing is created before the change.
    pub fn write_ahead(
        &self,
        content: &[u8],
        mode: Option<u32>,
        like: Option<&File>,
    ) -> Result<Option<WrittenAhead>> {
        if !self.missing.is_empty() {
            return Ok(None);
        }
        self.check_original()?;
        let temp = self.write_temp(&self.dir, content, (mode, like))?;
        sys::start_writing_back(&temp.fd, content.len());
        Ok(Some(WrittenAhead { temp }))
    }

    /// As [`Self::replace_with_metadata`], with the content that [`Self::write_ahead`] wrote for this target.
    pub fn replace_with_written(
        &self,
        written: WrittenAhead,
        durability: Durability,
    ) -> Result<ReplacedFile> {
        self.put_in_place(&self.dir, written.temp, durability)
    }

    /// Fails if this process may not write to the file, and sees to it that a change of it will be detected.
    fn check_original(&self) -> Result<()> {
        let Some(original) = &self.original else { return Ok(()) };
        match sys::may_write(self.dir.fd(), self.name.as_bytes()) {
            Err(Errno::NOENT) => return Err(Error::Changed),
            other => other?,
        }
        original.prepare()
    }

    /// Writes the new content into a temp file with the metadata that the file is to have.
    fn write_temp(
        &self,
        dir: &Arc<Dir>,
        content: &[u8],
        (mode, like): (Option<u32>, Option<&File>),
    ) -> Result<TempFile> {
        let mode = mode.or(self.location.root.is_private().then_some(0o600));
        // A new file gets the default mode of new files from the start. The new content of an existing file is
        // private to the owner until it gets that file's mode.
        let is_private = self.original.is_some() || mode.is_some() || like.is_some();
        let first = if is_private { 0o600 } else { 0o666 };
        let displaces = self.original.as_ref().map(Original::digest);
        // The file itself is writable, so the error is about the directory.
        let temp =
            TempFile::create_unnamed(dir, first, displaces).map_err(|error| match error {
                Error::Denied if self.original.is_some() => Error::DirectoryDenied,
                other => other,
            })?;
        sys::write_all(&temp.fd, content)?;
        match (&self.original, like, mode) {
            (original, Some(like), mode) => {
                // Another user's file must not become this user's.
                original.as_ref().map_or(Ok(()), |original| temp.copy_owner(&original.file))?;
                temp.restore_metadata(like, mode.unwrap_or(like.meta().mode))?;
            }
            (Some(original), None, _) => temp.copy_metadata(&original.file)?,
            (None, None, Some(mode)) => sys::change_mode(&temp.fd, mode & 0o1777)?,
            (None, None, None) => {}
        }
        Ok(temp)
    }

    /// Flushes the temp file, and gives it the file's name.
    fn put_in_place(
        &self,
        dir: &Arc<Dir>,
        temp: TempFile,
        durability: Durability,
    ) -> Result<ReplacedFile> {
        if durability != Durability::None {
            sys::sync_data(&temp.fd)?;
        }
        let lock = dir.lock(&self.deadline)?;
        let unverified = dir.sweep(&lock, Some(&temp.entry.name), &self.deadline);
        self.check_directory(dir).map_err(|error| match error {
            // XFS and Btrfs create a file without a name in a removed directory, too. The change is planned again.
            Error::DirectoryMoved if temp.is_unnamed && dir.is_removed() => Error::Changed,
            other => other,
        })?;
        // If a system call above has hung, the call may have been answered already. Then it must change nothing.
        self.deadline.check()?;
        let swap = Swap::new(self, dir, temp, lock, unverified, durability);
        match &self.original {
            Some(original) => swap.exchange(original),
            None => swap.create(),
        }
    }

    /// Undoes [`Self::replace`]: gives the old file its name back, or removes the new one.
    ///
    /// Refuses a file that another process has changed since.
    pub fn roll_back(&self, made: ReplacedFile) -> Result<()> {
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
            (Some(mut old), Some(_)) => Err(old.entry.keep_and_report()),
            (None, None) => Ok(()),
            (None, Some(_)) if is_ours => {
                let removed = retry(|| sys::remove(dir.fd(), self.name.as_bytes()));
                removed.ok_or(Error::CreatedRemains { emptied: false })
            }
            (None, Some(_)) => Err(Error::Changed),
        }
    }

    /// The directory that the path currently leads to.
    pub(crate) fn current_dir(&self) -> Result<Arc<Dir>> {
        let fd = self.location.root.open_below(&self.location.directory, sys::DIR_PATH)?;
        Ok(Arc::new(Dir::new(fd)?))
    }

    /// Creates the missing directories above the file.
    pub(crate) fn make_parents(&self, durability: Durability) -> Result<Parents<'_>> {
        let mode = if self.location.root.is_private() { 0o700 } else { 0o777 };
        Parents::make(&self.dir, &self.missing, mode, durability)
    }

    /// Fails if the path no longer leads to the directory of the change.
    pub(crate) fn check_directory(&self, dir: &Dir) -> Result<()> {
        self.location.check(dir)
    }
}

impl Original {
    /// Hashes the content, unless the times alone prove whether it has changed.
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
    /// If the times are too recent, [`Self::is_renamed`] hashes the content anyway.
    pub(crate) fn may_be(&self, found: &Metadata) -> Result<bool> {
        let known = self.file.meta();
        if known.proven_unchanged(found) {
            return Ok(true);
        }
        // Setting the modification time back does not hide a change, since ctime changes.
        let hidden = known.proven_unchanged_but_renamed(found);
        if hidden { self.has_same_content(found) } else { Ok(known.same_stat(found)) }
    }

    /// Whether `found`, which this process has renamed, is this file with this content.
    pub(crate) fn is_renamed(&self, found: &Metadata) -> Result<bool> {
        let same = self.file.meta().proven_unchanged_but_renamed(found);
        Ok(same || self.has_same_content(found)?)
    }

    /// The open handle can read it if the inode is the same.
    fn has_same_content(&self, found: &Metadata) -> Result<bool> {
        match self.hash.get() {
            Some(hash) if self.file.meta().same_stat(found) => Ok(self.hash_now()? == *hash),
            _ => Ok(false),
        }
    }
}
