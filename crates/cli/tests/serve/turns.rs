//! The order of calls, cancellation, and the end of the server.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use pinfold_testkit::mcp::{Lines, alone, answer, initialize};
use serde_json::{Value, json};

use crate::served::{serve, text, workspace};

#[test]
fn requests_before_the_end_of_input_are_answered() {
    let dir = workspace(&[("a.txt", "one\n")]);
    let mut server = Lines::start(&mut serve(dir.path(), &[]));
    // Requests before `initialize` belong to no conversation.
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    server.ask("initialize", initialize(json!({})));
    let path = dir.path().join("a.txt");
    let ids: Vec<u64> = (0..20)
        .map(|_| {
            server.ask("tools/call", json!({"name": "Read", "arguments": {"file_path": path}}))
        })
        .collect();
    let (status, rest) = server.end();
    assert!(status.success());
    for id in ids {
        let answer = rest.iter().find(|message| message["id"] == id);
        assert_eq!(text(&answer.unwrap()["result"]), "     1\tone\n");
    }
}

#[test]
fn an_input_that_ends_without_a_word_ends_the_server() {
    let dir = workspace(&[]);
    let output = serve(dir.path(), &[]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success());
    assert_eq!((output.stdout.len(), output.stderr.len()), (0, 0));
}

/// A search that takes longer than any test waits.
fn endless(dir: &Path) -> Value {
    // No two lines are alike, so no state of the search occurs twice.
    let mut random = 1_u64;
    let mut letter = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if random >> 63 == 0 { 'a' } else { 'b' }
    };
    let line = |_| (0..1_000).map(|_| letter()).chain(['\n']).collect::<String>();
    fs::write(dir.join("endless.txt"), (0..20_000).map(line).collect::<String>()).unwrap();
    json!({"name": "Grep", "arguments": {"pattern": "a[ab]{450}[^ab]"}})
}

#[test]
fn a_cancelled_search_ends() {
    let dir = workspace(&[]);
    let search = endless(dir.path());
    let mut server =
        Lines::initialized(&mut serve(dir.path(), &["--deadline-seconds", "600"]), json!({}));
    let id = server.ask("tools/call", search);
    // While it runs, others are answered.
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
    let list = server.call("LS", &json!({"path": dir.path()}));
    assert_eq!(list["isError"], false);
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    // The process waits for running calls, so it ends only if this one has.
    let (status, rest) = server.end();
    assert!(status.success());
    assert_eq!(rest, Vec::<Value>::new(), "a cancelled request gets no answer");
}

#[test]
fn the_end_of_the_input_ends_a_long_search_soon() {
    let dir = workspace(&[]);
    let search = endless(dir.path());
    let mut server =
        Lines::initialized(&mut serve(dir.path(), &["--deadline-seconds", "600"]), json!({}));
    let id = server.ask("tools/call", search);
    let (status, rest) = server.end();
    assert!(status.success());
    let [last] = rest.as_slice() else { panic!("{rest:?}") };
    assert_eq!(last["id"], id);
    assert_eq!(last["result"]["_meta"]["pinfold/result"]["metadata"]["code"], "cancelled");
}

#[test]
fn a_second_signal_ends_the_server_in_good_order() {
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let dir = workspace(&[]);
        let search = endless(dir.path());
        let mut server =
            Lines::initialized(&mut serve(dir.path(), &["--deadline-seconds", "600"]), json!({}));
        server.ask("tools/call", search);
        server.request("ping", json!({}));
        let process = rustix::process::Pid::from_child(server.process());
        // The first drains it, which would take longer; another ends it.
        let status = loop {
            rustix::process::kill_process(process, signal).unwrap();
            std::thread::sleep(Duration::from_millis(10));
            if let Some(status) = server.process().try_wait().unwrap() {
                break status;
            }
        };
        // The input is still open.
        assert!(status.success());
    }
}

#[test]
fn changes_are_made_in_the_order_in_which_they_come() {
    let dir = workspace(&[("a.txt", "")]);
    symlink("a.txt", dir.path().join("b.txt")).unwrap();
    let mut server =
        Lines::initialized(&mut serve(dir.path(), &["--dialect", "dotted"]), json!({}));
    let count = 300;
    for number in 0..count {
        let path = if number % 3 == 0 { "b.txt" } else { "./a.txt" };
        let arguments = json!({"path": path, "content": format!("{number}\n")});
        server.ask("tools/call", json!({"name": "file.write", "arguments": arguments}));
    }
    // The input stays open: after its end, calls would be cancelled that take long.
    (0..count).for_each(|_| assert_eq!(server.read().unwrap()["result"]["isError"], false));
    let content = fs::read_to_string(dir.path().join("a.txt")).unwrap();
    assert_eq!(content, format!("{}\n", count - 1));
}

/// Before a conversation only requests are answered; everything else is ignored.
#[test]
fn what_comes_before_a_conversation_does_not_end_it() {
    let dir = workspace(&[]);
    let noise = [
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
        json!({"jsonrpc": "2.0", "id": 7, "result": {}}),
        json!({"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": ""}}),
    ];
    let first = [
        ("ping", json!({})),
        ("server/discover", json!({"_meta": alone("a")})),
        ("tools/list", json!({})),
    ];
    for (method, params) in first {
        let mut server = Lines::start(&mut serve(dir.path(), &[]));
        server.request(method, params);
        noise.iter().for_each(|message| server.send(message));
        let hello = server.request("initialize", initialize(json!({})));
        assert!(hello.get("result").is_some(), "{method}: {hello}");
        noise.iter().for_each(|message| server.send(message));
        assert_eq!(server.request("ping", json!({}))["result"], json!({}));
    }
}

#[test]
fn a_client_that_does_not_read_is_not_waited_for() {
    let dir = workspace(&[("large.txt", &"0123456789\n".repeat(200_000))]);
    let call = json!({"name": "file.read", "arguments": {"path": "large.txt"}});
    for signal in [None, Some(rustix::process::Signal::TERM)] {
        let mut command =
            serve(dir.path(), &["--dialect", "dotted", "--max-output-bytes", "3000000"]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = process.stdin.take().unwrap();
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize(json!({}))});
        writeln!(input, "{hello}").unwrap();
        for id in 1..5 {
            let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call});
            writeln!(input, "{call}").unwrap();
        }
        let mut output = BufReader::with_capacity(100, process.stdout.take().unwrap());
        output.read_line(&mut String::new()).unwrap();
        // The first answer has begun, and nothing more is read.
        output.fill_buf().unwrap();
        match signal {
            Some(signal) => {
                let process = rustix::process::Pid::from_child(&process);
                rustix::process::kill_process(process, signal).unwrap();
            }
            None => drop(input),
        }
        assert!(process.wait().unwrap().success());
    }
}

#[test]
fn no_line_is_broken_by_what_is_no_message() {
    let dir = workspace(&[("a.txt", "one\n")]);
    let mut server =
        Lines::initialized(&mut serve(dir.path(), &["--dialect", "dotted"]), json!({}));
    let count = 300;
    for number in 0..count {
        server.ask("tools/call", json!({"name": "file.read", "arguments": {"path": "a.txt"}}));
        server.send(&json!({"jsonrpc": "1.0", "id": format!("bad {number} {}", "x".repeat(2_000)), "method": "ping"}));
    }
    let (status, rest) = server.end();
    assert!(status.success());
    let bad = rest.iter().filter(|message| message.get("error").is_some()).count();
    assert_eq!((bad, rest.len() - bad), (count, count));
}

#[test]
fn a_change_that_was_cancelled_before_its_turn_is_not_made() {
    use rustix::fs::{FlockOperation, flock};
    let dir = workspace(&[("a.txt", "one\n")]);
    let mut server =
        Lines::initialized(&mut serve(dir.path(), &["--dialect", "dotted"]), json!({}));
    // The first change waits for the directory, and the others wait for it.
    let held = fs::File::open(dir.path()).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    let write =
        |path: &str| json!({"name": "file.write", "arguments": {"path": path, "content": "x"}});
    let first = server.ask("tools/call", write("a.txt"));
    let waiting: Vec<u64> =
        (0..100).map(|number| server.ask("tools/call", write(&format!("new-{number}")))).collect();
    for id in &waiting {
        let params = json!({"requestId": id});
        server.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}),
        );
    }
    server.request("ping", json!({}));
    flock(&held, FlockOperation::Unlock).unwrap();
    let message = server.read().unwrap();
    assert_eq!((&message["id"], &answer(&message)["success"]), (&json!(first), &json!(true)));
    assert!(server.end().0.success());
    let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["a.txt"]);
}

#[test]
fn a_question_holds_up_no_other_change() {
    let dir = workspace(&[("a.txt", "one\n")]);
    let mut command = serve(dir.path(), &["--dialect", "dotted", "--ask", "Edit(a.txt)"]);
    let mut server = Lines::initialized(&mut command, json!({"elicitation": {}}));
    let write =
        |path: &str| json!({"name": "file.write", "arguments": {"path": path, "content": "x"}});
    let first = server.ask("tools/call", write("a.txt"));
    let question = server.read().unwrap();
    assert_eq!(answer(&server.request("tools/call", write("b.txt")))["success"], true);
    let yes = json!({"action": "accept", "content": {"answer": "allow once"}});
    server.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": yes}));
    let message = server.read().unwrap();
    assert_eq!((&message["id"], &answer(&message)["success"]), (&json!(first), &json!(true)));
}

#[test]
fn a_request_before_the_handshake_is_told_what_is_missing() {
    let dir = workspace(&[]);
    let mut server = Lines::start(&mut serve(dir.path(), &[]));
    let answer = server.request("tools/list", json!({}));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("`tools/list` came before `initialize`"), "{message}");
    let hello = server.request("initialize", initialize(json!({})));
    assert!(hello.get("result").is_some(), "{hello}");
}

/// With an impossible stack size, every attempt to start a thread fails.
#[test]
fn calls_are_made_even_if_the_system_gives_no_threads() {
    let files: Vec<_> = (0..200).map(|number| (format!("d{number}/a.txt"), "one\n")).collect();
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let dir = workspace(&files);
    let mut command = serve(dir.path(), &["--dialect", "dotted"]);
    command.env("RUST_MIN_STACK", (1_u64 << 46).to_string());
    let mut server = Lines::initialized(&mut command, json!({}));
    for _ in 0..32 {
        let found = server.call("file.search", &json!({"pattern": "one"}));
        assert_eq!(found["isError"], false, "{found}");
        assert_eq!(found["structuredContent"]["matches"][0]["path"], "d0/a.txt", "{found}");
    }
    let written = server.call("file.write", &json!({"path": "new.txt", "content": "two\n"}));
    assert_eq!(written["isError"], false, "{written}");
}
