//! What is remembered, and how events change it.

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

/// How many changes of content are listed: after more than that, every file is looked at.
const MAX_LOGGED: usize = 1_024;

#[derive(Debug, Default)]
pub(super) struct State {
    /// The directory that the root led to.
    pub(super) root: Option<Identity>,
    pub(super) nodes: HashMap<RelPath, Arc<Node>>,
    /// How many entries all nodes have.
    pub(super) entries: usize,
    pub(super) watch: Watch,
    pub(super) no_rules: Arc<Rules>,
    pub(super) rules: HashMap<RulesKey, Arc<Rules>>,
    /// Files with several hard links, which may change by a name outside the tree.
    pub(super) hard_linked: HashMap<FileId, (RelPath, Weak<Node>)>,
    /// Files with several hard links that were found since names of the same files were last looked for.
    pub(super) linked: HashSet<Identity>,
    pub(super) stamp: TreeStamp,
    /// The files whose content changed, the newest last, up to [`MAX_LOGGED`].
    pub(super) changed_files: Vec<FileId>,
    /// How many changes concerned directories that were not remembered at the time.
    pub(super) unplaced: u64,
    /// When the remembered files were last compared with the disk in the background, and whether they are now.
    pub(super) last_sweep: Option<Instant>,
    pub(super) is_sweeping: bool,
}

impl State {
    pub(super) fn forget(&mut self) {
        self.nodes.clear();
        self.entries = 0;
        self.watch.clear();
        self.hard_linked.clear();
        self.unplaced += 1;
        self.stamp.names += 1;
    }

    pub(super) fn drain(&mut self, root: &Root) {
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
                    } else {
                        self.linked.extend(hard_link(root, &event.directory, &name));
                    }
                }
                (Change::Content(name, true), Some(_)) => {
                    self.drop_below(&below(&event.directory, &name));
                }
                (Change::Content(name, false), Some(node)) => {
                    let number = node.note_content(&name);
                    if is_ignore_file(&name) || number.is_none() {
                        node.note_change(Some(&name));
                        self.stamp.names += 1;
                    }
                    if let Some(number) = number {
                        self.stamp.log(&mut self.changed_files, FileId::new(&node, number));
                    }
                }
            }
        }
        self.note_linked();
    }

    /// Notes that files have other names than those that they were known by: an event tells of one name alone.
    /// True if there are any.
    pub(super) fn note_linked(&mut self) -> bool {
        let Self { nodes, stamp, changed_files, linked, .. } = self;
        let before = stamp.content;
        for node in nodes.values().filter(|_| !linked.is_empty()) {
            for number in 0..node.len() {
                let meta = node.current_meta(number);
                // Files that are known to have several names are looked at on each walk.
                if meta.is_some_and(|meta| meta.links == 1 && linked.contains(&meta.identity)) {
                    node.note_content_of(number);
                    stamp.log(changed_files, FileId::new(node, number));
                }
            }
        }
        linked.clear();
        stamp.content != before
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
        self.stamp.names += 1;
    }

    pub(super) fn check_hard_links(&mut self, root: &Root) {
        let Self { stamp, changed_files, hard_linked, .. } = self;
        hard_linked.retain(|file, (directory, node)| {
            let Some(node) = node.upgrade() else { return false };
            let Ok(dir) = root.open_below(directory, sys::DIR_PATH) else { return true };
            let noted = || stamp.log(changed_files, *file);
            node.compare_file(file.entry as usize, &dir, Metadata::proven_unchanged, noted);
            true
        });
    }
}

impl TreeStamp {
    /// Notes that the content of a file changed.
    pub(super) fn log(&mut self, changed_files: &mut Vec<FileId>, file: FileId) {
        self.content += 1;
        if changed_files.len() >= MAX_LOGGED {
            changed_files.drain(..MAX_LOGGED / 2);
        }
        changed_files.push(file);
    }
}

impl Node {
    /// Looks whether a file that is taken for current has changed, and notes and reports it.
    pub(super) fn compare_file(
        &self,
        number: usize,
        dir: &OwnedFd,
        is_same: impl Fn(&Metadata, &Metadata) -> bool,
        changed: impl FnOnce(),
    ) {
        let Some(known) = self.current_meta(number) else { return };
        let now = sys::stat_at(dir, self.name(number));
        if !now.is_ok_and(|now| is_same(&known, &Metadata::of(&now))) {
            self.note_content_of(number);
            changed();
        }
    }
}

/// A file that has another name too.
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
