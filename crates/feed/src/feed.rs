//! A server's feed: its viewers, the approval requests that they answer, and whether changes are paused.
//!
//! While no viewer is open, no event is serialised. A call never waits for a viewer, except for the answer to its
//! approval request.

mod events;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pinfold::{ApprovalAnswer, ApprovalRequest};
use pinfold_confine::{
    connect_all, listen_in, make_socket_directory, random_number, remove_socket,
};

pub(crate) use self::events::line;
use self::events::{approval, brief, now};
use crate::limits;
use crate::message::{Answer, AnswerKind, Event, RequestEnd, Server, VERSION};
use crate::viewer::{self, Viewer};

/// The feed of a server.
#[derive(Debug)]
pub struct Feed(Arc<Shared>);

/// The state that the threads of a feed share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The number of viewers that have sent `hello`. Calls read it without a lock.
    open_viewers: AtomicUsize,
    pub(crate) connections: AtomicUsize,
    paused: AtomicBool,
    last_call: AtomicU64,
    state: Mutex<State>,
    /// Notified when a request is answered and when a viewer leaves.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    server: Server,
    viewers: Vec<Viewer>,
    /// The pending approval requests, by number.
    requests: BTreeMap<u64, Pending>,
    last_request: u64,
    /// The path of the socket, once the feed listens.
    socket: Option<PathBuf>,
    closed: bool,
}

/// A pending approval request.
#[derive(Debug)]
struct Pending {
    /// Its event as a line, for viewers that open later.
    line: Arc<str>,
    request: ApprovalRequest,
    answers: Vec<AnswerKind>,
    answer: Option<ApprovalAnswer>,
}

/// An approval request for viewers, and its call.
#[allow(missing_debug_implementations, reason = "it borrows a closure for one call")]
pub struct ViewerRequest<'q> {
    /// The request to the user.
    pub request: &'q ApprovalRequest,
    /// The session of the call.
    pub session: &'q str,
    /// The client that makes the call.
    pub client: Option<&'q str>,
    /// Whether the user may approve for the session.
    pub session_grants: bool,
    /// The maximum time for an answer.
    pub max_wait: Duration,
    /// Whether the call has ended.
    pub is_cancelled: &'q dyn Fn() -> bool,
}

impl Feed {
    /// A feed without a socket.
    pub fn new(server: Server) -> Self {
        let server = Server {
            version: VERSION,
            pid: std::process::id(),
            pinfold: env!("CARGO_PKG_VERSION").into(),
            started: now(),
            ..server
        };
        let state = State {
            server,
            viewers: Vec::new(),
            requests: BTreeMap::new(),
            last_request: 0,
            socket: None,
            closed: false,
        };
        Self(Arc::new(Shared {
            open_viewers: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            paused: AtomicBool::new(false),
            last_call: AtomicU64::new(0),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }))
    }

    /// Listens on a socket in `directory`, on a thread; the caller does not wait. If that fails, the feed has no
    /// viewers.
    pub fn listen(&self, directory: PathBuf) {
        let shared = self.0.clone();
        let listen = move || {
            if let Err(error) = shared.listen(&directory) {
                tracing::warn!("no feed in {}: {error}", directory.display());
            }
        };
        if let Err(error) = std::thread::Builder::new().name("feed".into()).spawn(listen) {
            tracing::warn!("no feed: {error}");
        }
    }

    /// Whether an open viewer answers approval requests.
    pub fn can_ask(&self) -> bool {
        self.0.is_watching() && self.0.lock().can_ask()
    }

    /// Adds the name of a client to the description.
    pub fn client_connected(&self, name: &str) {
        let mut state = self.0.lock();
        let name = brief(name);
        let clients = &mut state.server.clients;
        if clients.len() < limits::MAX_CLIENTS && !clients.contains(&name) {
            clients.push(name);
            self.0.send_server(&mut state);
        }
    }

    /// Asks the user through the viewers, and waits for the answer. Returns `None` if no viewer answers requests, or
    /// the last one leaves. Then the caller asks in another way.
    pub fn ask(&self, asked: &ViewerRequest<'_>) -> Option<ApprovalAnswer> {
        let shared = &self.0;
        if !shared.is_watching() {
            return None;
        }
        // The preview may be long, so it is made without the lock.
        let mut approval = approval(asked);
        let mut state = shared.lock();
        if !state.can_ask() {
            return None;
        }
        state.last_request += 1;
        let number = state.last_request;
        approval.request = number;
        let answers = approval.answers.clone();
        let line = line(&Event::ApprovalRequest(approval));
        let (request, answer) = (asked.request.clone(), None);
        state.requests.insert(number, Pending { line: line.clone(), request, answers, answer });
        shared.send_line(&mut state, &line);
        let begin = Instant::now();
        let (end, answer) = loop {
            let pending = state.requests.get_mut(&number);
            if let Some(answer) = pending.and_then(|pending| pending.answer.take()) {
                let end = match answer {
                    ApprovalAnswer::Once => RequestEnd::Once,
                    ApprovalAnswer::Session => RequestEnd::Session,
                    _ => RequestEnd::No,
                };
                break (end, Some(answer));
            }
            if (asked.is_cancelled)() {
                break (RequestEnd::Cancelled, Some(ApprovalAnswer::Unavailable));
            }
            if !state.can_ask() {
                break (RequestEnd::PassedOn, None);
            }
            if begin.elapsed() >= asked.max_wait {
                break (RequestEnd::Expired, Some(ApprovalAnswer::expired(asked.max_wait)));
            }
            let waited = shared.changed.wait_timeout(state, limits::CANCEL_POLL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        state.requests.remove(&number);
        shared.send_line(&mut state, &events::line(&Event::ApprovalEnded { request: number, end }));
        answer
    }

    /// Removes the socket. Connected viewers stay until the process ends.
    pub fn close(&self) {
        let mut state = self.0.lock();
        state.closed = true;
        if let Some(socket) = state.socket.take() {
            _ = remove_socket(&socket);
        }
    }
}

impl State {
    /// Whether an open viewer answers requests.
    fn can_ask(&self) -> bool {
        self.viewers.iter().any(|viewer| viewer.answers)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_watching(&self) -> bool {
        self.open_viewers.load(Ordering::Relaxed) > 0
    }

    fn listen(self: &Arc<Self>, directory: &Path) -> std::io::Result<()> {
        make_socket_directory(directory)?;
        let number = random_number().map_err(std::io::Error::other)?;
        let name = format!("{}-{number:016x}", std::process::id());
        let (listener, socket) = listen_in(directory, &name)?;
        {
            let mut state = self.lock();
            if state.closed {
                return remove_socket(&socket);
            }
            state.socket = Some(socket.clone());
        }
        // Removes the sockets of killed servers.
        drop(connect_all(directory, |path| path != socket));
        loop {
            match listener.accept() {
                Ok((stream, _)) => viewer::start(self.clone(), stream),
                // The process may have too many files open.
                Err(error) => {
                    tracing::debug!("the feed cannot accept a viewer: {error}");
                    std::thread::sleep(limits::CANCEL_POLL);
                }
            }
        }
    }

    /// Sends an event to all viewers.
    fn send(&self, event: &Event) {
        let line = line(event);
        self.send_line(&mut self.lock(), &line);
    }

    fn send_server(&self, state: &mut State) {
        if self.is_watching() {
            let line = line(&Event::Server(state.server.clone()));
            self.send_line(state, &line);
        }
    }

    /// Sends a line to all viewers, and drops viewers that do not read.
    fn send_line(&self, state: &mut State, line: &Arc<str>) {
        state.viewers.retain(|viewer| {
            let taken = viewer.send(line);
            if !taken {
                tracing::debug!("a viewer that does not read is dropped");
                viewer.disconnect();
            }
            taken
        });
        self.viewers_changed(state);
    }

    fn viewers_changed(&self, state: &State) {
        if self.open_viewers.swap(state.viewers.len(), Ordering::Relaxed) != state.viewers.len() {
            self.changed.notify_all();
        }
    }

    /// Adds a viewer, and sends it the server's description and the pending requests.
    pub(crate) fn add(&self, viewer: Viewer) {
        let mut state = self.lock();
        let server = line(&Event::Server(state.server.clone()));
        let lines = [&server].into_iter().chain(state.requests.values().map(|it| &it.line));
        let lines: Vec<_> = lines.cloned().collect();
        // The viewer counts before it gets the first message, so it misses no later call.
        state.viewers.push(viewer);
        self.viewers_changed(&state);
        let viewer = state.viewers.last().expect("it was added just now");
        if !lines.iter().all(|line| viewer.send(line)) {
            viewer.disconnect();
        }
    }

    /// Removes a viewer whose connection has ended.
    pub(crate) fn remove(&self, number: usize) {
        let mut state = self.lock();
        state.viewers.retain(|viewer| viewer.number != number);
        self.viewers_changed(&state);
    }

    /// Pauses or resumes changes.
    pub(crate) fn pause(&self, paused: bool) {
        let mut state = self.lock();
        self.paused.store(paused, Ordering::Relaxed);
        state.server.paused = paused;
        self.send_server(&mut state);
    }

    /// Answers a request. Ignored if the request has ended or has an answer.
    pub(crate) fn answer(&self, answer: Answer) {
        let mut state = self.lock();
        let Some(pending) = state.requests.get_mut(&answer.request) else { return };
        if pending.answer.is_some() {
            return;
        }
        let message = answer.message.map(|message| brief(message.trim()));
        pending.answer = Some(match answer.answer {
            AnswerKind::Session if pending.answers.contains(&AnswerKind::Session) => {
                ApprovalAnswer::Session
            }
            AnswerKind::Session | AnswerKind::Once => ApprovalAnswer::Once,
            AnswerKind::No => ApprovalAnswer::Denied(message.filter(|message| !message.is_empty())),
        });
        self.changed.notify_all();
    }

    /// The whole diff of a request, as a line.
    pub(crate) fn diff(&self, number: u64) -> Option<Arc<str>> {
        let request = self.lock().requests.get(&number)?.request.clone();
        // This may take some time, so it is done without the lock.
        let text = request.preview(limits::MAX_DIFF_CHARS);
        Some(line(&Event::Diff { request: number, text }))
    }
}
