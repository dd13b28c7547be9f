//! The open connections. If there are too many, the oldest unauthenticated one is closed.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pinfold::{AnswerMemory, WeakAnswerMemory};
use tokio_util::sync::CancellationToken;

use crate::limits;

/// The open connections, by number.
#[derive(Clone, Debug)]
pub(super) struct Connections {
    open: Arc<Mutex<Open>>,
    max: usize,
    /// How long a client may take to read an answer for whose memory other calls wait.
    answer_wait: Duration,
}

#[derive(Debug, Default)]
struct Open {
    next_number: u64,
    /// Oldest first.
    connections: BTreeMap<u64, Arc<State>>,
}

/// An open connection. It counts until this is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    /// The address of the client, or of the proxy in front of the server.
    pub(super) address: IpAddr,
    all: Connections,
    number: u64,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    authenticated: AtomicBool,
    unread_body: AtomicBool,
    closed: CancellationToken,
    /// The memory of the answer that is being sent.
    answer: Mutex<WeakAnswerMemory>,
}

impl Connections {
    pub(super) fn new(max: usize, answer_wait: Duration) -> Self {
        Self { open: Arc::default(), max, answer_wait }
    }

    /// Adds a connection. Returns `None` if there are too many and all of them are authenticated.
    pub(super) fn open(&self, address: IpAddr) -> Option<Connection> {
        let mut open = self.lock();
        if open.connections.len() >= self.max {
            let unauthenticated = |state: &Arc<State>| !state.authenticated.load(Ordering::Relaxed);
            let oldest = open.connections.iter().find(|(_, state)| unauthenticated(state));
            let oldest = *oldest?.0;
            open.connections.remove(&oldest)?.closed.cancel();
        }
        let (number, state) = (open.next_number, Arc::<State>::default());
        open.next_number += 1;
        open.connections.insert(number, state.clone());
        drop(open);
        Some(Connection { address: address.to_canonical(), all: self.clone(), number, state })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Notes that a request on the connection was accepted.
    pub(super) fn set_authenticated(&self) {
        self.state.authenticated.store(true, Ordering::Relaxed);
    }

    /// Notes whether the current request has a body that was not read.
    pub(super) fn set_unread_body(&self, unread: bool) {
        self.state.unread_body.store(unread, Ordering::Relaxed);
    }

    pub(super) fn has_unread_body(&self) -> bool {
        self.state.unread_body.load(Ordering::Relaxed)
    }

    /// The memory of the next answer.
    pub(super) fn answer_memory(&self) -> AnswerMemory {
        let memory = AnswerMemory::default();
        *self.answer() = memory.downgrade();
        memory
    }

    fn answer(&self) -> MutexGuard<'_, WeakAnswerMemory> {
        self.state.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when the connection has to close to make room: for another, or for the answers of others that wait for
    /// memory while the client does not read its own.
    pub(super) async fn closed(&self) {
        let overdue = async {
            while !self.answer().is_overdue(self.all.answer_wait) {
                tokio::time::sleep(limits::http::ANSWER_CHECK_INTERVAL).await;
            }
            let address = self.address;
            tracing::warn!(%address, "a client does not read its answer, and others wait for the memory");
        };
        tokio::select! {
            () = self.state.closed.cancelled() => {}
            () = overdue => {}
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.all.lock().connections.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_unauthenticated_connection_makes_room() {
        let connections = Connections::new(3, Duration::MAX);
        let open = || connections.open(IpAddr::from([127, 0, 0, 1]));
        let [known, old, new] = std::array::from_fn(|_| open().unwrap());
        known.set_authenticated();
        let closed = |connection: &Connection| connection.state.closed.is_cancelled();
        let fourth = open().unwrap();
        assert_eq!([&known, &old, &new, &fourth].map(closed), [false, true, false, false]);
        // The fourth has its place already.
        drop(old);
        new.set_authenticated();
        fourth.set_authenticated();
        assert!(open().is_none());
        drop(known);
        assert!(open().is_some());
    }
}
