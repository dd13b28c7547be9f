//! A walk on one thread, in the order of `rg --sort path`, which can stop at any entry.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::tree::Enter;
use crate::walk::entry::Directory;
use crate::walk::queue::TaskQueue;
use crate::walk::worker::{MAX_DEPTH, PathBuffer, Task, Worker};
use crate::walk::{Candidate, Skipped, Visitor, Walk, WalkEntry, start_task};
use crate::{IndexMode, Kind, Place, RelPath, Result, Workspace};

/// Receives the entries of a walk in order, and decides whether it goes on.
pub type VisitInOrder<'v> = &'v mut dyn FnMut(&WalkEntry<'_>) -> Result<ControlFlow<()>>;

/// A visitor that receives nothing, since a function gets the entries.
struct NoVisitor;

impl Visitor for NoVisitor {
    fn visit(&mut self, _: &WalkEntry<'_>) -> Result<()> {
        Ok(())
    }
}

impl Workspace {
    /// Walks the trees below `starts`, which are sorted directories, until `visit` breaks. Returns what was skipped
    /// until then.
    pub fn walk_in_order(
        &self,
        starts: &[Place],
        walk: &Walk<'_>,
        visit: VisitInOrder<'_>,
    ) -> Result<Skipped> {
        if walk.index != IndexMode::Off {
            self.tree_stamps(starts);
        }
        let work = TaskQueue::new(Vec::new());
        let mut worker = Worker::new(self, walk, &work, NoVisitor, starts.len() == 1);
        for start in starts {
            if worker.walk_in_order(start_task(self, start, walk), visit)?.is_break() {
                break;
            }
        }
        Ok(worker.skipped)
    }
}

impl Worker<'_, NoVisitor> {
    fn walk_in_order(&mut self, task: Task, visit: VisitInOrder<'_>) -> Result<ControlFlow<()>> {
        let Task::Directory { root, start, path, depth, rules: above, may_watch } = task else {
            return Ok(ControlFlow::Continue(()));
        };
        let Walk { index: mode, deadline, .. } = *self.walk;
        deadline.check()?;
        let enter = Enter { root, path: &path, above: &above, mode, may_watch, deadline };
        let tree = self.workspace.root(root).tree();
        let entered = tree.enter(self.workspace, &enter, &mut self.buffer);
        let Some(entered) = self.unless_skipped(entered, depth)? else {
            return Ok(ControlFlow::Continue(()));
        };
        let node = entered.node.clone();
        self.skipped.cut_ignore_files += node.rules.cut(&above);
        let mut at = PathBuffer::new(&path);
        let directory = Arc::new(Directory::new(self.workspace, root, path, entered));
        for number in 0..node.len() {
            deadline.check()?;
            let (path, kind) = (at.with(node.name(number)), node.kind(number));
            let candidate = Candidate { root, path, start, kind };
            let Some(as_usual) = self.shows(&candidate, &node, number) else { continue };
            let workspace = self.workspace;
            let found = WalkEntry { workspace, start, path, directory: &directory, number, kind };
            let visited = self.unless_failed(visit(&found))?;
            if visited.is_some_and(|visited| visited.is_break()) {
                return Ok(ControlFlow::Break(()));
            }
            if kind != Kind::Directory || depth >= self.walk.depth {
                continue;
            }
            if depth >= MAX_DEPTH {
                self.skipped.too_deep += 1;
                continue;
            }
            let below = Task::Directory {
                root,
                start,
                path: RelPath::proved(path.to_vec()),
                depth: depth + 1,
                rules: node.rules.clone(),
                may_watch: may_watch && as_usual,
            };
            if self.walk_in_order(below, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
