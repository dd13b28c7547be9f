//! The scenario corpus through the Python package: a process for each scenario, which `tests/front_end.py` runs.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use std::process::Command;

use pinfold_testkit::{FrontEnd, Process, Stage, run_corpus};

/// Where a Python is that has the package.
const PYTHON: &str = "PINFOLD_PYTHON_PACKAGE";

fn open(stage: &Stage) -> Option<Box<dyn FrontEnd>> {
    let front_end = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/front_end.py");
    let mut python = Command::new(std::env::var_os(PYTHON).unwrap());
    Some(Box::new(Process::start(python.arg(front_end).arg(stage.options()))))
}

fn main() {
    match std::env::var_os(PYTHON) {
        Some(_) => run_corpus(&[("python", open)]),
        None => eprintln!("skipped: the Python package is not built; `cargo xtask test` does that"),
    }
}
