//! `pinfold watch`: its output on a terminal, and the effect of keys.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};

use pinfold_testkit::mcp::{Lines, answer};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::pty::Screen;
use crate::{content, result, serve, workspace, write};

fn watch(dir: &TempDir, more: &[&str]) -> Process {
    let mut process = Process::new(env!("CARGO_BIN_EXE_pinfold"));
    process.arg("watch").arg("--feed").arg(dir.path().join("feed")).args(more);
    process.env("XDG_CONFIG_HOME", dir.path().join("config"));
    process
}

/// A server in which changes need approval, whose client cannot ask.
fn asking(dir: &TempDir) -> Lines {
    Lines::initialized(&mut serve(dir, &["--mode", "default"]), json!({}))
}

/// A terminal on which the one server of a test is watched.
fn watched(dir: &TempDir) -> Screen {
    let mut screen = Screen::start(&watch(dir, &[]));
    screen.until("ws serves ");
    screen
}

fn message(refused: &Value) -> &str {
    refused["message"].as_str().unwrap()
}

#[test]
fn a_key_answers_and_the_model_is_told_the_message() {
    let dir = workspace();
    let mut server = asking(&dir);
    let mut screen = watched(&dir);
    screen.until("for testkit (default; classic, dotted, scoped; process ");
    let id = server.ask("tools/call", write("two\n"));
    screen.until("\u{1b}[31m-one\u{1b}[0m\n\u{1b}[32m+two\u{1b}[0m\n");
    screen.until("Allow changing ");
    screen.until("/ws/a.txt? (`file.write`; the mode `default`)");
    screen.asked();
    screen.keys("y");
    assert_eq!(result(&mut server, id)["success"], true);
    screen.until("→ allowed once");
    screen.until("file.write  a.txt  \u{1b}[33m+1 −1\u{1b}[0m  \u{1b}[32mapproved");
    // A denial, and a denial with a message, which can be edited and abandoned.
    let id = server.ask("tools/call", write("three\n"));
    screen.asked();
    screen.keys("n");
    assert!(message(&result(&mut server, id)).contains("the user said no; do not try it again"));
    screen.until("→ denied");
    let id = server.ask("tools/call", write("three\n"));
    screen.asked();
    screen.keys("m");
    screen.until("Message for the agent (Ctrl-D goes back): ");
    screen.keys("\u{4}");
    screen.until("whole [d]iff: ");
    screen.keys("m");
    screen.until("Message for the agent (Ctrl-D goes back): ");
    screen.keys("use b.txx\u{7f}t\n");
    let refused = result(&mut server, id);
    assert!(message(&refused).contains("the user said no: use b.txt; do as"), "{refused}");
    screen.until("denied by the user");
    assert_eq!(content(&dir), "two\n");
    // After an approval for the session, the user is not asked again.
    let id = server.ask("tools/call", write("three\n"));
    screen.asked();
    screen.keys("s");
    assert_eq!(result(&mut server, id)["success"], true);
    screen.until("→ allowed for the session");
    assert_eq!(answer(&server.request("tools/call", write("four\n")))["success"], true);
    screen.until("+1 −1");
    screen.keys("q");
    assert_eq!(screen.ended(), Ok(0));
    assert!(screen.is_as_before());
}

#[test]
fn the_whole_diff_is_shown_on_demand() {
    let dir = workspace();
    let mut server = asking(&dir);
    let mut screen = watched(&dir);
    let text: String = (1..=5_000).map(|number| format!("line {number}\n")).collect();
    server.ask("tools/call", write(&text));
    screen.asked();
    assert!(screen.seen.contains("+line 1\u{1b}") && screen.seen.contains("+line 5000\u{1b}"));
    assert!(!screen.seen.contains("+line 2500\u{1b}"), "the preview is cut");
    screen.keys("d");
    screen.until("+line 2500\u{1b}");
    screen.until("Allow changing ");
    screen.until("whole [d]iff: ");
    screen.keys("n");
    screen.until("→ denied");
    // One that was shown in full is not repeated.
    server.ask("tools/call", write("two\n"));
    screen.asked();
    screen.keys("d");
    screen.until("This is the whole diff.\n");
    screen.until("whole [d]iff: ");
    screen.keys("n");
    screen.until("→ denied");
}

#[test]
fn keys_typed_before_a_question_do_not_answer_it() {
    let dir = workspace();
    let mut server = asking(&dir);
    let mut screen = watched(&dir);
    screen.keys("y");
    // While the viewer is stopped, the request is sure to arrive after the keys.
    screen.signal(Signal::STOP);
    screen.wait_until_stopped(true);
    screen.keys("ysy");
    let id = server.ask("tools/call", write("two\n"));
    screen.signal(Signal::CONT);
    screen.asked();
    screen.keys("n");
    assert!(message(&result(&mut server, id)).contains("the user said no"));
    assert_eq!(content(&dir), "one\n");
}

#[test]
fn pasted_text_does_not_answer_a_request() {
    let dir = workspace();
    let mut server = asking(&dir);
    let mut screen = watched(&dir);
    let id = server.ask("tools/call", write("two\n"));
    screen.asked();
    for pasted in ["yes", "y\n", "\u{1b}[A", "é"] {
        screen.keys(pasted);
        screen.until("\u{7}");
    }
    screen.keys("n");
    assert!(message(&result(&mut server, id)).contains("the user said no"));
    assert_eq!(content(&dir), "one\n");
}

#[test]
fn changes_are_paused_and_resumed() {
    let dir = workspace();
    let mode = ["--mode", "bypassPermissions"];
    let mut server = Lines::initialized(&mut serve(&dir, &mode), json!({}));
    let mut screen = watched(&dir);
    screen.keys("p");
    screen.until("changes are paused: each needs your approval");
    let id = server.ask("tools/call", write("two\n"));
    screen.until("(`file.write`; changes are paused)");
    screen.until("[y]es, [n]o, ");
    screen.asked();
    // This request takes no answer for the session.
    screen.keys("s");
    screen.until("\u{7}");
    screen.keys("y");
    assert_eq!(result(&mut server, id)["success"], true);
    // Changes can be resumed while a question is open.
    let id = server.ask("tools/call", write("three\n"));
    screen.asked();
    screen.keys("p");
    screen.until("changes are resumed");
    screen.until("whole [d]iff: ");
    screen.keys("y");
    assert_eq!(result(&mut server, id)["success"], true);
    assert_eq!(answer(&server.request("tools/call", write("four\n")))["success"], true);
    screen.until("+1 −1");
}

#[test]
fn of_two_viewers_one_answers_and_the_other_sees_that() {
    let dir = workspace();
    let mut server = asking(&dir);
    let (mut one, mut other) = (watched(&dir), watched(&dir));
    let id = server.ask("tools/call", write("two\n"));
    one.asked();
    other.asked();
    other.keys("m");
    other.until("goes back): ");
    one.keys("y");
    assert_eq!(result(&mut server, id)["success"], true);
    one.until("→ allowed once\u{1b}[0m\n");
    other.until("→ allowed once by another viewer");
    // The other one takes keys again.
    let id = server.ask("tools/call", write("three\n"));
    one.asked();
    other.asked();
    other.keys("n");
    assert!(message(&result(&mut server, id)).contains("the user said no"));
    one.until("→ denied by another viewer");
}

#[test]
fn a_request_ends_with_its_call_and_with_its_server() {
    let dir = workspace();
    let mut server = asking(&dir);
    let mut screen = watched(&dir);
    let id = server.ask("tools/call", write("two\n"));
    screen.asked();
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    screen.until("→ no longer asked: its call has ended");
    server.ask("tools/call", write("two\n"));
    screen.asked();
    server.process().kill().unwrap();
    screen.until("→ no longer asked: the server has ended");
    screen.until("ws has ended");
    screen.until("No server of this user is running.");
    screen.until("Start an agent that uses Pinfold (docs/CLIENTS.md)");
    // The next one is seen.
    let mut server = asking(&dir);
    screen.until("ws serves ");
    let id = server.ask("tools/call", write("two\n"));
    screen.asked();
    screen.keys("y");
    assert_eq!(result(&mut server, id)["success"], true);
}

#[test]
fn lines_of_other_calls_do_not_push_a_question_away() {
    let dir = workspace();
    let mut server = asking(&dir);
    let mut screen = watched(&dir);
    let id = server.ask("tools/call", write("two\n"));
    screen.asked();
    let read = json!({"name": "file.read", "arguments": {"path": "a.txt"}});
    for _ in 0..3 {
        server.request("tools/call", read.clone());
    }
    // Another question waits for its turn.
    let delete = json!({"name": "file.delete", "arguments": {"path": "a.txt"}});
    let next = server.ask("tools/call", delete);
    screen.until("(1 more): ");
    assert!(!screen.seen.contains("file.read"));
    screen.keys("y");
    screen.until("→ allowed once");
    for _ in 0..3 {
        screen.until("file.read  a.txt");
    }
    screen.until("deletes a file of 4 bytes");
    screen.asked();
    screen.keys("n");
    assert_eq!(result(&mut server, id)["success"], true);
    assert!(message(&result(&mut server, next)).contains("the user said no"));
    assert_eq!(content(&dir), "two\n");
}

/// A name and a text that try to control the terminal, and to look like other text.
const HOSTILE: &str = "a\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}b\u{200b}\u{9b}31m\u{2066}\r";

#[test]
fn text_of_agents_and_files_cannot_control_the_terminal() {
    let dir = workspace();
    let mut server = Lines::start(&mut serve(&dir, &["--mode", "default"]));
    let mut hello = pinfold_testkit::mcp::initialize(json!({}));
    hello["clientInfo"]["name"] = HOSTILE.into();
    server.request("initialize", hello);
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let mut screen = Screen::start(watch(&dir, &[]).env("NO_COLOR", "1"));
    screen.until("ws serves ");
    let content = format!("{HOSTILE}\nfine\n{}\n", "x".repeat(10_000_000));
    let arguments = json!({"path": format!("{HOSTILE}\n.txt"), "content": content});
    let id = server.ask("tools/call", json!({"name": "file.write", "arguments": arguments}));
    screen.asked();
    screen.keys("d");
    screen.until("+fine");
    screen.until("Allow changing ");
    screen.until("whole [d]iff: ");
    screen.keys("y");
    assert_eq!(result(&mut server, id)["success"], true);
    screen.until("approved");
    // A refusal, a failed search and an unknown tool repeat what they were given.
    for (tool, arguments) in [
        ("file.read", json!({"path": HOSTILE})),
        ("file.search", json!({"pattern": HOSTILE})),
        ("file.list", json!({"path": HOSTILE})),
    ] {
        server.request("tools/call", json!({"name": tool, "arguments": arguments}));
        screen.until(tool);
    }
    screen.keys("q");
    assert_eq!(screen.ended(), Ok(0));
    // Removes the program's own control sequences: the bell, and the one that clears a prompt.
    let own = screen.seen.replace("\r\u{1b}[K", "").replace(": \u{7}", ": ");
    let hidden = |it: char| it.is_control() && it != '\n';
    let hidden = |it: char| hidden(it) || "\u{202e}\u{200b}\u{2066}".contains(it);
    if let Some(at) = own.find(hidden) {
        let begin = own.floor_char_boundary(at.saturating_sub(80));
        panic!("{:?}", &own[begin..own.ceil_char_boundary(at + 20)]);
    }
    assert!(
        own.contains(r"a\x1b[2J\x1b]0;owned\x07\u{202e}b\u{200b}\u{9b}31m\u{2066}\x0d"),
        "{own:.3000}"
    );
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let dir = workspace();
    let mut server = asking(&dir);
    for (name, value, codes) in
        [("NO_COLOR", "1", "\u{1b}[K"), ("NO_COLOR", "", "\u{1b}[2m"), ("TERM", "dumb", "")]
    {
        let mut screen = Screen::start(watch(&dir, &[]).env(name, value));
        screen.until("ws serves ");
        let id = server.ask("tools/call", write("two\n"));
        screen.asked();
        screen.keys("n");
        result(&mut server, id);
        screen.until("denied by the user");
        screen.keys("q");
        assert_eq!(screen.ended(), Ok(0));
        let seen = &screen.seen;
        assert_eq!(seen.contains('\u{1b}'), !codes.is_empty(), "{seen}");
        assert!(seen.contains(codes) && seen.contains("\u{1b}[3") == (value.is_empty()), "{seen}");
    }
}

#[test]
fn the_terminal_is_given_back_whatever_ends_the_program() {
    let dir = workspace();
    let mut server = asking(&dir);
    for (signal, code) in [
        (None, 2),
        (Some(Signal::INT), 2),
        (Some(Signal::TERM), 15),
        (Some(Signal::HUP), 1),
        (Some(Signal::QUIT), 3),
    ] {
        let mut screen = watched(&dir);
        let id = server.ask("tools/call", write("two\n"));
        screen.asked();
        assert!(!screen.is_as_before());
        match signal {
            Some(signal) => screen.signal(signal),
            None => screen.keys("\u{3}"),
        }
        assert_eq!(screen.ended(), Err(code), "{}", screen.seen);
        assert!(screen.is_as_before(), "{signal:?}");
        // The request does not wait for a viewer that is gone.
        assert!(message(&result(&mut server, id)).contains("nobody can be"));
    }
    // So does an error.
    let mut screen = Screen::start(&watch(&dir, &["--root", "/no/such/directory"]));
    assert_eq!(screen.ended(), Ok(2));
    assert!(screen.is_as_before() && screen.seen.contains("/no/such/directory"), "{}", screen.seen);
}

#[test]
fn a_viewer_that_is_suspended_is_not_asked() {
    let dir = workspace();
    let mut server = asking(&dir);
    let mut screen = watched(&dir);
    let id = server.ask("tools/call", write("two\n"));
    screen.asked();
    screen.keys("\u{1a}");
    screen.wait_until_stopped(true);
    assert!(screen.is_as_before());
    let nobody = "and nobody can be asked; tell the user, who can allow it with the rule `Write(/a.txt)`: \
                  `--allow 'Write(/a.txt)'`, or `allow` in the permissions; or run pinfold watch or \
                  pinfold page to be asked";
    let refused = result(&mut server, id);
    assert!(message(&refused).ends_with(nobody), "{refused}");
    let refused = answer(&server.request("tools/call", write("two\n")));
    assert!(message(&refused).ends_with(nobody), "{refused}");
    screen.signal(Signal::CONT);
    screen.until("ws serves ");
    let id = server.ask("tools/call", write("two\n"));
    screen.asked();
    assert!(!screen.is_as_before());
    screen.keys("y");
    assert_eq!(result(&mut server, id)["success"], true);
    screen.until("approved");
    // A signal that comes meanwhile ends it.
    screen.keys("\u{1a}");
    screen.wait_until_stopped(true);
    screen.signal(Signal::TERM);
    screen.signal(Signal::CONT);
    assert_eq!(screen.ended(), Err(15));
    assert!(screen.is_as_before());
}

#[test]
fn keys_come_from_the_terminal_also_if_standard_input_is_something_else() {
    let dir = workspace();
    let mut server = asking(&dir);
    let watch = watch(&dir, &[]);
    let mut shell = Process::new("sh");
    shell.args(["-c", "exec \"$0\" \"$@\" </dev/null"]).arg(watch.get_program());
    let mut screen = Screen::start(shell.args(watch.get_args()));
    screen.until("ws serves ");
    let id = server.ask("tools/call", write("two\n"));
    screen.asked();
    screen.keys("y");
    assert_eq!(result(&mut server, id)["success"], true);
    screen.keys("q");
    assert_eq!(screen.ended(), Ok(0));
    assert!(screen.is_as_before());
}

/// `pinfold watch` whose output is read by a program, and its lines.
struct Piped {
    process: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Piped {
    fn start(dir: &TempDir, more: &[&str]) -> Self {
        let mut process = watch(dir, more);
        let mut process = process.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    fn next(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    fn next_json(&mut self) -> Value {
        serde_json::from_str(&self.next()).unwrap()
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

#[test]
fn programs_read_lines_of_json_and_are_not_asked() {
    let dir = workspace();
    let mut piped = Piped::start(&dir, &["--json"]);
    assert_eq!(piped.next(), r#"{"type":"no_server","others":0}"#);
    let mut server = asking(&dir);
    let mut received = piped.next_json();
    assert_eq!((&received["type"], &received["paused"]), (&json!("server"), &json!(false)));
    let id = received["server"].clone();
    assert!(id.as_str().unwrap().starts_with(&received["pid"].to_string()), "{received}");
    let refused = answer(&server.request("tools/call", write("two\n")));
    assert!(message(&refused).contains("nobody can be"), "{refused}");
    while received["type"] == "server" {
        received = piped.next_json();
    }
    assert_eq!(
        [&received["type"], &received["server"], &received["tool"], &received["parameters"]],
        [&json!("call_started"), &id, &json!("file.write"), &json!("a.txt")]
    );
    let ended = piped.next_json();
    assert_eq!([&ended["type"], &ended["decision"]], ["call_ended", "no_approver"]);
    drop(server);
    assert_eq!(piped.next_json(), json!({"server": id, "type": "gone"}));
}

#[test]
fn a_client_is_asked_while_no_viewer_answers() {
    let dir = workspace();
    let mut command = serve(&dir, &["--mode", "default"]);
    let mut server = Lines::initialized(&mut command, json!({"elicitation": {}}));
    let mut piped = Piped::start(&dir, &["--json"]);
    assert_eq!(piped.next_json()["type"], "server");
    server.ask("tools/call", write("two\n"));
    let question = server.read().unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    // A viewer that opens now does not get a request that the client is answering.
    let mut screen = watched(&dir);
    server.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}));
    screen.until("denied by the user");
    assert!(!screen.seen.contains("Allow changing"), "{}", screen.seen);
}

#[test]
fn servers_are_found_wherever_their_sockets_are() {
    let dir = workspace();
    fs::create_dir_all(dir.path().join("config/pinfold")).unwrap();
    let config = format!("feed = \"{}\"\n", dir.path().join("feed").display());
    fs::write(dir.path().join("config/pinfold/config.toml"), config).unwrap();
    // One has its socket in the usual place, and one where the configuration file says.
    let start = |more: &[&str]| {
        let mut process = Process::new(env!("CARGO_BIN_EXE_pinfold"));
        process.args(["serve", "--no-journal", "--root"]).arg(dir.path().join("ws")).args(more);
        process
            .env("HOME", dir.path().join("home"))
            .env("XDG_STATE_HOME", dir.path().join("state"));
        Lines::initialized(process.env("XDG_CONFIG_HOME", dir.path().join("config")), json!({}))
    };
    fs::write(dir.path().join("empty.toml"), "").unwrap();
    let empty = dir.path().join("empty.toml");
    let _servers = [start(&[]), start(&["--config", empty.to_str().unwrap()])];
    let mut process = Process::new(env!("CARGO_BIN_EXE_pinfold"));
    process.arg("watch").arg("--root").arg(dir.path()).env("HOME", dir.path().join("home"));
    process.env("XDG_CONFIG_HOME", dir.path().join("config")).env("XDG_RUNTIME_DIR", "/nowhere");
    let mut screen = Screen::start(&process);
    screen.until("ws serves ");
    screen.until(" serves ");
    let usual = dir.path().join("home/.local/state/pinfold/feed");
    assert!(usual.exists() || Path::new("/run/user").exists());
}

#[test]
fn output_that_is_no_terminal_gets_plain_lines() {
    let dir = workspace();
    let mut server = Lines::initialized(&mut serve(&dir, &[]), json!({}));
    let mut piped = Piped::start(&dir, &[]);
    assert!(piped.next().starts_with("ws serves "));
    server.request("tools/call", write("two\nthree\n"));
    let line = piped.next();
    assert!(line.ends_with("Z  ws  file.write  a.txt  +2 −1"), "{line}");
    for (tool, arguments, end) in [
        ("file.write", json!({"path": "b.txt", "content": "x\n"}), "b.txt  created +1"),
        ("file.delete", json!({"path": "b.txt"}), "b.txt  deleted"),
        ("file.read", json!({"path": "c.txt"}), "c.txt  file_not_found"),
        ("file.read", json!({"file": 1}), "file.read  invalid_argument"),
        (".git/x", json!({}), ".git/x  unknown_tool"),
        ("Write", json!({"file_path": "/etc/x", "content": ""}), "path_outside_workspace"),
        (
            "file.write",
            json!({"path": ".git/x", "content": ""}),
            "nobody to ask (what is written there may be run)",
        ),
    ] {
        server.request("tools/call", json!({"name": tool, "arguments": arguments}));
        let line = piped.next();
        assert!(line.ends_with(end) && !line.contains('\u{1b}'), "{line}");
    }
}

#[test]
fn several_servers_are_watched_and_chosen_by_their_roots() {
    let dir = workspace();
    for name in ["one/ws", "other"] {
        fs::create_dir_all(dir.path().join(name)).unwrap();
    }
    let start = |root: &str| {
        let mut process = Process::new(env!("CARGO_BIN_EXE_pinfold"));
        process.args(["serve", "--no-journal", "--dialect", "all", "--root"]);
        process.arg(dir.path().join(root)).arg("--feed").arg(dir.path().join("feed"));
        process.env("XDG_STATE_HOME", dir.path().join("state"));
        Lines::initialized(&mut process, json!({}))
    };
    let (mut first, mut second) = (start("ws"), start("one/ws"));
    let one = dir.path().join("one");
    let mut all = Piped::start(&dir, &[]);
    let serves = [all.next(), all.next()];
    assert!(serves.iter().all(|line| line.contains(" serves ")), "{serves:?}");
    let mut chosen = Piped::start(&dir, &["--root", one.to_str().unwrap()]);
    let line = chosen.next();
    assert!(line.starts_with("ws serves ") && line.contains("/one/ws "), "{line}");
    // Both are called `ws`, so the process is named, too.
    let read = json!({"name": "file.read", "arguments": {"path": "none"}});
    for server in [&mut first, &mut second] {
        server.request("tools/call", read.clone());
        let (line, pid) = (all.next(), server.process().id());
        assert!(line.contains(&format!("  ws:{pid}  file.read")), "{line}");
    }
    let line = chosen.next();
    assert!(line.contains("  ws  file.read"), "{line}");
    // One that starts later, and is chosen by nobody else.
    let mut third = start("other");
    assert!(all.next().starts_with("other serves "));
    third.request("tools/call", read.clone());
    assert!(all.next().contains("  other  file.read"));
    second.request("tools/call", read);
    assert!(chosen.next().contains("  ws  file.read"));
    drop(second);
    assert!(chosen.next().starts_with("ws has ended"));
    let line = chosen.next();
    assert!(line.contains("there are others (2)"), "{line}");
}
