//! The updates that a watcher sends to its viewer.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::message::Event;

/// Identifies a running server by the name of its socket, which is unique.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ServerId(Arc<str>);

impl ServerId {
    pub(crate) fn of(socket: &Path) -> Self {
        Self(socket.file_stem().unwrap_or_default().to_string_lossy().into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ServerId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for ServerId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// An update that a watcher sends to its viewer.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "nearly all are events, and few are kept")]
pub enum Update {
    /// A server has sent an event. The first event of each server is [`Event::Server`]. If the server refuses this
    /// viewer, the only event is [`Event::Error`].
    Event {
        /// The server.
        server: ServerId,
        /// The event.
        event: Event,
    },
    /// A server has ended, or has dropped this viewer. In the second case the watcher connects again, and the server
    /// starts with [`Event::Server`]. Its approval requests no longer need answers.
    Gone {
        /// The server.
        server: ServerId,
    },
    /// No selected server is running. Sent at the start, and when the last one has ended.
    NoServer {
        /// How many servers were found but not selected.
        others: usize,
    },
}

impl Update {
    /// The update as JSON on one line: the event with the field `server`; or an object of the type `gone` with that
    /// field, or of the type `no_server`.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Line<'u> {
            #[serde(skip_serializing_if = "Option::is_none")]
            server: Option<&'u ServerId>,
            #[serde(flatten)]
            content: Content<'u>,
        }
        #[derive(Serialize)]
        #[serde(untagged)]
        enum Content<'u> {
            Event(&'u Event),
            Own(Own),
        }
        #[derive(Serialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum Own {
            Gone,
            NoServer { others: usize },
        }
        let (server, content) = match self {
            Self::Event { server, event } => (Some(server), Content::Event(event)),
            Self::Gone { server } => (Some(server), Content::Own(Own::Gone)),
            Self::NoServer { others } => (None, Content::Own(Own::NoServer { others: *others })),
        };
        serde_json::to_string(&Line { server, content })
            .expect("updates are plain data with text keys")
    }
}
