//! Temp files: the new content of a file until it takes the file's place, and displaced files.
//!
//! A temp file is in the same directory as its file, since a rename cannot cross file systems.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::io::Errno;

use crate::dir::Dir;
use crate::temp_name::{Digest, TempName, kept_name};
use crate::{Durability, Error, File, Metadata, Name, Result, sys};

/// A directory entry with a temp name. Dropping this deletes it, unless its content is needed.
#[derive(Debug)]
pub(crate) struct TempEntry {
    pub(crate) dir: Arc<Dir>,
    pub(crate) name: Name,
    pub(crate) delete_on_drop: bool,
    /// The new content under this name, until it gets another name. It is emptied if the entry cannot be deleted, for
    /// example in a directory that was moved to where Landlock forbids changes.
    pub(crate) written: Option<Arc<OwnedFd>>,
}

impl TempEntry {
    /// Renames the entry to a name that is never swept, and returns the error with that name.
    pub(crate) fn keep_and_report(&mut self) -> Error {
        self.delete_on_drop = false;
        match keep(&self.dir, &self.name) {
            Some(kept) => self.name = kept,
            None => _ = self.change_digest(),
        }
        Error::RollbackFailed { kept: self.name.to_string() }
    }

    /// Changes the modification time of an entry that cannot be renamed, so that its digest no longer matches its
    /// name, and no sweep deletes it. Returns false if that fails.
    pub(crate) fn change_digest(&self) -> bool {
        let Ok(meta) = self.dir.meta(&self.name) else { return false };
        // This is more than the coarsest timestamps of a file system.
        let modified = meta.modified + Duration::from_secs(4);
        self.set_modified(modified) || self.set_modified_through_handle(modified)
    }

    /// As [`Self::set_modified`], for a directory in which nothing can be changed by name.
    fn set_modified_through_handle(&self, modified: SystemTime) -> bool {
        let file = self.dir.file(&self.name);
        file.is_ok_and(|file| retry(|| sys::set_modified(file.fd(), modified)).is_some())
    }

    /// Renames an entry with an aside name, so that the next sweep deletes it instead of putting it back.
    pub(crate) fn discard_rollback(&mut self) {
        let aside = TempName::parse(self.name.as_bytes()).is_some_and(|it| it.aside_of().is_some());
        if let (true, Ok(meta), Ok(temp)) = (aside, self.dir.meta(&self.name), TempName::new())
            && let Ok(name) = temp.with(Some(meta.identity.inode()), None).name()
            && retry(|| sys::rename(self.dir.fd(), self.name.as_bytes(), name.as_bytes())).is_some()
        {
            self.name = name;
        }
    }

    pub(crate) fn set_modified(&self, modified: SystemTime) -> bool {
        retry(|| sys::set_modified_at(self.dir.fd(), self.name.as_bytes(), modified)).is_some()
    }
}

/// Renames content that the user needs to a name that is shown and never swept.
pub(crate) fn keep(dir: &Dir, name: &Name) -> Option<Name> {
    let kept = kept_name().ok()?;
    retry(|| sys::rename(dir.fd(), name.as_bytes(), kept.as_bytes()))?;
    Some(kept)
}

impl Drop for TempEntry {
    fn drop(&mut self) {
        if !self.delete_on_drop {
            return;
        }
        if retry(|| sys::remove(self.dir.fd(), self.name.as_bytes())).is_some() {
            return;
        }
        match &self.written {
            Some(written) if sys::stat(written).is_ok_and(|it| Metadata::of(&it).links == 1) => {
                _ = retry(|| sys::truncate(written, 0));
            }
            Some(_) => {}
            None => self.discard_rollback(),
        }
    }
}

impl Dir {
    /// Renames a file to a temp name that identifies it, and that contains its old name unless it would be too long.
    /// `written` is the inode of the file that takes its place.
    pub(crate) fn set_aside(
        self: &Arc<Self>,
        name: &Name,
        displaces: Digest,
        written: Option<u64>,
    ) -> Result<TempEntry> {
        let short = TempName::new()?.with(written, Some(displaces));
        let long = short.clone().aside_in(self.identity(), name);
        for aside in [long.name(), short.name()] {
            let Ok(aside) = aside else { continue };
            match self.rename_aside(name, &aside) {
                Err(Errno::NAMETOOLONG) => {}
                Err(Errno::NOENT) => return Err(Error::Changed),
                other => {
                    other?;
                    let dir = self.clone();
                    return Ok(TempEntry {
                        dir,
                        name: aside,
                        delete_on_drop: false,
                        written: None,
                    });
                }
            }
        }
        Err(Errno::NAMETOOLONG.into())
    }

    fn rename_aside(&self, name: &Name, aside: &Name) -> Result<(), Errno> {
        let (from, to) = (name.as_bytes(), aside.as_bytes());
        match sys::rename_new(self.fd(), from, to) {
            // The name is random, so nothing is replaced.
            Err(errno) if sys::is_unsupported(errno) => sys::rename(self.fd(), from, to),
            other => other,
        }
    }

    /// Gives a file that was set aside its name back, unless the name is taken.
    pub(crate) fn put_back(&self, aside: &Name, name: &Name) -> PutBack {
        let (aside, name) = (aside.as_bytes(), name.as_bytes());
        let back = retry(|| match sys::rename_new(self.fd(), aside, name) {
            Err(Errno::EXIST) => Ok(PutBack::Taken),
            // A hard link does not replace anything, either.
            Err(errno) if sys::is_unsupported(errno) => match sys::link(self.fd(), aside, name) {
                Err(Errno::EXIST) => Ok(PutBack::Taken),
                Err(_) => match sys::stat_at(self.fd(), name) {
                    Err(Errno::NOENT) => {
                        sys::rename(self.fd(), aside, name).map(|()| PutBack::Done)
                    }
                    Ok(_) => Ok(PutBack::Taken),
                    Err(other) => Err(other),
                },
                Ok(()) => {
                    retry(|| sys::remove(self.fd(), aside));
                    Ok(PutBack::Done)
                }
            },
            other => other.map(|()| PutBack::Done),
        });
        back.unwrap_or(PutBack::Failed)
    }
}

/// The result of moving a file back to its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PutBack {
    /// It has its name back.
    Done,
    /// Another file has the name.
    Taken,
    /// It is still under the temp name.
    Failed,
}

/// Tries a step of a clean-up up to three times.
pub(crate) fn retry<T>(mut attempt: impl FnMut() -> rustix::io::Result<T>) -> Option<T> {
    (0..3).find_map(|_| attempt().ok())
}

/// The new content of a file, until it takes the file's place.
#[derive(Debug)]
pub(crate) struct TempFile {
    pub(crate) entry: TempEntry,
    pub(crate) fd: Arc<OwnedFd>,
    pub(crate) meta: Metadata,
    /// The file that it will displace, if there is one.
    displaces: Option<Digest>,
    /// Whether the file has no name yet. Then the entry is not in the directory, and a killed process leaves nothing.
    pub(crate) is_unnamed: bool,
}

impl TempFile {
    /// Creates a file without a name, or a temp file where the file system cannot. It will displace the file with the
    /// digest, if there is one.
    pub(crate) fn create_unnamed(
        dir: &Arc<Dir>,
        mode: u32,
        displaces: Option<Digest>,
    ) -> Result<Self> {
        let fd = match sys::create_unnamed(dir.fd(), mode) {
            // `EISDIR`: the kernel does not know the flag. `EPERM`: so ext4 reports that the directory was removed.
            Err(errno)
                if sys::is_unsupported(errno) || [Errno::ISDIR, Errno::PERM].contains(&errno) =>
            {
                return Self::create(dir, mode, displaces);
            }
            Err(Errno::NOENT) => return Err(Error::Changed),
            other => Arc::new(other?),
        };
        let meta = Metadata::of(&sys::stat(&fd)?);
        if mode == 0o666 && meta.mode & 0o777 == mode {
            // Before Linux 6.0, some file systems ignore the umask here.
            return Self::create(dir, mode, displaces);
        }
        let name = TempName::new()?.with(Some(meta.identity.inode()), displaces).name()?;
        let entry = TempEntry { dir: dir.clone(), name, delete_on_drop: false, written: None };
        Ok(Self { entry, fd, meta, displaces, is_unnamed: true })
    }

    /// Gives a file without a name its temp name. If that fails, a copy of the file gets one.
    pub(crate) fn give_temp_name(&mut self, durability: Durability) -> Result<()> {
        if !self.is_unnamed {
            return Ok(());
        }
        lock(&self.fd)?;
        let Self { entry, fd, .. } = self;
        match sys::link_unnamed(fd, entry.dir.fd(), entry.name.as_bytes()) {
            Ok(()) => {
                entry.delete_on_drop = true;
                entry.written = Some(fd.clone());
                self.is_unnamed = false;
            }
            Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::IO)) => return Err(errno.into()),
            Err(_) => *self = self.named_copy(durability)?,
        }
        Ok(())
    }

    /// Copies a file that cannot get a name into a temp file.
    ///
    /// Some file systems cannot name it, and without `/proc` older kernels have no way to.
    pub(crate) fn named_copy(&self, durability: Durability) -> Result<Self> {
        let copy = Self::create(&self.entry.dir, 0o600, self.displaces)?;
        copy_content(&self.fd, &copy.fd)?;
        copy.copy_metadata(&File::regular(self.fd.try_clone().map_err(Error::Os)?)?)?;
        if durability != Durability::None {
            sys::sync_data(&copy.fd)?;
        }
        Ok(copy)
    }

    /// Creates a temp file that will displace the file with the digest, if there is one.
    pub(crate) fn create(dir: &Arc<Dir>, mode: u32, displaces: Option<Digest>) -> Result<Self> {
        let temp_name = TempName::new()?;
        let name = temp_name.name()?;
        let fd = match sys::create_at(dir.fd(), name.as_bytes(), mode) {
            // The directory itself was removed.
            Err(Errno::NOENT) => return Err(Error::Changed),
            other => Arc::new(other?),
        };
        let written = Some(fd.clone());
        let mut entry = TempEntry { dir: dir.clone(), name, delete_on_drop: true, written };
        lock(&fd)?;
        let meta = Metadata::of(&sys::stat(&fd)?);
        let named = temp_name.with(Some(meta.identity.inode()), displaces).name()?;
        match sys::rename(dir.fd(), entry.name.as_bytes(), named.as_bytes()) {
            Err(Errno::NOENT) => return Err(Error::Changed),
            other => other?,
        }
        entry.name = named;
        Ok(Self { entry, fd, meta, displaces, is_unnamed: false })
    }

    /// Copies the file's owner, mode and extended attributes. The order matters: changing the owner clears bits of
    /// the mode, and the mode is part of an access list.
    pub(crate) fn copy_metadata(&self, original: &File) -> Result<()> {
        self.copy_owner(original)?;
        self.copy_mode_and_attributes(original, original.meta().mode)
    }

    /// As [`Self::copy_metadata`], for a file that does not exist any more: if this process may not give the file to
    /// the owner, it stays its own.
    pub(crate) fn restore_metadata(&self, backup: &File, mode: u32) -> Result<()> {
        match self.copy_owner(backup) {
            Err(Error::Owner { .. }) => {}
            other => other?,
        }
        self.copy_mode_and_attributes(backup, mode)
    }

    pub(crate) fn copy_owner(&self, original: &File) -> Result<()> {
        let Metadata { uid, gid, .. } = *original.meta();
        if (self.meta.uid, self.meta.gid) == (uid, gid) {
            return Ok(());
        }
        sys::change_owner(&self.fd, uid, gid).map_err(|errno| match errno {
            Errno::PERM => Error::Owner { uid, gid },
            other => other.into(),
        })
    }

    fn copy_mode_and_attributes(&self, original: &File, mode: u32) -> Result<()> {
        self.drop_attributes_but(original)?;
        // Without set-user-id and set-group-id, since the owner gave those rights to the old content.
        sys::change_mode(&self.fd, mode & 0o1777)?;
        copy_attributes(original, &self.fd)
    }

    /// Removes the attributes that the file does not have. A default access list of the directory would give other
    /// users access once the mode allows it.
    fn drop_attributes_but(&self, original: &File) -> Result<()> {
        let names = |file: &OwnedFd| match sys::attribute_names(file) {
            Err(errno) if sys::is_unsupported(errno) => Ok(Vec::new()),
            other => other,
        };
        let given = names(&self.fd)?;
        if given.is_empty() {
            return Ok(());
        }
        let kept = names(original.fd())?;
        let listed = |list: &[u8], name: &[u8]| list.split(|byte| *byte == 0).any(|n| n == name);
        let all = given.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        for name in all.filter(|name| !listed(&kept, name) && !is_part_of_every_file(name)) {
            match sys::remove_attribute(&self.fd, name) {
                Err(errno) if sys::is_missing_attribute(errno) => {}
                Err(errno) if is_refusal(errno) && is_set_by_system(name) => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Overwrites the new content with that of the displaced file, for a rollback if names cannot be changed.
    pub(crate) fn write_back(&self, original: &File) -> Result<()> {
        // Steps that can fail come first. Until the first write, the file has its new content.
        sys::seek_to(&self.fd, 0)?;
        sys::truncate(&self.fd, original.meta().len)?;
        copy_content(original.fd(), &self.fd)?;
        sys::sync_data(&self.fd)?;
        // The content is restored. Restoring its time may fail.
        _ = sys::set_modified(&self.fd, original.meta().modified);
        Ok(())
    }

    /// The current metadata. Returns `None` if `fstat` fails.
    pub(crate) fn meta_now(&self) -> Option<Metadata> {
        retry(|| sys::stat(&self.fd)).map(|stat| Metadata::of(&stat))
    }
}

/// Locks a temp file. The lock tells other processes that it is in use.
fn lock(temp: &OwnedFd) -> Result<()> {
    match sys::try_lock_temp(temp) {
        Err(errno) if sys::is_unlockable(errno) => Ok(()),
        other => Ok(other?),
    }
}

/// Writes the content of one file to the position of the other.
fn copy_content(from: &OwnedFd, to: &OwnedFd) -> Result<()> {
    let (mut buffer, mut read) = (vec![0; 64 * 1024], 0);
    while let more @ 1.. = sys::read_from(from, &mut buffer, read)? {
        sys::write_all(to, &buffer[..more])?;
        read += more as u64;
    }
    Ok(())
}

/// Copies a file's extended attributes and access list. Fails if one that users set cannot be copied.
pub(crate) fn copy_attributes(from: &File, to: &OwnedFd) -> Result<()> {
    let names = match sys::attribute_names(from.fd()) {
        Err(errno) if sys::is_unsupported(errno) => return Ok(()),
        other => other?,
    };
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        // Capabilities are rights, too, and signatures belong to the old content.
        if [&b"security.capability"[..], b"security.ima", b"security.evm"].contains(&name) {
            continue;
        }
        let value = match sys::attribute(from.fd(), name) {
            // It was removed, or this process may not read it.
            Err(errno) if sys::is_missing_attribute(errno) || sys::is_unsupported(errno) => {
                continue;
            }
            other => other?,
        };
        match sys::set_attribute(to, name, &value) {
            Err(errno) if is_refusal(errno) && !is_set_by_users(name) => {}
            other => other?,
        }
    }
    sys::copy_access_list(from.fd(), to)?;
    Ok(())
}

/// Whether the system refuses to change an attribute.
fn is_refusal(errno: Errno) -> bool {
    errno == Errno::PERM || sys::is_unsupported(errno)
}

/// Whether the system itself sets an extended attribute, on new files, too.
fn is_set_by_system(name: &[u8]) -> bool {
    const PREFIXES: [&[u8]; 2] = [b"security.", b"com.apple.system."];
    const NAMES: [&[u8]; 3] = [b"com.apple.provenance", b"com.apple.macl", b"com.apple.rootless"];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || NAMES.contains(&name)
}

/// Whether a file system gives an extended attribute to all its files, such as the access list of NFS, which cannot be
/// removed.
fn is_part_of_every_file(name: &[u8]) -> bool {
    name.starts_with(b"system.") && !name.starts_with(b"system.posix_acl_")
}

/// Whether an extended attribute is the user's own, which must not be lost. Linux has a prefix for those.
fn is_set_by_users(name: &[u8]) -> bool {
    if cfg!(target_os = "linux") { name.starts_with(b"user.") } else { !is_set_by_system(name) }
}
