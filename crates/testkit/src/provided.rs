//! Programs that tests need and Cargo does not build.

use std::ffi::OsString;
use std::io::Write as _;

/// A program that `cargo xtask test` provides through an environment variable. Without it, prints that `not_done` was
/// skipped. It prints past the test harness, which shows output only if the test fails.
pub fn provided(variable: &str, not_done: &str) -> Option<OsString> {
    let value = std::env::var_os(variable);
    if value.is_none() {
        let notice = format!("!!! {not_done}: set {variable}, or run `cargo xtask test` !!!\n");
        std::io::stderr().write_all(notice.as_bytes()).unwrap();
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "prints a notice that the other test reads"]
    fn skipped() {
        assert_eq!(provided("PINFOLD_IN_NO_ENVIRONMENT", "NOT DONE"), None);
    }

    #[test]
    fn a_test_that_skips_prints_a_notice() {
        let mut itself = crate::this_program();
        let output = itself.args(["--ignored", "provided::tests::skipped"]).output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{printed}");
        assert!(printed.contains("!!! NOT DONE: set PINFOLD_IN_NO_ENVIRONMENT,"), "{printed}");
    }
}
