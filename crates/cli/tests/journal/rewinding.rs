//! Checkpoints, and many changes that are undone at once.

use std::fs;

use serde_json::{Value, json};

use super::Place;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The files of a workspace, and an agent's changes to them.
fn turn(place: &Place) {
    place.call(
        "file.patch",
        json!({"path": "a.txt", "patches": [{"find": "one", "replace": "ONE\nand more"}]}),
    );
    place.call("file.move", json!({"source": "b.bin", "destination": "sub/b.bin"}));
    place.call("file.delete", json!({"path": "c.txt"}));
    place.call("file.write", json!({"path": "new/n.txt", "content": "1\n2\n"}));
    place.call("file.move", json!({"source": "dir", "destination": "moved"}));
}

fn workspace() -> Place {
    let place = Place::new();
    fs::write(place.ws().join("a.txt"), "one\n").unwrap();
    fs::write(place.ws().join("b.bin"), [0, 1, 2, 255]).unwrap();
    fs::write(place.ws().join("c.txt"), "three\n").unwrap();
    fs::create_dir(place.ws().join("dir")).unwrap();
    fs::write(place.ws().join("dir/d.txt"), "four\n").unwrap();
    // A file with uncommitted work, if there were a repository.
    fs::write(place.ws().join("dirty.txt"), "unsaved work\n").unwrap();
    place
}

fn is_as_before(place: &Place) -> bool {
    place.names() == ["a.txt", "b.bin", "c.txt", "dir", "dirty.txt"]
        && place.read("a.txt").unwrap() == "one\n"
        && fs::read(place.ws().join("b.bin")).unwrap() == [0, 1, 2, 255]
        && place.read("c.txt").unwrap() == "three\n"
        && place.read("dir/d.txt").unwrap() == "four\n"
}

#[test]
fn a_turn_is_taken_back_to_its_checkpoint_and_that_can_be_undone() {
    let place = workspace();
    let marked = place.pinfold("checkpoint").arg("turn 1").output().unwrap();
    assert!(marked.status.success(), "{marked:?}");
    assert!(text(&marked.stdout).contains("pinfold undo --since "), "{marked:?}");
    turn(&place);
    let changed = place.names();
    assert_eq!(changed, ["a.txt", "dirty.txt", "moved", "new", "sub"]);

    let expected = "\
restored      a.txt  (+1 -2 lines)
created again c.txt  (+1 -0 lines)
moved back    moved to dir
removed       new/n.txt  (+0 -2 lines)
moved back    sub/b.bin to b.bin
";
    let preview = place.undo(&["--since", "turn 1", "--dry-run"]);
    let total = "[Dry Run] Would undo 5 changes: 5 paths, +2 -4 lines\n";
    assert_eq!(text(&preview.stdout), format!("{expected}{total}"), "{preview:?}");
    assert_eq!(place.names(), changed);

    let done = place.undo(&["--since", "turn 1"]);
    let printed = text(&done.stdout);
    assert!(printed.starts_with(expected), "{done:?}");
    assert!(is_as_before(&place), "{:?}", place.names());
    let (_, id) = printed.trim_end().rsplit_once("pinfold undo ").unwrap();
    let redone = place.undo(&[id.trim_end_matches("`)")]);
    // Five files and directories, and the two directories that were created for files.
    assert!(text(&redone.stdout).contains(" and 6 more paths (undo that"), "{redone:?}");
    assert_eq!(place.names(), changed);
    // By the checkpoint's id, too.
    let log = place.log();
    let checkpoint = log.iter().find(|entry| entry["checkpoint"] == "turn 1").unwrap();
    assert!(place.undo(&["--since", checkpoint["id"].as_str().unwrap()]).status.success());
    assert!(is_as_before(&place));
    let nothing = place.undo(&["--since", "turn 1"]);
    assert_eq!(text(&nothing.stdout), "There was nothing to undo\n");
}

#[test]
fn what_somebody_else_changed_is_named_and_then_nothing_is_done() {
    let place = workspace();
    assert!(place.pinfold("checkpoint").arg("start").output().unwrap().status.success());
    turn(&place);
    fs::write(place.ws().join("a.txt"), "theirs\n").unwrap();
    let changed = place.names();
    let refused = place.undo(&["--since", "start"]);
    assert_eq!(refused.status.code(), Some(1));
    let expected = "\
pinfold: `a.txt` is left as it is: its content has changed since
pinfold: nothing was changed; `--leave-out-conflicts` undoes the rest
";
    assert_eq!(text(&refused.stderr), expected);
    assert_eq!(text(&refused.stdout), "");
    assert_eq!(place.names(), changed);
    let done = place.undo(&["--since", "start", "--leave-out-conflicts"]);
    assert!(done.status.success(), "{done:?}");
    assert_eq!(place.read("a.txt").unwrap(), "theirs\n");
    assert_eq!(place.read("c.txt").unwrap(), "three\n");
    assert_eq!(place.names(), ["a.txt", "b.bin", "c.txt", "dir", "dirty.txt"]);
}

#[test]
fn the_changes_of_one_session_are_listed_and_taken_back() {
    let place = workspace();
    let batch = |lines: &[Value]| {
        let mut process = place.pinfold("batch");
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let file = place.0.path().join("lines");
        fs::write(&file, lines).unwrap();
        process.stdin(fs::File::open(file).unwrap());
        assert!(process.output().unwrap().status.success());
    };
    let write = |path: &str, content: &str| json!({"tool": "file.write", "args": {"path": path, "content": content}});
    batch(&[write("a.txt", "first\n"), write("x.txt", "x\n")]);
    batch(&[write("c.txt", "second\n"), write("y.txt", "y\n")]);
    let log = place.log();
    let sessions: Vec<&str> = log.iter().map(|entry| entry["session"].as_str().unwrap()).collect();
    assert!(sessions[0] == sessions[1] && sessions[1] != sessions[2], "{sessions:?}");
    let listed = place.pinfold("log").args(["--session", sessions[2]]).output().unwrap();
    let listed = text(&listed.stdout);
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(listed.lines().all(|line| line.contains(sessions[2])), "{listed}");
    let mut limited = place.pinfold("log");
    let limited = limited.args(["--session", sessions[2], "--limit", "1"]).output().unwrap();
    assert!(text(&limited.stdout).contains("y.txt"), "{limited:?}");
    let none = place.pinfold("log").args(["--session", "none"]).output().unwrap();
    assert!(text(&none.stderr).contains("there are no such changes in this workspace"), "{none:?}");
    let done = place.undo(&["--session", sessions[0]]);
    assert!(done.status.success(), "{done:?}");
    assert_eq!(place.read("a.txt").unwrap(), "one\n");
    assert!(place.read("x.txt").is_none());
    assert_eq!(place.read("c.txt").unwrap(), "second\n");
    // The changes of one session since a change of its own.
    let since = log[2]["id"].as_str().unwrap();
    assert!(place.undo(&["--since", since, "--session", sessions[2]]).status.success());
    assert!(place.read("y.txt").is_none());
    assert_eq!(place.read("c.txt").unwrap(), "second\n");
}

#[test]
fn what_cannot_be_taken_back_is_said() {
    let place = workspace();
    for (arguments, code, printed) in [
        (
            &["--since", "none"][..],
            1,
            "the journal has no change or checkpoint `none` in this workspace",
        ),
        (&["--session", "none"], 1, "there is no change to undo"),
        (&["x", "--since", "y"], 2, "cannot be used with"),
        (&["x", "--session", "y"], 2, "cannot be used with"),
        (&["--leave-out-conflicts"], 2, "needs `--since` or `--session`"),
        (&["--since", "y", "--no-journal"], 2, "there is no journal"),
    ] {
        let refused = place.undo(arguments);
        assert_eq!(refused.status.code(), Some(code), "{refused:?}");
        assert!(text(&refused.stderr).contains(printed), "{refused:?}");
    }
    let refused = place.pinfold("checkpoint").arg("--no-journal").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let long = place.pinfold("checkpoint").arg("x".repeat(201)).output().unwrap();
    assert_eq!(long.status.code(), Some(1), "{long:?}");
    assert!(text(&long.stderr).contains("at most 200 bytes"), "{long:?}");
}

#[test]
fn a_set_that_was_interrupted_and_changed_since_is_shown_with_the_state_of_each_file() {
    let place = workspace();
    for path in ["a.txt", "c.txt", "n.txt"] {
        place.call("file.write", json!({"path": path, "content": "new\n"}));
    }
    // The state after a process was killed in the middle of a set of changes.
    let log = place.0.path().join("state/pinfold/journal/log.jsonl");
    let lines = fs::read_to_string(&log).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut entries: Vec<Value> = lines.filter(|line| line["made"].is_null()).collect();
    let group = entries[0]["id"].clone();
    entries.iter_mut().for_each(|entry| entry["group"] = group.clone());
    let torn: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
    fs::write(&log, torn).unwrap();
    fs::write(place.ws().join("c.txt"), "theirs\n").unwrap();
    fs::remove_file(place.ws().join("n.txt")).unwrap();

    let printed = place.pinfold("log").output().unwrap();
    let printed = text(&printed.stdout);
    let states: Vec<_> =
        printed.lines().filter_map(|line| Some(line.split_once("  (torn")?.1)).collect();
    let group = group.as_str().unwrap();
    let expected = ["as after", "changed since", "as before"];
    assert_eq!(states, expected.map(|state| format!(", one of {group}: {state})")), "{printed}");
    let json = place.log();
    assert_eq!(json[1]["torn"], "changed since");
    assert_eq!(json[1]["group"], group);
    assert_eq!(place.read("a.txt").unwrap(), "new\n");
    // Once no other change is in the way, the next start rolls the set back.
    fs::write(place.ws().join("c.txt"), "new\n").unwrap();
    let restored = place.pinfold("log").output().unwrap();
    assert_eq!(place.read("a.txt").unwrap(), "one\n");
    assert_eq!(place.read("c.txt").unwrap(), "three\n");
    assert!(!text(&restored.stdout).contains("(torn"), "{restored:?}");
}
