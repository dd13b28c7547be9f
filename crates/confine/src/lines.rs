//! Appends lines to a log that other processes append to as well.
//!
//! Where the log can be locked, a line is written whole or not at all. A torn line that another process
//! left is ended first, so that it never becomes the beginning of the next line.

use std::time::Duration;

use rustix::fd::AsFd;
use rustix::io::Errno;

use crate::deadline::PAUSE;
use crate::sys::{self, Locked};
use crate::temp_file::retry;
use crate::{Deadline, Metadata, Result};

/// A log that is locked for appending, where the file system has locks.
#[derive(Debug)]
pub(crate) struct LogLock<F: AsFd> {
    file: Locked<F>,
    /// Whether it is locked.
    alone: bool,
    /// Its length under the lock, if it is known.
    known_len: Option<u64>,
}

impl<F: AsFd> LogLock<F> {
    /// Waits for the lock. Without locks in the file system, it appends unlocked.
    pub(crate) fn wait(file: F, deadline: &Deadline) -> Result<Self> {
        let alone = loop {
            match sys::try_lock(&file) {
                Ok(()) => break true,
                Err(Errno::WOULDBLOCK) => {
                    deadline.check()?;
                    std::thread::sleep(PAUSE);
                }
                Err(errno) if sys::is_unlockable(errno) => break false,
                Err(other) => return Err(other.into()),
            }
        };
        Ok(Self { file: Locked(file), alone, known_len: None })
    }

    /// Appends unlocked, whoever holds the lock.
    pub(crate) fn take(file: F) -> Self {
        Self { file: Locked(file), alone: false, known_len: None }
    }

    /// Its metadata.
    pub(crate) fn meta(&mut self) -> rustix::io::Result<Metadata> {
        let meta = Metadata::of(&sys::stat(&self.file)?);
        self.known_len = self.alone.then_some(meta.len);
        Ok(meta)
    }

    /// Appends a line, which ends with a newline.
    pub(crate) fn add(self, line: &str) -> rustix::io::Result<()> {
        let len = self.known_len.map_or_else(|| self.len(), Ok)?;
        let torn = self.is_torn(len)?;
        write(&self.file, line, torn).1.inspect_err(|_| {
            // Only under the lock: otherwise it could cut off another process's line.
            if self.alone {
                retry(|| sys::truncate(&self.file, len));
            }
        })
    }

    /// Whether the last line lacks its newline.
    fn is_torn(&self, len: u64) -> rustix::io::Result<bool> {
        let torn = self.ends_within_a_line(len)?;
        if self.alone || !torn {
            return Ok(torn);
        }
        // Without the lock, another process may be writing it right now.
        std::thread::sleep(Duration::from_millis(1));
        self.ends_within_a_line(self.len()?)
    }

    fn ends_within_a_line(&self, len: u64) -> rustix::io::Result<bool> {
        let mut last = [b'\n'];
        if len > 0 {
            sys::read_from(&self.file, &mut last, len - 1)?;
        }
        Ok(last != *b"\n")
    }

    fn len(&self) -> rustix::io::Result<u64> {
        Ok(Metadata::of(&sys::stat(&self.file)?).len)
    }
}

/// Writes a line in one call, so that lines of several processes do not mix. Ends a `torn` line first.
/// Also returns whether the last line is torn now.
pub(crate) fn write(file: impl AsFd, line: &str, torn: bool) -> (bool, rustix::io::Result<()>) {
    let whole = if torn { format!("\n{line}") } else { line.to_owned() };
    let (written, done) = sys::write_counting(file, whole.as_bytes());
    let torn = match whole.as_bytes()[..written].last() {
        Some(last) => *last != b'\n',
        None => torn,
    };
    (torn, done)
}
