//! A file that is being read. It hashes the content for the ledger, and checks the call's deadline.

use std::io::{self, Read, Seek, SeekFrom};

use blake3::Hasher;
use pinfold_confine::{Error as ConfineError, File, Metadata, Place, RawPath};
use pinfold_text::LineHasher;

use super::View;
use crate::Error;
use crate::ledger::Fingerprint;

/// A file that is being read.
#[derive(Debug)]
pub(crate) struct TrackedFile<'v> {
    file: File,
    /// The hashes of the content, as far as it was read from the beginning; `None` if the read is not recorded.
    hashers: Option<Box<Hashers>>,
    /// Whether the ledger lacks this version of the file.
    is_new: bool,
    view: &'v View<'v>,
}

#[derive(Debug)]
struct Hashers {
    content: Hasher,
    lines: LineHasher,
}

impl Hashers {
    fn for_file(file: &File) -> Box<Self> {
        let lines = LineHasher::for_size(file.meta().len);
        Box::new(Self { content: Hasher::new(), lines })
    }
}

impl<'v> TrackedFile<'v> {
    /// `is_new` says whether the ledger lacks this version of the file.
    pub(super) fn new(file: File, is_new: bool, view: &'v View<'v>) -> Self {
        let hashers = is_new.then(|| Hashers::for_file(&file));
        Self { file, hashers, is_new, view }
    }

    /// The file's size when it was opened.
    pub(crate) fn len(&self) -> u64 {
        self.file.meta().len
    }

    /// Seeks to the beginning.
    pub(crate) fn rewind(&mut self) {
        self.file.rewind();
        self.hashers = self.is_new.then(|| Hashers::for_file(&self.file));
    }

    /// Its metadata when it was opened.
    pub(crate) fn meta(&self) -> &Metadata {
        self.file.meta()
    }

    /// Seeks to a position. A read from there is not a read of the whole file.
    pub(crate) fn seek_to(&mut self, position: u64) {
        self.file.seek_to(position);
        self.hashers = None;
    }

    /// Does not record the file as read.
    pub(crate) fn skip_recording(&mut self) {
        (self.hashers, self.is_new) = (None, false);
    }

    /// Whether a full read will be recorded. It is not if the ledger already has this version.
    pub(crate) fn is_recording(&self) -> bool {
        self.is_new
    }

    /// Reads the rest of the file for its hash, if the read will be recorded.
    pub(crate) fn hash_rest(&mut self) -> io::Result<()> {
        if self.hashers.is_some() {
            let mut buffer = vec![0; 128 * 1024];
            while self.read(&mut buffer)? > 0 {}
        }
        Ok(())
    }

    /// Records in the ledger that the whole file was read.
    pub(crate) fn record_read(&mut self, place: &Place) {
        if let Some(Hashers { content, lines }) = self.hashers.take().map(|hashers| *hashers) {
            let (hash, meta) = (content.finalize(), Some(*self.file.meta()));
            let fingerprint = Fingerprint { hash, meta, lines: lines.finish() };
            self.view.session.record_read(place, fingerprint);
            self.is_new = false;
        }
    }

    /// The file itself.
    pub(crate) fn into_file(self) -> File {
        self.file
    }

    /// The error for a failed read: the end of the call, or the error of the operating system.
    pub(crate) fn failure(&self, path: &RawPath, cause: io::Error) -> Error {
        match self.view.check_time() {
            Err(ended) => ended,
            Ok(()) => Error::from_read(path, ConfineError::Os(cause)),
        }
    }
}

impl Read for TrackedFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.view.check_time().is_err() {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        let read = self.file.read(buffer)?;
        if let Some(hashers) = &mut self.hashers {
            hashers.content.update(&buffer[..read]);
            hashers.lines.update(&buffer[..read]);
        }
        Ok(read)
    }
}

impl Seek for TrackedFile<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Start(position) = to else {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        };
        self.seek_to(position);
        Ok(position)
    }
}
