//! Calls that only Linux and macOS have: renames with flags, and extended attributes.

use std::path::Path;

use rustix::io::Result;

pub(crate) use system::rename_new;
pub use system::{attribute, exchange, set_attribute};

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
mod system {
    use super::{Path, Result};
    use rustix::fs::{CWD, RenameFlags, XattrFlags, getxattr, renameat_with, setxattr};

    /// Exchanges two names.
    pub fn exchange(one: &Path, other: &Path) -> Result<()> {
        renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)
    }

    /// Renames a file, unless the new name is taken.
    pub(crate) fn rename_new(old: &Path, new: &Path) -> Result<()> {
        renameat_with(CWD, old, CWD, new, RenameFlags::NOREPLACE)
    }

    /// Sets an extended attribute of a file.
    pub fn set_attribute(path: &Path, name: &str, value: &[u8]) -> Result<()> {
        setxattr(path, name, value, XattrFlags::empty())
    }

    /// An extended attribute of a file, of 64 bytes at most.
    pub fn attribute(path: &Path, name: &str) -> Result<Vec<u8>> {
        let mut value = vec![0; 64];
        let size = getxattr(path, name, &mut value)?;
        value.truncate(size);
        Ok(value)
    }
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
mod system {
    use super::{Path, Result};
    use rustix::io::Errno;

    /// Always fails.
    pub fn exchange(_: &Path, _: &Path) -> Result<()> {
        Err(Errno::NOSYS)
    }

    /// Always fails.
    pub(crate) fn rename_new(_: &Path, _: &Path) -> Result<()> {
        Err(Errno::NOSYS)
    }

    /// Always fails.
    pub fn set_attribute(_: &Path, _: &str, _: &[u8]) -> Result<()> {
        Err(Errno::NOSYS)
    }

    /// Always fails.
    pub fn attribute(_: &Path, _: &str) -> Result<Vec<u8>> {
        Err(Errno::NOSYS)
    }
}
