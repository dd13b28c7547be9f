//! Sessions that share the state of another: on a part of its workspace, in another mode, or for another agent.

use std::path::Path;
use std::sync::{Arc, RwLock};

use pinfold_confine::Workspace;

use super::Session;
use crate::Mode;
use crate::file_caches::LineIndexCache;
use crate::journal::fresh_id;
use crate::memory::Memory;
use crate::search::FileSetCache;

impl Session {
    /// Another session on the same workspace, which has read nothing yet.
    #[must_use]
    pub fn for_another_agent(&self) -> Self {
        Self {
            turn: Arc::default(),
            id: fresh_id().unwrap_or_default(),
            ledger: Arc::default(),
            grants: Arc::default(),
            memory: self.memory.as_ref().map(Memory::another),
            ..self.with_workspace(self.workspace.clone())
        }
    }

    /// This session on the part of its workspace that is inside the given directories. Returns `None` if no part is.
    /// It keeps its ledger, and relative paths start at the same directory.
    pub fn narrowed<P: AsRef<Path>>(&self, to: impl IntoIterator<Item = P>) -> Option<Self> {
        let workspace = self.workspace.narrowed(to)?;
        Some(self.with_workspace(Arc::new(workspace)))
    }

    /// This session with another start of relative paths and searches. Returns `None` if the directory is outside the
    /// workspace or not a directory.
    pub fn starting_at(&self, directory: impl AsRef<Path>) -> Option<Self> {
        let workspace = self.workspace.starting_at(directory.as_ref())?;
        Some(self.with_workspace(Arc::new(workspace)))
    }

    /// A session on the memory directory, if the settings have one. It shares the settings, the logs and the approver
    /// with this one, but not the workspace.
    pub fn memory(&self) -> Option<Self> {
        let Memory { workspace, policy, ledger, grants } = self.memory.clone()?;
        let policy = policy.in_mode(self.settings.permissions.mode);
        Some(Self {
            whole_workspace: workspace.clone(),
            ledger,
            grants,
            parent_reads: None,
            content_index: Arc::default(),
            policy: RwLock::new(Arc::new(policy)),
            memory: None,
            ..self.with_workspace(workspace)
        })
    }

    /// This session in another permission mode, with the same rules.
    #[must_use]
    pub fn in_mode(&self, mode: Mode) -> Self {
        let mut session = self.with_workspace(self.workspace.clone());
        session.settings.permissions.mode = mode;
        session.policy = RwLock::new(Arc::new(self.policy().in_mode(mode)));
        session
    }

    fn with_workspace(&self, workspace: Arc<Workspace>) -> Self {
        Self {
            workspace,
            settings: self.settings.clone(),
            ledger: self.ledger.clone(),
            parent_reads: self.parent_reads.clone(),
            writes_count_as_read: self.writes_count_as_read,
            may_be_session_per_call: self.may_be_session_per_call,
            journal: self.journal.clone(),
            pattern_cache: self.pattern_cache.clone(),
            file_sets: FileSetCache::default(),
            content_index: self.content_index.clone(),
            result_memo: self.result_memo.clone(),
            line_indexes: LineIndexCache::default(),
            binary_marks: self.binary_marks.clone(),
            pdf_reader: self.pdf_reader.clone(),
            policy: RwLock::new(self.policy()),
            whole_workspace: self.whole_workspace.clone(),
            memory: self.memory.clone(),
            approver: self.approver.clone(),
            grants: self.grants.clone(),
            audit: self.audit.clone(),
            observer: self.observer.clone(),
            turn: self.turn.clone(),
            id: self.id.clone(),
        }
    }
}
