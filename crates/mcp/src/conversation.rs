//! A conversation with one client: its session, and the part of the workspace that the client's roots leave.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinfold::Error;
use pinfold_dialects::Toolbox;
use rmcp::model::LoggingLevel;

/// How a request names its conversation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum IdentifiedBy {
    /// By the connection, or the HTTP session, that it comes through.
    Connection,
    /// By a session name in its `_meta`.
    SessionName,
    /// By the client's name alone. Several clients may have the same name, so an approval never outlasts its call.
    ClientName,
}

/// A conversation with one client.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// The name that the states of its calls are bound to.
    name: String,
    /// The tools on the whole workspace.
    whole: Arc<Toolbox>,
    roots: Mutex<ClientRootsCache>,
    /// Held while the server waits for the client's roots.
    pub(crate) roots_request: tokio::sync::Mutex<()>,
    /// Held while a change is made. It is a fair lock, so changes are made in the order of their requests, even if
    /// these name a file by different paths.
    pub(crate) change_lock: tokio::sync::Mutex<()>,
    level: Mutex<Option<LoggingLevel>>,
    /// The search status as it was last logged.
    search_status: Mutex<Vec<String>>,
}

/// The tools on the part of the workspace that the client's roots leave, or the reason why nothing is left.
pub(crate) type ToolsOrRefusal = Result<Arc<Toolbox>, Arc<Error>>;

#[derive(Debug, Default)]
struct ClientRootsCache {
    tools: Option<ToolsOrRefusal>,
    /// How often the client has reported a change of its roots.
    changes: u64,
    /// The value of `changes` when the client was last asked for its roots.
    asked_at: u64,
}

impl Conversation {
    pub(crate) fn new(toolbox: Toolbox, name: String) -> Self {
        Self {
            name,
            whole: Arc::new(toolbox),
            roots: Mutex::default(),
            roots_request: tokio::sync::Mutex::default(),
            change_lock: tokio::sync::Mutex::default(),
            level: Mutex::default(),
            search_status: Mutex::default(),
        }
    }

    /// Logs the search status if it has changed.
    pub(crate) fn log_search_status(&self) {
        if !tracing::enabled!(tracing::Level::INFO) {
            return;
        }
        let now =
            self.last_tools().map(|tools| tools.session().search_status()).unwrap_or_default();
        let mut logged = self.search_status.lock().unwrap_or_else(PoisonError::into_inner);
        for sentence in now.iter().filter(|sentence| !logged.contains(sentence)) {
            tracing::info!("search: {sentence}");
        }
        *logged = now;
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn whole(&self) -> &Arc<Toolbox> {
        &self.whole
    }

    /// The tools, unless the client has to be asked for its roots first.
    pub(crate) fn tools(&self) -> Option<ToolsOrRefusal> {
        let roots = self.roots();
        if roots.asked_at < roots.changes { None } else { roots.tools.clone() }
    }

    /// The tools for the last known roots, for a client that does not answer the request for its roots.
    pub(crate) fn last_tools(&self) -> ToolsOrRefusal {
        self.roots().tools.clone().unwrap_or_else(|| Ok(self.whole.clone()))
    }

    /// How often the client has reported a change of its roots.
    pub(crate) fn roots_changes(&self) -> u64 {
        self.roots().changes
    }

    /// Sets the tools for the roots that the client had after `asked_at` changes.
    pub(crate) fn set_tools(&self, tools: ToolsOrRefusal, asked_at: u64) -> ToolsOrRefusal {
        let mut roots = self.roots();
        roots.asked_at = asked_at;
        roots.tools.insert(tools).clone()
    }

    /// Notes that the client has reported a change of its roots.
    pub(crate) fn roots_changed(&self) {
        self.roots().changes += 1;
    }

    pub(crate) fn set_level(&self, level: LoggingLevel) {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }

    pub(crate) fn level(&self) -> Option<LoggingLevel> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn roots(&self) -> MutexGuard<'_, ClientRootsCache> {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
