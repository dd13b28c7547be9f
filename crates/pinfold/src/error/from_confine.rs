//! Converts errors of `pinfold-confine` into errors of the engine, with the path as it was given.
//!
//! The meaning of an error depends on what failed: a read, a change, or a backup. The message also depends on the
//! call: whether its deadline has passed, whether policy hides the path, and which names are similar.

use std::io;

use pinfold_confine::{Error as ConfineError, RawPath};

use super::Error;
use crate::View;
use crate::commit::CommitError;
use crate::similar_names::near_misses;

impl Error {
    /// The error for a path that could not be read or found.
    pub(crate) fn from_read(path: &RawPath, error: ConfineError) -> Self {
        Self::from_confine(path, error, |path, cause| Self::ReadFailed { path, cause })
    }

    /// The error for a path that could not be changed.
    pub(crate) fn from_write(path: &RawPath, error: ConfineError) -> Self {
        Self::from_confine(path, error, |path, cause| Self::WriteFailed {
            path,
            cause: cause.to_string(),
        })
    }

    /// The error for a journal that could not be read or written.
    pub(crate) fn from_journal(error: &ConfineError) -> Self {
        Self::JournalFailed { cause: error.to_string() }
    }

    fn from_confine(
        path: &RawPath,
        error: ConfineError,
        failed: impl FnOnce(RawPath, io::Error) -> Self,
    ) -> Self {
        let path = path.clone();
        match error {
            ConfineError::Outside => Self::Outside { path, roots: Vec::new() },
            ConfineError::BadPath(problem) => Self::BadPath { path, problem },
            ConfineError::RootGone(root) => Self::RootGone { root },
            ConfineError::RootReplaced(root) => Self::RootReplaced { root },
            ConfineError::DirectoryMoved => Self::DirectoryMoved { path },
            ConfineError::NotFound => Self::NotFound { path, near: Vec::new() },
            ConfineError::Dangling => Self::Dangling { path },
            ConfineError::TooManyLinks => Self::TooManyLinks { path },
            ConfineError::IsDirectory => Self::IsDirectory { path },
            ConfineError::NotADirectory => Self::NotADirectory { path },
            ConfineError::Exists => Self::Exists { path },
            ConfineError::NotEmpty => Self::NotEmpty { path },
            ConfineError::CrossDevice => Self::CrossDevice { path },
            ConfineError::NotRegular(kind) => Self::NotRegular { path, kind },
            ConfineError::TooLarge => Self::TooLargeToSearch { path },
            ConfineError::Changed => Self::Changed { path, now: None, read_again: true },
            ConfineError::Busy | ConfineError::TimedOut => Self::Locked { path },
            ConfineError::DirectoryDenied | ConfineError::ReadOnly | ConfineError::Owner { .. } => {
                Self::AccessDenied { path, why: Some(error.to_string()) }
            }
            ConfineError::MountPoint
            | ConfineError::RollbackFailed { .. }
            | ConfineError::NotMovedBack
            | ConfineError::RestoredInPlace { .. }
            | ConfineError::CreatedRemains { .. } => {
                Self::WriteFailed { path, cause: error.to_string() }
            }
            ConfineError::Denied => Self::AccessDenied { path, why: None },
            ConfineError::NoSpace => Self::NoSpace { path },
            ConfineError::Os(cause) => failed(path, cause),
        }
    }
}

impl View<'_> {
    /// The error for a path that could not be found or read.
    pub(crate) fn path_error(&self, path: &RawPath, error: ConfineError) -> Error {
        if matches!(error, ConfineError::TimedOut) {
            return self.timed_out(path);
        }
        if let Some(denied) = self.hides(path) {
            return denied;
        }
        match Error::from_read(path, error) {
            Error::NotFound { path, .. } => {
                Error::NotFound { near: near_misses(self, &path), path }
            }
            Error::Outside { path, .. } => {
                let roots = self.session().workspace().shown_roots();
                Error::Outside { path, roots: roots.map(str::to_owned).collect() }
            }
            other => other,
        }
    }

    /// The error for a path that is to be changed and could not be resolved.
    pub(crate) fn target_error(&self, path: &RawPath, error: ConfineError) -> Error {
        match error {
            error @ ConfineError::Os(_) => Error::from_write(path, error),
            other => self.path_error(path, other),
        }
    }

    /// The error for a file that is to be changed and does not exist.
    pub(crate) fn not_found(&self, path: &RawPath) -> Error {
        self.path_error(path, ConfineError::NotFound)
    }

    /// The error for a call that waited too long, or was cancelled.
    pub(crate) fn timed_out(&self, path: &RawPath) -> Error {
        self.check_time().err().unwrap_or_else(|| Error::Locked { path: path.clone() })
    }

    /// The error for a step of `commit`. If the file has changed, the session plans again. If the call has not ended,
    /// `failed` makes the error.
    pub(crate) fn commit_error(
        &self,
        path: &RawPath,
        error: ConfineError,
        failed: impl FnOnce(&RawPath, ConfineError) -> Error,
    ) -> CommitError {
        match error {
            ConfineError::Changed => CommitError::Stale { path: path.clone() },
            ConfineError::TimedOut => self.timed_out(path).into(),
            other => failed(path, other).into(),
        }
    }
}
