//! The journal through the command line: what it keeps, what it takes back, and what it survives.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

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
        let entries = fs::read_dir(self.ws()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
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
    assert_eq!(message, "pinfold: there is no change to take back\n");

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
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(
        told.starts_with(&format!("[Dry Run] Would undo {id}: a.txt is as it was before\n")),
        "{told}"
    );
    assert!(told.contains("-2\n+two"), "{told}");
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
fn the_journal_is_private_and_moves_what_it_keeps() {
    let place = Place::new();
    fs::write(place.ws().join("a"), "old").unwrap();
    let inode = |path: PathBuf| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let before = inode(place.ws().join("a"));
    place.call("file.write", json!({"path": "a", "content": "new"}));
    let journal = place.0.path().join("state/pinfold/journal");
    let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&journal), 0o700);
    assert_eq!(mode(&journal.join("log.jsonl")), 0o600);
    let id = place.log()[0]["id"].as_str().unwrap().to_owned();
    let kept = journal.join(format!("{id}.before"));
    assert_eq!(fs::read_to_string(&kept).unwrap(), "old");
    assert_eq!(inode(kept), before, "copied instead of moved");
}

#[test]
fn a_journal_on_another_file_system_keeps_copies() {
    let place = Place::new();
    let Ok(far) = TempDir::new_in("/dev/shm") else {
        eprintln!("skipped: there is no second file system to put a journal on");
        return;
    };
    fs::write(place.ws().join("a"), "old").unwrap();
    fs::write(place.ws().join("b"), "gone").unwrap();
    for (tool, arguments) in [
        ("file.write", json!({"path": "a", "content": "new"})),
        ("file.delete", json!({"path": "b"})),
    ] {
        let mut command = place.pinfold("call");
        command.arg("--journal").arg(far.path()).arg(tool).arg(arguments.to_string());
        assert!(command.output().unwrap().status.success());
    }
    for _ in 0..2 {
        let output = place.pinfold("undo").arg("--journal").arg(far.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!((place.read("a").unwrap(), place.read("b").unwrap()), ("old".into(), "gone".into()));
    assert_eq!(place.names(), ["a", "b"]);
}

#[test]
fn a_journal_that_fails_stops_the_change_or_is_said() {
    let place = Place::new();
    fs::write(place.ws().join("a"), "old").unwrap();
    let blocked = place.0.path().join("blocked");
    fs::write(&blocked, "a file where a directory should be").unwrap();
    let call = |flags: &[&str]| -> Value {
        let arguments = json!({"path": "a", "content": "new"}).to_string();
        let mut command = place.pinfold("call");
        command.arg("--journal").arg(&blocked).args(flags).arg("file.write").arg(arguments);
        serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
    };
    let refused = call(&[]);
    assert_eq!(refused["error"], "write_failed", "{refused}");
    assert_eq!(place.read("a").unwrap(), "old");
    let said = call(&["--journal-failure", "say"]);
    assert!(said["message"].as_str().unwrap().contains("cannot be undone"), "{said}");
    assert_eq!(place.read("a").unwrap(), "new");
    let arguments = json!({"path": "a", "content": "newer"}).to_string();
    let output =
        place.pinfold("call").args(["--no-journal", "file.write", &arguments]).output().unwrap();
    assert!(output.status.success());
    assert!(place.log().is_empty());
}

#[test]
fn several_processes_share_one_journal() {
    let place = Place::new();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let place = &place;
            scope.spawn(move || {
                let lines: String = (0..25)
                    .map(|number| {
                        let args = json!({"path": format!("{writer}.txt"), "content": format!("{number}")});
                        format!("{}\n", json!({"tool": "file.write", "args": args}))
                    })
                    .collect();
                let mut process = place
                    .pinfold("batch")
                    .args(["--durability", "none"])
                    .stdin(Stdio::piped())
                    .stdout(Stdio::null())
                    .spawn()
                    .unwrap();
                process.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
                assert!(process.wait().unwrap().success());
            });
        }
    });
    assert_eq!(place.log().len(), 100);
    for _ in 0..100 {
        assert!(place.undo(&[]).status.success());
    }
    assert!(place.names().is_empty());
}

#[test]
fn a_killed_process_leaves_the_old_or_the_new_and_a_journal_that_can_be_read() {
    let place = Place::new();
    let padding = "x".repeat(200_000);
    fs::write(place.ws().join("f"), format!("value = 0\n{padding}\n")).unwrap();
    let mut reached = 0;
    for round in 0..100 {
        let mut process = place
            .pinfold("batch")
            .args(["--durability", "none"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = process.stdin.take().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let edit = |from: u64| {
            let patches = json!([{"find": format!("value = {from}\n"), "replace": format!("value = {}\n", from + 1)}]);
            json!({"tool": "file.patch", "args": {"path": "f", "patches": patches}}).to_string()
        };
        // One edit is waited for, more are on their way, and then it is over at once.
        writeln!(input, "{}", edit(reached)).unwrap();
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        assert!(answer.contains("\"success\":true"), "round {round}: {answer}");
        for more in 1..=(round % 7) {
            writeln!(input, "{}", edit(reached + more)).unwrap();
        }
        process.kill().unwrap();
        process.wait().unwrap();
        let text = place.read("f").unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        let value: u64 = first.strip_prefix("value = ").unwrap().parse().unwrap();
        assert!((reached + 1..=reached + 1 + round % 7).contains(&value), "round {round}: {first}");
        assert_eq!(rest.trim_end().len(), padding.len());
        reached = value;
    }
    // Every change that was made is in the journal with what it displaced, and perhaps some that
    // were not made.
    let journal = place.0.path().join("state/pinfold/journal");
    for entry in place.log() {
        let id = entry["id"].as_str().unwrap();
        assert!(journal.join(format!("{id}.before")).exists(), "{entry}");
    }
    assert!(place.log().len() as u64 >= reached, "{} < {reached}", place.log().len());
    place.call("file.write", json!({"path": "g", "content": ""}));
    assert_eq!(place.names(), ["f", "g"], "what was left behind was not swept");
    assert!(place.undo(&[]).status.success());
}

#[test]
fn what_was_kept_does_not_change_with_other_names_of_the_file() {
    let place = Place::new();
    fs::write(place.ws().join("a"), "one\n").unwrap();
    fs::hard_link(place.ws().join("a"), place.ws().join("b")).unwrap();
    place.call("file.write", json!({"path": "a", "content": "new\n"}));
    fs::write(place.ws().join("b"), "written through the other name\n").unwrap();
    assert!(place.undo(&[]).status.success());
    assert_eq!(place.read("a").unwrap(), "one\n");
}

#[test]
fn what_was_written_to_after_it_was_displaced_does_not_come_back_as_if_nothing_were() {
    let place = Place::new();
    fs::write(place.ws().join("a"), "one\n").unwrap();
    let mut open = fs::File::options().append(true).open(place.ws().join("a")).unwrap();
    place.call("file.write", json!({"path": "a", "content": "new\n"}));
    open.write_all(b"late\n").unwrap();
    let output = place.undo(&[]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("what was kept of it has been written to since"), "{message}");
    assert_eq!(place.read("a").unwrap(), "new\n");
}

#[test]
fn a_change_that_was_noted_and_never_made_is_passed_over() {
    let place = Place::new();
    fs::write(place.ws().join("a"), "old\n").unwrap();
    place.call("file.write", json!({"path": "b", "content": "made\n"}));
    place.call("file.write", json!({"path": "a", "content": "new\n"}));
    // As if the process had been killed just before the second change.
    fs::write(place.ws().join("a"), "old\n").unwrap();
    let output = place.undo(&[]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(place.names(), ["a"]);
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
        (&[][..], "yes"),
        (&["--ask", "*"], "yes"),
        (&["--read-only"], "yes"),
        (&["--allow", "Read(.env)"], "allow"),
        (&["--mode", "dontAsk", "--allow", "Read(.env)"], "allow"),
    ] {
        let (output, decided) = show(rules);
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(shown.contains("-old\n+new\n"), "{rules:?}: {shown}");
        assert_eq!(decided, decision, "{rules:?}");
    }
    for (rules, decision) in
        [(&["--deny", "Read(.env)"][..], "deny"), (&["--mode", "dontAsk"], "nobody")]
    {
        let (output, decided) = show(rules);
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(2), &b""[..]), "{output:?}");
        assert_eq!(decided, decision, "{rules:?}");
    }
}

#[test]
fn what_the_journal_cannot_name_is_said() {
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
    // For a program, what changed is as it is.
    place.call("file.write", json!({"path": "c", "content": "\u{1b}[1mbold\n"}));
    let id = place.log().last().unwrap()["id"].as_str().unwrap().to_owned();
    let shown = place.pinfold("show").arg(id).output().unwrap().stdout;
    assert!(String::from_utf8(shown).unwrap().contains("+\u{1b}[1mbold\n"));
}

#[test]
fn what_was_undone_is_in_the_audit_log() {
    let place = Place::new();
    let log = place.0.path().join("audit.jsonl");
    place.call("file.write", json!({"path": "a", "content": "one\n"}));
    for code in [0, 1] {
        let undo = place.pinfold("undo").arg("--audit").arg(&log).output().unwrap();
        assert_eq!(undo.status.code(), Some(code), "{undo:?}");
    }
    let lines = fs::read_to_string(&log).unwrap();
    let lines: Vec<Value> = lines.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let told: Vec<_> = lines.iter().map(|line| (&line["tool"], &line["outcome"])).collect();
    assert_eq!(told, [(&json!("undo"), &json!("ok")), (&json!("undo"), &json!("file_not_found"))]);
}
