//! The state that all clients of a server share: the tools, and the conversations.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pinfold::Session;
use pinfold_dialects::{Format, Toolbox};
use pinfold_feed::Feed;
use rmcp::model::{
    Implementation, ListToolsResult, RequestStateCodec, ServerCapabilities, ServerConfig,
    Tool as Listed,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::approve::UsedStates;
use crate::conversation::{Conversation, SessionKey};
use crate::threads::StuckThreads;
use crate::{Server, limits};

/// Whether the directories that a client has open narrow the workspace.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum ClientRoots {
    /// They narrow the workspace. They never widen it.
    #[default]
    Narrow,
    /// The server does not ask the client for them.
    Ignore,
}

/// How the tools are served.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether the client's roots narrow the workspace.
    pub client_roots: ClientRoots,
    /// How often progress is reported to a client that asks for it.
    pub progress_every: Duration,
    /// How many conversations are remembered for clients that have no connection of their own.
    pub sessions: usize,
    /// How long such a conversation is remembered after its last request.
    pub session_idle: Duration,
    /// The feed, by whose viewers the user is asked. The session of the toolbox has it as its observer.
    pub feed: Option<Arc<Feed>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            client_roots: ClientRoots::default(),
            progress_every: limits::PROGRESS_EVERY,
            sessions: limits::MAX_SESSIONS,
            session_idle: limits::SESSION_IDLE,
            feed: None,
        }
    }
}

/// Tools on a workspace, ready to be served to any number of clients.
#[derive(Clone, Debug)]
pub struct Service(pub(crate) Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) toolbox: Toolbox,
    /// The tools as they are listed. Made when a client first asks.
    list: OnceLock<ListToolsResult>,
    pub(crate) info: ServerConfig,
    pub(crate) options: Options,
    /// The calls that run on threads.
    pub(crate) running: TaskTracker,
    /// Cancelled when all calls have to stop.
    pub(crate) stopping: CancellationToken,
    /// Signs the states that clients carry from one round of a call to the next.
    pub(crate) codec: Option<RequestStateCodec>,
    pub(crate) used_states: UsedStates,
    pub(crate) stuck: StuckThreads,
    named: Mutex<HashMap<String, (Instant, Arc<Conversation>)>>,
}

impl Service {
    /// Serves the tools in a toolbox. Each conversation gets a session of its own on the toolbox's
    /// workspace.
    pub fn new(toolbox: Toolbox, options: Options) -> Self {
        let info = info(&toolbox);
        Self(Arc::new(Shared {
            toolbox,
            list: OnceLock::new(),
            info,
            options,
            running: TaskTracker::new(),
            stopping: CancellationToken::new(),
            codec: codec(),
            used_states: UsedStates::default(),
            stuck: StuckThreads::default(),
            named: Mutex::default(),
        }))
    }

    /// A server for one connection.
    pub(crate) fn connection(&self) -> Server {
        Server::connected(self.0.clone())
    }

    /// A server for one HTTP session, if the first request is `initialize`, or else for stateless requests.
    #[cfg(feature = "http")]
    pub fn handler(&self) -> Server {
        Server::unconnected(self.0.clone())
    }

    /// Cancels all calls and waits until they have ended.
    pub(crate) async fn stop(&self) {
        self.0.stopping.cancel();
        self.0.running.close();
        if tokio::time::timeout(limits::STOPPING, self.0.running.wait()).await.is_err() {
            tracing::warn!("a call does not stop");
        }
    }
}

impl Shared {
    pub(crate) fn list(&self) -> &ListToolsResult {
        self.list.get_or_init(|| list(&self.toolbox))
    }

    pub(crate) fn conversation(&self, session: Session) -> Arc<Conversation> {
        Arc::new(Conversation::new(self.toolbox.on(session)))
    }

    /// The conversation with a name. Conversations that were idle for too long are forgotten, and if there are too
    /// many the one that was idle longest. None is idle while one of its calls runs.
    pub(crate) fn named(&self, name: &str, key: SessionKey) -> Arc<Conversation> {
        let now = Instant::now();
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.retain(|_, (used, conversation)| {
            has_call(conversation) || now.duration_since(*used) < self.options.session_idle
        });
        if let Some((used, conversation)) = named.get_mut(name) {
            *used = now;
            return conversation.clone();
        }
        while named.len() >= self.options.sessions.max(1) {
            let oldest = named
                .iter()
                .min_by_key(|(_, (used, conversation))| (has_call(conversation), *used));
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else { break };
            named.remove(&oldest);
        }
        let session = self.toolbox.session().another();
        let conversation = self.conversation(match key {
            SessionKey::Connection | SessionKey::SessionName => session,
            SessionKey::ClientName => session.forgetting_writes(),
        });
        named.insert(name.to_owned(), (now, conversation.clone()));
        conversation
    }
}

/// Whether a call of a conversation is running.
fn has_call(conversation: &Arc<Conversation>) -> bool {
    Arc::strong_count(conversation) > 1
}

/// Signs with a random key, so states are valid for this process only.
fn codec() -> Option<RequestStateCodec> {
    let mut key = [0; RequestStateCodec::MIN_KEY_LENGTH];
    getrandom::fill(&mut key).ok()?;
    RequestStateCodec::try_new(key).ok()
}

fn list(toolbox: &Toolbox) -> ListToolsResult {
    let Value::Object(mut list) = pinfold_dialects::list(toolbox.tools(), Format::Mcp) else {
        unreachable!("it is an object")
    };
    let tools: Vec<Listed> = serde_json::from_value(list.remove("tools").unwrap_or_default())
        .expect("the list is made in the protocol's own form");
    ListToolsResult::with_all_items(tools)
}

fn info(toolbox: &Toolbox) -> ServerConfig {
    let roots: Vec<_> =
        toolbox.session().workspace().roots().map(|root| root.display().to_string()).collect();
    let absolute = toolbox.tools().iter().any(|tool| tool.dialect.name == "classic");
    let relative =
        toolbox.tools().iter().any(|tool| !matches!(tool.dialect.name, "classic" | "memory"));
    let mut instructions = format!("File tools, fenced to {}.", roots.join(" and "));
    match (absolute, relative) {
        (true, false) => instructions.push_str(" Paths are absolute."),
        (_, true) => {
            instructions.push_str(&format!(" Relative paths start at {}.", roots[0]));
        }
        (false, false) => {}
    }
    let capabilities = capabilities();
    let version = env!("CARGO_PKG_VERSION");
    let name = Implementation::new("pinfold", version).with_title("Pinfold");
    ServerConfig::new(capabilities).with_server_info(name).with_instructions(instructions)
}

fn capabilities() -> ServerCapabilities {
    ServerCapabilities::builder().enable_logging().enable_tools().build()
}

#[cfg(test)]
mod tests {
    use pinfold_dialects::DOTTED;
    use tempfile::TempDir;

    use super::*;

    fn served(sessions: usize, session_idle: Duration) -> (TempDir, Service) {
        let dir = TempDir::new().unwrap();
        let toolbox = Toolbox::new(Session::open([dir.path()]).unwrap(), &[&DOTTED]);
        let options = Options { sessions, session_idle, ..Options::default() };
        (dir, Service::new(toolbox, options))
    }

    /// By the session, so that nothing is held on to.
    fn id(conversation: &Conversation) -> String {
        conversation.whole().session().id().to_owned()
    }

    #[test]
    fn a_conversation_with_a_running_call_makes_no_room_if_another_can() {
        let (_dir, service) = served(2, Duration::MAX);
        let named = |name| service.0.named(name, SessionKey::SessionName);
        let held = named("one");
        let (one, two) = (id(&held), id(&named("two")));
        named("three");
        assert_eq!(id(&named("one")), one);
        assert_ne!(id(&named("two")), two);
        // If all of them are in use, it is the oldest.
        let _all = [held, named("two")];
        named("four");
        assert_eq!(service.0.named.lock().unwrap().len(), 2);
    }

    #[test]
    fn a_conversation_with_a_running_call_is_not_idle() {
        let (_dir, service) = served(2, Duration::ZERO);
        let held = service.0.named("one", SessionKey::SessionName);
        assert!(Arc::ptr_eq(&held, &service.0.named("one", SessionKey::SessionName)));
        let one = id(&held);
        drop(held);
        assert_ne!(id(&service.0.named("one", SessionKey::SessionName)), one);
    }
}
