//! Cases of the `reference` dialect that scenarios cannot test: times, limits, and joined pages.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::{Duration, SystemTime};

use pinfold::{Session, Settings};
use pinfold_dialects::{REFERENCE, Toolbox};
use serde_json::{Value, json};
use tempfile::TempDir;

fn toolbox(dir: &TempDir) -> Toolbox {
    Toolbox::new(Session::open([dir.path()]).unwrap(), &[&REFERENCE])
}

/// The texts of an answer: the first is the structured content too.
fn texts(answer: &Value) -> Vec<String> {
    let texts: Vec<_> = answer["content"].as_array().unwrap().iter().collect();
    let texts: Vec<_> = texts.iter().map(|it| it["text"].as_str().unwrap().to_owned()).collect();
    if answer["isError"] == false {
        assert_eq!(answer["structuredContent"], json!({ "content": texts[0] }));
    } else {
        assert!(answer.get("structuredContent").is_none(), "{answer}");
    }
    texts
}

fn call(toolbox: &Toolbox, tool: &str, arguments: Value) -> Vec<String> {
    texts(&toolbox.call(tool, arguments).to_json())
}

#[test]
fn times_are_in_utc_and_permissions_are_three_digits() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.txt");
    fs::write(&path, "one\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4640)).unwrap();
    let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    fs::File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
    symlink("a.txt", dir.path().join("link")).unwrap();
    let about = call(&toolbox(&dir), "get_file_info", json!({"path": "link"}));
    let [about] = about.as_slice() else { panic!("{about:?}") };
    let lines: Vec<_> = about.lines().map(|line| line.split_once(": ").unwrap()).collect();
    let keys = ["size", "created", "modified", "accessed", "isDirectory", "isFile", "permissions"];
    assert_eq!(lines.iter().map(|(key, _)| *key).collect::<Vec<_>>(), keys);
    let shown = "Tue Nov 14 2023 22:13:20 GMT+0000 (Coordinated Universal Time)";
    assert_eq!([lines[0].1, lines[2].1], ["4", shown]);
    assert_eq!([lines[4].1, lines[5].1, lines[6].1], ["false", "true", "640"]);
    for (_, time) in &lines[1..4] {
        assert!(time.ends_with(" GMT+0000 (Coordinated Universal Time)"), "{time}");
    }
}

#[test]
fn the_home_directory_is_expanded() {
    let home = std::env::home_dir().unwrap();
    let toolbox = Toolbox::new(Session::open([&home]).unwrap(), &[&REFERENCE]);
    assert!(call(&toolbox, "get_file_info", json!({"path": "~"}))[0].contains("isDirectory: true"));
    let missing = call(&toolbox, "get_file_info", json!({"path": "~/no such file here"}));
    let words = "ENOENT: no such file or directory, stat '~/no such file here'";
    assert!(missing[0].starts_with(words), "{missing:?}");
}

#[test]
fn a_cut_file_is_read_to_its_end_by_the_offsets() {
    let dir = TempDir::new().unwrap();
    let toolbox = toolbox(&dir);
    let whole: String =
        (1..=3_000).map(|line| format!("{line} {}\n", "x".repeat(line % 2_000))).collect();
    assert!(whole.len() > 2 * 1024 * 1024);
    fs::write(dir.path().join("large.txt"), &whole).unwrap();
    let (mut read, mut offset) = (String::new(), 1);
    while offset > 0 {
        let page = call(&toolbox, "read_text_file", json!({"path": "large.txt", "offset": offset}));
        assert!(page[0].len() <= 1024 * 1024 + 100, "{}", page[0].len());
        let cut = page[0].rsplit_once("\n[Lines ");
        read.push_str(cut.map_or(&page[0], |(lines, _)| lines));
        offset = cut.map_or(0, |(_, note)| {
            let (_, next) = note.split_once("offset=").unwrap();
            next.strip_suffix(".]").unwrap().parse().unwrap()
        });
    }
    assert_eq!(read, whole);
}

#[test]
fn a_long_line_is_not_cut() {
    let dir = TempDir::new().unwrap();
    let line = "é".repeat(100_000);
    fs::write(dir.path().join("min.js"), &line).unwrap();
    let toolbox = toolbox(&dir);
    assert_eq!(call(&toolbox, "read_text_file", json!({"path": "min.js"})), [line.as_str()]);
    let several = call(&toolbox, "read_multiple_files", json!({"paths": ["min.js"]}));
    assert_eq!(several, [format!("min.js:\n{line}\n")]);
}

#[test]
fn trees_and_searches_are_cut_from_the_top_and_say_so() {
    let dir = TempDir::new().unwrap();
    fs::create_dir_all(dir.path().join("a/b")).unwrap();
    for number in 0..2_600 {
        fs::write(dir.path().join(format!("a/{number:04}")), "").unwrap();
        fs::write(dir.path().join(format!("a/b/{number:04}")), "").unwrap();
    }
    let toolbox = toolbox(&dir);
    let tree = call(&toolbox, "directory_tree", json!({"path": "."}));
    let value: Value = serde_json::from_str(&tree[0]).unwrap();
    let a = &value[0];
    assert_eq!(a["children"].as_array().unwrap().len(), 2_601);
    assert!(a.get("truncated").is_none());
    let b = &a["children"][2_600];
    assert_eq!((b["name"].as_str(), b["truncated"].as_bool()), (Some("b"), Some(true)));
    assert_eq!(b["children"].as_array().unwrap().len(), 5_000 - 2_602);
    assert!(tree[1].starts_with("entries shown: 5000; "), "{}", tree[1]);
    let found = call(&toolbox, "search_files", json!({"path": "a", "pattern": "**"}));
    assert_eq!(found[0].lines().count(), 1_000);
    let narrow = "matches 1-1000 of 5201; narrow `path` or `pattern` to see the others";
    assert_eq!(found[1], narrow);
    let listed = call(&toolbox, "list_directory", json!({"path": "a"}));
    assert_eq!((listed.len(), listed[0].lines().count()), (1, 2_601));
}

#[test]
fn a_deep_tree_keeps_within_the_budget() {
    let dir = TempDir::new().unwrap();
    let deep = "d/".repeat(300);
    fs::create_dir_all(dir.path().join(&deep)).unwrap();
    for number in 0..500 {
        fs::write(dir.path().join(&deep).join(number.to_string()), "").unwrap();
    }
    let tree = call(&toolbox(&dir), "directory_tree", json!({"path": "."}));
    assert!(tree[0].len() <= 1024 * 1024, "{}", tree[0].len());
    assert!(tree[0].contains("\"truncated\": true") && tree.len() == 2);
}

#[test]
fn what_policy_withholds_is_counted_and_nothing_is_asked() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("secret.txt"), "secret\n").unwrap();
    symlink("secret.txt", dir.path().join("link")).unwrap();
    let mut settings = Settings::default();
    settings.permissions.deny.push("Read(secret.txt)".into());
    let session = Session::with_settings([dir.path()], settings).unwrap();
    let toolbox = Toolbox::new(session, &[&REFERENCE]);
    let listed = call(&toolbox, "list_directory_with_sizes", json!({"path": "."}));
    let link = format!("[FILE] {:<30} {:>10}", "link", "0 B");
    let total = "\n\nTotal: 1 files, 0 directories\nCombined size: 0 B";
    assert_eq!(listed, [format!("{link}{total}"), "1 withheld by policy".into()]);
    let refused = call(&toolbox, "read_text_file", json!({"path": "link"}));
    assert!(refused[0].contains("is not allowed"), "{refused:?}");
}

#[test]
fn a_long_diff_is_cut_at_the_budget() {
    let dir = TempDir::new().unwrap();
    let lines = |word: &str| format!("{word}\n").repeat(60_000);
    fs::write(dir.path().join("a.txt"), lines("one") + "end\n").unwrap();
    let edits = json!([{"oldText": lines("one") + "end", "newText": lines("two") + "end"}]);
    let diff = call(&toolbox(&dir), "edit_file", json!({"path": "a.txt", "edits": edits}));
    assert!((600_000..1024 * 1024).contains(&diff[0].len()), "{}", diff[0].len());
    assert!(!diff[0].contains("[diff cut"));
    assert!(diff[0].ends_with(" end\n```\n\n"));
}
