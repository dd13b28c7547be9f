//! Clearing away what killed processes have left in a directory.
//!
//! A draft is locked by whoever writes it, and what was displaced is only there while the directory
//! is locked. So whoever holds the directory's lock and finds a temporary file that nobody has
//! locked, has found something left behind.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::dir::{Dir, DirLock};
use crate::{Identity, Name, is_temp_name, sys};

/// The directories that this process has swept: once is enough, unless somebody else is killed.
static SWEPT: Mutex<Option<HashSet<Identity>>> = Mutex::new(None);

/// Past this many it starts to remember anew.
const MAX_REMEMBERED: usize = 10_000;

impl Dir {
    /// Removes what others left behind, once in the life of this process. Without the lock nobody
    /// knows what is left behind, and all of it stays.
    pub(crate) fn sweep(&self, lock: &DirLock, own: &Name) {
        if !lock.is_held() {
            return;
        }
        let mut swept = SWEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let known = swept.get_or_insert_default();
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        let first = known.insert(self.identity());
        drop(swept);
        if !first {
            return;
        }
        let Ok(dir) = self.readable() else { return };
        // What cannot be removed now is in nobody's method: no tool shows it.
        let _ = sys::list(&dir, &mut Vec::new(), |name, _| {
            if is_temp_name(name) && name != own.as_bytes() && self.is_abandoned(name) {
                let _ = sys::remove(self.fd(), name);
            }
            ControlFlow::Continue(())
        });
    }

    fn is_abandoned(&self, name: &[u8]) -> bool {
        match sys::open_at(self.fd(), name, OFlags::RDONLY) {
            Ok(file) => sys::try_lock_temp(&file).is_ok(),
            // A link that was being deleted.
            Err(errno) => errno == Errno::LOOP,
        }
    }
}
