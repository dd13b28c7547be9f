//! Replaces a file's content, all of it or nothing.
//!
//! The new content goes into a temp file beside the file, and the two are exchanged. The file that
//! comes out must be the one that the call found, and its directory must still be where the path
//! leads; otherwise they are exchanged back. A lock on the directory keeps other Pinfold processes
//! out meanwhile; other programs are noticed. Whatever fails, the file has its old content, and the
//! temp file and new directories are gone.

use std::sync::Arc;

use rustix::io::Errno;

use crate::dir::{Dir, DirLock};
use crate::parents::Parents;
use crate::target::Original;
use crate::temp_file::{Digest, TempEntry, TempFile, TempName, retry};
use crate::{Error, Metadata, Name, Result, Target, sys};

/// What is flushed to the disk before a change is complete.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, Eq, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Nothing: the change survives a crash of the process, but perhaps not a loss of power.
    None,
    /// The content, before the rename: a loss of power leaves the old or the new content.
    #[default]
    Data,
    /// The directory too: a loss of power after the call leaves the new content.
    Full,
}

/// A change that was made.
#[derive(Debug)]
pub struct Committed {
    /// The new file; `None` in the rare case that `fstat` fails afterwards.
    pub meta: Option<Metadata>,
    /// The old file; `None` for a new one.
    pub old_version: Option<OldVersion>,
    /// Files in the same directory that hold content which a killed process displaced: it may
    /// exist nowhere else.
    pub unverified: Vec<Name>,
}

/// The file that was replaced or removed, still on the disk under a temp name. Dropping this
/// deletes it.
///
/// The directory stays locked meanwhile, so that no other process takes it for left behind.
#[derive(Debug)]
pub struct OldVersion {
    _entry: TempEntry,
    _lock: DirLock,
    /// As [`Committed::unverified`].
    pub unverified: Vec<Name>,
}

impl OldVersion {
    pub(crate) fn new(entry: TempEntry, lock: DirLock, unverified: Vec<Name>) -> Self {
        Self { _entry: entry, _lock: lock, unverified }
    }
}

impl Target {
    /// Makes `content` the file's content.
    ///
    /// [`Error::Changed`] means that the file is not as it was found. Mode, owner and extended
    /// attributes of an existing file are kept, without set-user-id and set-group-id; missing
    /// directories are created.
    pub fn replace(&self, content: &[u8], durability: Durability) -> Result<Committed> {
        self.replace_with_mode(content, durability, None)
    }

    /// As [`Self::replace`]; a new file gets `mode`.
    pub fn replace_with_mode(
        &self,
        content: &[u8],
        durability: Durability,
        mode: Option<u32>,
    ) -> Result<Committed> {
        if let Some(original) = &self.original {
            match self.check_writable() {
                Err(Error::NotFound) => return Err(Error::Changed),
                other => other?,
            }
            original.prepare()?;
        }
        let parents = Parents::make(&self.dir, &self.missing, durability)?;
        let committed = self.commit(parents.dir(), content, durability, mode)?;
        parents.keep();
        Ok(committed)
    }

    fn commit(
        &self,
        dir: &Arc<Dir>,
        content: &[u8],
        durability: Durability,
        mode: Option<u32>,
    ) -> Result<Committed> {
        // A new file has the mode that the system gives new files, from the start. New content of
        // an existing one is for nobody else to read until it has that file's own mode.
        let first = if self.original.is_some() || mode.is_some() { 0o600 } else { 0o666 };
        let temp = TempFile::create(dir, first, self.original.as_ref().map(Original::digest))?;
        sys::write_all(&temp.fd, content)?;
        match (&self.original, mode) {
            (Some(original), _) => temp.copy_metadata(original)?,
            (None, Some(mode)) => sys::change_mode(&temp.fd, mode & 0o1777)?,
            (None, None) => {}
        }
        if durability != Durability::None {
            sys::sync_data(&temp.fd)?;
        }
        let lock = dir.lock(&self.deadline)?;
        let unverified = dir.sweep(&lock, &temp.entry.name, &self.deadline);
        self.check_directory(dir)?;
        // The call may have been answered while a system call above hung: it must change nothing then.
        self.deadline.check()?;
        let replacement = Replacement { target: self, dir, temp, lock, unverified, durability };
        match &self.original {
            Some(original) => replacement.exchange(original),
            None => replacement.create(),
        }
    }

    /// Creates a symlink where nothing is.
    pub fn link(&self, to: &[u8]) -> Result<()> {
        let parents = Parents::make(&self.dir, &self.missing, Durability::None)?;
        let dir = parents.dir();
        self.check_directory(dir)?;
        self.deadline.check()?;
        match sys::make_link(dir.fd(), to, self.name.as_bytes()) {
            Err(Errno::EXIST | Errno::NOENT) => return Err(Error::Changed),
            other => other?,
        }
        if let Err(error) = self.check_directory(dir).and_then(|()| self.deadline.check()) {
            retry(|| sys::remove(dir.fd(), self.name.as_bytes()));
            return Err(error);
        }
        parents.keep();
        Ok(())
    }

    /// Fails if the path no longer leads to the directory that the change goes to.
    fn check_directory(&self, dir: &Dir) -> Result<()> {
        self.location.check(dir)
    }
}

impl Original {
    /// Hashes the content, unless the times alone will show whether it has changed.
    fn prepare(&self) -> Result<()> {
        let now = self.file.meta_now()?;
        if !self.file.meta().same_stat(&now) {
            return Err(Error::Changed);
        }
        if !self.file.meta().proven_unchanged(&now) {
            self.hash()?;
        }
        Ok(())
    }

    fn digest(&self) -> Digest {
        Digest::new(self.file.meta(), self.hash.get())
    }

    /// Whether `found` may be this file with this content.
    ///
    /// Where the times are too recent to tell, [`Self::is_renamed`] hashes the content anyway.
    fn may_be(&self, found: &Metadata) -> Result<bool> {
        let known = self.file.meta();
        if known.proven_unchanged(found) {
            return Ok(true);
        }
        // A modification time that was set back does not hide the change of ctime.
        let hidden = known.proven_unchanged_but_renamed(found);
        if hidden { self.has_same_content(found) } else { Ok(known.same_stat(found)) }
    }

    /// Whether `found`, which this process has renamed, is this file with this content.
    fn is_renamed(&self, found: &Metadata) -> Result<bool> {
        let same = self.file.meta().proven_unchanged_but_renamed(found);
        Ok(same || self.has_same_content(found)?)
    }

    /// If it is the same inode, the open handle reads it.
    fn has_same_content(&self, found: &Metadata) -> Result<bool> {
        match self.hash.get() {
            Some(hash) if self.file.meta().same_stat(found) => Ok(self.hash_now()? == *hash),
            _ => Ok(false),
        }
    }
}

/// A temp file that is to take the target's place, in a locked directory.
struct Replacement<'t> {
    target: &'t Target,
    dir: &'t Arc<Dir>,
    temp: TempFile,
    lock: DirLock,
    unverified: Vec<Name>,
    durability: Durability,
}

impl Replacement<'_> {
    /// Takes a name that nothing has.
    fn create(mut self) -> Result<Committed> {
        self.place()?;
        if let Err(error) = self.check_placed() {
            self.remove_placed()?;
            return Err(error);
        }
        let Self { temp, unverified, .. } = self;
        Ok(Committed { meta: temp.meta_now(), old_version: None, unverified })
    }

    /// Gives the temp file the target's name, unless that is taken.
    fn place(&mut self) -> Result<()> {
        let (dir, temp) = (self.dir.fd(), self.temp.entry.name.as_bytes());
        let name = self.target.name.as_bytes();
        match sys::rename_new(dir, temp, name) {
            Ok(()) => self.temp.entry.delete_on_drop = false,
            Err(Errno::EXIST | Errno::NOENT) => return Err(Error::Changed),
            Err(errno) if sys::is_unsupported(errno) => match sys::link(dir, temp, name) {
                Ok(()) => {}
                Err(Errno::EXIST | Errno::NOENT) => return Err(Error::Changed),
                // Some file systems have neither. There a file that another process creates
                // between these two calls is replaced.
                Err(_) => match sys::stat_at(dir, name) {
                    Err(Errno::NOENT) => {
                        sys::rename(dir, temp, name)?;
                        self.temp.entry.delete_on_drop = false;
                    }
                    Err(other) => return Err(other.into()),
                    Ok(_) => return Err(Error::Changed),
                },
            },
            Err(other) => return Err(other.into()),
        }
        Ok(())
    }

    /// Whether the change is where the path leads, as durable as it has to be, and in time.
    fn check_placed(&self) -> Result<()> {
        self.target.check_directory(self.dir)?;
        if self.durability == Durability::Full {
            self.dir.sync()?;
        }
        self.target.deadline.check()
    }

    /// Takes back [`Self::place`].
    fn remove_placed(&mut self) -> Result<()> {
        let (dir, name) = (self.dir.fd(), &self.target.name);
        let found = retry(|| sys::stat_at(dir, name.as_bytes()));
        let ours =
            found.is_some_and(|stat| Metadata::of(&stat).identity == self.temp.meta.identity);
        if ours && retry(|| sys::remove(dir, name.as_bytes())).is_none() {
            return Err(Error::RollbackFailed { kept: name.to_string() });
        }
        Ok(())
    }

    /// Takes the place of the file that the call found, and of no other.
    fn exchange(mut self, original: &Original) -> Result<Committed> {
        let (dir, name) = (self.dir, &self.target.name);
        match dir.meta(name) {
            Err(Error::NotFound) => return Err(Error::Changed),
            Err(other) => return Err(other),
            Ok(found) if !original.may_be(&found)? => return Err(Error::Changed),
            Ok(_) => {}
        }
        match sys::exchange(dir.fd(), self.temp.entry.name.as_bytes(), name.as_bytes()) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(Error::Changed),
            Err(errno) if sys::is_unsupported(errno) => return self.move_aside(original),
            Err(other) => return Err(other.into()),
        }
        // The temp name now has the file that was in the target's place.
        self.temp.entry.delete_on_drop = false;
        let verified = self.verify(original, &self.temp.entry.name);
        if let Err(error) = verified.and_then(|()| self.check_placed()) {
            self.exchange_back()?;
            return Err(error);
        }
        self.temp.entry.delete_on_drop = true;
        let meta = self.temp.meta_now();
        let Self { temp, lock, unverified, .. } = self;
        let old_version = Some(OldVersion::new(temp.entry, lock, Vec::new()));
        Ok(Committed { meta, old_version, unverified })
    }

    fn verify(&self, original: &Original, name: &Name) -> Result<()> {
        if original.is_renamed(&self.dir.meta(name)?)? { Ok(()) } else { Err(Error::Changed) }
    }

    /// Exchanges again, so that the displaced file is back where it was.
    ///
    /// A program without our lock may have saved a newer file in between. Then that one comes out,
    /// and has to go back: until what comes out is what was put in last.
    fn exchange_back(&mut self) -> Result<()> {
        let (dir, temp) = (self.dir.fd(), self.temp.entry.name.as_bytes());
        let name = self.target.name.as_bytes();
        let under_temp =
            || retry(|| sys::stat_at(dir, temp)).map(|stat| Metadata::of(&stat).identity);
        let mut put_last = Some(self.temp.meta.identity);
        for _ in 0..sys::MAX_RACES {
            let going_in = under_temp();
            let mut was_empty = false;
            let exchanged = retry(|| match sys::exchange(dir, temp, name) {
                Err(Errno::NOENT) => {
                    was_empty = true;
                    sys::rename_new(dir, temp, name)
                }
                other => other,
            });
            match (exchanged, was_empty) {
                (None, _) => break,
                // The file that we put there was removed, so nothing came out.
                (Some(()), true) => return Ok(()),
                (Some(()), false) => {}
            }
            let came_out = under_temp();
            if came_out.is_some() && came_out == put_last {
                self.temp.entry.delete_on_drop = true;
                return Ok(());
            }
            put_last = going_in;
        }
        Err(self.temp.entry.keep())
    }

    /// For file systems that cannot exchange: moves the old file aside, verifies it, and gives the
    /// new one its name. A file that another program saves meanwhile is never replaced.
    ///
    /// The name is free for a moment. If the process is killed then, the next sweep of the directory
    /// moves the old file back.
    fn move_aside(mut self, original: &Original) -> Result<Committed> {
        let (dir, name) = (self.dir, &self.target.name);
        let aside = TempName::aside(original.digest(), name)?.name()?;
        match sys::rename_new(dir.fd(), name.as_bytes(), aside.as_bytes()) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(Error::Changed),
            // The name is random, so nothing is replaced.
            Err(errno) if sys::is_unsupported(errno) => {
                match sys::rename(dir.fd(), name.as_bytes(), aside.as_bytes()) {
                    Err(Errno::NOENT) => return Err(Error::Changed),
                    other => other?,
                }
            }
            Err(other) => return Err(other.into()),
        }
        let mut aside = TempEntry { dir: dir.clone(), name: aside, delete_on_drop: false };
        let verified = self.verify(original, &aside.name);
        let is_original = verified.is_ok();
        let placed = verified.and_then(|()| self.place());
        let is_placed = placed.is_ok();
        if let Err(error) = placed.and_then(|()| self.check_placed()) {
            if is_placed {
                self.remove_placed()?;
            }
            if dir.put_back(&aside.name, name) {
                return Err(error);
            }
            // A newer file has the name. It supersedes the file that this call found, but no other.
            let superseded = is_original && dir.meta(name).is_ok();
            if superseded {
                aside.delete_on_drop = true;
                return Err(error);
            }
            return Err(aside.keep());
        }
        aside.delete_on_drop = true;
        let meta = self.temp.meta_now();
        let Self { lock, unverified, .. } = self;
        let old_version = Some(OldVersion::new(aside, lock, Vec::new()));
        Ok(Committed { meta, old_version, unverified })
    }
}
