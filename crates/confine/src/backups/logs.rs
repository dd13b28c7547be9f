//! The logs of a backup store. Their handles stay open from one line to the next.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::BackupStore;
use crate::lines::LogLock;
use crate::{Deadline, Error, Identity, Metadata, Name, Result, sys};

/// Open handles that are not in use. A user takes a handle out, since threads that share a handle share its lock.
#[derive(Debug)]
pub(super) struct Spare<T>(Mutex<Vec<(u32, T)>>);

impl<T> Default for Spare<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Spare<T> {
    /// Takes a handle out. A handle from before a fork shares its lock with the other process, and is not taken.
    pub(super) fn take(&self, wanted: impl Fn(&T) -> bool) -> Option<T> {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = std::process::id();
        let at = spare.iter().position(|(process, it)| *process == own && wanted(it))?;
        Some(spare.swap_remove(at).1)
    }

    /// Returns a handle for the next user, unless there is one like it.
    pub(super) fn put(&self, handle: T, alike: impl Fn(&T) -> bool) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = std::process::id();
        spare.retain(|(process, _)| *process == own);
        if !spare.iter().any(|(_, it)| alike(it)) {
            spare.push((own, handle));
        }
    }
}

/// A log that is open for appending.
#[derive(Debug)]
pub(super) struct OpenLog {
    name: Name,
    file: OwnedFd,
    identity: Identity,
    /// Its length after the last line that was appended through this handle, or 0.
    len: AtomicU64,
}

impl AsFd for OpenLog {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl BackupStore {
    /// Appends a line to a log.
    pub fn append(&self, log: &Name, line: &str, deadline: &Deadline) -> Result<()> {
        let (open, turn) = self.turn(log, deadline)?;
        self.add(open, turn, line)
    }

    /// Appends the line that `next` makes from a log's last line, which is empty if there is none. Returns whether it
    /// made one. No other process appends a line in between.
    pub fn append_after(
        &self,
        log: &Name,
        deadline: &Deadline,
        next: impl FnOnce(&str) -> Option<String>,
    ) -> Result<bool> {
        let (open, turn) = self.turn(log, deadline)?;
        let line = next(&turn.last_line()?);
        match &line {
            Some(line) => self.add(open, turn, line)?,
            None => self.keep_open(open, turn),
        }
        Ok(line.is_some())
    }

    /// The last line of a log. Empty if there is none.
    pub fn last_line(&self, log: &Name) -> Result<String> {
        match self.dir.file(log) {
            Ok(file) => Ok(LogLock::take(file.fd()).last_line()?),
            Err(Error::NotFound) => Ok(String::new()),
            Err(other) => Err(other),
        }
    }

    /// Locks a log, through a handle on the file that currently has the log's name.
    pub(super) fn turn(
        &self,
        log: &Name,
        deadline: &Deadline,
    ) -> Result<(Arc<OpenLog>, LogLock<Arc<OpenLog>>)> {
        for _ in 0..sys::MAX_RACES {
            let open = match self.open_logs.take(|open| open.name == *log) {
                Some(open) => open,
                None => {
                    let file = sys::append_at(self.dir.fd(), log.as_bytes())?;
                    let identity = Metadata::of(&sys::stat(&file)?).identity;
                    Arc::new(OpenLog { name: log.clone(), file, identity, len: AtomicU64::new(0) })
                }
            };
            let mut turn = LogLock::wait(open.clone(), deadline)?;
            if let Ok(named) = self.dir.meta(log)
                && named.identity == open.identity
            {
                turn.set_len(named.len, open.len.load(Ordering::Relaxed));
                return Ok((open, turn));
            }
        }
        Err(Error::Changed)
    }

    fn add(&self, open: Arc<OpenLog>, turn: LogLock<Arc<OpenLog>>, line: &str) -> Result<()> {
        let len = turn.add(&format!("{line}\n"))?;
        open.len.store(len.unwrap_or_default(), Ordering::Relaxed);
        self.keep_open(open, turn);
        Ok(())
    }

    fn keep_open(&self, open: Arc<OpenLog>, turn: LogLock<Arc<OpenLog>>) {
        // The lock is released first.
        drop(turn);
        let name = open.name.clone();
        self.open_logs.put(open, |other| other.name == name);
    }
}
