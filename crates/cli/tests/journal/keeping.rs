//! The journal's directory, its limits, and its failures.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Place;

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
fn files_that_are_not_the_journals_stay_in_its_directory() {
    let place = Place::new();
    let journal = place.0.path().join("named");
    fs::create_dir(&journal).unwrap();
    let names = ["notes.txt", "old version.before", ".pinfold-notes"];
    names.iter().for_each(|name| fs::write(journal.join(name), "mine").unwrap());
    fs::write(journal.join("0123456789.before"), "left by a killed process").unwrap();
    let arguments = json!({"path": "a", "content": "new"}).to_string();
    let mut command = place.pinfold("call");
    command.arg("--journal").arg(&journal).args(["file.write", &arguments]);
    assert!(command.output().unwrap().status.success());
    for name in names {
        assert_eq!(fs::read_to_string(journal.join(name)).unwrap(), "mine", "{name}");
    }
    assert!(!journal.join("0123456789.before").exists());
}

#[test]
fn the_flag_takes_what_the_setting_takes() {
    for (flag, entries) in [("true", 1), ("false", 0)] {
        let place = Place::new();
        let arguments = json!({"path": "a", "content": "new"}).to_string();
        let mut command = place.pinfold("call");
        command.args(["--journal", flag, "file.write", &arguments]).current_dir(place.ws());
        assert!(command.output().unwrap().status.success());
        assert_eq!(place.log().len(), entries, "{flag}");
        assert!(!place.ws().join(flag).exists(), "{flag} is no directory");
    }
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
    let printed = call(&["--journal-failure", "warn"]);
    assert!(printed["message"].as_str().unwrap().contains("cannot be undone"), "{printed}");
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
        // The test waits for one edit, sends more, and kills the process.
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
    // The journal has every change that was made, with its backup, and maybe some that were not made.
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
fn a_backup_that_was_modified_is_not_restored() {
    let place = Place::new();
    fs::write(place.ws().join("a"), "one\n").unwrap();
    let mut open = fs::File::options().append(true).open(place.ws().join("a")).unwrap();
    place.call("file.write", json!({"path": "a", "content": "new\n"}));
    open.write_all(b"late\n").unwrap();
    let backups = place.0.path().join("state/pinfold/journal");
    let has_late = |name: &String| {
        fs::metadata(backups.join(name)).unwrap().len() == "one\nlate\n".len() as u64
    };
    pinfold_testkit::until_seen(|| pinfold_testkit::names_in(&backups).iter().any(has_late));
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
fn an_undo_that_was_noted_and_never_made_leaves_the_change_to_undo() {
    let place = Place::new();
    for content in ["one\n", "two\n", "three\n"] {
        place.call("file.write", json!({"path": "a.txt", "content": content}));
    }
    assert!(place.undo(&[]).status.success());
    assert_eq!(place.read("a.txt").unwrap(), "two\n");
    // As if the process had been killed after it had journalled the undo.
    let log = place.0.path().join("state/pinfold/journal/log.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let last = text.trim_end().rfind('\n').unwrap() + 1;
    assert!(text[last..].contains("made"), "{text}");
    fs::write(&log, &text[..last]).unwrap();
    fs::write(place.ws().join("a.txt"), "three\n").unwrap();
    let undone = place.undo(&[]);
    assert!(undone.status.success(), "{undone:?}");
    assert_eq!(place.read("a.txt").unwrap(), "two\n");
    // And as if it had been killed after it had made the undo.
    assert!(place.undo(&[]).status.success());
    assert_eq!(place.read("a.txt").unwrap(), "one\n");
}

/// Appends an entry to the log, like a process that was killed before it made the change.
fn note_without_change(place: &Place, like: &str) {
    let log = place.0.path().join("state/pinfold/journal/log.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let entry = text.lines().find(|line| line.contains(like) && line.contains("\"id\"")).unwrap();
    let mut entry: Value = serde_json::from_str(entry).unwrap();
    entry["id"] = json!("killed");
    entry["before"] = entry["after"].take();
    entry["after"] = json!({"kind": "file", "hash": "00", "bytes": 1});
    fs::write(&log, format!("{text}{entry}\n")).unwrap();
}

#[test]
fn a_change_that_was_never_made_stops_no_undo_however_many_there_are() {
    let place = Place::new();
    for content in ["one\n", "two\n", "three\n"] {
        place.call("file.write", json!({"path": "a", "content": content}));
    }
    note_without_change(&place, "\"kind\":\"absent\"");
    for expected in [Some("two\n"), Some("one\n"), None] {
        let output = place.undo(&[]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(place.read("a").as_deref(), expected);
    }
    assert_eq!(place.undo(&[]).status.code(), Some(1));
}

#[test]
fn sparse_files_are_copied_sparsely_and_not_beyond_what_the_journal_may_take() {
    use std::os::unix::fs::MetadataExt as _;
    let place = Place::new();
    let Ok(far) = TempDir::new_in("/dev/shm") else {
        eprintln!("skipped: there is no second file system to put a journal on");
        return;
    };
    let delete = |name: &str, max: &str| -> Value {
        let mut command = place.pinfold("call");
        command.arg("--journal").arg(far.path()).args(["--max-journal-bytes", max]);
        command.arg("file.delete").arg(json!({"path": name}).to_string());
        serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
    };
    let sparse = |name: &str| {
        let mut file = fs::File::create(place.ws().join(name)).unwrap();
        file.write_all(b"head").unwrap();
        file.set_len(50 << 20).unwrap();
    };
    for name in ["a", "b", "c"] {
        sparse(name);
        let deleted = delete(name, "1000000");
        assert_eq!(deleted["success"], true, "{deleted}");
    }
    let files = fs::read_dir(far.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap());
    assert!(files.map(|meta| meta.blocks() * 512).sum::<u64>() < 100_000);
    let output = place.pinfold("undo").arg("--journal").arg(far.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let back = fs::read(place.ws().join("c")).unwrap();
    assert!(
        back.len() == 50 << 20 && back.starts_with(b"head") && back[4..].iter().all(|it| *it == 0)
    );
    // A backup that is too large is not copied.
    fs::write(place.ws().join("large"), vec![1; 2_000_000]).unwrap();
    let refused = delete("large", "1000000");
    assert!(refused["message"].as_str().unwrap().contains("max_journal_bytes"), "{refused}");
    assert!(place.ws().join("large").exists());
}
