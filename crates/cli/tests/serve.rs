//! `pinfold serve` on standard input and output, message by message.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

mod served;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use pinfold_testkit::mcp::{Lines, alone, answer, initialize};
use serde_json::{Value, json};

use served::{error_code, serve, text, workspace};

#[test]
fn the_list_is_the_dialects_own() {
    let dir = workspace(&[]);
    for dialect in ["classic", "dotted", "scoped", "all"] {
        let mut tools = Command::new(env!("CARGO_BIN_EXE_pinfold"));
        let tools = tools.args(["tools", "--dialect", dialect, "--root"]).arg(dir.path());
        let tools = tools.env("XDG_CONFIG_HOME", dir.path());
        let expected: Value = serde_json::from_slice(&tools.output().unwrap().stdout).unwrap();
        let mut server =
            Lines::initialized(&mut serve(dir.path(), &["--dialect", dialect]), json!({}));
        let listed = server.request("tools/list", json!({}));
        assert_eq!(listed["result"]["tools"], expected["tools"], "{dialect}");
        let hint = &listed["result"]["tools"][0]["annotations"]["openWorldHint"];
        assert_eq!(hint, &json!(false));
        if dialect == "classic" {
            let size = listed["result"].to_string().len();
            assert!(size <= 6_000, "the list has {size} bytes");
        }
        let cursor = server.request("tools/list", json!({"cursor": "2"}));
        assert_eq!(error_code(&cursor), -32602);
    }
}

#[test]
fn a_handshake_names_the_server_and_the_workspace() {
    let dir = workspace(&[]);
    for (asked, given) in [
        ("2025-11-25", "2025-11-25"),
        ("2024-11-05", "2024-11-05"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let mut server = Lines::start(&mut serve(dir.path(), &[]));
        let mut params = initialize(json!({}));
        params["protocolVersion"] = asked.into();
        let hello = server.request("initialize", params);
        let hello = &hello["result"];
        assert_eq!(hello["protocolVersion"], given, "{asked}");
        assert_eq!(hello["serverInfo"]["name"], "pinfold");
        assert!(hello["instructions"].as_str().unwrap().contains(dir.path().to_str().unwrap()));
        assert_eq!(hello["capabilities"], json!({"logging": {}, "tools": {}}));
        assert_eq!(server.request("ping", json!({}))["result"], json!({}));
    }
}

#[test]
fn what_is_no_message_is_answered_and_the_server_goes_on() {
    let dir = workspace(&[("a.txt", "one\n")]);
    let mut server = Lines::initialized(&mut serve(dir.path(), &[]), json!({}));
    let deep = "[".repeat(100_000);
    for (line, code) in [
        (&b"hello"[..], -32700),
        (b"{\"jsonrpc\":", -32700),
        (b"\xFF\xFE{}", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\xFF\"}", -32700),
        (deep.as_bytes(), -32700),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600),
        (b"3", -32600),
        (b"{\"id\":1}", -32600),
        (b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", -32600),
    ] {
        server.send_raw(line);
        let answer = server.read().unwrap();
        assert_eq!(error_code(&answer), code, "{answer} to {}", String::from_utf8_lossy(line));
    }
    // A request that can be told apart gets its id back.
    server.send_raw(b"{\"jsonrpc\":\"1.0\",\"id\":\"seven\",\"method\":\"ping\"}");
    assert_eq!(server.read().unwrap()["id"], "seven");
    // Nothing is answered to empty lines and to notifications that nobody knows.
    server.send_raw(b"");
    server.send_raw(b"   \r");
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/nobody", "params": 3}));
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}));
    let read = server.call("Read", &json!({"file_path": dir.path().join("a.txt")}));
    assert_eq!(text(&read), "     1\tone\n");
}

#[test]
fn a_message_that_is_too_long_is_refused_and_not_kept() {
    let dir = workspace(&[]);
    let mut server = Lines::initialized(&mut serve(dir.path(), &[]), json!({}));
    let part = vec![b'x'; 1024 * 1024];
    let too_long: Vec<u8> = part.iter().copied().cycle().take(129 * part.len()).collect();
    server.send_raw(&too_long);
    let answer = server.read().unwrap();
    assert_eq!(error_code(&answer), -32600);
    assert!(answer["error"]["message"].as_str().unwrap().contains("134217728 bytes"), "{answer}");
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn a_large_file_can_be_written_and_read_back() {
    let dir = workspace(&[]);
    let mut server = Lines::initialized(&mut serve(dir.path(), &[]), json!({}));
    let content = "0123456789\n".repeat(3 * 1024 * 1024);
    let path = dir.path().join("large.txt");
    let written = server.call("Write", &json!({"file_path": path, "content": content}));
    assert_eq!(written["isError"], false, "{written}");
    assert_eq!(fs::read_to_string(path).unwrap(), content);
}

#[test]
fn faults_of_the_protocol_are_told_from_faults_of_tools() {
    let dir = workspace(&[]);
    let mut server = Lines::initialized(&mut serve(dir.path(), &[]), json!({}));
    for (method, params, code, says) in [
        ("tools/call", json!({"name": "Nope"}), -32602, "the tools are Read, Write"),
        ("tools/call", json!({"arguments": {}}), -32602, "tools/call"),
        ("tools/call", json!({"name": "Read", "arguments": 3}), -32602, "JSON object, not 3"),
        ("nope/nope", json!({}), -32601, "nope/nope"),
        ("prompts/list", json!({}), -32601, "prompts/list"),
        ("resources/list", json!({}), -32601, "resources/list"),
        ("logging/setLevel", json!({"level": "loud"}), -32602, "logging/setLevel"),
    ] {
        let answer = server.request(method, params);
        assert_eq!(error_code(&answer), code, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(says), "{answer}");
    }
    let missing = server.call("Read", &json!({"file_path": dir.path().join("none")}));
    assert_eq!(missing["isError"], true);
    assert!(text(&missing).starts_with("File not found"));
    assert_eq!(missing["_meta"]["pinfold/result"]["metadata"]["code"], "file_not_found");
    assert_eq!(missing["_meta"]["pinfold/result"]["compactParams"], "none");
    let wrong = server.call("Read", &json!({"file": 1}));
    assert_eq!(wrong["isError"], true);
    assert!(text(&wrong).contains("`file_path` is missing"), "{wrong}");
}

#[test]
fn answers_of_structured_dialects_are_there_twice_and_errors_once() {
    let dir = workspace(&[("a.txt", "one\n")]);
    let mut server =
        Lines::initialized(&mut serve(dir.path(), &["--dialect", "dotted,scoped"]), json!({}));
    let read = server.call("file.read", &json!({"path": "a.txt"}));
    assert_eq!(read["structuredContent"]["total_lines"], 1);
    assert_eq!(serde_json::from_str::<Value>(text(&read)).unwrap(), read["structuredContent"]);
    // A name as it is exported to formats that know no dots.
    assert_eq!(server.call("file_read", &json!({"path": "a.txt"})), read);
    let missing = server.call("read_file", &json!({"path": "b.txt"}));
    assert!(missing.get("structuredContent").is_none(), "{missing}");
    assert_eq!(missing["isError"], true);
    let error: Value = serde_json::from_str(text(&missing)).unwrap();
    assert_eq!(error["error"], "FILESYSTEM_ERROR");
}

#[test]
fn what_was_asked_before_the_input_ended_is_answered() {
    let dir = workspace(&[("a.txt", "one\n")]);
    let mut server = Lines::start(&mut serve(dir.path(), &[]));
    // What comes before a conversation belongs to none.
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

/// A search that would take longer than anybody waits.
fn endless(dir: &Path) -> Value {
    // No two lines alike, so that no state of the search is met twice.
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
    // The process waits for calls at work, so it ends only if this one has.
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
fn a_signal_ends_the_server_in_good_order() {
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let dir = workspace(&[]);
        let search = endless(dir.path());
        let mut server =
            Lines::initialized(&mut serve(dir.path(), &["--deadline-seconds", "600"]), json!({}));
        server.ask("tools/call", search);
        server.request("ping", json!({}));
        let process = rustix::process::Pid::from_child(server.process());
        rustix::process::kill_process(process, signal).unwrap();
        // The input is still open.
        assert!(server.process().wait().unwrap().success());
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
    let (_, rest) = server.end();
    assert_eq!(rest.len(), count);
    let content = fs::read_to_string(dir.path().join("a.txt")).unwrap();
    assert_eq!(content, format!("{}\n", count - 1));
}

/// Only requests come before a conversation; all else is passed over.
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
        let mut command = serve(dir.path(), &["--dialect", "dotted", "--output-bytes", "3000000"]);
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
        // The first answer has begun, and nobody reads on.
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
fn a_message_of_very_many_values_is_refused() {
    let dir = workspace(&[]);
    let mut server = Lines::initialized(&mut serve(dir.path(), &[]), json!({}));
    let many = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\",\"params\":[{}0]}}",
        "[],".repeat(600_000)
    );
    server.send_raw(many.as_bytes());
    assert_eq!(error_code(&server.read().unwrap()), -32600);
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn requests_can_stand_alone() {
    let dir = workspace(&[("a.txt", "one\n")]);
    let mut server = Lines::start(&mut serve(dir.path(), &[]));
    let discovered = server.request("server/discover", json!({"_meta": alone("a")}));
    let versions = discovered["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-11-25")));
    let listed = server.request("tools/list", json!({"_meta": alone("a")}));
    assert_eq!(listed["result"]["resultType"], "complete");
    assert!(listed["result"]["ttlMs"].as_u64().unwrap() > 0, "{listed}");
    assert_eq!(listed["result"]["cacheScope"], "public");
    let path = dir.path().join("a.txt");
    let call = |tool: &str, arguments: Value| json!({"name": tool, "arguments": arguments, "_meta": alone("a")});
    let read = server.request("tools/call", call("Read", json!({"file_path": path})));
    assert_eq!(answer(&read)["content"], "     1\tone\n");
    // One connection is one conversation.
    let write = call("Write", json!({"file_path": path, "content": "two\n"}));
    assert_eq!(answer(&server.request("tools/call", write))["success"], true);
    let mut meta = alone("a");
    meta.remove("io.modelcontextprotocol/clientCapabilities");
    let incomplete = server.request("tools/list", json!({"_meta": meta}));
    assert_eq!(error_code(&incomplete), -32602);
    let mut meta = alone("a");
    meta["io.modelcontextprotocol/protocolVersion"] = "2099-01-01".into();
    assert!(server.request("tools/list", json!({"_meta": meta})).get("error").is_some());
    let level = server.request("logging/setLevel", json!({"level": "debug", "_meta": alone("a")}));
    assert_eq!(error_code(&level), -32601);
}

#[test]
fn a_client_is_told_what_it_wants_to_know() {
    let dir = workspace(&[("a.txt", "one\n")]);
    let mut server = Lines::initialized(&mut serve(dir.path(), &[]), json!({}));
    let call = json!({"name": "Read", "arguments": {"file_path": dir.path().join("a.txt")}});
    server.ask("tools/call", call.clone());
    assert!(server.read().unwrap().get("result").is_some(), "nothing is said unasked");
    for (level, told) in [("debug", true), ("info", false), ("emergency", false)] {
        let set = server.request("logging/setLevel", json!({"level": level}));
        assert_eq!(set["result"], json!({}));
        server.ask("tools/call", call.clone());
        let first = server.read().unwrap();
        assert_eq!(first["method"] == "notifications/message", told, "{level}: {first}");
        if told {
            assert_eq!(first["params"]["data"]["tool"], "Read");
            assert_eq!(first["params"]["data"]["outcome"], "ok");
            assert_eq!(first["params"]["data"]["params"], "a.txt");
            assert!(server.read().unwrap().get("result").is_some());
        }
    }
}

#[test]
fn standard_error_is_quiet_unless_asked() {
    let dir = workspace(&[("a.txt", "one\n")]);
    let said = |level: Option<&str>| {
        let mut command = serve(dir.path(), &[]);
        command.envs(level.map(|level| ("PINFOLD_LOG", level))).stderr(Stdio::piped());
        let mut server = Lines::initialized(&mut command, json!({}));
        server.send_raw(b"garbage");
        server.call("Read", &json!({"file_path": dir.path().join("none")}));
        let mut error = server.process().stderr.take().unwrap();
        assert!(server.end().0.success());
        std::io::read_to_string(&mut error).unwrap()
    };
    assert_eq!(said(None), "");
    let info = said(Some("pinfold_mcp=info"));
    assert!(info.contains("file_not_found") && !info.contains("\x1b"), "{info}");
    let wrong = serve(dir.path(), &[]).env("PINFOLD_LOG", "a=b=c").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("PINFOLD_LOG"));
}

/// Clients that run on Node give their servers sockets instead of pipes.
#[test]
fn sockets_do_as_well_as_pipes() {
    let dir = workspace(&[]);
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (out_ours, out_theirs) = UnixStream::pair().unwrap();
    let mut process = serve(dir.path(), &[])
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::from(OwnedFd::from(out_theirs)))
        .spawn()
        .unwrap();
    let mut input = &ours;
    let mut output = BufReader::new(out_ours);
    let hello =
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize(json!({}))});
    for message in [hello, json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})] {
        writeln!(input, "{message}").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], message["id"]);
    }
    drop(ours);
    assert!(process.wait().unwrap().success());
}

/// The commands in the documentation, with a workspace where they say a path.
#[test]
fn the_documented_configurations_start_a_server() {
    let dir = workspace(&[]);
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/CLIENTS.md");
    let docs = fs::read_to_string(docs).unwrap();
    let mut blocks = docs.split("```").skip(1).step_by(2);
    let configurations: Vec<Value> = blocks
        .by_ref()
        .filter_map(|block| {
            let (kind, text) = block.split_once('\n').unwrap();
            match kind {
                "json" => Some(serde_json::from_str(text).unwrap()),
                "toml" => Some(serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap()),
                _ => None,
            }
        })
        .collect();
    let mut commands = Vec::new();
    configurations.iter().for_each(|value| find_commands(value, &mut commands));
    assert_eq!(commands.len(), 5, "{commands:?}");
    for (command, arguments) in commands {
        assert_eq!(command, "pinfold");
        let root = dir.path().to_str().unwrap();
        let arguments = arguments.iter().map(|it| match it.as_str() {
            "/path/to/project" | "${workspaceFolder}" => root,
            other => other,
        });
        let mut process = Command::new(env!("CARGO_BIN_EXE_pinfold"));
        process.args(arguments).env("XDG_CONFIG_HOME", root).env("XDG_STATE_HOME", root);
        let mut server = Lines::initialized(&mut process, json!({}));
        assert_eq!(server.call("LS", &json!({"path": root}))["isError"], false);
    }
}

fn find_commands(value: &Value, found: &mut Vec<(String, Vec<String>)>) {
    let Value::Object(object) = value else { return };
    if let (Some(command), Some(arguments)) = (value["command"].as_str(), value["args"].as_array())
    {
        let arguments = arguments.iter().map(|it| it.as_str().unwrap().to_owned());
        found.push((command.to_owned(), arguments.collect()));
    }
    object.values().for_each(|value| find_commands(value, found));
}

#[test]
fn the_registry_is_told_the_truth() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let server: Value =
        serde_json::from_str(&fs::read_to_string(root.join("server.json")).unwrap()).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(server["version"], version);
    let packages = server["packages"].as_array().unwrap();
    let kinds: Vec<_> = packages.iter().map(|package| &package["registryType"]).collect();
    assert_eq!(kinds, ["cargo", "npm", "pypi"]);
    for package in packages {
        assert_eq!(package["version"], version);
        assert_eq!(package["packageArguments"], packages[0]["packageArguments"]);
    }
    assert_eq!(packages[0]["identifier"], env!("CARGO_PKG_NAME"));
    assert!(server["description"].as_str().unwrap().len() <= 100);
    // Whoever publishes a package says in it which server it is.
    let name = server["name"].as_str().unwrap();
    for readme in ["README.md", "packages/python/README.md"] {
        let text = fs::read_to_string(root.join(readme)).unwrap();
        assert!(text.contains(&format!("mcp-name: {name}`")), "{readme}");
    }
    let node = fs::read_to_string(root.join("packages/node/package.json")).unwrap();
    let node: Value = serde_json::from_str(&node).unwrap();
    assert_eq!((&node["mcpName"], &node["version"]), (&json!(name), &json!(version)));
    assert_eq!(node["name"], packages[1]["identifier"]);
}
