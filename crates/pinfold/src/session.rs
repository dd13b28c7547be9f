//! One agent's conversation with a workspace.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pinfold_confine::{Place, Workspace, escaped};

use crate::commit::Refusal;
use crate::ledger::Ledger;
use crate::limits::CONFLICTS;
use crate::{Call, Changes, Done, Error, Operation, Settings, View};

/// One agent's conversation: a workspace, settings, and what has been seen so far.
///
/// Operations can be performed from several threads at once.
#[derive(Debug)]
pub struct Session {
    workspace: Arc<Workspace>,
    settings: Settings,
    ledger: Mutex<Ledger>,
}

/// A root that could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot use `{}` as a root: {cause}", .root.display())]
pub struct OpenError {
    /// The root's path.
    pub root: PathBuf,
    /// What went wrong.
    pub cause: pinfold_confine::Error,
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
        let workspace = Workspace::open(&roots, None);
        let workspace = workspace
            .map_err(|(number, cause)| OpenError { root: roots[number].clone(), cause })?;
        Ok(Self::on(Arc::new(workspace), settings))
    }

    /// A session on a workspace that others may use as well.
    pub fn on(workspace: Arc<Workspace>, settings: Settings) -> Self {
        Self { workspace, settings, ledger: Mutex::default() }
    }

    /// Performs an operation.
    pub fn perform<O: Operation>(&self, operation: &O) -> Result<Done<O>, Error> {
        self.perform_with(operation, &Call::default())
    }

    /// Performs an operation, with something said for this call alone.
    pub fn perform_with<O: Operation>(&self, operation: &O, call: &Call) -> Result<Done<O>, Error> {
        let view = View::new(self, call);
        let mut tries = 0;
        loop {
            view.check_time()?;
            let (outcome, changes) = operation.plan(&view)?;
            tries += 1;
            match changes.commit(&view) {
                Ok(receipt) => return Ok(Done { outcome, receipt }),
                // Somebody else was faster: plan anew, on what is there now.
                Err(Refusal::Conflict { .. }) if tries < CONFLICTS => {}
                Err(Refusal::Conflict { path }) => {
                    return Err(Error::Changed { path, region: None });
                }
                Err(Refusal::Error(error)) => return Err(error),
            }
        }
    }

    /// The workspace.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn ledger<T>(&self, use_it: impl FnOnce(&mut Ledger) -> T) -> T {
        use_it(&mut self.ledger.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The roots, as they may be printed.
    pub(crate) fn roots(&self) -> Vec<String> {
        let roots = self.workspace.roots();
        roots.map(|root| escaped(root.as_os_str().as_encoded_bytes()).to_string()).collect()
    }

    /// A place as an absolute path, below the root as it was given.
    pub fn absolute(&self, place: &Place) -> String {
        let root = self.roots().swap_remove(place.root);
        match place.path.is_root() {
            true => root,
            false => format!("{}/{}", root.trim_end_matches('/'), place.path),
        }
    }

    /// A place as a path below the first root; in other roots, which it would not find, absolute.
    pub fn relative(&self, place: &Place) -> String {
        if place.root == 0 { place.path.to_string() } else { self.absolute(place) }
    }
}
