//! One agent's conversation with a workspace.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pinfold_confine::{Place, RelPath, Workspace, escaped, symlinks_and_target};

use crate::approval::Grants;
use crate::audit::{Audit, Line, brief};
use crate::commit::CommitError;
use crate::journal::{Entry, Journal, fresh_id};
use crate::ledger::{Fingerprint, Ledger};
use crate::limits::{MAX_ATTEMPTS, MAX_CACHED_FILE_BYTES};
use crate::line_indexes::LineIndexCache;
use crate::media::{PdfReader, ThreadPdfReader};
use crate::permit::AccessRequest;
use crate::policy::Policy;
use crate::search::PatternCache;
use crate::{
    Access, Approver, AuditFailure, AuditTrace, BadRule, CachedFile, CallOptions, Changes, Done,
    Error, JournalSetting, Mode, Operation, Settings, View,
};

/// One agent's conversation: a workspace, settings, and what has been seen so far.
///
/// Operations can be performed from several threads at once.
#[derive(Debug)]
pub struct Session {
    workspace: Arc<Workspace>,
    settings: Settings,
    ledger: Arc<Mutex<Ledger>>,
    journal: Option<Arc<Journal>>,
    pattern_cache: Arc<PatternCache>,
    line_indexes: LineIndexCache,
    pdf_reader: Arc<dyn PdfReader>,
    policy: Arc<Policy>,
    approver: Option<Arc<dyn Approver>>,
    grants: Arc<Grants>,
    audit: Option<Arc<Audit>>,
    id: String,
}

/// Why a session could not begin.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A root could not be opened.
    #[error("cannot use `{}` as a root: {cause}", .root.display())]
    Root {
        /// The root's path.
        root: PathBuf,
        /// What went wrong.
        cause: pinfold_confine::Error,
    },
    /// A rule cannot be understood.
    #[error(transparent)]
    Rule(#[from] BadRule),
    /// The audit log could not be opened.
    #[error("cannot open the audit log {}: {cause}", .path.display())]
    Audit {
        /// The log.
        path: PathBuf,
        /// What went wrong.
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
        let workspace = Workspace::open(&roots, None);
        let workspace = workspace
            .map_err(|(number, cause)| OpenError::Root { root: roots[number].clone(), cause })?;
        Self::on(Arc::new(workspace), settings)
    }

    /// A session on a workspace that others may use as well.
    pub fn on(workspace: Arc<Workspace>, settings: Settings) -> Result<Self, OpenError> {
        let mut policy = {
            let spelled: Vec<_> = workspace.roots().map(Path::to_owned).collect();
            Policy::new(&settings.permissions, real_roots(&workspace).collect(), &spelled)?
        };
        let audit = settings.audit.as_ref().map(|path| {
            Audit::open(path).map_err(|cause| OpenError::Audit { path: path.clone(), cause })
        });
        let audit = audit.transpose()?;
        policy.keep_out(audit.iter().flat_map(|audit| symlinks_and_target(audit.path())));
        let directory = settings.journal.as_ref().and_then(JournalSetting::directory);
        let keep_for = Duration::from_secs(settings.journal_days.saturating_mul(24 * 60 * 60));
        let journal = directory.map(|directory| {
            Arc::new(Journal::new(directory, keep_for, settings.max_journal_bytes))
        });
        policy
            .keep_out(journal.iter().flat_map(|journal| symlinks_and_target(journal.directory())));
        let id = fresh_id().unwrap_or_default();
        Ok(Self {
            workspace,
            settings,
            ledger: Arc::default(),
            journal,
            pattern_cache: Arc::default(),
            line_indexes: LineIndexCache::default(),
            pdf_reader: Arc::new(ThreadPdfReader),
            policy: Arc::new(policy),
            approver: None,
            grants: Arc::default(),
            audit: audit.map(Arc::new),
            id,
        })
    }

    /// Has a person asked by `approver` where the rules or the mode say so. Without one, the answer is
    /// no.
    #[must_use]
    pub fn with_approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Puts files out of the tools' reach that are Pinfold's own, such as its configuration. The
    /// journal and the audit log are anyway.
    #[must_use]
    pub fn keeping_out_of(mut self, own: impl IntoIterator<Item = PathBuf>) -> Self {
        let policy = Arc::make_mut(&mut self.policy);
        policy.keep_out(own.into_iter().flat_map(|path| symlinks_and_target(&path)));
        self
    }

    /// Another conversation on the same workspace: it has seen nothing yet.
    #[must_use]
    pub fn another(&self) -> Self {
        let id = fresh_id().unwrap_or_default();
        let (ledger, grants) = Default::default();
        Self { id, ledger, grants, ..self.with_workspace(self.workspace.clone()) }
    }

    /// This conversation on the part of its workspace that is in some other directories too; `None`
    /// if nothing is. What it has seen stays seen, and relative paths start where they did.
    pub fn narrowed<P: AsRef<Path>>(&self, to: impl IntoIterator<Item = P>) -> Option<Self> {
        let workspace = self.workspace.narrowed(to)?;
        Some(self.with_workspace(Arc::new(workspace)))
    }

    /// This conversation, with relative paths and searches that start at a directory of the workspace.
    /// `None` if it is not in it, or no directory.
    pub fn starting_at(&self, directory: impl AsRef<Path>) -> Option<Self> {
        let workspace = self.workspace.starting_at(directory.as_ref())?;
        Some(self.with_workspace(Arc::new(workspace)))
    }

    /// This conversation in another mode. The rules stay.
    #[must_use]
    pub fn in_mode(&self, mode: Mode) -> Self {
        let mut session = self.with_workspace(self.workspace.clone());
        session.settings.permissions.mode = mode;
        session.policy = Arc::new(self.policy.in_mode(mode));
        session
    }

    fn with_workspace(&self, workspace: Arc<Workspace>) -> Self {
        Self {
            workspace,
            settings: self.settings.clone(),
            ledger: self.ledger.clone(),
            journal: self.journal.clone(),
            pattern_cache: self.pattern_cache.clone(),
            line_indexes: LineIndexCache::default(),
            pdf_reader: self.pdf_reader.clone(),
            policy: self.policy.clone(),
            approver: self.approver.clone(),
            grants: self.grants.clone(),
            audit: self.audit.clone(),
            id: self.id.clone(),
        }
    }

    /// Performs an operation.
    pub fn perform<O: Operation>(&self, operation: &O) -> Result<Done<O>, Error> {
        self.perform_with(operation, &CallOptions::default())
    }

    /// Performs an operation, with something said for this call alone.
    pub fn perform_with<O: Operation>(
        &self,
        operation: &O,
        call: &CallOptions,
    ) -> Result<Done<O>, Error> {
        // Who calls by a tool's name notes what came of it in the tool's words.
        if !call.tool.is_empty() || self.audit.is_none() {
            return self.go_on(operation, call);
        }
        let begin = Instant::now();
        let call = &CallOptions { audit_trace: AuditTrace::default(), ..call.clone() };
        let done = self.go_on(operation, call);
        self.record(call, if done.is_ok() { "ok" } else { "failed" }, begin, 0);
        done
    }

    fn go_on<O: Operation>(&self, operation: &O, call: &CallOptions) -> Result<Done<O>, Error> {
        let view = View::new(self, call);
        let mut tries = 0;
        loop {
            view.check_time()?;
            let (outcome, changes) = operation.plan(&view)?;
            tries += 1;
            match changes.commit(&view) {
                Ok(receipt) => return Ok(Done { outcome, receipt }),
                // Somebody was asked, and time has passed: plan anew, on what is there now.
                Err(CommitError::Asked) if tries < MAX_ATTEMPTS => {}
                // Somebody else was faster: plan anew, on what is there now.
                Err(CommitError::Conflict { .. }) if tries < MAX_ATTEMPTS => {}
                Err(CommitError::Conflict { path }) => {
                    return Err(Error::Changed { path, region: None });
                }
                Err(CommitError::Asked) => return Err(Error::Cancelled),
                Err(CommitError::Error(error)) => return Err(error),
            }
        }
    }

    /// Opens and reads the file of an operation that only reads one, if that waits for nobody: the file is
    /// small and in the page cache, the policy allows the read without asking, and there is no audit log. With
    /// it as [`CallOptions::cached_file`], performing the operation takes less time than waking another thread.
    pub fn cached_file<O: Operation>(&self, operation: &O) -> Option<CachedFile> {
        let path = operation.reads().filter(|_| !self.is_audited())?;
        let (place, file) = self.workspace.cached_file(path, MAX_CACHED_FILE_BYTES)?;
        let call = CallOptions::default();
        let request = AccessRequest { access: Access::Read, path, place: &place, directory: false };
        let allowed = View::new(self, &call).must_ask(&request).is_ok_and(|ask| !ask);
        allowed.then(|| CachedFile::new(place, file))
    }

    /// Writes a line about a call into the audit log, if there is one. `bytes` are the answer's.
    pub fn record(&self, call: &CallOptions, outcome: &str, begin: Instant, bytes: usize) {
        let Some(audit) = &self.audit else { return };
        audit.write(&Line {
            time: crate::audit::now(),
            session: &self.id,
            client: call.client.as_deref().map(brief),
            tool: brief(&call.tool),
            audit_trace: &call.audit_trace.facts(),
            outcome,
            duration_ms: begin.elapsed().as_millis().try_into().unwrap_or(u64::MAX),
            bytes,
        });
    }

    /// Whether calls are written into an audit log.
    pub fn is_audited(&self) -> bool {
        self.audit.is_some()
    }

    /// Changes are made only as long as they can be audited.
    pub(crate) fn check_audit(&self) -> Result<(), Error> {
        match &self.audit {
            Some(audit)
                if audit.is_broken() && self.settings.audit_failure == AuditFailure::Refuse =>
            {
                Err(Error::AuditFailed)
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn approver(&self) -> Option<&Arc<dyn Approver>> {
        self.approver.as_ref()
    }

    /// What a person has allowed for as long as the session lasts.
    pub(crate) fn grants(&self) -> &Grants {
        &self.grants
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
        real_roots(&self.workspace)
    }

    /// The workspace.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The session has seen, or left, a file like this.
    pub(crate) fn saw(&self, place: &Place, fingerprint: Fingerprint) {
        let path = self.workspace.real_path(place);
        self.ledger().saw(path, fingerprint);
    }

    /// The file is gone.
    pub(crate) fn forget(&self, place: &Place) {
        let path = self.workspace.real_path(place);
        self.ledger().forget(&path);
    }

    /// The file as the session last saw or left it.
    pub(crate) fn last_fingerprint(&self, place: &Place) -> Option<Fingerprint> {
        let path = self.workspace.real_path(place);
        self.ledger().last_fingerprint(&path)
    }

    fn ledger(&self) -> std::sync::MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has PDFs read by another reader than [`ThreadPdfReader`].
    #[must_use]
    pub fn with_pdf_reader(mut self, reader: impl PdfReader + 'static) -> Self {
        self.pdf_reader = Arc::new(reader);
        self
    }

    pub(crate) fn pdf_reader(&self) -> &dyn PdfReader {
        &*self.pdf_reader
    }

    pub(crate) fn line_indexes(&self) -> &LineIndexCache {
        &self.line_indexes
    }

    pub(crate) fn pattern_cache(&self) -> &PatternCache {
        &self.pattern_cache
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

    /// A place as a relative path; where that would not be found, absolute.
    pub fn relative(&self, place: &Place) -> String {
        let below = self.workspace.below_base(place);
        below.map_or_else(|| self.absolute(place), |below| below.to_string())
    }
}

fn real_roots(workspace: &Workspace) -> impl Iterator<Item = PathBuf> {
    (0..workspace.roots().len()).map(|root| {
        let path = workspace.real_path(&Place { root, path: RelPath::root() });
        PathBuf::from(OsStr::from_bytes(&path))
    })
}
