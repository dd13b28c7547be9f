//! Removes a file, and puts it back if it is not the one that was found.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::atomic::OldVersion;
use crate::dir::Dir;
use crate::lock::FileLock;
use crate::locked_entry::LockedEntry;
use crate::target::FoundDirectory;
use crate::temp_file::PutBack;
use crate::temp_name::Digest;
use crate::{
    Deadline, Durability, Error, Hash, Kind, Metadata, Name, Place, RawPath, Result, Target,
    Workspace,
};

/// A file or symlink, locked for its removal, with its state when it was found.
#[derive(Debug)]
pub struct Removal {
    place: Place,
    location: FoundDirectory,
    dir: Arc<Dir>,
    name: Name,
    meta: Metadata,
    link_target: Option<Vec<u8>>,
    hash: OnceCell<Hash>,
    deadline: Deadline,
    lock: Arc<FileLock>,
}

impl Workspace {
    /// Finds and locks a file or symlink for its removal. A symlink is not followed.
    ///
    /// Waits for other changes of it until `deadline`.
    pub fn removal(&self, path: &RawPath, deadline: &Deadline) -> Result<Removal> {
        let LockedEntry { place, location, dir, name, meta, link_target, lock } =
            self.lock_entry(path, deadline)?;
        if meta.kind == Kind::Directory {
            return Err(Error::IsDirectory);
        }
        let (hash, deadline) = (OnceCell::new(), deadline.clone());
        Ok(Removal { place, location, dir, name, meta, link_target, hash, deadline, lock })
    }
}

impl Removal {
    /// Its place.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Its metadata when it was found.
    pub fn meta(&self) -> &Metadata {
        &self.meta
    }

    /// The target of a symlink, as the link stores it.
    pub fn link_target(&self) -> Option<&[u8]> {
        self.link_target.as_deref()
    }

    pub(crate) fn parts(&self) -> (&Dir, &Name, &Metadata, &Deadline) {
        (&self.dir, &self.name, &self.meta, &self.deadline)
    }

    /// The hash of the file's content, computed once; `None` for a symlink.
    pub fn hash(&self) -> Result<Option<Hash>> {
        if self.meta.kind != Kind::File {
            return Ok(None);
        }
        if let Some(hash) = self.hash.get() {
            return Ok(Some(*hash));
        }
        let hash = self.hash_under(&self.name)?;
        Ok(Some(*self.hash.get_or_init(|| hash)))
    }

    /// The file's whole content. Its hash is remembered, because the removal is planned on this content. `None` for a
    /// symlink.
    pub fn content(&self) -> Result<Option<Vec<u8>>> {
        if self.meta.kind != Kind::File {
            return Ok(None);
        }
        let mut file = self.dir.file(&self.name)?;
        if !self.meta.same_stat(file.meta()) {
            return Err(Error::Changed);
        }
        let bytes = file.read_whole()?;
        let hash = crate::hash(&bytes);
        if *self.hash.get_or_init(|| hash) != hash {
            return Err(Error::Changed);
        }
        Ok(Some(bytes))
    }

    /// The hash of the found file, if it has this name now.
    fn hash_under(&self, name: &Name) -> Result<Hash> {
        let file = self.dir.file(name)?;
        if !self.meta.same_stat(file.meta()) {
            return Err(Error::Changed);
        }
        file.hash(&self.deadline)
    }

    /// Hashes the content, unless the times alone prove whether it has changed.
    pub(crate) fn prepare(&self) -> Result<()> {
        if self.meta.is_settled() {
            return Ok(());
        }
        match self.hash() {
            // A file that may be removed may be unreadable. Then only its times are compared.
            Err(Error::Denied) => Ok(()),
            Err(Error::NotFound | Error::IsDirectory | Error::NotRegular(_)) => Err(Error::Changed),
            other => other.map(drop),
        }
    }

    /// Its place, for a file or symlink that is created there after the removal.
    pub fn place_once_free(&self) -> Target {
        Target {
            place: self.place.clone(),
            location: self.location.clone(),
            dir: self.dir.clone(),
            missing: Vec::new(),
            name: self.name.clone(),
            original: None,
            deadline: self.deadline.clone(),
            _lock: self.lock.clone(),
        }
    }

    /// Fails if the operating system would not let this process remove it. Does not try it.
    pub fn check_removable(&self) -> Result<()> {
        self.dir.check_writable()
    }

    /// Removes it. It is renamed to a temp name, verified, and deleted when the result is dropped.
    pub fn remove(self, durability: Durability) -> Result<OldVersion> {
        self.prepare()?;
        let lock = self.dir.lock(&self.deadline)?;
        let unverified = self.dir.sweep(&lock, None, &self.deadline);
        self.location.check(&self.dir)?;
        self.deadline.check()?;
        self.check_ctime()?;
        let digest = Digest::new(&self.meta, self.hash.get());
        let mut temp = self.dir.set_aside(&self.name, digest, None)?;
        if let Err(error) = self.verify(&temp.name, durability) {
            return Err(match self.dir.put_back(&temp.name, &self.name) {
                PutBack::Done => error,
                PutBack::Taken | PutBack::Failed => temp.keep_and_report(),
            });
        }
        temp.delete_on_drop = true;
        Ok(OldVersion::new(temp, lock, unverified))
    }

    /// Fails if the file was changed and its modification time set back. Ctime shows that, until this process renames
    /// the file.
    fn check_ctime(&self) -> Result<()> {
        let (Some(hash), Ok(found)) = (self.hash.get(), self.dir.meta(&self.name)) else {
            return Ok(());
        };
        let hidden = self.meta.proven_unchanged_but_renamed(&found)
            && !self.meta.proven_unchanged(&found)
            && self.hash_under(&self.name)? != *hash;
        if hidden { Err(Error::Changed) } else { Ok(()) }
    }

    fn verify(&self, aside: &Name, durability: Durability) -> Result<()> {
        if !self.is_renamed(aside)? {
            return Err(Error::Changed);
        }
        self.location.check(&self.dir)?;
        if durability == Durability::Full {
            self.dir.sync()?;
        }
        self.deadline.check()
    }

    /// Whether the renamed file is the one that was found, with the same content.
    fn is_renamed(&self, aside: &Name) -> Result<bool> {
        let found = self.dir.meta(aside)?;
        if self.meta.proven_unchanged_but_renamed(&found) {
            return Ok(true);
        }
        match self.hash.get() {
            Some(hash) if self.meta.same_stat(&found) => Ok(self.hash_under(aside)? == *hash),
            // This is a symlink, which cannot be written to, or a file that this process may not read.
            _ => Ok(self.meta.same_stat(&found)),
        }
    }
}
