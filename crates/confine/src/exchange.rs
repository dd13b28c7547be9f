//! Puts a temp file in the place of the file that a call found, and of no other.
//!
//! The two are exchanged. The displaced file must be the one that the call found, and its directory must still be
//! where the path leads; otherwise they are exchanged back. If names cannot be changed back, because the directory
//! was moved to where the kernel forbids changes, the old content is written into the new file through the open
//! handle, and the error says what is left.

use std::sync::Arc;

use rustix::io::Errno;

use crate::atomic::OldVersion;
use crate::dir::Dir;
use crate::lock::DirLock;
use crate::target::Original;
use crate::temp_file::{PutBack, TempEntry, TempFile, retry};
use crate::{Durability, Error, Identity, Metadata, Name, ReplacedFile, Result, Target, sys};

/// A temp file that takes the target's place, in a locked directory.
pub(crate) struct Swap<'t> {
    target: &'t Target,
    dir: &'t Arc<Dir>,
    temp: TempFile,
    lock: DirLock,
    unverified: Vec<Name>,
    durability: Durability,
    may_have_replaced: bool,
}

impl<'t> Swap<'t> {
    pub(crate) fn new(
        target: &'t Target,
        dir: &'t Arc<Dir>,
        temp: TempFile,
        lock: DirLock,
        unverified: Vec<Name>,
        durability: Durability,
    ) -> Self {
        let may_have_replaced = false;
        Self { target, dir, temp, lock, unverified, durability, may_have_replaced }
    }

    /// Gives the temp file a free name.
    pub(crate) fn create(mut self) -> Result<ReplacedFile> {
        self.place()?;
        if let Err(error) = self.check_placed() {
            if self.remove_placed() {
                return Err(error);
            }
            let emptied = retry(|| sys::truncate(&self.temp.fd, 0)).is_some();
            return Err(Error::CreatedRemains { emptied });
        }
        let Self { temp, unverified, may_have_replaced, .. } = self;
        Ok(ReplacedFile { meta: temp.meta_now(), old_version: None, unverified, may_have_replaced })
    }

    /// Gives the temp file the target's name, unless the name is taken.
    fn place(&mut self) -> Result<()> {
        if self.temp.is_unnamed {
            match sys::link_unnamed(&self.temp.fd, self.dir.fd(), self.target.name.as_bytes()) {
                Ok(()) => return Ok(()),
                Err(Errno::EXIST) => return Err(Error::Changed),
                Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::IO)) => return Err(errno.into()),
                Err(_) => {
                    self.temp = self.temp.named_copy(self.durability)?;
                    self.target.deadline.check()?;
                }
            }
        }
        let (dir, temp) = (self.dir.fd(), self.temp.entry.name.as_bytes());
        let name = self.target.name.as_bytes();
        match sys::rename_new(dir, temp, name) {
            Ok(()) => self.temp.entry.delete_on_drop = false,
            Err(Errno::EXIST | Errno::NOENT) => return Err(Error::Changed),
            Err(errno) if sys::is_unsupported(errno) => match sys::link(dir, temp, name) {
                Ok(()) => {}
                Err(Errno::EXIST | Errno::NOENT) => return Err(Error::Changed),
                // Some file systems have neither call. There, a file that another process creates between these two
                // calls is replaced.
                Err(_) => match sys::stat_at(dir, name) {
                    Err(Errno::NOENT) => {
                        sys::rename(dir, temp, name)?;
                        self.temp.entry.delete_on_drop = false;
                        self.may_have_replaced = true;
                    }
                    Err(other) => return Err(other.into()),
                    Ok(_) => return Err(Error::Changed),
                },
            },
            Err(other) => return Err(other.into()),
        }
        self.temp.entry.written = None;
        Ok(())
    }

    /// Fails unless the path leads to the change, the change is as durable as required, and the deadline has not
    /// passed.
    fn check_placed(&self) -> Result<()> {
        self.target.check_directory(self.dir)?;
        if self.durability == Durability::Full {
            self.dir.sync()?;
        }
        self.target.deadline.check()
    }

    /// Undoes [`Self::place`]. Returns false if the new file still has the name.
    fn remove_placed(&self) -> bool {
        let name = self.target.name.as_bytes();
        match self.identity_of(&self.target.name) {
            Some(found) if found != Some(self.temp.meta.identity) => true,
            Some(_) => retry(|| sys::remove(self.dir.fd(), name)).is_some(),
            None => false,
        }
    }

    /// The identity of the file with this name, if there is one. Returns `None` if it is unknown.
    fn identity_of(&self, name: &Name) -> Option<Option<Identity>> {
        retry(|| match sys::stat_at(self.dir.fd(), name.as_bytes()) {
            Err(Errno::NOENT) => Ok(None),
            other => other.map(|stat| Some(Metadata::of(&stat).identity)),
        })
    }

    /// Takes the place of the file that the call found, and of no other.
    pub(crate) fn exchange(mut self, original: &Original) -> Result<ReplacedFile> {
        let (dir, name) = (self.dir, &self.target.name);
        // Before the check, so that nothing else is done between the check and the exchange.
        if self.temp.is_unnamed {
            self.temp.give_temp_name(self.durability)?;
            self.target.deadline.check()?;
        }
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
        self.temp.entry.written = None;
        let verified = self.verify(original, &self.temp.entry.name);
        let is_original = verified.is_ok();
        if let Err(error) = verified.and_then(|()| self.check_placed()) {
            if self.exchange_back() {
                return Err(error);
            }
            let restore = || self.restore_in_place(original, &self.temp.entry);
            let restored = is_original.then(restore).flatten();
            return Err(restored.unwrap_or_else(|| self.temp.entry.keep_and_report()));
        }
        self.temp.entry.delete_on_drop = true;
        let meta = self.temp.meta_now();
        let Self { temp, lock, unverified, .. } = self;
        let old_version = Some(OldVersion::new(temp.entry, lock, Vec::new()));
        Ok(ReplacedFile { meta, old_version, unverified, may_have_replaced: false })
    }

    fn verify(&self, original: &Original, name: &Name) -> Result<()> {
        if original.is_renamed(&self.dir.meta(name)?)? { Ok(()) } else { Err(Error::Changed) }
    }

    /// Exchanges again, so that the displaced file gets its place back. Returns false if that fails.
    ///
    /// A program without our lock may have saved a newer file in between. Then that one is displaced, and has to go
    /// back. The loop ends when the displaced file is the one that was put there last.
    fn exchange_back(&mut self) -> bool {
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
                (None, _) => return false,
                // The file that we put there was removed, so nothing was displaced.
                (Some(()), true) => return true,
                (Some(()), false) => {}
            }
            let came_out = under_temp();
            if came_out.is_some() && came_out == put_last {
                self.temp.entry.delete_on_drop = true;
                return true;
            }
            put_last = going_in;
        }
        false
    }

    /// Writes the old content into the new file, if that has the target's name and the old file is still the entry
    /// `copy`.
    fn restore_in_place(&self, original: &Original, copy: &TempEntry) -> Option<Error> {
        let (new, old) = (self.temp.meta.identity, original.file.meta());
        let both_there = self.identity_of(&self.target.name) == Some(Some(new))
            && self.identity_of(&copy.name) == Some(Some(old.identity));
        // If the process is killed meanwhile, no sweep deletes the only whole version.
        let restored =
            both_there && copy.change_digest() && self.temp.write_back(&original.file).is_ok();
        restored.then(|| {
            copy.set_modified(old.modified);
            Error::RestoredInPlace { copy: copy.name.to_string() }
        })
    }

    /// For file systems that cannot exchange: moves the old file aside, verifies it, and gives the
    /// new one its name. A file that another program saves meanwhile is never replaced.
    ///
    /// The name is free for a moment. If the process is killed then, the next sweep of the directory
    /// moves the old file back.
    fn move_aside(mut self, original: &Original) -> Result<ReplacedFile> {
        let (dir, name) = (self.dir, &self.target.name);
        let written = self.temp.meta.identity.inode();
        let mut aside = dir.set_aside(name, original.digest(), Some(written))?;
        let verified = self.verify(original, &aside.name);
        let is_original = verified.is_ok();
        let placed = verified.and_then(|()| self.place());
        let is_placed = placed.is_ok();
        if let Err(error) = placed.and_then(|()| self.check_placed()) {
            return Err(self.undo_move_aside(original, aside, (is_original, is_placed), error));
        }
        aside.delete_on_drop = true;
        let meta = self.temp.meta_now();
        let Self { lock, unverified, may_have_replaced, .. } = self;
        let old_version = Some(OldVersion::new(aside, lock, Vec::new()));
        Ok(ReplacedFile { meta, old_version, unverified, may_have_replaced })
    }

    /// Undoes [`Self::move_aside`] because of `error`. Returns the error that says what is left.
    fn undo_move_aside(
        &self,
        original: &Original,
        mut aside: TempEntry,
        (is_original, is_placed): (bool, bool),
        error: Error,
    ) -> Error {
        if is_placed && !self.remove_placed() {
            let restored = self.restore_in_place(original, &aside);
            return restored.unwrap_or_else(|| aside.keep_and_report());
        }
        match self.dir.put_back(&aside.name, &self.target.name) {
            PutBack::Done => error,
            // A newer file has the name. It supersedes the file that this call found, but no other.
            PutBack::Taken if is_original => {
                aside.delete_on_drop = true;
                error
            }
            PutBack::Taken | PutBack::Failed => aside.keep_and_report(),
        }
    }
}
