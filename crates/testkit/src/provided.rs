//! Programs that tests need and Cargo does not build, and notices of tests that were skipped.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write as _;

/// A program that `cargo xtask test` provides, from an environment variable. Without it, prints that `not_done` was
/// skipped.
pub fn provided(variable: &str, not_done: &str) -> Option<OsString> {
    let value = std::env::var_os(variable);
    if value.is_none() {
        skipped(&format!("{not_done}: set {variable}, or run `cargo xtask test`"));
    }
    value
}

/// Prints what a test did not try, past the test harness, which would show output only if the test fails. `cargo nextest`
/// does the same, so `cargo xtask test` has the notices collected in the file PINFOLD_SKIPPED, and prints them in the end.
pub fn skipped(notice: &str) {
    std::io::stderr().write_all(format!("!!! {notice} !!!\n").as_bytes()).unwrap();
    if let Some(file) = std::env::var_os("PINFOLD_SKIPPED") {
        let mut file = OpenOptions::new().append(true).create(true).open(file).unwrap();
        file.write_all(format!("{notice}\n").as_bytes()).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "prints a notice that the other test reads"]
    fn skips() {
        assert_eq!(provided("PINFOLD_IN_NO_ENVIRONMENT", "NOT DONE"), None);
    }

    #[test]
    fn a_test_that_skips_prints_a_notice() {
        let dir = tempfile::tempdir().unwrap();
        let collected = dir.path().join("skipped");
        let mut itself = crate::this_program();
        itself.args(["--ignored", "provided::tests::skips"]).env("PINFOLD_SKIPPED", &collected);
        let output = itself.output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{printed}");
        let notice = "NOT DONE: set PINFOLD_IN_NO_ENVIRONMENT,";
        assert!(printed.contains(&format!("!!! {notice}")), "{printed}");
        assert!(std::fs::read_to_string(collected).unwrap().starts_with(notice));
    }
}
