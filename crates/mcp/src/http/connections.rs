//! The open connections. If there are too many, the oldest unauthenticated one is closed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// The open connections, by number.
#[derive(Clone, Debug)]
pub(super) struct Connections {
    open: Arc<Mutex<Open>>,
    max: usize,
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
    all: Connections,
    number: u64,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    authenticated: AtomicBool,
    closed: CancellationToken,
}

impl Connections {
    pub(super) fn new(max: usize) -> Self {
        Self { open: Arc::default(), max }
    }

    /// Adds a connection. Returns `None` if there are too many and all of them are authenticated.
    pub(super) fn open(&self) -> Option<Connection> {
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
        Some(Connection { all: self.clone(), number, state })
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

    /// Returns when the connection has to close to make room.
    pub(super) async fn closed(&self) {
        self.state.closed.cancelled().await;
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
        let connections = Connections::new(3);
        let [known, old, new] = std::array::from_fn(|_| connections.open().unwrap());
        known.set_authenticated();
        let closed = |connection: &Connection| connection.state.closed.is_cancelled();
        let fourth = connections.open().unwrap();
        assert_eq!([&known, &old, &new, &fourth].map(closed), [false, true, false, false]);
        // The fourth has its place already.
        drop(old);
        new.set_authenticated();
        fourth.set_authenticated();
        assert!(connections.open().is_none());
        drop(known);
        assert!(connections.open().is_some());
    }
}
