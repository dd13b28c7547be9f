//! What tests need that Cargo does not build.

use std::ffi::OsString;
use std::io::Write as _;

/// What `cargo xtask test` provides, and names in an environment variable. Without that, says what is `not_done`,
/// for everybody to see: what a test prints with `eprintln!` is not shown unless it fails.
pub fn provided(variable: &str, not_done: &str) -> Option<OsString> {
    let value = std::env::var_os(variable);
    if value.is_none() {
        let says = format!("!!! {not_done}: set {variable}, or run `cargo xtask test` !!!\n");
        std::io::stderr().write_all(says.as_bytes()).unwrap();
    }
    value
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    #[ignore = "it says that something was not done, for the other test to see"]
    fn skipped() {
        assert_eq!(provided("PINFOLD_IN_NO_ENVIRONMENT", "NOT DONE"), None);
    }

    #[test]
    fn a_test_that_skips_and_passes_is_heard() {
        let mut itself = Command::new(std::env::current_exe().unwrap());
        let output = itself.args(["--ignored", "provided::tests::skipped"]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        assert!(said.contains("!!! NOT DONE: set PINFOLD_IN_NO_ENVIRONMENT,"), "{said}");
    }
}
