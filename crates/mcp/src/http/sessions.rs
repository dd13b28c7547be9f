//! The HTTP sessions: how many there are, which of them are in use, and which end.
//!
//! A session is in use while one of its requests is handled, however long the user or a search takes and whether
//! or not the client still listens. Sessions that are not in use end after a while, or to make room for another.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::StatusCode;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager as _};

use super::{Endpoint, Refusal};
use crate::limits;

impl<H: ServerHandler + Send + 'static> Endpoint<H> {
    pub(super) async fn has_session(&self, id: &str) -> bool {
        self.sessions.sessions.read().await.contains_key(id)
    }

    /// Makes room for one more session, since many clients never end theirs: ends the one that was idle longest.
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

    /// Ends sessions that were idle for too long. Never returns.
    pub(super) async fn sweep(&self) {
        let every = (self.options.session_idle / 2)
            .clamp(limits::http::MIN_SWEEP_INTERVAL, limits::http::MAX_SWEEP_INTERVAL);
        loop {
            tokio::time::sleep(every).await;
            let _beginning = self.beginning.lock().await;
            for (_, id) in self.idle().await.1 {
                self.end(&id, self.options.session_idle).await;
            }
        }
    }

    /// How many sessions there are, and which of them are idle, for how long. The caller holds `beginning`.
    async fn idle(&self) -> (usize, Vec<(Duration, SessionId)>) {
        let sessions: Vec<_> = self.sessions.sessions.read().await.keys().cloned().collect();
        (sessions.len(), self.activity.idle(sessions))
    }

    /// Ends a session if it has been idle for so long. It takes no requests from then on, even if closing it takes
    /// longer than this waits.
    async fn end(&self, id: &SessionId, idle: Duration) -> bool {
        let ends = self.activity.forget(id, idle);
        if ends {
            let closed = self.sessions.close_session(id);
            if tokio::time::timeout(limits::UNREAD_WAIT, closed).await.is_err() {
                tracing::debug!("a session does not close");
            }
        }
        ends
    }
}

/// When each session was last used, and how many of its requests are being handled.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionActivity(Arc<Mutex<HashMap<String, Activity>>>);

#[derive(Debug)]
struct Activity {
    last: Instant,
    requests: usize,
}

/// A request that is being handled, until the last clone of this is dropped. It travels with the request.
#[derive(Clone, Debug)]
pub(crate) struct ActiveRequest(#[expect(dead_code, reason = "dropping it counts")] Arc<Request>);

#[derive(Debug)]
struct Request {
    session: String,
    activity: SessionActivity,
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Some(it) = self.activity.lock().get_mut(&self.session) {
            it.requests = it.requests.saturating_sub(1);
            it.last = Instant::now();
        }
    }
}

impl SessionActivity {
    /// Adds a session.
    pub(crate) fn add(&self, session: &str) {
        self.lock().insert(session.to_owned(), Activity { last: Instant::now(), requests: 0 });
    }

    /// Notes that a session is used now, if it exists.
    pub(crate) fn note(&self, session: &str) {
        self.touch(session, 0);
    }

    /// Counts a request of a session, if that exists.
    pub(crate) fn begin(&self, session: &str) -> Option<ActiveRequest> {
        let request = || Request { session: session.to_owned(), activity: self.clone() };
        self.touch(session, 1).then(|| ActiveRequest(Arc::new(request())))
    }

    fn touch(&self, session: &str, more: usize) -> bool {
        match self.lock().get_mut(session) {
            Some(it) => {
                *it = Activity { last: Instant::now(), requests: it.requests + more };
                true
            }
            None => false,
        }
    }

    /// Which of these sessions are idle, and for how long. A session that was never added counts as idle since the start.
    /// Sessions that are not among these are forgotten.
    pub(crate) fn idle(&self, sessions: Vec<SessionId>) -> Vec<(Duration, SessionId)> {
        let (now, mut known) = (Instant::now(), self.lock());
        known.retain(|id, _| sessions.iter().any(|session| **session == **id));
        let idle = sessions.into_iter().filter_map(|id| match known.get(&*id) {
            Some(it) if it.requests > 0 => None,
            Some(it) => Some((now.saturating_duration_since(it.last), id)),
            None => Some((Duration::MAX, id)),
        });
        idle.collect()
    }

    /// Forgets a session if it has been idle for so long. It takes no requests from then on.
    pub(crate) fn forget(&self, session: &str, idle: Duration) -> bool {
        let mut known = self.lock();
        let stays =
            known.get(session).is_some_and(|it| it.requests > 0 || it.last.elapsed() < idle);
        if !stays {
            known.remove(session);
        }
        !stays
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Activity>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(activity: &SessionActivity, sessions: &[&str]) -> Vec<String> {
        let sessions = sessions.iter().map(|id| SessionId::from(*id)).collect();
        activity.idle(sessions).into_iter().map(|(_, id)| id.to_string()).collect()
    }

    #[test]
    fn a_session_is_not_idle_until_its_last_request_is_dropped() {
        let activity = SessionActivity::default();
        activity.add("one");
        activity.add("two");
        let (first, second) = (activity.begin("one").unwrap(), activity.begin("one").unwrap());
        let again = first.clone();
        for held in [first, second] {
            drop(held);
            assert_eq!(idle(&activity, &["one", "two"]), ["two"]);
            assert!(!activity.forget("one", Duration::ZERO));
        }
        drop(again);
        assert_eq!(idle(&activity, &["one", "two"]), ["one", "two"]);
        assert!(!activity.forget("one", Duration::MAX));
        assert!(activity.forget("one", Duration::ZERO));
        assert!(activity.begin("one").is_none());
    }

    #[test]
    fn unknown_sessions_are_not_stored() {
        let activity = SessionActivity::default();
        assert!(activity.begin("made up").is_none());
        activity.note("made up");
        assert!(activity.lock().is_empty());
        activity.add("ended");
        let request = activity.begin("ended");
        assert_eq!(idle(&activity, &["unknown"]), ["unknown"]);
        drop(request);
        assert!(activity.lock().is_empty());
    }
}
