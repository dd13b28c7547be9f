//! Caches the directories of a root, so that a later walk reads only what changed.
//!
//! A cached directory is used without access to the disk only while it is watched: [`Tree::refresh`] has processed
//! every change that was complete when it was called. All other directories (of small trees, of file systems that are
//! not local, or where the system refuses a watch) are compared with the disk by `stat` on each walk.

mod node;
mod recheck;
mod state;
mod watch;

use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;

use node::Listing;
pub(crate) use node::Node;
pub(crate) use recheck::recheck;
use state::State;

use crate::dir::kind_of;
use crate::ignore_files::{Rules, is_ignore_file};
use crate::root::{Root, open_error};
use crate::temp_name::is_own_temp;
use crate::{Deadline, FileId, Kind, Metadata, RelPath, Result, Workspace, sys};

/// The values of the setting `index`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub enum IndexMode {
    /// Searches cache the tree and its content, and watch it for changes.
    #[default]
    Auto,
    /// As `auto`, but every cached file is compared with the disk on each search.
    Strict,
    /// Searches cache nothing.
    Off,
}

/// A tree with fewer entries is compared with the disk on each walk, and takes no watches. A `stat` of each of 1,000
/// files takes a quarter of a millisecond; of 3,000 files a millisecond, which is more than a search with an index
/// takes. A watch misses no complete change, except those that `tree/recheck.rs` finds later.
pub(crate) const MIN_WATCHED_ENTRIES: usize = 1_000;

/// Directories of larger trees are not cached, since each entry takes some hundred bytes.
const MAX_ENTRIES: usize = 1_000_000;

/// No tree that is worth caching has more ignore files.
const MAX_RULES: usize = 20_000;

/// How many entries of one directory are listed between two checks of the deadline.
const DEADLINE_CHECK_INTERVAL: usize = 1_000;

/// The cached tree below a root.
#[derive(Debug, Default)]
pub(crate) struct Tree(Mutex<State>);

/// Changes whenever a watched tree does.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct TreeStamp {
    /// Counts changes of names, types and ignore files.
    pub names: u64,
    /// Counts changes of content and metadata.
    pub content: u64,
}

/// The size of a cached tree.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TreeSummary {
    /// How many directories are cached.
    pub directories: usize,
    /// How many entries they have.
    pub entries: usize,
    /// How many of the directories are watched.
    pub watched: usize,
    /// The reason why no more directories are watched, if the system refused.
    pub refused: Option<&'static str>,
}

/// A directory that a walk enters.
pub(crate) struct Entered {
    pub(crate) node: Arc<Node>,
    pub(crate) is_watched: bool,
    /// Its handle, if it had to be opened.
    pub(crate) handle: Option<OwnedFd>,
}

/// How a walk enters a directory.
pub(crate) struct Enter<'e> {
    pub(crate) root: usize,
    pub(crate) path: &'e RelPath,
    /// The ignore files above the directory.
    pub(crate) above: &'e Arc<Rules>,
    pub(crate) mode: IndexMode,
    /// Whether it may be watched. Ignored directories are not.
    pub(crate) may_watch: bool,
    pub(crate) deadline: &'e Deadline,
}

impl Tree {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn no_rules(&self) -> Arc<Rules> {
        self.lock().no_rules.clone()
    }

    /// These rules, or equal ones that are already known.
    pub(crate) fn interned(&self, rules: Arc<Rules>) -> Arc<Rules> {
        let mut state = self.lock();
        if Arc::ptr_eq(&rules, &state.no_rules) {
            return rules;
        }
        if state.rules.len() >= MAX_RULES {
            state.rules.clear();
        }
        state.rules.entry(rules.key()).or_insert(rules).clone()
    }

    /// Processes every change that was complete before this call, except those that cause no event: see the head of
    /// `tree/recheck.rs`. Returns the current stamp of the tree.
    pub(crate) fn refresh(&self, root: &Root) -> TreeStamp {
        let mut state = self.lock();
        let identity = root.opened().identity();
        if state.root != Some(identity) {
            state.forget();
            state.root = Some(identity);
        }
        state.drain(root);
        state.check_hard_links(root);
        state.stamp
    }

    /// The files whose content or metadata changed since the tree had this stamp. Returns `None` if there were too
    /// many changes.
    pub(crate) fn changed_files(&self, since: TreeStamp) -> Option<Vec<FileId>> {
        let state = self.lock();
        newest(&state.changed_files, state.stamp.content.checked_sub(since.content)?)
    }

    /// The directories in which files were created or removed since the tree had this stamp. Returns `None` if there
    /// were too many changes, or changes of other kinds.
    pub(crate) fn changed_directories(&self, since: TreeStamp) -> Option<Vec<RelPath>> {
        let state = self.lock();
        let changes = state.stamp.names.checked_sub(since.names)?;
        let directories = newest(&state.changed_directories, changes)?;
        let mut directories: Vec<RelPath> = directories.into_iter().collect::<Option<_>>()?;
        directories.sort_unstable();
        directories.dedup();
        Some(directories)
    }

    pub(crate) fn summary(&self) -> TreeSummary {
        let state = self.lock();
        TreeSummary {
            directories: state.nodes.len(),
            entries: state.entries,
            watched: state.watch.len(),
            refused: state.watch.refused(),
        }
    }

    /// Records that a cached file has several hard links.
    pub(crate) fn note_hard_link(&self, directory: &RelPath, node: &Arc<Node>, number: usize) {
        let mut state = self.lock();
        let known = state.hard_linked.get(&FileId::new(node, number));
        // Another node may have had the same address.
        if known.is_none_or(|(_, known)| known.as_ptr() != Arc::as_ptr(node)) {
            state.linked.extend(node.current_meta(number).map(|meta| meta.identity));
            let known = (directory.clone(), Arc::downgrade(node));
            state.hard_linked.insert(FileId::new(node, number), known);
        }
    }

    /// Records that files which the last walk found have other names in the tree, too. Returns whether there are any.
    pub(crate) fn note_linked(&self) -> bool {
        self.lock().note_linked()
    }

    /// Checks a directory that a walk starts at. If another directory is there now, what is cached about it is
    /// dropped.
    pub(crate) fn check_start(&self, root: &Root, path: &RelPath) {
        let Some(node) = self.lock().nodes.get(path).cloned() else { return };
        let now = root.open_below(path, sys::DIR_PATH).and_then(sys::stat);
        if !now.is_ok_and(|stat| Metadata::of(&stat).identity == node.meta.identity) {
            self.lock().drop_below(path);
        }
    }

    /// Enters a directory: the cached one if it is known to be current, otherwise the one on disk.
    pub(crate) fn enter(
        &self,
        workspace: &Workspace,
        enter: &Enter<'_>,
        buffer: &mut Vec<u8>,
    ) -> Result<Entered> {
        let Enter { root: number, path, above, mode, .. } = *enter;
        let root = workspace.root(number);
        let (known, unplaced) = {
            let state = self.lock();
            let known = state.nodes.get(path).filter(|_| mode != IndexMode::Off).cloned();
            if let Some(node) = &known
                && mode == IndexMode::Auto
                && node.is_watched(state.watch.epoch())
            {
                if Arc::ptr_eq(&node.above, above) {
                    let node = node.clone();
                    return Ok(Entered { node, is_watched: true, handle: None });
                }
                drop(state);
                let (node, is_watched) = self.below(path, node, above);
                return Ok(Entered { node, is_watched, handle: None });
            }
            (known, state.unplaced)
        };
        let dir = root.open_below(path, sys::DIRECTORY).map_err(open_error)?;
        // The watch is added before the directory is read, so every later change causes an event.
        let epoch = self.watch(enter, &dir);
        let changes = known.as_ref().map(|node| node.changed_names().len());
        let meta = Metadata::of(&sys::stat(&dir)?);
        if let Some(node) = &known
            && !node.has_changed()
            && node.is_unchanged(&meta, &dir)
        {
            node.set_watched(epoch);
            if epoch != 0 {
                self.lock().note_watched(path, node);
            }
            let (node, is_cached) = self.below(path, node, above);
            let is_watched = epoch != 0 && is_cached;
            return Ok(Entered { node, is_watched, handle: Some(dir) });
        }
        let (node, can_be_kept) = read(workspace, enter, &dir, meta, buffer)?;
        let node = Arc::new(node);
        node.set_watched(epoch);
        let is_cached = mode != IndexMode::Off
            && can_be_kept
            && self.keep(path, &node, known.as_ref().zip(changes), unplaced);
        Ok(Entered { node, is_watched: epoch != 0 && is_cached, handle: Some(dir) })
    }

    /// The same directory below the current ignore files, and whether that is cached. If another call has listed the
    /// directory meanwhile, only the other node gets events.
    fn below(&self, path: &RelPath, node: &Arc<Node>, above: &Arc<Rules>) -> (Arc<Node>, bool) {
        let mut state = self.lock();
        let known = state.nodes.get_mut(path).filter(|known| Arc::ptr_eq(known, node));
        if Arc::ptr_eq(&node.above, above) {
            return (node.clone(), known.is_some());
        }
        let moved = Arc::new(node.below(above));
        let Some(known) = known else { return (moved, false) };
        *known = moved.clone();
        state.note_hard_links(path, &moved);
        // From here on, only the new node gets events.
        state.note_names(None);
        (moved, true)
    }

    /// Watches an open directory, if it is worth it. Returns the epoch, or 0.
    fn watch(&self, enter: &Enter<'_>, dir: &OwnedFd) -> u64 {
        let mut state = self.lock();
        let worth = enter.mode == IndexMode::Auto
            && enter.may_watch
            && state.entries >= MIN_WATCHED_ENTRIES;
        if worth { state.watch.add(enter.path, dir) } else { 0 }
    }

    /// Caches a directory that was listed, unless another call did so meanwhile, and returns whether it is cached.
    /// `before` is the node that was cached when the listing began, and the number of its changes by then.
    fn keep(
        &self,
        path: &RelPath,
        node: &Arc<Node>,
        before: Option<(&Arc<Node>, usize)>,
        unplaced: u64,
    ) -> bool {
        let mut state = self.lock();
        let known = state.nodes.get(path).cloned();
        match (before, &known) {
            (None, None) => {
                if state.unplaced != unplaced {
                    node.note_change(None);
                }
            }
            (Some((before, changes)), Some(known)) if Arc::ptr_eq(before, known) => {
                if known.changed_names().len() != changes {
                    node.note_change(None);
                }
                node.take_over(known);
            }
            _ => return false,
        }
        let entries = state.entries - known.map_or(0, |known| known.len()) + node.len();
        if entries > MAX_ENTRIES {
            return false;
        }
        state.entries = entries;
        state.nodes.insert(path.clone(), node.clone());
        if node.is_watched(state.watch.epoch()) {
            state.note_watched(path, node);
        }
        true
    }
}

/// The newest entries of a log.
fn newest<T: Clone>(log: &[T], number: u64) -> Option<Vec<T>> {
    let first = log.len().checked_sub(usize::try_from(number).ok()?)?;
    Some(log[first..].to_vec())
}

impl Node {
    /// Whether a directory that is not watched is proven to be unchanged.
    fn is_unchanged(&self, now: &Metadata, dir: &OwnedFd) -> bool {
        let same = |(number, meta): &(usize, Metadata)| {
            let now = sys::stat_at(dir, self.name(*number));
            now.is_ok_and(|now| meta.proven_unchanged(&Metadata::of(&now)))
        };
        self.meta.proven_unchanged(now) && self.ignore_files.iter().all(same)
    }
}

/// Lists a directory. The flag says whether it can be cached: an ignore file that is a symlink may change without
/// being noticed.
fn read(
    workspace: &Workspace,
    enter: &Enter<'_>,
    dir: &OwnedFd,
    meta: Metadata,
    buffer: &mut Vec<u8>,
) -> Result<(Node, bool)> {
    let Enter { root, path, above, deadline, .. } = *enter;
    let mut listing = Listing::default();
    let mut checked = Ok(());
    sys::list(dir, buffer, |name, kind| {
        if is_own_temp(dir, name) {
            return ControlFlow::Continue(());
        }
        listing.push(name, kind_of(dir, name, kind));
        if listing.len().is_multiple_of(DEADLINE_CHECK_INTERVAL) {
            checked = deadline.check();
        }
        if checked.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    checked?;
    listing.sort();
    let mut ignore_files = Vec::new();
    let mut can_be_kept = true;
    for (number, (name, kind)) in listing.iter().enumerate() {
        if is_ignore_file(name) {
            match sys::stat_at(dir, name).map(|stat| Metadata::of(&stat)) {
                Ok(meta) if meta.kind == Kind::File && kind == Kind::File => {
                    ignore_files.push((number, meta));
                }
                _ => can_be_kept = false,
            }
        }
    }
    let rules = if ignore_files.is_empty() && can_be_kept {
        above.clone()
    } else {
        let rules = Rules::below(above, path, &workspace.ignore_cache, |wanted| {
            let (name, kind) = listing.iter().find(|(name, _)| *name == wanted)?;
            workspace.ignore_file(root, dir, path, name, kind)
        });
        workspace.root(root).tree().interned(rules)
    };
    Ok((Node::new(meta, listing, above.clone(), rules, ignore_files), can_be_kept))
}
