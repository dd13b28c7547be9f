//! One agent's conversation with a workspace.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pinfold_confine::{Place, RelPath, Workspace, escaped};

use crate::commit::Refusal;
use crate::journal::{Entry, Journal, fresh_id};
use crate::ledger::Ledger;
use crate::limits::CONFLICTS;
use crate::media::{InThread, PdfReader};
use crate::positions::Positions;
use crate::search::Needles;
use crate::{Call, Changes, Done, Error, JournalSetting, Operation, Settings, View};

/// One agent's conversation: a workspace, settings, and what has been seen so far.
///
/// Operations can be performed from several threads at once.
#[derive(Debug)]
pub struct Session {
    workspace: Arc<Workspace>,
    settings: Settings,
    ledger: Mutex<Ledger>,
    journal: Option<Arc<Journal>>,
    needles: Arc<Needles>,
    positions: Positions,
    pdf_reader: Arc<dyn PdfReader>,
    id: String,
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
        let directory = settings.journal.as_ref().and_then(JournalSetting::directory);
        let keep_for = Duration::from_secs(settings.journal_days.saturating_mul(24 * 60 * 60));
        let journal = directory
            .map(|directory| Arc::new(Journal::new(directory, keep_for, settings.journal_bytes)));
        let id = fresh_id().unwrap_or_default();
        Self {
            workspace,
            settings,
            ledger: Mutex::default(),
            journal,
            needles: Arc::default(),
            positions: Positions::default(),
            pdf_reader: Arc::new(InThread),
            id,
        }
    }

    /// Another conversation on the same workspace: it has seen nothing yet.
    #[must_use]
    pub fn another(&self) -> Self {
        let id = fresh_id().unwrap_or_default();
        Self { id, ..self.begin_anew(self.workspace.clone()) }
    }

    /// This conversation on the part of its workspace that is in some other directories too; `None`
    /// if nothing is. It has to look at files again, since it may know them by other names.
    pub fn narrowed<P: AsRef<Path>>(&self, to: impl IntoIterator<Item = P>) -> Option<Self> {
        let workspace = self.workspace.narrowed(to)?;
        Some(self.begin_anew(Arc::new(workspace)))
    }

    fn begin_anew(&self, workspace: Arc<Workspace>) -> Self {
        Self {
            workspace,
            settings: self.settings.clone(),
            ledger: Mutex::default(),
            journal: self.journal.clone(),
            needles: self.needles.clone(),
            positions: Positions::default(),
            pdf_reader: self.pdf_reader.clone(),
            id: self.id.clone(),
        }
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

    /// The journal, if there is one.
    pub fn journal(&self) -> Option<&Journal> {
        self.journal.as_deref()
    }

    /// What distinguishes the session from others in the journal.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The journal's changes to files in this workspace, oldest first.
    pub fn history(&self) -> Result<Vec<Entry>, Error> {
        let Some(journal) = &self.journal else { return Ok(Vec::new()) };
        let entries =
            journal.entries().map_err(|error| Error::JournalFailed { cause: error.to_string() })?;
        let roots: Vec<_> = self.real_roots().collect();
        let inside =
            |entry: &Entry| roots.iter().any(|root| Path::new(&entry.path).starts_with(root));
        Ok(entries.into_iter().filter(inside).collect())
    }

    /// The roots' real paths, free of links.
    pub fn real_roots(&self) -> impl Iterator<Item = PathBuf> {
        (0..self.workspace.roots().len()).map(|root| {
            let path = self.workspace.real_path(&Place { root, path: RelPath::root() });
            PathBuf::from(OsStr::from_bytes(&path))
        })
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

    /// Has PDFs read by another reader than [`InThread`].
    #[must_use]
    pub fn with_pdf_reader(mut self, reader: impl PdfReader + 'static) -> Self {
        self.pdf_reader = Arc::new(reader);
        self
    }

    pub(crate) fn pdf_reader(&self) -> &dyn PdfReader {
        &*self.pdf_reader
    }

    pub(crate) fn positions(&self) -> &Positions {
        &self.positions
    }

    pub(crate) fn needles(&self) -> &Needles {
        &self.needles
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
