//! A watcher, and servers that start and end.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};

use pinfold::Observer as _;
use pinfold_feed::{Command, Event, Feed, Server, ServerId, Update, WatchOptions, Watcher};
use tempfile::TempDir;

fn directory() -> TempDir {
    TempDir::with_prefix("watching-").unwrap()
}

fn watch(options: WatchOptions) -> (Watcher, Receiver<Update>) {
    let (sender, updates) = sync_channel(100);
    (Watcher::start(options, move |update| _ = sender.send(update)).unwrap(), updates)
}

/// A fake server that follows the test's instructions.
struct Made {
    socket: PathBuf,
    listener: UnixListener,
}

impl Made {
    fn new(directory: &Path, name: &str) -> Self {
        let hidden = directory.join(name);
        let listener = UnixListener::bind(&hidden).unwrap();
        let socket = directory.join(format!("{name}.sock"));
        fs::rename(hidden, &socket).unwrap();
        Self { socket, listener }
    }

    /// The next viewer, its hello, and its later messages.
    fn viewer(&self, greeting: &str) -> (UnixStream, String, BufReader<UnixStream>) {
        let (mut stream, _) = self.listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        let hello = line(&mut lines);
        stream.write_all(greeting.as_bytes()).unwrap();
        (stream, hello, lines)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.socket);
    }
}

fn line(lines: &mut BufReader<UnixStream>) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    line
}

fn greeting(roots: &[&str]) -> String {
    let roots = roots.iter().map(|&root| root.into()).collect();
    let server = Event::Server(Server { version: 1, roots, ..Server::default() });
    format!("{}\n", serde_json::to_string(&server).unwrap())
}

fn introduced(update: Update) -> ServerId {
    match update {
        Update::Event { server, event: Event::Server(_) } => server,
        other => panic!("{other:?}"),
    }
}

#[test]
fn servers_are_found_in_every_place_as_they_start_and_gone_as_they_end() {
    let (one, other) = (directory(), directory());
    let missing = one.path().join("missing");
    let places = vec![missing, one.path().into(), other.path().into()];
    let (watcher, updates) = watch(WatchOptions::new(places, true));
    assert_eq!(updates.recv().unwrap(), Update::NoServer { others: 0 });
    let first = Made::new(one.path(), "1-a");
    let (_stream, hello, mut commands) = first.viewer(&greeting(&["/a"]));
    assert_eq!(hello, "{\"type\":\"hello\",\"version\":1,\"answers\":true}\n");
    let first_id = introduced(updates.recv().unwrap());
    assert_eq!(first_id.as_str(), "1-a");
    let second = Made::new(other.path(), "2-b");
    let (mut stream, ..) = second.viewer(&greeting(&["/b"]));
    let second_id = introduced(updates.recv().unwrap());
    // A command goes to the one that it is for.
    watcher.send(&first_id, &Command::Pause).unwrap();
    assert_eq!(line(&mut commands), "{\"type\":\"pause\"}\n");
    stream.write_all(b"{\"type\":\"diff\",\"request\":1,\"text\":\"x\"}\n").unwrap();
    let update = updates.recv().unwrap();
    assert_eq!(
        update.to_json(),
        "{\"server\":\"2-b\",\"type\":\"diff\",\"request\":1,\"text\":\"x\"}"
    );
    // The watcher connects again to a server that dropped it.
    drop((stream, update));
    assert_eq!(updates.recv().unwrap(), Update::Gone { server: second_id.clone() });
    let (stream, ..) = second.viewer(&greeting(&["/b"]));
    assert_eq!(introduced(updates.recv().unwrap()), second_id);
    // One that ends is gone, and so is the last.
    drop((second, stream));
    let gone = updates.recv().unwrap();
    assert_eq!(gone.to_json(), "{\"server\":\"2-b\",\"type\":\"gone\"}");
    assert!(watcher.send(&second_id, &Command::Pause).is_err());
    drop((first, _stream, commands));
    assert_eq!(updates.recv().unwrap(), Update::Gone { server: first_id });
    let none = updates.recv().unwrap();
    assert_eq!(none.to_json(), "{\"type\":\"no_server\",\"others\":0}");
}

#[test]
fn a_server_that_was_not_chosen_is_left_alone() {
    let dir = directory();
    let chosen = ["/home/u/project", "/home/u/project/src", "/home/u"];
    let others = ["/home/u/project2", "/srv", "/home/u/projec"];
    for root in chosen.into_iter().chain(others) {
        let server = Made::new(dir.path(), "1-a");
        let options = WatchOptions::new(vec![dir.path().into()], true);
        let (_watcher, updates) = watch(options.with_roots(vec!["/home/u/project".into()]));
        let (_stream, _, mut lines) = server.viewer(&greeting(&["/elsewhere", root]));
        if chosen.contains(&root) {
            introduced(updates.recv().unwrap());
        } else {
            assert_eq!(updates.recv().unwrap(), Update::NoServer { others: 1 }, "{root}");
            assert_eq!(line(&mut lines), "", "the viewer has left");
        }
    }
}

#[test]
fn a_server_that_refuses_the_viewer_says_why_once() {
    let dir = directory();
    let server = Made::new(dir.path(), "1-a");
    let (_watcher, updates) = watch(WatchOptions::new(vec![dir.path().into()], false));
    let refusal = "{\"type\":\"error\",\"message\":\"version 1 is not known here\"}\n";
    let (stream, hello, lines) = server.viewer(refusal);
    assert!(hello.contains("\"answers\":false"));
    drop((stream, lines));
    assert!(matches!(updates.recv().unwrap(), Update::Event { event: Event::Error { .. }, .. }));
    assert_eq!(updates.recv().unwrap(), Update::NoServer { others: 1 });
    drop(server);
}

#[test]
fn a_watcher_that_is_dropped_watches_no_more() {
    let dir = directory();
    let feed = Feed::new(Server::default());
    feed.listen(dir.path().join("feed"));
    let options = WatchOptions::new(vec![dir.path().join("feed")], true);
    let (watcher, updates) = watch(options);
    while !matches!(updates.recv().unwrap(), Update::Event { event: Event::Server(_), .. }) {}
    assert!(feed.can_ask());
    drop(watcher);
    while feed.is_watching() {
        std::thread::yield_now();
    }
    // Its threads have ended, too.
    while updates.recv().is_ok() {}
}
