//! Calls of Linux and macOS that FreeBSD does not have, or only in another form. They always fail with `ENOSYS`, and
//! the callers do without them: a file loses its extended attributes when it is replaced.

use rustix::fd::BorrowedFd;
use rustix::io::{Errno, Result};

pub(crate) struct RenameFlags;

impl RenameFlags {
    pub(crate) const EXCHANGE: Self = Self;
    pub(crate) const NOREPLACE: Self = Self;
}

pub(crate) struct XattrFlags;

impl XattrFlags {
    pub(crate) fn empty() -> Self {
        Self
    }
}

pub(crate) fn renameat_with(
    _: BorrowedFd<'_>,
    _: &[u8],
    _: BorrowedFd<'_>,
    _: &[u8],
    _: RenameFlags,
) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(crate) fn flistxattr(_: BorrowedFd<'_>, _: &mut [u8]) -> Result<usize> {
    Err(Errno::NOSYS)
}

pub(crate) fn fgetxattr(_: BorrowedFd<'_>, _: &[u8], _: &mut [u8]) -> Result<usize> {
    Err(Errno::NOSYS)
}

pub(crate) fn fsetxattr(_: BorrowedFd<'_>, _: &[u8], _: &[u8], _: XattrFlags) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(crate) fn fremovexattr(_: BorrowedFd<'_>, _: &[u8]) -> Result<()> {
    Err(Errno::NOSYS)
}
