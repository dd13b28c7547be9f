//! Viewers of a feed: well-behaved and misbehaving ones.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use pinfold::operations::Write;
use pinfold::{
    ApprovalAnswer, ApprovalRequest, Approver, AuditLine, CallOptions, CallStart, ChangeEvent,
    Denial, Error, Mode, Observer, Permissions, Session, Settings,
};
use pinfold_feed::{
    Answer, AnswerKind, Command, Connection, Event, Feed, RequestEnd, Server, ViewerRequest,
    connect,
};
use tempfile::TempDir;

struct Stage {
    dir: TempDir,
    feed: Arc<Feed>,
}

/// A feed that listens, and a directory beside it.
fn stage() -> Stage {
    let dir = TempDir::with_prefix("feed-").unwrap();
    let feed = Arc::new(Feed::new(Server { mode: "default".into(), ..Server::default() }));
    feed.listen(dir.path().join("feed"));
    wait_until(|| sockets(&dir).len() == 1);
    Stage { dir, feed }
}

fn sockets(dir: &TempDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.path().join("feed")).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| !path.file_name().unwrap().to_str().unwrap().starts_with('.')).collect()
}

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        thread::sleep(Duration::from_millis(5));
    }
}

impl Stage {
    fn stream(&self) -> UnixStream {
        UnixStream::connect(&sockets(&self.dir)[0]).unwrap()
    }

    /// A connection that has sent `hello` and received the server's description.
    fn raw_viewer(&self) -> (UnixStream, BufReader<UnixStream>) {
        let mut stream = self.stream();
        stream.write_all(b"{\"type\":\"hello\",\"version\":1,\"answers\":true}\n").unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        assert!(line(&mut lines).contains("\"type\":\"server\""));
        (stream, lines)
    }

    /// A viewer, and its events after the first.
    fn viewer(&self) -> (Connection, impl Iterator<Item = Event> + use<>) {
        let directory = self.dir.path().join("feed");
        let connection = connect(&directory, &HashSet::new(), true).remove(0).1;
        let mut events = connection.events().unwrap().map(Result::unwrap);
        assert!(matches!(events.next(), Some(Event::Server(_))));
        (connection, events)
    }

    /// A session that asks by the feed before it changes something.
    fn session(&self) -> Session {
        let permissions = Permissions { mode: Mode::Ask, ..Permissions::default() };
        let settings = Settings::default().with_permissions(permissions);
        let session = Session::with_settings([self.dir.path()], settings).unwrap();
        session.with_approver(ByFeed { feed: self.feed.clone(), cancelled: Arc::default() })
    }
}

fn line(lines: &mut impl BufRead) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    line
}

#[derive(Debug)]
struct ByFeed {
    feed: Arc<Feed>,
    cancelled: Arc<AtomicBool>,
}

impl Approver for ByFeed {
    fn ask(&self, request: &ApprovalRequest) -> ApprovalAnswer {
        let answer = self.feed.ask(&ViewerRequest {
            request,
            session: "s",
            client: Some("c"),
            session_grants: true,
            max_wait: Duration::from_secs(600),
            is_cancelled: &|| self.cancelled.load(Ordering::Relaxed),
        });
        answer.unwrap_or(ApprovalAnswer::Unavailable)
    }
}

fn call(feed: &Feed) {
    feed.call_started(&CallStart { session: "s", client: None, tool: "t", compact_params: None });
}

/// Counts the events that a feed gets.
#[derive(Debug)]
struct Counted {
    feed: Arc<Feed>,
    received: AtomicUsize,
}

impl Observer for Counted {
    fn is_watching(&self) -> bool {
        self.feed.is_watching()
    }

    fn is_paused(&self) -> bool {
        self.feed.is_paused()
    }

    fn call_started(&self, call: &CallStart<'_>) -> u64 {
        self.received.fetch_add(1, Ordering::Relaxed);
        self.feed.call_started(call)
    }

    fn call_ended(&self, number: u64, line: &AuditLine<'_>) {
        self.received.fetch_add(1, Ordering::Relaxed);
        self.feed.call_ended(number, line);
    }

    fn changed(&self, change: &ChangeEvent<'_>) {
        self.received.fetch_add(1, Ordering::Relaxed);
        self.feed.changed(change);
    }
}

#[test]
fn without_a_viewer_nothing_is_told_and_so_nothing_serialized() {
    let stage = stage();
    let counted = Arc::new(Counted { feed: stage.feed.clone(), received: AtomicUsize::new(0) });
    let session = Session::with_settings([stage.dir.path()], Settings::default()).unwrap();
    let session = session.with_observer(counted.clone());
    let write = |text: &str| {
        let call = CallOptions::default().with_tool("t");
        let work = |call: &CallOptions| session.perform_with(&Write::new("a", text), call);
        session.audited(&call, work, |done| (if done.is_ok() { "ok" } else { "error" }, 0)).unwrap()
    };
    write("one\n");
    assert_eq!(counted.received.load(Ordering::Relaxed), 0);
    let (viewer, mut events) = stage.viewer();
    write("two\n");
    assert_eq!(counted.received.load(Ordering::Relaxed), 3);
    assert!(matches!(events.next(), Some(Event::CallStarted(_))));
    assert!(matches!(events.next(), Some(Event::Change(_))));
    assert!(matches!(events.next(), Some(Event::CallEnded(_))));
    viewer.close();
    wait_until(|| !stage.feed.is_watching());
    write("three\n");
    assert_eq!(counted.received.load(Ordering::Relaxed), 3);
}

#[test]
fn a_viewer_is_told_nothing_before_it_says_hello() {
    let stage = stage();
    let mut silent = stage.stream();
    let (_stream, mut lines) = stage.raw_viewer();
    call(&stage.feed);
    assert!(line(&mut lines).contains("call_started"));
    silent.set_nonblocking(true).unwrap();
    assert!(silent.read(&mut [0]).is_err(), "nothing was sent");
}

#[test]
fn a_viewer_that_sends_nonsense_is_dropped_and_told_why() {
    let hello = "{\"type\":\"hello\",\"version\":1,\"answers\":true}\n";
    for (sent, problem) in [
        ("nonsense\n".to_owned(), "this is not a command"),
        ("{\"type\":\"pause\"}\n".to_owned(), "the first command must be `hello`"),
        (hello.replace('1', "2"), "version 2 is not known here"),
        (format!("{hello}{hello}"), "a second `hello`"),
        (format!("{hello}\u{0}\n"), "this is not a command"),
        (format!("{hello}{}\n", "[".repeat(10_000)), "this is not a command"),
        (format!("{hello}{}", "x".repeat(100_000)), "the line is too long"),
        (format!("{hello}{}", "{\"type\":\"diff\",\"request\":7}\n".repeat(1_000)), "too many"),
    ] {
        let stage = stage();
        let (_stream, mut lines) = stage.raw_viewer();
        let mut bad = stage.stream();
        // The server may close the connection before everything is written.
        _ = bad.write_all(sent.as_bytes());
        let mut received = String::new();
        _ = bad.read_to_string(&mut received);
        assert!(received.contains(problem) || sent.len() > 10_000, "{sent:.80}: {received}");
        // The other one is still there.
        call(&stage.feed);
        assert!(line(&mut lines).contains("call_started"));
        assert!(!stage.feed.is_paused());
    }
}

#[test]
fn half_a_command_is_none() {
    let stage = stage();
    let (mut stream, _lines) = stage.raw_viewer();
    stream.write_all(b"{\"type\":\"pause\"}").unwrap();
    drop((stream, _lines));
    wait_until(|| !stage.feed.is_watching());
    assert!(!stage.feed.is_paused());
}

#[test]
fn a_viewer_that_never_reads_is_dropped_and_no_call_waits_for_it() {
    let stage = stage();
    let (_stream, _lines) = stage.raw_viewer();
    let mut calls = 0;
    while stage.feed.is_watching() {
        call(&stage.feed);
        calls += 1;
        assert!(calls < 1_000_000);
    }
}

#[test]
fn a_flood_of_connections_costs_a_call_nothing() {
    let stage = stage();
    let (_stream, mut lines) = stage.raw_viewer();
    // None of these has sent `hello` yet; there are more than the server accepts.
    let mut silent: Vec<_> = (0..100).map(|_| stage.stream()).collect();
    call(&stage.feed);
    assert!(line(&mut lines).contains("call_started"));
    let mut received = String::new();
    silent.pop().unwrap().read_to_string(&mut received).unwrap();
    assert!(!received.contains("\"type\":\"server\""), "one too many is closed: {received}");
    // There is room again once they are gone.
    drop(silent);
    wait_until(|| {
        let mut stream = stage.stream();
        _ = stream.write_all(b"{\"type\":\"hello\",\"version\":1,\"answers\":true}\n");
        let mut received = String::new();
        _ = BufReader::new(stream).read_line(&mut received);
        received.contains("\"type\":\"server\"")
    });
}

#[test]
fn a_viewer_of_another_user_is_refused() {
    // The other user is this test again, in another process.
    if let Some(socket) = std::env::var_os("OTHER_USERS_SOCKET") {
        let mut stream = UnixStream::connect(Path::new(&socket)).unwrap();
        _ = stream.write_all(b"{\"type\":\"hello\",\"version\":1,\"answers\":true}\n");
        let mut received = String::new();
        _ = stream.read_to_string(&mut received);
        assert_eq!(received, "");
        return;
    }
    let program = std::env::current_exe().unwrap();
    let test = "a_viewer_of_another_user_is_refused";
    let other = |socket: &Path| {
        let mut process = Process::new(&program);
        process.args(["--exact", test]).env("OTHER_USERS_SOCKET", socket).uid(65534).output()
    };
    if !other(Path::new("/nowhere")).is_ok_and(|output| output.status.code() == Some(101)) {
        eprintln!("SKIPPED {test}: only root can be another user, and it must be able to run this");
        return;
    }
    let stage = stage();
    let socket = sockets(&stage.dir).remove(0);
    // Removes every protection but the last.
    for path in [stage.dir.path(), &stage.dir.path().join("feed"), &socket] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let output = other(&socket).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(!stage.feed.is_watching());
}

#[test]
fn the_first_answer_counts_and_every_viewer_sees_the_end() {
    let stage = stage();
    let (first, mut first_events) = stage.viewer();
    let (second, mut second_events) = stage.viewer();
    wait_until(|| stage.feed.can_ask());
    let session = stage.session();
    let writing = thread::spawn(move || session.perform(&Write::new("a", "one\ntwo\n")).map(drop));
    let [one, other] = [&mut first_events as &mut dyn Iterator<Item = Event>, &mut second_events]
        .map(|events| match events.next() {
            Some(Event::ApprovalRequest(approval)) => approval,
            other => panic!("{other:?}"),
        });
    assert_eq!(one, other);
    assert_eq!((one.tool.as_str(), one.access.as_str(), one.given.as_str()), ("", "Write", "a"));
    assert!(one.preview.ends_with("+one\n+two") && one.headline.contains("Allow changing"));
    let answers = [AnswerKind::Once, AnswerKind::Session, AnswerKind::No];
    assert_eq!((one.answers, one.client.as_deref()), (answers.into(), Some("c")));
    // One that opens later is asked, too.
    let (_third, mut third_events) = stage.viewer();
    assert!(matches!(third_events.next(), Some(Event::ApprovalRequest(_))));
    // An answer to another request changes nothing.
    let answer = |request, answer, message: &str| {
        Command::Answer(Answer { request, answer, message: Some(message.into()) })
    };
    second.send(&answer(one.request + 1, AnswerKind::Once, "")).unwrap();
    second.send(&Command::Diff { request: one.request }).unwrap();
    match second_events.next() {
        Some(Event::Diff { request, text }) => {
            assert_eq!((request, text), (one.request, one.preview));
        }
        other => panic!("{other:?}"),
    }
    second.send(&answer(one.request, AnswerKind::No, " not here ")).unwrap();
    let ended = Event::ApprovalEnded { request: one.request, end: RequestEnd::No };
    assert_eq!(first_events.next(), Some(ended.clone()));
    first.send(&answer(one.request, AnswerKind::Once, "")).unwrap();
    assert_eq!(second_events.next(), Some(ended));
    match writing.join().unwrap().unwrap_err() {
        Error::Denied { denial: Denial::User(Some(message)), .. } => {
            assert_eq!(message, "not here")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_ends_with_its_call_and_with_the_last_viewer() {
    let stage = stage();
    let (viewer, mut events) = stage.viewer();
    let session = stage.session();
    let cancelled = Arc::new(AtomicBool::new(false));
    let session =
        session.with_approver(ByFeed { feed: stage.feed.clone(), cancelled: cancelled.clone() });
    let (writing, session) = {
        let session = Arc::new(session);
        let write = session.clone();
        (thread::spawn(move || write.perform(&Write::new("a", "x")).map(drop)), session)
    };
    let Some(Event::ApprovalRequest(approval)) = events.next() else { panic!() };
    cancelled.store(true, Ordering::Relaxed);
    let ended = Event::ApprovalEnded { request: approval.request, end: RequestEnd::Cancelled };
    assert_eq!(events.next(), Some(ended));
    assert!(writing.join().unwrap().is_err());
    cancelled.store(false, Ordering::Relaxed);
    let writing = thread::spawn(move || session.perform(&Write::new("a", "x")).map(drop));
    assert!(matches!(events.next(), Some(Event::ApprovalRequest(_))));
    viewer.close();
    let refused = writing.join().unwrap().unwrap_err();
    let nobody = |denial: &Denial| matches!(denial, Denial::NoApprover { .. });
    assert!(matches!(&refused, Error::Denied { denial, .. } if nobody(denial)), "{refused:?}");
}

#[test]
fn a_viewer_that_does_not_answer_is_not_asked() {
    let stage = stage();
    let directory = stage.dir.path().join("feed");
    let viewer = connect(&directory, &HashSet::new(), false).remove(0).1;
    assert!(matches!(viewer.events().unwrap().next(), Some(Ok(Event::Server(_)))));
    assert!(stage.feed.is_watching() && !stage.feed.can_ask());
}

#[test]
fn pausing_is_told_to_every_viewer_and_outlasts_the_one_that_paused() {
    let stage = stage();
    let (first, _events) = stage.viewer();
    let (_second, mut events) = stage.viewer();
    let paused = |event| match event {
        Some(Event::Server(server)) => server.paused,
        other => panic!("{other:?}"),
    };
    first.send(&Command::Pause).unwrap();
    assert!(paused(events.next()) && stage.feed.is_paused());
    first.close();
    let (third, _) = stage.viewer();
    assert!(stage.feed.is_paused());
    third.send(&Command::Resume).unwrap();
    assert!(!paused(events.next()) && !stage.feed.is_paused());
}

#[test]
fn a_feed_that_ends_removes_its_socket() {
    let stage = stage();
    stage.feed.close();
    assert_eq!(sockets(&stage.dir), [] as [PathBuf; 0]);
    // A feed that is closed before it listens makes no socket.
    let feed = Feed::new(Server::default());
    feed.close();
    feed.listen(stage.dir.path().join("other"));
    wait_until(|| stage.dir.path().join("other").exists());
    drop(feed);
}
