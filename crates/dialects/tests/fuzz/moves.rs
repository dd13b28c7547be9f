//! Directories that another process moves, replaces or swaps for a symlink while a call runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use pinfold::Session;
use pinfold_confine::fault::interleave;
use pinfold_dialects::{DOTTED, SCOPED, Toolbox};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::choices::Choices;

const CALLS: [&str; 10] = [
    "openat2",
    "openat",
    "stat",
    "fstat",
    "fstatat",
    "create",
    "flock",
    "exchange",
    "rename_new",
    "rename",
];

/// One call, during which the directory `a/b` is moved.
pub(crate) fn moved_directory(choices: &mut Choices) {
    let dir = TempDir::new().unwrap();
    let (root, outside) = (dir.path().join("ws"), dir.path().join("out"));
    for directory in ["ws/a/b", "ws/c", "ws/.git", "out/b"] {
        fs::create_dir_all(dir.path().join(directory)).unwrap();
    }
    fs::write(root.join("a/b/f"), "one two\n").unwrap();
    fs::write(outside.join("b/f"), "SECRET two\n").unwrap();
    let tools = Toolbox::new(Session::open([&root]).unwrap(), &[&DOTTED, &SCOPED]);
    let moved = root.join(choices.pick(&["../out/moved", "c/moved", ".git/hooks", "a/moved"]));
    let (from, to, secret) = (root.join("a/b"), moved.clone(), outside.join("b"));
    let instead = choices.below(3);
    let moves = move || {
        fs::rename(&from, &to).unwrap();
        match instead {
            0 => {}
            1 => fs::create_dir(&from).unwrap(),
            _ => symlink(&secret, &from).unwrap(),
        }
    };
    let at = (*choices.pick(&CALLS), 1 + choices.below(12));
    let (tool, arguments) = match choices.below(6) {
        0 => ("file.write", json!({"path": "a/b/f", "content": "new\n"})),
        1 => ("file.write", json!({"path": "a/b/new", "content": "new\n"})),
        2 => {
            ("file.patch", json!({"path": "a/b/f", "patches": [{"find": "one", "replace": "new"}]}))
        }
        3 => ("file.delete", json!({"path": "a/b/f"})),
        4 => ("read_file", json!({"path": "a/b/f"})),
        _ => ("file.search", json!({"pattern": "two"})),
    };
    let report = interleave(vec![(at.0, at.1, Box::new(moves))], || tools.call(tool, arguments));
    let answer = report.result.to_json();
    let what = format!("{tool} {at:?}, {instead}: {answer} {:?}", report.calls);
    assert!(!answer.to_string().contains("SECRET"), "{what}");
    assert_eq!(fs::read_to_string(outside.join("b/f")).unwrap(), "SECRET two\n", "{what}");
    assert_eq!(files(&outside.join("b")), ["f"], "{what}");
    if !moved.exists() {
        return;
    }
    check_moved(&moved, &answer, &report.calls, at, &what);
    assert!(!temp_file_below(dir.path()), "{what}");
}

/// The moved directory has its old content, unless the call had already checked its place for the last time.
fn check_moved(
    moved: &Path,
    answer: &Value,
    calls: &[&str],
    (call, nth): (&str, usize),
    what: &str,
) {
    let unchanged =
        files(moved) == ["f"] && fs::read_to_string(moved.join("f")).unwrap() == "one two\n";
    let mut made = calls.iter();
    let _ = made.by_ref().filter(|made| **made == call).nth(nth - 1);
    let looked_again = made.any(|made| *made == "openat2");
    let failed = answer.get("error").is_some();
    assert!(unchanged || !failed && !looked_again, "{what}: {:?}", files(moved));
}

fn files(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn temp_file_below(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().any(|entry| {
        let entry = entry.unwrap();
        let is_directory = entry.file_type().unwrap().is_dir();
        entry.file_name().to_str().unwrap().starts_with(".pinfold-")
            || is_directory && temp_file_below(&entry.path())
    })
}
