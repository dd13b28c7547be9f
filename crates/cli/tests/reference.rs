//! The reference dialect as a server: its directories, and the program under the name of the server that it replaces.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use pinfold_testkit::mcp::{Lines, answer};
use serde_json::{Value, json};
use tempfile::TempDir;

fn workspace(files: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::with_prefix("reference-").unwrap();
    for (name, content) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    dir
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

/// The program under the name of the server.
fn named(state: &Path, directories: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pinfold"));
    command.arg0("/usr/bin/mcp-server-filesystem").args(directories).current_dir(state);
    with_state(&mut command, state);
    command
}

/// `pinfold serve`.
fn serve(state: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pinfold"));
    command.arg("serve").args(arguments).current_dir(state);
    with_state(&mut command, state);
    command
}

fn with_state(command: &mut Command, state: &Path) {
    command.env_remove("PINFOLD_LOG").env("XDG_CONFIG_HOME", state.join("no-config"));
    command.env("XDG_STATE_HOME", state).env("HOME", state);
}

/// The standard error and the exit code of a server that gets no request.
fn ended(command: &mut Command) -> (Vec<String>, Option<i32>) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.stdout.is_empty(), "{output:?}");
    let lines = str::from_utf8(&output.stderr).unwrap().lines().map(str::to_owned);
    (lines.collect(), output.status.code())
}

fn allowed(server: &mut Lines) -> String {
    text(&server.call("list_allowed_directories", &json!({}))).to_owned()
}

#[test]
fn directories_that_are_not_there_are_skipped_with_a_warning() {
    let (state, dir) = (workspace(&[]), workspace(&[("dir/b.txt", "bee\n"), ("a.txt", "one\n")]));
    let root = dir.path().display();
    let [good, missing, file] = ["dir", "nope", "a.txt"].map(|name| format!("{root}/{name}"));
    let cannot_access = format!("Warning: Cannot access directory {missing}, skipping");
    let no_directory = format!("Warning: {file} is not a directory, skipping");
    let none = "Error: None of the specified directories are accessible".to_owned();
    let by_name = |directories: &[&str]| named(state.path(), directories);
    let by_dialect = |directories: &[&str]| {
        serve(state.path(), &[&["--dialect", "reference"][..], directories].concat())
    };
    for start in [&by_name as &dyn Fn(&[&str]) -> Command, &by_dialect] {
        assert_eq!(
            ended(&mut start(&[&missing])),
            (vec![cannot_access.clone(), none.clone()], Some(1))
        );
        let warned = ended(&mut start(&[&good, &missing, &file]));
        assert_eq!(warned, (vec![cannot_access.clone(), no_directory.clone()], Some(0)));
        let mut server = Lines::initialized(&mut start(&[&missing, &good]), json!({}));
        assert_eq!(allowed(&mut server), format!("Allowed directories:\n{good}"));
    }
}

#[test]
fn by_the_servers_name_every_argument_is_a_directory() {
    let state = workspace(&[("deep/in/c.txt", "")]);
    let root = state.path().canonicalize().unwrap();
    let (lines, code) = ended(&mut named(&root, &["--help"]));
    let skipped = format!("Warning: Cannot access directory {}/--help, skipping", root.display());
    assert_eq!((lines[0].as_str(), code), (skipped.as_str(), Some(1)));
    let (lines, code) = ended(&mut named(&root, &[]));
    let usage = "Usage: mcp-server-filesystem [allowed-directory] [additional-directories...]";
    assert_eq!((lines[0].as_str(), code), (usage, Some(2)));
    // Relative directories, and `~`.
    let mut server = Lines::initialized(&mut named(&root, &["~/deep/in/", "deep/./"]), json!({}));
    let deep = root.join("deep");
    let both = format!("Allowed directories:\n{0}/in\n{0}", deep.display());
    assert_eq!(allowed(&mut server), both);
    let read = server.call("read_text_file", &json!({"path": "~/deep/in/c.txt"}));
    assert_eq!(read["structuredContent"], json!({"content": ""}));
}

#[test]
fn relative_paths_start_at_the_first_directory() {
    let (state, dir) = (workspace(&[]), workspace(&[("dir/b.txt", "bee\n"), ("emptydir/x", "")]));
    let [first, second] =
        ["emptydir", "dir"].map(|name| format!("{}/{name}", dir.path().display()));
    let mut server = Lines::initialized(&mut named(state.path(), &[&first, &second]), json!({}));
    let missing = server.call("read_text_file", &json!({"path": "b.txt"}));
    assert!(text(&missing).starts_with("ENOENT: no such file or directory, open 'b.txt'"));
    assert_eq!(missing["_meta"]["pinfold/result"]["code"], "file_not_found");
    let found = server.call("read_text_file", &json!({"path": format!("{second}/b.txt")}));
    assert_eq!(text(&found), "bee\n");
}

#[test]
fn the_clients_roots_only_narrow_the_directories() {
    let (state, dir) = (workspace(&[]), workspace(&[("dir/sub/c.md", "# c\n"), ("a.txt", "")]));
    let root = dir.path().display().to_string();
    let directory = format!("{root}/dir");
    for (uri, left) in
        [(&root, &directory), (&format!("{directory}/sub"), &format!("{directory}/sub"))]
    {
        let capabilities = json!({"roots": {}});
        let mut server = Lines::initialized(&mut named(state.path(), &[&directory]), capabilities);
        let id =
            server.ask("tools/call", json!({"name": "list_allowed_directories", "arguments": {}}));
        let question = server.read().unwrap();
        assert_eq!(question["method"], "roots/list", "{question}");
        let roots = json!({"roots": [{"uri": format!("file://{uri}")}]});
        server.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": roots}));
        let message = server.read().unwrap();
        assert_eq!(message["id"], id);
        assert_eq!(text(&answer(&message)), format!("Allowed directories:\n{left}"));
    }
}

#[test]
fn an_unknown_tool_is_a_result() {
    let state = workspace(&[("ws/a.txt", "")]);
    let mut server = Lines::initialized(&mut named(state.path(), &["ws"]), json!({}));
    let unknown: Value = server.request("tools/call", json!({"name": "nope", "arguments": {}}));
    assert_eq!(unknown["result"]["isError"], true, "{unknown}");
    assert!(text(&unknown["result"]).starts_with("MCP error -32602: Tool nope not found"));
}

#[test]
fn directories_are_roots_in_every_dialect() {
    let (state, dir) = (workspace(&[]), workspace(&[("one/a.txt", ""), ("two/b.txt", "")]));
    let [one, two] = ["one", "two"].map(|name| format!("{}/{name}", dir.path().display()));
    let mut server = Lines::initialized(&mut serve(state.path(), &[&one, &two]), json!({}));
    let found = server.call("Glob", &json!({"pattern": "*.txt"}));
    let mut found: Vec<_> = text(&found).lines().collect();
    found.sort_unstable();
    assert_eq!(found, [format!("{one}/a.txt"), format!("{two}/b.txt")]);
    // Elsewhere a directory that is not there is a mistake.
    let (lines, code) = ended(&mut serve(state.path(), &[&one, "nope"]));
    assert_eq!((lines.len(), code), (1, Some(2)), "{lines:?}");
}
