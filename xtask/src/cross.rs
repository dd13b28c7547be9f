//! `cargo xtask cross`: type-checks other systems from here, and runs tests on an emulated ARM machine.

use anyhow::Result;

use crate::debian::{Debian, run};
use crate::toolchain::{Emulator, Toolchain};

/// The systems that are type-checked.
const CHECKED: [&str; 3] =
    ["aarch64-apple-darwin", "x86_64-apple-darwin", "x86_64-unknown-freebsd"];

/// The emulated target. Tests are static programs, like the published one.
const EMULATED: &str = "aarch64-unknown-linux-musl";

/// The crates whose tests run on the emulated machine.
const TESTED: [&str; 5] =
    ["pinfold", "pinfold-confine", "pinfold-dialects", "pinfold-index", "pinfold-text"];

/// Lints the workspace with all its tests for other systems. `xtask` and the benchmarks run only here.
pub(crate) fn check(targets: &[&str]) -> Result<()> {
    let toolchain = Toolchain::set_up(&Debian::update()?)?;
    for target in if targets.is_empty() { &CHECKED[..] } else { targets } {
        eprintln!("xtask: clippy for {target}");
        let mut clippy = toolchain.clippy(target);
        clippy.args(["--workspace", "--exclude", "xtask", "--exclude", "pinfold-benches"]);
        clippy.args(["--keep-going", "--all-targets", "--", "-D", "warnings"]);
        run(&mut clippy)?;
    }
    Ok(())
}

/// Runs tests under emulation: those of the crates that do the work, or of the given crates.
pub(crate) fn test(crates: &[&str]) -> Result<()> {
    let debian = Debian::update()?;
    let (toolchain, emulator) = (Toolchain::set_up(&debian)?, Emulator::set_up(&debian)?);
    let mut tests = toolchain.zig("test", EMULATED);
    let crates = if crates.is_empty() { &TESTED[..] } else { crates };
    tests.args(crates.iter().flat_map(|name| ["--package", name]));
    tests.args(["--lib", "--tests", "--no-fail-fast"]);
    let runner = EMULATED.to_uppercase().replace('-', "_");
    tests.env(format!("CARGO_TARGET_{runner}_RUNNER"), emulator.program());
    tests.env("PINFOLD_EMULATOR", emulator.program());
    run(&mut tests)
}
