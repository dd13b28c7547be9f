//! Resolves symlinks and `..`, name by name.
//!
//! Only paths with symlinks or `..` are resolved here. Each name is opened on its directory's handle. A symlink is
//! read, and the steps of its target are put before the rest. The result is a path without symlinks, which is then
//! opened like any other: if another process swaps a name, that open fails.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::path::{Step, steps};
use crate::root::step_into;
use crate::{Error, Name, Place, RelPath, Result, Workspace, sys};

/// The maximum number of symlinks, as in the kernel.
const MAX_LINKS: usize = 40;

/// How to treat a symlink as the last component of a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Last {
    /// Follow it.
    Follow,
    /// Stop at the symlink itself.
    Keep,
}

/// The place that a path leads to.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// The deepest existing part of the path.
    pub(crate) place: Place,
    /// The missing names below it.
    pub(crate) missing: Vec<Name>,
}

struct Resolver<'w> {
    workspace: &'w Workspace,
    root: usize,
    /// Handles below the root, with the names that they were opened by.
    at: Vec<(Name, OwnedFd)>,
    ahead: VecDeque<PendingStep>,
    links: usize,
    races: usize,
}

/// A step to resolve, and whether it comes from a symlink.
struct PendingStep {
    step: Step,
    by_link: bool,
}

impl Workspace {
    /// Resolves `steps` below a root.
    pub(crate) fn resolve(&self, root: usize, steps: Vec<Step>, last: Last) -> Result<Resolved> {
        let ahead = steps.into_iter().map(|step| PendingStep { step, by_link: false }).collect();
        let resolver =
            Resolver { workspace: self, root, at: Vec::new(), ahead, links: 0, races: 0 };
        resolver.resolve_all(last)
    }
}

impl Resolver<'_> {
    fn resolve_all(mut self, last: Last) -> Result<Resolved> {
        while let Some(PendingStep { step, by_link }) = self.ahead.pop_front() {
            let name = match step {
                Step::Name(name) => name,
                Step::Parent => {
                    if self.at.pop().is_none() {
                        self.leave_root(by_link)?;
                    }
                    continue;
                }
            };
            if self.ahead.is_empty() && last == Last::Keep && !by_link {
                return Ok(self.arrived(Some(name)));
            }
            let opened = self.workspace.root(self.root).opened();
            let dir = self.at.last().map_or(opened.handle(), |(_, fd)| fd);
            match step_into(dir, &name, sys::DIR_PATH) {
                Ok(fd) => self.at.push((name, fd)),
                Err(Errno::LOOP) => match sys::read_link(dir, name.as_bytes()) {
                    // Another process has replaced the symlink.
                    Err(Errno::INVAL | Errno::NOENT) => {
                        self.count_race()?;
                        self.ahead.push_front(PendingStep { step: Step::Name(name), by_link });
                    }
                    target => self.follow(&target?)?,
                },
                Err(Errno::NOTDIR) if self.ahead.is_empty() => {
                    return Ok(self.arrived(Some(name)));
                }
                Err(Errno::NOENT) if by_link => return Err(Error::Dangling),
                Err(Errno::NOENT) => return self.missing_from(name),
                Err(other) => return Err(other.into()),
            }
        }
        Ok(self.arrived(None))
    }

    fn count_race(&mut self) -> Result<()> {
        self.races += 1;
        if self.races > sys::MAX_RACES { Err(Error::Changed) } else { Ok(()) }
    }

    fn count_link(&mut self) -> Result<()> {
        self.links += 1;
        if self.links > MAX_LINKS { Err(Error::TooManyLinks) } else { Ok(()) }
    }

    fn follow(&mut self, target: &[u8]) -> Result<()> {
        self.count_link()?;
        let mut steps = steps(target)?;
        if target.starts_with(b"/") {
            (self.root, steps) = self.workspace.enter(steps)?;
            self.workspace.root(self.root).refresh()?;
            self.at.clear();
        }
        for step in steps.into_iter().rev() {
            self.ahead.push_front(PendingStep { step, by_link: true });
        }
        Ok(())
    }

    /// Handles a step above the root, which is allowed only if the path leads into a root again.
    ///
    /// The root's canonical path has no symlinks, so `..` removes its last name. The remaining steps keep their
    /// origin: a symlink, or the caller.
    fn leave_root(&mut self, by_link: bool) -> Result<()> {
        let mut names = self.workspace.root(self.root).canonical_names();
        names.pop();
        while self.ahead.front().is_some_and(|ahead| ahead.step == Step::Parent) {
            names.pop();
            self.ahead.pop_front();
        }
        let names = names.into_iter().map(|name| PendingStep { step: Step::Name(name), by_link });
        let mut ahead: VecDeque<_> = names.chain(self.ahead.drain(..)).collect();
        let steps = ahead.iter().map(|ahead| ahead.step.clone()).collect();
        let (root, left) = self.workspace.enter(steps)?;
        self.workspace.root(root).refresh()?;
        self.root = root;
        self.ahead = ahead.split_off(ahead.len() - left.len());
        Ok(())
    }

    /// The rest of the path does not exist, beginning with `name`.
    ///
    /// The kernel would fail at a missing name. A `..` after it is still checked, by the names only: a path that
    /// leaves the workspace is outside, whether or not it exists.
    fn missing_from(mut self, name: Name) -> Result<Resolved> {
        let mut missing = vec![name];
        while let Some(PendingStep { step, .. }) = self.ahead.pop_front() {
            match step {
                Step::Name(name) => missing.push(name),
                Step::Parent => return Err(self.beyond_missing(missing)),
            }
        }
        Ok(Resolved { missing, ..self.arrived(None) })
    }

    /// The error for a path with `..` below a missing name.
    fn beyond_missing(self, mut missing: Vec<Name>) -> Error {
        missing.pop();
        let root = self.workspace.root(self.root).canonical_names();
        let at = self.at.into_iter().map(|(name, _)| name);
        let mut names: Vec<Name> = root.into_iter().chain(at).chain(missing).collect();
        for PendingStep { step, .. } in self.ahead {
            match step {
                Step::Name(name) => names.push(name),
                Step::Parent => _ = names.pop(),
            }
        }
        let steps = names.into_iter().map(Step::Name).collect();
        self.workspace.enter(steps).map_or(Error::Outside, |_| Error::NotFound)
    }

    fn arrived(self, last: Option<Name>) -> Resolved {
        let names = self.at.into_iter().map(|(name, _)| name).chain(last);
        let place = Place { root: self.root, path: names.collect::<RelPath>() };
        Resolved { place, missing: Vec::new() }
    }
}
