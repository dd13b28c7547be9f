//! `cargo xtask test`: everything that a change has to pass.
//!
//! Nothing is compiled twice: the tests, the packages and the server of the conformance suite come from one build of
//! the whole workspace, with one set of features. Packages of other registries are installed while cargo compiles.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Result, anyhow};

use crate::packages::{self, Packages, Profile};
use crate::release::home;
use crate::{api, checks, conformance, run, tool};

pub(crate) fn run_all() -> Result<()> {
    let start = Instant::now();
    let installing = thread::spawn(install);
    timed("files", checks::run)?;
    timed("format", || run(&["fmt", "--all", "--check"], &[]))?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    timed("clippy", || run(&clippy, &[]))?;
    let doc = ["doc", "--workspace", "--no-deps"];
    timed("documentation", || run(&doc, &[("RUSTDOCFLAGS", "-D warnings")]))?;
    timed("public API", api::check)?;
    timed("build", || run(&["build", "--workspace", "--all-targets"], &[]))?;
    let installed = timed("the rest of installing", || installing.join())
        .map_err(|_| anyhow!("installing panicked"))?;
    let (rg, packages) = installed?;
    packages::lay(Profile::Dev)?;
    let mut own = timed("TypeScript", || packages.build_layers())?;
    own.extend(packages.page_environment());
    own.extend(packages.proxy_environment());
    let text = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let (node_modules, python) = (text(&packages.node_modules), text(&packages.python));
    let skipped = home().join("target/skipped");
    _ = fs::remove_file(&skipped);
    let collected = skipped.display().to_string();
    let mut environment = vec![("PINFOLD_RG", rg.as_str()), ("PINFOLD_SKIPPED", &collected)];
    environment.extend(node_modules.as_deref().map(|path| ("PINFOLD_NODE_MODULES", path)));
    environment.extend(python.as_deref().map(|path| ("PINFOLD_PYTHON", path)));
    environment.extend(own.iter().map(|(name, value)| (*name, value.as_str())));
    let tests = if has_nextest() {
        ["nextest", "run", "--workspace", "--no-fail-fast"]
    } else {
        eprintln!("xtask: without cargo-nextest, the same tests run under `cargo test`");
        ["test", "--workspace", "--all-targets", "--no-fail-fast"]
    };
    timed("tests", || run(&tests, &environment))?;
    // Neither of them runs the examples in the documentation.
    timed("examples in the documentation", || run(&["test", "--workspace", "--doc"], &[]))?;
    timed("tests of the packages", || packages.test_own())?;
    timed("conformance", || conformance::run(&packages))?;
    packages.report_missing();
    let notices = fs::read_to_string(skipped).unwrap_or_default();
    for notice in BTreeSet::from_iter(notices.lines()) {
        eprintln!("xtask: !!! {notice} !!!");
    }
    eprintln!("xtask: all of it took {} s", start.elapsed().as_secs());
    Ok(())
}

/// Installs programs that results are compared with, and packages of other languages' registries.
fn install() -> Result<(String, Packages)> {
    let mut packages = Packages::install()?;
    packages.install_for_own()?;
    packages.install_for_page()?;
    packages.install_proxies();
    Ok((tool("rg", "ripgrep", "15.2.0")?, packages))
}

/// Runs a step, and prints its time and the CPU time of its processes.
fn timed<T>(step: &str, run: impl FnOnce() -> T) -> T {
    let (start, processor_before) = (Instant::now(), processor_seconds());
    let result = run();
    let processor = processor_seconds() - processor_before;
    eprintln!("xtask: {step}: {:.0} s, {processor} s of CPU", start.elapsed().as_secs_f64());
    result
}

/// The CPU time of all ended child processes in seconds, or 0 if it cannot be read.
fn processor_seconds() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name, in brackets, may have spaces. `cutime` and `cstime` are the 14th and 15th field after it.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(13).take(2);
    fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() / 100
}

fn has_nextest() -> bool {
    let mut ask = Command::new("cargo");
    ask.args(["nextest", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    ask.status().is_ok_and(|status| status.success())
}
