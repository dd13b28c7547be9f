//! The options of a [`Service`](crate::Service).

use std::sync::Arc;
use std::time::Duration;

use pinfold_feed::Feed;
use rmcp::model::RequestStateCodec;

use crate::{Metrics, limits};

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

/// Signs the states that clients carry from one round of a call to the next.
///
/// Servers with the same key accept each other's states.
#[derive(Clone)]
pub struct RequestStateKey(pub(crate) Vec<u8>);

impl RequestStateKey {
    /// The minimum length of a key in bytes.
    pub const MIN_BYTES: usize = RequestStateCodec::MIN_KEY_LENGTH;

    /// A key for the states of one workspace. Returns `None` if there are too few bytes.
    pub fn new(bytes: &[u8], workspace: &str) -> Option<Self> {
        if bytes.len() < Self::MIN_BYTES {
            return None;
        }
        // So a state of one workspace is invalid in another.
        let mut derived =
            blake3::Hasher::new_derive_key("pinfold 2026-11-17 states of a workspace");
        derived.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        Some(Self(derived.update(workspace.as_bytes()).finalize().as_bytes().to_vec()))
    }

    /// A random key, with which states are valid in this process only.
    pub(crate) fn random() -> Option<Self> {
        let mut key = vec![0; Self::MIN_BYTES];
        getrandom::fill(&mut key).ok()?;
        Some(Self(key))
    }
}

impl std::fmt::Debug for RequestStateKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("RequestStateKey")
    }
}

/// Remembers which states were answered, for all servers with the same key. Each state is good for one answer.
pub trait UsedStateStore: std::fmt::Debug + Send + Sync {
    /// Marks a state, by a name of 64 letters and digits, for as long as states are valid. Returns whether it was not
    /// marked yet.
    fn is_first_use(&self, name: &str) -> std::io::Result<bool>;
}

/// Options of a [`Service`](crate::Service).
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the workspace if a server has several, or an empty string.
    pub workspace: String,
    /// The key that replicas share. Without one, states are valid in this process only.
    pub state_key: Option<RequestStateKey>,
    /// Remembers which states were answered, for all servers with the same key.
    pub state_marks: Option<Arc<dyn UsedStateStore>>,
    /// Counts calls.
    pub metrics: Option<Arc<Metrics>>,
    /// Whether the client's roots narrow the workspace.
    pub client_roots: ClientRoots,
    /// The interval between progress reports, for clients that request them.
    pub progress_every: Duration,
    /// The maximum number of conversations with clients that send stateless requests.
    pub max_conversations: usize,
    /// How long such a conversation lasts after its last request.
    pub conversation_idle: Duration,
    /// The feed, whose viewers can answer approval requests. It is also the observer of the toolbox's session.
    pub feed: Option<Arc<Feed>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            workspace: String::new(),
            state_key: None,
            state_marks: None,
            metrics: None,
            client_roots: ClientRoots::default(),
            progress_every: limits::PROGRESS_EVERY,
            max_conversations: limits::MAX_CONVERSATIONS,
            conversation_idle: limits::CONVERSATION_IDLE,
            feed: None,
        }
    }
}
