//! Turns errors of `pinfold-confine` into errors of the engine, with the path as it was given.

use std::io;

use pinfold_confine::{Error as ConfineError, RawPath};

use super::Error;

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
            ConfineError::DirectoryDenied => {
                Self::AccessDenied { path, why: Some(error.to_string()) }
            }
            ConfineError::MountPoint
            | ConfineError::RollbackFailed { .. }
            | ConfineError::NotMovedBack
            | ConfineError::RestoredInPlace { .. }
            | ConfineError::CreatedRemains { .. } => {
                Self::WriteFailed { path, cause: error.to_string() }
            }
            ConfineError::Owner { .. } => Self::AccessDenied { path, why: Some(error.to_string()) },
            ConfineError::Denied => Self::AccessDenied { path, why: None },
            ConfineError::NoSpace => Self::NoSpace { path },
            ConfineError::Os(cause) => failed(path, cause),
        }
    }
}
