//! Random calls: whole sessions against a model of what they should do, and everything that takes text apart
//! against text that nobody would write.
//!
//! A bounded run with the same numbers every time, as a test. With `PINFOLD_FUZZ_SECONDS` set, as `cargo xtask fuzz`
//! does, each goes on for that long with numbers that nobody has tried; what fails names its number, and
//! `PINFOLD_FUZZ_SEED` runs that one again.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

mod dice;
mod model;
mod texts;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dice::Dice;

/// Runs a trial with as many numbers as there is time for, or with `most` of them.
fn trials(most: u64, trial: impl Fn(&mut Dice)) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let run = |seed: u64| {
        let outcome = catch_unwind(AssertUnwindSafe(|| trial(&mut Dice::new(seed))));
        if let Err(panic) = outcome {
            eprintln!("failed with PINFOLD_FUZZ_SEED={seed}");
            resume_unwind(panic);
        }
    };
    if let Some(seed) = number("PINFOLD_FUZZ_SEED") {
        return run(seed);
    }
    let Some(seconds) = number("PINFOLD_FUZZ_SECONDS") else {
        return (0..most).for_each(run);
    };
    let begin = Instant::now();
    let first = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let first = u64::try_from(first & u128::from(u32::MAX)).unwrap() << 24;
    let mut done = 0;
    while begin.elapsed() < Duration::from_secs(seconds) {
        run(first + done);
        done += 1;
    }
    eprintln!("{done} trials");
}

#[test]
fn sessions_do_what_the_model_does() {
    trials(30, model::session);
}

#[test]
fn arguments_of_any_kind_are_answered() {
    trials(60, texts::arguments);
}

#[test]
fn paths_and_globs_of_any_kind_stay_inside() {
    trials(60, texts::paths);
}

#[test]
fn bytes_of_any_kind_can_be_read_and_edits_touch_no_others() {
    trials(100, texts::bytes);
}

#[test]
fn notebooks_of_any_kind_can_be_read() {
    trials(60, texts::notebooks);
}

#[test]
fn ignore_files_of_any_kind_hide_what_they_say() {
    trials(40, texts::ignore_files);
}
