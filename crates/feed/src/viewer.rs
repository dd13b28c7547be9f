//! One viewer's connection, on the server's side: a thread that reads its commands, and one that writes events.
//!
//! A viewer is dropped if it belongs to another user, does not read, sends too many commands, or sends anything else.

use std::io::{self, BufReader, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::geteuid;

use crate::connection::read_line;
use crate::feed::{Shared, line};
use crate::limits;
use crate::message::{Command, Event, VERSION};

/// A viewer that has sent `hello`.
#[derive(Debug)]
pub(crate) struct Viewer {
    pub(crate) number: usize,
    /// Whether it answers approval requests.
    pub(crate) answers: bool,
    queue: Queue,
    stream: UnixStream,
}

/// The lines to write.
#[derive(Clone, Debug)]
struct Queue {
    lines: SyncSender<Arc<str>>,
    bytes: Arc<AtomicUsize>,
}

impl Queue {
    /// Adds a line without waiting. Returns false if there is no room.
    fn add(&self, line: &Arc<str>) -> bool {
        let queued = self.bytes.fetch_add(line.len(), Ordering::Relaxed);
        queued < limits::MAX_QUEUED_BYTES && self.lines.try_send(line.clone()).is_ok()
    }
}

impl Viewer {
    /// Sends a line without waiting. Returns false if the viewer does not read.
    pub(crate) fn send(&self, line: &Arc<str>) -> bool {
        self.queue.add(line)
    }

    pub(crate) fn disconnect(&self) {
        _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Serves a connection on its own threads, if it is from the same user and there are not too many.
pub(crate) fn start(shared: Arc<Shared>, stream: UnixStream) {
    if !is_same_user(&stream) {
        tracing::warn!("a viewer of another user is refused");
        return;
    }
    if shared.connections.fetch_add(1, Ordering::Relaxed) >= limits::MAX_CONNECTIONS {
        shared.connections.fetch_sub(1, Ordering::Relaxed);
        return;
    }
    let connections = shared.clone();
    let serve = move || {
        if let Err(error) = serve(&shared, &stream) {
            tracing::debug!("a viewer is dropped: {error}");
        }
        shared.connections.fetch_sub(1, Ordering::Relaxed);
    };
    if std::thread::Builder::new().name("viewer".into()).spawn(serve).is_err() {
        connections.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether the peer process belongs to this user.
pub(crate) fn is_same_user(stream: &UnixStream) -> bool {
    #[cfg(target_os = "linux")]
    let user = rustix::net::sockopt::socket_peercred(stream).map(|peer| peer.uid.as_raw());
    #[cfg(not(target_os = "linux"))]
    let user = nix::unistd::getpeereid(stream).map(|(user, _)| user.as_raw());
    user.is_ok_and(|user| user == geteuid().as_raw())
}

/// Serves a connection until it ends.
fn serve(shared: &Arc<Shared>, stream: &UnixStream) -> io::Result<()> {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    stream.set_write_timeout(Some(limits::UNREAD_WAIT))?;
    stream.set_read_timeout(Some(limits::HELLO_WAIT))?;
    let mut input = BufReader::new(stream.try_clone()?);
    let (lines, received) = sync_channel(limits::MAX_QUEUED_LINES);
    let queue = Queue { lines, bytes: Arc::default() };
    let writer = {
        let (stream, bytes) = (stream.try_clone()?, queue.bytes.clone());
        std::thread::Builder::new()
            .name("viewer writer".into())
            .spawn(move || write(&stream, &received, &bytes))?
    };
    let problem = match next(&mut input) {
        Ok(Some(Command::Hello { version: VERSION, answers })) => {
            stream.set_read_timeout(None)?;
            let number = LAST.fetch_add(1, Ordering::Relaxed);
            let viewer =
                Viewer { number, answers, queue: queue.clone(), stream: stream.try_clone()? };
            shared.add(viewer);
            let problem = obey(shared, &mut input, &queue);
            shared.remove(number);
            problem
        }
        Ok(Some(Command::Hello { version, .. })) => {
            Err(format!("version {version} is not known here; this is version {VERSION}"))
        }
        Ok(Some(_)) => Err("the first command must be `hello`".into()),
        Ok(None) => Ok(()),
        Err(problem) => Err(problem),
    };
    if let Err(message) = &problem {
        queue.add(&line(&Event::Error { message: message.clone() }));
    }
    // The writer ends once the queue is empty.
    drop(queue);
    _ = writer.join();
    problem.map_err(io::Error::other)
}

/// Executes the viewer's commands until its input ends. Returns its protocol error, if there is one.
fn obey(shared: &Shared, input: &mut BufReader<UnixStream>, queue: &Queue) -> Result<(), String> {
    let (mut second, mut commands) = (Instant::now(), 0);
    while let Some(command) = next(input)? {
        if second.elapsed() >= Duration::from_secs(1) {
            (second, commands) = (Instant::now(), 0);
        }
        commands += 1;
        if commands > limits::MAX_COMMANDS_PER_SECOND {
            return Err("too many commands".into());
        }
        match command {
            Command::Hello { .. } => return Err("a second `hello`".into()),
            Command::Answer(answer) => shared.answer(answer),
            Command::Diff { request } => {
                if let Some(diff) = shared.diff(request)
                    && !queue.add(&diff)
                {
                    return Err("the viewer does not read".into());
                }
            }
            Command::Pause => shared.pause(true),
            Command::Resume => shared.pause(false),
        }
    }
    Ok(())
}

/// The next command. Returns `None` at the end of the input. A line without a line ending is not a command.
fn next(input: &mut BufReader<UnixStream>) -> Result<Option<Command>, String> {
    let line = read_line(input, limits::MAX_COMMAND_BYTES).map_err(|error| error.to_string())?;
    let Some(line) = line else { return Ok(None) };
    let command = serde_json::from_slice(&line);
    command.map(Some).map_err(|error| format!("this is not a command: {error}"))
}

/// Writes lines until there are no more, or the viewer does not read.
fn write(mut stream: &UnixStream, lines: &Receiver<Arc<str>>, bytes: &AtomicUsize) {
    for line in lines {
        if stream.write_all(line.as_bytes()).is_err() {
            break;
        }
        bytes.fetch_sub(line.len(), Ordering::Relaxed);
    }
    _ = stream.shutdown(Shutdown::Both);
}
