//! Passes the events of all servers on to every open page.
//!
//! Servers are watched only while a page is open, so that a server does not wait for an answer when nobody sees the
//! request. A page that opens gets the newest events first, in the same form, so it need not know which are old.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use pinfold_feed::{Command, Event, ServerId, Update, WatchOptions, Watcher};
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::limits;

/// The open pages, and the events that they get.
pub(crate) struct Live {
    state: Arc<Mutex<State>>,
    watch: Box<dyn Fn() -> WatchOptions + Send + Sync>,
}

#[derive(Default)]
struct State {
    pages: Vec<Sender<Bytes>>,
    watcher: Option<Arc<Watcher>>,
    /// The number of the current watcher. Updates of earlier ones are ignored.
    watchers: u64,
    servers: BTreeMap<ServerId, WatchedServer>,
    /// The newest events about calls and changes.
    recent: VecDeque<Bytes>,
    /// The event that no server is running, if none is.
    none: Option<Bytes>,
    /// Since when no page has been open.
    closed: Option<Instant>,
}

/// A server and its pending requests.
struct WatchedServer {
    introduction: Bytes,
    journal: Option<PathBuf>,
    requests: BTreeMap<u64, Bytes>,
}

/// The reason why a command was not sent.
pub(crate) enum SendError {
    /// The server has ended.
    NoServer,
    /// There is no such request, or it has ended.
    NoRequest,
}

impl Live {
    /// `watch` returns the servers to watch.
    pub(crate) fn new(watch: Box<dyn Fn() -> WatchOptions + Send + Sync>) -> Self {
        Self { state: Arc::default(), watch }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The events for a page that opens.
    pub(crate) fn open(&self) -> io::Result<Receiver<Bytes>> {
        let mut state = self.lock();
        if state.watcher.is_none() {
            state.watchers += 1;
            let (shared, number) = (self.state.clone(), state.watchers);
            let tell = move |update| {
                let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
                if state.watchers == number {
                    state.tell(&update);
                }
            };
            state.watcher = Some(Arc::new(Watcher::start((self.watch)(), tell)?));
        }
        let (page, events) = mpsc::channel(limits::MAX_QUEUED_EVENTS);
        state.greet(&page);
        state.pages.push(page);
        state.closed = None;
        Ok(events)
    }

    /// Looks for pages that were closed. After the last one has closed, servers are no longer watched.
    pub(crate) fn sweep(&self, ping: bool) {
        let mut state = self.lock();
        let line = Bytes::from_static(b":\n\n");
        state
            .pages
            .retain(|page| !page.is_closed() && (!ping || page.try_send(line.clone()).is_ok()));
        if !state.pages.is_empty() || state.watcher.is_none() {
            return;
        }
        let closed = *state.closed.get_or_insert_with(Instant::now);
        if closed.elapsed() >= limits::CLOSE_WAIT {
            let watchers = state.watchers + 1;
            // Dropped after the lock is released, since its threads need the lock to end.
            let old = std::mem::replace(&mut *state, State { watchers, ..State::default() });
            drop(state);
            drop(old);
        }
    }

    /// Sends a command to a server. An answer must be for a pending request.
    pub(crate) fn send(&self, server: &ServerId, command: &Command) -> Result<(), SendError> {
        let watcher = {
            let state = self.lock();
            let served = state.servers.get(server).ok_or(SendError::NoServer)?;
            let request = match command {
                Command::Answer(answer) => Some(answer.request),
                Command::Diff { request } => Some(*request),
                _ => None,
            };
            if request.is_some_and(|request| !served.requests.contains_key(&request)) {
                return Err(SendError::NoRequest);
            }
            state.watcher.clone().ok_or(SendError::NoServer)?
        };
        watcher.send(server, command).map_err(|_| SendError::NoServer)
    }

    /// The servers.
    pub(crate) fn servers(&self) -> Vec<ServerId> {
        self.lock().servers.keys().cloned().collect()
    }

    /// The directories of the servers' journals.
    pub(crate) fn journals(&self) -> Vec<PathBuf> {
        self.lock().servers.values().filter_map(|served| served.journal.clone()).collect()
    }
}

impl State {
    /// Sends the current state to a page that opens.
    fn greet(&self, page: &Sender<Bytes>) {
        let hello = format!("{{\"type\":\"hello\",\"pinfold\":\"{}\"}}", env!("CARGO_PKG_VERSION"));
        let introductions = self.servers.values().map(|served| &served.introduction);
        let requests = self.servers.values().flat_map(|served| served.requests.values());
        let all = introductions.chain(&self.recent).chain(requests).chain(&self.none);
        for event in [line(&hello)].iter().chain(all) {
            // There is room for all of them.
            _ = page.try_send(event.clone());
        }
    }

    /// Records an update, and sends it to every page.
    fn tell(&mut self, update: &Update) {
        let line = line(&update.to_json());
        match update {
            Update::Event { server, event } => {
                self.none = None;
                self.note(server, event, &line);
            }
            Update::Gone { server } => _ = self.servers.remove(server),
            Update::NoServer { .. } => self.none = Some(line.clone()),
        }
        self.pages.retain(|page| page.try_send(line.clone()).is_ok());
    }

    fn note(&mut self, server: &ServerId, event: &Event, line: &Bytes) {
        match event {
            Event::Server(described) => {
                let (introduction, journal) =
                    (line.clone(), described.journal.clone().map(Into::into));
                let served = self.servers.entry(server.clone());
                let served = served.or_insert_with(|| WatchedServer {
                    introduction: Bytes::new(),
                    journal,
                    requests: BTreeMap::new(),
                });
                served.introduction = introduction;
            }
            Event::ApprovalRequest(approval) => {
                if let Some(served) = self.servers.get_mut(server) {
                    served.requests.insert(approval.request, line.clone());
                }
            }
            Event::ApprovalEnded { request, .. } => {
                if let Some(served) = self.servers.get_mut(server) {
                    served.requests.remove(request);
                }
            }
            Event::CallStarted(_) | Event::CallEnded(_) | Event::Change(_) => {
                if self.recent.len() == limits::MAX_RECENT_EVENTS {
                    self.recent.pop_front();
                }
                self.recent.push_back(line.clone());
            }
            Event::Diff { .. } | Event::Error { .. } => {}
        }
    }
}

/// JSON on one line, as a server-sent event.
fn line(json: &str) -> Bytes {
    format!("data: {json}\n\n").into()
}
