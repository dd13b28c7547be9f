//! Watches directories with an inotify descriptor of Pinfold's own.
//!
//! The kernel queues an event within the system call that makes the change. So whoever reads the queue until it is
//! empty has seen every change that was complete before.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use crate::RelPath;

/// A change in a watched directory.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) directory: RelPath,
    pub(crate) change: Change,
}

#[derive(Debug)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only inotify tells"))]
pub(crate) enum Change {
    /// A name was created, removed or replaced. The flag says whether it was or is a directory.
    Name(Vec<u8>, bool),
    /// The content or metadata of an entry changed. The flag says whether it is a directory.
    Content(Vec<u8>, bool),
    /// The directory's own metadata changed.
    Itself,
    /// The directory was deleted or moved.
    Gone,
}

/// The watches on the directories of one tree.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    inotify: Option<OwnedFd>,
    paths: HashMap<i32, RelPath>,
    /// The number of the descriptor. Directories that an earlier descriptor watched are no longer watched.
    epoch: u64,
    /// The reason why directories cannot be watched.
    refused: Option<&'static str>,
}

/// The queue has overflowed, so the state of all directories is unknown.
#[derive(Debug)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only inotify tells"))]
pub(crate) struct Overflow;

impl Watch {
    /// The epoch of the watches; 0 if there are none.
    pub(crate) fn epoch(&self) -> u64 {
        if self.inotify.is_some() { self.epoch } else { 0 }
    }

    /// How many directories are watched.
    pub(crate) fn len(&self) -> usize {
        self.paths.len()
    }

    /// The reason why directories are not watched, if that was tried.
    pub(crate) fn refused(&self) -> Option<&'static str> {
        self.refused
    }
}

#[cfg(target_os = "linux")]
mod inotify {
    use std::mem::MaybeUninit;
    use std::os::fd::{AsRawFd as _, OwnedFd};

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use rustix::io::Errno;

    use super::{Change, Event, Overflow, Watch};
    use crate::{RelPath, sys};

    /// The maximum number of watches. No tree that is worth caching has more directories.
    const MAX_WATCHES: usize = 100_000;

    const CHANGES: WatchFlags = WatchFlags::MODIFY
        .union(WatchFlags::CLOSE_WRITE)
        .union(WatchFlags::ATTRIB)
        .union(WatchFlags::CREATE)
        .union(WatchFlags::DELETE)
        .union(WatchFlags::MOVED_FROM)
        .union(WatchFlags::MOVED_TO)
        .union(WatchFlags::DELETE_SELF)
        .union(WatchFlags::MOVE_SELF)
        .union(WatchFlags::ONLYDIR);

    impl Watch {
        /// Watches an open directory. Returns the epoch, or 0 if it cannot be watched.
        pub(crate) fn add(&mut self, path: &RelPath, directory: &OwnedFd) -> u64 {
            if self.refused.is_some() {
                return 0;
            }
            if !sys::is_local(directory).unwrap_or(false) {
                // Other directories of the tree may be on another file system.
                return 0;
            }
            if self.inotify.is_none() {
                match inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC) {
                    Ok(descriptor) => self.inotify = Some(descriptor),
                    Err(_) => {
                        self.refused = Some("the system gives no inotify descriptor");
                        return 0;
                    }
                }
                self.epoch += 1;
            }
            let Some(descriptor) = &self.inotify else { return 0 };
            // The link leads to the open directory itself, even if another one has its path by now.
            let link = format!("/proc/self/fd/{}", directory.as_raw_fd());
            match inotify::add_watch(descriptor, link.as_str(), CHANGES) {
                // Two paths lead to this directory, and only one can be watched.
                Ok(number) if self.paths.get(&number).is_some_and(|known| known != path) => 0,
                Ok(number) => {
                    self.paths.insert(number, path.clone());
                    if self.paths.len() >= MAX_WATCHES {
                        self.refused = Some("it has too many directories");
                    }
                    self.epoch
                }
                Err(Errno::NOSPC) => {
                    self.refused = Some("the limit fs.inotify.max_user_watches is reached");
                    0
                }
                Err(Errno::NOENT | Errno::ACCESS) => 0,
                Err(_) => {
                    self.refused = Some("the system refuses inotify watches");
                    0
                }
            }
        }

        /// Removes the watches on directories that `is_dropped` selects.
        pub(crate) fn remove(&mut self, is_dropped: impl Fn(&RelPath) -> bool) {
            let Some(descriptor) = &self.inotify else { return };
            self.paths.retain(|number, path| {
                let dropped = is_dropped(path);
                if dropped {
                    // The kernel may have removed the watch.
                    let _ = inotify::remove_watch(descriptor, *number);
                }
                !dropped
            });
        }

        /// Removes all watches.
        pub(crate) fn clear(&mut self) {
            self.inotify = None;
            self.paths.clear();
        }

        /// All events since the last call.
        pub(crate) fn drain(&mut self) -> Result<Vec<Event>, Overflow> {
            let mut events: Vec<Event> = Vec::new();
            let Some(descriptor) = &self.inotify else { return Ok(events) };
            let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
            let mut reader = Reader::new(descriptor, &mut buffer);
            loop {
                let event = match reader.next() {
                    Ok(event) => event,
                    Err(Errno::AGAIN) => return Ok(events),
                    Err(Errno::INTR) => continue,
                    Err(_) => return Err(Overflow),
                };
                let what = event.events();
                if what.contains(ReadFlags::QUEUE_OVERFLOW) {
                    return Err(Overflow);
                }
                let gone = ReadFlags::IGNORED
                    | ReadFlags::DELETE_SELF
                    | ReadFlags::MOVE_SELF
                    | ReadFlags::UNMOUNT;
                let names = ReadFlags::CREATE
                    | ReadFlags::DELETE
                    | ReadFlags::MOVED_FROM
                    | ReadFlags::MOVED_TO;
                let Some(directory) = self.paths.get(&event.wd()).cloned() else { continue };
                if what.contains(ReadFlags::IGNORED) {
                    self.paths.remove(&event.wd());
                }
                let is_directory = what.contains(ReadFlags::ISDIR);
                let name = event.file_name().map(|name| name.to_bytes().to_vec());
                let change = match name {
                    _ if what.intersects(gone) => Change::Gone,
                    None => Change::Itself,
                    Some(name) if what.intersects(names) => Change::Name(name, is_directory),
                    Some(name) => Change::Content(name, is_directory),
                };
                events.push(Event { directory, change });
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Watch {
    pub(crate) fn add(&mut self, _: &RelPath, _: &OwnedFd) -> u64 {
        self.refused = Some("this system has no inotify");
        0
    }

    pub(crate) fn remove(&mut self, _: impl Fn(&RelPath) -> bool) {}

    pub(crate) fn clear(&mut self) {
        self.inotify = None;
        self.paths.clear();
    }

    pub(crate) fn drain(&mut self) -> Result<Vec<Event>, Overflow> {
        Ok(Vec::new())
    }
}
