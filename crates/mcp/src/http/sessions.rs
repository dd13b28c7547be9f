//! The HTTP sessions: how many there are, which of them are in use, and which end.
//!
//! A session is in use while one of its requests is handled, however long the user or a search takes, and even if the
//! client has disconnected. A session that is not in use ends after a while, or to make room for another.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::StatusCode;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager as _};

use super::body::Refusal;
use super::endpoint::Endpoint;
use crate::caller::Caller;
use crate::limits;

impl<H: ServerHandler + Send + 'static> Endpoint<H> {
    pub(super) async fn has_session(&self, id: &str) -> bool {
        self.sessions.sessions.read().await.contains_key(id)
    }

    /// Makes room for one more session, since many clients never end theirs. Ends the session that was idle longest,
    /// or the token's own if the token has reached its maximum.
    pub(super) async fn make_room(&self, caller: &Caller) -> Result<(), Refusal> {
        let (all, mut idle) = self.idle().await;
        let own = self.activity.of_token(caller);
        let full = all >= self.options.max_sessions;
        let own_full = caller.max_sessions.is_some_and(|max| own.len() >= max);
        if !full && !own_full {
            return Ok(());
        }
        if own_full {
            idle.retain(|(_, id)| own.iter().any(|own| **own == **id));
        }
        if let Some((_, id)) = idle.into_iter().max_by_key(|(idle, _)| *idle)
            && self.end(&id, self.options.session_busy).await
        {
            return Ok(());
        }
        if let Some(max) = caller.max_sessions.filter(|_| own_full) {
            let why = format!(
                "this token has its maximum of sessions ({max}); end one, or wait until one ends"
            );
            return Err((StatusCode::TOO_MANY_REQUESTS, why));
        }
        let why = "there are too many sessions; end one, or wait until one ends";
        Err((StatusCode::SERVICE_UNAVAILABLE, why.into()))
    }

    /// Ends the sessions of all callers that `keep` rejects, including those in use. The caller of this function
    /// holds `session_start`.
    pub(super) async fn end_others(&self, keep: impl Fn(&Caller) -> bool) {
        for id in self.activity.forget_others(keep) {
            self.close(&id.into()).await;
        }
    }

    /// Ends sessions that were idle for too long. Never returns.
    pub(super) async fn end_idle_sessions(&self) {
        let every = (self.options.session_idle / 2)
            .clamp(limits::http::MIN_IDLE_CHECK_INTERVAL, limits::http::MAX_IDLE_CHECK_INTERVAL);
        loop {
            tokio::time::sleep(every).await;
            let _session_start = self.session_start.lock().await;
            for (_, id) in self.idle().await.1 {
                self.end(&id, self.options.session_idle).await;
            }
        }
    }

    /// The number of sessions, and the idle ones with the time that they have been idle. The caller holds
    /// `session_start`.
    async fn idle(&self) -> (usize, Vec<(Duration, SessionId)>) {
        let sessions: Vec<_> = self.sessions.sessions.read().await.keys().cloned().collect();
        (sessions.len(), self.activity.idle(sessions))
    }

    /// Ends a session if it has been idle for at least this long. It accepts no requests from then on, even if
    /// closing it takes longer than this function waits.
    async fn end(&self, id: &SessionId, idle: Duration) -> bool {
        let ends = self.activity.forget(id, idle);
        if ends {
            self.close(id).await;
        }
        ends
    }

    async fn close(&self, id: &SessionId) {
        let closed = self.sessions.close_session(id);
        if tokio::time::timeout(limits::UNREAD_WAIT, closed).await.is_err() {
            tracing::debug!("a session does not close");
        }
    }
}

/// When each session was last used, and how many of its requests are being handled.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionActivity(Arc<Mutex<HashMap<String, Activity>>>);

#[derive(Debug)]
struct Activity {
    owner: Caller,
    last: Instant,
    requests: usize,
}

/// A request that is being handled, until the last clone of this is dropped. It is stored in the request's
/// extensions.
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
    pub(crate) fn add(&self, session: &str, owner: &Caller) {
        let activity = Activity { owner: owner.clone(), last: Instant::now(), requests: 0 };
        self.lock().insert(session.to_owned(), activity);
    }

    /// Counts a request of a session. Returns `None` if the session does not exist or belongs to another caller.
    pub(crate) fn begin(&self, session: &str, caller: &Caller) -> Option<ActiveRequest> {
        let mut known = self.lock();
        let it = known.get_mut(session).filter(|it| it.owner.is_same(caller))?;
        it.last = Instant::now();
        it.requests += 1;
        drop(known);
        let request = Request { session: session.to_owned(), activity: self.clone() };
        Some(ActiveRequest(Arc::new(request)))
    }

    /// The sessions of a token, in all modes.
    pub(crate) fn of_token(&self, caller: &Caller) -> Vec<String> {
        let known = self.lock();
        let own = known.iter().filter(|(_, it)| it.owner.token == caller.token);
        own.map(|(id, _)| id.clone()).collect()
    }

    /// Forgets the sessions of all callers that `keep` rejects, and returns them.
    pub(crate) fn forget_others(&self, keep: impl Fn(&Caller) -> bool) -> Vec<String> {
        let mut known = self.lock();
        known.extract_if(|_, it| !keep(&it.owner)).map(|(id, _)| id).collect()
    }

    /// The idle sessions among these, with the time that they have been idle. A session that was never added counts
    /// as idle since the start. Sessions that are not in the list are forgotten.
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

    /// Forgets a session if it has been idle for at least this long. It accepts no requests from then on.
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
    use pinfold::Mode;

    use super::*;

    fn idle(activity: &SessionActivity, sessions: &[&str]) -> Vec<String> {
        let sessions = sessions.iter().map(|id| SessionId::from(*id)).collect();
        activity.idle(sessions).into_iter().map(|(_, id)| id.to_string()).collect()
    }

    #[test]
    fn a_session_is_not_idle_until_its_last_request_is_dropped() {
        let (activity, caller) = (SessionActivity::default(), Caller::default());
        activity.add("one", &caller);
        activity.add("two", &caller);
        let begin = || activity.begin("one", &caller).unwrap();
        let (first, second) = (begin(), begin());
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
        assert!(activity.begin("one", &caller).is_none());
    }

    #[test]
    fn a_session_is_its_callers_alone() {
        let activity = SessionActivity::default();
        let caller = |token: &str, mode| Caller { token: token.into(), mode, max_sessions: None };
        let (owner, other) = (caller("a", None), caller("b", None));
        activity.add("one", &owner);
        activity.add("two", &other);
        assert!(activity.begin("one", &owner).is_some());
        assert!(activity.begin("one", &other).is_none());
        assert!(activity.begin("one", &caller("a", Some(Mode::Plan))).is_none());
        assert_eq!(activity.of_token(&owner), ["one"]);
        assert_eq!(activity.forget_others(|caller| caller.is_same(&other)), ["one"]);
        assert!(activity.begin("two", &other).is_some());
    }

    #[test]
    fn unknown_sessions_are_not_stored() {
        let (activity, caller) = (SessionActivity::default(), Caller::default());
        assert!(activity.begin("made up", &caller).is_none());
        assert!(activity.lock().is_empty());
        activity.add("ended", &caller);
        let request = activity.begin("ended", &caller);
        assert_eq!(idle(&activity, &["unknown"]), ["unknown"]);
        drop(request);
        assert!(activity.lock().is_empty());
    }
}
