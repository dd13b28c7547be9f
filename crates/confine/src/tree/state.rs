//! The state of a cached tree, and how events change it.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::time::Instant;

use super::TreeStamp;
use super::node::Node;
use super::watch::{Change, Watch};
use crate::ignore_files::{Rules, RulesKey, is_ignore_file};
use crate::root::Root;
use crate::{FileId, Identity, Kind, Metadata, RelPath, sys};

/// The maximum number of logged changes. After more of them, every file is compared.
const MAX_LOGGED: usize = 1_024;

#[derive(Debug, Default)]
pub(super) struct State {
    /// The directory of the root.
    pub(super) root: Option<Identity>,
    pub(super) nodes: HashMap<RelPath, Arc<Node>>,
    /// The number of entries in all nodes.
    pub(super) entries: usize,
    pub(super) watch: Watch,
    pub(super) no_rules: Arc<Rules>,
    pub(super) rules: HashMap<RulesKey, Arc<Rules>>,
    /// Files with several hard links. They may change by a name outside the tree.
    pub(super) hard_linked: HashMap<FileId, (RelPath, Weak<Node>)>,
    /// Files with several hard links that were found since [`State::note_linked`] was last called.
    pub(super) linked: HashSet<Identity>,
    pub(super) stamp: TreeStamp,
    /// The files whose content changed, newest last, up to [`MAX_LOGGED`].
    pub(super) changed_files: Vec<FileId>,
    /// The directories in which names of files changed, newest last, up to [`MAX_LOGGED`]. `None` stands for a change
    /// of a directory or an ignore file, which affects more than one.
    pub(super) changed_directories: Vec<Option<RelPath>>,
    /// The number of changes in directories that were not cached at the time.
    pub(super) unplaced: u64,
    /// When the last recheck in the background began, and whether it is still running.
    pub(super) last_recheck: Option<Instant>,
    pub(super) is_rechecking: bool,
}

impl State {
    pub(super) fn forget(&mut self) {
        self.nodes.clear();
        self.entries = 0;
        self.watch.clear();
        self.hard_linked.clear();
        self.unplaced += 1;
        self.note_names(None);
    }

    /// Records that names of files changed in a directory. Without a directory, anything may have changed.
    pub(super) fn note_names(&mut self, directory: Option<RelPath>) {
        self.stamp.names += 1;
        push_logged(&mut self.changed_directories, directory);
    }

    pub(super) fn drain(&mut self, root: &Root) {
        let Ok(events) = self.watch.drain() else { return self.forget() };
        for event in events {
            let node = self.nodes.get(&event.directory).cloned();
            match (event.change, node) {
                (Change::Gone, _) => self.drop_below(&event.directory),
                (_, None) => {
                    self.unplaced += 1;
                    self.note_names(None);
                }
                (Change::Itself, Some(node)) => {
                    node.note_change(None);
                    self.note_names(None);
                }
                (Change::Name(name, is_directory), Some(node)) => {
                    node.note_change(Some(&name));
                    if is_directory {
                        self.drop_below(&below(&event.directory, &name));
                    } else {
                        self.linked.extend(hard_link(root, &event.directory, &name));
                        self.note_names(Some(event.directory).filter(|_| !is_ignore_file(&name)));
                    }
                }
                (Change::Content(name, true), Some(_)) => {
                    self.drop_below(&below(&event.directory, &name));
                }
                (Change::Content(name, false), Some(node)) => {
                    let number = node.note_content(&name);
                    if is_ignore_file(&name) || number.is_none() {
                        node.note_change(Some(&name));
                        self.note_names(Some(event.directory).filter(|_| !is_ignore_file(&name)));
                    }
                    if let Some(number) = number {
                        self.stamp.log(&mut self.changed_files, FileId::new(&node, number));
                    }
                }
            }
        }
        self.note_linked();
    }

    /// Records a change of the other names of files that have got more hard links, because an event has only one
    /// name. Returns whether there are any.
    pub(super) fn note_linked(&mut self) -> bool {
        let linked = std::mem::take(&mut self.linked);
        if linked.is_empty() {
            return false;
        }
        let mut files = Vec::new();
        for node in self.nodes.values() {
            for number in 0..node.len() {
                let meta = node.current_meta(number);
                // Files that are known to have several names are compared on each walk.
                if meta.is_some_and(|meta| meta.links == 1 && linked.contains(&meta.identity)) {
                    files.push((node.clone(), number));
                }
            }
        }
        files.iter().for_each(|(node, number)| self.note_file(node, *number));
        !files.is_empty()
    }

    /// Records a change of a file that no event has named.
    pub(super) fn note_file(&mut self, node: &Arc<Node>, number: usize) {
        node.note_content_of(number);
        self.stamp.log(&mut self.changed_files, FileId::new(node, number));
        if is_ignore_file(node.name(number)) {
            node.note_change(Some(node.name(number)));
            self.note_names(None);
        }
    }

    pub(super) fn drop_below(&mut self, directory: &RelPath) {
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
        self.note_names(None);
    }

    /// Records that a directory is watched, and was listed or compared since.
    pub(super) fn note_watched(&mut self, directory: &RelPath, node: &Arc<Node>) {
        // A walk does not read the metadata of ignore files, but they are compared like other files.
        node.ignore_files.iter().for_each(|(number, meta)| node.set_current(*number, meta));
        self.note_hard_links(directory, node);
    }

    /// Records which files of a new listing have several hard links, as far as an older listing knows. The new one
    /// need not `stat` them.
    pub(super) fn note_hard_links(&mut self, directory: &RelPath, node: &Arc<Node>) {
        for number in 0..node.len() {
            let meta = node.current_meta(number);
            if meta.is_some_and(|meta| meta.links > 1 && meta.kind == Kind::File) {
                let known = (directory.clone(), Arc::downgrade(node));
                self.hard_linked.insert(FileId::new(node, number), known);
            }
        }
    }

    pub(super) fn check_hard_links(&mut self, root: &Root) {
        let mut changed = Vec::new();
        self.hard_linked.retain(|file, (directory, node)| {
            let Some(node) = node.upgrade() else { return false };
            let Ok(dir) = root.open_below(directory, sys::DIR_PATH) else { return true };
            let number = file.entry as usize;
            if node.is_changed(number, &dir, Metadata::proven_unchanged) {
                changed.push((node, number));
            }
            true
        });
        changed.iter().for_each(|(node, number)| self.note_file(node, *number));
    }
}

impl TreeStamp {
    /// Records that the content of a file changed.
    pub(super) fn log(&mut self, changed_files: &mut Vec<FileId>, file: FileId) {
        self.content += 1;
        push_logged(changed_files, file);
    }
}

fn push_logged<T>(log: &mut Vec<T>, change: T) {
    if log.len() >= MAX_LOGGED {
        log.drain(..MAX_LOGGED / 2);
    }
    log.push(change);
}

impl Node {
    /// Whether a file that is marked as current differs on disk.
    pub(super) fn is_changed(
        &self,
        number: usize,
        dir: &OwnedFd,
        is_same: impl Fn(&Metadata, &Metadata) -> bool,
    ) -> bool {
        let Some(known) = self.current_meta(number) else { return false };
        let now = sys::stat_at(dir, self.name(number));
        !now.is_ok_and(|now| is_same(&known, &Metadata::of(&now)))
    }
}

/// The identity of a file that has another name, too.
fn hard_link(root: &Root, directory: &RelPath, name: &[u8]) -> Option<Identity> {
    let dir = root.open_below(directory, sys::DIR_PATH).ok()?;
    let meta = Metadata::of(&sys::stat_at(&dir, name).ok()?);
    (meta.kind == Kind::File && meta.links > 1).then_some(meta.identity)
}

fn below(directory: &RelPath, name: &[u8]) -> RelPath {
    let mut path = directory.as_bytes().to_vec();
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    RelPath::proved(path)
}
