//! Approval through the client, with `initialize` and stateless, and on the terminal.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use pinfold_testkit::mcp::{Lines, Web, alone, answer};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use tempfile::TempDir;

fn workspace() -> TempDir {
    let dir = TempDir::with_prefix("asking-").unwrap();
    fs::create_dir(dir.path().join("ws")).unwrap();
    fs::write(dir.path().join("ws/a.txt"), "one\n").unwrap();
    dir
}

fn pinfold(dir: &TempDir, command: &str, more: &[&str]) -> Command {
    let mut process = Command::new(env!("CARGO_BIN_EXE_pinfold"));
    process
        .args([command, "--no-journal", "--dialect", "all", "--root"])
        .arg(dir.path().join("ws"));
    process.args(more).env("XDG_CONFIG_HOME", dir.path().join("config"));
    process.env("XDG_STATE_HOME", dir.path().join("state"));
    process
}

/// A server that asks before every change, with a client that can ask its user.
fn asking_server(dir: &TempDir) -> Lines {
    let mut command = pinfold(dir, "serve", &["--mode", "default"]);
    Lines::initialized(&mut command, json!({"elicitation": {}}))
}

/// A server over HTTP that asks before every change.
fn web(dir: &TempDir) -> Web {
    Web::start(&mut pinfold(dir, "serve", &["--mode", "default", "--http", "127.0.0.1:0"]))
}

fn content(dir: &TempDir) -> String {
    fs::read_to_string(dir.path().join("ws/a.txt")).unwrap()
}

fn write(text: &str) -> Value {
    json!({"name": "file.write", "arguments": {"path": "a.txt", "content": text}})
}

/// Makes a call, and answers its approval request.
fn call(server: &mut Lines, call: Value, reply: Value) -> (Value, Value) {
    let id = server.ask("tools/call", call);
    // An earlier request may be cancelled meanwhile.
    let next = |server: &mut Lines| loop {
        let message = server.read().unwrap();
        if message["method"] != "notifications/cancelled" {
            return message;
        }
    };
    let question = next(server);
    assert_eq!(question["method"], "elicitation/create", "{question}");
    server.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": reply}));
    let message = next(server);
    assert_eq!(message["id"], id);
    (question["params"].clone(), answer(&message))
}

fn accept(answer: &str) -> Value {
    json!({"action": "accept", "content": {"answer": answer}})
}

#[test]
fn a_client_can_allow_and_deny() {
    let dir = workspace();
    let mut server = asking_server(&dir);
    let (question, done) = call(&mut server, write("two\n"), accept("allow once"));
    assert_eq!(done["success"], true, "{done}");
    let message = question["message"].as_str().unwrap();
    assert!(message.contains("Allow changing") && message.contains("ws/a.txt"), "{message}");
    assert!(message.contains("-one\n+two"), "{message}");
    assert_eq!(
        question["requestedSchema"]["properties"]["answer"]["enum"].as_array().unwrap().len(),
        3
    );
    // An approval for once covers one call, and anything but a clear approval is a denial.
    let denied =
        json!({"action": "accept", "content": {"answer": "deny", "reason": "not that one"}});
    for (reply, words) in [
        (denied, "the user said no: not that one"),
        (accept("yes please"), "the user said no"),
        (json!({"action": "accept"}), "the user said no"),
        (json!({"action": "decline"}), "the user said no"),
        (json!({"action": "cancel"}), "the user said no"),
    ] {
        let (_, refused) = call(&mut server, write("three\n"), reply);
        assert_eq!(refused["error"], "permission_denied");
        assert!(refused["message"].as_str().unwrap().contains(words), "{refused}");
    }
    assert_eq!(content(&dir), "two\n");
    call(&mut server, write("three\n"), accept("allow for this session"));
    let done = answer(&server.request("tools/call", write("four\n")));
    assert_eq!((done["success"].as_bool(), content(&dir).as_str()), (Some(true), "four\n"));
    // Reads need no approval, and a client that fails to ask counts as no approver.
    let id =
        server.ask("tools/call", json!({"name": "file.delete", "arguments": {"path": "a.txt"}}));
    let question = server.read().unwrap();
    let error = json!({"code": -1, "message": "no person here"});
    server.send(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error}));
    let message = server.read().unwrap();
    assert_eq!(message["id"], id);
    assert!(answer(&message)["message"].as_str().unwrap().contains("nobody can be"));
    assert!(dir.path().join("ws/a.txt").exists());
}

#[test]
fn an_answer_that_cannot_be_read_approves_nothing_and_is_not_waited_for() {
    let dir = workspace();
    let mut server = asking_server(&dir);
    for content in [r#"{"answer":"deny","reason":"\ud83d"}"#, r#"{"answer":"allow once","x":NaN}"#]
    {
        let id = server.ask("tools/call", write("two\n"));
        let question = server.read().unwrap();
        let answer_text = format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"accept","content":{content}}}}}"#,
            question["id"]
        );
        server.send_raw(answer_text.as_bytes());
        let message = server.read().unwrap();
        assert_eq!(message["id"], id);
        assert_eq!(answer(&message)["error"], "permission_denied", "{message}");
    }
    assert_eq!(content(&dir), "one\n");
}

#[test]
fn where_nobody_can_be_asked_the_answer_names_the_rule() {
    let dir = workspace();
    let mut command = pinfold(&dir, "serve", &["--mode", "default"]);
    let mut server = Lines::initialized(&mut command, json!({}));
    let refused = answer(&server.request("tools/call", write("two\n")));
    assert_eq!(refused["error"], "permission_denied");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("with the rule `Write(/a.txt)`"), "{message}");
    let scoped = json!({"name": "write_file", "arguments": {"path": "a.txt", "content": "x"}});
    assert_eq!(answer(&server.request("tools/call", scoped))["error"], "PERMISSION_DENIED");
    let classic = json!({"name": "Delete", "arguments": {"path": "a.txt"}});
    let refused = answer(&server.request("tools/call", classic));
    assert!(
        refused["error"].as_str().unwrap().starts_with("Permission denied: a.txt"),
        "{refused}"
    );
    // That rule allows the change.
    let mut command = pinfold(&dir, "serve", &["--mode", "default", "--allow", "Write(/a.txt)"]);
    let mut server = Lines::initialized(&mut command, json!({}));
    assert_eq!(answer(&server.request("tools/call", write("two\n")))["success"], true);
}

#[test]
fn a_call_can_be_cancelled_while_it_waits_for_approval() {
    let dir = workspace();
    let mut server = asking_server(&dir);
    let id = server.ask("tools/call", write("two\n"));
    let question = server.read().unwrap();
    assert_eq!(question["method"], "elicitation/create");
    // Meanwhile others are answered.
    let read = json!({"name": "file.read", "arguments": {"path": "a.txt"}});
    assert_eq!(answer(&server.request("tools/call", read))["total_lines"], 1);
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    // The next change gets its turn.
    let (_, done) = call(&mut server, write("three\n"), accept("allow once"));
    assert_eq!(done["success"], true);
    assert!(server.end().0.success());
    assert_eq!(content(&dir), "three\n");
}

#[test]
fn an_approval_request_ends_with_its_call() {
    let dir = workspace();
    let mut server = asking_server(&dir);
    let id = server.ask("tools/call", write("two\n"));
    let question = server.read().unwrap();
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    let cancelled = server.read().unwrap();
    assert_eq!(cancelled["method"], "notifications/cancelled", "{cancelled}");
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
    // An answer that comes too late approves nothing.
    let late = accept("allow once");
    server.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": late}));
    assert!(server.end().0.success());
    assert_eq!(content(&dir), "one\n");
}

#[test]
fn a_connection_that_ends_while_a_call_waits_for_approval_changes_nothing() {
    let dir = workspace();
    let mut server = asking_server(&dir);
    server.ask("tools/call", write("two\n"));
    assert_eq!(server.read().unwrap()["method"], "elicitation/create");
    assert!(server.end().0.success());
    assert_eq!(content(&dir), "one\n");
}

/// A stateless call, with the client's response to an earlier answer.
fn round(web: &Web, mut call: Value, state: Option<&Value>, reply: Option<Value>) -> Value {
    if let Some(state) = state {
        call["requestState"] = state.clone();
    }
    if let Some(reply) = reply {
        call["inputResponses"] = json!({"approve": reply});
    }
    let mut meta = alone("asking");
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
    if let Some(session) = call.as_object_mut().unwrap().remove("session") {
        meta.insert("pinfold/session".into(), session);
    }
    web.alone("tools/call", call, meta).message()
}

/// The same call in a named session.
fn in_session(name: &str, mut call: Value) -> Value {
    call["session"] = name.into();
    call
}

#[test]
fn a_client_without_a_connection_is_asked_by_the_answer() {
    let dir = workspace();
    let web = web(&dir);
    let asked = round(&web, write("two\n"), None, None);
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let form = &result["inputRequests"]["approve"];
    assert_eq!(form["method"], "elicitation/create");
    assert!(form["params"]["message"].as_str().unwrap().contains("+two"), "{form}");
    let state = &result["requestState"];
    // Without an answer, the user is asked again.
    let again = round(&web, write("two\n"), Some(state), None);
    assert_eq!(again["result"]["resultType"], "input_required");
    // A state is signed, and valid for one call.
    let mut forged = state.as_str().unwrap().to_owned();
    let last = if forged.pop() == Some('A') { 'B' } else { 'A' };
    forged.push(last);
    for (call, state) in [
        (write("two\n"), json!(forged)),
        (write("evil\n"), state.clone()),
        (json!({"name": "file.delete", "arguments": {"path": "a.txt"}}), state.clone()),
        (write("two\n"), json!("")),
    ] {
        let refused = round(&web, call, Some(&state), Some(accept("allow once")));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    // An approval without a state approves nothing.
    let unasked = round(&web, write("two\n"), None, Some(accept("allow once")));
    assert_eq!(unasked["result"]["resultType"], "input_required");
    assert_eq!(content(&dir), "one\n");
    let denied = json!({"action": "accept", "content": {"answer": "deny", "reason": "no"}});
    let other = round(&web, write("two\n"), None, None)["result"]["requestState"].clone();
    let refused = answer(&round(&web, write("two\n"), Some(&other), Some(denied)));
    assert_eq!(refused["error"], "permission_denied");
    // A client cannot replace a denial by an approval.
    let again = round(&web, write("two\n"), Some(&other), Some(accept("allow once")));
    assert_eq!(again["result"]["resultType"], "input_required");
    let done = answer(&round(&web, write("two\n"), Some(state), Some(accept("allow once"))));
    assert_eq!((done["success"].as_bool(), content(&dir).as_str()), (Some(true), "two\n"));
    // The approval does not count, because the diff is another one.
    fs::write(dir.path().join("ws/a.txt"), "somebody else's\n").unwrap();
    let anew = round(&web, write("two\n"), Some(state), Some(accept("allow once")));
    assert_eq!(anew["result"]["resultType"], "input_required", "{anew}");
    assert_eq!(content(&dir), "somebody else's\n");
}

#[test]
fn an_approval_for_the_session_needs_a_session_with_a_name() {
    let dir = workspace();
    let web = web(&dir);
    let choices = |asked: &Value| {
        let form = &asked["result"]["inputRequests"]["approve"]["params"]["requestedSchema"];
        form["properties"]["answer"]["enum"].as_array().unwrap().len()
    };
    // Two clients may have one name, so approval for the session is not offered. If it is given anyway, it counts
    // once.
    let asked = round(&web, write("two\n"), None, None);
    assert_eq!(choices(&asked), 2, "{asked}");
    let state = &asked["result"]["requestState"];
    let reply = accept("allow for this session");
    let done = answer(&round(&web, write("two\n"), Some(state), Some(reply.clone())));
    assert_eq!(done["success"], true, "{done}");
    let asked = round(&web, write("three\n"), None, None);
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    // In a named session it covers the session, and no other.
    let asked = round(&web, in_session("s", write("three\n")), None, None);
    assert_eq!(choices(&asked), 3, "{asked}");
    let state = &asked["result"]["requestState"];
    round(&web, in_session("s", write("three\n")), Some(state), Some(reply));
    let done = answer(&round(&web, in_session("s", write("four\n")), None, None));
    assert_eq!((done["success"].as_bool(), content(&dir).as_str()), (Some(true), "four\n"));
    for call in [write("five\n"), in_session("other", write("five\n"))] {
        let asked = round(&web, call, None, None);
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    }
}

#[test]
fn a_used_state_brings_no_approval_even_without_an_answer() {
    let dir = workspace();
    fs::write(dir.path().join("ws/.env"), "KEY=1\n").unwrap();
    let web = web(&dir);
    let edit = json!({"path": ".env", "patches": [{"find": "KEY=", "replace": "OLD_KEY="}]});
    let call = || in_session("s", json!({"name": "file.patch", "arguments": edit.clone()}));
    let asked = |message: &Value, about: &str| {
        let form = &message["result"]["inputRequests"]["approve"]["params"]["message"];
        assert!(form.as_str().is_some_and(|form| form.contains(about)), "{message}");
        message["result"]["requestState"].clone()
    };
    // The edit needs an approval to read the file, for once, and one to change it, for the session.
    let first = asked(&round(&web, call(), None, None), "Allow reading");
    let reply = round(&web, call(), Some(&first), Some(accept("allow once")));
    let second = asked(&reply, "Allow changing");
    let reply = accept("allow for this session");
    let done = answer(&round(&web, call(), Some(&second), Some(reply)));
    assert_eq!(done["success"], true, "{done}");
    let again = round(&web, call(), Some(&second), None);
    asked(&again, "Allow reading");
    assert_eq!(fs::read_to_string(dir.path().join("ws/.env")).unwrap(), "OLD_KEY=1\n");
}

#[test]
fn a_client_with_roots_can_approve() {
    let dir = workspace();
    let web = web(&dir);
    let mut meta = alone("both");
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}, "roots": {}});
    let root = |path: &str| {
        let uri = format!("file://{}/{path}", dir.path().display());
        json!({"roots": [{"uri": uri}]})
    };
    // Each round has the answers to the last one, and the state if there was one, as a client sends them.
    let answered = |roots: Value| {
        let (mut call, mut rounds) = (write("two\n"), 0);
        loop {
            let message = web.alone("tools/call", call, meta.clone()).message();
            let result = &message["result"];
            if result["resultType"] != "input_required" {
                return (answer(&message), rounds);
            }
            rounds += 1;
            assert!(rounds < 4, "{message}");
            call = write("two\n");
            if let Some(state) = result.get("requestState") {
                call["requestState"] = state.clone();
            }
            let inputs = result["inputRequests"].as_object().unwrap();
            for key in inputs.keys() {
                let input = if key == "roots" { roots.clone() } else { accept("allow once") };
                call["inputResponses"][key] = input;
            }
        }
    };
    let (done, rounds) = answered(root("ws"));
    assert_eq!((done["success"].as_bool(), rounds), (Some(true), 2), "{done}");
    assert_eq!(content(&dir), "two\n");
    // The roots still narrow the workspace.
    fs::create_dir(dir.path().join("ws/empty")).unwrap();
    let (refused, _) = answered(root("ws/empty"));
    assert_eq!(refused["error"], "path_outside_workspace", "{refused}");
}

#[test]
fn a_yes_to_one_file_is_none_to_another_in_its_place() {
    let dir = workspace();
    let web = web(&dir);
    let delete = || json!({"name": "file.delete", "arguments": {"path": "a.txt"}});
    let message = |asked: &Value| {
        let form = &asked["result"]["inputRequests"]["approve"]["params"];
        form["message"].as_str().unwrap().to_owned()
    };
    let first = round(&web, delete(), None, None);
    assert!(message(&first).starts_with("Allow "), "{first}");
    let state = first["result"]["requestState"].clone();
    fs::write(dir.path().join("ws/b.txt"), "precious\n").unwrap();
    fs::rename(dir.path().join("ws/b.txt"), dir.path().join("ws/a.txt")).unwrap();
    let again = round(&web, delete(), Some(&state), Some(accept("allow once")));
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    assert_eq!(content(&dir), "precious\n");
    assert!(message(&again).starts_with("The file changed since the last question. "), "{again}");
    let state = again["result"]["requestState"].clone();
    let done = answer(&round(&web, delete(), Some(&state), Some(accept("allow once"))));
    assert_eq!(done["success"], true, "{done}");
}

/// Runs a command on a terminal. `early` is typed before it starts, and each of `lines` when a question is shown.
/// Returns standard output, and the terminal's output.
fn on_a_terminal(
    dir: &TempDir,
    command: &str,
    arguments: &[&str],
    early: &str,
    lines: &[&str],
) -> (String, String) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = || {
        let path = Path::new(name.to_str().unwrap());
        fs::File::options().read(true).write(true).open(path).unwrap()
    };
    // The terminal discards input while nobody has it open.
    let open = theirs();
    let mut call = pinfold(dir, command, &["--mode", "default"]);
    call.args(arguments);
    let mut process = Command::new("setsid");
    process.arg("--ctty").arg("--wait").arg(call.get_program()).args(call.get_args());
    process.envs(call.get_envs().filter_map(|(name, value)| Some((name, value?))));
    process.stdin(theirs()).stdout(Stdio::piped()).stderr(theirs());
    let mut terminal = fs::File::from(ours);
    terminal.write_all(early.as_bytes()).unwrap();
    let mut process = process.spawn().unwrap();
    let mut seen = String::new();
    for (number, line) in lines.iter().enumerate() {
        while seen.matches("[N]o: ").count() <= number {
            let mut buffer = [0; 4096];
            let read = terminal.read(&mut buffer).unwrap();
            seen.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
        terminal.write_all(line.as_bytes()).unwrap();
    }
    let mut output = String::new();
    process.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    process.wait().unwrap();
    drop(open);
    (output, seen)
}

fn called_on_a_terminal(dir: &TempDir, lines: &[&str], arguments: [&str; 2]) -> (Value, String) {
    let arguments = ["--", arguments[0], arguments[1]];
    let (output, seen) = on_a_terminal(dir, "call", &arguments, "", lines);
    (serde_json::from_str(&output).unwrap(), seen)
}

#[test]
fn a_user_at_the_terminal_is_asked_there() {
    let dir = workspace();
    let arguments = ["file.write", r#"{"path": "a.txt", "content": "two\u001b[2J\n"}"#];
    for (lines, words) in [
        (&["\n"][..], "the user said no"),
        (&["n\n"], "the user said no"),
        (&["what?\n", "no, use b.txt\n"], "the user said no: use b.txt"),
    ] {
        let (answer, seen) = called_on_a_terminal(&dir, lines, arguments);
        assert!(answer["message"].as_str().unwrap().contains(words), "{answer}");
        assert!(seen.contains("Allow changing") && seen.contains("-one"), "{seen}");
        assert!(seen.contains("+two\\x1b[2J"), "{seen}");
        assert!(!seen.contains("\u{1b}[2J"), "what is in files does not command the terminal");
    }
    assert_eq!(content(&dir), "one\n");
    let (answer, _) = called_on_a_terminal(&dir, &["y\n"], arguments);
    assert_eq!(answer["success"], true, "{answer}");
    // Without a terminal, the user cannot be asked.
    fs::write(dir.path().join("ws/a.txt"), "one\n").unwrap();
    let mut call = pinfold(&dir, "call", &["--mode", "default", "--"]);
    let output = call.args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("nobody can be"));
}

#[test]
fn keys_typed_before_a_question_do_not_answer_it() {
    let dir = workspace();
    let arguments = ["--", "file.write", r#"{"path": "a.txt", "content": "two\n"}"#];
    let (output, _) = on_a_terminal(&dir, "call", &arguments, "y\ny\n", &["n\n"]);
    assert!(output.contains("permission_denied"), "{output}");
    assert_eq!(content(&dir), "one\n");
}

/// Every call has a line, even one that was refused.
#[test]
fn every_call_is_in_the_audit_log() {
    let dir = workspace();
    let log = dir.path().join("ws/audit.jsonl");
    let arguments = ["--audit", log.to_str().unwrap(), "--deny", "Read(secret/**)"];
    let mut server = Lines::initialized(&mut pinfold(&dir, "serve", &arguments), json!({}));
    let calls = [
        ("file.write", json!({"path": "a.txt", "content": "two\n"}), "ok", "allow"),
        ("file.read", json!({"path": "secret/x"}), "permission_denied", "deny"),
        ("file.read", json!({"path": "audit.jsonl"}), "permission_denied", "deny"),
        ("file.read", json!({"path": "none"}), "file_not_found", "none"),
        ("file.read", json!({"file": 1}), "invalid_argument", "none"),
        ("file.read", json!([]), "invalid_argument", "none"),
        ("Reed", json!({}), "unknown_tool", "none"),
        ("search_files", json!({"pattern": "two"}), "ok", "allow"),
        ("write_file", json!({"path": "../x", "content": ""}), "path_outside_workspace", "none"),
    ];
    for (tool, arguments, ..) in &calls {
        server.request("tools/call", json!({"name": tool, "arguments": arguments}));
    }
    let text = fs::read_to_string(&log).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), calls.len(), "{text}");
    for (line, (tool, _, outcome, decision)) in lines.iter().zip(&calls) {
        let printed = [&line["tool"], &line["outcome"], &line["decision"]];
        assert_eq!(printed, [tool, outcome, decision], "{line}");
        assert_eq!((&line["client"], &line["session"]), (&json!("testkit"), &lines[0]["session"]));
        assert!(line["time"].as_str().unwrap().ends_with('Z') && line["duration_ms"].is_u64());
        assert!(line["bytes"].is_u64(), "{line}");
    }
    assert_eq!(lines[0]["paths"][0]["given"], "a.txt");
    assert!(!text.contains("two"), "no contents: {text}");
    // The server does not start with a log that cannot be opened, or with an invalid rule.
    for arguments in
        [["--audit", "/no/such/place/log"], ["--deny", "Grep(x)"], ["--mode", "careful"]]
    {
        let output = pinfold(&dir, "serve", &arguments).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(printed.contains(arguments[1]), "{printed}");
    }
}

#[test]
fn other_calls_are_answered_however_many_wait_for_approval() {
    let dir = workspace();
    let mut server = asking_server(&dir);
    let mut questions = Vec::new();
    for number in 0..100 {
        let path = format!("new{number}.txt");
        let arguments = json!({"path": path, "content": "new"});
        server.ask("tools/call", json!({"name": "file.write", "arguments": arguments}));
        let question = server.read().unwrap();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        questions.push(question["id"].clone());
    }
    let found = server.call("file.search", &json!({"pattern": "one"}));
    assert_eq!(found["structuredContent"]["matches"][0]["path"], "a.txt", "{found}");
    for id in questions {
        let reply = json!({"action": "decline"});
        server.send(&json!({"jsonrpc": "2.0", "id": id, "result": reply}));
        assert_eq!(answer(&server.read().unwrap())["error"], "permission_denied");
    }
    assert_eq!(fs::read_dir(dir.path().join("ws")).unwrap().count(), 1);
}
