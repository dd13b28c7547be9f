//! How a server ends. At the first SIGTERM or SIGINT it drains: running calls continue, and new requests are refused. At
//! the second it ends.

use std::io;

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Ends a server.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// Cancel it to drain the server: it accepts no new calls, and ends when the running calls have ended.
    pub drain: CancellationToken,
    /// Cancel it to end the server at once.
    pub now: CancellationToken,
}

impl Stop {
    /// Drains the server at the first signal, after `ending` is called, and ends it at the second.
    ///
    /// Must be called on a Tokio runtime.
    pub(crate) fn at_signals(ending: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let (stop, mut signals) = (Self::default(), Signals::new()?);
        let Self { drain, now } = stop.clone();
        tokio::spawn(async move {
            signals.next().await;
            ending();
            drain.cancel();
            signals.next().await;
            now.cancel();
        });
        Ok(stop)
    }
}

/// The signals that ask the process to end.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        let [terminate, interrupt] = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
        Ok(Self { terminate: terminate?, interrupt: interrupt? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// A code that JSON-RPC leaves to servers.
const SERVER_ENDS: ErrorCode = ErrorCode(-32030);

/// The answer to a new request while the server drains.
pub(crate) fn server_ends() -> ErrorData {
    let why = "the server is shutting down; send the request again, to another server";
    ErrorData::new(SERVER_ENDS, why, Some(json!({"error": "server_ends"})))
}
