//! Watches a tree after its first walk, in the background.

use std::sync::Arc;
use std::thread;

use crate::ambient::lower_priority;
use crate::tree::MIN_WATCHED_ENTRIES;
use crate::{
    Candidate, Deadline, FilterDecision, IgnoreFiles, IndexMode, Kind, Place, Result, Visibility,
    Visitor, Walk, WalkEntry, Workspace,
};

impl Workspace {
    /// Watches the directories below `starts`, and caches the metadata of their files, in the background. Trees that
    /// are too small to be watched are left alone, and so is what `may_enter` refuses.
    pub fn watch_in_background(
        self: &Arc<Self>,
        starts: &[Place],
        may_enter: impl Fn(&Candidate<'_>) -> bool + Send + Sync + 'static,
    ) {
        let is_worth =
            |start: &&Place| self.root(start.root).tree().summary().entries >= MIN_WATCHED_ENTRIES;
        let starts: Vec<_> = starts.iter().filter(is_worth).cloned().collect();
        if starts.is_empty() {
            return;
        }
        let workspace = Arc::downgrade(self);
        let watch = move || {
            lower_priority();
            let Some(workspace) = workspace.upgrade() else { return };
            let visibility = |candidate: &Candidate<'_>| {
                if may_enter(candidate) { Visibility::Visible } else { Visibility::Uncounted }
            };
            let walk = Walk {
                depth: usize::MAX,
                hidden: true,
                filter_decision: &|_| FilterDecision::Default,
                visibility: &visibility,
                deadline: &Deadline::default(),
                index: IndexMode::Auto,
                watch: true,
                ignore_files: IgnoreFiles::STANDARD,
            };
            // What cannot be read now is tried again by the next walk.
            let _ = workspace.walk(&starts, &walk, || Learner(&workspace));
        };
        // If the system cannot start a thread, the next walk does this.
        let _ = thread::Builder::new().name("pinfold-watch".into()).spawn(watch);
    }
}

/// Reads the metadata of each file, which is cached thereby.
struct Learner<'w>(&'w Arc<Workspace>);

impl Visitor for Learner<'_> {
    fn visit(&mut self, found: &WalkEntry<'_>) -> Result<()> {
        if found.kind == Kind::File {
            found.meta()?;
        }
        Ok(())
    }

    fn goes_on(&mut self, _: &dyn Fn() -> Option<Vec<u8>>) -> bool {
        // The workspace is still in use.
        Arc::strong_count(self.0) > 1
    }
}
