//! Random calls: whole sessions compared with a model, and unusual text for everything that parses text.
//!
//! The test is bounded and uses the same choices every time. With `PINFOLD_FUZZ_SECONDS` set, as by `cargo xtask
//! fuzz`, each kind runs for that long with new choices. A failure is shrunk, and printed with the choices, which
//! `PINFOLD_FUZZ_CHOICES` runs again.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

mod approvals;
mod choices;
mod model;
mod moves;
mod refusals;
mod searches;
mod texts;

use std::time::{Duration, Instant};

use choices::Choices;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

/// Runs a trial for the given time, or with `cases` cases.
fn trials(cases: u32, trial: impl Fn(&mut Choices)) {
    const MAX_CHOICES: usize = 1_500;
    if let Ok(choices) = std::env::var("PINFOLD_FUZZ_CHOICES") {
        let choices = choices.split(',').map(|choice| choice.trim().parse().unwrap());
        return trial(&mut Choices::new(choices.collect()));
    }
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let strategy = prop::collection::vec(0..1_000_000_u32, 0..MAX_CHOICES);
    let run = |mut runner: TestRunner| {
        let outcome = runner.run(&strategy, |choices| {
            trial(&mut Choices::new(choices));
            Ok(())
        });
        match outcome {
            Err(TestError::Fail(reason, choices)) => {
                let choices: Vec<_> = choices.iter().map(u32::to_string).collect();
                panic!("{reason}\nPINFOLD_FUZZ_CHOICES={}", choices.join(","));
            }
            other => other.unwrap(),
        }
    };
    let Ok(seconds) = std::env::var("PINFOLD_FUZZ_SECONDS") else {
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        return run(TestRunner::new_with_rng(config, rng));
    };
    let (begin, mut done) = (Instant::now(), 0);
    while begin.elapsed() < Duration::from_secs(seconds.parse().unwrap()) {
        run(TestRunner::new(config.clone()));
        done += cases;
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

#[test]
fn the_lines_that_a_refusal_shows_are_found() {
    trials(150, refusals::taken_over);
}

#[test]
fn the_question_decodes_to_the_change_that_is_made() {
    trials(150, approvals::approved_changes);
}

#[test]
fn a_directory_that_is_moved_takes_no_change_with_it() {
    trials(300, moves::moved_directory);
}

#[test]
fn searches_are_never_stale() {
    searches::never_stale();
}

/// Does nothing, unless the test above has started it.
#[test]
fn the_tree_is_changed_by_another_process() {
    searches::change_tree();
}
