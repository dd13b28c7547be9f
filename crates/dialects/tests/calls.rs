//! Calls of any tool: panics, cancellation, names, and other behaviour that does not depend on files.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use pinfold::{CallOptions, Session, Settings};
use pinfold_dialects::{Answer, OPENCODE, REFERENCE, TOOLSET, Toolbox, core_dialects};
use serde_json::json;
use tempfile::TempDir;

fn toolbox(settings: Settings) -> (TempDir, Toolbox) {
    let dir = TempDir::new().unwrap();
    let session = Session::with_settings([dir.path()], settings).unwrap();
    (dir, Toolbox::new(session, &core_dialects()))
}

#[test]
fn arguments_are_shown_to_people_on_one_line() {
    let (dir, toolbox) = toolbox(Settings::default());
    let inside = format!("{}/src/main.rs", dir.path().display());
    for (tool, arguments, line) in [
        ("Read", json!({"file_path": inside}), "src/main.rs"),
        ("Read", json!({"file_path": inside, "offset": 100, "limit": 50}), "src/main.rs 100:50"),
        ("Read", json!({"file_path": inside, "limit": 50}), "src/main.rs 1:50"),
        ("Read", json!({"file_path": "/etc/passwd"}), "/etc/passwd"),
        ("Read", json!({"file_path": dir.path()}), "."),
        ("Write", json!({"file_path": inside, "content": "x\ny"}), "src/main.rs"),
        ("file.read", json!({"path": "a.txt", "offset": 3}), "a.txt 3:"),
        ("file.read", json!({"path": "a.txt", "offset": 3, "limit": 2}), "a.txt 3:2"),
        ("file.write", json!({"path": "a\nb", "content": ""}), "a\\nb"),
        ("read_file", json!({"path": "a.txt", "startLine": 2, "endLine": 5}), "a.txt 2-5"),
        ("read_file", json!({"path": "a.txt", "endLine": 5}), "a.txt 1-5"),
        ("write_file", json!({"path": "a.txt", "content": ""}), "a.txt"),
        ("get_file_info", json!({"path": "a.txt"}), "a.txt"),
        ("LS", json!({"path": dir.path()}), "."),
        ("LS", json!({"path": dir.path(), "ignore": ["*.o"]}), ". without 1 glob"),
        ("Glob", json!({"pattern": "**/*.rs"}), "**/*.rs"),
        ("Glob", json!({"pattern": "*.rs", "path": inside}), "*.rs in src/main.rs"),
        ("Grep", json!({"pattern": "a\nb"}), "\"a\\nb\""),
        ("Grep", json!({"pattern": "x", "path": inside, "type": "c"}), "\"x\" in src/main.rs c"),
        ("file.list", json!({}), "."),
        ("file.list", json!({"path": "a", "pattern": "*.c"}), "*.c in a"),
        ("file.search", json!({"pattern": "x", "path": "a"}), "\"x\" in a"),
        ("list_directory", json!({"path": "a", "glob": "*.c"}), "*.c in a"),
        ("search_files", json!({"pattern": "x"}), "\"x\""),
        ("Read", json!({"wrong": 1}), "{\"wrong\":1}"),
        ("Nothing", json!({"a": 1}), "{\"a\":1}"),
    ] {
        assert_eq!(toolbox.compact_params(tool, &arguments), line, "{tool} {arguments}");
    }
}

#[test]
fn a_file_that_one_dialect_read_can_be_replaced_by_another() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.txt");
    for (dialect, name) in [(&TOOLSET, "file_path"), (&OPENCODE, "filePath")] {
        std::fs::write(&path, "old\n").unwrap();
        let toolbox = Toolbox::new(Session::open([dir.path()]).unwrap(), &[&REFERENCE, dialect]);
        let write = || toolbox.call("write", json!({name: path, "content": "new\n"})).failed();
        assert!(write(), "{}", dialect.name);
        assert!(!toolbox.call("read_text_file", json!({"path": path})).failed());
        assert!(!write(), "{}", dialect.name);
    }
}

#[test]
fn a_cancelled_call_ends() {
    let (_dir, toolbox) = toolbox(Settings::default());
    let call = CallOptions::default();
    call.cancel.cancel();
    for tool in ["file.read", "get_file_info"] {
        let answer = toolbox.call_with(tool, json!({"path": "."}), &call);
        assert!(answer.failed());
        assert!(answer.to_json()["message"] == "cancelled", "{}", answer.to_json());
    }
    let arguments = json!({"path": "new", "content": "x"});
    let answer = toolbox.call_with("file.write", arguments, &call).to_json();
    assert_eq!(answer, json!({"error": "cancelled", "message": "cancelled"}));
}

#[test]
fn a_call_past_its_deadline_ends() {
    let (_dir, toolbox) = toolbox(Settings::default().with_deadline_seconds(0));
    let answer = toolbox.call("file.read", json!({"path": "a"})).to_json();
    assert_eq!(answer["error"], "timeout");
}

#[test]
fn a_relative_path_is_answered_with_the_absolute_one() {
    let (dir, toolbox) = toolbox(Settings::default());
    let root = dir.path().display().to_string();
    let absolute = format!("{root}/a.txt");
    for given in [
        "a.txt".to_owned(),
        "./a.txt".to_owned(),
        format!("\"{absolute}\""),
        format!("file://{absolute}"),
        absolute[1..].to_owned(),
    ] {
        let answer = toolbox.call("Read", json!({"file_path": given})).to_json();
        let says = format!("file_path must be an absolute path; use `{absolute}`");
        assert_eq!(answer["error"], says, "{given}");
    }
}

#[test]
fn one_call_can_be_a_dry_run() {
    let (dir, toolbox) = toolbox(Settings::default());
    let call = CallOptions::default().with_dry_run(true);
    let arguments = json!({"path": "deep/new.txt", "content": "x\n"});
    let answer = toolbox.call_with("file.write", arguments.clone(), &call).to_json();
    assert!(answer["message"].as_str().unwrap().starts_with("[Dry Run] Would create deep/new.txt"));
    let seen = toolbox.call("get_file_info", json!({"path": "deep"})).to_json();
    assert_eq!(seen["error"], "FILESYSTEM_ERROR");
    assert!(!toolbox.call("file.write", arguments).failed());
    let seen = toolbox.call("get_file_info", json!({"path": "deep/new.txt"})).to_json();
    assert_eq!(seen["size"], 2);
    drop(dir);
}

#[test]
fn classic_answers_are_text_and_the_others_are_objects() {
    let (_dir, toolbox) = toolbox(Settings::default());
    for tool in toolbox.tools() {
        let answer = toolbox.call(tool.entry.name, json!({"no such argument": 1}));
        let classic = matches!(answer, Answer::Classic(_));
        assert_eq!(classic, tool.dialect.name == "classic", "{}", tool.entry.name);
        assert!(answer.failed());
        assert_eq!(serde_json::to_string(&answer.to_json()).unwrap(), answer.to_json_text());
        assert_eq!(tool.output().is_none(), classic);
    }
}

#[test]
fn portable_names_are_listed_and_every_name_is_accepted() {
    let settings = Settings::default()
        .with_portable_names(true)
        .with_read_before_write(Some(pinfold::ReadBeforeWrite::Require));
    let (dir, toolbox) = toolbox(settings);
    std::fs::write(dir.path().join("a.txt"), "one\nTWO\n").unwrap();
    let portable = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let list = pinfold_dialects::list(toolbox.tools(), pinfold_dialects::Format::Mcp);
    for tool in list["tools"].as_array().unwrap() {
        assert!(portable(tool["name"].as_str().unwrap()), "{tool}");
        let arguments = tool["inputSchema"]["properties"].as_object().unwrap();
        assert!(arguments.keys().all(|name| portable(name)), "{tool}");
    }
    for (tool, arguments) in [
        ("Grep", json!({"pattern": "two", "ignore_case": true, "context": 1})),
        ("Grep", json!({"pattern": "two", "-i": true, "-C": 1})),
        ("file_read", json!({"path": "a.txt"})),
        ("file.read", json!({"path": "a.txt"})),
    ] {
        let answer = toolbox.call(tool, arguments.clone()).to_json();
        assert!(answer.to_string().contains("a.txt") || answer["total_lines"] == 2, "{answer}");
    }
    // Errors use the listed names.
    std::fs::write(dir.path().join("b.txt"), "b\n").unwrap();
    let refused = toolbox.call("file_write", json!({"path": "b.txt", "content": "x"})).to_json();
    assert!(refused["message"].as_str().unwrap().contains("read it with file_read"), "{refused}");
    let wrong = toolbox.call("Grep", json!({"pattern": "x", "ignore_case": 3})).to_json();
    assert!(wrong["error"].as_str().unwrap().starts_with("`ignore_case` must be"), "{wrong}");
    let unknown = toolbox.call("file_reed", json!({})).to_json();
    assert!(unknown.to_string().contains("file_read, file_write"), "{unknown}");
    let none = toolbox.call("Grep", json!({"pattern": "two"})).to_json();
    assert!(none["content"].as_str().unwrap().contains("set ignore_case for 1 match"), "{none}");
}
