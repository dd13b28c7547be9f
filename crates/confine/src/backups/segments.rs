//! The sealed segments of a backup store: older parts of its log, each with its backups.
//!
//! The current log and its backups are in the store's own directory. [`BackupStore::seal`] moves both into a
//! directory below `sealed`, so that no directory and no log grows with the length of the history. A segment's name
//! has its size on disk and the time when it was sealed, so accounting reads no segment. A process that adds a backup
//! and its line holds the store's shared lock; one that seals, drops or tidies holds the exclusive lock.

use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

use super::{BackupStore, Spare};
use crate::deadline::PAUSE;
use crate::dir::Dir;
use crate::lock::release_target;
use crate::sys::{self, Locked};
use crate::temp_file::retry;
use crate::{Deadline, Error, File, Kind, Name, Removal, Result, Target, TreeRemoval};

/// A sealed part of the history.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Segment {
    /// Newer segments have higher numbers.
    pub number: u64,
    /// The bytes that it takes on disk.
    pub disk_bytes: u64,
    /// When it was sealed, in milliseconds since 1970.
    pub sealed_at: u64,
}

impl Segment {
    fn name(&self) -> Result<Name> {
        let Self { number, disk_bytes, sealed_at } = self;
        Name::parse(format!("{number:010}-{disk_bytes}-{sealed_at}").as_bytes())
    }

    fn parse(name: &[u8]) -> Option<Self> {
        let mut numbers = std::str::from_utf8(name).ok()?.splitn(3, '-').map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some(Self { number: next()?, disk_bytes: next()?, sealed_at: next()? })
    }
}

/// A file of the store that is in no segment.
#[derive(Debug)]
pub struct StoredFile {
    /// Its name.
    pub name: Name,
    /// The bytes that it takes on disk.
    pub disk_bytes: u64,
}

/// A lock on the store. It is released when this is dropped.
#[derive(Debug)]
pub struct StoreLock {
    /// `None` if the file system has no locks.
    locked: Option<Locked<Arc<OwnedFd>>>,
    handles: Arc<Spare<Arc<OwnedFd>>>,
}

impl StoreLock {
    /// Whether others are locked out. False if the file system has no locks.
    pub fn is_held(&self) -> bool {
        self.locked.is_some()
    }
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        if let Some(locked) = self.locked.take() {
            let handle = locked.0.clone();
            // The lock is released first.
            drop(locked);
            self.handles.put(handle, |_| true);
        }
    }
}

impl BackupStore {
    /// Takes the shared lock, for adding to the store.
    pub fn lock_shared(&self, deadline: &Deadline) -> Result<StoreLock> {
        let lock = self.lock(FlockOperation::NonBlockingLockShared, Some(deadline))?;
        Ok(lock.unwrap_or_else(|| self.locked_by(None)))
    }

    /// Takes the exclusive lock. Without a deadline it does not wait, and returns `None` if another process has a
    /// lock.
    pub fn lock_exclusive(&self, deadline: Option<&Deadline>) -> Result<Option<StoreLock>> {
        self.lock(FlockOperation::NonBlockingLockExclusive, deadline)
    }

    fn lock(
        &self,
        operation: FlockOperation,
        deadline: Option<&Deadline>,
    ) -> Result<Option<StoreLock>> {
        // A separate handle, since locks belong to handles.
        let fd = match self.lock_handles.take(|_| true) {
            Some(fd) => fd,
            None => Arc::new(self.dir.readable()?),
        };
        loop {
            match sys::lock_store(&fd, operation) {
                Ok(()) => return Ok(Some(self.locked_by(Some(Locked(fd))))),
                Err(Errno::WOULDBLOCK) => {
                    let Some(deadline) = deadline else { return Ok(None) };
                    // The process that has the lock may wait for a directory.
                    release_target();
                    deadline.check()?;
                    std::thread::sleep(PAUSE);
                }
                Err(errno) if sys::is_unlockable(errno) => {
                    return Ok(Some(self.locked_by(None)));
                }
                Err(other) => return Err(other.into()),
            }
        }
    }

    fn locked_by(&self, locked: Option<Locked<Arc<OwnedFd>>>) -> StoreLock {
        StoreLock { locked, handles: self.lock_handles.clone() }
    }

    /// The files that are in no segment, and the bytes that the store's directories take on disk.
    pub fn files(&self) -> Result<(Vec<StoredFile>, u64)> {
        let mut files = Vec::new();
        let mut directories = disk_bytes(&sys::stat(self.dir.fd())?);
        for name in names(&self.dir)? {
            // Another process may remove it meanwhile.
            let Ok(stat) = sys::stat_at(self.dir.fd(), name.as_bytes()) else { continue };
            if crate::Metadata::of(&stat).kind == Kind::File {
                files.push(StoredFile { name, disk_bytes: disk_bytes(&stat) });
            } else {
                directories += disk_bytes(&stat);
            }
        }
        Ok((files, directories))
    }

    /// The size on disk that a backup of a target will have.
    pub fn backup_bytes(&self, target: &Target) -> Result<u64> {
        match &target.original {
            Some(original) => Ok(disk_bytes(&sys::stat(original.file.fd())?)),
            None => Ok(0),
        }
    }

    /// The size on disk that a backup of a file to remove will have.
    pub fn removed_backup_bytes(&self, removal: &Removal) -> Result<u64> {
        let (dir, name, meta, _) = removal.parts();
        if meta.kind != Kind::File {
            return Ok(0);
        }
        Ok(disk_bytes(&sys::stat_at(dir.fd(), name.as_bytes())?))
    }

    /// The size on disk that a backup of a file in a directory to remove will have.
    pub fn tree_backup_bytes(&self, tree: &TreeRemoval, entry: usize) -> Result<u64> {
        match tree.entries()[entry].meta.kind {
            Kind::File => Ok(disk_bytes(&sys::stat(tree.file(entry)?.2.fd())?)),
            _ => Ok(0),
        }
    }

    /// The sealed segments, oldest first.
    pub fn segments(&self) -> Result<Vec<Segment>> {
        let Some(sealed) = self.sealed()? else { return Ok(Vec::new()) };
        let mut segments: Vec<_> =
            names(&sealed)?.iter().filter_map(|name| Segment::parse(name.as_bytes())).collect();
        segments.sort();
        Ok(segments)
    }

    /// Moves a log and its files into a new segment. The log is moved last: until then, the next call continues with
    /// the same segment.
    pub fn seal(&self, log: &Name, now: u64, belongs: impl Fn(&Name) -> bool) -> Result<()> {
        let sealed = match self.sealed()? {
            Some(sealed) => sealed,
            None => {
                sys::make_dir(self.dir.fd(), SEALED)?;
                self.sealed()?.ok_or(Error::NotFound)?
            }
        };
        let (mut files, _) = self.files()?;
        files.retain(|file| file.name == *log || belongs(&file.name));
        let last = self.segments()?.pop();
        let unfinished = match &last {
            Some(last) => matches!(self.segment(last)?.meta(log), Err(Error::NotFound)),
            None => false,
        };
        let segment = match last {
            Some(last) if unfinished => last,
            last => {
                let number = last.map_or(1, |last| last.number.saturating_add(1));
                let bytes = files.iter().map(|file| file.disk_bytes).sum::<u64>();
                let directory = disk_bytes(&sys::stat(sealed.fd())?);
                let segment = Segment { number, disk_bytes: bytes + directory, sealed_at: now };
                sys::make_dir(sealed.fd(), segment.name()?.as_bytes())?;
                segment
            }
        };
        let to = self.segment(&segment)?;
        for file in files.iter().filter(|file| file.name != *log) {
            let name = file.name.as_bytes();
            match sys::rename_across(self.dir.fd(), name, to.fd(), name) {
                // A process removes the backup of a change that it did not make without taking the lock.
                Ok(()) | Err(Errno::NOENT) => {}
                Err(other) => return Err(other.into()),
            }
        }
        Ok(sys::rename_across(self.dir.fd(), log.as_bytes(), to.fd(), log.as_bytes())?)
    }

    /// Removes a segment with its files.
    pub fn drop_segment(&self, segment: &Segment) -> Result<()> {
        let Some(sealed) = self.sealed()? else { return Ok(()) };
        let dir = self.segment(segment)?;
        for name in names(&dir)? {
            retry(|| sys::remove(dir.fd(), name.as_bytes()));
        }
        Ok(sys::remove_dir(sealed.fd(), segment.name()?.as_bytes())?)
    }

    /// The lines of a log, last first: that of a segment, or the current one. Empty if there is no such log.
    pub fn lines_from_end(&self, log: &Name, segment: Option<&Segment>) -> Result<LinesFromEnd> {
        let file = match segment {
            Some(segment) => self.segment(segment).and_then(|dir| dir.file(log)),
            None => self.dir.file(log),
        };
        match file {
            Ok(file) => {
                Ok(LinesFromEnd { start: file.meta().len, file: Some(file), bytes: Vec::new() })
            }
            Err(Error::NotFound) => Ok(LinesFromEnd { start: 0, file: None, bytes: Vec::new() }),
            Err(other) => Err(other),
        }
    }

    /// A backup's content, even if it is in a segment.
    pub fn read_backup(&self, name: &Name) -> Result<Vec<u8>> {
        self.open_backup(name).and_then(super::read_all)
    }

    /// A backup, even if it is in a segment. Its owner is that of the file only if it is a hard link.
    pub fn open_backup(&self, name: &Name) -> Result<File> {
        let found = self.dir.file(name);
        if !matches!(found, Err(Error::NotFound)) {
            return found;
        }
        let segments = self.segments()?;
        let files = segments.iter().rev().map(|segment| self.segment(segment)?.file(name));
        let mut found = files.filter(|file| !matches!(file, Err(Error::NotFound)));
        found.next().unwrap_or(Err(Error::NotFound))
    }

    fn sealed(&self) -> Result<Option<Dir>> {
        subdirectory(&self.dir, SEALED)
    }

    fn segment(&self, segment: &Segment) -> Result<Dir> {
        let sealed = self.sealed()?.ok_or(Error::NotFound)?;
        subdirectory(&sealed, segment.name()?.as_bytes())?.ok_or(Error::NotFound)
    }
}

const SEALED: &[u8] = b"sealed";

fn subdirectory(dir: &Dir, name: &[u8]) -> Result<Option<Dir>> {
    match sys::open_at(dir.fd(), name, sys::DIRECTORY | OFlags::NOFOLLOW) {
        Ok(fd) => Ok(Some(Dir::new(fd)?)),
        Err(Errno::NOENT) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

fn names(dir: &Dir) -> Result<Vec<Name>> {
    let mut names = Vec::new();
    let fd: OwnedFd = dir.readable()?;
    sys::list(fd, &mut Vec::new(), |name, _| {
        names.extend(Name::parse(name));
        ControlFlow::Continue(())
    })?;
    Ok(names)
}

/// Blocks are counted in units of 512 bytes, regardless of the file system's block size.
#[allow(clippy::unnecessary_cast, reason = "field types differ between systems")]
fn disk_bytes(stat: &rustix::fs::Stat) -> u64 {
    stat.st_blocks as u64 * 512
}

/// The lines of a log, last first. Reads only as much as the iterator needs.
#[derive(Debug)]
pub struct LinesFromEnd {
    file: Option<File>,
    /// The offset of the bytes that have been read.
    start: u64,
    /// Bytes that were read but not returned yet.
    bytes: Vec<u8>,
}

impl LinesFromEnd {
    const CHUNK: u64 = 64 * 1024;

    /// Reads the chunk before the bytes that have been read. Returns false at the beginning of the log.
    fn read_more(&mut self) -> Result<bool> {
        let Some(file) = self.file.as_ref().filter(|_| self.start > 0) else { return Ok(false) };
        let len = self.start.min(Self::CHUNK);
        self.start -= len;
        let mut chunk = vec![0; usize::try_from(len).unwrap_or_default()];
        let mut read = 0;
        while read < chunk.len() {
            let count = sys::read_from(file.fd(), &mut chunk[read..], self.start + read as u64)?;
            if count == 0 {
                break;
            }
            read += count;
        }
        chunk.truncate(read);
        chunk.append(&mut self.bytes);
        self.bytes = chunk;
        Ok(true)
    }
}

impl Iterator for LinesFromEnd {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.bytes.last() == Some(&b'\n') {
                self.bytes.pop();
            }
            match self.bytes.iter().rposition(|byte| *byte == b'\n') {
                Some(end) => {
                    let line = self.bytes.split_off(end + 1);
                    return Some(Ok(String::from_utf8_lossy(&line).into_owned()));
                }
                None => match self.read_more() {
                    Ok(true) => {}
                    Ok(false) if self.bytes.is_empty() => return None,
                    Ok(false) => {
                        let line = std::mem::take(&mut self.bytes);
                        return Some(Ok(String::from_utf8_lossy(&line).into_owned()));
                    }
                    Err(error) => {
                        self.file = None;
                        return Some(Err(error));
                    }
                },
            }
        }
    }
}
