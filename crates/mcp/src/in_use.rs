//! Which sessions over HTTP are in use, so that room for another is made where nobody misses it.
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
    /// A session is used now.
    pub(crate) fn note(&self, session: &str) {
        self.touch(session, 0);
    }

    /// A request of a session is under way from now on.
    pub(crate) fn begin(&self, session: &str) -> UnderWay {
        self.touch(session, 1);
        UnderWay(Arc::new(Request { session: session.to_owned(), in_use: self.clone() }))
    }

    fn touch(&self, session: &str, more: usize) {
        let (last, mut sessions) = (Instant::now(), self.lock());
        let it = sessions.entry(session.to_owned()).or_insert(Use { last, under_way: 0 });
        *it = Use { last, under_way: it.under_way + more };
    }

    /// Forgets all sessions but these.
    pub(crate) fn keep(&self, sessions: &[SessionId]) {
        self.lock().retain(|id, _| sessions.iter().any(|known| **known == **id));
    }

    /// Which of these sessions was idle longest, and for how long. None is while a request of it is
    /// under way.
    pub(crate) fn idle_longest(&self, sessions: Vec<SessionId>) -> Option<(Duration, SessionId)> {
        let (now, known) = (Instant::now(), self.lock());
        let idle = sessions.into_iter().filter_map(|id| match known.get(&*id) {
            Some(it) if it.under_way > 0 => None,
            Some(it) => Some((now.saturating_duration_since(it.last), id)),
            None => Some((Duration::MAX, id)),
        });
        idle.max_by_key(|(idle, _)| *idle)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Use>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
