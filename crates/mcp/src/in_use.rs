//! Which sessions over HTTP are in use: the others end when they were idle for long, or make room for another.
//!
//! A request is under way from when it came in until whoever answers it lets go of it: for as long as a
//! person or a search takes, and whether or not the client still listens.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::transport::streamable_http_server::session::SessionId;

/// When each session was last used, and how many of its requests are under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct InUse(Arc<Mutex<HashMap<String, Use>>>);

#[derive(Debug)]
struct Use {
    last: Instant,
    under_way: usize,
}

/// A request that is under way, until the last of these is dropped. It travels with the request.
#[derive(Clone, Debug)]
pub(crate) struct UnderWay(#[expect(dead_code, reason = "it is there to be dropped")] Arc<Request>);

#[derive(Debug)]
struct Request {
    session: String,
    in_use: InUse,
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Some(it) = self.in_use.lock().get_mut(&self.session) {
            it.under_way = it.under_way.saturating_sub(1);
            it.last = Instant::now();
        }
    }
}

impl InUse {
    /// A session begins.
    pub(crate) fn add(&self, session: &str) {
        self.lock().insert(session.to_owned(), Use { last: Instant::now(), under_way: 0 });
    }

    /// A session is used now, if there is one of that name.
    pub(crate) fn note(&self, session: &str) {
        self.touch(session, 0);
    }

    /// A request of a session is under way from now on, if there is one of that name.
    pub(crate) fn begin(&self, session: &str) -> Option<UnderWay> {
        let request = || Request { session: session.to_owned(), in_use: self.clone() };
        self.touch(session, 1).then(|| UnderWay(Arc::new(request())))
    }

    fn touch(&self, session: &str, more: usize) -> bool {
        match self.lock().get_mut(session) {
            Some(it) => {
                *it = Use { last: Instant::now(), under_way: it.under_way + more };
                true
            }
            None => false,
        }
    }

    /// Which of these sessions are idle, and for how long. None is while a request of it is under way, and one
    /// that nobody was told of always was. All others are forgotten.
    pub(crate) fn idle(&self, sessions: Vec<SessionId>) -> Vec<(Duration, SessionId)> {
        let (now, mut known) = (Instant::now(), self.lock());
        known.retain(|id, _| sessions.iter().any(|session| **session == **id));
        let idle = sessions.into_iter().filter_map(|id| match known.get(&*id) {
            Some(it) if it.under_way > 0 => None,
            Some(it) => Some((now.saturating_duration_since(it.last), id)),
            None => Some((Duration::MAX, id)),
        });
        idle.collect()
    }

    /// Forgets a session, if it is idle and was for so long. No request of it begins after that.
    pub(crate) fn forget(&self, session: &str, idle: Duration) -> bool {
        let mut known = self.lock();
        let stays =
            known.get(session).is_some_and(|it| it.under_way > 0 || it.last.elapsed() < idle);
        if !stays {
            known.remove(session);
        }
        !stays
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Use>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(in_use: &InUse, sessions: &[&str]) -> Vec<String> {
        let sessions = sessions.iter().map(|id| SessionId::from(*id)).collect();
        in_use.idle(sessions).into_iter().map(|(_, id)| id.to_string()).collect()
    }

    #[test]
    fn a_session_is_not_idle_until_its_last_request_is_let_go_of() {
        let in_use = InUse::default();
        in_use.add("one");
        in_use.add("two");
        let (first, second) = (in_use.begin("one").unwrap(), in_use.begin("one").unwrap());
        let again = first.clone();
        for held in [first, second] {
            drop(held);
            assert_eq!(idle(&in_use, &["one", "two"]), ["two"]);
            assert!(!in_use.forget("one", Duration::ZERO));
        }
        drop(again);
        assert_eq!(idle(&in_use, &["one", "two"]), ["one", "two"]);
        assert!(!in_use.forget("one", Duration::MAX));
        assert!(in_use.forget("one", Duration::ZERO));
        assert!(in_use.begin("one").is_none());
    }

    #[test]
    fn nothing_is_kept_of_sessions_that_are_not_there() {
        let in_use = InUse::default();
        assert!(in_use.begin("made up").is_none());
        in_use.note("made up");
        assert!(in_use.lock().is_empty());
        in_use.add("ended");
        let request = in_use.begin("ended");
        assert_eq!(idle(&in_use, &["unknown"]), ["unknown"]);
        drop(request);
        assert!(in_use.lock().is_empty());
    }
}
