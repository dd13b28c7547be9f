//! Removes the temp files that killed processes have left in a directory.
//!
//! A writer locks its temp file, and a displaced file is only there while the directory is locked.
//! So a temp file that can be locked by the holder of the directory's lock was left behind. It is
//! deleted only if its content is known to be needed by nobody: what Pinfold wrote, or a displaced
//! file that is as the call found it. Anything else stays, and its name is reported. Only such a
//! displaced file is ever moved to the name that it had: the name of a temp file proves nothing.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::dir::{Dir, DirLock};
use crate::temp_file::{TempContent, TempName, keep, retry};
use crate::{Deadline, Identity, Kind, Name, sys};

/// The directories that this process has swept.
static SWEPT: Mutex<Option<HashSet<Identity>>> = Mutex::new(None);

/// With more directories than this, the set starts anew.
const MAX_SWEPT: usize = 10_000;

impl Dir {
    /// Sweeps the directory, once in the life of this process, and gives the names of files that
    /// hold content which a killed process displaced and nobody verified.
    ///
    /// Without the directory's lock nothing is known to be left behind, and everything stays.
    pub(crate) fn sweep(&self, lock: &DirLock, own: &Name, deadline: &Deadline) -> Vec<Name> {
        let mut unverified = Vec::new();
        if !lock.is_held() || !self.is_first_sweep() {
            return unverified;
        }
        let mut found = Vec::new();
        let Ok(dir) = self.readable() else { return unverified };
        // A failure is no reason to fail the call: no tool shows a temp file.
        let _ = sys::list(&dir, &mut Vec::new(), |name, _| {
            if name != own.as_bytes()
                && let Some(temp) = TempName::parse(name)
                && let Ok(name) = Name::parse(name)
            {
                found.push((temp, name));
            }
            ControlFlow::Continue(())
        });
        for (temp, name) in found {
            unverified.extend(self.sweep_one(&temp, name, deadline));
        }
        unverified
    }

    fn is_first_sweep(&self) -> bool {
        let mut swept = SWEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let known = swept.get_or_insert_default();
        if known.len() >= MAX_SWEPT {
            known.clear();
        }
        known.insert(self.identity())
    }

    /// Gives the name under which unverified content is.
    fn sweep_one(&self, temp: &TempName, name: Name, deadline: &Deadline) -> Option<Name> {
        let meta = self.meta(&name).ok()?;
        // Pinfold gives such a name to nothing else.
        if !matches!(meta.kind, Kind::File | Kind::Symlink) {
            return None;
        }
        let content = temp.content(&meta);
        if content == TempContent::Unknown && !temp.is_specific() || !self.is_abandoned(&name) {
            return None;
        }
        match content {
            TempContent::Written => {
                let _ = sys::remove(self.fd(), name.as_bytes());
                None
            }
            TempContent::Displaced => {
                let verified = temp.is_verified(|| self.file(&name).ok()?.hash(deadline).ok());
                // Nothing took its place: the change never happened.
                if let Some(target) = temp.aside_of().filter(|_| verified)
                    && self.put_back(&name, target)
                {
                    return None;
                }
                if verified {
                    let _ = sys::remove(self.fd(), name.as_bytes());
                    return None;
                }
                // It would be hidden under this name.
                Some(keep(self, &name).unwrap_or(name))
            }
            // It may have this name by chance, or by design: it is not moved to another.
            TempContent::Unknown => Some(name),
        }
    }

    /// Moves a file that was set aside back to its own name, unless that is taken.
    pub(crate) fn put_back(&self, aside: &Name, name: &Name) -> bool {
        let (aside, name) = (aside.as_bytes(), name.as_bytes());
        let back = retry(|| match sys::rename_new(self.fd(), aside, name) {
            Err(Errno::EXIST) => Ok(false),
            // A hard link replaces nothing either.
            Err(errno) if sys::is_unsupported(errno) => match sys::link(self.fd(), aside, name) {
                Err(Errno::EXIST) => Ok(false),
                Err(_) => match sys::stat_at(self.fd(), name) {
                    Err(Errno::NOENT) => sys::rename(self.fd(), aside, name).map(|()| true),
                    Ok(_) => Ok(false),
                    Err(other) => Err(other),
                },
                Ok(()) => {
                    retry(|| sys::remove(self.fd(), aside));
                    Ok(true)
                }
            },
            other => other.map(|()| true),
        });
        back.unwrap_or(false)
    }

    fn is_abandoned(&self, name: &Name) -> bool {
        match sys::open_at(self.fd(), name.as_bytes(), OFlags::RDONLY) {
            Ok(file) => sys::try_lock_temp(&file).is_ok(),
            // A symlink that was being deleted.
            Err(errno) => errno == Errno::LOOP,
        }
    }
}
