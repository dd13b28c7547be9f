//! The workspace: one or more roots. Finds the root and the place of a path.

mod lookup;

use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::ignore_files::IgnoreCache;
use crate::path::{Step, steps, without_parent_steps};
use crate::root::{Root, real_names};
use crate::{Error, Name, OpenMethod, RawPath, RelPath, Result, make_private_directory};

pub use lookup::Stat;

/// The maximum length of a path, several times that of the deepest paths in use. Each name takes memory and one or
/// more system calls.
const MAX_PATH_BYTES: usize = 64 * 1024;

/// The roots. All file access of tools is below them.
#[derive(Debug)]
pub struct Workspace {
    roots: Vec<Arc<Root>>,
    /// The directory where relative paths start, if it is not the first root: the first root of the workspace before
    /// it was narrowed, or the directory of [`Self::starting_at`].
    base: Option<Arc<Root>>,
    /// Whether it is a part of another workspace.
    narrowed: bool,
    pub(crate) ignore_cache: IgnoreCache,
}

/// The place of a file or directory: a root, and the path below it, without symlinks.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Place {
    /// The root's number, in the order of the roots.
    pub root: usize,
    /// The path below it.
    pub path: RelPath,
}

/// Pins each root that is reached through another one. A failure names the root by its number.
fn pin_nested(roots: &mut [Arc<Root>]) -> Result<(), (usize, Error)> {
    for number in 0..roots.len() {
        let root = &roots[number];
        let mut others = roots.iter().filter(|other| !Arc::ptr_eq(root, other));
        if others.any(|other| root.is_reached_through(other)) {
            roots[number] = Arc::new(root.pinned().map_err(|error| (number, error))?);
        }
    }
    Ok(())
}

impl Workspace {
    /// Opens the roots. A root is a path: each call uses the directory that is there at the time.
    ///
    /// The error has the number of the root that could not be opened.
    pub fn open<P: AsRef<Path>>(
        roots: impl IntoIterator<Item = P>,
        method: Option<OpenMethod>,
    ) -> Result<Self, (usize, Error)> {
        let open = |(number, path): (usize, P)| {
            let root = Root::open(path.as_ref(), method).map_err(|error| (number, error));
            root.map(Arc::new)
        };
        let mut roots = roots.into_iter().enumerate().map(open).collect::<Result<Vec<_>, _>>()?;
        pin_nested(&mut roots)?;
        Ok(Self { roots, base: None, narrowed: false, ignore_cache: IgnoreCache::default() })
    }

    /// Opens a directory that is private to its owner. It is created with mode 0700 if it is missing, and entries are
    /// created in it with modes 0700 and 0600.
    pub fn open_private(directory: &Path) -> Result<Self> {
        make_private_directory(directory).map_err(Error::Os)?;
        let root = Arc::new(Root::open(directory, None)?.for_owner());
        let (roots, ignore_cache) = (vec![root], IgnoreCache::default());
        Ok(Self { roots, base: None, narrowed: false, ignore_cache })
    }

    /// Adds read roots, below which nothing is changed. The error has the number of the root, counting all roots.
    pub fn with_read_roots<P: AsRef<Path>>(
        mut self,
        roots: impl IntoIterator<Item = P>,
    ) -> Result<Self, (usize, Error)> {
        for path in roots {
            let root = Root::open(path.as_ref(), None);
            let root = root.map_err(|error| (self.roots.len(), error))?;
            self.roots.push(Arc::new(root.into_read_root()));
        }
        pin_nested(&mut self.roots)?;
        Ok(self)
    }

    /// Whether the innermost root of a real path is a read root, where nothing may be changed.
    pub fn is_in_read_root(&self, real_path: &[u8]) -> bool {
        if !self.roots.iter().any(|root| root.is_read_root()) {
            return false;
        }
        let names: Vec<_> =
            real_path.split(|byte| *byte == b'/').filter(|n| !n.is_empty()).collect();
        let depth = |root: &Arc<Root>| {
            let above = root.canonical_names();
            let is_above = above.len() <= names.len()
                && above.iter().zip(&names).all(|(one, other)| one.as_bytes() == *other);
            is_above.then_some(above.len())
        };
        let innermost = self.roots.iter().filter_map(depth).max();
        innermost.is_some()
            && self.roots.iter().any(|root| root.is_read_root() && depth(root) == innermost)
    }

    /// The part of this workspace that is also inside other directories: the part of each directory inside a root,
    /// and each root inside one of them. Returns `None` if there is none.
    ///
    /// The directories are found through the roots' handles. So even if they are swapped meanwhile, the result is
    /// never wider than this workspace.
    pub fn narrowed<P: AsRef<Path>>(&self, to: impl IntoIterator<Item = P>) -> Option<Self> {
        let to: Vec<_> = to.into_iter().filter_map(|path| real_names(path.as_ref())).collect();
        let mut roots = self.roots_in(&to);
        if roots.is_empty() {
            // The real path of a root may have changed.
            self.roots.iter().for_each(|root| _ = root.refresh());
            roots = self.roots_in(&to);
        }
        let first = self.roots.first()?;
        let base = self.base.clone().unwrap_or_else(|| first.clone());
        let (base, ignore_cache) = (Some(base), IgnoreCache::default());
        (!roots.is_empty()).then_some(Self { roots, base, narrowed: true, ignore_cache })
    }

    /// The parts of the roots inside some directories, without duplicates.
    fn roots_in(&self, directories: &[Vec<Name>]) -> Vec<Arc<Root>> {
        let mut roots: Vec<Arc<Root>> = Vec::new();
        for directory in directories {
            for root in self.roots.iter().filter_map(|root| root.narrowed(directory)) {
                let same = |known: &Arc<Root>| known.canonical_names() == root.canonical_names();
                if !roots.iter().any(same) {
                    roots.push(root);
                }
            }
        }
        roots
    }

    /// The same workspace with another start of relative paths. Returns `None` if the directory is outside the
    /// workspace, or not a directory.
    pub fn starting_at(&self, directory: &Path) -> Option<Self> {
        let directory = real_names(directory)?;
        let inside = || self.roots.iter().find_map(|root| root.inside(&directory));
        let base = inside().or_else(|| {
            self.roots.iter().for_each(|root| _ = root.refresh());
            inside()
        })?;
        let first = self.roots.first()?.canonical_names() == base.canonical_names();
        let base = (!first).then_some(base);
        Some(Self {
            roots: self.roots.clone(),
            base,
            narrowed: self.narrowed,
            ignore_cache: IgnoreCache::default(),
        })
    }

    /// Whether it is a part of another workspace.
    pub fn is_narrowed(&self) -> bool {
        self.narrowed
    }

    /// Whether relative paths start at a chosen directory that is not a root.
    pub fn starts_within(&self) -> bool {
        self.base.is_some() && !self.narrowed
    }

    /// The start of relative paths, as it was given.
    pub fn base(&self) -> &Path {
        let base = self.base.as_ref().or(self.roots.first());
        base.map_or(Path::new("/"), |root| root.given())
    }

    /// The path of a place relative to [`Self::base`], if it is below that.
    pub fn below_base(&self, place: &Place) -> Option<RelPath> {
        let Some(base) = &self.base else {
            return (place.root == 0).then(|| place.path.clone());
        };
        let names = self.roots[place.root].canonical_names().into_iter();
        let names: Vec<Name> = names.chain(place.path.names()).collect();
        Some(names.strip_prefix(&base.canonical_names()[..])?.iter().cloned().collect())
    }

    /// The roots' paths, as they were given, made absolute.
    pub fn roots(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.roots.iter().map(|root| root.given())
    }

    /// The roots' paths, as they were given, made absolute and escaped for printing.
    pub fn shown_roots(&self) -> impl ExactSizeIterator<Item = &str> {
        self.roots.iter().map(|root| root.shown())
    }

    /// A place's real path, without symlinks.
    pub fn real_path(&self, place: &Place) -> Vec<u8> {
        let mut path = self.roots[place.root].canonical_path().into_os_string().into_vec();
        if !place.path.is_root() {
            if path != b"/" {
                path.push(b'/');
            }
            path.extend_from_slice(place.path.as_bytes());
        }
        path
    }

    /// Whether these are the real paths of the roots, in their order.
    pub fn are_real_roots(&self, paths: &[PathBuf]) -> bool {
        paths.len() == self.roots.len()
            && self.roots.iter().zip(paths).all(|(root, path)| root.is_canonical_path(path))
    }

    /// How paths below the roots are opened.
    pub fn open_method(&self) -> OpenMethod {
        let walk = self.roots.iter().any(|root| root.open_method() == OpenMethod::NameByName);
        if walk { OpenMethod::NameByName } else { OpenMethod::Kernel }
    }

    pub(crate) fn all_roots(&self) -> impl Iterator<Item = &Arc<Root>> {
        self.roots.iter()
    }

    pub(crate) fn root(&self, number: usize) -> &Arc<Root> {
        &self.roots[number]
    }

    /// The root that an absolute path leads into, and the remaining steps below it.
    ///
    /// Only this function compares names. After that, handles are used.
    pub(crate) fn enter(&self, mut path: Vec<Step>) -> Result<(usize, Vec<Step>)> {
        let leading = self.roots.iter().enumerate();
        let leading =
            leading.filter_map(|(number, root)| Some((root.matching_prefix(&path)?, number)));
        // The innermost of nested roots, and the first of equal ones.
        let best = leading.max_by_key(|(names, number)| (*names, usize::MAX - number));
        let (names, number) = best.ok_or(Error::Outside)?;
        path.drain(..names);
        Ok((number, path))
    }

    /// The same place below its innermost root, so that each place has one name.
    pub(crate) fn in_innermost_root(&self, place: Place) -> Place {
        if self.roots.len() == 1 {
            return place;
        }
        let names = self.roots[place.root].canonical_names().into_iter();
        let steps = names.chain(place.path.names()).map(Step::Name).collect();
        match self.enter(steps) {
            Ok((root, steps)) => {
                without_parent_steps(&steps).map_or(place, |path| Place { root, path })
            }
            Err(_) => place,
        }
    }

    /// The root and the steps of a path. A relative path starts at the base.
    pub(crate) fn parse_path(&self, path: &RawPath) -> Result<(usize, Vec<Step>)> {
        let (root, below) = match self.find_root(path) {
            // The real path of a root may have changed.
            Err(Error::Outside) => {
                self.roots.iter().for_each(|root| _ = root.refresh());
                self.find_root(path)?
            }
            found => found?,
        };
        self.roots[root].refresh()?;
        Ok((root, below))
    }

    /// As [`Self::parse_path`], by the roots' names at the last refresh. Makes no system call, unless the path has
    /// another spelling of a root's name.
    pub(crate) fn find_root(&self, path: &RawPath) -> Result<(usize, Vec<Step>)> {
        if path.as_str().is_empty() {
            return Err(Error::BadPath("is empty"));
        }
        if path.as_str().len() > MAX_PATH_BYTES {
            return Err(Error::BadPath("is too long"));
        }
        let steps = steps(path.as_str().as_bytes())?;
        match &self.base {
            _ if path.is_absolute() => self.enter(steps),
            // The base of a narrowed workspace may be outside it. Then `.` is its first root.
            Some(base) if !steps.is_empty() || !self.narrowed => {
                let base = base.canonical_names().into_iter().map(Step::Name);
                self.enter(base.chain(steps).collect())
            }
            _ => Ok((0, steps)),
        }
    }

    /// The roots that are not below another one.
    pub fn outermost_roots(&self) -> Result<Vec<Place>> {
        self.roots.iter().try_for_each(|root| root.refresh())?;
        let all: Vec<_> = self.roots.iter().map(|root| root.canonical_names()).collect();
        let inner = |number: usize| {
            let mut others = all.iter().enumerate();
            others.any(|(other, outer)| {
                let shorter = outer.len() < all[number].len();
                let same_before = outer.len() == all[number].len() && other < number;
                (shorter || same_before) && all[number].starts_with(outer)
            })
        };
        let outermost = (0..all.len()).filter(|number| !inner(*number));
        Ok(outermost.map(|root| Place { root, path: RelPath::root() }).collect())
    }
}
