//! A file being read: what was read is hashed for the ledger, and the call's deadline is checked.

use std::io::{self, Read};

use blake3::Hasher;
use pinfold_confine::{Error as ConfineError, File, Metadata, Place, RawPath};
use pinfold_text::LineHasher;

use super::View;
use crate::Error;
use crate::ledger::Fingerprint;

/// A file being read.
#[derive(Debug)]
pub(crate) struct TrackedFile<'v> {
    file: File,
    hasher: Hasher,
    lines: LineHasher,
    view: &'v View<'v>,
}

impl<'v> TrackedFile<'v> {
    pub(super) fn new(file: File, view: &'v View<'v>) -> Self {
        Self { file, hasher: Hasher::new(), lines: LineHasher::default(), view }
    }

    /// The file's size when it was opened.
    pub(crate) fn len(&self) -> u64 {
        self.file.meta().len
    }

    /// Starts again at the beginning.
    pub(crate) fn rewind(&mut self) {
        self.file.rewind();
        self.hasher.reset();
        self.lines = LineHasher::default();
    }

    /// Its metadata when it was opened.
    pub(crate) fn meta(&self) -> &Metadata {
        self.file.meta()
    }

    /// Seeks to a position. What is read from there on is not the whole file.
    pub(crate) fn seek_to(&mut self, position: u64) {
        self.file.seek_to(position);
    }

    /// Reads the rest of the file and keeps only its hash.
    pub(crate) fn hash_rest(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; 128 * 1024];
        while self.read(&mut buffer)? > 0 {}
        Ok(())
    }

    /// The whole file was read: notes that in the ledger.
    pub(crate) fn record_read(self, place: &Place) -> File {
        let (hash, meta) = (self.hasher.finalize(), Some(*self.file.meta()));
        let fingerprint = Fingerprint { hash, meta, lines: self.lines.finish() };
        self.view.session.record_read(place, fingerprint);
        self.file
    }

    /// The error for a failed read: the end of the call, or what the operating system reported.
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
        self.hasher.update(&buffer[..read]);
        self.lines.update(&buffer[..read]);
        Ok(read)
    }
}
