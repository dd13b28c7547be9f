//! The locks of a change: on its file against other changes in this process, and on its directory against other
//! processes.
//!
//! The key of a file's lock is the identity of its directory and its folded name, so two spellings of one path share
//! a lock even on file systems that fold case or Unicode forms. On other file systems, changes of `a` and `A` wait
//! for each other, which costs only time. A directory is locked with `flock`, from before the exchange until the old
//! version is deleted.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::deadline::PAUSE;
use crate::dir::Dir;
use crate::sys::Locked;
use crate::{Deadline, Error, Identity, Name, Place, Result, Workspace, sys};

/// Includes the process id, because a forked process has copies of locks that none of its threads releases.
type Key = (u32, Identity, Vec<Vec<u8>>);

/// The holder of a lock: a thread, and the name in its spelling.
type Holder = (ThreadId, Vec<Name>);

static HELD: Mutex<Option<HashMap<Key, Vec<Holder>>>> = Mutex::new(None);
static FREED: Condvar = Condvar::new();

/// The lock on a file. Dropping it releases it.
#[derive(Debug)]
pub(crate) struct FileLock {
    key: Key,
    holder: Holder,
}

impl FileLock {
    /// Waits for other changes of this process to the file `names` below the directory.
    pub(crate) fn take(directory: Identity, names: Vec<Name>, deadline: &Deadline) -> Result<Self> {
        // The holder of the file may wait for a directory that this thread keeps locked.
        release_target();
        let folded = names.iter().map(Name::folded).collect();
        let key = (std::process::id(), directory, folded);
        let holder = (thread::current().id(), names);
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let holders = held.get_or_insert_default().entry(key.clone()).or_default();
            // Otherwise a thread that changes both `a` and `A` would wait for itself.
            if holders.iter().all(|other| other.0 == holder.0 && other.1 != holder.1) {
                holders.push(holder.clone());
                return Ok(Self { key, holder });
            }
            deadline.check()?;
            (held, _) = FREED.wait_timeout(held, PAUSE).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        let all = held.get_or_insert_default();
        if let Some(holders) = all.get_mut(&self.key) {
            holders.retain(|holder| *holder != self.holder);
            if holders.is_empty() {
                all.remove(&self.key);
            }
        }
        drop(held);
        FREED.notify_all();
    }
}

/// How long another process may hold a directory's lock. Most changes hold it for microseconds; one that lost a race
/// holds it from the moment that it finds its file.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The directories that a thread keeps locked.
#[derive(Default)]
struct Shared {
    /// Those that its changes use.
    locks: HashMap<Identity, Arc<Locked>>,
    /// The directory of the last target that it found. No change uses the lock yet, so it is released before the
    /// thread waits for anything. Otherwise two threads could wait for each other.
    target: Option<(Identity, Arc<Locked>)>,
    /// Whether a directory is locked when a file to change is found in it, and not only when the file is replaced.
    from_target: bool,
}

thread_local! {
    /// The directories that this thread keeps locked, while [`SharedLocks`] exists.
    static SHARED: RefCell<Option<Shared>> = const { RefCell::new(None) };
}

/// Releases the directory that this thread locked when it found its last target.
pub(crate) fn release_target() {
    SHARED.with_borrow_mut(|shared| {
        if let Some(shared) = shared {
            shared.target = None;
        }
    });
}

/// While this exists, a directory that the thread locks stays locked, and is locked only once. So the changes of a
/// set do not wait for each other, and no other Pinfold process comes between them.
#[derive(Debug)]
pub struct SharedLocks {
    is_outermost: bool,
    /// The locks belong to the thread.
    _not_send: PhantomData<*const ()>,
}

impl SharedLocks {
    /// Begins a set of changes, or a part of one that is being made.
    pub fn begin() -> Self {
        Self::begin_with(Shared::default())
    }

    /// As [`Self::begin`], and the directory is locked as soon as [`Workspace::target`] has found a file in it. No
    /// other Pinfold process changes the file between that and the change, unless the thread has to wait meanwhile.
    /// If several targets are found, this is true of the last one.
    ///
    /// [`Workspace::target`]: crate::Workspace::target
    pub fn begin_from_target() -> Self {
        Self::begin_with(Shared { from_target: true, ..Shared::default() })
    }

    fn begin_with(shared: Shared) -> Self {
        let is_outermost = SHARED.with_borrow(Option::is_none);
        if is_outermost {
            SHARED.set(Some(shared));
        }
        Self { is_outermost, _not_send: PhantomData }
    }

    /// Locks the directories of these places, always in the same order, so that two sets do not wait for each other.
    /// Leaves out those that cannot be opened: a change there fails or creates its directory.
    pub fn lock_directories<'p>(
        &self,
        workspace: &Workspace,
        places: impl IntoIterator<Item = &'p Place>,
        deadline: &Deadline,
    ) -> Result<()> {
        let mut directories = BTreeMap::new();
        let parents: HashSet<_> = places
            .into_iter()
            .filter_map(|place| Some((place.root, place.path.split()?.0)))
            .collect();
        for (root, parent) in parents {
            if let Ok(fd) = workspace.root(root).open_below(&parent, sys::DIR_PATH) {
                let directory = Dir::new(fd)?;
                directories.insert(directory.identity(), directory);
            }
        }
        directories.values().try_for_each(|directory| directory.lock(deadline).map(drop))
    }

    /// Until the result is dropped, the thread keeps no target's directory locked, and what it changes meanwhile is
    /// not part of the set.
    pub fn suspend() -> SuspendedLocks {
        release_target();
        SuspendedLocks { shared: SHARED.take(), _not_send: PhantomData }
    }
}

impl Drop for SharedLocks {
    fn drop(&mut self) {
        if self.is_outermost {
            SHARED.set(None);
        }
    }
}

/// See [`SharedLocks::suspend`].
#[must_use]
pub struct SuspendedLocks {
    shared: Option<Shared>,
    _not_send: PhantomData<*const ()>,
}

impl Drop for SuspendedLocks {
    fn drop(&mut self) {
        SHARED.set(self.shared.take());
    }
}

/// A directory's lock. It has a handle of its own, and is released when that is closed.
#[derive(Debug)]
pub(crate) struct DirLock {
    /// `None` if the directory cannot be locked.
    lock: Option<Arc<Locked>>,
}

impl DirLock {
    /// The handle of the lock, which can also be listed. `None` if the directory is not locked.
    pub(crate) fn handle(&self) -> Option<&OwnedFd> {
        self.lock.as_ref().map(|lock| &lock.0)
    }
}

impl Dir {
    /// Locks the directory, if the thread keeps it locked from here on. See [`SharedLocks::begin_from_target`].
    pub(crate) fn lock_from_target(&self, deadline: &Deadline) -> Result<()> {
        if SHARED.with_borrow(|shared| shared.as_ref().is_some_and(|shared| shared.from_target)) {
            let lock = self.wait_for_lock(deadline)?;
            SHARED.with_borrow_mut(|shared| {
                shared.as_mut()?.target = Some((self.identity(), lock?));
                Some(())
            });
        }
        Ok(())
    }

    /// Locks the directory against changes by other Pinfold processes.
    pub(crate) fn lock(&self, deadline: &Deadline) -> Result<DirLock> {
        let identity = self.identity();
        let known = SHARED.with_borrow_mut(|shared| {
            let shared = shared.as_mut()?;
            let target = shared.target.take_if(|(target, _)| *target == identity);
            target.map(|(_, lock)| lock).or_else(|| shared.locks.get(&identity).cloned())
        });
        let lock = match known {
            Some(known) => Some(known),
            None => self.wait_for_lock(deadline)?,
        };
        if let Some(lock) = &lock {
            SHARED.with_borrow_mut(|shared| {
                shared.as_mut().map(|shared| shared.locks.insert(identity, lock.clone()))
            });
        }
        Ok(DirLock { lock })
    }

    /// Returns `None` if the directory cannot be locked.
    fn wait_for_lock(&self, deadline: &Deadline) -> Result<Option<Arc<Locked>>> {
        let fd = match self.readable() {
            Ok(fd) => fd,
            // A directory that is writable but not readable cannot be locked.
            Err(Errno::ACCESS) => return Ok(None),
            Err(other) => return Err(other.into()),
        };
        let start = Instant::now();
        let mut pause = Duration::from_micros(20);
        loop {
            match sys::try_lock(&fd) {
                Ok(()) => return Ok(Some(Arc::new(Locked(fd)))),
                Err(Errno::WOULDBLOCK) if start.elapsed() < MAX_WAIT => {
                    release_target();
                    deadline.check()?;
                    thread::sleep(pause);
                    pause = (pause * 2).min(PAUSE);
                }
                Err(Errno::WOULDBLOCK) => return Err(Error::Busy),
                // The file system has no locks.
                Err(errno) if sys::is_unlockable(errno) => return Ok(None),
                Err(other) => return Err(other.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_spellings_of_one_name_share_a_lock() {
        let place = tempfile::tempdir().unwrap();
        let dir = Dir::new(sys::open_root(place.path()).unwrap()).unwrap();
        let take = |name: &str| {
            let name = Name::parse(name.as_bytes()).unwrap();
            FileLock::take(dir.identity(), vec![name], &Deadline::lasting_while(|| false))
        };
        for (one, other) in [
            ("README.md", "readme.md"),
            ("caf\u{e9}", "cafe\u{301}"),
            ("CAF\u{c9}", "cafe\u{301}"),
            ("stra\u{df}e", "STRASSE"),
            ("\u{212a}ey", "key"),
        ] {
            let lock = take(one).unwrap();
            thread::scope(|scope| {
                scope.spawn(|| assert!(take(other).is_err(), "{one} {other}"));
                scope.spawn(|| assert!(take("another").is_ok()));
            });
            // On a file system that does not fold names, this is another file.
            let second = take(other).unwrap();
            assert!(take(one).is_err() && take(other).is_err(), "{one} {other}");
            drop(lock);
            thread::scope(|scope| {
                scope.spawn(|| assert!(take(one).is_err(), "{one} {other}"));
            });
            drop(second);
            thread::scope(|scope| {
                scope.spawn(|| assert!(take(one).is_ok() && take(other).is_ok()));
            });
        }
        let held = HELD.lock().unwrap();
        let left = held.as_ref().map_or(0, |all| {
            all.keys().filter(|(_, identity, _)| *identity == dir.identity()).count()
        });
        assert_eq!(left, 0);
    }

    #[test]
    fn a_lock_ends_with_its_holder_though_a_forked_process_has_its_handle() {
        let place = tempfile::tempdir().unwrap();
        let dir = Dir::new(sys::open_root(place.path()).unwrap()).unwrap();
        let deadline = Deadline::lasting_while(|| false);
        let lock = dir.lock(&deadline).unwrap();
        assert!(dir.lock(&deadline).is_err());
        // A copy of the handle, as a forked process has one.
        let Some(locked) = &lock.lock else { panic!("the file system has locks") };
        let elsewhere = locked.0.try_clone().unwrap();
        drop(lock);
        assert!(dir.lock(&deadline).is_ok());
        drop(elsewhere);
    }
}
