//! Moves a file, a directory or a symlink to a place where nothing is.
//!
//! The rename replaces nothing. What arrives must be what was found, and both directories must still be where
//! their paths lead; otherwise it is moved back. So an error means that it is where it was.

use std::cell::OnceCell;

use rustix::io::Errno;

use crate::dir::Dir;
use crate::held_entry::HeldEntry;
use crate::lock::DirLock;
use crate::temp_file::retry;
use crate::{
    Deadline, Durability, Error, Hash, Kind, Metadata, Name, Place, RawPath, Result, Target,
    Workspace, sys,
};

/// A file or directory to move, and the free place that it goes to: both locked.
#[derive(Debug)]
pub struct Relocation {
    source: HeldEntry,
    destination: Target,
    hash: OnceCell<Hash>,
    deadline: Deadline,
}

/// Why something cannot be moved.
#[derive(Debug)]
pub enum RelocationError {
    /// It is about what was to be moved.
    Source(Error),
    /// It is about the place that it was to go to.
    Destination(Error),
}

impl Workspace {
    /// Finds and locks what is to be moved, and the place that it goes to, where nothing may be. A symlink is moved
    /// itself. Directories that are missing above the new place are made.
    ///
    /// Waits for others who change them, as long as `deadline` lasts.
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
        let hold_source = || self.hold_entry(from, deadline).map_err(Source);
        let hold_destination = || self.free_place(to, deadline).map_err(Destination);
        // In the order of their paths, so that two moves do not wait for each other.
        let (source, destination) = if new.is_some_and(|new| new < old) {
            let destination = hold_destination()?;
            (hold_source()?, destination)
        } else {
            (hold_source()?, hold_destination()?)
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

    /// Whether a root is at a place or below it.
    pub fn holds_a_root(&self, place: &Place) -> bool {
        let names = self.root(place.root).canonical_names().into_iter();
        let names: Vec<Name> = names.chain(place.path.names()).collect();
        (0..self.roots().len()).any(|root| self.root(root).canonical_names().starts_with(&names))
    }
}

impl Relocation {
    /// Where it is.
    pub fn from(&self) -> &Place {
        &self.source.place
    }

    /// Where it goes.
    pub fn to(&self) -> &Place {
        self.destination.place()
    }

    /// Its metadata when it was found.
    pub fn meta(&self) -> &Metadata {
        &self.source.meta
    }

    /// The target of a symlink, as it is stored.
    pub fn link_target(&self) -> Option<&[u8]> {
        self.source.link_target.as_deref()
    }

    /// The names of the directories that the new place needs and that are not there.
    pub fn missing_parents(&self) -> &[Name] {
        self.destination.missing_parents()
    }

    /// The hash of a file's content, computed once; `None` for anything else.
    pub fn hash(&self) -> Result<Option<Hash>> {
        let HeldEntry { dir, name, meta, .. } = &self.source;
        if meta.kind != Kind::File {
            return Ok(None);
        }
        if let Some(hash) = self.hash.get() {
            return Ok(Some(*hash));
        }
        let file = dir.file(name)?;
        if !meta.same_stat(file.meta()) {
            return Err(Error::Changed);
        }
        let hash = file.hash(&self.deadline)?;
        Ok(Some(*self.hash.get_or_init(|| hash)))
    }

    /// Whether the operating system would let this process move it, without trying.
    pub fn check_possible(&self) -> Result<()> {
        self.source.dir.check_writable()?;
        self.destination.dir.check_writable()
    }

    /// Moves it.
    ///
    /// [`Error::Changed`] means that it is not what was found, [`Error::Exists`] that something is at the new place
    /// by now.
    pub fn relocate(&self, durability: Durability) -> Result<()> {
        let parents = self.destination.make_parents(durability)?;
        let to = parents.dir();
        let _locks = self.lock(to)?;
        self.check_directories(to)?;
        // The call may have been answered while a system call above hung: it must change nothing then.
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

    /// Undoes [`Self::relocate`], if it is still there and its old place is free.
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

    /// Locks both directories against other processes: always in the same order, so that none waits for another
    /// that waits for it.
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

    /// Whether what arrived is what was found, where the path leads, as durable as it has to be, and in time.
    fn verify(&self, to: &Dir, durability: Durability) -> Result<()> {
        let (known, found) = (&self.source.meta, to.meta(&self.destination.name)?);
        let same = match known.kind {
            // Others may change what is inside: that moves along.
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

/// Renames, unless the new name is taken, which is `EEXIST`.
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
        // A directory replaces nothing but an empty directory, and this one is ours.
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
        // Some file systems have neither. There a file that another process creates between these two calls
        // is replaced.
        Err(_) => match sys::stat_at(to.fd(), new) {
            Err(Errno::NOENT) => sys::rename_across(from.fd(), old, to.fd(), new),
            Err(other) => Err(other),
            Ok(_) => Err(Errno::EXIST),
        },
    }
}
