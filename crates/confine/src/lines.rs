//! Appends lines to a log that other processes append to as well.
//!
//! If the log can be locked, a line is written completely or not at all. A partial line of another process is ended
//! first, so it never becomes the beginning of the next line.

use std::time::Duration;

use rustix::fd::AsFd;
use rustix::io::Errno;

use crate::deadline::PAUSE;
use crate::sys::{self, Locked};
use crate::temp_file::retry;
use crate::{Deadline, Metadata, Result};

/// A log that is locked for appending, if the file system has locks.
#[derive(Debug)]
pub(crate) struct LogLock<F: AsFd> {
    file: Locked<F>,
    /// Whether it is locked.
    alone: bool,
    /// Its length under the lock, if it is known.
    known_len: Option<u64>,
    /// Whether the last line is known to be whole.
    known_whole: bool,
}

/// How many bytes at the end of a log are read to find its last line. A longer line is not found.
const MAX_LAST_LINE: u64 = 512;

impl<F: AsFd> LogLock<F> {
    /// Waits for the lock. If the file system has no locks, appends without one.
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
        Ok(Self { file: Locked(file), alone, known_len: None, known_whole: false })
    }

    /// Appends without the lock.
    pub(crate) fn take(file: F) -> Self {
        Self { file: Locked(file), alone: false, known_len: None, known_whole: false }
    }

    /// Sets its current length, and its length when the last line was known to be whole.
    pub(crate) fn set_len(&mut self, len: u64, whole_at: u64) {
        self.known_len = self.alone.then_some(len);
        self.known_whole = self.alone && len == whole_at;
    }

    /// Its last line without the newline. Empty if there is none.
    pub(crate) fn last_line(&self) -> rustix::io::Result<String> {
        let len = self.known_len.map_or_else(|| self.len(), Ok)?;
        let mut end = [0; MAX_LAST_LINE as usize];
        let wanted = len.min(MAX_LAST_LINE);
        let end = &mut end[..wanted as usize];
        let read = sys::read_from(&self.file, end, len - wanted)?;
        let text = String::from_utf8_lossy(&end[..read]);
        Ok(text.lines().next_back().unwrap_or_default().to_owned())
    }

    /// Appends a line, which ends with a newline. Returns the log's length, if it is known.
    pub(crate) fn add(&self, line: &str) -> rustix::io::Result<Option<u64>> {
        let len = self.known_len.map_or_else(|| self.len(), Ok)?;
        let partial = !self.known_whole && self.is_partial(len)?;
        write(&self.file, line, partial).1.inspect_err(|_| {
            // Only under the lock. Without it, this could cut off another process's line.
            if self.alone {
                retry(|| sys::truncate(&self.file, len));
            }
        })?;
        Ok(self.alone.then_some(len + u64::from(partial) + line.len() as u64))
    }

    /// Whether the last line lacks its newline.
    fn is_partial(&self, len: u64) -> rustix::io::Result<bool> {
        let partial = self.ends_within_a_line(len)?;
        if self.alone || !partial {
            return Ok(partial);
        }
        // Without the lock, another process may be writing the line just now.
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

/// Writes a line in one call, so that lines of several processes do not mix. Ends a `partial` line first. Also
/// returns whether the last line is partial now.
pub(crate) fn write(file: impl AsFd, line: &str, partial: bool) -> (bool, rustix::io::Result<()>) {
    let whole = if partial { format!("\n{line}") } else { line.to_owned() };
    let (written, done) = sys::write_counting(file, whole.as_bytes());
    let partial = match whole.as_bytes()[..written].last() {
        Some(last) => *last != b'\n',
        None => partial,
    };
    (partial, done)
}
