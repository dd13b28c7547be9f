//! System calls that create, change and remove the names of files and directories.

use rustix::fd::AsFd;
use rustix::fs::{self, AtFlags, Mode};
use rustix::io::Result;

use super::call;
use super::extended::{RenameFlags, renameat_with};

pub(crate) fn make_link(dir: impl AsFd, target: &[u8], name: &[u8]) -> Result<()> {
    call("symlinkat", || fs::symlinkat(target, dir.as_fd(), name))
}

pub(crate) fn make_dir(dir: impl AsFd, name: &[u8]) -> Result<()> {
    make_dir_with(dir, name, 0o777)
}

pub(crate) fn make_dir_with(dir: impl AsFd, name: &[u8], mode: u32) -> Result<()> {
    call("mkdirat", || fs::mkdirat(dir.as_fd(), name, Mode::from_raw_mode(mode as _)))
}

pub(crate) fn remove_dir(dir: impl AsFd, name: &[u8]) -> Result<()> {
    call("rmdir", || fs::unlinkat(dir.as_fd(), name, AtFlags::REMOVEDIR))
}

pub(crate) fn remove(dir: impl AsFd, name: &[u8]) -> Result<()> {
    call("unlinkat", || fs::unlinkat(dir.as_fd(), name, AtFlags::empty()))
}

/// Swaps two names of one directory.
pub(crate) fn exchange(dir: impl AsFd, one: &[u8], other: &[u8]) -> Result<()> {
    let dir = dir.as_fd();
    call("exchange", || renameat_with(dir, one, dir, other, RenameFlags::EXCHANGE))
}

/// Renames, unless the new name is taken (`EEXIST`).
pub(crate) fn rename_new(dir: impl AsFd, from: &[u8], to: &[u8]) -> Result<()> {
    rename_new_across(dir.as_fd(), from, dir.as_fd(), to)
}

/// As [`rename_new`], into another directory.
pub(crate) fn rename_new_across(
    from: impl AsFd,
    old: &[u8],
    to: impl AsFd,
    new: &[u8],
) -> Result<()> {
    let (from, to) = (from.as_fd(), to.as_fd());
    call("rename_new", || renameat_with(from, old, to, new, RenameFlags::NOREPLACE))
}

pub(crate) fn rename(dir: impl AsFd, from: &[u8], to: &[u8]) -> Result<()> {
    call("rename", || fs::renameat(dir.as_fd(), from, dir.as_fd(), to))
}

/// Moves a file into another directory of the same file system.
pub(crate) fn rename_across(from: impl AsFd, old: &[u8], to: impl AsFd, new: &[u8]) -> Result<()> {
    call("rename_across", || fs::renameat(from.as_fd(), old, to.as_fd(), new))
}

/// Gives a file a second name in another directory of the same file system.
pub(crate) fn link_across(from: impl AsFd, old: &[u8], to: impl AsFd, new: &[u8]) -> Result<()> {
    call("link_across", || fs::linkat(from.as_fd(), old, to.as_fd(), new, AtFlags::empty()))
}

pub(crate) fn link(dir: impl AsFd, from: &[u8], to: &[u8]) -> Result<()> {
    call("linkat", || fs::linkat(dir.as_fd(), from, dir.as_fd(), to, AtFlags::empty()))
}
