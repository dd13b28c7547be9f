//! The official clients list and call every tool of every dialect, over both transports.
//!
//! They need packages that `cargo xtask test` installs and names in `PINFOLD_NODE_MODULES` and `PINFOLD_PYTHON`.
//! Without those the tests print that they were skipped.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use std::path::Path;
use std::process::Command;

use pinfold_testkit::provided;

fn run(command: &mut Command, script: &str) {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    let status = command.arg(scripts.join(script)).arg(env!("CARGO_BIN_EXE_pinfold")).status();
    assert!(status.unwrap().success(), "{command:?}");
}

#[test]
fn the_typescript_client() {
    if let Some(modules) = provided("PINFOLD_NODE_MODULES", "NOT TRIED WITH THE TYPESCRIPT CLIENT")
    {
        let node = Path::new(&modules).join(".bin/node");
        run(Command::new(node).env("NODE_PATH", &modules), "client.mjs");
    }
}

#[test]
fn the_python_client() {
    if let Some(python) = provided("PINFOLD_PYTHON", "NOT TRIED WITH THE PYTHON CLIENT") {
        run(&mut Command::new(python), "client.py");
    }
}
