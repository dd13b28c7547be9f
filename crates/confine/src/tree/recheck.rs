//! Compares the cached files of watched directories with the disk, in the background while searches are made.
//!
//! Two changes cause no event: a store through a shared mapping before the file is closed, and a write through a hard
//! link that was made outside after the file was read. A recheck finds both some seconds later.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::Tree;
use super::node::Node;
use crate::ambient::lower_priority;
use crate::root::Root;
use crate::{Metadata, RelPath, sys};

/// The interval between rechecks. A recheck of a large tree takes a twentieth of a second.
const INTERVAL: Duration = Duration::from_secs(5);

impl Tree {
    /// Starts a recheck, if the last one was long enough ago.
    pub(crate) fn recheck_if_due(&self, root: &Arc<Root>) {
        let mut state = self.lock();
        let is_due = state.last_recheck.is_none_or(|last| last.elapsed() >= INTERVAL);
        if !is_due || state.is_rechecking || state.watch.len() == 0 {
            return;
        }
        // The first time, everything has just been read.
        if state.last_recheck.replace(Instant::now()).is_none() {
            return;
        }
        let root = Arc::downgrade(root);
        let background = move || {
            lower_priority();
            recheck(&root);
            if let Some(root) = root.upgrade() {
                let mut state = root.tree().lock();
                state.is_rechecking = false;
                state.last_recheck = Some(Instant::now());
            }
        };
        state.is_rechecking =
            thread::Builder::new().name("pinfold-recheck".into()).spawn(background).is_ok();
    }

    fn compare(&self, root: &Root, path: &RelPath, node: &Arc<Node>) {
        let Ok(dir) = root.open_below(path, sys::DIR_PATH) else { return };
        // Most changes cause events, so recent times are not a reason to compare again.
        let is_same = |then: &Metadata, now: &Metadata| then.same_times(now);
        for number in 0..node.len() {
            if node.is_changed(number, &dir, is_same) {
                self.lock().note_file(node, number);
            }
        }
    }
}

/// Compares every cached file that is marked as current. Stops early if the root is no longer used.
pub(crate) fn recheck(root: &Weak<Root>) -> Option<()> {
    let nodes: Vec<_> = {
        let root = root.upgrade()?;
        let state = root.tree().lock();
        state.nodes.iter().map(|(path, node)| (path.clone(), Arc::downgrade(node))).collect()
    };
    for (path, node) in nodes {
        let root = root.upgrade()?;
        if let Some(node) = node.upgrade() {
            root.tree().compare(&root, &path, &node);
        }
    }
    Some(())
}
