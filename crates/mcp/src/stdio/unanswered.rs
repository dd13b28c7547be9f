//! The requests without an answer, which limit how many more are handled.

use std::collections::{HashMap, HashSet};

use pinfold::AnswerMemory;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, GetExtensions as _, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage, ServerNotification,
};

use crate::limits;

/// The requests without an answer, in both directions.
#[derive(Debug, Default)]
pub(super) struct Unanswered {
    /// Requests of the client, until their answers are written, with their sizes and the memory of their answers.
    pub(super) requests: HashMap<RequestId, (usize, AnswerMemory)>,
    /// Requests to the client, until it answers or they are cancelled.
    to_client: HashSet<RequestId>,
}

impl Unanswered {
    /// Whether another request of this size can be handled. Requests that wait for the user count only by their size.
    pub(super) fn fits(&self, bytes: usize) -> bool {
        let approvals = self.to_client.len().min(limits::MAX_APPROVAL_REQUESTS);
        let handled: usize = self.requests.values().map(|(bytes, _)| bytes).sum();
        self.requests.len() < limits::MAX_REQUESTS + approvals
            && (handled == 0 || handled + bytes <= limits::MAX_HANDLED_BYTES)
    }

    pub(super) fn received(&mut self, message: &mut ClientJsonRpcMessage, bytes: usize) {
        match message {
            JsonRpcMessage::Request(request) => {
                let memory = AnswerMemory::default();
                request.request.extensions_mut().insert(memory.clone());
                self.requests.insert(request.id.clone(), (bytes, memory));
            }
            JsonRpcMessage::Response(response) => _ = self.to_client.remove(&response.id),
            JsonRpcMessage::Error(error) => {
                error.id.iter().for_each(|id| _ = self.to_client.remove(id));
            }
            // A cancelled request gets no answer.
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(it) = &notification.notification {
                    it.params.request_id.iter().for_each(|id| _ = self.requests.remove(id));
                }
            }
        }
    }

    pub(super) fn sending(&mut self, message: &ServerJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => _ = self.to_client.insert(request.id.clone()),
            JsonRpcMessage::Notification(notification) => {
                if let ServerNotification::CancelledNotification(it) = &notification.notification {
                    it.params.request_id.iter().for_each(|id| _ = self.to_client.remove(id));
                }
            }
            // A request counts as answered once its answer is written.
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }
}
