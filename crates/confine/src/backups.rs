//! A private directory outside the workspace, with logs and the backups of changed files.
//!
//! Several processes may use it at once. A line of a log is written completely or not at all.

mod logs;
mod segments;

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

use crate::dir::Dir;
use crate::temp_file::{copy_attributes, retry};
use crate::{
    Deadline, Error, File, Identity, Kind, Name, Removal, Result, Target, TreeRemoval, sys,
};

use logs::{OpenLog, Spare};
pub use segments::{LinesFromEnd, Segment, StoreLock, StoredFile};

/// A directory that only this user may enter.
#[derive(Debug)]
pub struct BackupStore {
    dir: Arc<Dir>,
    device: Identity,
    open_logs: Spare<Arc<OpenLog>>,
    /// Handles on the directory, for locking.
    lock_handles: Arc<Spare<Arc<OwnedFd>>>,
}

impl BackupStore {
    /// Opens the directory, and creates it if it is missing.
    pub fn open(path: &Path) -> Result<Self> {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(Error::Os)?;
        let dir = Dir::new(sys::open_root(path)?)?;
        Ok(Self {
            device: dir.identity(),
            dir: Arc::new(dir),
            open_logs: Spare::default(),
            lock_handles: Arc::default(),
        })
    }

    /// Flushes a log, backups and their names, so that they survive a loss of power.
    pub fn flush(&self, log: &Name, backups: &[Name]) -> Result<()> {
        for name in backups {
            match self.dir.file(name) {
                Ok(backup) => sys::sync_data(backup.fd())?,
                // Nothing was displaced, or the backup is a hard link to a file that this process may not read.
                Err(Error::NotFound | Error::Denied) => {}
                Err(other) => return Err(other),
            }
        }
        sys::sync_data(self.dir.file(log)?.fd())?;
        self.dir.sync()
    }

    /// Replaces a whole log by the result of `keep`, while it is locked.
    pub fn rewrite(
        &self,
        log: &Name,
        deadline: &Deadline,
        keep: impl FnOnce(&str) -> Option<String>,
    ) -> Result<()> {
        let (_open, turn) = self.turn(log, deadline)?;
        let Some(text) = keep(&self.read_text(log)?) else { return Ok(()) };
        let fresh = crate::temp_name::TempName::new()?.name()?;
        let fd = sys::create_at(self.dir.fd(), fresh.as_bytes(), 0o600)?;
        let put = sys::write_all(&fd, text.as_bytes())
            .and_then(|()| sys::rename(self.dir.fd(), fresh.as_bytes(), log.as_bytes()));
        put.inspect_err(|_| self.remove(&fresh))?;
        drop(turn);
        Ok(())
    }

    /// A log's whole text, with invalid UTF-8 replaced. Empty if there is no log.
    pub fn read_text(&self, log: &Name) -> Result<String> {
        match self.read(log) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(Error::NotFound) => Ok(String::new()),
            Err(other) => Err(other),
        }
    }

    /// A file's content.
    pub fn read(&self, name: &Name) -> Result<Vec<u8>> {
        self.dir.file(name).and_then(read_all)
    }

    /// The size of a file in bytes, or 0 if it does not exist.
    pub fn len(&self, name: &Name) -> Result<u64> {
        match self.dir.meta(name) {
            Ok(meta) => Ok(meta.len),
            Err(Error::NotFound) => Ok(0),
            Err(other) => Err(other),
        }
    }

    /// Backs up a target before it is changed.
    pub fn back_up(&self, target: &mut Target, name: &Name) -> Result<()> {
        let Target { original, dir, name: from, deadline, .. } = target;
        match original {
            Some(original) => self.back_up_file(dir, from, &mut original.file, name, deadline),
            None => Ok(()),
        }
    }

    /// Backs up a file before it is removed.
    pub fn back_up_removed(&self, removal: &Removal, name: &Name) -> Result<()> {
        let (dir, from, meta, deadline) = removal.parts();
        if meta.kind != Kind::File {
            return Ok(());
        }
        removal.prepare()?;
        let mut file = dir.file(from)?;
        if !meta.same_stat(file.meta()) {
            return Err(Error::Changed);
        }
        self.back_up_file(dir, from, &mut file, name, deadline)
    }

    /// Backs up a file before its directory is removed.
    pub fn back_up_in_tree(&self, tree: &TreeRemoval, entry: usize, name: &Name) -> Result<()> {
        if tree.hash(entry)?.is_none() {
            return Ok(());
        }
        let (dir, from, mut file, deadline) = tree.file(entry)?;
        self.back_up_file(&dir, &from, &mut file, name, deadline)
    }

    /// Makes a hard link if the file has no other, and a copy if that fails. Through another hard link, the backup
    /// itself could be written to.
    fn back_up_file(
        &self,
        dir: &Dir,
        from: &Name,
        file: &mut File,
        name: &Name,
        deadline: &Deadline,
    ) -> Result<()> {
        let near = file.meta().identity.same_device(self.device);
        if file.meta().links == 1 && near {
            // A link changes ctime. So a change of the mode or the attributes since the file was read would no longer show.
            if !file.meta().same_times(&dir.meta(from)?) {
                return Err(Error::Changed);
            }
            match sys::link_across(dir.fd(), from.as_bytes(), self.dir.fd(), name.as_bytes()) {
                Ok(()) => {
                    // The link has the file's metadata, if it is a link to this file.
                    let linked = self.dir.meta(name)?;
                    return file.note_new_link(&linked).inspect_err(|_| self.remove(name));
                }
                Err(Errno::NOENT) => return Err(Error::Changed),
                // Hard links may be forbidden, or unsupported by the file system.
                Err(_) => {}
            }
        }
        self.copy_file(file, name, deadline)
    }

    /// Copies a file and its extended attributes. Zeros become holes, since not every file system says where the
    /// holes are.
    fn copy_file(&self, file: &File, name: &Name, deadline: &Deadline) -> Result<()> {
        let copy = sys::create_at(self.dir.fd(), name.as_bytes(), 0o600)?;
        let mut buffer = vec![0; 128 * 1024];
        let mut attempt = || -> Result<()> {
            let mut position = 0;
            while let Some((start, end)) = sys::next_data(file.fd(), position)? {
                position = start;
                sys::seek_to(&copy, start)?;
                while position < end {
                    deadline.check()?;
                    let max_len = usize::try_from(end - position).unwrap_or(usize::MAX);
                    let max_len = max_len.min(buffer.len());
                    let read = sys::read_from(file.fd(), &mut buffer[..max_len], position)?;
                    if read == 0 {
                        return Ok(sys::truncate(&copy, position)?);
                    }
                    position += read as u64;
                    let last = buffer[..read].iter().rposition(|byte| *byte != 0);
                    let data = last.map_or(0, |last| last + 1);
                    sys::write_all(&copy, &buffer[..data])?;
                    if data < read {
                        sys::seek_to(&copy, position)?;
                    }
                }
            }
            Ok(sys::truncate(&copy, file.meta().len.max(position))?)
        };
        attempt().inspect_err(|_| self.remove(name))?;
        // The file system of the store may have none. The content is what must not be lost.
        _ = copy_attributes(file, &copy);
        Ok(())
    }

    /// Removes a file, if it exists.
    pub fn remove(&self, name: &Name) {
        retry(|| sys::remove(self.dir.fd(), name.as_bytes()));
    }
}

fn read_all(mut file: File) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(Error::Os)?;
    Ok(bytes)
}
