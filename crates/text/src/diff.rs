//! Unified diffs for people and models.

use std::fmt::Write as _;
use std::time::Duration;

use similar::TextDiff;

/// Past this the diff is still right, only no longer the shortest.
const LONGEST_SEARCH: Duration = Duration::from_millis(500);

/// What changed from `old` to `new`, with three lines of context, in at most about `budget` bytes.
///
/// Cut at a line's end where it would be longer, with a last line that says how much is missing.
pub fn unified_diff(path: &str, old: &str, new: &str, budget: usize) -> String {
    let diff = TextDiff::configure().timeout(LONGEST_SEARCH).diff_lines(old, new);
    let whole = diff
        .unified_diff()
        .context_radius(3)
        .header(&format!("a/{path}"), &format!("b/{path}"))
        .to_string();
    cut(whole, budget)
}

fn cut(mut diff: String, budget: usize) -> String {
    if diff.len() <= budget {
        return diff;
    }
    let keep = memchr::memrchr(b'\n', &diff.as_bytes()[..budget]).map_or(0, |end| end + 1);
    let missing = diff[keep..].lines().count();
    diff.truncate(keep);
    write!(diff, "[diff cut: {missing} more lines]").expect("a String takes anything");
    diff.push('\n');
    diff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_names_the_file_and_the_lines() {
        let diff = unified_diff("a.txt", "one\ntwo\nthree\n", "one\n2\nthree\n", 1000);
        let expected = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
        assert_eq!(diff, expected);
    }

    #[test]
    fn a_missing_final_newline_is_said() {
        let diff = unified_diff("a", "x\n", "x", 1000);
        assert!(diff.ends_with("+x\n\\ No newline at end of file\n"), "{diff}");
    }

    #[test]
    fn a_long_diff_is_cut_at_a_line() {
        let new = "line\n".repeat(100);
        let diff = unified_diff("a", "", &new, 60);
        assert!(diff.len() < 100, "{diff}");
        assert!(diff.ends_with("more lines]\n"), "{diff}");
        let uncut = unified_diff("a", "", &new, 10_000);
        assert_eq!(unified_diff("a", "", &new, uncut.len()), uncut);
    }
}
