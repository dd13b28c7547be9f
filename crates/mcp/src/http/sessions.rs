//! How many sessions there are, and which of them end.

use std::time::Duration;

use http::StatusCode;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager as _};

use super::{Door, Refusal};
use crate::limits;

impl<H: ServerHandler + Send + 'static> Door<H> {
    pub(super) async fn has_session(&self, id: &str) -> bool {
        self.sessions.sessions.read().await.contains_key(id)
    }

    /// Makes room for one more session: many clients never say that they are done with theirs. Of those
    /// that are not in use the one that was idle longest is ended.
    pub(super) async fn make_room(&self) -> Result<(), Refusal> {
        let (count, idle) = self.idle().await;
        if count < self.options.sessions {
            return Ok(());
        }
        if let Some((_, id)) = idle.into_iter().max_by_key(|(idle, _)| *idle)
            && self.end(&id, self.options.session_busy).await
        {
            return Ok(());
        }
        let why = "there are too many sessions; end one, or wait until one ends";
        Err((StatusCode::SERVICE_UNAVAILABLE, why.into()))
    }

    /// Ends sessions that were idle for too long, again and again.
    pub(super) async fn sweep(&self) {
        let every = (self.options.session_idle / 2)
            .clamp(limits::MIN_SWEEP_INTERVAL, limits::MAX_SWEEP_INTERVAL);
        loop {
            tokio::time::sleep(every).await;
            let _beginning = self.beginning.lock().await;
            for (_, id) in self.idle().await.1 {
                self.end(&id, self.options.session_idle).await;
            }
        }
    }

    /// How many sessions there are, and which of them are idle, for how long. None may begin meanwhile.
    async fn idle(&self) -> (usize, Vec<(Duration, SessionId)>) {
        let sessions: Vec<_> = self.sessions.sessions.read().await.keys().cloned().collect();
        (sessions.len(), self.in_use.idle(sessions))
    }

    /// Ends a session that is idle and was for so long. It is not there any more at once; that it is told so
    /// need not be waited for.
    async fn end(&self, id: &SessionId, idle: Duration) -> bool {
        let ends = self.in_use.forget(id, idle);
        if ends {
            let told = self.sessions.close_session(id);
            if tokio::time::timeout(limits::UNREAD_WAIT, told).await.is_err() {
                tracing::debug!("a session does not end");
            }
        }
        ends
    }
}
