//! The README's examples, run in order in an empty directory.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The beginnings of commands that are not run here. Other tests run the first one, and the configurations of
/// clients.
const NOT_RUN: [&str; 3] = ["cargo run --release -- call ", "cargo xtask test", "claude mcp add "];

#[test]
fn the_examples_print_what_the_readme_shows() {
    let readme = include_str!("../../../README.md");
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("demo");
    std::fs::create_dir(&root).unwrap();
    let root = root.canonicalize().unwrap();
    // A document of three pages, which the scenarios have too.
    let setup: Value =
        serde_json::from_str(include_str!("../../../scenarios/read/pdf/setup.json")).unwrap();
    std::fs::write(root.join("paper.pdf"), setup["steps"][0]["text"].as_str().unwrap()).unwrap();
    let mut examples = 0;
    for block in readme.split("```console\n").skip(1) {
        let (block, _) = block.split_once("```").unwrap();
        for example in block.split("$ ").skip(1) {
            let (command, shown) = example.split_once('\n').unwrap();
            if NOT_RUN.iter().any(|beginning| command.starts_with(beginning)) {
                continue;
            }
            assert!(command.starts_with("pinfold "), "{command}");
            let printed = run(&root, command).replace(root.to_str().unwrap(), "/tmp/demo");
            assert_eq!(normal(&printed), normal(shown), "{command}");
            examples += 1;
        }
    }
    assert!(examples >= 14, "{examples}");
}

/// Runs a command line as a shell does, and `jq -r .FIELD` after it.
fn run(root: &Path, line: &str) -> String {
    let (line, field) = match line.split_once(" | jq -r .") {
        Some((line, field)) => (line, Some(field)),
        None => (line, None),
    };
    let line = line.replacen("pinfold", env!("CARGO_BIN_EXE_pinfold"), 1);
    let state = root.with_file_name("state");
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).current_dir(root).env("XDG_STATE_HOME", state);
    shell.env("HOME", root.with_file_name("home")).stdin(Stdio::null());
    std::fs::create_dir_all(root.with_file_name("home")).unwrap();
    shell.env("XDG_CONFIG_HOME", root.with_file_name("config")).env_remove("PINFOLD_CONFIG");
    let output = shell.output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{line}");
    match field {
        Some(field) => {
            let result: Value = serde_json::from_str(&printed).unwrap();
            result[field].as_str().unwrap().to_owned()
        }
        None => printed,
    }
}

/// The text with ids and times replaced, which differ from run to run.
fn normal(text: &str) -> String {
    let word = |word: &str| {
        let id = word.len() == 10 && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        if id {
            "ID".to_owned()
        } else if digits > 4 && (word.contains(':') || word.matches('-').count() == 2) {
            "TIME".to_owned()
        } else {
            word.to_owned()
        }
    };
    let mut words = String::new();
    for part in text.trim_end().split_inclusive([' ', '\n', '`', '"', '(', ')']) {
        let end = part.len()
            - part
                .chars()
                .next_back()
                .filter(|c| " \n`\"()".contains(*c))
                .map_or(0, char::len_utf8);
        // `Undid ID:` ends with a colon.
        let (body, rest) = part.split_at(end);
        let (body, colon) = body.strip_suffix(':').map_or((body, ""), |body| (body, ":"));
        words += &(word(body) + colon + rest);
    }
    words
}
