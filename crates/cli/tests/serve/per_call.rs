//! Frameworks that start a server for each call: files that one server has read count for later ones of the same
//! parent.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use pinfold_testkit::mcp::{Lines, answer};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::served::{serve, workspace};

fn command(dir: &Path, state: &TempDir) -> Command {
    let mut command = serve(dir, &[]);
    command.env("XDG_STATE_HOME", state.path());
    command
}

/// One call on a server of its own.
fn call(command: &mut Command, tool: &str, arguments: &Value) -> Value {
    let mut server = Lines::initialized(command, json!({}));
    let params = json!({"name": tool, "arguments": arguments});
    let message = server.request("tools/call", params);
    let (status, _) = server.end();
    assert!(status.success());
    answer(&message)
}

#[test]
fn what_a_server_read_counts_for_the_next_one_of_the_same_parent() {
    let (dir, state) =
        (workspace(&[("a.txt", "one\ntwo\n"), ("b.txt", "b\n")]), TempDir::new().unwrap());
    let path = dir.path().join("a.txt");
    let call =
        |tool: &str, arguments: Value| call(&mut command(dir.path(), &state), tool, &arguments);
    call("Read", json!({"file_path": path}));
    let reads = state.path().join("pinfold/reads");
    let files: Vec<_> = fs::read_dir(&reads).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    assert_eq!(fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777, 0o600);
    let edit =
        |old: &str, new: &str| json!({"file_path": path, "old_string": old, "new_string": new});
    assert_eq!(call("Edit", edit("one", "1"))["success"], true);
    assert_eq!(call("Edit", edit("two", "2"))["success"], true);
    assert_eq!(fs::read_to_string(&path).unwrap(), "1\n2\n");
    // A file that no server has read is refused, and so is one that changed since.
    let other = json!({"file_path": dir.path().join("b.txt"), "content": "x\n"});
    assert_eq!(call("Write", other)["metadata"]["code"], "not_read");
    fs::write(&path, "1\nchanged by the user\n").unwrap();
    let refused = call("Write", json!({"file_path": path, "content": "x\n"}));
    assert_eq!(refused["metadata"]["code"], "file_changed");
    let error = refused["error"].as_str().unwrap();
    assert!(error.ends_with("     2\tchanged by the user"), "{error}");
}

#[test]
fn what_a_server_read_does_not_count_for_another_parents_servers() {
    let (dir, state) = (workspace(&[("a.txt", "one\n")]), TempDir::new().unwrap());
    let path = dir.path().join("a.txt");
    call(&mut command(dir.path(), &state), "Read", &json!({"file_path": path}));
    let direct = command(dir.path(), &state);
    // Because of the second command, the shell does not replace itself by the first.
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$0\" \"$@\"; exit $?"]).arg(direct.get_program()).args(direct.get_args());
    shell.env("XDG_STATE_HOME", state.path()).env("XDG_CONFIG_HOME", dir.path().join("no-config"));
    shell.stderr(Stdio::inherit());
    let refused = call(&mut shell, "Write", &json!({"file_path": path, "content": "x\n"}));
    assert_eq!(refused["metadata"]["code"], "not_read");
    assert!(!refused["error"].as_str().unwrap().contains("read_before_write"));
}
