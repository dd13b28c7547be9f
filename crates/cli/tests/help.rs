//! The help and the manual page of every command.
//!
//! `INSTA_UPDATE=always cargo test -p pinfold-cli --test help` writes the snapshots.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use std::process::Command;

const COMMANDS: [&str; 15] = [
    "serve",
    "call",
    "apply",
    "batch",
    "tools",
    "log",
    "show",
    "undo",
    "checkpoint",
    "watch",
    "page",
    "token",
    "doctor",
    "completions",
    "man",
];

fn pinfold(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pinfold"));
    let output = command.env("COLUMNS", "100").args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    // `clap` pads empty lines.
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
fn help_is_as_it_was_reviewed() {
    insta::assert_snapshot!("help", pinfold(&["--help"]));
    for command in COMMANDS {
        insta::assert_snapshot!(format!("help-{command}"), pinfold(&[command, "--help"]));
    }
    for action in ["new", "remove", "list"] {
        let text = pinfold(&["token", action, "--help"]);
        insta::assert_snapshot!(format!("help-token-{action}"), text);
    }
}

#[test]
fn short_help_fits_one_screen() {
    for command in COMMANDS {
        let text = pinfold(&[command, "-h"]);
        assert!(text.lines().count() <= 40, "{text}");
        insta::assert_snapshot!(format!("short-{command}"), text);
    }
}

#[test]
fn manual_pages_are_as_they_were_reviewed() {
    insta::assert_snapshot!("man", pinfold(&["man"]));
    for command in COMMANDS {
        insta::assert_snapshot!(format!("man-{command}"), pinfold(&["man", command]));
    }
}

#[test]
fn manual_pages_describe_every_option() {
    for command in COMMANDS {
        let page = pinfold(&["man", command]);
        for option in page.split("\n.TP\n").skip(1) {
            let mut lines = option.lines();
            let (name, description) = (lines.next().unwrap(), lines.next().unwrap_or_default());
            assert!(!description.is_empty(), "{command}: {name} has no description");
        }
    }
}

#[test]
fn a_command_has_only_the_options_that_apply_to_it() {
    for (command, foreign) in [
        ("undo", &["--max-glob-files", "--max-image-side", "--dialect", "--http"][..]),
        ("log", &["--max-edit-bytes", "--dry-run", "--no-journal", "--matching"]),
        ("tools", &["--journal", "--mode", "--max-output-bytes"]),
        ("call", &["--http", "--token-file", "--client-roots"]),
        ("watch", &["--dialect", "--mode", "--journal", "--no-feed"]),
    ] {
        let text = pinfold(&[command, "--help"]);
        assert!(foreign.iter().all(|option| !text.contains(option)), "{text}");
    }
}
