//! The workspace: one or more roots, and the functions that open and stat what is below them.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::dir::{Dir, Entry};
use crate::ignore_files::IgnoreCache;
use crate::path::{Step, steps, without_parent_steps};
use crate::resolve::{Last, Resolved};
use crate::root::{Root, real_names};
use crate::temp_name::{TempName, is_temp};
use crate::{Error, File, Kind, Metadata, Name, OpenMethod, RawPath, RelPath, Result, Times, sys};

/// Several times as long as the deepest path that anybody uses: each name of it takes memory, and one
/// or more system calls.
const MAX_PATH_BYTES: usize = 64 * 1024;

/// The roots that everything happens below.
#[derive(Debug)]
pub struct Workspace {
    roots: Vec<Arc<Root>>,
    /// Where relative paths start, if that is not the first root: what that was before the workspace
    /// was narrowed, or a directory in it that was chosen.
    base: Option<Arc<Root>>,
    /// Whether it is a part of another.
    narrowed: bool,
    pub(crate) ignore_cache: IgnoreCache,
}

/// Where something is: which root, and the path below it, free of symlinks.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Place {
    /// The root's number, in the order in which they were given.
    pub root: usize,
    /// The path below it.
    pub path: RelPath,
}

/// The `lstat` of a path: a symlink is not followed.
#[derive(Debug)]
pub struct Lstat {
    /// Where it is.
    pub place: Place,
    /// Its metadata.
    pub meta: Metadata,
    /// The target of a symlink, as it is stored.
    pub link_target: Option<Vec<u8>>,
}

impl Workspace {
    /// Opens the roots. A root is a path: each call sees the directory that is there at the time.
    ///
    /// A failure names the root that could not be opened by its number.
    pub fn open<P: AsRef<Path>>(
        roots: impl IntoIterator<Item = P>,
        method: Option<OpenMethod>,
    ) -> Result<Self, (usize, Error)> {
        let open = |(number, path): (usize, P)| {
            let root = Root::open(path.as_ref(), method).map_err(|error| (number, error));
            root.map(Arc::new)
        };
        let roots = roots.into_iter().enumerate().map(open).collect::<Result<_, _>>()?;
        Ok(Self { roots, base: None, narrowed: false, ignore_cache: IgnoreCache::default() })
    }

    /// Adds roots below which nothing is changed. A failure names the root by its number, counted on from the others.
    pub fn with_read_roots<P: AsRef<Path>>(
        mut self,
        roots: impl IntoIterator<Item = P>,
    ) -> Result<Self, (usize, Error)> {
        for path in roots {
            let root = Root::open(path.as_ref(), None);
            let root = root.map_err(|error| (self.roots.len(), error))?;
            self.roots.push(Arc::new(root.only_read()));
        }
        Ok(self)
    }

    /// Whether nothing is changed at a real path, because the innermost root that it is in is only read.
    pub fn is_only_read(&self, real_path: &[u8]) -> bool {
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
            && self.roots.iter().any(|root| root.is_only_read() && depth(root) == innermost)
    }

    /// The part of this workspace that is in some other directories too: of each of them what is
    /// inside a root, and each root that is inside one of them. `None` if nothing is.
    ///
    /// The directories are found through the roots' handles, so whatever they are swapped for
    /// meanwhile, what comes of it is never wider than this.
    pub fn narrowed<P: AsRef<Path>>(&self, to: impl IntoIterator<Item = P>) -> Option<Self> {
        let to: Vec<_> = to.into_iter().filter_map(|path| real_names(path.as_ref())).collect();
        let mut roots = self.roots_in(&to);
        if roots.is_empty() {
            // A root may have another real path by now.
            self.roots.iter().for_each(|root| _ = root.refresh());
            roots = self.roots_in(&to);
        }
        let first = self.roots.first()?;
        let base = self.base.clone().unwrap_or_else(|| first.clone());
        let (base, ignore_cache) = (Some(base), IgnoreCache::default());
        (!roots.is_empty()).then_some(Self { roots, base, narrowed: true, ignore_cache })
    }

    /// What of the roots is in some directories, each once.
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

    /// The same workspace, in which relative paths start at a directory of it. `None` if it is not in
    /// it, or no directory.
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

    /// Whether it is a part of another.
    pub fn is_narrowed(&self) -> bool {
        self.narrowed
    }

    /// Whether relative paths start at a directory that was chosen, and is not a root.
    pub fn starts_within(&self) -> bool {
        self.base.is_some() && !self.narrowed
    }

    /// Where relative paths start, as it was given.
    pub fn base(&self) -> &Path {
        let base = self.base.as_ref().or(self.roots.first());
        base.map_or(Path::new("/"), |root| root.given())
    }

    /// A place as a path from there, if it is below it.
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

    /// A place's real path, free of symlinks.
    pub fn real_path(&self, place: &Place) -> Vec<u8> {
        let names = self.roots[place.root].canonical_names().into_iter();
        let path = names.chain(place.path.names()).fold(Vec::new(), |mut path, name| {
            path.push(b'/');
            path.extend_from_slice(name.as_bytes());
            path
        });
        if path.is_empty() { b"/".to_vec() } else { path }
    }

    /// How paths below the roots are opened.
    pub fn open_method(&self) -> OpenMethod {
        let walk = self.roots.iter().any(|root| root.open_method() == OpenMethod::Walk);
        if walk { OpenMethod::Walk } else { OpenMethod::Openat2 }
    }

    pub(crate) fn all_roots(&self) -> impl Iterator<Item = &Arc<Root>> {
        self.roots.iter()
    }

    pub(crate) fn root(&self, number: usize) -> &Arc<Root> {
        &self.roots[number]
    }

    /// The root that an absolute path leads into, and the steps that are left below it.
    ///
    /// Whole names are compared, and only here; from then on the handles decide.
    pub(crate) fn enter(&self, path: Vec<Step>) -> Result<(usize, Vec<Step>)> {
        let leading = self.roots.iter().enumerate();
        let leading =
            leading.filter_map(|(number, root)| Some((root.matching_prefix(&path)?, number)));
        // Of nested roots the inner one, and of equal ones the first.
        let best = leading.max_by_key(|(names, number)| (*names, usize::MAX - number));
        let (names, number) = best.ok_or(Error::Outside)?;
        Ok((number, path[names..].to_vec()))
    }

    /// The same place below the innermost root that it is in, so that it has one name only.
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

    /// The root and the steps that a path means. A relative one starts at the base.
    pub(crate) fn parse_path(&self, path: &RawPath) -> Result<(usize, Vec<Step>)> {
        let (root, below) = match self.find_root(path) {
            // A root may have another real path by now.
            Err(Error::Outside) => {
                self.roots.iter().for_each(|root| _ = root.refresh());
                self.find_root(path)?
            }
            found => found?,
        };
        self.roots[root].refresh()?;
        Ok((root, below))
    }

    /// As [`Self::parse_path`], by the roots' names when they were last refreshed. Makes no system call.
    fn find_root(&self, path: &RawPath) -> Result<(usize, Vec<Step>)> {
        if path.as_str().is_empty() {
            return Err(Error::BadPath("is empty"));
        }
        if path.as_str().len() > MAX_PATH_BYTES {
            return Err(Error::BadPath("is too long"));
        }
        let steps = steps(path.as_str().as_bytes())?;
        match &self.base {
            _ if path.is_absolute() => self.enter(steps),
            // The base of a narrowed workspace may be outside of it: `.` is then its first root.
            Some(base) if !steps.is_empty() || !self.narrowed => {
                let base = base.canonical_names().into_iter().map(Step::Name);
                self.enter(base.chain(steps).collect())
            }
            _ => Ok((0, steps)),
        }
    }

    /// Opens the regular file that a path leads to.
    pub fn file(&self, path: &RawPath) -> Result<(Place, File)> {
        let (place, fd) = self.open_following(path, OFlags::RDONLY)?;
        let place = self.in_innermost_root(place);
        let file = File::regular(fd)?;
        if path.names_a_directory() {
            return Err(Error::NotADirectory);
        }
        Ok((place, file))
    }

    /// Opens the regular file at a path and reads it, if that never waits for a disk or a network: it has at
    /// most `max_bytes` bytes, no symlink is on the way from the root, it is on the root's own mount, of a
    /// local file system, and the whole path and content are in the kernel's caches.
    ///
    /// No other root is looked at, and the way to this one only in the caches: a mount that hangs on it, or
    /// that another root is on, holds up nothing.
    pub fn cached_file(&self, path: &RawPath, max_bytes: usize) -> Option<(Place, File)> {
        let (number, steps) = self.find_root(path).ok()?;
        let below = without_parent_steps(&steps).filter(|_| !path.names_a_directory())?;
        if below.split().is_some_and(|(_, name)| TempName::parse(name.as_bytes()).is_some()) {
            return None;
        }
        let root = &self.roots[number];
        let mount = root.current_local_mount()?;
        let len = |handle: &OwnedFd| {
            let found = sys::stat_cached(handle).ok()?;
            let fits = found.mount == mount && found.kind == FileType::RegularFile;
            usize::try_from(found.len).ok().filter(|len| fits && *len <= max_bytes)
        };
        // `O_PATH` first: opening a FIFO, or a file of a remote file system, could wait or have effects. The
        // second open may find another file, so it is checked again.
        len(&root.open_cached(&below, sys::PATH_ONLY).ok()?)?;
        let fd = root.open_cached(&below, OFlags::RDONLY).ok()?;
        let mut content = vec![0; len(&fd)?];
        // The metadata is from before the content is read, as for any other file: a later change shows.
        let file = File::regular(fd).ok().filter(|file| file.meta().len == content.len() as u64)?;
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

    /// Opens the directory that a path leads to, and lists at most `most` of its entries.
    pub fn list(&self, path: &RawPath, most: usize) -> Result<(Place, Vec<Entry>)> {
        let (place, fd) = self.open_following(path, sys::DIR_PATH)?;
        Ok((place, Dir::new(fd)?.entries(most)?))
    }

    /// The directory that a path leads to.
    pub fn directory(&self, path: &RawPath) -> Result<Place> {
        let (place, _) = self.open_following(path, sys::DIR_PATH)?;
        Ok(self.in_innermost_root(place))
    }

    fn open_following(&self, path: &RawPath, flags: OFlags) -> Result<(Place, OwnedFd)> {
        let (root, steps) = self.parse_path(path)?;
        if let Some(path) = without_parent_steps(&steps) {
            match self.roots[root].open_checked(&path, flags) {
                Err(Errno::LOOP) => {}
                Err(other) => return Err(opening(other)),
                Ok(fd) => return Ok((Place { root, path }, fd)),
            }
        }
        self.open_resolved(root, steps, flags)
    }

    /// Opens what `steps` below a root lead to, symlinks followed.
    pub(crate) fn open_resolved(
        &self,
        root: usize,
        steps: Vec<Step>,
        flags: OFlags,
    ) -> Result<(Place, OwnedFd)> {
        for _ in 0..sys::MAX_RACES {
            let Resolved { place, missing } = self.resolve(root, steps.clone(), Last::Follow)?;
            if !missing.is_empty() {
                return Err(Error::NotFound);
            }
            match self.roots[place.root].open_checked(&place.path, flags) {
                // Another process has just put a symlink there: resolve again.
                Err(Errno::LOOP) => {}
                Err(other) => return Err(opening(other)),
                Ok(fd) => return Ok((place, fd)),
            }
        }
        Err(Error::Changed)
    }

    /// Opens a regular file at a place that was found before.
    pub fn open_place(&self, place: &Place) -> Result<File> {
        let fd = self.roots[place.root].open_checked(&place.path, OFlags::RDONLY);
        File::regular(fd.map_err(opening)?)
    }

    /// The metadata of a place that was found before, and the target of a symlink.
    pub fn lstat_place(&self, place: &Place) -> Result<(Metadata, Option<Vec<u8>>)> {
        self.stat_place(place).map_err(opening)
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

    /// The `lstat` of a path: a symlink in its last place is not followed.
    pub fn lstat(&self, path: &RawPath) -> Result<Lstat> {
        let (root, steps) = self.parse_path(path)?;
        for _ in 0..sys::MAX_RACES {
            let place = match without_parent_steps(&steps) {
                Some(path) => Place { root, path },
                None => self.resolved_but_last(root, &steps)?,
            };
            let seen = match self.stat_place(&place) {
                Err(Errno::LOOP) => {
                    let place = self.resolved_but_last(root, &steps)?;
                    self.stat_place(&place).map(|(meta, target)| (place, meta, target))
                }
                other => other.map(|(meta, target)| (place, meta, target)),
            };
            match seen {
                Err(Errno::LOOP) => {}
                Err(other) => return Err(opening(other)),
                Ok((place, meta, link_target)) => {
                    let place = self.in_innermost_root(place);
                    return Ok(Lstat { place, meta, link_target });
                }
            }
        }
        Err(Error::Changed)
    }

    /// The `stat` of a path: symlinks are followed.
    pub fn stat(&self, path: &RawPath) -> Result<Lstat> {
        let (root, steps) = self.parse_path(path)?;
        let Resolved { place, missing } = self.resolve(root, steps, Last::Follow)?;
        if !missing.is_empty() {
            return Err(Error::NotFound);
        }
        let (meta, link_target) = self.lstat_place(&place)?;
        Ok(Lstat { place: self.in_innermost_root(place), meta, link_target })
    }

    /// When a place that was found before was created, and last accessed.
    pub fn times(&self, place: &Place) -> Result<Times> {
        let root = &self.roots[place.root];
        let Some((parent, name)) = place.path.split() else {
            return sys::times(root.opened().handle(), b".").map_err(opening);
        };
        let dir = root.open_below(&parent, sys::DIR_PATH).map_err(opening)?;
        sys::times(&dir, name.as_bytes()).map_err(opening)
    }

    fn resolved_but_last(&self, root: usize, steps: &[Step]) -> Result<Place> {
        let Resolved { place, missing } = self.resolve(root, steps.to_vec(), Last::Keep)?;
        if missing.is_empty() { Ok(place) } else { Err(Error::NotFound) }
    }

    fn stat_place(&self, place: &Place) -> Result<(Metadata, Option<Vec<u8>>), Errno> {
        let root = &self.roots[place.root];
        let Some((parent, name)) = place.path.split() else {
            return Ok((Metadata::of(&sys::stat(root.opened().handle())?), None));
        };
        let dir = root.open_below(&parent, sys::DIR_PATH)?;
        let meta = Metadata::of(&sys::stat_at(&dir, name.as_bytes())?);
        if is_temp(name.as_bytes(), &meta) {
            return Err(Errno::NOENT);
        }
        let target = match meta.kind {
            Kind::Symlink => Some(sys::read_link(&dir, name.as_bytes())?),
            _ => None,
        };
        Ok((meta, target))
    }

    /// The deepest part of a path that exists, and the names below it that do not.
    pub fn deepest_existing(&self, path: &RawPath) -> Result<(Place, Vec<Name>)> {
        let (root, steps) = self.parse_path(path)?;
        let Resolved { place, missing } = self.resolve(root, steps, Last::Follow)?;
        Ok((place, missing))
    }

    /// The entries of a directory that was found before, at most `most` of them.
    pub fn entries(&self, place: &Place, most: usize) -> Result<Vec<Entry>> {
        let fd = self.roots[place.root].open_below(&place.path, sys::DIR_PATH);
        Dir::new(fd.map_err(opening)?)?.entries(most)
    }
}

/// The error for a failed open.
pub(crate) fn opening(errno: Errno) -> Error {
    match errno {
        // Callers that resolve symlinks handle this before, so another process put one there.
        Errno::LOOP => Error::Changed,
        Errno::PIPE => Error::NotRegular(Kind::Fifo),
        Errno::NXIO => Error::NotRegular(Kind::Socket),
        Errno::NODEV => Error::NotRegular(Kind::Device),
        other => other.into(),
    }
}
