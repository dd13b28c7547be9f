//! Adding lines to the end of a file that other processes add to as well.
//!
//! A line is written whole or not at all, where others can be locked out. What is left of a torn one, whoever left
//! it, is never the beginning of the next.

use std::time::Duration;

use rustix::fd::AsFd;
use rustix::io::Errno;

use crate::deadline::PAUSE;
use crate::sys::{self, Locked};
use crate::temp_file::retry;
use crate::{Deadline, Metadata, Result};

/// The right to add to a file that can be read, too.
#[derive(Debug)]
pub(crate) struct LogLock<F: AsFd> {
    file: Locked<F>,
    /// Whether others are locked out.
    alone: bool,
}

impl<F: AsFd> LogLock<F> {
    /// Waits until others are locked out. Where the file system cannot do that, they are not.
    pub(crate) fn wait(file: F, deadline: &Deadline) -> Result<Self> {
        let alone = loop {
            match sys::try_lock(&file) {
                Ok(()) => break true,
                Err(Errno::WOULDBLOCK) => {
                    deadline.check()?;
                    std::thread::sleep(PAUSE);
                }
                Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS) => break false,
                Err(other) => return Err(other.into()),
            }
        };
        Ok(Self { file: Locked(file), alone })
    }

    /// Takes it, whoever has it.
    pub(crate) fn take(file: F) -> Self {
        Self { file: Locked(file), alone: false }
    }

    pub(crate) fn file(&self) -> &F {
        &self.file.0
    }

    /// Adds a line, which has its end.
    pub(crate) fn add(&self, line: &str) -> rustix::io::Result<()> {
        let len = self.len()?;
        let torn = self.is_torn(len)?;
        write(&self.file, line, torn).1.inspect_err(|_| {
            // Alone, so that nothing of somebody else's goes with it.
            if self.alone {
                retry(|| sys::truncate(&self.file, len));
            }
        })
    }

    /// Whether the last line has no end.
    fn is_torn(&self, len: u64) -> rustix::io::Result<bool> {
        let torn = self.ends_within_a_line(len)?;
        if self.alone || !torn {
            return Ok(torn);
        }
        // Another process may be in the midst of it: then it is whole in a moment.
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

/// Writes a line in one call, so that lines of several processes do not mix, after the end of one that was `torn`.
/// Says, too, whether there is a torn line now.
pub(crate) fn write(file: impl AsFd, line: &str, torn: bool) -> (bool, rustix::io::Result<()>) {
    let whole = if torn { format!("\n{line}") } else { line.to_owned() };
    let (written, done) = sys::write_counting(file, whole.as_bytes());
    let torn = match whole.as_bytes()[..written].last() {
        Some(last) => *last != b'\n',
        None => torn,
    };
    (torn, done)
}
