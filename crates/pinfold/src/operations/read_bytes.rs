//! `ReadBytes`: reads a whole file of any kind.

use std::io::Read as _;

use pinfold_confine::{Place, RawPath};

use crate::limits::MAX_READ_BYTES;
use crate::{Error, NoChange, Operation, View};

/// Reads all bytes of a regular file of at most [`MAX_READ_BYTES`].
///
/// ```
/// use pinfold::operations::{ReadBytes, Write};
/// use pinfold::Session;
///
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// let session = Session::open([workspace])?;
/// session.perform(&Write::new("a.bin", "\0\u{1}"))?;
/// assert_eq!(session.perform(&ReadBytes::new("a.bin"))?.outcome.bytes, [0, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReadBytes {
    /// The file.
    pub path: RawPath,
}

/// A file that was read whole.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FileBytes {
    /// The file's place.
    pub place: Place,
    /// All its bytes.
    pub bytes: Vec<u8>,
}

impl ReadBytes {
    /// Reads a file.
    pub fn new(path: impl Into<RawPath>) -> Self {
        Self { path: path.into() }
    }
}

impl Operation for ReadBytes {
    type Changes = NoChange;
    type Outcome = FileBytes;

    const READS_ONE_FILE: bool = true;

    fn file_to_read(&self) -> Option<&RawPath> {
        Some(&self.path)
    }

    fn plan(&self, view: &View<'_>) -> Result<(FileBytes, NoChange), Error> {
        let (place, mut file) = view.file(&self.path)?;
        let _answer = view.reserve_answer(file.len().min(MAX_READ_BYTES))?;
        let mut bytes = Vec::new();
        // One more byte shows that a file is larger, even if it is growing.
        let read = file.by_ref().take(MAX_READ_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|cause| file.failure(&self.path, cause))?;
        if bytes.len() as u64 > MAX_READ_BYTES {
            let size = file.len().max(bytes.len() as u64);
            let path = self.path.clone();
            return Err(Error::TooLargeToRead { path, size, limit: MAX_READ_BYTES });
        }
        file.record_read(&place);
        Ok((FileBytes { place, bytes }, NoChange))
    }
}
