//! The scenario corpus through the npm package: a process for each scenario, which `test/front_end.mjs` runs.

use std::process::Command;

use pinfold_testkit::{FrontEnd, Process, Stage, run_corpus};

fn open(stage: &Stage) -> Option<Box<dyn FrontEnd>> {
    let front_end = concat!(env!("CARGO_MANIFEST_DIR"), "/test/front_end.mjs");
    Some(Box::new(Process::start(Command::new("node").arg(front_end).arg(stage.options()))))
}

fn main() {
    match std::env::var_os("PINFOLD_NODE_PACKAGE") {
        Some(_) => run_corpus(&[("node", open)]),
        None => eprintln!("skipped: the npm package is not built; `cargo xtask test` does that"),
    }
}
