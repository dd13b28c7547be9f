//! A small read that is performed on the thread that moves a server's messages, because its file is in the page cache.

use std::sync::{Arc, Mutex, PoisonError};

use pinfold_confine::{File, Place};

use crate::limits::MAX_CACHED_FILE_BYTES;
use crate::permit::AccessRequest;
use crate::{Access, CallOptions, Error, Operation, Session, View};

/// A small file that was opened and read without waiting: see [`Session::cached_file`]. By default there is
/// none, and a call opens its file itself.
///
/// A call that has one opens nothing else: an attempt to is [`Error::Cancelled`], and the caller makes the call
/// again, on a thread that may wait.
#[derive(Clone, Debug, Default)]
pub struct CachedFile(Option<Arc<OpenFile>>);

/// A file that is taken once.
type OpenFile = Mutex<Option<(Place, File)>>;

impl CachedFile {
    pub(crate) fn new(place: Place, file: File) -> Self {
        Self(Some(Arc::new(Mutex::new(Some((place, file))))))
    }

    /// The file, if the call has one that it has not taken yet; `None` if it opens files itself.
    pub(crate) fn take(&self) -> Option<Result<(Place, File), Error>> {
        let mut file = self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        Some(file.take().ok_or(Error::Cancelled))
    }
}

impl Session {
    /// Opens and reads the file of an operation that only reads one, if that does not have to wait: the file is
    /// small and in the page cache, the policy allows the read without asking, and there is neither an audit log nor
    /// a viewer, which would see a call twice that has to be made again. With it as [`CallOptions::cached_file`],
    /// performing the operation takes less time than waking another thread.
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
