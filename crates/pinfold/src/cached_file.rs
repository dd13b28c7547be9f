//! A small read that is performed on the event-loop thread, because its file is in the page cache.

use std::sync::{Arc, Mutex, PoisonError};

use pinfold_confine::{File, Place};

use crate::limits::MAX_CACHED_FILE_BYTES;
use crate::permit::AccessRequest;
use crate::{Access, CallOptions, Error, Operation, Session, View};

/// A small file that was opened and read without waiting: see [`Session::cached_file`].
///
/// A call with a cached file opens no other file. If it tries to, it fails with [`Error::Internal`], and the caller
/// makes the call again on a thread that may wait.
#[derive(Clone, Debug)]
pub struct CachedFile(Arc<Mutex<Option<(Place, File)>>>);

impl CachedFile {
    pub(crate) fn new(place: Place, file: File) -> Self {
        Self(Arc::new(Mutex::new(Some((place, file)))))
    }

    /// The file. Fails if the call has taken it already.
    pub(crate) fn take(&self) -> Result<(Place, File), Error> {
        let file = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        file.ok_or_else(|| Error::Internal { what: "a cached read opens a second file".into() })
    }
}

impl Session {
    /// Opens and reads the file of an operation that reads one file, if this needs no waiting: the file is small and
    /// in the page cache, and policy allows the read without approval. There must be neither an audit log nor a
    /// viewer, since these would see a call twice that has to be made again. With the result as
    /// [`CallOptions::cached_file`], performing the operation takes less time than waking another thread.
    #[doc(hidden)]
    pub fn cached_file<O: Operation>(&self, operation: &O) -> Option<CachedFile> {
        let path = operation.file_to_read().filter(|_| !self.is_audited() && !self.is_watched())?;
        let (place, file) = self.workspace().cached_file(path, MAX_CACHED_FILE_BYTES)?;
        let call = CallOptions::default();
        let request = AccessRequest { access: Access::Read, path, place: &place, directory: false };
        let allowed = matches!(View::new(self, &call).check_policy(&request), Ok(None));
        allowed.then(|| CachedFile::new(place, file))
    }
}
