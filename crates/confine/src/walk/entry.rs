//! The entries of a walk: a candidate before the filters, and an entry that is shown.

use std::cmp::Ordering;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use rustix::fs::OFlags;

use crate::path::name_of;
use crate::root::{Root, open_error};
use crate::tree::{Entered, Node};
use crate::{Error, File, Kind, Metadata, Place, RelPath, Result, Workspace, sys};

/// An entry that may be shown or entered.
#[derive(Debug)]
pub struct Candidate<'c> {
    /// The number of its root.
    pub root: usize,
    pub(super) path: &'c [u8],
    pub(super) start: usize,
    /// Its type.
    pub kind: Kind,
}

impl Candidate<'_> {
    /// Its path relative to the root.
    pub fn below_root(&self) -> &[u8] {
        self.path
    }

    /// Its path relative to the start of the walk.
    pub fn below_start(&self) -> &[u8] {
        &self.path[self.start..]
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        name_of(self.path)
    }
}

impl Place {
    /// A key with the order of [`Self::by_path`].
    #[doc(hidden)]
    pub fn sort_key(&self) -> Vec<u8> {
        sort_key(self.root, self.path.as_bytes())
    }

    /// Compares two places in the order of `rg --sort path`: by root, then name by name.
    pub fn by_path(&self, other: &Self) -> Ordering {
        let [one, two] = [self, other].map(|place| place.path.as_bytes());
        let paths = || match one.iter().zip(two).find(|(one, two)| one != two) {
            Some((one, two)) => rank(*one).cmp(&rank(*two)),
            None => one.len().cmp(&two.len()),
        };
        self.root.cmp(&other.root).then_with(paths)
    }
}

/// The rank of a byte in a path. A slash is lower than any byte of a name, so paths are compared name by name.
fn rank(byte: u8) -> u8 {
    if byte == b'/' { 0 } else { byte }
}

/// See [`Place::sort_key`].
pub(super) fn sort_key(root: usize, path: &[u8]) -> Vec<u8> {
    root.to_be_bytes().into_iter().chain(path.iter().map(|byte| rank(*byte))).collect()
}

/// As [`Place::by_path`], for two paths that are each a directory and a name. A walk sorts all of its files by this,
/// without building whole paths.
fn compare_paths(one: [&[u8]; 2], other: [&[u8]; 2]) -> Ordering {
    let ([one_dir, one_name], [other_dir, other_name]) = (one, other);
    let shared = one_dir.iter().zip(other_dir).take_while(|(one, other)| one == other).count();
    match (&one_dir[shared..], &other_dir[shared..]) {
        ([], []) => one_name.cmp(other_name),
        ([one, ..], [other, ..]) => rank(*one).cmp(&rank(*other)),
        ([], rest) => compare_below(one_name, shared, rest),
        (rest, []) => compare_below(other_name, shared, rest).reverse(),
    }
}

/// Compares a name with the rest of a directory's path after `shared` bytes, which are the path of the name's directory or the
/// beginning of a longer name.
fn compare_below(name: &[u8], shared: usize, rest: &[u8]) -> Ordering {
    let below = if shared == 0 { Some(rest) } else { rest.strip_prefix(b"/") };
    // The slash before the name is lower than any other byte.
    let Some(below) = below else { return Ordering::Less };
    let child = below.split(|byte| *byte == b'/').next().unwrap_or_default();
    // At the same name there is a file or a directory. A path that goes on is greater.
    name.cmp(child).then(Ordering::Less)
}

/// A directory that a walk has listed.
#[derive(Debug)]
pub(super) struct Listed {
    root: Arc<Root>,
    number: usize,
    pub(super) path: RelPath,
    pub(super) node: Arc<Node>,
    is_watched: bool,
}

impl Listed {
    fn open(&self) -> Result<OwnedFd> {
        self.root.open_below(&self.path, sys::DIR_PATH).map_err(open_error)
    }

    fn stat(&self, entry: usize, handle: impl AsFd) -> Result<Metadata> {
        Ok(Metadata::of(&sys::stat_at(handle, self.node.name(entry))?))
    }

    fn meta(
        &self,
        entry: usize,
        stat: impl FnOnce() -> Result<Metadata>,
    ) -> Result<(u64, Metadata)> {
        let (version, meta) = self.node.meta_of(entry, self.is_watched, stat)?;
        if self.is_watched && meta.links > 1 && meta.kind == Kind::File {
            self.root.tree().note_hard_link(&self.path, &self.node, entry);
        }
        Ok((version, meta))
    }

    fn file(&self, entry: usize, handle: impl AsFd) -> Result<File> {
        let fd = sys::open_at(handle, self.node.name(entry), OFlags::RDONLY);
        File::regular(fd.map_err(open_error)?)
    }
}

/// A directory whose entries a walk shows. It is opened when an entry is read.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) listed: Arc<Listed>,
    handle: OnceLock<OwnedFd>,
}

impl Directory {
    pub(super) fn new(
        workspace: &Workspace,
        number: usize,
        path: RelPath,
        entered: Entered,
    ) -> Self {
        let Entered { node, is_watched, handle } = entered;
        let root = workspace.root(number).clone();
        let handle = handle.map_or_else(OnceLock::new, OnceLock::from);
        Self { listed: Arc::new(Listed { root, number, path, node, is_watched }), handle }
    }

    fn handle(&self) -> Result<&OwnedFd> {
        if self.handle.get().is_none() {
            // Another thread may have opened it meanwhile.
            let _ = self.handle.set(self.listed.open()?);
        }
        self.handle.get().ok_or(Error::Changed)
    }
}

/// Identifies a file in a cached tree, as long as the tree is cached.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FileId {
    pub(crate) directory: usize,
    pub(crate) entry: u32,
}

impl FileId {
    pub(crate) fn new(directory: &Arc<Node>, entry: usize) -> Self {
        Self { directory: Arc::as_ptr(directory) as usize, entry: entry as u32 }
    }
}

/// A file that a walk found. A [`FileOpener`] can open it later.
#[derive(Clone, Debug)]
pub struct WalkedFile {
    directory: Arc<Listed>,
    entry: u32,
}

impl WalkedFile {
    /// The number of its root.
    pub fn root(&self) -> usize {
        self.directory.number
    }

    /// Its place.
    pub fn place(&self) -> Place {
        let Listed { number, path, node, .. } = &*self.directory;
        let (directory, name) = (path.as_bytes(), node.name(self.entry as usize));
        let mut bytes = Vec::with_capacity(directory.len() + 1 + name.len());
        bytes.extend_from_slice(directory);
        if !directory.is_empty() {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name);
        Place { root: *number, path: RelPath::proved(bytes) }
    }

    /// As [`Place::by_path`], for two files of one walk. Most are in one directory, whose entries are sorted.
    pub fn by_path(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.directory, &other.directory) {
            return self.entry.cmp(&other.entry);
        }
        let [(one_root, one_dir, one_name), (other_root, other_dir, other_name)] =
            [self, other].map(Self::parts);
        let paths =
            || compare_paths([one_dir.as_bytes(), one_name], [other_dir.as_bytes(), other_name]);
        one_root.cmp(&other_root).then_with(paths)
    }

    /// Whether it is an entry of this directory.
    pub fn is_in(&self, directory: &Place) -> bool {
        self.directory.number == directory.root && self.directory.path == directory.path
    }

    /// Its identity in its tree.
    pub fn id(&self) -> FileId {
        FileId::new(&self.directory.node, self.entry as usize)
    }

    pub(super) fn parts(&self) -> (usize, &RelPath, &[u8]) {
        let Listed { number, path, node, .. } = &*self.directory;
        (*number, path, node.name(self.entry as usize))
    }

    /// Its version. While its directory is watched, the version changes with its content.
    pub fn version(&self) -> u64 {
        self.directory.node.version(self.entry as usize)
    }
}

/// Opens files that a walk found. Files of one directory should be opened one after the other, since the directory's
/// handle is kept.
#[derive(Debug, Default)]
pub struct FileOpener(Option<(Arc<Listed>, OwnedFd)>);

impl FileOpener {
    fn handle(&mut self, directory: &Arc<Listed>) -> Result<&OwnedFd> {
        if !self.0.as_ref().is_some_and(|(known, _)| Arc::ptr_eq(known, directory)) {
            self.0 = None;
            self.0 = Some((directory.clone(), directory.open()?));
        }
        self.0.as_ref().map(|(_, handle)| handle).ok_or(Error::Changed)
    }

    /// Opens a regular file.
    pub fn open(&mut self, file: &WalkedFile) -> Result<File> {
        let handle = self.handle(&file.directory)?;
        file.directory.file(file.entry as usize, handle)
    }

    /// A file's version and metadata. Data derived from its content is valid as long as the version is the same.
    /// While its directory is watched, the metadata is cached.
    pub fn meta(&mut self, file: &WalkedFile) -> Result<(u64, Metadata)> {
        let WalkedFile { directory, entry } = file;
        let entry = *entry as usize;
        directory.meta(entry, || directory.stat(entry, self.handle(directory)?))
    }
}

/// An entry that a walk has found.
#[derive(Debug)]
pub struct WalkEntry<'f> {
    pub(super) workspace: &'f Workspace,
    pub(super) start: usize,
    pub(super) path: &'f [u8],
    pub(super) directory: &'f Arc<Directory>,
    pub(super) number: usize,
    /// Its type.
    pub kind: Kind,
}

impl WalkEntry<'_> {
    /// Its path relative to the start of the walk.
    pub fn below_start(&self) -> &[u8] {
        &self.path[self.start..]
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        name_of(self.path)
    }

    /// Its place.
    pub fn place(&self) -> Place {
        Place { root: self.directory.listed.number, path: RelPath::proved(self.path.to_vec()) }
    }

    /// See [`Place::sort_key`].
    pub fn sort_key(&self) -> Vec<u8> {
        sort_key(self.directory.listed.number, self.path)
    }

    /// Its metadata. A symlink is not followed.
    pub fn meta(&self) -> Result<Metadata> {
        Ok(self.version_and_meta()?.1)
    }

    /// Its version and metadata: see [`FileOpener::meta`].
    pub fn version_and_meta(&self) -> Result<(u64, Metadata)> {
        let listed = &self.directory.listed;
        listed.meta(self.number, || listed.stat(self.number, self.directory.handle()?))
    }

    /// Opens it, if it is a regular file. Also returns its version and metadata, which take no `stat` of their own.
    /// The version is from before it was opened, so it changes with every later change.
    pub fn open_with_version(&self) -> Result<(File, u64, Metadata)> {
        let listed = &self.directory.listed;
        let before = listed.node.version(self.number);
        let mut opened = None;
        let (version, meta) = listed.meta(self.number, || {
            let file = opened.insert(self.open()?);
            Ok(*file.meta())
        })?;
        // If the version has changed meanwhile, another file may have the name now.
        let file = opened.filter(|_| version == before);
        let file = file.map_or_else(|| self.open(), Ok)?;
        Ok((file, version, meta))
    }

    /// Opens it, if it is a regular file.
    pub fn open(&self) -> Result<File> {
        self.directory.listed.file(self.number, self.directory.handle()?)
    }

    /// The entry, to be opened after the walk.
    pub fn walked_file(&self) -> WalkedFile {
        WalkedFile { directory: self.directory.listed.clone(), entry: self.number as u32 }
    }

    /// The regular file in the workspace that a symlink leads to.
    pub fn linked_file(&self) -> Result<(Place, File)> {
        let path = RelPath::proved(self.path.to_vec());
        let (parent, _) = path.split().ok_or(Error::IsDirectory)?;
        self.workspace.linked_file(self.directory.listed.number, &parent, self.name())
    }

    /// The target of a symlink, as the link stores it.
    pub fn link_target(&self) -> Result<Vec<u8>> {
        Ok(sys::read_link(self.directory.handle()?, self.name())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_as_their_sort_keys() {
        let names = ["a", "b", "a.", "aa", "é", "a b", "\u{1}"];
        let mut paths: Vec<String> = names.map(str::to_owned).to_vec();
        for _ in 0..2 {
            let below = paths.iter().flat_map(|path| names.map(|name| format!("{path}/{name}")));
            paths = below.chain(names.map(str::to_owned)).collect();
        }

        for one in &paths {
            for other in &paths {
                let [one_parts, other_parts] = [one, other].map(|path| {
                    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
                    [directory, name]
                });
                let compared =
                    compare_paths(one_parts.map(str::as_bytes), other_parts.map(str::as_bytes));
                let [one_key, other_key] = [one, other].map(|path| sort_key(0, path.as_bytes()));
                assert_eq!(compared, one_key.cmp(&other_key), "{one} {other}");
                let place = |path: &str| Place { root: 0, path: RelPath::proved(path.into()) };
                assert_eq!(compared, place(one).by_path(&place(other)), "{one} {other}");
            }
        }
    }
}
