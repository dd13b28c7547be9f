//! Watches all running servers of the user: finds new ones, notices those that end, and passes on events and
//! commands. Every viewer uses it.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

use pinfold_confine::device_and_inode;

use crate::connection::{Connection, connect};
use crate::limits;
use crate::message::{Command, Event, Server};
use crate::update::{ServerId, Update};

/// Watches all running servers of the user that a viewer chooses, on threads. Dropped, it closes its connections.
///
/// ```no_run
/// use std::sync::mpsc::sync_channel;
/// use pinfold_feed::{Update, WatchOptions, Watcher, directories};
///
/// let (sender, updates) = sync_channel(1_000);
/// let options = WatchOptions::new(directories(), false);
/// let watcher = Watcher::start(options, move |update| _ = sender.send(update))?;
/// for update in updates {
///     println!("{}", update.to_json());
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Watcher {
    shared: Arc<Shared>,
    search: Thread,
}

/// Options of a [`Watcher`].
#[allow(missing_debug_implementations, reason = "it holds a closure")]
pub struct WatchOptions {
    /// The directories in which servers have their sockets.
    pub directories: Vec<PathBuf>,
    /// Whether this viewer answers approval requests.
    pub answers: bool,
    /// Selects servers. The others are left alone.
    pub chosen: Box<dyn Fn(&Server) -> bool + Send + Sync>,
}

impl WatchOptions {
    /// All servers with a socket in these directories.
    pub fn new(directories: Vec<PathBuf>, answers: bool) -> Self {
        Self { directories, answers, chosen: Box::new(|_| true) }
    }

    /// Selects servers with a root that contains one of these directories or is inside it. The paths are absolute and
    /// without symlinks. Without directories, selects all servers.
    pub fn with_roots(mut self, directories: Vec<PathBuf>) -> Self {
        if !directories.is_empty() {
            self.chosen = Box::new(move |server| {
                let mut roots = server.roots.iter().map(Path::new);
                roots.any(|root| {
                    let mut all = directories.iter();
                    all.any(|directory| directory.starts_with(root) || root.starts_with(directory))
                })
            });
        }
        self
    }
}

/// The state that the threads of a watcher share.
struct Shared {
    options: WatchOptions,
    tell: Box<dyn Fn(Update) + Send + Sync>,
    state: Mutex<State>,
    stopped: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// The connections to the watched servers, and to those that have not sent their description yet.
    connections: HashMap<PathBuf, Arc<Connection>>,
    /// The sockets of servers that were not selected, or that refuse this viewer.
    ignored: HashSet<PathBuf>,
    /// Whether the viewer was told that no server is running.
    reported_none: bool,
}

impl Watcher {
    /// Starts to watch. Calls `tell` with each update, in the order in which its server sent it, on several threads.
    /// While `tell` waits, the server's events wait, and a server drops a viewer with too many waiting events.
    pub fn start(
        options: WatchOptions,
        tell: impl Fn(Update) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            options,
            tell: Box::new(tell),
            state: Mutex::default(),
            stopped: AtomicBool::new(false),
        });
        let searching = shared.clone();
        let search = std::thread::Builder::new().name("watcher".into()).spawn(move || {
            while !searching.stopped.load(Ordering::Relaxed) {
                searching.search();
                std::thread::park_timeout(limits::SEARCH_INTERVAL);
            }
        })?;
        Ok(Self { shared, search: search.thread().clone() })
    }

    /// Sends a command to a server. Fails if the server has ended.
    pub fn send(&self, server: &ServerId, command: &Command) -> io::Result<()> {
        let connection = {
            let state = self.shared.lock();
            let mut all = state.connections.iter();
            all.find(|(socket, _)| ServerId::of(socket) == *server).map(|(_, it)| it.clone())
        };
        connection.ok_or(io::ErrorKind::NotFound)?.send(command)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        self.search.unpark();
        for connection in self.shared.lock().connections.values() {
            connection.close();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects to new servers, and reports if there are none.
    fn search(self: &Arc<Self>) {
        let known: HashSet<PathBuf> = {
            let state = self.lock();
            state.connections.keys().chain(&state.ignored).cloned().collect()
        };
        let directories = self.options.directories.iter();
        let found = directories.flat_map(|it| connect(it, &known, self.options.answers));
        for (socket, connection) in found {
            let connection = Arc::new(connection);
            self.lock().connections.insert(socket.clone(), connection.clone());
            if self.stopped.load(Ordering::Relaxed) {
                connection.close();
            }
            let follow = {
                let (shared, socket) = (self.clone(), socket.clone());
                move || shared.follow(&socket, &connection)
            };
            if std::thread::Builder::new().name("events".into()).spawn(follow).is_err() {
                self.lock().connections.remove(&socket);
            }
        }
        let mut state = self.lock();
        state.ignored.retain(|socket| device_and_inode(socket).is_some());
        let none = state.connections.is_empty();
        let changed = none && !state.reported_none;
        state.reported_none = none;
        let others = state.ignored.len();
        drop(state);
        if changed {
            (self.tell)(Update::NoServer { others });
        }
    }

    /// Passes on the events of a server until it ends.
    fn follow(&self, socket: &Path, connection: &Connection) {
        let server = ServerId::of(socket);
        let (mut introduced, mut ignored) = (false, false);
        // If an event cannot be read, the connection ends, too.
        for event in connection.events().into_iter().flatten().map_while(Result::ok) {
            match &event {
                Event::Server(server) if !introduced => {
                    introduced = (self.options.chosen)(server);
                    ignored = !introduced;
                }
                // The server has closed the connection, and would do so again.
                Event::Error { .. } if !introduced => ignored = true,
                _ => {}
            }
            if ignored && !matches!(event, Event::Error { .. }) {
                break;
            }
            (self.tell)(Update::Event { server: server.clone(), event });
        }
        connection.close();
        // Sent before another thread can connect to the server again.
        if introduced {
            (self.tell)(Update::Gone { server });
        }
        let mut state = self.lock();
        if ignored {
            state.ignored.insert(socket.to_owned());
        }
        state.connections.remove(socket);
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("state", &self.state).finish_non_exhaustive()
    }
}
