//! `pinfold show`: its output, its permissions, and unusual names.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::Place;

#[test]
fn show_shows_creations_deletions_and_changes_that_others_followed() {
    let place = Place::new();
    place.call("file.write", json!({"path": "q.sql", "content": "-- first\n"}));
    let patches = json!([{"find": "-- first", "replace": "++ second"}]);
    place.call("file.patch", json!({"path": "q.sql", "patches": patches}));
    place.call("file.delete", json!({"path": "q.sql"}));
    let shown: Vec<String> = place
        .log()
        .iter()
        .map(|entry| {
            let output = place.pinfold("show").arg(entry["id"].as_str().unwrap()).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        })
        .collect();
    assert!(shown[0].contains("\n--- a/q.sql\n+++ b/q.sql\n"), "{}", shown[0]);
    assert!(shown[0].ends_with("@@ -0,0 +1 @@\n+-- first\n"), "{}", shown[0]);
    assert!(shown[1].ends_with("@@ -1 +1 @@\n--- first\n+++ second\n"), "{}", shown[1]);
    assert!(shown[2].ends_with("@@ -1 +0,0 @@\n-++ second\n"), "{}", shown[2]);
}

#[test]
fn show_asks_nobody_and_shows_nothing_that_is_denied() {
    let place = Place::new();
    fs::write(place.ws().join(".env"), "old\n").unwrap();
    let arguments = json!({"path": ".env", "content": "new\n"}).to_string();
    let write = place.pinfold("call").args(["--allow", "*", "file.write", &arguments]).output();
    assert!(write.unwrap().status.success());
    let id = place.log()[0]["id"].as_str().unwrap().to_owned();
    let audit = place.ws().with_file_name("audit.jsonl");
    let show = |rules: &[&str]| {
        _ = fs::remove_file(&audit);
        let mut show = place.pinfold("show");
        let output = show.args(rules).arg("--audit").arg(&audit).arg(&id).output().unwrap();
        let line: Value = serde_json::from_slice(&fs::read(&audit).unwrap()).unwrap();
        (output, line["decision"].as_str().unwrap().to_owned())
    };
    for (rules, decision) in [
        (&[][..], "approved"),
        (&["--ask", "*"], "approved"),
        (&["--read-only"], "approved"),
        (&["--allow", "Read(.env)"], "allow"),
        (&["--mode", "dontAsk", "--allow", "Read(.env)"], "allow"),
    ] {
        let (output, decided) = show(rules);
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(shown.contains("-old\n+new\n"), "{rules:?}: {shown}");
        assert_eq!(decided, decision, "{rules:?}");
    }
    for (rules, decision) in
        [(&["--deny", "Read(.env)"][..], "deny"), (&["--mode", "dontAsk"], "no_approver")]
    {
        let (output, decided) = show(rules);
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(2), &b""[..]), "{output:?}");
        assert_eq!(decided, decision, "{rules:?}");
    }
}

#[test]
fn a_path_that_the_journal_cannot_name_is_reported() {
    use std::os::unix::ffi::OsStrExt as _;
    let place = Place::new();
    let root = place.0.path().join(std::ffi::OsStr::from_bytes(b"r\xe9"));
    fs::create_dir(&root).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pinfold"));
    command.arg("call").arg("--root").arg(&root).env("XDG_STATE_HOME", place.0.path());
    command.env("XDG_CONFIG_HOME", place.0.path());
    let output = command.args(["file.write", r#"{"path": "a", "content": "x"}"#]).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(answer["message"].as_str().unwrap().contains("cannot be undone"), "{answer}");
    assert_eq!(fs::read(root.join("a")).unwrap(), b"x");
}

#[test]
fn names_cannot_talk_to_the_terminal() {
    let place = Place::new();
    place.call("file.write", json!({"path": "a\u{1b}[2J\nb", "content": "one\n"}));
    let printed = place.pinfold("log").output().unwrap().stdout;
    let printed = String::from_utf8(printed).unwrap();
    assert_eq!(printed.lines().count(), 1, "{printed:?}");
    assert!(!printed.contains('\u{1b}'), "{printed:?}");
    let undone = place.undo(&[]).stdout;
    assert!(undone.starts_with(b"Undid ") && !undone.contains(&0x1b), "{undone:?}");
    // A program gets the unescaped change.
    place.call("file.write", json!({"path": "c", "content": "\u{1b}[1mbold\n"}));
    let id = place.log().last().unwrap()["id"].as_str().unwrap().to_owned();
    let shown = place.pinfold("show").arg(id).output().unwrap().stdout;
    assert!(String::from_utf8(shown).unwrap().contains("+\u{1b}[1mbold\n"));
}
