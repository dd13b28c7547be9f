//! Deletes a directory that was set aside, with everything in it.
//!
//! It is deleted under a name by which a sweep recognises it. If the process is killed meanwhile, the next sweep deletes
//! what exists elsewhere too, as a backup in the journal does, and keeps the rest under a name that is reported.

use rustix::io::Errno;

use super::{NewContent, TreeEntry, list, open};
use crate::deadline::PAUSE;
use crate::dir::Dir;
use crate::lock::DirLock;
use crate::root::step_into;
use crate::temp_file::{PutBack, TempEntry, keep, retry};
use crate::temp_name::TempName;
use crate::{Deadline, Kind, Metadata, Name, RelPath, Result, sys};

/// A removed directory, still on the disk under a temp name. Dropping this deletes it.
///
/// The parent directory stays locked meanwhile, so that no other process sweeps it.
#[derive(Debug)]
pub struct RemovedTree {
    /// `None` after it was put back.
    pub(super) entry: Option<TempEntry>,
    pub(super) name: Name,
    pub(super) entries: Vec<(RelPath, Metadata)>,
    /// As [`ReplacedFile::unverified`](crate::ReplacedFile::unverified).
    pub unverified: Vec<Name>,
    pub(super) _lock: DirLock,
}

impl RemovedTree {
    /// Gives up the rollback: from now on, neither this process nor a sweep puts the directory back.
    pub fn discard_rollback(&mut self) {
        if let Some(entry) = &mut self.entry
            && let (Ok(meta), Ok(temp)) = (entry.dir.meta(&entry.name), TempName::new())
            && let Ok(name) = temp.with(Some(meta.identity.inode()), None).name()
            && retry(|| sys::rename(entry.dir.fd(), entry.name.as_bytes(), name.as_bytes()))
                .is_some()
        {
            entry.name = name;
        }
    }

    /// Gives the directory its name back, unless the name is taken.
    pub fn put_back(mut self) -> Result<()> {
        let Some(mut entry) = self.entry.take() else { return Ok(()) };
        match entry.dir.put_back(&entry.name, &self.name) {
            PutBack::Done => Ok(()),
            PutBack::Taken | PutBack::Failed => Err(entry.keep_and_report()),
        }
    }
}

impl Drop for RemovedTree {
    fn drop(&mut self) {
        // Under the new name, no sweep puts back a directory that is half deleted.
        self.discard_rollback();
        let Some(entry) = self.entry.take() else { return };
        let TempEntry { dir, name: top, .. } = &entry;
        // The entries of a directory come after it.
        for (path, meta) in self.entries.iter().rev() {
            if let Some((parent, name)) = path.split() {
                (0..3).any(|_| delete(dir, top, &parent, &name, meta).is_ok());
            }
        }
        // Another process with an open handle may still create an entry, until it finds that the directory is gone.
        for _ in 0..10 {
            remove_directory(dir, top);
            if dir.meta(top).is_err() {
                return;
            }
            std::thread::sleep(PAUSE);
        }
        _ = keep(dir, top);
    }
}

impl Dir {
    /// Deletes the rest of a directory that a killed process was deleting, except for what may exist nowhere else:
    /// files with one hard link, and symlinks. A backup is another hard link, unless it is on another file system.
    /// Returns false if something stays.
    pub(crate) fn remove_rest_of_tree(&self, top: &Name, deadline: &Deadline) -> bool {
        let entries = list(self, top, MAX_REST_ENTRIES, NewContent::Skip, deadline);
        for TreeEntry { path, meta, .. } in entries.unwrap_or_default().iter().rev() {
            let Some((parent, name)) = path.split() else { continue };
            let is_elsewhere = |dir: &Dir| dir.meta(&name).is_ok_and(|now| now.links > 1);
            match meta.kind {
                // Another name of the file may have been deleted just now.
                Kind::File if open(self, top, &parent).is_ok_and(|dir| is_elsewhere(&dir)) => {}
                Kind::Directory => {}
                _ => continue,
            }
            _ = delete(self, top, &parent, &name, meta);
        }
        remove_directory(self, top);
        self.meta(top).is_err()
    }
}

/// The maximum size of a directory that a sweep deletes.
const MAX_REST_ENTRIES: usize = 10_000;

/// Deletes an entry below the directory `top`, unless another process has replaced it.
fn delete(dir: &Dir, top: &Name, parent: &RelPath, name: &Name, meta: &Metadata) -> Result<()> {
    let parent = open(dir, top, parent)?;
    if parent.meta(name)?.identity != meta.identity {
        return Ok(());
    }
    match meta.kind {
        Kind::Directory => remove_directory(&parent, name),
        _ => sys::remove(parent.fd(), name.as_bytes())?,
    }
    Ok(())
}

/// Removes a directory that has at most new content of a killed process in it.
fn remove_directory(dir: &Dir, name: &Name) {
    let remove = || sys::remove_dir(dir.fd(), name.as_bytes());
    match remove() {
        Ok(()) => return,
        Err(Errno::NOTEMPTY | Errno::EXIST) => {
            if let Ok(fd) = step_into(dir.fd(), name, sys::DIR_PATH)
                && let Ok(inside) = Dir::new(fd)
            {
                inside.remove_abandoned();
            }
        }
        Err(_) => {}
    }
    retry(remove);
}
