//! `cargo xtask dist`: what a release for this machine is, in `target/dist`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::packages::{OWN_CRATES, Packages};
use crate::release::home;

/// Builds, packs, and with `--check` installs every file in a clean directory and uses it.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let (profile, check) = match options {
        [] => ("dist", false),
        ["--check"] => ("dist", true),
        // To try the packing: compiled as tests are.
        ["--debug", "--check"] => ("dev", true),
        _ => bail!("`cargo xtask dist [--check]`"),
    };
    let platform = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => "linux-x64",
        ("linux", "aarch64") => "linux-arm64",
        (os, machine) => bail!("there are no packages for {os} on {machine}"),
    };
    let mut build = vec!["build", "--locked", "--profile", profile];
    build.extend(OWN_CRATES.iter().flat_map(|name| ["--package", name]));
    // Panics name source files, and must not name this machine's directories.
    let flags = [home().display().to_string() + "=.", registry()? + "=registry"]
        .map(|prefix| format!("--remap-path-prefix={prefix}"))
        .join("\u{1f}");
    let environment = [("CARGO_ENCODED_RUSTFLAGS", flags.as_str())];
    // Other flags would compile everything anew, for nothing in a trial.
    crate::run(&build, if profile == "dist" { &environment } else { &[] })?;
    let built = home().join("target").join(if profile == "dev" { "debug" } else { profile });
    let place = home().join("target/dist");
    // A file of an earlier version would get into the sums.
    for old in ["parts", "files"] {
        if place.join(old).exists() {
            fs::remove_dir_all(place.join(old))?;
        }
    }
    let (parts, files) = (place.join("parts").join(platform), place.join("files"));
    fs::create_dir_all(&parts)?;
    fs::create_dir_all(&files)?;
    for (from, to) in [
        ("pinfold", "pinfold"),
        ("libpinfold_node.so", "pinfold.node"),
        ("lib_native.so", "_native.abi3.so"),
    ] {
        fs::copy(built.join(from), parts.join(to))
            .with_context(|| format!("cannot copy {from}"))?;
    }
    let mut packages = Packages::default();
    packages.install_for_own()?;
    packages.build_layers()?;
    let pack = [place.join("parts").as_path(), &files, Path::new(env!("CARGO_PKG_VERSION"))]
        .map(|word| word.display().to_string());
    script("pack.py", &pack)?;
    if check {
        script("check.py", &[files.display().to_string()])?;
    }
    println!("{}", files.display());
    Ok(())
}

/// Where cargo unpacks dependencies.
fn registry() -> Result<String> {
    let default = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    let own = std::env::var_os("CARGO_HOME").map(Into::into).or_else(default);
    let own = own.context("neither `CARGO_HOME` nor `HOME` is set")?;
    Ok(own.join("registry/src").display().to_string())
}

fn script(name: &str, arguments: &[String]) -> Result<()> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("dist").join(name);
    let status = Command::new("python3").arg(script).args(arguments).status()?;
    if !status.success() {
        bail!("`{name}` ended with {status}");
    }
    Ok(())
}
