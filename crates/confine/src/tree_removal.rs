//! Removes a directory with everything in it, or nothing.
//!
//! One rename sets the directory aside. Its entries must be those that were found; otherwise it gets its name back.
//! So other processes see all of it or nothing, and after an error all of it is there. It is deleted last
//! (`tree_removal/deletion.rs`).

mod deletion;

use std::cell::OnceCell;
use std::ops::ControlFlow;

use rustix::io::Errno;

use crate::dir::Dir;
use crate::locked_entry::LockedEntry;
use crate::root::step_into;
use crate::temp_file::PutBack;
use crate::temp_name::{Digest, is_new_content};
use crate::{
    Deadline, Durability, Error, Hash, Kind, Metadata, Name, Place, RawPath, RelPath, Result,
    Workspace, sys,
};
pub use deletion::RemovedTree;

/// A directory, locked for its removal with everything in it, with its state when it was found.
#[derive(Debug)]
pub struct TreeRemoval {
    top: LockedEntry,
    /// Sorted by path, so that a directory comes before its entries.
    entries: Vec<TreeEntry>,
    deadline: Deadline,
}

/// An entry of a directory to remove, as it was found.
#[derive(Debug)]
pub struct TreeEntry {
    /// Its path below the directory.
    pub path: RelPath,
    /// Its metadata.
    pub meta: Metadata,
    /// The target of a symlink, as the link stores it.
    pub link_target: Option<Vec<u8>>,
    hash: OnceCell<Hash>,
}

impl Workspace {
    /// Finds and locks a directory for its removal with everything in it. Symlinks are not followed; a symlink inside
    /// is an entry like any other. Fails with [`Error::TooLarge`] if it has more than `max_entries`.
    ///
    /// Waits for other changes of the directory's own entry until `deadline`.
    pub fn tree_removal(
        &self,
        path: &RawPath,
        max_entries: usize,
        deadline: &Deadline,
    ) -> Result<TreeRemoval> {
        let found = self.lstat(path)?;
        if found.meta.kind != Kind::Directory {
            return Err(Error::NotADirectory);
        }
        if self.holds_a_root(&found.place) {
            return Err(Error::BadPath("is a workspace root, or holds one; remove what is in it"));
        }
        let top = self.lock_entry(path, deadline)?;
        if top.meta.kind != Kind::Directory {
            return Err(Error::NotADirectory);
        }
        let entries = list(&top.dir, &top.name, max_entries, NewContent::Skip, deadline)?;
        if !entries.iter().all(|entry| is_removable(entry.meta.kind)) {
            return Err(Error::BadPath("holds a named pipe, socket or device; remove that first"));
        }
        Ok(TreeRemoval { top, entries, deadline: deadline.clone() })
    }
}

/// Whether an entry can be backed up for an undo, and so be removed.
fn is_removable(kind: Kind) -> bool {
    matches!(kind, Kind::File | Kind::Directory | Kind::Symlink)
}

/// Opens a directory below the directory `top` of `dir`.
fn open(dir: &Dir, top: &Name, below: &RelPath) -> Result<Dir> {
    let step = |fd: &_, name: &Name| match step_into(fd, name, sys::DIR_PATH) {
        Err(Errno::LOOP | Errno::NOENT | Errno::NOTDIR) => Err(Error::Changed),
        other => Ok(other?),
    };
    let mut fd = step(dir.fd(), top)?;
    for name in below.names() {
        fd = step(&fd, &name)?;
    }
    Dir::new(fd)
}

/// How to handle a temp file that another Pinfold process is writing.
#[derive(Clone, Copy, Eq, PartialEq)]
enum NewContent {
    /// It has not taken its place yet, so it is not an entry.
    Skip,
    /// It is about to take its place, so the directory is changing.
    Refuse,
}

/// Everything in the directory `top` of `dir`, sorted by path.
fn list(
    dir: &Dir,
    top: &Name,
    max: usize,
    new_content: NewContent,
    deadline: &Deadline,
) -> Result<Vec<TreeEntry>> {
    let mut found: Vec<TreeEntry> = Vec::new();
    let mut waiting = vec![RelPath::root()];
    let mut mount = None;
    while let Some(below) = waiting.pop() {
        deadline.check()?;
        let directory = open(dir, top, &below)?;
        // Some kernels do not return mount ids.
        let id = sys::stat_cached(directory.fd()).map_or(0, |stat| stat.mount);
        let own_mount = (directory.identity().device(), id);
        if *mount.get_or_insert(own_mount) != own_mount {
            return Err(Error::BadPath("holds a mount point; it has to be unmounted first"));
        }
        let mut failed = None;
        sys::list(directory.readable()?, &mut Vec::new(), |name, _| {
            match TreeEntry::find(&directory, &below, name, new_content) {
                Ok(None) | Err(Error::NotFound) => {}
                Ok(Some(_)) if found.len() == max => failed = Some(Error::TooLarge),
                Ok(Some(entry)) => {
                    if entry.meta.kind == Kind::Directory {
                        waiting.push(entry.path.clone());
                    }
                    found.push(entry);
                }
                Err(other) => failed = Some(other),
            }
            if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

impl TreeEntry {
    /// Finds an entry of a directory. Returns `None` for new content.
    fn find(
        directory: &Dir,
        below: &RelPath,
        name: &[u8],
        new_content: NewContent,
    ) -> Result<Option<Self>> {
        let name = Name::parse(name)?;
        let meta = directory.meta(&name)?;
        if is_new_content(name.as_bytes(), &meta) {
            // Temp files of killed processes are removed with the directory.
            let is_fine = new_content == NewContent::Skip || directory.is_abandoned(&name);
            return if is_fine { Ok(None) } else { Err(Error::Changed) };
        }
        let link_target = match meta.kind {
            Kind::Symlink => Some(sys::read_link(directory.fd(), name.as_bytes())?),
            _ => None,
        };
        Ok(Some(Self { path: below.join(&name), meta, link_target, hash: OnceCell::new() }))
    }

    /// Its directory, and its name there.
    fn split(&self) -> (RelPath, Name) {
        self.path.split().expect("an entry has a name")
    }
}

impl TreeRemoval {
    /// The place of the directory.
    pub fn place(&self) -> &Place {
        &self.top.place
    }

    /// The directory's metadata when it was found.
    pub fn meta(&self) -> &Metadata {
        &self.top.meta
    }

    /// Its entries, by path.
    pub fn entries(&self) -> &[TreeEntry] {
        &self.entries
    }

    /// Drops the entries that will no longer exist when the directory is removed.
    pub fn retain(&mut self, stays: impl Fn(&RelPath) -> bool) {
        self.entries.retain(|entry| stays(&entry.path));
    }

    /// The hash of a file's content, computed once; `None` for anything else.
    pub fn hash(&self, entry: usize) -> Result<Option<Hash>> {
        let entry = &self.entries[entry];
        if entry.meta.kind != Kind::File {
            return Ok(None);
        }
        if let Some(hash) = entry.hash.get() {
            return Ok(Some(*hash));
        }
        let hash = self.hash_below(&self.top.name, entry)?;
        Ok(Some(*entry.hash.get_or_init(|| hash)))
    }

    /// The current hash of a file. `top` is the current name of the directory.
    fn hash_below(&self, top: &Name, entry: &TreeEntry) -> Result<Hash> {
        self.file_below(top, entry)?.1.hash(&self.deadline)
    }

    /// Opens a file and its directory. `top` is the current name of the directory that is removed.
    fn file_below(&self, top: &Name, entry: &TreeEntry) -> Result<(Dir, crate::File)> {
        let (parent, name) = entry.split();
        let dir = open(&self.top.dir, top, &parent)?;
        let file = match dir.file(&name) {
            Err(Error::NotFound | Error::IsDirectory | Error::NotRegular(_)) => {
                return Err(Error::Changed);
            }
            other => other?,
        };
        if entry.meta.same_stat(file.meta()) { Ok((dir, file)) } else { Err(Error::Changed) }
    }

    /// The directory of a file, its name there, and the open file, for a backup.
    pub(crate) fn file(&self, entry: usize) -> Result<(Dir, Name, crate::File, &Deadline)> {
        let entry = &self.entries[entry];
        let (dir, file) = self.file_below(&self.top.name, entry)?;
        Ok((dir, entry.split().1, file, &self.deadline))
    }

    /// Fails if the operating system would not let this process remove it. Does not try it.
    pub fn check_removable(&self) -> Result<()> {
        self.top.dir.check_writable()?;
        let inside = self.entries.iter().filter(|entry| entry.meta.kind == Kind::Directory);
        for below in inside.map(|entry| &entry.path).chain([&RelPath::root()]) {
            open(&self.top.dir, &self.top.name, below)?.check_writable()?;
        }
        Ok(())
    }

    /// Removes it. It is renamed to a temp name, verified, and deleted when the result is dropped.
    pub fn remove(&self, durability: Durability) -> Result<RemovedTree> {
        self.check_removable()?;
        for (number, entry) in self.entries.iter().enumerate() {
            if !entry.meta.is_settled() {
                match self.hash(number) {
                    // A process that may remove a file may not be allowed to read it. Then its times identify it.
                    Err(Error::Denied) => {}
                    other => _ = other?,
                }
            }
        }
        let LockedEntry { location, dir, name, meta, .. } = &self.top;
        let lock = dir.lock(&self.deadline)?;
        let unverified = dir.sweep(&lock, None, &self.deadline);
        location.check(dir)?;
        self.deadline.check()?;
        let mut temp = dir.set_aside(name, Digest::new(meta, None), None)?;
        if let Err(error) = self.verify(&temp.name, durability) {
            return Err(match dir.put_back(&temp.name, name) {
                PutBack::Done => error,
                PutBack::Taken | PutBack::Failed => temp.keep_and_report(),
            });
        }
        let entries = self.entries.iter().map(|entry| (entry.path.clone(), entry.meta)).collect();
        let name = name.clone();
        Ok(RemovedTree { entry: Some(temp), name, entries, unverified, _lock: lock })
    }

    /// Fails unless the directory that was set aside is the one that was found, the path leads there, the change is
    /// as durable as required, and the deadline has not passed.
    fn verify(&self, aside: &Name, durability: Durability) -> Result<()> {
        let LockedEntry { location, dir, meta, .. } = &self.top;
        let same_top = dir.meta(aside)?.identity == meta.identity;
        let found = list(dir, aside, self.entries.len(), NewContent::Refuse, &self.deadline);
        let found = match found {
            Err(Error::TooLarge | Error::BadPath(_) | Error::NotFound) => {
                return Err(Error::Changed);
            }
            other => other?,
        };
        if !same_top || found.len() != self.entries.len() {
            return Err(Error::Changed);
        }
        for (known, found) in self.entries.iter().zip(&found) {
            if known.path != found.path || !self.is_same(known, found, aside)? {
                return Err(Error::Changed);
            }
        }
        location.check(dir)?;
        if durability == Durability::Full {
            dir.sync()?;
        }
        self.deadline.check()
    }

    fn is_same(&self, known: &TreeEntry, found: &TreeEntry, aside: &Name) -> Result<bool> {
        match (known.meta.kind, known.hash.get()) {
            (Kind::Directory, _) => Ok(known.meta.identity == found.meta.identity),
            _ if !known.meta.same_stat(&found.meta) => Ok(false),
            (Kind::File, Some(hash)) if !known.meta.is_settled() => {
                Ok(self.hash_below(aside, known)? == *hash)
            }
            _ => Ok(known.link_target == found.link_target),
        }
    }
}
