//! What becomes of the fence's errors: each is told with the path as it was given.

use std::io;

use pinfold_confine::{Error as Fence, RawPath};

use super::Error;

impl Error {
    /// What the fence said of `path` when something was to be read or found there.
    pub(crate) fn looking(path: &RawPath, error: Fence) -> Self {
        Self::of_fence(path, error, |path, cause| Self::ReadFailed { path, cause })
    }

    /// What the fence said of `path` when something was to be changed there.
    pub(crate) fn changing(path: &RawPath, error: Fence) -> Self {
        Self::of_fence(path, error, |path, cause| Self::WriteFailed {
            path,
            cause: cause.to_string(),
        })
    }

    fn of_fence(
        path: &RawPath,
        error: Fence,
        failed: impl FnOnce(RawPath, io::Error) -> Self,
    ) -> Self {
        let path = path.clone();
        match error {
            Fence::Outside => Self::Outside { path, roots: Vec::new() },
            Fence::BadPath(problem) => Self::BadPath { path, problem },
            Fence::NotFound => Self::NotFound { path, near: Vec::new() },
            Fence::Dangling => Self::Dangling { path },
            Fence::TooManyLinks => Self::TooManyLinks { path },
            Fence::IsDirectory => Self::IsDirectory { path },
            Fence::NotADirectory => Self::NotADirectory { path },
            Fence::NotRegular(kind) => Self::NotRegular { path, kind },
            Fence::TooLarge => Self::TooLargeToSearch { path },
            Fence::Changed => Self::Changed { path, region: None },
            Fence::Busy | Fence::Impatient => Self::Locked { path },
            Fence::DirectoryDenied => Self::AccessDenied { path, why: Some(error.to_string()) },
            Fence::MountPoint => Self::WriteFailed { path, cause: error.to_string() },
            Fence::Stranded { .. } => Self::WriteFailed { path, cause: error.to_string() },
            Fence::Owner { .. } => Self::AccessDenied { path, why: Some(error.to_string()) },
            Fence::Denied => Self::AccessDenied { path, why: None },
            Fence::NoSpace => Self::NoSpace { path },
            Fence::Os(cause) => failed(path, cause),
        }
    }
}
