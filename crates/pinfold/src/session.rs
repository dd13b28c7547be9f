//! A session: the engine's state for one agent with a workspace.
//!
//! It owns the state that operations share: the workspace, the settings, the policy, approvals, the ledger, the
//! journal and the audit log.

mod derived;
mod history;
mod open;
mod reads;

pub use history::FoundState;
pub(crate) use history::TURN;
pub use open::OpenError;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use pinfold_confine::{
    OpenMethod, Place, RelPath, SharedLocks, Workspace, push_escaped, symlinks_and_target,
};

use crate::approval::Grants;
use crate::audit::Audit;
use crate::commit::CommitError;
use crate::file_caches::{BinaryMarks, LineIndexCache};
use crate::journal::Journal;
use crate::ledger::Ledger;
use crate::limits::MAX_ATTEMPTS;
use crate::media::PdfReader;
use crate::memory::Memory;
use crate::policy::Policy;
use crate::search::{self, ContentIndex, FileSetCache, IndexSummary, PatternCache, ResultCache};
use crate::{
    Approver, AuditFailure, CallOptions, Changes, Done, Error, Observer, Operation, ParentReads,
    Settings, View,
};

/// The engine's state for one agent: a workspace, settings, permissions, and the files that it has read.
///
/// Several threads can perform operations at once.
#[derive(Debug)]
pub struct Session {
    /// Its id in the journal and the audit log.
    id: String,
    workspace: Arc<Workspace>,
    /// The workspace that the user gave, even if this session's is narrower. Rules are relative to its roots.
    whole_workspace: Arc<Workspace>,
    settings: Settings,

    // Permissions.
    policy: RwLock<Arc<Policy>>,
    approver: Option<Arc<dyn Approver>>,
    /// The approvals for the session.
    grants: Arc<Grants>,

    // Reads.
    ledger: Arc<Mutex<Ledger>>,
    /// The files that earlier processes of the same parent process have read.
    parent_reads: Option<Arc<ParentReads>>,
    /// See [`Self::forgetting_writes`].
    writes_count_as_read: bool,
    /// See [`Self::maybe_session_per_call`].
    may_be_session_per_call: bool,

    // Logs.
    journal: Option<Arc<Journal>>,
    /// The turn of the last change, if its call named one.
    turn: Arc<Mutex<Option<String>>>,
    audit: Option<Arc<Audit>>,
    observer: Option<Arc<dyn Observer>>,

    // Caches.
    pattern_cache: Arc<PatternCache>,
    file_sets: FileSetCache,
    content_index: Arc<ContentIndex>,
    result_memo: Arc<ResultCache>,
    line_indexes: LineIndexCache,
    binary_marks: Arc<BinaryMarks>,

    pdf_reader: Arc<dyn PdfReader>,
    /// The directory of the dialect `memory`, with its own policy and ledger.
    memory: Option<Memory>,
}

impl Session {
    /// Sets the approver, which asks the user if the rules or the mode need approval. Without one, such operations
    /// are denied.
    #[must_use]
    pub fn with_approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Denies every access to some files of Pinfold's own, such as its configuration. Access to the journal and the
    /// audit log is always denied.
    #[must_use]
    pub fn with_denied_files(mut self, own: impl IntoIterator<Item = PathBuf>) -> Self {
        // Without duplicates, since resolving a path looks up every name in it.
        let own: BTreeSet<PathBuf> = own.into_iter().collect();
        let policy = self.policy.get_mut().unwrap_or_else(PoisonError::into_inner);
        let own: Vec<_> = own.iter().flat_map(|path| symlinks_and_target(path)).collect();
        if let Some(memory) = &mut self.memory {
            memory.deny_files(own.iter().cloned());
        }
        Arc::make_mut(policy).deny_files(own);
        self
    }

    /// Lets files count as read that earlier processes of the same parent process have read or written.
    #[doc(hidden)]
    #[must_use]
    pub fn with_parent_reads(mut self, reads: Option<Arc<ParentReads>>) -> Self {
        self.parent_reads = reads;
        self
    }

    /// For clients that may begin a session for each call, so that no session has read anything. Until the first
    /// read, the error for an unread file names the setting `read_before_write`.
    #[doc(hidden)]
    #[must_use]
    pub fn maybe_session_per_call(mut self) -> Self {
        self.may_be_session_per_call = true;
        self
    }

    /// For clients that share this session because only their name is known. A file that one of them changes no
    /// longer counts as read, since the others have not seen the change.
    #[doc(hidden)]
    #[must_use]
    pub fn forgetting_writes(mut self) -> Self {
        self.writes_count_as_read = false;
        self
    }

    /// Performs an operation.
    pub fn perform<O: Operation>(&self, operation: &O) -> Result<Done<O>, Error> {
        self.perform_with(operation, &CallOptions::default())
    }

    /// Performs an operation with options for this call.
    pub fn perform_with<O: Operation>(
        &self,
        operation: &O,
        call: &CallOptions,
    ) -> Result<Done<O>, Error> {
        let code = |done: &Result<_, Error>| (if done.is_ok() { "ok" } else { "failed" }, 0);
        self.audited(call, |call| self.plan_and_commit(operation, call), code)
    }

    fn plan_and_commit<O: Operation>(
        &self,
        operation: &O,
        call: &CallOptions,
    ) -> Result<Done<O>, Error> {
        let view = View::new(self, call);
        let mut plans = 0;
        let mut lost_race = false;
        loop {
            view.check_time()?;
            // Before a file is locked: the call that has the memory may wait for the file.
            let _permit = view.reserve_edits(&operation.edited_files())?;
            // So that it does not fail again and again where other processes keep changing the file.
            let _locks = lost_race.then(SharedLocks::begin_from_target);
            let (outcome, changes) = operation.plan(&view)?;
            plans += 1;
            match changes.commit(&view) {
                Ok(receipt) => return Ok(Done { outcome, receipt }),
                Err(CommitError::Approved { .. }) if plans < MAX_ATTEMPTS => {}
                Err(CommitError::Stale { .. }) if plans < MAX_ATTEMPTS => lost_race = true,
                Err(CommitError::Approved { path } | CommitError::Stale { path }) => {
                    return Err(Error::Changed { path, now: None, read_again: true });
                }
                Err(CommitError::Error(error)) => return Err(error),
            }
        }
    }

    /// Whether calls are written into an audit log.
    #[doc(hidden)]
    pub fn is_audited(&self) -> bool {
        self.audit.is_some()
    }

    /// Reports calls and changes to `observer` while a viewer watches.
    #[doc(hidden)]
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The observer, if a viewer watches.
    #[doc(hidden)]
    pub fn watching_observer(&self) -> Option<&Arc<dyn Observer>> {
        self.observer.as_ref().filter(|observer| observer.is_watching())
    }

    /// Whether a viewer watches.
    pub(crate) fn is_watched(&self) -> bool {
        self.watching_observer().is_some()
    }

    /// Whether the user has paused changes.
    pub(crate) fn is_paused(&self) -> bool {
        self.observer.as_ref().is_some_and(|observer| observer.is_paused())
    }

    pub(crate) fn audit(&self) -> Option<&Audit> {
        self.audit.as_deref()
    }

    /// Fails if the audit log cannot be written and the settings forbid changes without it.
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

    /// The policy. Its rules are relative to the current real paths of the roots, which change if a root is a symlink
    /// that now leads elsewhere.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        let policy = self.policy.read().unwrap_or_else(PoisonError::into_inner).clone();
        if self.whole_workspace.are_real_roots(policy.roots()) {
            return policy;
        }
        let roots = real_roots(&self.whole_workspace).collect();
        let given: Vec<_> = self.whole_workspace.roots().map(Path::to_owned).collect();
        let policy = Arc::new(policy.with_roots(&self.settings.permissions, roots, &given));
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = policy.clone();
        policy
    }

    /// The approver for calls that do not have their own.
    pub fn approver(&self) -> Option<&Arc<dyn Approver>> {
        self.approver.as_ref()
    }

    /// The user's approvals for the session.
    pub(crate) fn grants(&self) -> &Grants {
        &self.grants
    }

    /// The journal, if there is one.
    pub fn journal(&self) -> Option<&Journal> {
        self.journal.as_deref()
    }

    /// The session's id in the journal and the audit log.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The real paths of the roots.
    pub fn real_roots(&self) -> impl Iterator<Item = PathBuf> {
        real_roots(&self.workspace)
    }

    /// The real paths of the roots that the user gave, without read roots and without paths that are not UTF-8.
    pub(crate) fn whole_roots(&self) -> Vec<String> {
        let roots = real_roots(&self.whole_workspace);
        let roots = roots.filter(|root| {
            !self.whole_workspace.is_in_read_root(root.as_os_str().as_encoded_bytes())
        });
        roots.filter_map(|root| root.into_os_string().into_string().ok()).collect()
    }

    /// Whether a place is in a read root, where nothing may be changed.
    pub(crate) fn is_read_only(&self, place: &Place) -> bool {
        // A narrowed workspace may start inside a read root.
        self.whole_workspace.is_in_read_root(&self.workspace.real_path(place))
    }

    /// The roots, as absolute paths.
    pub fn roots(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.workspace.roots()
    }

    /// The directory where relative paths start.
    pub fn base(&self) -> &Path {
        self.workspace.base()
    }

    /// The real path of a place, which has no symlinks.
    pub fn real_path(&self, place: &Place) -> PathBuf {
        real_path(&self.workspace, place)
    }

    /// How paths below the roots are opened.
    #[doc(hidden)]
    pub fn open_method(&self) -> OpenMethod {
        self.workspace.open_method()
    }

    /// Whether a real path is in a read root.
    #[doc(hidden)]
    pub fn is_in_read_root(&self, real_path: &Path) -> bool {
        self.workspace.is_in_read_root(real_path.as_os_str().as_bytes())
    }

    /// Compares every cached file with the disk, as a thread in the background does some seconds after each search.
    #[doc(hidden)]
    pub fn recheck_trees(&self) {
        self.workspace.recheck_trees();
    }

    /// The workspace. Its methods reach files without asking the policy, so it is not public.
    pub(crate) fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    pub(crate) fn shared_workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Sets the reader of PDFs. With the feature `pdf`, the default is `ThreadPdfReader`.
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

    pub(crate) fn content_index(&self) -> &Arc<ContentIndex> {
        &self.content_index
    }

    pub(crate) fn binary_marks(&self) -> &BinaryMarks {
        &self.binary_marks
    }

    /// The state of the search caches and the index, as sentences for the user.
    pub fn search_status(&self) -> Vec<String> {
        search::status(self)
    }

    /// The size of the content index.
    pub fn index_summary(&self) -> IndexSummary {
        self.content_index.summary()
    }

    pub(crate) fn result_memo(&self) -> &ResultCache {
        &self.result_memo
    }

    pub(crate) fn file_sets(&self) -> &FileSetCache {
        &self.file_sets
    }

    pub(crate) fn pattern_cache(&self) -> &PatternCache {
        &self.pattern_cache
    }

    /// The absolute path of a place, below the root as the user gave it.
    pub fn absolute(&self, place: &Place) -> String {
        let mut path = String::new();
        self.push_absolute(place, &mut path);
        path
    }

    /// Appends the [absolute path](Self::absolute) of a place to a text.
    #[doc(hidden)]
    pub fn push_absolute(&self, place: &Place, text: &mut String) {
        let root = self.workspace.shown_roots().nth(place.root).unwrap_or("/");
        if place.path.is_root() {
            return text.push_str(root);
        }
        text.push_str(root.trim_end_matches('/'));
        text.push('/');
        push_escaped(text, place.path.as_bytes());
    }

    /// The relative path of a place, or the absolute one if a relative one would not lead there.
    pub fn relative(&self, place: &Place) -> String {
        let below = self.workspace.below_base(place);
        below.map_or_else(|| self.absolute(place), |below| below.to_string())
    }
}

pub(crate) fn real_roots(workspace: &Workspace) -> impl Iterator<Item = PathBuf> {
    let path = RelPath::root;
    (0..workspace.roots().len())
        .map(move |root| real_path(workspace, &Place { root, path: path() }))
}

fn real_path(workspace: &Workspace, place: &Place) -> PathBuf {
    PathBuf::from(OsString::from_vec(workspace.real_path(place)))
}
