//! Reads small files without ever waiting for a disk, a network or another process.
//!
//! The system calls are in `sys/linux.rs`. They answer from the kernel's caches, or fail.

use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{OpenMethod, Root};
use crate::path::without_parent_steps;
use crate::sys::{Cached, Symlinks};
use crate::temp_name::TempName;
use crate::{File, Kind, Place, RawPath, RelPath, Result, Workspace, sys};

impl Workspace {
    /// Opens and reads the regular file at a path, if that never waits for a disk or a network: it has at most
    /// `max_bytes` bytes, the path has no symlink below the root, it is on the root's own mount of a local file
    /// system, and the whole path and content are in the kernel's caches.
    ///
    /// No other root is accessed, and the root's own path is looked up only in the caches. So a mount that hangs
    /// blocks nothing.
    pub fn cached_file(&self, path: &RawPath, max_bytes: usize) -> Option<(Place, File)> {
        let (number, steps) = self.find_root(path).ok()?;
        let below = without_parent_steps(&steps).filter(|_| !path.names_a_directory())?;
        if below.split().is_some_and(|(_, name)| TempName::parse(name.as_bytes()).is_some()) {
            return None;
        }
        let root = self.root(number);
        let mount = root.current_local_mount()?;
        let small_file = |handle: &OwnedFd| {
            let Cached { meta, mount: is_on } = sys::stat_cached(handle).ok()?;
            let fits = meta.kind == Kind::File && meta.len <= max_bytes as u64;
            (fits && is_on == mount).then_some(meta)
        };
        // `O_PATH` first, since opening a FIFO or a file of a remote file system could wait or have effects. The
        // second open may find another file, so it is checked again.
        small_file(&root.open_cached(&below, sys::PATH_ONLY).ok()?)?;
        let fd = root.open_cached(&below, OFlags::RDONLY).ok()?;
        // As for any other file, the metadata is from before the read, so a later change shows.
        let file = File::new(small_file(&fd)?, fd);
        let mut content = vec![0; usize::try_from(file.meta().len).ok()?];
        let mut filled = 0;
        while filled < content.len() {
            match sys::read_cached(file.fd(), &mut content[filled..], filled as u64).ok()? {
                0 => return None,
                read => filled += read,
            }
        }
        let place = self.in_innermost_root(Place { root: number, path: below });
        Some((place, file.with_content(content)))
    }
}

impl Root {
    /// The mount of the root, if the kernel's caches show that the given path and the real path both still lead to
    /// the open directory, and that it is on a local file system. Never blocks, even if a path crosses a mount that
    /// hangs.
    fn current_local_mount(&self) -> Option<u64> {
        let opened = self.opened();
        let mount = opened.local_mount?;
        let leads = |found: Result<OwnedFd, Errno>| {
            let found = sys::stat_cached(found.ok()?).ok()?;
            let same = found.mount == mount && found.meta.identity == opened.identity;
            same.then_some(mount)
        };
        if let Some((outer, path)) = &self.outer {
            outer.current_local_mount()?;
            return leads(outer.open_cached(path, sys::DIR_PATH));
        }
        if self.given_names != opened.canonical_names {
            leads(sys::open_root_cached(&self.given, Symlinks::Follow))?;
        }
        leads(sys::open_root_cached(&opened.canonical_path, Symlinks::Refuse))
    }

    /// As [`Self::open_below`], but only if the kernel has the path in its cache.
    fn open_cached(&self, path: &RelPath, flags: OFlags) -> Result<OwnedFd, Errno> {
        match self.method {
            OpenMethod::Kernel => {
                sys::open_cached(self.opened().handle(), path.for_kernel(), flags)
            }
            OpenMethod::NameByName => Err(Errno::AGAIN),
        }
    }
}

/// The mount of a handle, if its file system is local.
pub(super) fn local_mount(handle: &OwnedFd) -> Option<u64> {
    sys::is_local(handle).ok().filter(|local| *local)?;
    Some(sys::stat_cached(handle).ok()?.mount)
}
