//! Checks for a release, which are too slow for every change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::{run, tool};

/// Checks licences, advisories, sources and duplicates among the dependencies.
pub(crate) fn deny() -> Result<()> {
    let program = tool("cargo-deny", "cargo-deny", "0.20.2")?;
    let mut command = Command::new(program);
    let checks = ["advisories", "bans", "licenses", "sources"];
    let status = command.args(["--workspace", "check"]).args(checks).status()?;
    if !status.success() {
        bail!("`cargo deny check` failed");
    }
    Ok(())
}

/// Checks the crates that have features without any of them, and with each one alone. Warnings are errors.
pub(crate) fn features() -> Result<()> {
    for (name, features) in [
        ("pinfold", &["images", "pdf", "schema"][..]),
        ("pinfold-dialects", &["images", "pdf"]),
        ("pinfold-mcp", &["http", "images", "pdf"]),
        ("pinfold-embed", &["images", "pdf"]),
        ("pinfold-pdf", &["extract"]),
    ] {
        let check = |feature: &str| {
            let package = ["clippy", "--package", name, "--no-default-features"];
            let chosen = ["--features", feature, "--", "-D", "warnings"];
            run(&[&package[..], &chosen].concat(), &[])
        };
        check("")?;
        features.iter().try_for_each(|feature| check(feature))?;
    }
    Ok(())
}

/// Crates that are not published: those for other languages, and our own tools.
const UNPUBLISHED: [&str; 5] =
    ["pinfold-benches", "pinfold-node", "pinfold-python", "pinfold-testkit", "xtask"];

/// Packs every crate that can be published, and builds the packed crates.
pub(crate) fn package(rest: &[&str]) -> Result<()> {
    let place = home().join("target/packed");
    if place.exists() {
        std::fs::remove_dir_all(&place)?;
    }
    let cargo_home = own_cargo_home(&place)?.to_string_lossy().into_owned();
    let place = place.to_string_lossy().into_owned();
    let mut arguments = vec!["package", "--workspace", "--target-dir", &place];
    arguments.extend(UNPUBLISHED.iter().flat_map(|name| ["--exclude", name]));
    arguments.extend(rest);
    run(&arguments, &[("CARGO_HOME", &cargo_home)])
}

/// Creates a `CARGO_HOME` for packing, which shares the user's registry but not the unpacked sources.
///
/// Cargo unpacks packed crates into its home, and takes a crate of the same name and version for the same crate. In the
/// user's home, the next run would build the crates of this one.
fn own_cargo_home(place: &Path) -> Result<PathBuf> {
    let default = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    let users = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(default);
    let users = users.context("neither `CARGO_HOME` nor `HOME` is set")?;
    let own = place.join("cargo-home");
    std::fs::create_dir_all(own.join("registry"))?;
    for shared in ["config.toml", "registry/index", "registry/cache"] {
        if users.join(shared).exists() {
            std::os::unix::fs::symlink(users.join(shared), own.join(shared))?;
        }
    }
    Ok(own)
}

/// Checks everything with the oldest versions of its dependencies that the manifests allow, in a copy.
pub(crate) fn minimal() -> Result<()> {
    let home = home();
    let copy = home.join("target/minimal/source");
    if copy.exists() {
        std::fs::remove_dir_all(&copy)?;
    }
    let clone = Command::new("git").arg("clone").arg("--quiet").args([&home, &copy]).status()?;
    if !clone.success() {
        bail!("cannot copy what is committed");
    }
    let cargo = |arguments: &[&str]| -> Result<()> {
        eprintln!("xtask: cargo {}", arguments.join(" "));
        let mut command = Command::new("cargo");
        // Choosing the oldest versions is not stable yet; compiling with them needs nothing unstable.
        command.args(arguments).current_dir(&copy).env("RUSTC_BOOTSTRAP", "1");
        let status = command.env("CARGO_TARGET_DIR", home.join("target/minimal/build")).status()?;
        if !status.success() {
            bail!("`cargo {}` failed", arguments.join(" "));
        }
        Ok(())
    };
    cargo(&["-Z", "direct-minimal-versions", "generate-lockfile"])?;
    cargo(&["check", "--workspace", "--locked"])
}

/// Measures which lines the tests of the crates that do the work reach. Fails if the share is too low. The front ends
/// are tested as processes, which are not counted.
pub(crate) fn coverage() -> Result<()> {
    const LEAST: f64 = 90.0;
    const MEASURED: [&str; 4] = ["confine", "dialects", "pinfold", "text"];
    const PACKAGES: [&str; 4] = ["pinfold", "pinfold-confine", "pinfold-dialects", "pinfold-text"];
    let program = tool("cargo-tarpaulin", "cargo-tarpaulin", "0.37.5")?;
    let rg = tool("rg", "ripgrep", "15.2.0")?;
    let place = home().join("target/coverage");
    let mut command = Command::new(program);
    command.args(["tarpaulin", "--engine", "llvm", "--skip-clean", "--timeout", "600"]);
    command.args(PACKAGES.iter().flat_map(|name| ["--packages", name]));
    command.args(["--include-files", "crates/*/src/*", "--exclude-files", "*/tests/*"]);
    command.args(["--exclude-files", "*/tests.rs", "--no-fail-fast", "--out", "Json"]);
    command.args(["--out", "Html", "--target-dir"]).arg(&place);
    command.arg("--output-dir").arg(&place).env("PINFOLD_RG", rg).current_dir(home());
    if !command.status()?.success() {
        bail!("the tests failed");
    }
    let report = std::fs::read_to_string(place.join("tarpaulin-report.json"))?;
    let report: Value = serde_json::from_str(&report)?;
    let mut crates: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for file in report["files"].as_array().context("the report names no files")? {
        let path: PathBuf =
            file["path"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let Ok(below) = path.strip_prefix(home().join("crates")) else { continue };
        let name = below.iter().next().unwrap_or_default();
        if !MEASURED.iter().any(|measured| *measured == name) {
            continue;
        }
        let sum = crates.entry(name.to_string_lossy().into_owned()).or_default();
        sum.0 += file["covered"].as_f64().unwrap_or_default();
        sum.1 += file["coverable"].as_f64().unwrap_or_default();
    }
    let mut low = Vec::new();
    for (name, (covered, all)) in &crates {
        let percent = 100.0 * covered / all.max(1.0);
        println!("{name:<10} {percent:5.1} % of {all} lines");
        if percent < LEAST {
            low.push(name.as_str());
        }
    }
    println!("line by line: {}", place.join("tarpaulin-report.html").display());
    match low.as_slice() {
        [] if crates.len() == MEASURED.len() => Ok(()),
        [] => bail!("only {} crates were measured", crates.len()),
        low => bail!("less than {LEAST} % in {}", low.join(", ")),
    }
}

/// The root of the repository.
pub(crate) fn home() -> PathBuf {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    above.unwrap_or(Path::new(".")).to_owned()
}
