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

/// Identifies a conversation of stateless requests. Each token has its own ones, in each of its modes.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct ConversationKey {
    pub(crate) token: Arc<str>,
    pub(crate) mode: Option<&'static str>,
    pub(crate) name: ConversationName,
}

/// The part of a key that the client chooses.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum ConversationName {
    /// The session name in `_meta`.
    Session(String),
    /// The hash of the client's name.
    Client(String),
}

impl ConversationName {
    pub(crate) fn identified_by(&self) -> IdentifiedBy {
        match self {
            Self::Session(_) => IdentifiedBy::SessionName,
            Self::Client(_) => IdentifiedBy::ClientName,
        }
    }
}

impl ConversationKey {
    /// The text that the states of its calls are bound to. It must not change: replicas of two versions share
    /// states during an upgrade.
    pub(crate) fn binding(&self) -> String {
        let (kind, name) = match &self.name {
            ConversationName::Session(name) => ("session", name),
            ConversationName::Client(hash) => ("client", hash),
        };
        serde_json::json!([&*self.token, self.mode, kind, name]).to_string()
    }
}

/// A conversation with one client.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// The text that the states of its calls are bound to.
    binding: String,
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
    pub(crate) fn new(toolbox: Toolbox, binding: String) -> Self {
        Self {
            binding,
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

    pub(crate) fn binding(&self) -> &str {
        &self.binding
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binding_of_a_state_never_changes() {
        let key =
            |token: &str, mode, name| ConversationKey { token: token.into(), mode, name }.binding();
        let session = ConversationName::Session("a \"b\"".into());
        assert_eq!(key("", None, session.clone()), r#"["",null,"session","a \"b\""]"#);
        assert_eq!(key("agent", Some("plan"), session), r#"["agent","plan","session","a \"b\""]"#);
        let client = ConversationName::Client("00ff".into());
        assert_eq!(key("agent", None, client), r#"["agent",null,"client","00ff"]"#);
    }
}
