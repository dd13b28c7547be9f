//! How operations look: at the disk through the fence, and at the call they belong to.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use blake3::Hasher;
use pinfold_confine::{
    Candidate, Deadline, Error as ConfineError, File, FilterDecision, Kind, Lstat, Metadata, Place,
    RawPath, Removal, Skipped, Target, Visibility, Visitor, Walk,
};

use crate::approval::Grants;
use crate::ledger::Fingerprint;
use crate::permit::{AccessRequest, Permit, Shown};
use crate::similar_names::near_misses;
use crate::{Access, CallOptions, Error, Session, limits};

/// For how long a call has been at work since `start`, less what it spent waiting for people.
fn worked(start: Instant, waited: &AtomicU64) -> Duration {
    start.elapsed().saturating_sub(Duration::from_nanos(waited.load(Ordering::Relaxed)))
}

/// What an operation can see. There is nothing here to write with.
#[derive(Debug)]
pub struct View<'s> {
    session: &'s Session,
    call: &'s CallOptions,
    start: Instant,
    /// How long people were waited for, in nanoseconds.
    waited: Arc<AtomicU64>,
    /// What a person has allowed for this call.
    grants: Grants,
}

impl<'s> View<'s> {
    pub(crate) fn new(session: &'s Session, call: &'s CallOptions) -> Self {
        let (waited, grants) = Default::default();
        Self { session, call, start: Instant::now(), waited, grants }
    }

    pub(crate) fn call(&self) -> &'s CallOptions {
        self.call
    }

    pub(crate) fn waited(&self) -> &AtomicU64 {
        &self.waited
    }

    pub(crate) fn grants(&self) -> &Grants {
        &self.grants
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
        self.session.settings().max_output_bytes.unwrap_or(limits::MAX_CLASSIC_OUTPUT_BYTES)
    }

    /// Opens a regular file.
    pub fn file(&self, path: &RawPath) -> Result<(Place, Watched<'_>), Error> {
        let watched = |file| Watched { file, hasher: Hasher::new(), view: self };
        if let Some(cached) = self.call.cached_file.take() {
            // The policy has allowed it when it was opened.
            return cached.map(|(place, file)| (place, watched(file)));
        }
        self.may_look_for(path)?;
        loop {
            let file = self.session.workspace().file(path);
            let (place, file) = file.map_err(|error| self.missed(path, error))?;
            if self.may_read(path, &place, false)? == Permit::Yes {
                return Ok((place, watched(file)));
            }
        }
    }

    /// Looks at what a path names, without following a link in its last place.
    pub fn look(&self, path: &RawPath) -> Result<Lstat, Error> {
        self.may_look_for(path)?;
        loop {
            let seen = self.session.workspace().lstat(path);
            let seen = seen.map_err(|error| self.missed(path, error))?;
            let directory = seen.meta.kind == Kind::Directory;
            if self.may_read(path, &seen.place, directory)? == Permit::Yes {
                return Ok(seen);
            }
        }
    }

    /// Finds a directory.
    pub fn directory(&self, path: &RawPath) -> Result<Place, Error> {
        self.may_look_for(path)?;
        loop {
            let place = self.session.workspace().directory(path);
            let place = place.map_err(|error| match self.missed(path, error) {
                Error::NotFound { path, near } => Error::DirectoryNotFound { path, near },
                other => other,
            })?;
            if self.may_read(path, &place, true)? == Permit::Yes {
                return Ok(place);
            }
        }
    }

    /// Where to look: the directory at a path, or without one where relative paths start if that was
    /// chosen, else every root that is in no other.
    pub fn starts(&self, path: Option<&RawPath>) -> Result<Vec<Place>, Error> {
        match path {
            Some(path) => Ok(vec![self.directory(path)?]),
            None if self.session.workspace().starts_within() => {
                Ok(vec![self.directory(&RawPath::from("."))?])
            }
            None => {
                let roots = self.session.workspace().outermost_roots();
                let roots = roots.map_err(|error| self.missed(&RawPath::from("."), error))?;
                for root in &roots {
                    // It is as it is printed, which need not be how it is reached.
                    let path = RawPath::from(self.session.absolute(root));
                    while self.may_read(&path, root, true)? == Permit::LookAgain {}
                }
                Ok(roots)
            }
        }
    }

    /// Walks over what is below some directories. Gives back the visitors. Of what may not be shown, only
    /// what would be `missed` is counted.
    pub fn walk<V: Visitor>(
        &self,
        starts: &[Place],
        depth: usize,
        hidden: bool,
        filter_decision: &(dyn Fn(&Candidate<'_>) -> FilterDecision + Sync),
        missed: &(dyn Fn(&Candidate<'_>) -> bool + Sync),
        new_visitor: impl Fn() -> V + Sync,
    ) -> Result<(Vec<V>, Skipped), Error> {
        let deadline = self.deadline();
        let filter_decision = |candidate: &Candidate<'_>| {
            self.call.progress.meet();
            filter_decision(candidate)
        };
        let visibility = |candidate: &Candidate<'_>| {
            let directory = candidate.kind == Kind::Directory;
            if self.shows(candidate.root, candidate.below_root(), directory) {
                Visibility::Visible
            } else if missed(candidate) {
                Visibility::Withheld
            } else {
                Visibility::Uncounted
            }
        };
        let walk = Walk {
            depth,
            hidden,
            filter_decision: &filter_decision,
            visibility: &visibility,
            deadline: &deadline,
        };
        let walked = self.session.workspace().walk(starts, &walk, new_visitor);
        walked.map_err(|error| match (error, starts) {
            (ConfineError::Denied, [start]) => {
                let path = RawPath::from(self.session.absolute(start));
                Error::DirectoryUnreadable { path }
            }
            (error, _) => self.missed(&RawPath::from("."), error),
        })
    }

    /// Opens a file that a walk has found.
    pub(crate) fn found_file(&self, place: &Place) -> Result<File, ConfineError> {
        self.session.workspace().open_place(place)
    }

    /// What is at a place that a walk has found, and where it points if it is a link.
    pub(crate) fn found(&self, place: &Place) -> Result<(Metadata, Option<Vec<u8>>), ConfineError> {
        self.session.workspace().lstat_place(place)
    }

    /// Finds what is to be removed, and holds it.
    pub fn removal(&self, path: &RawPath) -> Result<Removal, Error> {
        self.call.audit_trace.tried(Access::Delete, Some(path.as_str()));
        self.may_look_for(path)?;
        let removal = self.session.workspace().removal(path, &self.deadline());
        let removal = removal.map_err(|error| self.missed(path, error))?;
        // A link is deleted itself, and where it leads is not looked at.
        let request =
            AccessRequest { access: Access::Read, path, place: removal.place(), directory: false };
        self.must_ask(&request)?;
        Ok(removal)
    }

    /// Finds the file that a change is aimed at, and holds it.
    pub fn target(&self, path: &RawPath) -> Result<Target, Error> {
        self.call.audit_trace.tried(Access::Write, Some(path.as_str()));
        self.may_look_for(path)?;
        loop {
            let target = self.session.workspace().target(path, &self.deadline());
            let target = target.map_err(|error| match error {
                ConfineError::Os(cause) => {
                    Error::WriteFailed { path: path.clone(), cause: cause.to_string() }
                }
                other => self.missed(path, other),
            })?;
            // What is there is compared with what it becomes, and shown: that is reading. Where nothing
            // may be read, it is not said either that nothing is there.
            let place = target.place().clone();
            let request =
                AccessRequest { access: Access::Read, path, place: &place, directory: false };
            if !self.must_ask(&request)? || target.meta().is_none() {
                return Ok(target);
            }
            // Nobody else should have to wait for the file while a person thinks.
            if self.granted(&request, None) {
                return Ok(target);
            }
            drop(target);
            self.permit(&request, Shown::default)?;
        }
    }

    /// The session knows that a target holds exactly `content`, because it was compared.
    pub(crate) fn knows(&self, target: &Target, content: &[u8]) {
        let fingerprint = Fingerprint { hash: blake3::hash(content), meta: target.meta().copied() };
        self.session.saw(target.place(), fingerprint);
    }

    /// Whether the session has seen a file, and it surely still is as it was then.
    pub(crate) fn has_seen(&self, place: &Place, now: &Metadata) -> bool {
        let fingerprint = self.session.last_fingerprint(place);
        fingerprint
            .and_then(|fingerprint| fingerprint.meta)
            .is_some_and(|then| then.proven_unchanged(now))
    }

    /// The session was shown a part of what a target holds now.
    pub(crate) fn knows_now(&self, target: &Target) {
        if let Ok(Some(hash)) = target.hash() {
            let fingerprint = Fingerprint { hash, meta: target.meta().copied() };
            self.session.saw(target.place(), fingerprint);
        }
    }

    /// Lasts until the call is cancelled or its time is up.
    pub(crate) fn deadline(&self) -> Deadline {
        let (cancel, start, waited) = (self.call.cancel.clone(), self.start, self.waited.clone());
        let longest = Duration::from_secs(self.session.settings().deadline_seconds);
        Deadline::lasting_while(move || !cancel.is_cancelled() && worked(start, &waited) <= longest)
    }

    /// Stops a call that was cancelled or has run for too long.
    pub fn check_time(&self) -> Result<(), Error> {
        let seconds = self.session.settings().deadline_seconds;
        if self.call.cancel.is_cancelled() {
            Err(Error::Cancelled)
        } else if worked(self.start, &self.waited) > Duration::from_secs(seconds) {
            Err(Error::Timeout { seconds })
        } else {
            Ok(())
        }
    }

    /// The answer where a file was to be changed and there is none.
    pub(crate) fn nothing_at(&self, path: &RawPath) -> Error {
        self.missed(path, ConfineError::NotFound)
    }

    /// The answer where the call came to its end before it was done.
    pub(crate) fn timed_out(&self, path: &RawPath) -> Error {
        self.check_time().err().unwrap_or_else(|| Error::Locked { path: path.clone() })
    }

    pub(crate) fn missed(&self, path: &RawPath, error: ConfineError) -> Error {
        if matches!(error, ConfineError::TimedOut) {
            return self.timed_out(path);
        }
        if let Some(denied) = self.hides(path) {
            return denied;
        }
        match Error::looking(path, error) {
            Error::NotFound { path, .. } => {
                Error::NotFound { near: near_misses(self, &path), path }
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

    /// Starts again at the beginning.
    pub(crate) fn rewind(&mut self) {
        self.file.rewind();
        self.hasher.reset();
    }

    /// What the file system knew about it when it was opened.
    pub(crate) fn meta(&self) -> &Metadata {
        self.file.meta()
    }

    /// Goes to a place. What is read from there on is not the whole file.
    pub(crate) fn seek_to(&mut self, place: u64) {
        self.file.seek_to(place);
    }

    /// Reads the rest of the file and keeps only its hash.
    pub(crate) fn hash_rest(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; 128 * 1024];
        while self.read(&mut buffer)? > 0 {}
        Ok(())
    }

    /// The whole file was read: from now on the session has seen it.
    pub(crate) fn seen(self, place: &Place) -> File {
        let fingerprint =
            Fingerprint { hash: self.hasher.finalize(), meta: Some(*self.file.meta()) };
        self.view.session.saw(place, fingerprint);
        self.file
    }

    /// What a failure to read means: the call's own end, or what the system said.
    pub(crate) fn failure(&self, path: &RawPath, cause: io::Error) -> Error {
        match self.view.check_time() {
            Err(ended) => ended,
            Ok(()) => Error::looking(path, ConfineError::Os(cause)),
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
