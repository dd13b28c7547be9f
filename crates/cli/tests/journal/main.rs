//! The journal through the command line: entries, undo, and killed processes.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

mod keeping;
mod killing;
mod rewinding;
mod showing;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use pinfold_testkit::names_in;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A workspace and, beside it, a journal.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(TempDir::new().unwrap());
        fs::create_dir(place.ws()).unwrap();
        place
    }

    fn ws(&self) -> PathBuf {
        self.0.path().join("ws")
    }

    fn pinfold(&self, command: &str) -> Command {
        let mut process = Command::new(env!("CARGO_BIN_EXE_pinfold"));
        process.arg(command).arg("--root").arg(self.ws()).current_dir(self.0.path());
        process.env("XDG_STATE_HOME", self.0.path().join("state"));
        process.env("XDG_CONFIG_HOME", self.0.path().join("config"));
        process
    }

    fn call(&self, tool: &str, arguments: Value) -> Value {
        let output = self.pinfold("call").arg(tool).arg(arguments.to_string()).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn undo(&self, arguments: &[&str]) -> Output {
        self.pinfold("undo").args(arguments).output().unwrap()
    }

    fn log(&self) -> Vec<Value> {
        let output = self.pinfold("log").arg("--json").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.ws().join(path)).ok()
    }

    fn names(&self) -> Vec<String> {
        names_in(&self.ws())
    }
}

#[test]
fn every_kind_of_change_can_be_taken_back_and_that_too() {
    let place = Place::new();
    fs::write(place.ws().join("edited"), "one\r\ntwo\n").unwrap();
    fs::write(place.ws().join("deleted"), "precious\n").unwrap();
    fs::set_permissions(place.ws().join("deleted"), fs::Permissions::from_mode(0o750)).unwrap();
    std::os::unix::fs::symlink("somewhere", place.ws().join("link")).unwrap();
    place.call("file.write", json!({"path": "created", "content": "new\n"}));
    place.call(
        "file.patch",
        json!({"path": "edited", "patches": [{"find": "one", "replace": "1"}]}),
    );
    place.call("file.delete", json!({"path": "deleted"}));
    place.call("file.delete", json!({"path": "link"}));
    let changed = place.names();
    assert_eq!(changed, ["created", "edited"]);

    let ids: Vec<String> =
        place.log().iter().map(|entry| entry["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 4);
    for _ in 0..4 {
        let output = place.undo(&[]);
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!(place.names(), ["deleted", "edited", "link"]);
    assert_eq!(place.read("edited").unwrap(), "one\r\ntwo\n");
    assert_eq!(place.read("deleted").unwrap(), "precious\n");
    let mode = fs::metadata(place.ws().join("deleted")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o750);
    assert_eq!(fs::read_link(place.ws().join("link")).unwrap(), PathBuf::from("somewhere"));
    let output = place.undo(&[]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    let journal = place.0.path().join("state/pinfold/journal");
    let printed = "pinfold: there is no change to undo\npinfold: the journal is ";
    assert_eq!(message, format!("{printed}{}\n", journal.display()));

    // Undoing is a change as well.
    let undone: Vec<String> =
        place.log()[4..].iter().map(|entry| entry["id"].as_str().unwrap().to_owned()).collect();
    let again: Vec<&str> = undone.iter().rev().map(String::as_str).collect();
    assert!(place.undo(&again).status.success());
    assert_eq!(place.names(), changed);
    assert_eq!(place.read("edited").unwrap(), "1\r\ntwo\n");
}

#[test]
fn a_file_that_is_not_as_the_change_left_it_is_left_alone() {
    let place = Place::new();
    type Meanwhile = fn(&std::path::Path);
    let cases: [(&str, Meanwhile, &str); 4] = [
        ("changed", |path| fs::write(path, "theirs").unwrap(), "its content has changed since"),
        ("removed", |path| fs::remove_file(path).unwrap(), "the file is gone"),
        (
            "directory",
            |path| {
                fs::remove_file(path).unwrap();
                fs::create_dir(path).unwrap();
            },
            "a directory is there now",
        ),
        (
            "dangling",
            |path| {
                fs::remove_file(path).unwrap();
                std::os::unix::fs::symlink("nowhere", path).unwrap();
            },
            "something else is there now",
        ),
    ];
    for (name, meanwhile, what) in cases {
        let path = place.ws().join(name);
        fs::write(&path, "old").unwrap();
        place.call("file.write", json!({"path": name, "content": "new"}));
        meanwhile(&path);
        let output = place.undo(&[place.log().last().unwrap()["id"].as_str().unwrap()]);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(message.contains(what), "{name}: {message}");
    }
    assert_eq!(place.read("changed").unwrap(), "theirs");
    place.call("file.delete", json!({"path": "changed"}));
    fs::write(place.ws().join("changed"), "again").unwrap();
    let output = place.undo(&[]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("a file is there again"));
    assert_eq!(place.read("changed").unwrap(), "again");
}

#[test]
fn a_dry_run_tells_and_show_shows() {
    let place = Place::new();
    fs::write(place.ws().join("a.txt"), "one\ntwo\n").unwrap();
    place
        .call("file.patch", json!({"path": "a.txt", "patches": [{"find": "two", "replace": "2"}]}));
    let log = place.log();
    let id = log[0]["id"].as_str().unwrap();
    let output = place.undo(&["--dry-run"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        printed.starts_with(&format!("[Dry Run] Would undo {id} and restore a.txt\n")),
        "{printed}"
    );
    assert!(printed.contains("-2\n+two"), "{printed}");
    assert_eq!(place.read("a.txt").unwrap(), "one\n2\n");
    assert_eq!(place.log().len(), 1);
    let output = place.pinfold("show").arg(id).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("file.patch  changed  a.txt") && shown.contains("-two\n+2"), "{shown}");
    assert_eq!(place.pinfold("show").arg("nothing").output().unwrap().status.code(), Some(2));
}

#[test]
fn the_log_can_be_narrowed_to_a_path_and_knows_its_workspace() {
    let place = Place::new();
    for path in ["a.txt", "sub/b.txt", "sub/c.txt"] {
        place.call("file.write", json!({"path": path, "content": "x"}));
    }
    let lines = |arguments: &[&str]| {
        let output = place.pinfold("log").args(arguments).current_dir(place.ws()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().count()
    };
    assert_eq!(lines(&[]), 3);
    assert_eq!(lines(&["--path", "sub"]), 2);
    assert_eq!(lines(&["--path", "a.txt"]), 1);
    assert_eq!(lines(&["--path", "a"]), 0);
    fs::create_dir(place.0.path().join("other")).unwrap();
    let mut elsewhere = Command::new(env!("CARGO_BIN_EXE_pinfold"));
    elsewhere.args(["log", "--root"]).arg(place.0.path().join("other"));
    elsewhere.env("XDG_STATE_HOME", place.0.path().join("state"));
    elsewhere.env("XDG_CONFIG_HOME", place.0.path().join("config"));
    assert!(elsewhere.output().unwrap().stdout.is_empty());
}

#[test]
fn after_a_change_was_made_again_it_is_the_one_to_take_back() {
    let place = Place::new();
    for path in ["a", "b"] {
        fs::write(place.ws().join(path), "old").unwrap();
        place.call("file.write", json!({"path": path, "content": "new"}));
    }
    assert!(place.undo(&[]).status.success());
    let undo = place.log().last().unwrap()["id"].as_str().unwrap().to_owned();
    assert!(place.undo(&[&undo]).status.success());
    assert_eq!(place.read("b").unwrap(), "new");
    assert!(place.undo(&[]).status.success());
    assert_eq!((place.read("a").unwrap(), place.read("b").unwrap()), ("new".into(), "old".into()));
}

#[test]
fn an_undo_is_in_the_audit_log() {
    let place = Place::new();
    let log = place.0.path().join("audit.jsonl");
    place.call("file.write", json!({"path": "a", "content": "one\n"}));
    for code in [0, 1] {
        let undo = place.pinfold("undo").arg("--audit").arg(&log).output().unwrap();
        assert_eq!(undo.status.code(), Some(code), "{undo:?}");
    }
    let lines = fs::read_to_string(&log).unwrap();
    let lines: Vec<Value> = lines.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let outcomes: Vec<_> = lines.iter().map(|line| (&line["tool"], &line["outcome"])).collect();
    assert_eq!(
        outcomes,
        [(&json!("undo"), &json!("ok")), (&json!("undo"), &json!("file_not_found"))]
    );
}

#[test]
fn an_empty_log_names_the_journal_and_times_are_as_in_the_audit_log() {
    let place = Place::new();
    let journal = place.0.path().join("state/pinfold/journal");
    let empty = place.pinfold("log").output().unwrap();
    assert!(empty.status.success() && empty.stdout.is_empty(), "{empty:?}");
    let message = String::from_utf8(empty.stderr).unwrap();
    assert!(message.contains(&format!("in the journal {}", journal.display())), "{message}");
    let audit = place.0.path().join("audit.jsonl");
    let call = json!({"path": "a", "content": "x"}).to_string();
    let mut write = place.pinfold("call");
    write.arg("--audit").arg(&audit).args(["file.write", &call]).output().unwrap();
    let audited: Value = serde_json::from_slice(&fs::read(&audit).unwrap()).unwrap();
    let (logged, audited) = (place.log()[0]["time"].clone(), audited["time"].clone());
    let (logged, audited) = (logged.as_str().unwrap(), audited.as_str().unwrap());
    assert_eq!(logged[..10], audited[..10]);
    assert!(logged[10..].starts_with('T') && logged.ends_with('Z'), "{logged}");
}

#[test]
fn the_newest_changes_are_listed_where_there_are_too_many() {
    let place = Place::new();
    for path in ["a", "b", "c"] {
        place.call("file.write", json!({"path": path, "content": "x"}));
    }
    let output = place.pinfold("log").args(["--limit", "2"]).output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    let paths: Vec<_> = listed.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(paths, ["b", "c"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("--limit"));
    let output = place.pinfold("log").args(["--limit", "3"]).output().unwrap();
    assert!(output.stderr.is_empty(), "{output:?}");
}
