//! The file that a change replaces or creates.

use std::cell::OnceCell;
use std::sync::Arc;

use rustix::io::Errno;

use crate::dir::Dir;
use crate::lock::FileLock;
use crate::path::without_parent_steps;
use crate::resolve::{Last, Resolved};
use crate::root::Root;
use crate::temp_name::{TempName, is_temp};
use crate::{
    Deadline, Error, File, Hash, Kind, Metadata, Name, Place, RawPath, RelPath, Result, Workspace,
    sys,
};

/// A file that exists or can be created, locked for one change, with its state when it was found.
///
/// While this exists, no other change of the same file starts in this process.
#[derive(Debug)]
pub struct Target {
    pub(crate) place: Place,
    pub(crate) location: FoundDirectory,
    /// The deepest existing directory of the path.
    pub(crate) dir: Arc<Dir>,
    /// The missing directories below it.
    pub(crate) missing: Vec<Name>,
    pub(crate) name: Name,
    pub(crate) original: Option<Original>,
    pub(crate) deadline: Deadline,
    pub(crate) _lock: Arc<FileLock>,
}

/// The place where the directory of a change was found.
#[derive(Clone, Debug)]
pub(crate) struct FoundDirectory {
    pub(crate) root: Arc<Root>,
    pub(crate) directory: RelPath,
}

impl FoundDirectory {
    /// Fails if the path no longer leads to the directory, because it was moved, removed or replaced.
    pub(crate) fn check(&self, dir: &Dir) -> Result<()> {
        let same = self.root.leads_to(&self.directory, dir.identity())?;
        if same { Ok(()) } else { Err(Error::DirectoryMoved) }
    }
}

/// The file as it was found.
#[derive(Debug)]
pub(crate) struct Original {
    pub(crate) file: File,
    pub(crate) hash: OnceCell<Hash>,
    deadline: Deadline,
}

impl Workspace {
    /// Finds and locks the file of a change. Symlinks are followed.
    ///
    /// Waits for other changes of it until `deadline`.
    pub fn target(&self, path: &RawPath, deadline: &Deadline) -> Result<Target> {
        self.find_target(path, deadline)?.checked(path)
    }

    /// As [`Self::target`], for a directory to create. Fails with [`Error::IsDirectory`] if it exists.
    pub fn directory_target(&self, path: &RawPath, deadline: &Deadline) -> Result<Target> {
        let target = self.find_target(path, deadline)?;
        if target.original.is_some() { Err(Error::NotADirectory) } else { Ok(target) }
    }

    /// As [`Self::target`], but the path may end with a slash.
    pub(crate) fn find_target(&self, path: &RawPath, deadline: &Deadline) -> Result<Target> {
        let (root, steps) = self.parse_path(path)?;
        if let Some(straight) = without_parent_steps(&steps) {
            match self.target_in_dir(&Place { root, path: straight }, deadline) {
                Err(TargetError::Symlink | TargetError::NoParent) => {}
                Err(TargetError::Error(error)) => return Err(error),
                Ok(target) => return Ok(target),
            }
        }
        for _ in 0..sys::MAX_RACES {
            let Resolved { place, missing } = self.resolve(root, steps.clone(), Last::Follow)?;
            let target = if missing.len() > 1 {
                self.target_with_missing_parents(&place, missing, deadline)
            } else {
                let path = missing.iter().fold(place.path, |path, name| path.join(name));
                self.target_in_dir(&Place { root: place.root, path }, deadline)
            };
            match target {
                Err(TargetError::Symlink | TargetError::NoParent) => {}
                Err(TargetError::Error(error)) => return Err(error),
                Ok(target) => return Ok(target),
            }
        }
        Err(Error::Changed)
    }

    /// The target at a place whose directory exists.
    fn target_in_dir(&self, place: &Place, deadline: &Deadline) -> Result<Target, TargetError> {
        let Some((parent, name)) = place.path.split() else {
            return Err(TargetError::Error(Error::IsDirectory));
        };
        let dir = match self.root(place.root).open_below(&parent, sys::DIR_PATH) {
            Err(Errno::LOOP) => return Err(TargetError::Symlink),
            Err(Errno::NOENT) => return Err(TargetError::NoParent),
            other => Dir::shared(other?)?,
        };
        let lock = Arc::new(FileLock::take(dir.identity(), vec![name.clone()], deadline)?);
        dir.lock_from_target(deadline)?;
        let original = match dir.meta(&name) {
            Err(Error::NotFound) => {
                check_new_name(&name)?;
                None
            }
            Ok(meta) if is_temp(name.as_bytes(), &meta) => return Err(Error::NotFound.into()),
            Err(other) => return Err(other.into()),
            Ok(Metadata { kind: Kind::Symlink, .. }) => return Err(TargetError::Symlink),
            Ok(Metadata { kind: Kind::Directory, .. }) => return Err(Error::IsDirectory.into()),
            Ok(Metadata { kind: Kind::File, .. }) => Some(Original {
                file: dir.file(&name)?,
                hash: OnceCell::new(),
                deadline: deadline.clone(),
            }),
            Ok(Metadata { kind, .. }) => return Err(Error::NotRegular(kind).into()),
        };
        let location = FoundDirectory { root: self.root(place.root).clone(), directory: parent };
        let place = self.in_innermost_root(place.clone());
        let deadline = deadline.clone();
        Ok(Target {
            place,
            location,
            dir,
            missing: Vec::new(),
            name,
            original,
            deadline,
            _lock: lock,
        })
    }

    /// The target in a directory that does not exist yet.
    fn target_with_missing_parents(
        &self,
        place: &Place,
        names: Vec<Name>,
        deadline: &Deadline,
    ) -> Result<Target, TargetError> {
        if names.len() > MAX_PARENTS {
            return Err(Error::BadPath("has too many directories that do not exist").into());
        }
        let dir = match self.root(place.root).open_below(&place.path, sys::DIR_PATH) {
            Err(Errno::LOOP | Errno::NOENT) => return Err(TargetError::Symlink),
            other => Dir::shared(other?)?,
        };
        let lock = Arc::new(FileLock::take(dir.identity(), names.clone(), deadline)?);
        let path = names.iter().fold(place.path.clone(), |path, name| path.join(name));
        names.iter().try_for_each(check_new_name)?;
        let mut missing = names;
        let name = missing.pop().ok_or(Error::IsDirectory)?;
        let (directory, _) = path.split().ok_or(Error::IsDirectory)?;
        let location = FoundDirectory { root: self.root(place.root).clone(), directory };
        let place = self.in_innermost_root(Place { root: place.root, path });
        let deadline = deadline.clone();
        Ok(Target { place, location, dir, missing, name, original: None, deadline, _lock: lock })
    }
}

/// Refuses to create a file with the name of a temp file. It could be hidden and swept.
fn check_new_name(name: &Name) -> Result<()> {
    match TempName::parse(name.as_bytes()) {
        Some(_) => Err(Error::BadPath("has the name of one of Pinfold's temp files")),
        None => Ok(()),
    }
}

/// The maximum number of directories created for one file. Each is open until the file exists.
const MAX_PARENTS: usize = 100;

/// The reason why a place cannot be the target.
enum TargetError {
    /// A symlink is in the path.
    Symlink,
    /// The directory does not exist.
    NoParent,
    Error(Error),
}

impl From<Error> for TargetError {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<Errno> for TargetError {
    fn from(errno: Errno) -> Self {
        Self::Error(errno.into())
    }
}

impl Target {
    fn checked(self, path: &RawPath) -> Result<Self> {
        match (path.names_a_directory(), &self.original) {
            (true, Some(_)) => Err(Error::NotADirectory),
            (true, None) => Err(Error::BadPath("ends as a directory's does, so it names no file")),
            (false, _) => Ok(self),
        }
    }

    /// Its place.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The file's metadata when it was found; `None` for a new file.
    pub fn meta(&self) -> Option<&Metadata> {
        self.original.as_ref().map(|original| original.file.meta())
    }

    /// The file, to read its content before the change.
    pub fn file(&mut self) -> Option<&mut File> {
        self.original.as_mut().map(|original| &mut original.file)
    }

    /// The file's content. Empty if there is no file. Its hash is remembered, because the change is planned on this
    /// content.
    pub fn content(&mut self) -> Result<Vec<u8>> {
        let Some(original) = &mut self.original else { return Ok(Vec::new()) };
        let bytes = original.file.read_whole()?;
        // The change that is planned on these bytes must not replace others.
        original.hash = OnceCell::from(blake3::hash(&bytes));
        Ok(bytes)
    }

    /// The names of the missing directories above a new file.
    pub fn missing_parents(&self) -> &[Name] {
        &self.missing
    }

    /// The hash of the file's content, computed once; `None` for a new file.
    pub fn hash(&self) -> Result<Option<Hash>> {
        self.original.as_ref().map(Original::hash).transpose()
    }

    /// Fails if the operating system would not let this process change the file. Does not try it.
    pub fn check_writable(&self) -> Result<()> {
        if self.original.is_some() {
            sys::may_write(self.dir.fd(), self.name.as_bytes())?;
        }
        self.dir.check_writable()
    }
}

impl Original {
    /// The hash of the file's current content.
    pub(crate) fn hash_now(&self) -> Result<Hash> {
        self.file.hash(&self.deadline)
    }

    pub(crate) fn hash(&self) -> Result<Hash> {
        if let Some(hash) = self.hash.get() {
            return Ok(*hash);
        }
        let hash = self.hash_now()?;
        Ok(*self.hash.get_or_init(|| hash))
    }
}
