//! The project's own commands: `cargo xtask NAME`.

#![forbid(unsafe_code)]

use std::process::{Command, ExitCode, Stdio};

use anyhow::{Result, bail};

const HELP: &str = "\
cargo xtask test           formatting, lints, documentation, all tests: what a change has to pass
cargo xtask bench NAME     a benchmark, both sides in one run: fence, edit";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["test"] => test(),
        ["bench", name] => bench(name),
        ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(())
        }
        _ => Err(anyhow::anyhow!("there is no such command\n\n{HELP}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Everything that a change has to pass.
fn test() -> Result<()> {
    run(&["fmt", "--all", "--check"], &[])?;
    run(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])?;
    run(&["doc", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")])?;
    if has_nextest() {
        run(&["nextest", "run", "--workspace", "--no-fail-fast"], &[])?;
    } else {
        eprintln!("xtask: without cargo-nextest, the same tests run under `cargo test`");
        run(&["test", "--workspace", "--all-targets", "--no-fail-fast"], &[])?;
    }
    // Neither of them runs the examples in the documentation.
    run(&["test", "--workspace", "--doc"], &[])
}

fn has_nextest() -> bool {
    let mut ask = Command::new("cargo");
    ask.args(["nextest", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    ask.status().is_ok_and(|status| status.success())
}

fn bench(name: &str) -> Result<()> {
    run(&["run", "--quiet", "--release", "--package", "pinfold-benches", "--bin", name], &[])
}

fn run(arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    eprintln!("xtask: cargo {}", arguments.join(" "));
    let mut command = Command::new("cargo");
    let status = command.args(arguments).envs(environment.iter().copied()).status()?;
    if !status.success() {
        bail!("`cargo {}` failed", arguments.join(" "));
    }
    Ok(())
}
