//! Benchmarks: each measures two ways to do the same, interleaved, so that a noisy machine disturbs both alike.
//!
//! All benchmarks are one program, since linking each would take longer than compiling it.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot be set up has nothing to measure")]

mod corpus;
mod documents;
mod edit;
mod fence;
mod journal;
mod kept;
mod load;
mod packages;
mod peers;
mod read;
mod repair;
mod search;
mod serve;
mod soak;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use corpus::corpus;
use kept::Kept;

/// Runs the benchmark in the first argument. The benchmark parses the other arguments.
fn main() -> ExitCode {
    match std::env::args().nth(1).unwrap_or_default().as_str() {
        "documents" => documents::run(),
        "edit" => edit::run(),
        "fence" => fence::run(),
        "journal" => journal::run(),
        "load" => return load::run(),
        "packages" => packages::run(),
        "peers" => peers::run(),
        "read" => read::run(),
        "repair" => return repair::run(),
        "search" => search::run(),
        "serve" => serve::run(),
        "soak" => return soak::run(),
        name => {
            eprintln!("there is no benchmark `{name}`");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Times `ours` and `theirs` in turns, and prints the medians and their ratio.
///
/// Short calls are timed in batches, so that reading the clock does not matter.
pub(crate) fn compare(what: &str, rounds: usize, ours: impl FnMut(), theirs: impl FnMut()) {
    measure(what, rounds, 20, ours, theirs);
}

/// As [`compare`], for calls that take so long that each is timed alone.
pub(crate) fn compare_slow(what: &str, rounds: usize, ours: impl FnMut(), theirs: impl FnMut()) {
    measure(what, rounds, 1, ours, theirs);
}

fn measure(
    what: &str,
    rounds: usize,
    together: u32,
    mut ours: impl FnMut(),
    mut theirs: impl FnMut(),
) {
    let mut times = [Vec::with_capacity(rounds), Vec::with_capacity(rounds)];
    for round in 0..rounds {
        // The first one finds colder caches, so they also take turns in going first.
        for side in [round % 2, 1 - round % 2] {
            let start = Instant::now();
            for _ in 0..together {
                if side == 0 { ours() } else { theirs() }
            }
            times[side].push(start.elapsed() / together);
        }
    }
    let [ours, theirs] = times.map(median);
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("{what:<48} ours {ours:>10.2?}  theirs {theirs:>10.2?}  ratio {ratio:.2}");
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
