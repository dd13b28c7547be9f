//! The state that all clients of a server share: the tools and the conversations.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pinfold::Session;
use pinfold_dialects::{Format, Toolbox};
use rmcp::model::{
    Implementation, ListToolsResult, RequestStateCodec, ServerCapabilities, ServerConfig,
    Tool as Listed,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::approve::UsedStates;
use crate::caller::Caller;
use crate::conversation::{Conversation, ConversationKey, ConversationName};
use crate::options::{Options, RequestStateKey};
use crate::threads::StuckThreads;
use crate::{Server, limits};

/// Tools on a workspace, which any number of clients can call.
#[derive(Clone, Debug)]
pub struct Service(pub(crate) Arc<ServiceState>);

#[derive(Debug)]
pub(crate) struct ServiceState {
    pub(crate) toolbox: Toolbox,
    /// The list of tools. It is made when a client first asks for it.
    list: OnceLock<ListToolsResult>,
    pub(crate) info: ServerConfig,
    pub(crate) options: Options,
    /// The calls that run on threads.
    pub(crate) running: TaskTracker,
    /// Is cancelled when all calls have to stop.
    pub(crate) stopping: CancellationToken,
    /// Signs the states that clients carry from one round of a call to the next.
    pub(crate) codec: Option<RequestStateCodec>,
    pub(crate) used_states: UsedStates,
    pub(crate) stuck: StuckThreads,
    named: Mutex<HashMap<ConversationKey, (Instant, Arc<Conversation>)>>,
}

impl Service {
    /// Serves the tools in a toolbox. Each conversation gets a session of its own on the toolbox's
    /// workspace.
    pub fn new(toolbox: Toolbox, options: Options) -> Self {
        let info = info(&toolbox);
        let key = options.state_key.clone().or_else(RequestStateKey::random);
        let codec = key.and_then(|key| RequestStateCodec::try_new(key.0).ok());
        let used_states = UsedStates::new(options.state_marks.clone());
        Self(Arc::new(ServiceState {
            toolbox,
            list: OnceLock::new(),
            info,
            options,
            running: TaskTracker::new(),
            stopping: CancellationToken::new(),
            codec,
            used_states,
            stuck: StuckThreads::default(),
            named: Mutex::default(),
        }))
    }

    /// A server for one connection.
    pub(crate) fn for_stream(&self) -> Server {
        Server::for_stream(self.0.clone())
    }

    /// A server for one HTTP session, if the first request is `initialize`; otherwise for stateless requests.
    #[cfg(feature = "http")]
    pub fn for_http(&self) -> Server {
        Server::for_http(self.0.clone())
    }

    /// Tells the viewers of the feed that the server has ended.
    pub fn close_feed(&self) {
        if let Some(feed) = &self.0.options.feed {
            feed.close();
        }
    }

    /// Cancels all calls and waits until they have ended.
    pub(crate) async fn stop(&self) {
        Self::stop_all([self], limits::STOPPING).await;
    }

    /// Cancels all calls of some services, and waits until all of them have ended.
    pub(crate) async fn stop_all<'s>(services: impl IntoIterator<Item = &'s Self>, wait: Duration) {
        let services: Vec<&Self> = services.into_iter().collect();
        for service in &services {
            service.0.stopping.cancel();
            service.0.running.close();
        }
        let ended = async {
            for service in &services {
                service.0.running.wait().await;
            }
        };
        if tokio::time::timeout(wait, ended).await.is_err() {
            tracing::warn!("a call does not stop");
        }
    }

    /// The size of the workspace's search index.
    #[cfg(feature = "http")]
    pub(crate) fn index(&self) -> pinfold::IndexSummary {
        self.0.toolbox.session().index_summary()
    }
}

impl ServiceState {
    pub(crate) fn list(&self) -> &ListToolsResult {
        self.list.get_or_init(|| list(&self.toolbox))
    }

    /// Counts a call that was answered.
    pub(crate) fn count(&self, tool: &'static str, outcome: &'static str, taken: Duration) {
        if let Some(metrics) = &self.options.metrics {
            metrics.called(&self.options.workspace, tool, outcome, taken);
        }
    }

    /// A new conversation, for example for a connection.
    pub(crate) fn new_conversation(&self, session: Session) -> Arc<Conversation> {
        let binding = session.id().to_owned();
        Arc::new(Conversation::new(self.toolbox.on(session), binding))
    }

    /// The conversation that a caller's stateless requests name. Forgets conversations that were idle for too long.
    /// If there are too many, forgets one of the token that has the most: the one that was idle longest. A
    /// conversation with a running call is not idle.
    pub(crate) fn stateless_conversation(
        &self,
        caller: &Caller,
        name: ConversationName,
    ) -> Arc<Conversation> {
        let now = Instant::now();
        let (token, mode) = (caller.token.clone(), caller.mode.map(|mode| mode.name()));
        let key = ConversationKey { token, mode, name };
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.retain(|_, (used, conversation)| {
            has_call(conversation) || now.duration_since(*used) < self.options.conversation_idle
        });
        if let Some((used, conversation)) = named.get_mut(&key) {
            *used = now;
            return conversation.clone();
        }
        loop {
            let mut counts: HashMap<&str, usize> = HashMap::new();
            for other in named.keys() {
                *counts.entry(&other.token).or_default() += 1;
            }
            let own = counts.get(&*key.token).copied().unwrap_or_default();
            let most = counts.values().max().copied().unwrap_or_default();
            let own_full = caller.max_sessions.is_some_and(|max| own >= max.max(1));
            if !own_full && named.len() < self.options.max_conversations.max(1) {
                break;
            }
            let may_go = |other: &ConversationKey| {
                if own_full { other.token == key.token } else { counts[&*other.token] == most }
            };
            let oldest = named
                .iter()
                .filter(|(name, _)| may_go(name))
                .min_by_key(|(_, (used, conversation))| (has_call(conversation), *used));
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else { break };
            named.remove(&oldest);
        }
        let session = caller.restrict_mode(self.toolbox.session().for_another_agent());
        let session = match key.name {
            ConversationName::Session(_) => session,
            ConversationName::Client(_) => session.forgetting_writes(),
        };
        // The session's id would differ in other processes.
        let conversation = Conversation::new(self.toolbox.on(session), key.binding());
        let conversation = Arc::new(conversation);
        named.insert(key, (now, conversation.clone()));
        conversation
    }
}

/// Whether a call of a conversation is running.
fn has_call(conversation: &Arc<Conversation>) -> bool {
    Arc::strong_count(conversation) > 1
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
    let roots: Vec<_> = toolbox.session().roots().map(|root| root.display().to_string()).collect();
    let absolute = toolbox.tools().iter().any(|tool| tool.dialect.name == "classic");
    let relative =
        toolbox.tools().iter().any(|tool| !matches!(tool.dialect.name, "classic" | "memory"));
    let mut instructions = format!("File tools for {}.", roots.join(" and "));
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

    fn served(max_conversations: usize, conversation_idle: Duration) -> (TempDir, Service) {
        let dir = TempDir::new().unwrap();
        let toolbox = Toolbox::new(Session::open([dir.path()]).unwrap(), &[&DOTTED]);
        let options = Options { max_conversations, conversation_idle, ..Options::default() };
        (dir, Service::new(toolbox, options))
    }

    /// The session's id, so that the test holds no conversation.
    fn id(conversation: &Conversation) -> String {
        conversation.whole().session().id().to_owned()
    }

    #[test]
    fn a_conversation_with_a_running_call_makes_no_room_if_another_can() {
        let (_dir, service) = served(2, Duration::MAX);
        let caller = Caller::default();
        let named = |name: &str| {
            service.0.stateless_conversation(&caller, ConversationName::Session(name.into()))
        };
        let held = named("one");
        let (one, two) = (id(&held), id(&named("two")));
        named("three");
        assert_eq!(id(&named("one")), one);
        assert_ne!(id(&named("two")), two);
        // If all are in use, the oldest makes room.
        let _all = [held, named("two")];
        named("four");
        assert_eq!(service.0.named.lock().unwrap().len(), 2);
    }

    #[test]
    fn a_conversation_with_a_running_call_is_not_idle() {
        let (_dir, service) = served(2, Duration::ZERO);
        let one = || ConversationName::Session("one".into());
        let named = || service.0.stateless_conversation(&Caller::default(), one());
        let held = named();
        assert!(Arc::ptr_eq(&held, &named()));
        let one = id(&held);
        drop(held);
        assert_ne!(id(&named()), one);
    }

    #[test]
    fn a_token_has_conversations_of_its_own_and_makes_room_with_them() {
        let (_dir, service) = served(4, Duration::MAX);
        let caller = |token: &str, max_sessions| Caller {
            token: token.into(),
            max_sessions,
            ..Caller::default()
        };
        let (few, many) = (caller("few", Some(1)), caller("many", None));
        let named = |caller: &Caller, name: &str| {
            id(&service.0.stateless_conversation(caller, ConversationName::Session(name.into())))
        };
        let first = named(&few, "one");
        assert_ne!(named(&many, "one"), first);
        // The token with the most conversations makes room, even if another one's is older.
        for name in ["two", "three", "four", "five"] {
            named(&many, name);
        }
        assert_eq!(named(&few, "one"), first);
        let second = named(&few, "two");
        assert_eq!(named(&few, "two"), second);
        assert_ne!(named(&few, "one"), first);
    }

    #[test]
    fn a_state_key_is_of_one_workspace() {
        let key = |bytes: &[u8], workspace| RequestStateKey::new(bytes, workspace).map(|key| key.0);
        assert_eq!(key(&[7; 31], ""), None);
        assert_eq!(key(&[7; 32], "a"), key(&[7; 32], "a"));
        assert_ne!(key(&[7; 32], "a"), key(&[7; 32], "b"));
        assert_ne!(key(&[7; 32], "a"), key(&[8; 32], "a"));
    }
}
