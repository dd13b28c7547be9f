//! The end of a server, and its status: health, readiness, logs, metrics.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use pinfold_testkit::mcp::{Web, alone, initialize};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{Place, called, eventually, holder, read};

/// A server with a client whose user has to approve every change.
struct Asking {
    place: Place,
    server: Web,
    client: Web,
    session: String,
}

impl Asking {
    fn new(http: &str) -> Self {
        let place = Place::new(&["one"]);
        let table = place.table("one", "[workspaces.one.permissions]\nmode = \"default\"");
        place.configure(&format!("{table}\n[http]\n{http}\n"));
        let token = place.token("one", "agent", &[]);
        let server = place.serve(&[]);
        let client = holder(&server, "one", &token);
        let params = initialize(json!({"elicitation": {}}));
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let session = client.post(&[], &hello).header("mcp-session-id").unwrap().to_owned();
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(client.post(&[("Mcp-Session-Id", &session)], &done).status, 202);
        Self { place, server, client, session }
    }

    fn tell(&mut self, signal: Signal) {
        kill_process(Pid::from_child(self.server.process()), signal).unwrap();
    }

    fn post(&self, message: &Value) -> pinfold_testkit::mcp::Reply {
        self.client.post(&[("Mcp-Session-Id", &self.session)], message)
    }

    /// Begins a change, and returns the stream and the question that comes.
    fn begin(&self) -> (BufReader<std::net::TcpStream>, Value) {
        let params =
            json!({"name": "file.write", "arguments": {"path": "a.txt", "content": "new\n"}});
        let call = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params});
        let body = call.to_string();
        let head = self.client.head(&[
            &format!("Mcp-Session-Id: {}", self.session),
            &format!("Content-Length: {}", body.len()),
            "Connection: close",
        ]);
        let mut stream = self.client.connect();
        write!(stream, "{head}\r\n{body}").unwrap();
        let mut lines = BufReader::new(stream);
        let question = loop {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).unwrap() > 0, "it breaks off");
            let data = line.strip_prefix("data:").map(str::trim).filter(|data| !data.is_empty());
            if let Some(data) = data {
                break serde_json::from_str::<Value>(data).unwrap();
            }
        };
        assert_eq!(question["method"], "elicitation/create", "{question}");
        (lines, question)
    }

    fn ready(&self) -> u16 {
        self.server.send("GET", "/readyz", &[], b"").status
    }
}

#[test]
fn calls_under_way_end_and_new_ones_are_refused() {
    let mut asking = Asking::new("");
    let (mut stream, question) = asking.begin();
    assert_eq!(asking.ready(), 200);
    asking.tell(Signal::TERM);
    eventually("it is still ready", || asking.ready() == 503);
    assert_eq!(asking.server.send("GET", "/healthz", &[], b"").status, 200);
    // New calls get a 503, by every method.
    let params = json!({"name": "file.read", "arguments": read("a.txt")});
    let call = json!({"jsonrpc": "2.0", "id": 10, "method": "tools/call", "params": params});
    let refused = asking.post(&call);
    assert_eq!((refused.status, refused.message()["error"]["code"].clone()), (503, json!(-32030)));
    assert_eq!(refused.message()["id"], 10);
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.header("connection"), Some("close"));
    let list = alone("other");
    assert_eq!(asking.client.alone("tools/list", json!({}), list).status, 503);
    let bearer = format!("Bearer {}", asking.client.token);
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Mcp-Session-Id", asking.session.as_str()),
        ("Accept", "text/event-stream"),
    ];
    assert_eq!(asking.client.send("GET", "/mcp/one", &headers, b"").status, 503);
    // The user's answer still reaches the running call, which is answered completely.
    let result = json!({"action": "accept", "content": {"answer": "allow once"}});
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
    assert_eq!(asking.post(&answer).status, 202);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("bytes_written"), "{rest}");
    assert_eq!(fs::read_to_string(asking.place.file("one", "a.txt")).unwrap(), "new\n");
    assert!(asking.server.process().wait().unwrap().success());
}

#[test]
fn calls_that_take_too_long_are_cancelled() {
    let mut asking = Asking::new("drain_seconds = 1");
    let (mut stream, _) = asking.begin();
    let begin = Instant::now();
    asking.tell(Signal::TERM);
    assert!(asking.server.process().wait().unwrap().success());
    // One second, and three for calls that do not stop; the rest is slack for a busy machine.
    assert!(begin.elapsed() >= Duration::from_secs(1));
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    _ = stream.read_to_string(&mut String::new());
    assert_eq!(fs::read_to_string(asking.place.file("one", "a.txt")).unwrap(), "one\n");
}

#[test]
fn the_stream_of_a_session_holds_up_nothing() {
    let mut asking = Asking::new("drain_seconds = 3600");
    let head = asking.client.head(&[&format!("Mcp-Session-Id: {}", asking.session)]);
    let mut stream = asking.client.connect();
    write!(stream, "{}\r\n", head.replacen("POST", "GET", 1)).unwrap();
    let mut status = [0; 15];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 200 OK");
    asking.tell(Signal::TERM);
    assert!(asking.server.process().wait().unwrap().success());
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut asking = Asking::new("drain_seconds = 3600");
    let (_stream, _) = asking.begin();
    asking.tell(Signal::TERM);
    eventually("it is still ready", || asking.ready() == 503);
    asking.tell(Signal::INT);
    assert!(asking.server.process().wait().unwrap().success());
    assert_eq!(fs::read_to_string(asking.place.file("one", "a.txt")).unwrap(), "one\n");
}

#[test]
fn probes_need_no_token_and_tell_nothing() {
    let place = Place::new(&["one"]);
    let server = place.serve(&[]);
    for path in ["/healthz", "/readyz"] {
        let reply = server.send("GET", path, &[], b"");
        assert_eq!((reply.status, reply.body.as_str()), (200, "ok\n"), "{path}");
        assert_eq!(server.send("POST", path, &[], b"").status, 405);
        assert_eq!(server.send("GET", path, &[("Host", "evil.example")], b"").status, 403);
    }
}

/// Starts a server with metrics. Returns its process, its address, and the listener of the metrics.
fn serve_with_metrics(place: &Place) -> (Child, String, Web) {
    let mut command = place.pinfold(&["serve", "--http", "127.0.0.1:0"]);
    command.args(["--metrics", "127.0.0.1:0"]).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let mut address = |before: &str, after: &str| {
        let line = lines.find_map(|line| Some(line.unwrap().strip_prefix(before)?.to_owned()));
        line.unwrap().strip_suffix(after).unwrap().to_owned()
    };
    let at = address("listening on http://", "/mcp/one");
    let metrics = Web::at(address("metrics are at http://", "/metrics"));
    (process, at, metrics)
}

#[test]
fn metrics_count_what_happens_in_each_workspace() {
    let place = Place::new(&["one", "two"]);
    let tokens = ["one", "two"].map(|name| place.token(name, "agent", &[]));
    // Without the setting there are none.
    let plain = place.serve(&[]);
    let bearer = format!("Bearer {}", tokens[0]);
    assert_eq!(plain.send("GET", "/metrics", &[("Authorization", &bearer)], b"").status, 404);
    assert_eq!(plain.send("GET", "/metrics", &[], b"").status, 401);
    let (mut process, at, metrics) = serve_with_metrics(&place);
    let one = Web::opened(&at, &tokens[0], "/mcp/one");
    let session = one.session();
    called(&one, &session, "file.read", &read("a.txt"));
    called(&one, &session, "file.read", &read("missing.txt"));
    assert_eq!(one.call(&session, "no.such.tool", &json!({})).status, 200);
    let two = Web::opened(&at, &tokens[0], "/mcp/two");
    assert_eq!(two.post(&[], &json!({})).status, 404);
    let reply = metrics.send("GET", "/metrics", &[], b"");
    let kind = reply.header("content-type").unwrap();
    assert!(reply.status == 200 && kind.starts_with("application/openmetrics-text"), "{kind}");
    let text = reply.body;
    for expected in [
        "pinfold_calls_total{workspace=\"one\",tool=\"file.read\",outcome=\"ok\"} 1",
        "pinfold_calls_total{workspace=\"one\",tool=\"file.read\",outcome=\"file_not_found\"} 1",
        "pinfold_calls_total{workspace=\"one\",tool=\"unknown\",outcome=\"protocol_error\"} 1",
        "pinfold_call_duration_seconds_count{workspace=\"one\",tool=\"file.read\"} 2",
        "pinfold_http_refusals_total{workspace=\"\",status=\"404\"} 1",
        "pinfold_http_sessions{workspace=\"one\"} 1",
        "pinfold_http_sessions{workspace=\"two\"} 0",
        "pinfold_index_files{workspace=\"one\"} 0",
        "pinfold_index_bytes{workspace=\"one\"} ",
        "pinfold_http_received_bytes_total{workspace=\"one\"} ",
        "pinfold_http_sent_bytes_total{workspace=\"one\"} ",
        "# EOF",
    ] {
        assert!(text.lines().any(|line| line.starts_with(expected)), "{expected}\n{text}");
    }
    // Metrics have neither paths nor tokens.
    assert!(!text.contains("a.txt") && !text.contains(&tokens[0]), "{text}");
    assert_eq!(metrics.send("GET", "/mcp/one", &[], b"").status, 404);
    assert_eq!(metrics.send("POST", "/metrics", &[], b"").status, 405);
    assert_eq!(metrics.send("GET", "/metrics", &[("Host", "evil.example")], b"").status, 403);
    process.kill().unwrap();
    process.wait().unwrap();
    let remote = place.pinfold(&["serve", "--http", "127.0.0.1:0", "--metrics", "0.0.0.0:0"]);
    let output = { remote }.output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("--allow-remote"), "{output:?}");
}

#[test]
fn every_call_is_counted_once_with_the_outcome_in_the_audit_log() {
    let place = Place::new(&["one"]);
    let more = format!(
        "audit = {:?}\n[workspaces.one.permissions]\nmode = \"default\"",
        place.path("audit")
    );
    place.configure(&place.table("one", &more).replace("\"dotted\"", "\"scoped\""));
    let token = place.token("one", "agent", &[]);
    let (mut process, at, metrics) = serve_with_metrics(&place);
    let client = Web::opened(at, &token, "/mcp/one");
    let call = |name: &str, arguments: Value, meta: Value| {
        let mut all = alone("agent");
        all["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
        all.extend(meta.as_object().unwrap().clone());
        let params = json!({"name": name, "arguments": arguments});
        assert_eq!(client.alone("tools/call", params, all).status, 200, "{name}");
    };
    call("read_file", read("a.txt"), json!({}));
    call("read_file", read("../a.txt"), json!({}));
    call("read_file", read("a.txt"), json!({"pinfold/checkpoint": 1}));
    call("write_file", json!({"path": "a.txt", "content": "new"}), json!({}));
    call("no_such_tool", json!({}), json!({}));
    let text = metrics.send("GET", "/metrics", &[], b"").body;
    process.kill().unwrap();
    process.wait().unwrap();
    let counted = |metric: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix(metric));
        let mut lines: Vec<_> = lines.map(|line| line.replace("workspace=\"one\",", "")).collect();
        lines.sort();
        lines
    };
    assert_eq!(
        counted("pinfold_calls_total"),
        [
            r#"{tool="read_file",outcome="ok"} 1"#,
            r#"{tool="read_file",outcome="path_outside_workspace"} 1"#,
            r#"{tool="read_file",outcome="protocol_error"} 1"#,
            r#"{tool="unknown",outcome="protocol_error"} 1"#,
            r#"{tool="write_file",outcome="input_required"} 1"#,
        ],
        "{text}"
    );
    assert_eq!(
        counted("pinfold_call_duration_seconds_count"),
        [r#"{tool="read_file"} 3"#, r#"{tool="unknown"} 1"#, r#"{tool="write_file"} 1"#],
    );
    let audit = fs::read_to_string(place.path("audit")).unwrap();
    let outcomes: Vec<Value> = audit
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["outcome"].take())
        .collect();
    let expected =
        ["ok", "path_outside_workspace", "invalid_argument", "permission_denied", "unknown_tool"];
    assert_eq!(outcomes, expected);
}

#[test]
fn a_log_of_json_is_one_object_a_line() {
    let place = Place::new(&["one"]);
    place.configure(&place.table("one", &format!("audit = {:?}", place.path("audit"))));
    let token = place.token("one", "agent", &[]);
    let limited = place.token("one", "limited", &["--max-calls-per-second", "1"]);
    let log = place.path("log");
    let mut command = place.pinfold(&["serve", "--http", "127.0.0.1:0", "--log-format", "json"]);
    command.env("PINFOLD_LOG", "info").stdin(Stdio::null());
    let mut process = command.stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
    let lines = || -> Vec<Value> {
        let text = fs::read_to_string(&log).unwrap();
        // The last line may be incomplete.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let object = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        whole.lines().map(object).collect()
    };
    let message = |line: &Value| line["message"].as_str().unwrap_or_default().to_owned();
    let find = |beginning: &str| lines().into_iter().find(|it| message(it).starts_with(beginning));
    eventually("it does not listen", || find("listening on ").is_some());
    let listening = message(&find("listening on ").unwrap());
    let at = listening.strip_prefix("listening on http://").unwrap().strip_suffix("/mcp/one");
    let one = Web::opened(at.unwrap(), &token, "/mcp/one");
    called(&one, &one.session(), "file.read", &read("a.txt"));
    assert_eq!(one.send("GET", "/mcp/one", &[], b"").status, 401);
    let page = [("Origin", "https://elsewhere.example")];
    assert_eq!(one.send("GET", "/mcp/one", &page, b"").status, 403);
    let limited = Web::opened(at.unwrap(), &limited, "/mcp/one");
    eventually("no call is over the limit", || limited.post(&[], &json!({})).status == 429);
    assert_eq!(one.post(&[], &json!({})).status, 400);
    let refused = |status: u16| lines().into_iter().find(|line| line["status"] == status);
    eventually("the calls are not logged", || refused(400).is_some());
    let call = find("call").unwrap();
    let facts = ["workspace", "token", "tool", "outcome", "level"].map(|key| call[key].clone());
    assert_eq!(facts, ["one", "agent", "file.read", "ok", "INFO"]);
    let audit = fs::read_to_string(place.path("audit")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&audit).unwrap()["token"], "agent");
    for (status, token) in [(401, Value::Null), (403, Value::Null), (429, json!("limited"))] {
        let line = refused(status).unwrap();
        let facts = ["message", "path", "address", "token"].map(|key| line[key].clone());
        assert_eq!(facts, [json!("refused"), json!("/mcp/one"), json!("127.0.0.1"), token]);
    }
    assert!(lines().iter().all(|line| line["timestamp"].is_string()));
    // What it says is its own, and a line for each call.
    let others = lines().into_iter().filter_map(|line| line["target"].as_str().map(str::to_owned));
    assert_eq!(others.filter(|target| target.starts_with("rmcp")).count(), 0);
    fs::remove_file(place.token_file("one")).unwrap();
    let problem = || find("requests with a token are refused: ");
    eventually("a missing token file is not logged", || problem().is_some());
    assert_eq!(problem().unwrap()["level"], "ERROR");
    kill_process(Pid::from_child(&process), Signal::TERM).unwrap();
    process.wait().unwrap();
    assert_eq!(find("draining").unwrap()["calls"], 0);
    place.token("one", "agent", &[]);
    // So is the reason why it does not start.
    fs::set_permissions(place.token_file("one"), fs::Permissions::from_mode(0o644)).unwrap();
    let mut serve = place.pinfold(&["serve", "--http", "127.0.0.1:0", "--log-format", "json"]);
    let output = serve.output().unwrap();
    let line: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!((output.status.code(), &line["level"]), (Some(2), &json!("ERROR")));
    assert!(message(&line).contains("chmod 600"), "{line}");
}
