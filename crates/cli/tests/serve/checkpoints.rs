//! Requests that name the turn that their changes belong to.

use std::fs;
use std::process::Command;

use pinfold_testkit::mcp::Lines;
use serde_json::{Value, json};

use super::served::{error_code, workspace};

#[test]
fn a_turn_is_taken_back_by_the_name_that_its_requests_gave_it() {
    let dir = workspace(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    let state = tempfile::tempdir().unwrap();
    let journal = state.path().join("journal");
    let journal = ["--journal", journal.to_str().unwrap()];
    let serve = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pinfold"));
        command.args(["serve", "--dialect", "dotted", "--root"]).arg(dir.path()).args(journal);
        command.env("XDG_CONFIG_HOME", state.path()).env("XDG_STATE_HOME", state.path());
        command
    };
    let write = |server: &mut Lines, path: &str, turn: Value| {
        let arguments = json!({"path": path, "content": "changed\n"});
        let meta = json!({"pinfold/checkpoint": turn});
        let params = json!({"name": "file.write", "arguments": arguments, "_meta": meta});
        server.request("tools/call", params)
    };
    let mut server = Lines::initialized(&mut serve(), json!({}));
    for (path, turn) in [("first.txt", "turn 1"), ("a.txt", "turn 2"), ("new/n.txt", "turn 2")] {
        let done = write(&mut server, path, turn.into());
        assert_eq!(done["result"]["structuredContent"]["success"], true, "{done}");
    }
    for wrong in [json!(""), json!(3), json!("x".repeat(201))] {
        assert_eq!(error_code(&write(&mut server, "b.txt", wrong)), -32602);
    }
    // Another server, for the same turn.
    let mut second = Lines::initialized(&mut serve(), json!({}));
    write(&mut second, "b.txt", "turn 2".into());
    let mut undo = Command::new(env!("CARGO_BIN_EXE_pinfold"));
    undo.args(["undo", "--since", "turn 2", "--root"]).arg(dir.path()).args(journal);
    let done = undo.env("XDG_CONFIG_HOME", state.path()).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let read = |path: &str| fs::read_to_string(dir.path().join(path)).unwrap();
    assert_eq!((read("a.txt"), read("b.txt")), ("one\n".into(), "two\n".into()));
    assert_eq!(read("first.txt"), "changed\n");
    assert!(!dir.path().join("new").exists());
}
