//! Moves a file, a directory or a symlink to a free path.
//!
//! The rename replaces nothing. The entry at the new path must be the one that was found, and both directories must
//! still be where their paths lead; otherwise it is moved back. So after an error, it is at its old path.

use std::cell::OnceCell;
use std::io::Read as _;

use rustix::io::Errno;

use crate::dir::Dir;
use crate::lock::DirLock;
use crate::locked_entry::LockedEntry;
use crate::temp_file::retry;
use crate::{
    Deadline, Durability, Error, File, Hash, Kind, Metadata, Name, Place, RawPath, Result, Target,
    Workspace, sys,
};

/// A file or directory to move, and its free new place. Both are locked.
#[derive(Debug)]
pub struct Relocation {
    source: LockedEntry,
    destination: Target,
    hash: OnceCell<Hash>,
    deadline: Deadline,
}

/// The reason why something cannot be moved.
#[derive(Debug)]
pub enum RelocationError {
    /// The error is about the old path.
    Source(Error),
    /// The error is about the new path.
    Destination(Error),
}

impl Workspace {
    /// Finds and locks the entry to move, and its new place, which must be free. A symlink is moved itself. Missing
    /// directories above the new place are created by the move.
    ///
    /// Waits for other changes of both until `deadline`.
    pub fn relocation(
        &self,
        from: &RawPath,
        to: &RawPath,
        deadline: &Deadline,
    ) -> Result<Relocation, RelocationError> {
        use RelocationError::{Destination, Source};
        let found = self.lstat(from).map_err(Source)?.place;
        if self.holds_a_root(&found) {
            return Err(Source(Error::BadPath(
                "is a workspace root, or holds one; move what is in it",
            )));
        }
        let old = self.real_path(&found);
        let new = self.deepest_existing(to).ok().map(|(place, missing)| {
            let path = missing.iter().fold(place.path, |path, name| path.join(name));
            self.real_path(&Place { root: place.root, path })
        });
        match new.as_ref().map(|new| new.strip_prefix(&old[..])) {
            Some(Some([])) => return Err(Destination(Error::BadPath("is the source itself"))),
            Some(Some([b'/', ..])) => {
                return Err(Destination(Error::BadPath(
                    "is inside the source; choose a place outside it",
                )));
            }
            _ => {}
        }
        let lock_source = || self.lock_entry(from, deadline).map_err(Source);
        let lock_destination = || self.free_place(to, deadline).map_err(Destination);
        // Locked in the order of their paths, so that two moves cannot deadlock.
        let (source, destination) = if new.is_some_and(|new| new < old) {
            let destination = lock_destination()?;
            (lock_source()?, destination)
        } else {
            (lock_source()?, lock_destination()?)
        };
        if to.names_a_directory() && source.meta.kind != Kind::Directory {
            return Err(Destination(Error::BadPath("ends as a directory's does, but moves none")));
        }
        if !source.meta.identity.same_device(destination.dir.identity()) {
            return Err(Destination(Error::CrossDevice));
        }
        let deadline = deadline.clone();
        Ok(Relocation { source, destination, hash: OnceCell::new(), deadline })
    }

    fn free_place(&self, path: &RawPath, deadline: &Deadline) -> Result<Target> {
        match self.find_target(path, deadline) {
            Err(Error::IsDirectory | Error::Dangling | Error::NotRegular(_)) => Err(Error::Exists),
            Ok(target) if target.meta().is_some() => Err(Error::Exists),
            other => other,
        }
    }

    /// Whether there is a root at a place or below it.
    pub fn holds_a_root(&self, place: &Place) -> bool {
        let names = self.root(place.root).canonical_names().into_iter();
        let names: Vec<Name> = names.chain(place.path.names()).collect();
        (0..self.roots().len()).any(|root| self.root(root).canonical_names().starts_with(&names))
    }
}

impl Relocation {
    /// The old place.
    pub fn from(&self) -> &Place {
        &self.source.place
    }

    /// The new place.
    pub fn to(&self) -> &Place {
        self.destination.place()
    }

    /// Its metadata when it was found.
    pub fn meta(&self) -> &Metadata {
        &self.source.meta
    }

    /// The target of a symlink, as the link stores it.
    pub fn link_target(&self) -> Option<&[u8]> {
        self.source.link_target.as_deref()
    }

    /// The names of the missing directories above the new place.
    pub fn missing_parents(&self) -> &[Name] {
        self.destination.missing_parents()
    }

    /// The content of a file.
    pub fn content(&self) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        self.file()?.read_to_end(&mut content).map_err(Error::Os)?;
        Ok(content)
    }

    /// The file as it was found.
    fn file(&self) -> Result<File> {
        let LockedEntry { dir, name, meta, .. } = &self.source;
        let file = dir.file(name)?;
        if meta.same_stat(file.meta()) { Ok(file) } else { Err(Error::Changed) }
    }

    /// The hash of a file's content, computed once; `None` for anything else.
    pub fn hash(&self) -> Result<Option<Hash>> {
        if self.source.meta.kind != Kind::File {
            return Ok(None);
        }
        if let Some(hash) = self.hash.get() {
            return Ok(Some(*hash));
        }
        let hash = self.file()?.hash(&self.deadline)?;
        Ok(Some(*self.hash.get_or_init(|| hash)))
    }

    /// Fails if the operating system would not let this process move it. Does not try it.
    pub fn check_possible(&self) -> Result<()> {
        self.source.dir.check_writable()?;
        self.destination.dir.check_writable()
    }

    /// Moves it.
    ///
    /// Fails with [`Error::Changed`] if it is not the entry that was found, and with [`Error::Exists`] if the new
    /// place is taken by now.
    pub fn relocate(&self, durability: Durability) -> Result<()> {
        let parents = self.destination.make_parents(durability)?;
        let to = parents.dir();
        let _locks = self.lock(to)?;
        self.check_directories(to)?;
        // If a system call above has hung, the call may have been answered already. Then it must change nothing.
        self.deadline.check()?;
        let (old, new) = (self.source.name.as_bytes(), self.destination.name.as_bytes());
        match rename_to_free(self.source.meta.kind, &self.source.dir, old, to, new) {
            Ok(()) => {}
            Err(Errno::EXIST | Errno::NOTEMPTY) => return Err(Error::Exists),
            Err(Errno::NOENT) => return Err(Error::Changed),
            Err(Errno::XDEV) => return Err(Error::CrossDevice),
            Err(other) => return Err(other.into()),
        }
        if let Err(error) = self.verify(to, durability) {
            let back = || rename_to_free(self.source.meta.kind, to, new, &self.source.dir, old);
            return Err(if retry(back).is_some() { error } else { Error::NotMovedBack });
        }
        parents.keep();
        Ok(())
    }

    /// Undoes [`Self::relocate`], if the entry is still there and the old place is free.
    pub fn move_back(&self) -> Result<()> {
        let dir = self.destination.current_dir()?;
        let found = dir.meta(&self.destination.name)?;
        if found.identity != self.source.meta.identity {
            return Err(Error::Changed);
        }
        let (old, new) = (self.source.name.as_bytes(), self.destination.name.as_bytes());
        let back = || rename_to_free(found.kind, &dir, new, &self.source.dir, old);
        retry(back).ok_or(Error::NotMovedBack)
    }

    /// Locks both directories against other processes, always in the same order, so that two processes cannot
    /// deadlock.
    fn lock(&self, to: &Dir) -> Result<Vec<DirLock>> {
        let mut dirs = vec![&*self.source.dir, to];
        dirs.sort_by_key(|dir| dir.identity());
        dirs.dedup_by_key(|dir| dir.identity());
        dirs.into_iter().map(|dir| dir.lock(&self.deadline)).collect()
    }

    /// Fails if one of the paths no longer leads to the directory that was found.
    fn check_directories(&self, to: &Dir) -> Result<()> {
        self.source.location.check(&self.source.dir)?;
        self.destination.location.check(to)
    }

    /// Fails unless the entry at the new path is the one that was found, the path leads there, the change is as
    /// durable as required, and the deadline has not passed.
    fn verify(&self, to: &Dir, durability: Durability) -> Result<()> {
        let (known, found) = (&self.source.meta, to.meta(&self.destination.name)?);
        let same = match known.kind {
            // Other processes may change its entries, which move with it.
            Kind::Directory => known.identity == found.identity,
            _ => known.same_stat(&found),
        };
        if !same {
            return Err(Error::Changed);
        }
        self.check_directories(to)?;
        if durability == Durability::Full {
            to.sync()?;
            self.source.dir.sync()?;
        }
        self.deadline.check()
    }
}

/// Renames, unless the new name is taken (`EEXIST`).
fn rename_to_free(
    kind: Kind,
    from: &Dir,
    old: &[u8],
    to: &Dir,
    new: &[u8],
) -> rustix::io::Result<()> {
    match sys::rename_new_across(from.fd(), old, to.fd(), new) {
        Err(errno) if sys::is_unsupported(errno) => {}
        other => return other,
    }
    if kind == Kind::Directory {
        // `rename` lets a directory replace only an empty directory, and this one is ours.
        sys::make_dir(to.fd(), new)?;
        let renamed = sys::rename_across(from.fd(), old, to.fd(), new);
        return renamed.inspect_err(|_| _ = retry(|| sys::remove_dir(to.fd(), new)));
    }
    match sys::link_across(from.fd(), old, to.fd(), new) {
        Ok(()) => {
            let identity = |dir: &Dir, name| {
                sys::stat_at(dir.fd(), name).map(|stat| Metadata::of(&stat).identity)
            };
            let removed = match (identity(from, old), identity(to, new)) {
                (Ok(old_one), Ok(new_one)) if old_one == new_one => sys::remove(from.fd(), old),
                // Another process has just put a file there.
                (Ok(_), Ok(_)) => Err(Errno::NOENT),
                (Err(errno), _) | (_, Err(errno)) => Err(errno),
            };
            removed.inspect_err(|_| _ = retry(|| sys::remove(to.fd(), new)))
        }
        Err(errno @ (Errno::EXIST | Errno::NOENT | Errno::XDEV)) => Err(errno),
        // Some file systems have neither call. There, a file that another process creates between these two calls is
        // replaced.
        Err(_) => match sys::stat_at(to.fd(), new) {
            Err(Errno::NOENT) => sys::rename_across(from.fd(), old, to.fd(), new),
            Err(other) => Err(other),
            Ok(_) => Err(Errno::EXIST),
        },
    }
}
