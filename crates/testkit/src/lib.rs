//! The scenario corpus, and what runs it through a door.
//!
//! `scenarios/README.md` says what a scenario is made of.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "what cannot be set up or looked at fails the test")]

mod compare;
pub mod mcp;
mod process;
mod provided;
mod scenario;
mod stage;

pub use process::Process;
pub use provided::provided;
pub use scenario::{Scenario, corpus};
pub use stage::Stage;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;

/// A way in: takes calls, one after the other, in one session.
pub trait Door {
    /// Makes a call and waits for its answer.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value;
}

/// How a door is opened on a stage. `None` if the scenario is not for this door.
pub type Open = fn(&Stage) -> Option<Box<dyn Door>>;

/// Runs every scenario through the doors, one test for each pair. Does not return.
///
/// With `PINFOLD_BLESS=1`, what the first door answers becomes what is expected.
pub fn run_corpus(doors: &[(&'static str, Open)]) -> ! {
    let bless = std::env::var_os("PINFOLD_BLESS").is_some();
    let doors = if bless { &doors[..1] } else { doors };
    let trials = doors.iter().copied().flat_map(|(door, open)| {
        corpus().into_iter().map(move |scenario| {
            let name = format!("{door}::{}", scenario.name);
            Trial::test(name, move || scenario.run(open, bless).map_err(Failed::from))
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit()
}
