//! A regular file, open for reading.

use std::io::{self, Read};
use std::os::fd::OwnedFd;

use blake3::{Hash, Hasher};

use crate::{Deadline, Error, Kind, Metadata, Result, sys};

/// A regular file below a root.
///
/// Reading starts at the beginning. The position belongs to this value; [`File::rewind`] resets it.
#[derive(Debug)]
pub struct File {
    fd: OwnedFd,
    meta: Metadata,
    position: u64,
    at_end: bool,
    /// Its whole content, if it was read when the file was opened.
    content: Option<Vec<u8>>,
}

impl File {
    /// Fails unless the handle is on a regular file.
    pub(crate) fn regular(fd: OwnedFd) -> Result<Self> {
        let meta = Metadata::of(&sys::stat(&fd)?);
        match meta.kind {
            Kind::File => Ok(Self::new(meta, fd)),
            Kind::Directory => Err(Error::IsDirectory),
            other => Err(Error::NotRegular(other)),
        }
    }

    /// The regular file that a handle is on, and its metadata.
    pub(crate) fn new(meta: Metadata, fd: OwnedFd) -> Self {
        Self { fd, meta, position: 0, at_end: false, content: None }
    }

    /// The same file, read from memory: `content` is its whole content.
    pub(crate) fn with_content(self, content: Vec<u8>) -> Self {
        Self { content: Some(content), ..self }
    }

    /// Its metadata when it was opened.
    pub fn meta(&self) -> &Metadata {
        &self.meta
    }

    /// Records that this process made a hard link, which changes ctime. Fails if anything else has changed. `now` is
    /// the metadata of the link.
    pub(crate) fn note_new_link(&mut self, now: &Metadata) -> Result<()> {
        if !self.meta.same_stat(now) {
            return Err(Error::Changed);
        }
        self.meta.update_ctime(now);
        Ok(())
    }

    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Seeks to the beginning.
    pub fn rewind(&mut self) {
        self.position = 0;
        self.at_end = false;
    }

    /// Seeks to an offset in bytes.
    pub fn seek_to(&mut self, place: u64) {
        self.position = place;
        self.at_end = false;
    }

    /// Its whole content. Fails if it has grown since it was opened, since a writer may never end.
    ///
    /// The allocator gets zeroed pages from the system, so the buffer is not filled twice.
    pub(crate) fn read_whole(&mut self) -> Result<Vec<u8>> {
        self.rewind();
        let len = usize::try_from(self.meta.len).unwrap_or(usize::MAX);
        let mut bytes = vec![0; len.saturating_add(1)];
        let mut filled = 0;
        while filled < bytes.len() {
            match self.read(&mut bytes[filled..]).map_err(Error::Os)? {
                0 => {
                    bytes.truncate(filled);
                    return Ok(bytes);
                }
                read => filled += read,
            }
        }
        Err(Error::Changed)
    }

    /// The hash of its current content.
    pub(crate) fn hash(&self, deadline: &Deadline) -> Result<Hash> {
        const BUFFER: u64 = 128 * 1024;
        let mut hasher = Hasher::new();
        let mut buffer = vec![0; self.meta.len.saturating_add(1).min(BUFFER) as usize];
        let mut position = 0;
        loop {
            deadline.check()?;
            let read = sys::read_from(&self.fd, &mut buffer, position)?;
            hasher.update(&buffer[..read]);
            position += read as u64;
            if read == 0 || read < buffer.len() && position >= self.meta.len {
                return Ok(hasher.finalize());
            }
        }
    }
}

impl From<File> for OwnedFd {
    /// Returns the handle, whose own offset is still 0.
    fn from(file: File) -> Self {
        file.fd
    }
}

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at_end {
            return Ok(0);
        }
        let read = match &self.content {
            Some(content) => {
                let start = content.len().min(usize::try_from(self.position).unwrap_or(usize::MAX));
                (&content[start..]).read(buffer)?
            }
            None => sys::read_from(&self.fd, buffer, self.position)?,
        };
        self.position += read as u64;
        // A short read of a regular file means its end. If `fstat` gave the same size, no second call is needed.
        self.at_end = read < buffer.len() && self.position >= self.meta.len;
        Ok(read)
    }
}
