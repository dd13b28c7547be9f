//! An open directory and its entries.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::temp_name::is_own_temp;
use crate::{Error, File, Identity, Kind, Metadata, Name, Result, sys};

/// One entry of a directory.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub name: Name,
    /// Its kind.
    pub kind: Kind,
}

/// An open directory. Its entries are reached by single names, and no symlink is followed.
#[derive(Debug)]
pub(crate) struct Dir {
    fd: OwnedFd,
    identity: Identity,
}

impl Dir {
    pub(crate) fn new(fd: OwnedFd) -> Result<Self> {
        let identity = Identity::of(&sys::stat(&fd)?);
        Ok(Self { fd, identity })
    }

    /// As [`Self::new`], but if this thread has the directory open already, both share one handle. The changes of a
    /// set keep their directories open until the last is made, and a process has a limited number of handles.
    pub(crate) fn shared(fd: OwnedFd) -> Result<Arc<Self>> {
        let dir = Self::new(fd)?;
        OPEN.with_borrow_mut(|open| {
            if let Some(known) = open.get(&dir.identity).and_then(Weak::upgrade) {
                return Ok(known);
            }
            if open.len() >= MAX_OPEN {
                open.retain(|_, known| known.strong_count() > 0);
            }
            let dir = Arc::new(dir);
            open.insert(dir.identity, Arc::downgrade(&dir));
            Ok(dir)
        })
    }

    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    /// Whether the directory was removed while it is open here.
    pub(crate) fn is_removed(&self) -> bool {
        sys::stat(&self.fd).is_ok_and(|stat| Metadata::of(&stat).links == 0)
    }

    pub(crate) fn meta(&self, name: &Name) -> Result<Metadata> {
        Ok(Metadata::of(&sys::stat_at(&self.fd, name.as_bytes())?))
    }

    /// Opens a regular file.
    pub(crate) fn file(&self, name: &Name) -> Result<File> {
        let fd = sys::open_at(&self.fd, name.as_bytes(), rustix::fs::OFlags::RDONLY);
        File::regular(fd.map_err(crate::root::open_error)?)
    }

    /// A second handle, which can be listed, locked and flushed. The first may be `O_PATH`.
    pub(crate) fn readable(&self) -> Result<OwnedFd, Errno> {
        sys::open_at(&self.fd, b".", sys::DIRECTORY)
    }

    /// Flushes the directory, so that its entries survive a loss of power.
    pub(crate) fn sync(&self) -> Result<()> {
        Ok(sys::sync_dir(self.readable()?)?)
    }

    /// Fails if this process may not change its entries.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match sys::may_write(&self.fd, b".") {
            Err(Errno::ACCESS | Errno::PERM) => Err(Error::DirectoryDenied),
            other => Ok(other?),
        }
    }

    /// At most `max` entries, in the order of the file system, without Pinfold's temp files.
    pub(crate) fn entries(&self, max: usize) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        sys::list(self.readable()?, &mut Vec::new(), |name, kind| {
            if is_own_temp(&self.fd, name) {
                return ControlFlow::Continue(());
            }
            if entries.len() == max {
                return ControlFlow::Break(());
            }
            let kind = kind_of(&self.fd, name, kind);
            // The kernel returns only valid names, so parsing does not fail.
            entries.extend(Name::parse(name).map(|name| Entry { name, kind }));
            ControlFlow::Continue(())
        })?;
        Ok(entries)
    }
}

/// An entry's kind. `listed` is the type from `getdents`.
pub(crate) fn kind_of(dir: &OwnedFd, name: &[u8], listed: FileType) -> Kind {
    match listed {
        // Some file systems do not return it.
        FileType::Unknown => {
            sys::stat_at(dir, name).map_or(Kind::Device, |stat| Metadata::of(&stat).kind)
        }
        known => known.into(),
    }
}

/// With more directories than this, closed ones are removed from the map.
const MAX_OPEN: usize = 256;

thread_local! {
    /// The directories that changes of this thread have open.
    static OPEN: RefCell<HashMap<Identity, Weak<Dir>>> = RefCell::default();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_listing_does_not_say_is_looked_up() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink("file", place.path().join("link")).unwrap();
        let dir = sys::open_root(place.path()).unwrap();
        for (name, listed, kind) in [
            ("file", FileType::Unknown, Kind::File),
            ("link", FileType::Unknown, Kind::Symlink),
            (".", FileType::Unknown, Kind::Directory),
            ("gone", FileType::Unknown, Kind::Device),
            ("file", FileType::Fifo, Kind::Fifo),
        ] {
            assert_eq!(kind_of(&dir, name.as_bytes(), listed), kind, "{name}");
        }
    }
}
