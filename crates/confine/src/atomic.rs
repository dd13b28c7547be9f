//! Putting new content in a file's place, all of it or nothing.
//!
//! The content goes into a draft beside the file, which then trades places with it. What comes out
//! must be the file that was looked at; if it is not, they trade back. Other processes that use
//! Pinfold are kept out by a lock on the directory meanwhile, and all others are noticed.
//! Whatever fails, the file has its old content, and the draft and any new directory are gone.

use std::sync::Arc;

use rustix::io::Errno;

use crate::dir::{Dir, DirLock};
use crate::draft::{TempEntry, TempFile, retry};
use crate::parents::Parents;
use crate::target::Original;
use crate::temporary::temp_name;
use crate::{Deadline, Error, Metadata, Name, Result, Target, sys};

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
    /// The new file; `None` in the rare case that it could not be looked at afterwards.
    pub meta: Option<Metadata>,
    /// What was there before; `None` for a new file, or where the file system could not keep it.
    pub old_version: Option<OldVersion>,
}

/// The file that was replaced, still on the disk under a temporary name. Dropping it removes it.
///
/// While it lives, the directory stays locked, so that nobody takes it for something left behind.
#[derive(Debug)]
pub struct OldVersion {
    _at: TempEntry,
    _lock: DirLock,
}

impl OldVersion {
    pub(crate) fn new(at: TempEntry, lock: DirLock) -> Self {
        Self { _at: at, _lock: lock }
    }
}

impl Target {
    /// Makes `content` the file's content.
    ///
    /// [`Error::Changed`] means that the file is not, or no longer, as it was found. Mode, owner
    /// and extended attributes of an existing file are kept, without the bits that lend its
    /// owner's rights; missing directories are made.
    pub fn replace(&self, content: &[u8], durability: Durability) -> Result<Committed> {
        self.replace_with_mode(content, durability, None)
    }

    /// As [`Self::replace`]; a file that was not there gets `mode`.
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
        // A new file has the mode that the system gives new files, from the start. A draft of an
        // existing one is nobody else's to read until it has that file's own mode.
        let first = if self.original.is_some() || mode.is_some() { 0o600 } else { 0o666 };
        let draft = TempFile::create(dir, first)?;
        sys::write_all(&draft.fd, content)?;
        match (&self.original, mode) {
            (Some(original), _) => draft.copy_metadata(original)?,
            (None, Some(mode)) => sys::change_mode(&draft.fd, mode & 0o1777)?,
            (None, None) => {}
        }
        if durability != Durability::None {
            sys::sync_data(&draft.fd)?;
        }
        match &self.original {
            Some(original) => draft.displace(&self.name, original, durability, &self.deadline),
            None => draft.appear(&self.name, durability, &self.deadline),
        }
    }
}

impl Target {
    /// Makes a link where nothing is.
    pub fn link(&self, to: &[u8]) -> Result<()> {
        let parents = Parents::make(&self.dir, &self.missing, Durability::None)?;
        match sys::make_link(parents.dir().fd(), to, self.name.as_bytes()) {
            Err(Errno::EXIST | Errno::NOENT) => return Err(Error::Changed),
            other => other?,
        }
        parents.keep();
        Ok(())
    }
}

impl Original {
    /// Sees to it that a later look can tell whether the content has changed.
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

    /// Whether nothing speaks against `found` being this file with this content.
    ///
    /// Where the times are too fresh to tell, this leaves it to [`Self::is_renamed`], which has to
    /// look at the content anyway.
    fn may_be(&self, found: &Metadata) -> Result<bool> {
        let known = self.file.meta();
        if known.proven_unchanged(found) {
            return Ok(true);
        }
        // Times that were set back do not hide the change of the inode.
        let hidden = known.proven_unchanged_but_renamed(found);
        if hidden { self.has_same_content(found) } else { Ok(known.same_stat(found)) }
    }

    /// Whether `found`, which we have renamed, is this file with this content.
    fn is_renamed(&self, found: &Metadata) -> Result<bool> {
        let same = self.file.meta().proven_unchanged_but_renamed(found);
        Ok(same || self.has_same_content(found)?)
    }

    /// If it is the same file, the handle reads it.
    fn has_same_content(&self, found: &Metadata) -> Result<bool> {
        match self.hash.get() {
            Some(hash) if self.file.meta().same_stat(found) => Ok(self.hash_now()? == *hash),
            _ => Ok(false),
        }
    }
}

/// Whether a file system that says this cannot do what was asked, rather than will not.
pub(crate) fn is_unsupported(errno: Errno) -> bool {
    matches!(errno, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

impl TempFile {
    /// Takes a place that nothing is in.
    fn appear(
        mut self,
        name: &Name,
        durability: Durability,
        deadline: &Deadline,
    ) -> Result<Committed> {
        let dir = self.at.dir.clone();
        let lock = dir.lock(deadline)?;
        dir.sweep(&lock, &self.at.name);
        match sys::rename_new(dir.fd(), self.at.name.as_bytes(), name.as_bytes()) {
            Ok(()) => self.at.delete_on_drop = false,
            Err(Errno::EXIST | Errno::NOENT) => return Err(Error::Changed),
            Err(errno) if is_unsupported(errno) => self.appear_by_link(name)?,
            Err(other) => return Err(other.into()),
        }
        if durability == Durability::Full
            && let Err(error) = dir.sync()
        {
            self.disappear(name)?;
            return Err(error);
        }
        Ok(Committed { meta: self.meta_now(), old_version: None })
    }

    /// For file systems that cannot rename without replacing.
    fn appear_by_link(&mut self, name: &Name) -> Result<()> {
        let (dir, draft) = (self.at.dir.fd(), self.at.name.as_bytes());
        match sys::link(dir, draft, name.as_bytes()) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST | Errno::NOENT) => Err(Error::Changed),
            // Nor link: then look, and rename.
            Err(_) => match sys::stat_at(dir, name.as_bytes()) {
                Err(Errno::NOENT) => {
                    sys::rename(dir, draft, name.as_bytes())?;
                    self.at.delete_on_drop = false;
                    Ok(())
                }
                Err(other) => Err(other.into()),
                Ok(_) => Err(Error::Changed),
            },
        }
    }

    /// Takes back [`Self::appear`].
    fn disappear(&mut self, name: &Name) -> Result<()> {
        let dir = self.at.dir.fd();
        let found = retry(|| sys::stat_at(dir, name.as_bytes()));
        let ours = found.is_some_and(|stat| Metadata::of(&stat).identity == self.meta.identity);
        if ours && retry(|| sys::remove(dir, name.as_bytes())).is_none() {
            return Err(Error::RollbackFailed { kept: name.to_string() });
        }
        Ok(())
    }

    /// Takes the place of the file that was looked at, and of no other.
    fn displace(
        mut self,
        name: &Name,
        original: &Original,
        durability: Durability,
        deadline: &Deadline,
    ) -> Result<Committed> {
        let dir = self.at.dir.clone();
        let lock = dir.lock(deadline)?;
        dir.sweep(&lock, &self.at.name);
        match dir.meta(name) {
            Err(Error::NotFound) => return Err(Error::Changed),
            Err(other) => return Err(other),
            Ok(found) if !original.may_be(&found)? => return Err(Error::Changed),
            Ok(_) => {}
        }
        match sys::exchange(dir.fd(), self.at.name.as_bytes(), name.as_bytes()) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(Error::Changed),
            Err(errno) if is_unsupported(errno) => {
                return self.rename_over(name, original, durability, lock);
            }
            Err(other) => return Err(other.into()),
        }
        // Under the draft's name is now what was in the file's place.
        self.at.delete_on_drop = false;
        if let Err(error) = self.verify(original, durability) {
            self.take_back(name)?;
            return Err(error);
        }
        self.at.delete_on_drop = true;
        Ok(Committed { meta: self.meta_now(), old_version: Some(OldVersion::new(self.at, lock)) })
    }

    fn verify(&self, original: &Original, durability: Durability) -> Result<()> {
        if !original.is_renamed(&self.at.dir.meta(&self.at.name)?)? {
            return Err(Error::Changed);
        }
        if durability == Durability::Full {
            self.at.dir.sync()?;
        }
        Ok(())
    }

    /// Trades places again, so that the other's content is back where it was.
    ///
    /// Somebody without our lock may have put a newer file there in between. Then that one comes
    /// out, and has to go back in its turn: until what comes out is what was put in last.
    fn take_back(&mut self, name: &Name) -> Result<()> {
        let (dir, draft) = (self.at.dir.fd(), self.at.name.as_bytes());
        let under_draft =
            || retry(|| sys::stat_at(dir, draft)).map(|stat| Metadata::of(&stat).identity);
        let mut put_last = Some(self.meta.identity);
        for _ in 0..sys::MAX_RACES {
            let going_in = under_draft();
            let mut was_empty = false;
            let traded = retry(|| match sys::exchange(dir, draft, name.as_bytes()) {
                Err(Errno::NOENT) => {
                    was_empty = true;
                    sys::rename_new(dir, draft, name.as_bytes())
                }
                other => other,
            });
            match (traded, was_empty) {
                (None, _) => break,
                // Somebody had removed what we put there, and nothing came out.
                (Some(()), true) => return Ok(()),
                (Some(()), false) => {}
            }
            let came_out = under_draft();
            if came_out.is_some() && came_out == put_last {
                self.at.delete_on_drop = true;
                return Ok(());
            }
            put_last = going_in;
        }
        Err(self.at.keep())
    }

    /// For file systems that cannot exchange: look again, then rename.
    ///
    /// A second name keeps the old content, where the file system knows such a thing.
    fn rename_over(
        mut self,
        name: &Name,
        original: &Original,
        durability: Durability,
        lock: DirLock,
    ) -> Result<Committed> {
        let dir = self.at.dir.clone();
        let second = temp_name()?;
        let linked = sys::link(dir.fd(), name.as_bytes(), second.as_bytes()).is_ok();
        let mut old = TempEntry { dir: dir.clone(), name: second, delete_on_drop: linked };
        match dir.meta(name) {
            Err(Error::NotFound) => return Err(Error::Changed),
            found => {
                if !original.is_renamed(&found?)? {
                    return Err(Error::Changed);
                }
            }
        }
        sys::rename(dir.fd(), self.at.name.as_bytes(), name.as_bytes())?;
        self.at.delete_on_drop = false;
        if durability == Durability::Full
            && let Err(error) = dir.sync()
            // Without a second name there is no way back: the content is there, if not for sure.
            && linked
        {
            old.delete_on_drop = false;
            let back = retry(|| sys::rename(dir.fd(), old.name.as_bytes(), name.as_bytes()));
            return Err(match back {
                Some(()) => error,
                None => old.keep(),
            });
        }
        let old_version = linked.then(|| OldVersion::new(old, lock));
        Ok(Committed { meta: self.meta_now(), old_version })
    }
}
