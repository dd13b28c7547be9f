//! How operations look: at the disk through the fence, and at the call they belong to.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use blake3::Hasher;
use pinfold_confine::{
    Candidate, Error as Fence, File, Meta, Opinion, Patience, Place, RawPath, Removal, Seen,
    Skipped, Target, Visitor, Walk,
};

use crate::ledger::Sight;
use crate::near::near_misses;
use crate::{Call, Error, Session, limits};

/// What an operation can see. There is nothing here to write with.
#[derive(Debug)]
pub struct View<'s> {
    session: &'s Session,
    call: &'s Call,
    start: Instant,
}

impl<'s> View<'s> {
    pub(crate) fn new(session: &'s Session, call: &'s Call) -> Self {
        Self { session, call, start: Instant::now() }
    }

    pub(crate) fn session(&self) -> &'s Session {
        self.session
    }

    /// The tool that makes the call.
    pub(crate) fn tool(&self) -> &str {
        &self.call.tool
    }

    /// Whether changes of this call are only described.
    pub fn dry_run(&self) -> bool {
        self.call.dry_run.unwrap_or(self.session.settings().dry_run)
    }

    /// How many bytes of text an answer may hold where its dialect has not said.
    pub(crate) fn output_bytes(&self) -> usize {
        self.session.settings().output_bytes.unwrap_or(limits::CLASSIC_OUTPUT_BYTES)
    }

    /// Opens a regular file.
    pub fn file(&self, path: &RawPath) -> Result<(Place, Watched<'_>), Error> {
        let (place, file) =
            self.session.workspace().file(path).map_err(|e| self.missed(path, e))?;
        Ok((place, Watched { file, hasher: Hasher::new(), view: self }))
    }

    /// Looks at what a path names, without following a link in its last place.
    pub fn look(&self, path: &RawPath) -> Result<Seen, Error> {
        self.session.workspace().look(path).map_err(|error| self.missed(path, error))
    }

    /// Finds a directory.
    pub fn directory(&self, path: &RawPath) -> Result<Place, Error> {
        self.session.workspace().directory(path).map_err(|error| match self.missed(path, error) {
            Error::NotFound { path, near } => Error::DirectoryNotFound { path, near },
            other => other,
        })
    }

    /// Where to look: the directory at a path, or without one every root that is in no other.
    pub fn starts(&self, path: Option<&RawPath>) -> Result<Vec<Place>, Error> {
        match path {
            Some(path) => Ok(vec![self.directory(path)?]),
            None => Ok(self.session.workspace().outermost_roots()),
        }
    }

    /// Walks over what is below some directories. Gives back the visitors.
    pub fn walk<V: Visitor>(
        &self,
        starts: &[Place],
        depth: usize,
        hidden: bool,
        opinion: &(dyn Fn(&Candidate<'_>) -> Opinion + Sync),
        new_visitor: impl Fn() -> V + Sync,
    ) -> Result<(Vec<V>, Skipped), Error> {
        let patience = self.patience();
        let opinion = |candidate: &Candidate<'_>| {
            self.call.progress.meet();
            opinion(candidate)
        };
        let walk = Walk { depth, hidden, opinion: &opinion, patience: &patience };
        let walked = self.session.workspace().walk(starts, &walk, new_visitor);
        walked.map_err(|error| self.missed(&RawPath::from("."), error))
    }

    /// Opens a file that a walk has found.
    pub(crate) fn found_file(&self, place: &Place) -> Result<File, Fence> {
        self.session.workspace().found_file(place)
    }

    /// What is at a place that a walk has found, and where it points if it is a link.
    pub(crate) fn found(&self, place: &Place) -> Result<(Meta, Option<Vec<u8>>), Fence> {
        self.session.workspace().found(place)
    }

    /// Finds what is to be removed, and holds it.
    pub fn removal(&self, path: &RawPath) -> Result<Removal, Error> {
        let removal = self.session.workspace().removal(path, &self.patience());
        removal.map_err(|error| self.missed(path, error))
    }

    /// Finds the file that a change is aimed at, and holds it.
    pub fn target(&self, path: &RawPath) -> Result<Target, Error> {
        let target = self.session.workspace().target(path, &self.patience());
        target.map_err(|error| match error {
            Fence::Os(cause) => Error::WriteFailed { path: path.clone(), cause: cause.to_string() },
            other => self.missed(path, other),
        })
    }

    /// The session knows that a target holds exactly `content`, because it was compared.
    pub(crate) fn knows(&self, target: &Target, content: &[u8]) {
        let sight = Sight { hash: blake3::hash(content), meta: target.meta().copied() };
        self.session.ledger(|ledger| ledger.saw(target.place().clone(), sight));
    }

    /// Whether the session has seen a file, and it surely still is as it was then.
    pub(crate) fn has_seen(&self, place: &Place, now: &Meta) -> bool {
        let sight = self.session.ledger(|ledger| ledger.last_sight(place));
        sight.and_then(|sight| sight.meta).is_some_and(|then| then.surely_unchanged(now))
    }

    /// The session was shown a part of what a target holds now.
    pub(crate) fn knows_now(&self, target: &Target) {
        if let Ok(Some(hash)) = target.hash() {
            let sight = Sight { hash, meta: target.meta().copied() };
            self.session.ledger(|ledger| ledger.saw(target.place().clone(), sight));
        }
    }

    /// Lasts until the call is cancelled or its time is up.
    pub(crate) fn patience(&self) -> Patience {
        let (cancel, start) = (self.call.cancel.clone(), self.start);
        let longest = Duration::from_secs(self.session.settings().deadline_seconds);
        Patience::while_true(move || !cancel.is_cancelled() && start.elapsed() <= longest)
    }

    /// Stops a call that was cancelled or has run for too long.
    pub fn check_time(&self) -> Result<(), Error> {
        let seconds = self.session.settings().deadline_seconds;
        if self.call.cancel.is_cancelled() {
            Err(Error::Cancelled)
        } else if self.start.elapsed() > Duration::from_secs(seconds) {
            Err(Error::Timeout { seconds })
        } else {
            Ok(())
        }
    }

    /// The answer where a file was to be changed and there is none.
    pub(crate) fn nothing_at(&self, path: &RawPath) -> Error {
        self.missed(path, Fence::NotFound)
    }

    /// The answer where the call came to its end before it was done.
    pub(crate) fn impatient(&self, path: &RawPath) -> Error {
        self.check_time().err().unwrap_or_else(|| Error::Locked { path: path.clone() })
    }

    pub(crate) fn missed(&self, path: &RawPath, error: Fence) -> Error {
        if matches!(error, Fence::Impatient) {
            return self.impatient(path);
        }
        match Error::looking(path, error) {
            Error::NotFound { path, .. } => {
                Error::NotFound { near: near_misses(self.session, &path), path }
            }
            Error::Outside { path, .. } => Error::Outside { path, roots: self.session.roots() },
            other => other,
        }
    }
}

/// A file being read: what was read is remembered, and the call's time is watched.
#[derive(Debug)]
pub struct Watched<'v> {
    file: File,
    hasher: Hasher,
    view: &'v View<'v>,
}

impl Watched<'_> {
    /// The file's size when it was opened.
    pub fn len(&self) -> u64 {
        self.file.meta().len
    }

    /// Whether it was empty when it was opened.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Starts again at the beginning.
    pub(crate) fn rewind(&mut self) {
        self.file.rewind();
        self.hasher.reset();
    }

    /// What the file system knew about it when it was opened.
    pub(crate) fn meta(&self) -> &Meta {
        self.file.meta()
    }

    /// Goes to a place. What is read from there on is not the whole file.
    pub(crate) fn seek_to(&mut self, place: u64) {
        self.file.seek_to(place);
    }

    /// The whole file was read: from now on the session has seen it.
    pub(crate) fn seen(self, place: &Place) {
        let sight = Sight { hash: self.hasher.finalize(), meta: Some(*self.file.meta()) };
        self.view.session.ledger(|ledger| ledger.saw(place.clone(), sight));
    }

    /// What a failure to read means: the call's own end, or what the system said.
    pub(crate) fn failure(&self, path: &RawPath, cause: io::Error) -> Error {
        match self.view.check_time() {
            Err(ended) => ended,
            Ok(()) => Error::looking(path, Fence::Os(cause)),
        }
    }
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.view.check_time().is_err() {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        let read = self.file.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        Ok(read)
    }
}
