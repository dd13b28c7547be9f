//! Opens and stats a path, or a place that was found before.

use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{Place, Workspace};
use crate::dir::{Dir, Entry};
use crate::path::{Step, without_parent_steps};
use crate::resolve::{Last, Resolved};
use crate::root::{OpenError, open_error};
use crate::temp_name::is_temp;
use crate::{Error, File, Kind, Metadata, Name, RawPath, Result, Times, sys};

/// The result of `stat` or `lstat` of a path.
#[derive(Debug)]
pub struct Stat {
    /// Its place.
    pub place: Place,
    /// Its metadata.
    pub meta: Metadata,
    /// The times of its creation and last access.
    pub times: Times,
    /// The target of a symlink, as the link stores it.
    pub link_target: Option<Vec<u8>>,
}

/// An entry at a place: its metadata, its times, and the target of a symlink.
type Found = (Metadata, Times, Option<Vec<u8>>);

impl Workspace {
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

    /// Opens the directory that a path leads to, and lists at most `max` of its entries.
    pub fn list(&self, path: &RawPath, max: usize) -> Result<(Place, Vec<Entry>)> {
        let (place, fd) = self.open_following(path, sys::DIR_PATH)?;
        Ok((place, Dir::new(fd)?.entries(max)?))
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
                Err(OpenError::Symlink) => {}
                Err(other) => return Err(other.into_error()),
                Ok(fd) => return Ok((Place { root, path }, fd)),
            }
        }
        self.open_resolved(root, steps, flags)
    }

    /// Opens the entry that `steps` below a root lead to. Symlinks are followed.
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
                // Another process has just put a symlink there, so the path is resolved again.
                Err(OpenError::Symlink) => {}
                Err(other) => return Err(other.into_error()),
                Ok(fd) => return Ok((place, fd)),
            }
        }
        Err(Error::Changed)
    }

    /// Opens a regular file at a place that was found before.
    pub fn open_place(&self, place: &Place) -> Result<File> {
        let fd = self.roots[place.root].open_checked(&place.path, OFlags::RDONLY);
        File::regular(fd.map_err(OpenError::into_error)?)
    }

    /// The metadata of a place that was found before, and the target of a symlink.
    pub fn lstat_place(&self, place: &Place) -> Result<(Metadata, Option<Vec<u8>>)> {
        let (meta, _, link_target) = self.stat_place(place).map_err(open_error)?;
        Ok((meta, link_target))
    }

    /// The `lstat` of a path. A symlink in the last component is not followed.
    pub fn lstat(&self, path: &RawPath) -> Result<Stat> {
        let (root, steps) = self.parse_path(path)?;
        for _ in 0..sys::MAX_RACES {
            let place = match without_parent_steps(&steps) {
                Some(path) => Place { root, path },
                None => self.resolved_but_last(root, &steps)?,
            };
            let seen = match self.stat_place(&place) {
                Err(Errno::LOOP) => {
                    let place = self.resolved_but_last(root, &steps)?;
                    self.stat_place(&place).map(|found| (place, found))
                }
                other => other.map(|found| (place, found)),
            };
            match seen {
                Err(Errno::LOOP) => {}
                Err(other) => return Err(other.into()),
                Ok((place, (meta, times, link_target))) => {
                    let place = self.in_innermost_root(place);
                    return Ok(Stat { place, meta, times, link_target });
                }
            }
        }
        Err(Error::Changed)
    }

    /// The `stat` of a path. Symlinks are followed.
    pub fn stat(&self, path: &RawPath) -> Result<Stat> {
        let (root, steps) = self.parse_path(path)?;
        let Resolved { place, missing } = self.resolve(root, steps, Last::Follow)?;
        if !missing.is_empty() {
            return Err(Error::NotFound);
        }
        let (meta, times, link_target) = self.stat_place(&place).map_err(open_error)?;
        Ok(Stat { place: self.in_innermost_root(place), meta, times, link_target })
    }

    fn resolved_but_last(&self, root: usize, steps: &[Step]) -> Result<Place> {
        let Resolved { place, missing } = self.resolve(root, steps.to_vec(), Last::Keep)?;
        if missing.is_empty() { Ok(place) } else { Err(Error::NotFound) }
    }

    fn stat_place(&self, place: &Place) -> Result<Found, Errno> {
        let root = &self.roots[place.root];
        let Some((parent, name)) = place.path.split() else {
            let (meta, times) = sys::stat_with_times(root.opened().handle(), b".")?;
            return Ok((meta, times, None));
        };
        root.in_directory(&parent, |dir| {
            let (meta, times) = sys::stat_with_times(dir, name.as_bytes())?;
            if is_temp(name.as_bytes(), &meta) {
                return Err(Errno::NOENT);
            }
            let target = match meta.kind {
                Kind::Symlink => Some(sys::read_link(dir, name.as_bytes())?),
                _ => None,
            };
            Ok((meta, times, target))
        })
    }

    /// The deepest existing part of a path, and the missing names below it.
    pub fn deepest_existing(&self, path: &RawPath) -> Result<(Place, Vec<Name>)> {
        let (root, steps) = self.parse_path(path)?;
        let Resolved { place, missing } = self.resolve(root, steps, Last::Follow)?;
        Ok((place, missing))
    }

    /// At most `max` entries of a directory that was found before.
    pub fn entries(&self, place: &Place, max: usize) -> Result<Vec<Entry>> {
        let fd = self.roots[place.root].open_below(&place.path, sys::DIR_PATH);
        Dir::new(fd.map_err(open_error)?)?.entries(max)
    }
}
