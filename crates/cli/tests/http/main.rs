//! `pinfold serve --http`: authentication, sessions, and many clients at once.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

mod sessions;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use pinfold_testkit::mcp::{Web, alone, answer};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A workspace, and a directory for the server's own files.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = TempDir::with_prefix("http-").unwrap();
        fs::create_dir(dir.path().join("ws")).unwrap();
        for (name, content) in files {
            fs::write(dir.path().join("ws").join(name), content).unwrap();
        }
        Self { dir }
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join("ws").join(name)
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pinfold"));
        command.args(["serve", "--no-journal", "--root"]).arg(self.dir.path().join("ws"));
        command.args(more).env_remove("PINFOLD_TOKEN").env_remove("PINFOLD_LOG");
        command.env("XDG_STATE_HOME", self.dir.path().join("state"));
        command.env("XDG_CONFIG_HOME", self.dir.path().join("config"));
        command
    }

    fn configure(&self, text: &str) {
        let dir = self.dir.path().join("config/pinfold");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("config.toml"), text).unwrap();
    }

    fn serve(&self, more: &[&str]) -> Web {
        let command = &mut self.command(&["--http", "127.0.0.1:0"]);
        Web::start(command.args(more))
    }
}

fn read(path: &Path) -> Value {
    json!({"file_path": path})
}

#[test]
fn only_who_knows_the_token_is_let_in() {
    let place = Place::new(&[("a.txt", "one\n")]);
    let web = place.serve(&[]);
    let list = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let usual = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    let right = format!("Bearer {}", web.token);
    let wrong = format!("Bearer {}", web.token.replace(|digit: char| digit != '0', "0"));
    let cut = &right[..right.len() - 1];
    for authorization in [None, Some(""), Some("Bearer"), Some(&wrong), Some(cut), Some(&web.token)]
    {
        let mut headers = usual.to_vec();
        headers.extend(authorization.map(|it| ("Authorization", it)));
        for method in ["POST", "GET", "DELETE", "PUT"] {
            let reply = web.send(method, "/mcp", &headers, list);
            assert_eq!(reply.status, 401, "{method} {authorization:?}");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
        }
        assert_eq!(web.send("GET", "/other", &headers, b"").status, 401);
    }
    // The token alone is not enough.
    let mut headers = usual.to_vec();
    headers.push(("Authorization", &right));
    for (name, value, status) in [
        ("Origin", "https://evil.example", 403),
        ("Origin", "null", 403),
        ("Host", "evil.example", 403),
        ("Host", "localhost.evil.example:80", 403),
        ("Host", "8.8.8.8", 403),
    ] {
        let mut headers = headers.clone();
        headers.push((name, value));
        assert_eq!(web.send("POST", "/mcp", &headers, list).status, status, "{name}: {value}");
    }
    // With the token, the request reaches the protocol, where it lacks a session.
    assert_eq!(web.send("POST", "/mcp", &headers, list).status, 400);
    assert_eq!(web.send("PUT", "/mcp", &headers, b"").status, 405);
    assert_eq!(web.send("GET", "/other", &headers, b"").status, 404);
    let session = web.session();
    let reply = web.call(&session, "Read", &read(&place.file("a.txt")));
    assert_eq!(answer(&reply.message())["content"], "     1\tone\n");
}

#[test]
fn the_health_check_needs_no_token() {
    let web = Place::new(&[]).serve(&[]);
    let reply = web.send("GET", "/healthz", &[], b"");
    assert_eq!((reply.status, reply.body.as_str()), (200, "ok\n"));
    assert_eq!(web.send("POST", "/healthz", &[], b"").status, 405);
    assert_eq!(web.send("GET", "/healthz", &[("Host", "evil.example")], b"").status, 403);
}

#[test]
fn a_new_token_is_in_a_file_of_its_owners_and_goes_with_the_server() {
    let place = Place::new(&[]);
    let mut web = place.serve(&[]);
    let file = web.token_line.strip_prefix("the token is in ").unwrap().to_owned();
    assert!(Path::new(&file).starts_with(place.dir.path().join("state/pinfold")), "{file}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(web.token.len(), 64);
    let other = place.serve(&[]);
    assert_ne!(other.token, web.token);
    web.session();
    let process = rustix::process::Pid::from_child(web.process());
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    assert!(web.process().wait().unwrap().success());
    assert!(!Path::new(&file).exists());
}

#[test]
fn servers_at_one_port_do_not_take_each_others_token() {
    let place = Place::new(&[]);
    let one = place.serve(&[]);
    let port = one.address.split(':').nth(1).unwrap();
    let mut command = place.command(&["--http", &format!("127.0.0.2:{port}")]);
    let mut two = Web::start(&mut command);
    assert_ne!((&one.token_line, &one.token), (&two.token_line, &two.token));
    one.session();
    let process = rustix::process::Pid::from_child(two.process());
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    assert!(two.process().wait().unwrap().success());
    assert!(Path::new(one.token_line.strip_prefix("the token is in ").unwrap()).exists());
}

#[test]
fn clients_of_one_name_do_not_share_their_roots() {
    let place = Place::new(&[]);
    for name in ["a", "b"] {
        fs::create_dir(place.file(name)).unwrap();
        fs::write(place.file(name).join("f.txt"), name).unwrap();
    }
    let web = place.serve(&["--dialect", "dotted"]);
    let call = |root: Option<&str>, path: &str| {
        let mut meta = alone("same");
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({"roots": {}});
        let mut params = json!({"name": "file.read", "arguments": {"path": path}});
        if let Some(root) = root {
            let uri = format!("file://{}", place.file(root).display());
            params["inputResponses"] = json!({"roots": {"roots": [{"uri": uri}]}});
        }
        web.alone("tools/call", params, meta).message()
    };
    for (root, other) in [("a", "b"), ("b", "a"), ("a", "b")] {
        assert_eq!(call(None, "a/f.txt")["result"]["resultType"], "input_required");
        assert_eq!(answer(&call(Some(root), &format!("{root}/f.txt")))["total_lines"], 1);
        let refused = answer(&call(Some(root), &format!("{other}/f.txt")));
        assert_eq!(refused["error"], "path_outside_workspace");
    }
}

#[test]
fn a_token_can_be_kept_in_a_file() {
    let place = Place::new(&[]);
    let file = place.dir.path().join("keys/token");
    let first = place.serve(&["--token-file", file.to_str().unwrap()]);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let token = first.token.clone();
    drop(first);
    let second = place.serve(&["--token-file", file.to_str().unwrap()]);
    assert_eq!(second.token, token);
    second.session();
    drop(second);
    let refused = |why: &str| {
        let arguments = ["--http", "127.0.0.1:0", "--token-file", file.to_str().unwrap()];
        let output = place.command(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(printed.contains(why) && printed.contains("keys/token"), "{printed}");
    };
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    refused("chmod 600");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&file, "short\n").unwrap();
    refused("at least 16");
}

#[test]
fn a_token_can_be_given_by_the_environment() {
    let place = Place::new(&[]);
    let token = "a-token-that-is-long-enough";
    let mut command = place.command(&["--http", "127.0.0.1:0"]);
    let mut web = Web::start(command.env("PINFOLD_TOKEN", token));
    assert_eq!(web.token_line, "the token is the one in PINFOLD_TOKEN");
    web.token = token.into();
    web.session();
    let mut command = place.command(&["--http", "127.0.0.1:0"]);
    let output = command.env("PINFOLD_TOKEN", "short").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn other_machines_are_let_in_only_on_purpose() {
    let place = Place::new(&[]);
    for address in ["0.0.0.0:0", "[::]:0"] {
        let output = place.command(&["--http", address]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("--allow-remote"));
    }
    let mut command =
        place.command(&["--http", "0.0.0.0:0", "--allow-remote", "--allow-host", "files.example"]);
    let mut web = Web::start(&mut command);
    web.address = web.address.replace("0.0.0.0", "127.0.0.1");
    let host = |host| web.send("GET", "/healthz", &[("Host", host)], b"").status;
    assert_eq!(
        (host("files.example"), host("192.0.2.1:80"), host("other.example")),
        (200, 200, 403)
    );
    for wrong in ["127.0.0.1", "nonsense", ":1"] {
        let output = place.command(&["--http", wrong]).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
    let alone = place.command(&["--token-file", "x"]).stdin(Stdio::null()).output().unwrap();
    assert!(String::from_utf8_lossy(&alone.stderr).contains("--http"));
}

#[test]
fn pages_can_be_let_in() {
    let place = Place::new(&[]);
    place.configure("[http]\nallow_origins = [\"https://a.example\"]\n");
    let web = place.serve(&["--allow-origin", "https://b.example"]);
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let ask = |origin| {
        // A browser's preflight request has no token.
        let headers = [("Origin", origin), ("Access-Control-Request-Method", "POST")];
        let reply = web.send("OPTIONS", "/mcp", &headers, b"");
        (reply.status, reply.header("access-control-allow-origin").map(str::to_owned))
    };
    assert_eq!(ask("https://a.example"), (204, Some("https://a.example".into())));
    assert_eq!(ask("https://c.example"), (403, None));
    let reply = web.post(&[("Origin", "http://localhost:6274")], &hello);
    assert_eq!(reply.header("access-control-allow-origin"), Some("http://localhost:6274"));
    assert_eq!(reply.header("access-control-expose-headers"), Some("mcp-session-id"));
    assert_eq!(web.post(&[], &hello).header("access-control-allow-origin"), None);
    for (origin, status) in
        [("https://a.example", 400), ("https://b.example", 400), ("https://c.example", 403)]
    {
        assert_eq!(web.post(&[("Origin", origin)], &hello).status, status, "{origin}");
    }
}

#[test]
fn a_body_over_the_limit_is_refused() {
    let place = Place::new(&[]);
    place.configure("[http]\nmax_body_bytes = 2000\n");
    let web = place.serve(&["--dialect", "dotted"]);
    let session = web.session();
    let write = |bytes: usize| {
        web.call(&session, "file.write", &json!({"path": "a", "content": "x".repeat(bytes)})).status
    };
    assert_eq!((write(1_000), write(2_000), write(3_000_000)), (200, 413, 413));
    assert_eq!(fs::metadata(place.file("a")).unwrap().len(), 1_000);
}

#[test]
fn a_body_with_too_many_values_is_refused() {
    let place = Place::new(&[]);
    let web = place.serve(&["--dialect", "dotted"]);
    let session = web.session();
    let reply = web.call(&session, "file.list", &json!({"path": vec![0; 500_001]}));
    assert_eq!(reply.status, 413);
    assert_eq!(web.call(&session, "file.list", &json!({"path": "."})).status, 200);
}

#[test]
fn a_large_body_is_taken() {
    let place = Place::new(&[]);
    let web = place.serve(&["--dialect", "dotted"]);
    let content = "0123456789".repeat(1024 * 1024);
    let reply = web.call(&web.session(), "file.write", &json!({"path": "a", "content": content}));
    assert_eq!(answer(&reply.message())["bytes_written"], content.len());
    assert_eq!(fs::read_to_string(place.file("a")).unwrap(), content);
}

#[test]
fn connections_without_the_token_shut_nobody_out() {
    let place = Place::new(&[("a.txt", "one\n")]);
    let web = place.serve(&[]);
    // More connections than the server keeps open. It closes the oldest.
    let _idle: Vec<_> = (0..600).map(|_| web.connect()).collect();
    for _ in 0..30 {
        let session = web.session();
        let reply = web.call(&session, "Read", &read(&place.file("a.txt")));
        assert_eq!(answer(&reply.message())["success"], true);
    }
}

#[test]
fn what_is_no_message_is_refused() {
    let web = Place::new(&[]).serve(&[]);
    let session = web.session();
    let bearer = format!("Bearer {}", web.token);
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("Mcp-Session-Id", session.as_str()),
    ];
    let deep = "[".repeat(100_000);
    for (body, code) in [
        (&b"hello"[..], -32700),
        (b"", -32700),
        (b"\xFF", -32700),
        (deep.as_bytes(), -32700),
        (b"[]", -32600),
        (b"{\"id\": 1}", -32600),
    ] {
        let reply = web.send("POST", "/mcp", &headers, body);
        assert_eq!((reply.status, &reply.message()["error"]["code"]), (400, &json!(code)));
    }
    // A request with a value that cannot be represented is answered by its id.
    for value in [r#""\ud83d""#, "1e999"] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"Read","arguments":{{"file_path":{value}}}}}}}"#
        );
        let reply = web.send("POST", "/mcp", &headers, body.as_bytes());
        let message = reply.message();
        assert_eq!((reply.status, &message["id"]), (200, &json!(7)), "{message}");
        assert_eq!(message["error"]["data"]["error"], "invalid_argument");
    }
    let text = [headers[0], ("Content-Type", "text/plain"), headers[2], headers[3]];
    assert_eq!(web.send("POST", "/mcp", &text, b"{}").status, 415);
    assert_eq!(web.send("POST", "/mcp", &headers[..2], b"{}").status, 406);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(web.post(&[headers[3]], &ping).message()["result"], json!({}));
}

#[test]
fn a_call_that_cannot_be_read_is_in_the_audit_log() {
    let place = Place::new(&[]);
    let audit = place.dir.path().join("audit");
    let web = place.serve(&["--audit", audit.to_str().unwrap()]);
    let (session, bearer) = (web.session(), format!("Bearer {}", web.token));
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("Mcp-Session-Id", &session),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    let call = br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":"\ud83d"}}}"#;
    let message = web.send("POST", "/mcp", &headers, call).message();
    assert_eq!((&message["id"], &message["error"]["code"]), (&json!(7), &json!(-32602)));
    let problem = message["error"]["message"].as_str().unwrap();
    assert!(problem.contains("cannot be represented"), "{problem}");
    let line: Value = serde_json::from_str(fs::read_to_string(&audit).unwrap().trim()).unwrap();
    assert_eq!((&line["tool"], &line["outcome"]), (&json!("Read"), &json!("invalid_argument")));
}
