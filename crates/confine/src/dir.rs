//! An open directory: its entries, and the lock that changes take.

use std::cell::RefCell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::deadline::PAUSE;
use crate::sys::Locked;
use crate::temp_name::is_own_temp;
use crate::{Deadline, Error, File, Identity, Kind, Metadata, Name, Result, sys};

/// How long another process may hold a directory's lock. A change holds it for microseconds.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// One entry of a directory.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub name: Name,
    /// What it is.
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
        let identity = Metadata::of(&sys::stat(&fd)?).identity;
        Ok(Self { fd, identity })
    }

    /// As [`Self::new`]; another handle of this thread on the same directory serves for both. The changes of a
    /// set hold their directories until the last is made, and a process has only so many handles.
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

    pub(crate) fn meta(&self, name: &Name) -> Result<Metadata> {
        Ok(Metadata::of(&sys::stat_at(&self.fd, name.as_bytes())?))
    }

    /// Opens a regular file.
    pub(crate) fn file(&self, name: &Name) -> Result<File> {
        let fd = sys::open_at(&self.fd, name.as_bytes(), rustix::fs::OFlags::RDONLY);
        File::regular(fd.map_err(crate::workspace::opening)?)
    }

    /// A second handle, which can be listed, locked and flushed. The first may be `O_PATH`.
    pub(crate) fn readable(&self) -> Result<OwnedFd, Errno> {
        sys::open_at(&self.fd, b".", sys::DIRECTORY)
    }

    /// Flushes its entries, so that they survive a loss of power.
    pub(crate) fn sync(&self) -> Result<()> {
        Ok(sys::sync_dir(self.readable()?)?)
    }

    /// Whether this process may change its entries.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match sys::may_write(&self.fd, b".") {
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => Err(Error::DirectoryDenied),
            other => Ok(other?),
        }
    }

    /// Locks the directory against changes by other Pinfold processes.
    pub(crate) fn lock(&self, deadline: &Deadline) -> Result<DirLock> {
        let known = SHARED.with_borrow(|shared| shared.as_ref()?.get(&self.identity).cloned());
        if known.is_some() {
            return Ok(DirLock { lock: known });
        }
        let fd = match self.readable() {
            Ok(fd) => fd,
            // A directory that is writable but not readable cannot be locked.
            Err(Errno::ACCESS) => return Ok(DirLock { lock: None }),
            Err(other) => return Err(other.into()),
        };
        let start = Instant::now();
        let mut pause = Duration::from_micros(20);
        loop {
            match sys::try_lock(&fd) {
                Ok(()) => {
                    let lock = Arc::new(Locked(fd));
                    SHARED.with_borrow_mut(|shared| {
                        shared.as_mut().map(|shared| shared.insert(self.identity, lock.clone()))
                    });
                    return Ok(DirLock { lock: Some(lock) });
                }
                Err(Errno::WOULDBLOCK) if start.elapsed() < MAX_WAIT => {
                    deadline.check()?;
                    thread::sleep(pause);
                    pause = (pause * 2).min(PAUSE);
                }
                Err(Errno::WOULDBLOCK) => return Err(Error::Busy),
                // File systems without locks.
                Err(errno) if sys::is_unlockable(errno) => {
                    return Ok(DirLock { lock: None });
                }
                Err(other) => return Err(other.into()),
            }
        }
    }

    /// At most `most` entries, in the order of the file system, without Pinfold's temp files.
    pub(crate) fn entries(&self, most: usize) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        sys::list(self.readable()?, &mut Vec::new(), |name, kind| {
            if is_own_temp(&self.fd, name) {
                return ControlFlow::Continue(());
            }
            if entries.len() == most {
                return ControlFlow::Break(());
            }
            // The kernel gives names only.
            let kind = kind_of(&self.fd, name, kind);
            entries.extend(Name::parse(name).map(|name| Entry { name, kind }));
            ControlFlow::Continue(())
        })?;
        Ok(entries)
    }
}

/// An entry's kind. `listed` is the type that `getdents` gave.
pub(crate) fn kind_of(dir: &OwnedFd, name: &[u8], listed: FileType) -> Kind {
    match listed {
        // Some file systems do not give it.
        FileType::Unknown => {
            sys::stat_at(dir, name).map_or(Kind::Device, |stat| Metadata::of(&stat).kind)
        }
        known => known.into(),
    }
}

/// With more directories than this, those that are closed are forgotten.
const MAX_OPEN: usize = 256;

thread_local! {
    /// The directories that changes of this thread hold.
    static OPEN: RefCell<HashMap<Identity, Weak<Dir>>> = RefCell::default();
    /// The directories that this thread has locked for a set of changes, while it makes one.
    static SHARED: RefCell<Option<HashMap<Identity, Arc<Locked>>>> = const { RefCell::new(None) };
}

/// While this lives, a directory that the thread locks stays locked, and is locked only once: the changes of a set
/// do not wait for each other, and no other process of Pinfold comes between them.
#[derive(Debug)]
pub struct SharedLocks {
    /// The locks belong to the thread.
    _not_send: PhantomData<*const ()>,
}

impl SharedLocks {
    /// Begins a set of changes.
    pub fn begin() -> Self {
        SHARED.set(Some(HashMap::new()));
        Self { _not_send: PhantomData }
    }
}

impl Drop for SharedLocks {
    fn drop(&mut self) {
        SHARED.set(None);
    }
}

/// A directory's lock. It belongs to a handle of its own, and is released with it.
#[derive(Debug)]
pub(crate) struct DirLock {
    /// `None` where the directory cannot be locked.
    lock: Option<Arc<Locked>>,
}

impl DirLock {
    /// The handle that the directory is locked by, which can be listed; `None` if it is not locked.
    pub(crate) fn handle(&self) -> Option<&OwnedFd> {
        self.lock.as_ref().map(|lock| &lock.0)
    }
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

    #[test]
    fn a_lock_ends_with_its_holder_though_a_forked_process_has_its_handle() {
        let place = tempfile::tempdir().unwrap();
        let dir = Dir::new(sys::open_root(place.path()).unwrap()).unwrap();
        let deadline = Deadline::lasting_while(|| false);
        let lock = dir.lock(&deadline).unwrap();
        assert!(dir.lock(&deadline).is_err());
        // As after a fork, this handle is not only the holder's.
        let Some(locked) = &lock.lock else { panic!("the file system has locks") };
        let elsewhere = locked.0.try_clone().unwrap();
        drop(lock);
        assert!(dir.lock(&deadline).is_ok());
        drop(elsewhere);
    }
}
