//! Locks a file against other changes of this process.
//!
//! The key is the directory's identity and the name in it, so two spellings of one path share a lock.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, PoisonError};

use crate::deadline::PAUSE;
use crate::{Deadline, Identity, Name, Result};

/// With the process id: a forked process has copies of locks that none of its threads releases.
type Key = (u32, Identity, Vec<Name>);

static HELD: Mutex<Option<HashSet<Key>>> = Mutex::new(None);
static FREED: Condvar = Condvar::new();

/// The lock on a file. Dropping it releases it.
#[derive(Debug)]
pub(crate) struct FileLock {
    key: Key,
}

impl FileLock {
    /// Waits for other changes of this process to the file `names` below the directory.
    pub(crate) fn take(directory: Identity, names: Vec<Name>, deadline: &Deadline) -> Result<Self> {
        let key = (std::process::id(), directory, names);
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        while !held.get_or_insert_default().insert(key.clone()) {
            deadline.check()?;
            (held, _) = FREED.wait_timeout(held, PAUSE).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(Self { key })
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        held.get_or_insert_default().remove(&self.key);
        drop(held);
        FREED.notify_all();
    }
}
