//! The workspace of an agent's memory, separate from the workspace of its project.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pinfold_confine::Workspace;

use crate::approval::Grants;
use crate::ledger::Ledger;
use crate::policy::Policy;
use crate::session::real_roots;
use crate::{OpenError, Permissions};

/// A directory for an agent's memory: a workspace, and the policy for it.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) ledger: Arc<Mutex<Ledger>>,
    pub(crate) grants: Arc<Grants>,
}

impl Memory {
    /// Opens the directory, and creates it if it is missing.
    pub(crate) fn open(directory: &Path, permissions: &Permissions) -> Result<Self, OpenError> {
        let workspace = Workspace::open_private(directory)
            .map_err(|cause| OpenError::Memory { directory: directory.to_owned(), cause })?;
        let given: Vec<_> = workspace.roots().map(Path::to_owned).collect();
        let policy = Policy::new(permissions, real_roots(&workspace).collect(), &given)?;
        let (ledger, grants) = (Arc::default(), Arc::default());
        Ok(Self { workspace: Arc::new(workspace), policy: Arc::new(policy), ledger, grants })
    }

    /// The same directory for another session.
    pub(crate) fn another(&self) -> Self {
        Self { ledger: Arc::default(), grants: Arc::default(), ..self.clone() }
    }

    /// Denies every access to some paths.
    pub(crate) fn deny_files(&mut self, own: impl IntoIterator<Item = PathBuf>) {
        Arc::make_mut(&mut self.policy).deny_files(own);
    }
}
