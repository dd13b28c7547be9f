//! Idle sessions over HTTP end after a long time, or to make room for another.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test makes real files")]

use std::io::Write as _;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use pinfold::{ApprovalAnswer, ApprovalRequest, Approver, Session, Settings};
use pinfold_dialects::{DOTTED, Toolbox};
use pinfold_mcp::http::{self, Guard, HttpOptions, Listeners, ServedWorkspace};
use pinfold_mcp::{Options, Service, Stop};
use pinfold_testkit::mcp::{Reply, Web, answer, initialize};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// An approver that reports each request, and answers when the test allows it.
#[derive(Debug)]
struct Slow {
    asked: Sender<()>,
    yes: Mutex<Receiver<()>>,
}

impl Approver for Slow {
    fn ask(&self, _: &ApprovalRequest) -> ApprovalAnswer {
        self.asked.send(()).unwrap();
        self.yes
            .lock()
            .unwrap()
            .recv()
            .map_or(ApprovalAnswer::Unavailable, |()| ApprovalAnswer::Once)
    }
}

/// Asks for a change in a session.
fn write(web: &Web, session: &str) -> Reply {
    web.call(session, "file.write", &json!({"path": "a.txt", "content": "two\n"}))
}

/// A server with room for some sessions, on a workspace in which changes are asked about.
struct Served {
    web: Web,
    asked: Receiver<()>,
    yes: Sender<()>,
    _runtime: Runtime,
    _dir: TempDir,
}

impl Served {
    fn new(max_sessions: usize, session_busy: Duration) -> Self {
        let options = HttpOptions::new(Guard::default());
        Self::with(HttpOptions { max_sessions, session_busy, ..options })
    }

    fn with(options: HttpOptions) -> Self {
        let dir = TempDir::with_prefix("room-").unwrap();
        std::fs::write(dir.path().join("a.txt"), "one\n").unwrap();
        let mut settings = Settings::default();
        settings.permissions.ask = vec!["Write".into()];
        let ((asks, asked), (yes, answers)) = (channel(), channel());
        let person = Slow { asked: asks, yes: Mutex::new(answers) };
        let session = Session::with_settings([dir.path()], settings).unwrap();
        let toolbox = Toolbox::new(session.with_approver(person), &[&DOTTED]);
        let service = Service::new(toolbox, Options::default());
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let web = Web::at(listener.local_addr().unwrap());
        runtime.spawn(async move {
            let workspaces = [ServedWorkspace::without_token(service)];
            let listeners = Listeners { clients: listener, metrics: None };
            http::serve(&workspaces, listeners, options, Stop::default()).await;
        });
        Self { web, asked, yes, _runtime: runtime, _dir: dir }
    }

    /// Asks for one more session.
    fn begin(&self) -> Reply {
        let params = initialize(json!({}));
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        self.web.post(&[], &message)
    }

    /// The status of a read in a session.
    fn read(&self, session: &str) -> u16 {
        self.web.call(session, "file.read", &json!({"path": "a.txt"})).status
    }
}

#[test]
fn a_session_that_waits_for_approval_is_in_use() {
    let served = Served::new(1, Duration::ZERO);
    let session = served.web.session();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| write(&served.web, &session));
        served.asked.recv().unwrap();
        let refused = served.begin();
        served.yes.send(()).unwrap();
        let done = call.join().unwrap();
        assert_eq!(refused.status, 503, "{refused:?}");
        assert_eq!(answer(&done.message())["success"], true, "{done:?}");
    });
    assert_eq!(served.read(&session), 200);
    // It was answered, and makes room from now on.
    assert_eq!(served.begin().status, 200);
    assert_eq!(served.read(&session), 404);
}

#[test]
fn a_client_that_no_longer_listens_has_its_call_under_way_all_the_same() {
    let served = Served::new(1, Duration::ZERO);
    let session = served.web.session();
    let params = json!({"name": "file.write", "arguments": {"path": "a.txt", "content": "two\n"}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let body = body.to_string();
    let mut stream = served.web.connect();
    let head = served
        .web
        .head(&[&format!("Mcp-Session-Id: {session}"), &format!("Content-Length: {}", body.len())]);
    write!(stream, "{head}\r\n{body}").unwrap();
    served.asked.recv().unwrap();
    drop(stream);
    for _ in 0..20 {
        assert_eq!(served.begin().status, 503);
        std::thread::sleep(Duration::from_millis(5));
    }
    served.yes.send(()).unwrap();
}

#[test]
fn a_session_that_was_used_a_moment_ago_is_in_use() {
    let served = Served::new(1, Duration::from_secs(60 * 60));
    let session = served.web.session();
    let refused = served.begin();
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("60")), "{refused:?}");
    assert_eq!(served.read(&session), 200);
}

#[test]
fn the_session_that_was_idle_longest_makes_room() {
    let served = Served::new(3, Duration::ZERO);
    let [first, second, third] = std::array::from_fn(|_| served.web.session());
    // An answered request is no longer running; a notification may be.
    for session in [&second, &third, &first] {
        assert_eq!(served.read(session), 200);
    }
    let fourth = served.web.session();
    let alive = [&first, &second, &third, &fourth].map(|session| served.read(session));
    assert_eq!(alive, [200, 404, 200, 200]);
}

#[test]
fn a_session_that_waits_for_approval_does_not_end_as_idle() {
    let served = Served::with(HttpOptions {
        max_sessions: 2,
        session_busy: Duration::MAX,
        session_idle: Duration::from_millis(50),
        ..HttpOptions::new(Guard::default())
    });
    std::thread::scope(|scope| {
        // On a busy machine, one may be idle for too long before its call arrives.
        let call = loop {
            let begun = served.begin();
            let Some(session) = begun.header("mcp-session-id").map(str::to_owned) else { continue };
            let session_id = [("Mcp-Session-Id", session.as_str())];
            let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            served.web.post(&session_id, &done);
            let web = &served.web;
            let call = scope.spawn(move || write(web, &session));
            let asked = loop {
                match served.asked.recv_timeout(Duration::from_millis(1)) {
                    Err(_) if call.is_finished() => break false,
                    Err(_) => {}
                    Ok(()) => break true,
                }
            };
            if asked {
                break call;
            }
        };
        // There is room for one more. After that has been idle for too long, there is room for another, although the
        // first was idle longer.
        for _ in 0..2 {
            while served.begin().status != 200 {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        served.yes.send(()).unwrap();
        let done = call.join().unwrap();
        assert_eq!(answer(&done.message())["success"], true, "{done:?}");
    });
}
