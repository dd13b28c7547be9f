//! Viewers of a running server: the events that they get, and the effect of their answers.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

mod pty;
mod watch;

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command as Process;
use std::thread;
use std::time::Duration;

use pinfold_feed::{Answer, AnswerKind, Approval, Command, Connection, Event, RequestEnd, connect};
use pinfold_testkit::mcp::{Lines, Web, alone, answer};
use serde_json::{Value, json};
use tempfile::TempDir;

fn workspace() -> TempDir {
    let dir = TempDir::with_prefix("watching-").unwrap();
    fs::create_dir(dir.path().join("ws")).unwrap();
    fs::write(dir.path().join("ws/a.txt"), "one\n").unwrap();
    dir
}

fn serve(dir: &TempDir, more: &[&str]) -> Process {
    let mut process = Process::new(env!("CARGO_BIN_EXE_pinfold"));
    process.args(["serve", "--dialect", "all", "--root"]).arg(dir.path().join("ws"));
    process.arg("--journal").arg(dir.path().join("journal"));
    process.arg("--feed").arg(dir.path().join("feed"));
    process.args(more).env("XDG_CONFIG_HOME", dir.path().join("config"));
    process.env("XDG_STATE_HOME", dir.path().join("state"));
    process
}

/// A viewer, and its events.
struct Viewer {
    connection: Connection,
    events: Box<dyn Iterator<Item = Event>>,
}

impl Viewer {
    /// Connects to the one server of a test.
    fn of(dir: &TempDir) -> Self {
        let connection = loop {
            let mut found = connect(&dir.path().join("feed"), &HashSet::new(), true);
            if let Some((_, connection)) = found.pop() {
                break connection;
            }
            thread::sleep(Duration::from_millis(5));
        };
        let events = Box::new(connection.events().unwrap().map(Result::unwrap));
        let mut viewer = Self { connection, events };
        assert!(matches!(viewer.next(), Event::Server(_)));
        viewer
    }

    fn next(&mut self) -> Event {
        self.events.next().expect("the server closed the connection")
    }

    /// The next approval request.
    fn request(&mut self) -> Approval {
        loop {
            if let Event::ApprovalRequest(approval) = self.next() {
                return approval;
            }
        }
    }

    fn answer(&self, request: &Approval, answer: AnswerKind, message: Option<&str>) {
        let answer = Answer { request: request.request, answer, message: message.map(Into::into) };
        self.connection.send(&Command::Answer(answer)).unwrap();
    }

    fn ended(&mut self) -> RequestEnd {
        loop {
            if let Event::ApprovalEnded { end, .. } = self.next() {
                return end;
            }
        }
    }
}

fn content(dir: &TempDir) -> String {
    fs::read_to_string(dir.path().join("ws/a.txt")).unwrap()
}

fn write(text: &str) -> Value {
    json!({"name": "file.write", "arguments": {"path": "a.txt", "content": text}})
}

/// The answer to an earlier request, whatever else the server sends first.
fn result(server: &mut Lines, id: u64) -> Value {
    loop {
        let message = server.read().unwrap();
        assert_ne!(message["method"], "elicitation/create", "{message}");
        if message["id"] == id {
            return answer(&message);
        }
    }
}

#[test]
fn a_viewer_sees_calls_and_changes() {
    let dir = workspace();
    let mut server = Lines::initialized(&mut serve(&dir, &[]), json!({}));
    let mut viewer = Viewer::of(&dir);
    server.call("file.write", &json!({"path": "a.txt", "content": "two\nthree\n"}));
    let Event::CallStarted(started) = viewer.next() else { panic!() };
    assert_eq!((started.tool.as_str(), started.client.as_deref()), ("file.write", Some("testkit")));
    assert!(started.parameters.as_deref().unwrap().contains("a.txt"), "{started:?}");
    let Event::Change(change) = viewer.next() else { panic!() };
    assert_eq!((change.added, change.removed, change.kind.as_str()), (Some(2), Some(1), "changed"));
    assert_eq!(change.call, Some(started.call));
    assert!(change.path.ends_with("/ws/a.txt") && change.id.is_some(), "{change:?}");
    let Event::CallEnded(ended) = viewer.next() else { panic!() };
    assert_eq!((ended.call, ended.outcome.as_str()), (started.call, "ok"));
    assert_eq!((ended.decision.as_str(), ended.operation.as_deref()), ("allow", Some("Write")));
    // A read of a cached file, a refusal and a bad call are seen like any other.
    for (tool, arguments, outcome) in [
        ("file.read", json!({"path": "a.txt"}), "ok"),
        ("file.read", json!({"path": "none"}), "file_not_found"),
        ("file.read", json!({"file": 1}), "invalid_argument"),
        ("file.delete", json!({"path": "a.txt"}), "ok"),
    ] {
        server.call(tool, &arguments);
        let ended = loop {
            match viewer.next() {
                Event::CallEnded(ended) => break ended,
                Event::Change(change) => assert_eq!(change.kind, "deleted"),
                _ => {}
            }
        };
        assert_eq!((ended.tool.as_str(), ended.outcome.as_str()), (tool, outcome));
    }
    // A viewer that connects now gets the server's description.
    let found = connect(&dir.path().join("feed"), &HashSet::new(), false).remove(0).1;
    let Some(Ok(Event::Server(received))) = found.events().unwrap().next() else { panic!() };
    assert_eq!(
        (received.clients, received.transport.as_str()),
        (vec!["testkit".to_owned()], "stdio")
    );
    assert_eq!(received.roots, [dir.path().join("ws").canonicalize().unwrap().to_str().unwrap()]);
    assert_eq!((received.mode.as_str(), received.paused), ("secure-file-access", false));
    assert!(received.journal.unwrap().ends_with("/journal"));
}

#[test]
fn a_viewer_approves_and_denies_before_the_client_is_asked() {
    let dir = workspace();
    let mut command = serve(&dir, &["--mode", "default"]);
    let mut server = Lines::initialized(&mut command, json!({"elicitation": {}}));
    let mut viewer = Viewer::of(&dir);
    let id = server.ask("tools/call", write("two\n"));
    let request = viewer.request();
    assert!(request.preview.contains("-one\n+two") && request.path.ends_with("/ws/a.txt"));
    assert_eq!(
        (request.reason.as_str(), request.tool.as_str()),
        ("the mode `default`", "file.write")
    );
    viewer.answer(&request, AnswerKind::Once, None);
    assert_eq!(result(&mut server, id)["success"], true);
    assert_eq!(viewer.ended(), RequestEnd::Once);
    // A denial, and the message for the model.
    let id = server.ask("tools/call", write("three\n"));
    let request = viewer.request();
    viewer.answer(&request, AnswerKind::No, Some("use b.txt"));
    let refused = result(&mut server, id);
    assert!(refused["message"].as_str().unwrap().contains("the user said no: use b.txt"));
    assert_eq!(content(&dir), "two\n");
    // An approval for the session is asked for once.
    let id = server.ask("tools/call", write("three\n"));
    let request = viewer.request();
    viewer.answer(&request, AnswerKind::Session, None);
    assert_eq!(result(&mut server, id)["success"], true);
    assert_eq!(answer(&server.request("tools/call", write("four\n")))["success"], true);
    // A request ends with its call.
    let delete = json!({"name": "file.delete", "arguments": {"path": "a.txt"}});
    let id = server.ask("tools/call", delete.clone());
    let request = viewer.request();
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    server.send(&cancel);
    assert_eq!(viewer.ended(), RequestEnd::Cancelled);
    viewer.answer(&request, AnswerKind::Once, None);
    // Without a viewer the client is asked, even about a request that a viewer has left unanswered.
    server.ask("tools/call", delete);
    viewer.request();
    viewer.connection.close();
    let question = server.read().unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    assert!(dir.path().join("ws/a.txt").exists());
}

#[test]
fn while_changes_are_paused_every_change_asks() {
    let dir = workspace();
    // While changes are paused, neither this mode nor a rule allows a change.
    let mode = ["--mode", "bypassPermissions"];
    let mut server = Lines::initialized(&mut serve(&dir, &mode), json!({}));
    let mut viewer = Viewer::of(&dir);
    viewer.connection.send(&Command::Pause).unwrap();
    assert!(matches!(viewer.next(), Event::Server(server) if server.paused));
    for (answer, succeeds) in [(AnswerKind::No, false), (AnswerKind::Session, true)] {
        let id = server.ask("tools/call", write("two\n"));
        let request = viewer.request();
        assert_eq!(request.reason, "changes are paused");
        assert_eq!(request.answers, [AnswerKind::Once, AnswerKind::No]);
        viewer.answer(&request, answer, None);
        assert_eq!(result(&mut server, id)["success"] == true, succeeds);
    }
    // That approved one change. Reads need no approval.
    let id = server.ask("tools/call", write("three\n"));
    let request = viewer.request();
    let read = json!({"name": "file.read", "arguments": {"path": "a.txt"}});
    let shown = answer(&server.request("tools/call", read));
    assert!(shown["content"].as_str().unwrap().contains("two"), "{shown}");
    viewer.answer(&request, AnswerKind::No, None);
    assert_eq!(result(&mut server, id)["error"], "permission_denied");
    // The pause outlasts its viewer.
    viewer.connection.close();
    let mut viewer = loop {
        let refused = answer(&server.request("tools/call", write("three\n")));
        let message = refused["message"].as_str().unwrap();
        if message.contains("changes are paused") {
            break Viewer::of(&dir);
        }
    };
    viewer.connection.send(&Command::Resume).unwrap();
    assert!(matches!(viewer.next(), Event::Server(server) if !server.paused));
    assert_eq!(answer(&server.request("tools/call", write("three\n")))["success"], true);
}

#[test]
fn a_pause_holds_back_what_was_approved_for_the_session() {
    let dir = workspace();
    let mut command = serve(&dir, &["--mode", "default"]);
    let mut server = Lines::initialized(&mut command, json!({}));
    let mut viewer = Viewer::of(&dir);
    let id = server.ask("tools/call", write("two\n"));
    let request = viewer.request();
    viewer.answer(&request, AnswerKind::Session, None);
    assert_eq!(result(&mut server, id)["success"], true);
    viewer.connection.send(&Command::Pause).unwrap();
    while !matches!(viewer.next(), Event::Server(_)) {}
    let id = server.ask("tools/call", write("three\n"));
    let request = viewer.request();
    viewer.answer(&request, AnswerKind::Once, None);
    assert_eq!(result(&mut server, id)["success"], true);
    viewer.connection.send(&Command::Resume).unwrap();
    while !matches!(viewer.next(), Event::Server(_)) {}
    assert_eq!(answer(&server.request("tools/call", write("four\n")))["success"], true);
}

#[test]
fn stateless_requests_are_asked_about_by_a_viewer() {
    let dir = workspace();
    let web = Web::start(&mut serve(&dir, &["--mode", "default", "--http", "127.0.0.1:0"]));
    let mut viewer = Viewer::of(&dir);
    let mut meta = alone("asking");
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
    thread::scope(|scope| {
        let writing = scope.spawn(|| web.alone("tools/call", write("two\n"), meta).message());
        let request = viewer.request();
        assert_eq!(request.client.as_deref(), Some("asking"));
        // Several clients may have that name.
        assert_eq!(request.answers, [AnswerKind::Once, AnswerKind::No]);
        viewer.answer(&request, AnswerKind::Once, None);
        assert_eq!(answer(&writing.join().unwrap())["success"], true);
    });
    assert_eq!(content(&dir), "two\n");
}

#[test]
fn the_sockets_are_out_of_reach_and_removed() {
    let dir = workspace();
    let feed = dir.path().join("ws/feed");
    let sockets = || -> Vec<PathBuf> {
        let entries = fs::read_dir(&feed).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let in_workspace = ["--mode", "bypassPermissions", "--feed", feed.to_str().unwrap()];
    let start = |more: &[&str]| {
        let mut process = Process::new(env!("CARGO_BIN_EXE_pinfold"));
        process.args(["serve", "--no-journal", "--dialect", "all", "--root"]);
        process.arg(dir.path().join("ws")).args(in_workspace).args(more);
        Lines::initialized(process.env("XDG_STATE_HOME", dir.path().join("state")), json!({}))
    };
    let mut server = start(&[]);
    while sockets().len() != 1
        || sockets()[0].file_name().unwrap().to_str().unwrap().starts_with('.')
    {
        thread::sleep(Duration::from_millis(5));
    }
    let socket = format!("feed/{}", sockets()[0].file_name().unwrap().to_str().unwrap());
    for call in [
        json!({"name": "file.read", "arguments": {"path": socket}}),
        json!({"name": "file.delete", "arguments": {"path": socket}}),
        json!({"name": "file.write", "arguments": {"path": "feed/x", "content": ""}}),
    ] {
        let refused = answer(&server.request("tools/call", call));
        assert_eq!(refused["error"], "permission_denied", "{refused}");
    }
    // A server that is killed leaves its socket to the next one.
    server.process().kill().unwrap();
    drop(server);
    assert_eq!(sockets().len(), 1);
    let killed = sockets().remove(0);
    let server = start(&["--landlock", "off"]);
    while killed.exists() || sockets().is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
    assert!(server.end().0.success());
    assert_eq!(sockets(), [] as [PathBuf; 0]);
}

#[test]
fn a_server_without_a_feed_has_no_socket() {
    let dir = workspace();
    fs::create_dir_all(dir.path().join("config/pinfold")).unwrap();
    let config = dir.path().join("config/pinfold/config.toml");
    fs::write(config, "feed = false\n[permissions]\nmode = \"default\"\n").unwrap();
    let mut process = Process::new(env!("CARGO_BIN_EXE_pinfold"));
    process.args(["serve", "--no-journal", "--dialect", "all", "--root"]);
    process.arg(dir.path().join("ws")).env("XDG_CONFIG_HOME", dir.path().join("config"));
    process.env("XDG_STATE_HOME", dir.path().join("state")).env("HOME", dir.path().join("home"));
    let mut server = Lines::initialized(&mut process, json!({}));
    let refused = answer(&server.request("tools/call", write("two\n")));
    assert!(!refused["message"].as_str().unwrap().contains("pinfold watch"), "{refused}");
    assert!(!dir.path().join("home").exists());
}
