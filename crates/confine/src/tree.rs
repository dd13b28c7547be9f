//! Remembers the directories of a root as they were listed, so that a later walk reads only what changed.
//!
//! A remembered directory is used without a look at the disk only while it is watched: every change that was
//! complete when [`Tree::refresh`] was called has been noted by then. All others (of small trees, of file systems
//! that are not local, where the system refuses a watch) are compared with the disk by `stat` on each walk.

mod node;
mod watch;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde::Deserialize;

use node::Listing;
pub(crate) use node::Node;
use watch::{Change, Watch};

use crate::dir::kind_of;
use crate::ignore_files::{Rules, RulesKey, is_ignore_file};
use crate::root::Root;
use crate::temp_name::is_own_temp;
use crate::workspace::opening;
use crate::{Deadline, Identity, Kind, Metadata, RelPath, Result, Workspace, sys};

/// The values of the setting `index`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub enum IndexMode {
    /// Searches remember the tree and its content, and watch it for changes.
    #[default]
    Auto,
    /// As `auto`, but every remembered file is compared with the disk on each search.
    Strict,
    /// Searches remember nothing.
    Off,
}

/// A tree with fewer entries is compared with the disk on each walk: that takes a millisecond, and no watches.
const MIN_WATCHED_ENTRIES: usize = 3_000;

/// Directories of larger trees are not remembered: each entry takes some hundred bytes.
const MAX_ENTRIES: usize = 1_000_000;

/// More ignore files than any tree has that is worth remembering.
const MAX_RULES: usize = 20_000;

/// How many entries of one directory are listed between two checks of the deadline.
const DEADLINE_CHECK_INTERVAL: usize = 1_000;

/// What is remembered about the tree below a root.
#[derive(Debug, Default)]
pub(crate) struct Tree(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The directory that the root led to.
    root: Option<Identity>,
    nodes: HashMap<RelPath, Arc<Node>>,
    /// How many entries all nodes have.
    entries: usize,
    watch: Watch,
    no_rules: Arc<Rules>,
    rules: HashMap<RulesKey, Arc<Rules>>,
    /// Files with several hard links, which may change by a name outside the tree.
    hard_linked: Vec<(RelPath, Weak<Node>, usize)>,
    stamp: TreeStamp,
    /// How many changes concerned directories that were not remembered at the time.
    unplaced: u64,
}

/// Changes whenever a watched tree does.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct TreeStamp {
    /// Counts changes of names, types and ignore files.
    pub names: u64,
    /// Counts changes of content and metadata.
    pub content: u64,
}

/// What is remembered about a tree, in numbers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TreeSummary {
    /// How many directories are remembered.
    pub directories: usize,
    /// How many entries they have.
    pub entries: usize,
    /// How many of the directories are watched.
    pub watched: usize,
    /// Why no more directories are watched, if the system refused.
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
    /// Whether it may be watched: ignored directories are not.
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

    /// These rules, or equal ones that are known already.
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

    /// Notes every change that was complete before this call, except those that nothing tells of: see the
    /// head of this file. Returns the stamp of the tree as it is now.
    pub(crate) fn refresh(&self, root: &Root) -> TreeStamp {
        let mut state = self.lock();
        let identity = root.opened().identity();
        if state.root != Some(identity) {
            state.forget();
            state.root = Some(identity);
        }
        state.drain();
        state.check_hard_links(root);
        state.stamp
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

    /// Notes that a remembered file has several hard links.
    pub(crate) fn note_hard_link(&self, directory: &RelPath, node: &Arc<Node>, number: usize) {
        let mut state = self.lock();
        let is_known = |(_, known, other): &(RelPath, Weak<Node>, usize)| {
            *other == number && known.as_ptr() == Arc::as_ptr(node)
        };
        if !state.hard_linked.iter().any(is_known) {
            state.hard_linked.push((directory.clone(), Arc::downgrade(node), number));
        }
    }

    /// A directory that a walk starts at: what is remembered about it is dropped if another directory is there now.
    pub(crate) fn check_start(&self, root: &Root, path: &RelPath) {
        let Some(node) = self.lock().nodes.get(path).cloned() else { return };
        let now = root.open_below(path, sys::DIR_PATH).and_then(sys::stat);
        if !now.is_ok_and(|stat| Metadata::of(&stat).identity == node.meta.identity) {
            self.lock().drop_below(path);
        }
    }

    /// Enters a directory: as it is remembered if that is known to be true, else as it is on disk.
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
                drop(state);
                let node = self.below(path, node, above);
                return Ok(Entered { node, is_watched: true, handle: None });
            }
            (known, state.unplaced)
        };
        let dir = root.open_below(path, sys::DIRECTORY).map_err(opening)?;
        // Before it is looked at: whatever happens from here on is noted.
        let epoch = self.watch(enter, &dir);
        let changes = known.as_ref().map(|node| node.changed_names().len());
        let meta = Metadata::of(&sys::stat(&dir)?);
        if let Some(node) = &known
            && !node.has_changed()
            && node.is_unchanged(&meta, &dir)
        {
            node.set_watched(epoch);
            let node = self.below(path, node, above);
            return Ok(Entered { node, is_watched: epoch != 0, handle: Some(dir) });
        }
        let (node, can_be_kept) = read(workspace, enter, &dir, meta, buffer)?;
        let node = Arc::new(node);
        node.set_watched(epoch);
        if mode != IndexMode::Off && can_be_kept {
            self.keep(path, &node, known.as_ref().zip(changes), unplaced);
        }
        Ok(Entered { node, is_watched: epoch != 0 && can_be_kept, handle: Some(dir) })
    }

    /// The same directory below the ignore files that hold now.
    fn below(&self, path: &RelPath, node: &Arc<Node>, above: &Arc<Rules>) -> Arc<Node> {
        if Arc::ptr_eq(&node.above, above) {
            return node.clone();
        }
        let mut state = self.lock();
        let moved = Arc::new(node.below(above));
        if let Some(known) = state.nodes.get_mut(path).filter(|known| Arc::ptr_eq(known, node)) {
            *known = moved.clone();
        }
        moved
    }

    /// Watches an open directory, if it is worth it. Returns the epoch, or 0.
    fn watch(&self, enter: &Enter<'_>, dir: &OwnedFd) -> u64 {
        let mut state = self.lock();
        let worth = enter.mode == IndexMode::Auto
            && enter.may_watch
            && state.entries >= MIN_WATCHED_ENTRIES;
        if worth { state.watch.add(enter.path, dir) } else { 0 }
    }

    /// Remembers a directory that was listed, unless another call did meanwhile. `before` is the node that was
    /// remembered when the listing began, and how many changes of it were noted by then.
    fn keep(
        &self,
        path: &RelPath,
        node: &Arc<Node>,
        before: Option<(&Arc<Node>, usize)>,
        unplaced: u64,
    ) {
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
            _ => return,
        }
        let entries = state.entries - known.map_or(0, |known| known.len()) + node.len();
        if entries <= MAX_ENTRIES {
            state.entries = entries;
            state.nodes.insert(path.clone(), node.clone());
        }
    }
}

impl State {
    fn forget(&mut self) {
        self.nodes.clear();
        self.entries = 0;
        self.watch.clear();
        self.hard_linked.clear();
        self.unplaced += 1;
        self.stamp.names += 1;
    }

    fn drain(&mut self) {
        let Ok(events) = self.watch.drain() else { return self.forget() };
        for event in events {
            let node = self.nodes.get(&event.directory).cloned();
            match (event.change, node) {
                (Change::Gone, _) => self.drop_below(&event.directory),
                (_, None) => {
                    self.unplaced += 1;
                    self.stamp.names += 1;
                }
                (Change::Itself, Some(node)) => {
                    node.note_change(None);
                    self.stamp.names += 1;
                }
                (Change::Name(name, is_directory), Some(node)) => {
                    node.note_change(Some(&name));
                    self.stamp.names += 1;
                    if is_directory {
                        self.drop_below(&below(&event.directory, &name));
                    }
                }
                (Change::Content(name, true), Some(_)) => {
                    self.drop_below(&below(&event.directory, &name));
                }
                (Change::Content(name, false), Some(node)) => {
                    if is_ignore_file(&name) || !node.note_content(&name) {
                        node.note_change(Some(&name));
                        self.stamp.names += 1;
                    }
                    self.stamp.content += 1;
                }
            }
        }
    }

    fn drop_below(&mut self, directory: &RelPath) {
        let is_dropped = |path: &RelPath| {
            let rest = path.as_bytes().strip_prefix(directory.as_bytes());
            rest.is_some_and(|rest| {
                directory.is_root() || rest.is_empty() || rest.starts_with(b"/")
            })
        };
        self.nodes.retain(|path, _| !is_dropped(path));
        self.entries = self.nodes.values().map(|node| node.len()).sum();
        self.watch.remove(is_dropped);
        self.unplaced += 1;
        self.stamp.names += 1;
    }

    fn check_hard_links(&mut self, root: &Root) {
        let content = &mut self.stamp.content;
        self.hard_linked.retain(|(directory, node, number)| {
            let Some(node) = node.upgrade() else { return false };
            let Ok(dir) = root.open_below(directory, sys::DIR_PATH) else { return true };
            node.compare_file(*number, &dir, || *content += 1);
            true
        });
    }
}

impl Node {
    /// Whether a directory that is not watched proves to be as it was listed.
    fn is_unchanged(&self, now: &Metadata, dir: &OwnedFd) -> bool {
        let same = |(number, meta): &(usize, Metadata)| {
            let now = sys::stat_at(dir, self.name(*number));
            now.is_ok_and(|now| meta.proven_unchanged(&Metadata::of(&now)))
        };
        self.meta.proven_unchanged(now) && self.ignore_files.iter().all(same)
    }

    /// Looks whether a file that is taken for current has changed, and notes and reports it.
    fn compare_file(&self, number: usize, dir: &OwnedFd, changed: impl FnOnce()) {
        let Some(known) = self.current_meta(number) else { return };
        let now = sys::stat_at(dir, self.name(number));
        if !now.is_ok_and(|now| known.proven_unchanged(&Metadata::of(&now))) {
            self.note_content_of(number);
            changed();
        }
    }
}

/// Lists a directory. The flag says whether it can be remembered: an ignore file that is a symlink may change
/// where nobody looks.
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

fn below(directory: &RelPath, name: &[u8]) -> RelPath {
    let mut path = directory.as_bytes().to_vec();
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    RelPath::proved(path)
}
