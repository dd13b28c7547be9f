//! The edit script that turns one sequence of lines into another.
//!
//! Lines are compared as numbers by one algorithm, since the crate would be compiled once more for every other type
//! and algorithm.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use similar::DiffOp;
use similar::algorithms::{Capture, Compact, Replace, myers};

/// So few lines are always compared to the end, in some milliseconds: the result depends on no clock.
const MAX_UNTIMED_LINES: usize = 2_000;

/// The operations that turn `old` into `new`. After `max_time` they are still correct, but may not be the fewest.
pub(crate) fn edit_script(old: &[u32], new: &[u32], max_time: Duration) -> Vec<DiffOp> {
    let mut hook = Compact::new(Replace::new(Capture::new()), old, new);
    let is_timed = old.len() + new.len() > MAX_UNTIMED_LINES;
    let deadline = is_timed.then(|| Instant::now() + max_time);
    match myers::diff_deadline(&mut hook, old, 0..old.len(), new, 0..new.len(), deadline) {
        Ok(()) => hook.into_inner().into_inner().into_ops(),
    }
}

/// The same for lines. Equal lines get equal numbers.
pub(crate) fn edit_script_of_lines(old: &[&str], new: &[&str], max_time: Duration) -> Vec<DiffOp> {
    let mut numbers = HashMap::new();
    let [old, new] = [old, new].map(|lines| -> Vec<u32> {
        let mut number = |line| {
            let next = numbers.len() as u32;
            *numbers.entry(line).or_insert(next)
        };
        lines.iter().map(|line| number(*line)).collect()
    });
    edit_script(&old, &new, max_time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_texts_are_compared_to_the_end_whatever_the_time() {
        let old: Vec<u32> = (0..900).collect();
        let new: Vec<u32> = old.iter().map(|line| line + line % 2 * 10_000).collect();
        let script = edit_script(&old, &new, Duration::ZERO);
        let equal: usize = script
            .iter()
            .filter(|op| op.tag() == similar::DiffTag::Equal)
            .map(|op| op.old_range().len())
            .sum();
        assert_eq!(equal, 450);
    }

    proptest! {
        #[test]
        fn numbers_have_the_script_of_their_lines(old in "([abc]\n){0,150}", new in "([abcd]\n){0,150}") {
            let [old, new]: [Vec<&str>; 2] =
                [&old, &new].map(|text| text.split_inclusive('\n').collect());
            let lines = similar::TextDiff::configure().diff_slices(&old, &new);
            let script = edit_script_of_lines(&old, &new, Duration::from_secs(60));
            prop_assert_eq!(script, lines.ops());
        }
    }
}
