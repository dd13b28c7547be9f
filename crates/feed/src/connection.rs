//! A viewer's connection to one server.

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pinfold_confine::connect_all;

use crate::limits;
use crate::message::{Command, Event, VERSION};
use crate::viewer::is_same_user;

/// A viewer's connection to one server. Threads that read events and those that send commands share it.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    /// Held while a command is written, so that commands do not mix.
    writing: Mutex<()>,
}

/// Connects to every running server with a socket in `directory` that is not in `known`, and removes the sockets of
/// ended servers.
pub fn connect(
    directory: &Path,
    known: &HashSet<PathBuf>,
    answers: bool,
) -> Vec<(PathBuf, Connection)> {
    let connected = connect_all(directory, |path| !known.contains(path));
    let greeted = connected.into_iter().filter_map(|(path, stream)| {
        // A server that hangs must not block its viewers.
        stream.set_write_timeout(Some(limits::UNREAD_WAIT)).ok()?;
        let same_user = is_same_user(&stream);
        let connection = same_user.then_some(Connection { stream, writing: Mutex::default() })?;
        connection.send(&Command::Hello { version: VERSION, answers }).ok()?;
        Some((path, connection))
    });
    greeted.collect()
}

impl Connection {
    /// Sends a command.
    pub fn send(&self, command: &Command) -> io::Result<()> {
        let mut line = serde_json::to_vec(command)?;
        line.push(b'\n');
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        (&self.stream).write_all(&line)
    }

    /// The events of the server, until it closes the connection. May be called only once.
    pub fn events(&self) -> io::Result<impl Iterator<Item = io::Result<Event>> + use<>> {
        let mut input = BufReader::new(self.stream.try_clone()?);
        Ok(std::iter::from_fn(move || {
            let line = read_line(&mut input, limits::MAX_EVENT_BYTES).transpose()?;
            Some(line.and_then(|line| Ok(serde_json::from_slice(&line)?)))
        }))
    }

    /// Closes the connection.
    pub fn close(&self) {
        _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// The next line, without its line ending. Returns `None` at the end of the input, even in the middle of a line.
pub(crate) fn read_line(input: &mut impl BufRead, max_bytes: usize) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    input.take(max_bytes as u64).read_until(b'\n', &mut line)?;
    match line.pop() {
        Some(b'\n') => Ok(Some(line)),
        Some(_) if line.len() + 1 == max_bytes => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "the line is too long"))
        }
        _ => Ok(None),
    }
}
