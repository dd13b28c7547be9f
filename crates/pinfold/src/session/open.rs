//! Opens a session with the workspace, policy, journal, audit log and memory in its settings.

use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use pinfold_confine::{Workspace, symlinks_and_target};

use super::{Session, real_roots};
use crate::audit::Audit;
use crate::file_caches::LineIndexCache;
use crate::journal::{Journal, fresh_id};
#[cfg(not(feature = "pdf"))]
use crate::media::NoPdfReader as DefaultPdfReader;
#[cfg(feature = "pdf")]
use crate::media::ThreadPdfReader as DefaultPdfReader;
use crate::memory::Memory;
use crate::policy::Policy;
use crate::search::FileSetCache;
use crate::{BadRule, Settings};

/// The reason why a session could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A root could not be opened.
    #[error("cannot use `{}` as a root: {cause}", .root.display())]
    Root {
        /// The root's path.
        root: PathBuf,
        /// The cause.
        cause: pinfold_confine::Error,
    },
    /// The directory for the memory could not be opened.
    #[error("cannot use `{}` for the memory: {cause}", .directory.display())]
    Memory {
        /// The directory.
        directory: PathBuf,
        /// The cause.
        cause: pinfold_confine::Error,
    },
    /// A rule does not parse.
    #[error(transparent)]
    Rule(#[from] BadRule),
    /// The audit log could not be opened.
    #[error("cannot open the audit log {}: {cause}", .path.display())]
    Audit {
        /// The log.
        path: PathBuf,
        /// The cause.
        cause: std::io::Error,
    },
}

impl Session {
    /// A session with the default settings on one or more root directories.
    pub fn open<P: AsRef<Path>>(roots: impl IntoIterator<Item = P>) -> Result<Self, OpenError> {
        Self::with_settings(roots, Settings::default())
    }

    /// A session on one or more root directories.
    pub fn with_settings<P: AsRef<Path>>(
        roots: impl IntoIterator<Item = P>,
        settings: Settings,
    ) -> Result<Self, OpenError> {
        let roots: Vec<_> = roots.into_iter().map(|root| root.as_ref().to_owned()).collect();
        let workspace = Workspace::open(&roots, None)
            .and_then(|workspace| workspace.with_read_roots(&settings.read_roots));
        let workspace = workspace.map_err(|(number, cause)| {
            let root = roots.iter().chain(&settings.read_roots).nth(number).cloned();
            OpenError::Root { root: root.unwrap_or_default(), cause }
        })?;
        Self::on(Arc::new(workspace), settings)
    }

    fn on(workspace: Arc<Workspace>, settings: Settings) -> Result<Self, OpenError> {
        let mut policy = {
            let given: Vec<_> = workspace.roots().map(Path::to_owned).collect();
            Policy::new(&settings.permissions, real_roots(&workspace).collect(), &given)?
        };
        let audit = settings.audit.as_ref().map(|path| {
            Audit::open(path).map_err(|cause| OpenError::Audit { path: path.clone(), cause })
        });
        let audit = audit.transpose()?;
        let journal = Journal::of(&settings).map(Arc::new);
        let audit_log = audit.iter().flat_map(|audit| symlinks_and_target(audit.path()));
        let backups = journal.iter().flat_map(|journal| symlinks_and_target(journal.directory()));
        let own: Vec<PathBuf> = audit_log.chain(backups).collect();
        let memory = settings.memory.as_ref();
        let memory = memory.map(|directory| Memory::open(directory, &settings.permissions));
        let mut memory = memory.transpose()?;
        if let Some(memory) = &mut memory {
            memory.deny_files(own.iter().cloned());
        }
        policy.deny_files(own);
        policy.deny_files(settings.memory.iter().flat_map(|memory| symlinks_and_target(memory)));
        let id = fresh_id().unwrap_or_default();
        let session = Self {
            whole_workspace: workspace.clone(),
            workspace,
            settings,
            ledger: Arc::default(),
            parent_reads: None,
            writes_count_as_read: true,
            may_be_session_per_call: false,
            journal,
            pattern_cache: Arc::default(),
            file_sets: FileSetCache::default(),
            content_index: Arc::default(),
            result_memo: Arc::default(),
            line_indexes: LineIndexCache::default(),
            binary_marks: Arc::default(),
            pdf_reader: Arc::new(DefaultPdfReader),
            policy: RwLock::new(Arc::new(policy)),
            memory,
            approver: None,
            grants: Arc::default(),
            audit: audit.map(Arc::new),
            observer: None,
            turn: Arc::default(),
            id,
        };
        session.restore_interrupted_sets();
        session.memory().iter().for_each(Self::restore_interrupted_sets);
        Ok(session)
    }
}
