//! A client that does not read notifications still gets its answers.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use std::convert::Infallible;
use std::time::Duration;

use pinfold::Session;
use pinfold_dialects::{DOTTED, Toolbox};
use pinfold_mcp::{Options, Service};
use pinfold_testkit::mcp::initialize;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServiceExt as _};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A client that takes answers and nothing else.
struct Client {
    asks: UnboundedReceiver<ClientJsonRpcMessage>,
    sent: UnboundedSender<ServerJsonRpcMessage>,
}

impl Transport<RoleServer> for Client {
    type Error = Infallible;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        let sent = self.sent.clone();
        async move {
            if matches!(message, JsonRpcMessage::Notification(_)) {
                std::future::pending::<()>().await;
            }
            _ = sent.send(message);
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.asks.recv().await
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

#[tokio::test]
async fn an_answer_does_not_wait_for_what_is_logged_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let toolbox = Toolbox::new(Session::open([dir.path()]).unwrap(), &[&DOTTED]);
    let service = Service::new(toolbox, Options::default());
    let ((ask, asks), (sent, mut messages)) = (unbounded_channel(), unbounded_channel());
    let served = tokio::spawn(service.for_http().serve(Client { asks, sent }));
    let request = |id: u64, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let call = json!({"name": "file.list", "arguments": {}});
    for message in [
        request(1, "initialize", initialize(json!({}))),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        request(2, "logging/setLevel", json!({"level": "debug"})),
        request(3, "tools/call", call),
    ] {
        ask.send(serde_json::from_value(message.clone()).unwrap()).unwrap();
        let Some(id) = message.get("id") else { continue };
        // Far longer than the test takes; without a limit it could wait forever.
        let received = tokio::time::timeout(Duration::from_secs(60), messages.recv()).await;
        let received = serde_json::to_value(received.unwrap().unwrap()).unwrap();
        assert_eq!((&received["id"], received.get("error")), (id, None), "{received}");
    }
    drop(ask);
    served.await.unwrap().unwrap().waiting().await.unwrap();
}
