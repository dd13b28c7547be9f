//! `pinfold serve` on standard input and output, message by message.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

mod checkpoints;
mod documented;
mod per_call;
#[path = "../served/mod.rs"]
mod served;
mod turns;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
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
            assert!(size <= 7_600, "the list has {size} bytes");
        }
        let cursor = server.request("tools/list", json!({"cursor": "2"}));
        assert_eq!(error_code(&cursor), -32602);
    }
}

/// Arguments with a value that cannot be represented.
const UNREADABLE: [&str; 3] = [r#""\ud83d""#, "1e999", "NaN"];

#[test]
fn a_call_that_cannot_be_read_is_in_the_audit_log() {
    let (dir, state) = (workspace(&[]), workspace(&[]));
    let audit = state.path().join("audit");
    let mut command = serve(dir.path(), &["--audit", audit.to_str().unwrap()]);
    let mut server = Lines::initialized(&mut command, json!({}));
    let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    for (number, value) in UNREADABLE.into_iter().chain([deep.as_str()]).enumerate() {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{{"name":"Read","arguments":{{"file_path":{value}}}}}}}"#
        );
        server.send_raw(call.as_bytes());
        let answer = server.read().unwrap();
        assert_eq!((error_code(&answer), &answer["id"]), (-32602, &json!("x")), "{answer}");
        let problem = answer["error"]["message"].as_str().unwrap();
        assert!(problem.contains("cannot be represented"), "{problem}");
        let lines = fs::read_to_string(&audit).unwrap();
        assert_eq!(lines.lines().count(), number + 1, "{value:.20}");
        let line: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        assert_eq!((&line["tool"], &line["outcome"]), (&json!("Read"), &json!("invalid_argument")));
    }
}

#[test]
fn a_running_request_is_the_only_one_with_its_id() {
    let dir = workspace(&[]);
    let mut command = serve(dir.path(), &["--mode", "default", "--dialect", "dotted"]);
    let mut server = Lines::initialized(&mut command, json!({"elicitation": {}}));
    let call = |tool: &str, arguments: Value| json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
    let write = call("file.write", json!({"path": "new.txt", "content": "one\n"}));
    server.send(&write);
    let question = server.read().unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    server.send(&call("file.list", json!({})));
    let refused = server.read().unwrap();
    assert_eq!((error_code(&refused), &refused["id"]), (-32600, &Value::Null), "{refused}");
    let allow = json!({"action": "accept", "content": {"answer": "allow once"}});
    server.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": allow}));
    let done = server.read().unwrap();
    assert_eq!((&done["id"], answer(&done)["success"].clone()), (&json!(7), json!(true)), "{done}");
    // The id is free again.
    server.send(&call("file.list", json!({})));
    assert_eq!(server.read().unwrap()["id"], 7);
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
fn a_line_that_is_no_message_is_answered_and_the_server_goes_on() {
    let dir = workspace(&[("a.txt", "one\n")]);
    let mut server = Lines::initialized(&mut serve(dir.path(), &[]), json!({}));
    let deep = "[".repeat(100_000);
    for (line, code) in [
        (&b"hello"[..], -32700),
        (b"{\"jsonrpc\":", -32700),
        (b"\xFF\xFE{}", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\xFF\"}", -32602),
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
    // An error has the request's id, if that can be parsed.
    server.send_raw(b"{\"jsonrpc\":\"1.0\",\"id\":\"seven\",\"method\":\"ping\"}");
    assert_eq!(server.read().unwrap()["id"], "seven");
    // A value that cannot be represented is a bad argument of that request.
    for value in [r#""\ud83d""#, r#""a\ude00""#, "1e999"] {
        server.send_raw(
            format!(
                r#"{{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{{"name":"Read","arguments":{{"file_path":{value}}}}}}}"#
            )
            .as_bytes(),
        );
        let answer = server.read().unwrap();
        assert_eq!((&answer["id"], error_code(&answer)), (&json!("x"), -32602), "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().starts_with("invalid_argument"));
    }
    // Empty lines and unknown notifications get no answer.
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
    // The name in formats that do not allow dots.
    assert_eq!(server.call("file_read", &json!({"path": "a.txt"})), read);
    let missing = server.call("read_file", &json!({"path": "b.txt"}));
    assert!(missing.get("structuredContent").is_none(), "{missing}");
    assert_eq!(missing["isError"], true);
    let error: Value = serde_json::from_str(text(&missing)).unwrap();
    assert_eq!(error["error"], "FILESYSTEM_ERROR");
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
    assert!(server.read().unwrap().get("result").is_some(), "nothing is printed unasked");
    for (level, is_sent) in [("debug", true), ("info", false), ("emergency", false)] {
        let set = server.request("logging/setLevel", json!({"level": level}));
        assert_eq!(set["result"], json!({}));
        server.ask("tools/call", call.clone());
        let first = server.read().unwrap();
        assert_eq!(first["method"] == "notifications/message", is_sent, "{level}: {first}");
        if is_sent {
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
    let printed = |level: Option<&str>| {
        let mut command = serve(dir.path(), &[]);
        command.envs(level.map(|level| ("PINFOLD_LOG", level))).stderr(Stdio::piped());
        let mut server = Lines::initialized(&mut command, json!({}));
        server.send_raw(b"garbage");
        server.call("Read", &json!({"file_path": dir.path().join("none")}));
        server.call("Grep", &json!({"pattern": "one"}));
        let mut error = server.process().stderr.take().unwrap();
        assert!(server.end().0.success());
        std::io::read_to_string(&mut error).unwrap()
    };
    assert_eq!(printed(None), "");
    let info = printed(Some("pinfold_mcp=info"));
    assert!(info.contains("file_not_found") && !info.contains("\x1b"), "{info}");
    assert!(info.contains("compared with the disk on each search"), "{info}");
    let wrong = serve(dir.path(), &[]).env("PINFOLD_LOG", "a=b=c").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("PINFOLD_LOG"));
}

/// Clients on Node give their servers sockets instead of pipes.
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
