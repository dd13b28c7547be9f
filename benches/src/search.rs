//! `Grep` and `Glob` in a running session, against `rg` and `fd` as processes.
//!
//! `--corpus DIR` names the tree; without it, Debian's kernel source is fetched. Smaller trees are cut
//! out of it. Answers are compared before anything is timed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{compare_slow, corpus};
use pinfold::{Permissions, Session, Settings};
use pinfold_dialects::{CLASSIC, Toolbox};
use serde_json::{Value, json};

/// What is searched for: a name, `Grep`'s arguments, and `rg`'s.
fn searches() -> Vec<(&'static str, Value, Vec<&'static str>)> {
    let content = |mut arguments: Value| {
        arguments["output_mode"] = json!("content");
        arguments
    };
    vec![
        (
            "rare literal",
            content(json!({"pattern": "zstd_compress_bound"})),
            vec!["zstd_compress_bound"],
        ),
        ("common literal", content(json!({"pattern": "struct"})), vec!["struct"]),
        (
            "regex with a literal",
            content(json!({"pattern": "[a-z]+_probe\\("})),
            vec!["[a-z]+_probe\\("],
        ),
        (
            "regex without a literal",
            content(json!({"pattern": "\\w{5}\\s+\\w{7}\\s+\\w{9}"})),
            vec!["\\w{5}\\s+\\w{7}\\s+\\w{9}"],
        ),
        (
            "ignore case",
            content(json!({"pattern": "mutex_lock", "-i": true})),
            vec!["-i", "mutex_lock"],
        ),
        ("words", content(json!({"pattern": "\\bpage\\b"})), vec!["\\bpage\\b"]),
        (
            "files_with_matches",
            json!({"pattern": "EXPORT_SYMBOL_GPL"}),
            vec!["-l", "EXPORT_SYMBOL_GPL"],
        ),
        ("count", json!({"pattern": "kfree", "output_mode": "count"}), vec!["-c", "kfree"]),
        (
            "multiline",
            content(json!({"pattern": "kfree\\([a-z]+\\);\\n\\s+return", "multiline": true})),
            vec!["-U", "--multiline-dotall", "kfree\\([a-z]+\\);\\n\\s+return"],
        ),
        (
            "*.h only",
            content(json!({"pattern": "mutex_lock", "glob": "*.h"})),
            vec!["-g", "*.h", "mutex_lock"],
        ),
        (
            "context 3",
            content(json!({"pattern": "mutex_unlock", "-C": 3})),
            vec!["-C3", "mutex_unlock"],
        ),
        ("no match", json!({"pattern": "zzz_not_there"}), vec!["-l", "zzz_not_there"]),
    ]
}

/// What is looked for by name: `Glob`'s pattern, and `fd`'s.
const FINDS: [(&str, &str); 3] = [
    ("**/*.h", "*.h"),
    ("**/Kconfig*", "Kconfig*"),
    ("**/sched_fair_no_such.c", "sched_fair_no_such.c"),
];

pub(crate) fn run() {
    let corpus = corpus("search");
    let cut = tempfile::tempdir().unwrap();
    for files in [1_000, 10_000] {
        let tree = cut.path().join(files.to_string());
        let mut left = files;
        copy_some(&corpus, &tree, &mut left);
        bench(&tree.canonicalize().unwrap(), &format!("{} files", files - left), 31);
    }
    bench(&corpus, "all files", 9);
}

fn bench(tree: &Path, name: &str, rounds: usize) {
    println!("{name}");
    // The kernel's tests have a private key, which would be withheld.
    let keys = Permissions { allow: vec!["Read(*.pem)".into()], ..Permissions::default() };
    let settings = |max_output_bytes| {
        Settings::default()
            .with_max_output_bytes(max_output_bytes)
            .with_max_glob_files(1_000)
            .with_permissions(keys.clone())
    };
    let toolbox =
        |settings| Toolbox::new(Session::with_settings([tree], settings).unwrap(), &[&CLASSIC]);
    let usual = toolbox(settings(None));
    let all = toolbox(
        settings(Some(usize::MAX / 2))
            .with_max_glob_files(usize::MAX)
            .with_max_line_chars(1_000_000),
    );
    let (rg, fd) = (std::env::var("PINFOLD_RG").unwrap(), std::env::var("PINFOLD_FD").unwrap());
    for (name, arguments, flags) in searches() {
        let mut whole = arguments.clone();
        whole["head_limit"] = json!(0);
        let theirs = || {
            let mut command = Command::new(&rg);
            command.args(["--no-config", "--hidden", "--no-require-git", "--no-ignore-global"]);
            command.args(["--no-ignore-exclude", "--no-ignore-parent", "-g", "!.git"]);
            command.args(["-H", "-n", "--no-heading"]).args(&flags).arg(tree);
            command.output().unwrap().stdout
        };
        check(name, &said(&all, "Grep", &whole), &String::from_utf8_lossy(&theirs()));
        compare_slow(name, rounds, || drop(said(&usual, "Grep", &arguments)), || drop(theirs()));
    }
    for (pattern, theirs) in FINDS {
        let arguments = json!({"pattern": pattern});
        let theirs = || {
            let mut command = Command::new(&fd);
            command.args([
                "--no-global-ignore-file",
                "--no-require-git",
                "-t",
                "f",
                "--glob",
                theirs,
            ]);
            command.arg(tree).output().unwrap().stdout
        };
        // A link to a file is a file to us.
        let ours = said(&all, "Glob", &arguments);
        let links = |path: &&str| !fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
        let ours: Vec<_> = ours.lines().filter(links).collect();
        check(pattern, &ours.join("\n"), &String::from_utf8_lossy(&theirs()));
        let name = format!("Glob {pattern}");
        compare_slow(&name, rounds, || drop(said(&usual, "Glob", &arguments)), || drop(theirs()));
    }
}

fn said(toolbox: &Toolbox, tool: &str, arguments: &Value) -> String {
    let answer = toolbox.call(tool, arguments.clone()).to_json();
    assert_eq!(answer["success"], true, "{answer}");
    answer["content"].as_str().unwrap().to_owned()
}

/// The same lines, in whatever order.
fn check(what: &str, ours: &str, theirs: &str) {
    let lines = |text: &str| -> BTreeSet<String> {
        let notice = |line: &&str| !line.starts_with("No ") && !line.starts_with('(');
        text.lines().filter(notice).map(str::to_owned).collect()
    };
    let (ours, theirs) = (lines(ours), lines(theirs));
    let (more, fewer): (Vec<_>, Vec<_>) =
        (ours.difference(&theirs).take(3).collect(), theirs.difference(&ours).take(3).collect());
    assert!(
        more.is_empty() && fewer.is_empty(),
        "{what}: only ours {more:?}, only theirs {fewer:?}"
    );
}

/// Copies the first files of a tree.
fn copy_some(from: &Path, to: &Path, left: &mut usize) {
    let mut entries: Vec<_> =
        fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    fs::create_dir_all(to).unwrap();
    for path in entries {
        let to = to.join(path.file_name().unwrap());
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if *left == 0 {
            return;
        } else if kind.is_dir() {
            copy_some(&path, &to, left);
        } else if kind.is_file() {
            fs::copy(&path, to).unwrap();
            *left -= 1;
        }
    }
}
