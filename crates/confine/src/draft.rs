//! New content beside the file that it is for, under a temporary name.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;

use crate::dir::Dir;
use crate::target::Original;
use crate::temporary::{kept_name, temp_name};
use crate::{Error, Metadata, Name, Result, sys};

/// A temporary name that is free again when this is dropped, unless somebody needs what is there.
#[derive(Debug)]
pub(crate) struct TempEntry {
    pub(crate) dir: Arc<Dir>,
    pub(crate) name: Name,
    /// Whether what is under the name may be thrown away.
    pub(crate) delete_on_drop: bool,
}

impl TempEntry {
    /// Leaves what is under the name, which somebody needs, where nobody sweeps it away.
    pub(crate) fn keep(&mut self) -> Error {
        self.delete_on_drop = false;
        if let Ok(lasting) = kept_name()
            && retry(|| sys::rename(self.dir.fd(), self.name.as_bytes(), lasting.as_bytes()))
                .is_some()
        {
            self.name = lasting;
        }
        Error::RollbackFailed { kept: self.name.to_string() }
    }
}

impl Drop for TempEntry {
    fn drop(&mut self) {
        if self.delete_on_drop {
            retry(|| sys::remove(self.dir.fd(), self.name.as_bytes()));
        }
    }
}

/// Tries more than once: what a clean-up leaves behind is in somebody's way.
pub(crate) fn retry<T>(mut attempt: impl FnMut() -> rustix::io::Result<T>) -> Option<T> {
    (0..3).find_map(|_| attempt().ok())
}

/// The new content, until it takes its place.
pub(crate) struct TempFile {
    pub(crate) at: TempEntry,
    pub(crate) fd: OwnedFd,
    pub(crate) meta: Metadata,
}

impl TempFile {
    pub(crate) fn create(dir: &Arc<Dir>, mode: u32) -> Result<Self> {
        let name = temp_name()?;
        let fd = match sys::create_at(dir.fd(), name.as_bytes(), mode) {
            // The directory itself was removed: look again.
            Err(Errno::NOENT) => return Err(Error::Changed),
            other => other?,
        };
        let at = TempEntry { dir: dir.clone(), name, delete_on_drop: true };
        // As long as this handle is open, nobody takes the draft for something left behind.
        match sys::try_lock_temp(&fd) {
            Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
            other => other?,
        }
        let meta = Metadata::of(&sys::stat(&fd)?);
        Ok(Self { at, fd, meta })
    }

    /// Takes on the file's owner, mode and extended attributes, in the order in which each keeps
    /// what the one before has set.
    pub(crate) fn copy_metadata(&self, original: &Original) -> Result<()> {
        let Metadata { uid, gid, mode, .. } = *original.file.meta();
        if (self.meta.uid, self.meta.gid) != (uid, gid) {
            sys::change_owner(&self.fd, uid, gid).map_err(|errno| match errno {
                Errno::PERM => Error::Owner { uid, gid },
                other => other.into(),
            })?;
        }
        self.drop_attributes_but(original)?;
        // The rights of the owner were lent to the old content, not to this.
        sys::change_mode(&self.fd, mode & 0o1777)?;
        self.copy_attributes(original)
    }

    /// Removes what the directory gave the draft and the file does not have: an access list that
    /// comes from a default would let others in, once the mode allows for it.
    fn drop_attributes_but(&self, original: &Original) -> Result<()> {
        let names = |file: &OwnedFd| match sys::attribute_names(file) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(Vec::new()),
            other => other,
        };
        let given = names(&self.fd)?;
        if given.is_empty() {
            return Ok(());
        }
        let kept = names(original.file.fd())?;
        let listed = |list: &[u8], name: &[u8]| list.split(|byte| *byte == 0).any(|n| n == name);
        let all = given.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        for name in all.filter(|name| !listed(&kept, name)) {
            match sys::remove_attribute(&self.fd, name) {
                // Labels that the system sets by itself stay.
                Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NODATA)
                    if name.starts_with(b"security.") => {}
                Err(Errno::NODATA) => {}
                other => other?,
            }
        }
        Ok(())
    }

    fn copy_attributes(&self, original: &Original) -> Result<()> {
        let names = match sys::attribute_names(original.file.fd()) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
            other => other?,
        };
        for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            // Capabilities are rights too; signatures are of the old content.
            if [&b"security.capability"[..], b"security.ima", b"security.evm"].contains(&name) {
                continue;
            }
            let value = match sys::attribute(original.file.fd(), name) {
                // Gone since it was listed, or not ours to see.
                Err(Errno::NODATA | Errno::OPNOTSUPP) => continue,
                other => other?,
            };
            match sys::set_attribute(&self.fd, name, &value) {
                // What the system sets by itself, it does not let others set.
                Err(Errno::PERM | Errno::OPNOTSUPP) if !name.starts_with(b"user.") => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// What the file system knows about the content now; `None` if it will not say.
    pub(crate) fn meta_now(&self) -> Option<Metadata> {
        retry(|| sys::stat(&self.fd)).map(|stat| Metadata::of(&stat))
    }
}
