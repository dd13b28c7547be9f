//! Removes the temp files that killed processes have left in a directory.
//!
//! A writer locks its temp file, and a displaced file exists only while the directory is locked. So if the holder of
//! the directory's lock can lock a temp file, it was left behind. It is deleted only if nobody needs its content: new
//! content that Pinfold wrote, or a displaced file that is as the call found it and whose place the new file has
//! taken. In a directory that a killed process was deleting, files with another hard link are deleted. A file that
//! was set aside gets its name back if the name is free, and if the file itself or the directory proves that the temp
//! name is Pinfold's, because anybody can give a file such a name. Any other file stays, and is reported.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::dir::Dir;
use crate::lock::DirLock;
use crate::temp_file::{PutBack, keep};
use crate::temp_name::{TempContent, TempName, is_new_content};
use crate::{Deadline, Identity, Kind, Metadata, Name, RawPath, Result, Workspace, sys};

/// The directories that this process has swept.
static SWEPT: Mutex<Option<HashSet<Identity>>> = Mutex::new(None);

/// With more directories than this, the set is cleared.
const MAX_SWEPT: usize = 10_000;

impl Workspace {
    /// Sweeps the directory of a path, so that a file which a killed process set aside gets its name back.
    pub fn sweep_parent(&self, path: &RawPath, deadline: &Deadline) -> Result<()> {
        let target = self.find_target(path, deadline)?;
        let lock = target.dir.lock(deadline)?;
        target.dir.sweep(&lock, None, deadline);
        Ok(())
    }
}

impl Dir {
    /// Sweeps the directory, once for each process. Returns the names of files with content that a killed process
    /// displaced and did not verify.
    ///
    /// Without the directory's lock, a temp file may be in use, and everything stays.
    pub(crate) fn sweep(
        &self,
        lock: &DirLock,
        own: Option<&Name>,
        deadline: &Deadline,
    ) -> Vec<Name> {
        let mut unverified = Vec::new();
        let Some(dir) = lock.handle().filter(|_| self.is_first_sweep()) else { return unverified };
        let mut found = Vec::new();
        // A failure does not fail the call, since no tool shows a temp file.
        let _ = sys::list(dir, &mut Vec::new(), |name, _| {
            if own.is_none_or(|own| name != own.as_bytes())
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

    /// Returns the name of a file with unverified content.
    fn sweep_one(&self, temp: &TempName, name: Name, deadline: &Deadline) -> Option<Name> {
        let meta = self.meta(&name).ok()?;
        // Pinfold gives such a name to no other kind.
        if !matches!(meta.kind, Kind::File | Kind::Symlink | Kind::Directory) {
            return None;
        }
        let content = temp.content(&meta);
        if content == TempContent::Written {
            if self.is_abandoned(&name) {
                let _ = sys::remove(self.fd(), name.as_bytes());
            }
            return None;
        }
        if content == TempContent::RemovedTree {
            let is_gone = self.remove_rest_of_tree(&name, deadline);
            return (!is_gone).then(|| keep(self, &name).unwrap_or(name));
        }
        if content == TempContent::Unknown && !temp.is_specific() {
            return None;
        }
        let is_displaced = content == TempContent::Displaced;
        let is_verified = || match meta.kind {
            // A directory is set aside as a whole, and put back as it is.
            Kind::Directory => temp.aside_of().is_some(),
            // Nothing can be written to a symlink.
            Kind::Symlink => true,
            _ => temp.is_verified(|| self.file(&name).ok()?.hash(deadline).ok()),
        };
        let verified = is_displaced && is_verified();
        // Nothing took its place, so the change did not happen.
        if let Some(target) = temp.aside_of()
            && (is_displaced || temp.is_made_for(self.identity()))
        {
            match self.put_back(&name, target) {
                PutBack::Done => return (!verified).then(|| target.clone()),
                PutBack::Failed => return Some(name),
                PutBack::Taken => {}
            }
        }
        if verified
            && meta.kind != Kind::Directory
            && temp.inode.is_some_and(|written| self.has_inode(written))
        {
            let _ = sys::remove(self.fd(), name.as_bytes());
            return None;
        }
        // Any other file may have this name by chance or by design, so it is not renamed.
        let kept = if is_displaced { keep(self, &name) } else { None };
        Some(kept.unwrap_or(name))
    }

    /// Removes new content that killed processes have left here.
    pub(crate) fn remove_abandoned(&self) {
        let Ok(dir) = self.readable() else { return };
        let mut names = Vec::new();
        let _ = sys::list(&dir, &mut Vec::new(), |name, _| {
            names.extend(Name::parse(name).ok());
            ControlFlow::Continue(())
        });
        for name in names {
            let is_new = |meta: Metadata| is_new_content(name.as_bytes(), &meta);
            if self.meta(&name).is_ok_and(is_new) && self.is_abandoned(&name) {
                let _ = sys::remove(self.fd(), name.as_bytes());
            }
        }
    }

    /// Whether an entry has this inode. If so, the new file has taken its place.
    fn has_inode(&self, inode: u64) -> bool {
        let Ok(dir) = self.readable() else { return false };
        let mut found = false;
        let _ = sys::list(&dir, &mut Vec::new(), |name, _| {
            let stat = sys::stat_at(self.fd(), name);
            found = stat.is_ok_and(|stat| Metadata::of(&stat).identity.inode() == inode);
            if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        found
    }

    /// Whether no process is writing to a temp file any more.
    pub(crate) fn is_abandoned(&self, name: &Name) -> bool {
        match sys::open_at(self.fd(), name.as_bytes(), OFlags::RDONLY) {
            Ok(file) => sys::check_temp_unlocked(&file).is_ok(),
            // A symlink that was being deleted.
            Err(errno) => errno == Errno::LOOP,
        }
    }
}
