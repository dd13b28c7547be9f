//! Tests that mount something, in their own mount namespace.

use std::io::Write as _;
use std::process::Command;

use crate::{skipped, this_program};

/// Tells a test program that it is in the namespace.
const INSIDE: &str = "PINFOLD_MOUNT_NAMESPACE";

/// Runs a test in a process of the same program, in its own mount namespace, so that it can mount and leaves nothing
/// behind. A user who is not root gets a user namespace, too. If neither is allowed, prints that the test was
/// skipped.
///
/// `name` is the test's own name, with its modules.
pub fn in_mount_namespace(name: &str, test: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return test();
    }
    let ways = [&["--mount"][..], &["--mount", "--user", "--map-root-user"]];
    let unshare = |way: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(way).args(["--propagation", "private"]);
        command
    };
    // The second mount shows that mounting is allowed.
    let probe = ["sh", "-c", "mount -t tmpfs tmpfs /mnt"];
    let may = |way: &&&[&str]| {
        unshare(way).args(probe).output().is_ok_and(|output| output.status.success())
    };
    let Some(way) = ways.iter().find(may) else {
        return skipped(&format!("NOT TRIED: {name}: this user may not mount anything"));
    };
    let mut command = unshare(way);
    let this = this_program();
    command.arg(this.get_program()).args(this.get_args()).args([name, "--exact", "--nocapture"]);
    let output = command.env(INSIDE, "1").output().unwrap();
    let said = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
    let ran = said.contains("1 passed") || said.contains("test result: FAILED");
    assert!(ran, "no test has the name {name}: {said}");
    assert!(output.status.success(), "{said}");
    // What it could not try.
    for line in said.lines().filter(|line| line.contains("!!!")) {
        std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}

/// Runs `mount` with these arguments.
pub fn mount(words: &[&str]) {
    let output = Command::new("mount").args(words).output().unwrap();
    assert!(output.status.success(), "mount {words:?}: {output:?}");
}
