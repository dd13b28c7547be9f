//! `cargo xtask dist`: makes the files of a release, in `target/dist`.
//!
//! Programs are static, with musl, so one file runs on every Linux. The native parts of the Node and Python packages
//! are loaded by programs that already have a C library, so they are linked with an old version of glibc.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::debian::{self, Debian, place};
use crate::packages::Packages;
use crate::release::home;
use crate::toolchain::{Emulator, Toolchain};

/// The platforms of a release: npm's name, and the first word of the target.
const PLATFORMS: [(&str, &str); 2] = [("linux-x64", "x86_64"), ("linux-arm64", "aarch64")];

/// Every maintained system has this version of glibc or a later one.
const GLIBC: &str = "2.17";

/// Builds and packs. With `--check`, installs every file in a clean directory and uses it.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let (flags, named): (Vec<&str>, Vec<&str>) =
        options.iter().partition(|option| option.starts_with("--"));
    let (profile, check) = match flags.as_slice() {
        [] => ("dist", false),
        ["--check"] => ("dist", true),
        // For a trial of the packing, with the profile of tests.
        ["--debug", "--check"] => ("dev", true),
        _ => bail!("`cargo xtask dist [--check] [PLATFORM…]`"),
    };
    let known = PLATFORMS.map(|(platform, _)| platform);
    if let Some(other) = named.iter().find(|name| !known.contains(name)) {
        bail!("there is no platform `{other}`: {}", known.join(", "));
    }
    let debian = Debian::update()?;
    let toolchain = Toolchain::set_up(&debian)?;
    let out = home().join("target/dist");
    // A file of an earlier version would be listed in the checksums.
    for old in ["parts", "files"] {
        if out.join(old).exists() {
            fs::remove_dir_all(out.join(old))?;
        }
    }
    let chosen = PLATFORMS.into_iter().filter(|(name, _)| named.is_empty() || named.contains(name));
    let mut environment = Vec::new();
    for (platform, machine) in chosen {
        build(&toolchain, machine, profile, &out.join("parts").join(platform))?;
        if machine != std::env::consts::ARCH {
            environment.extend(Emulator::set_up(&debian)?.environment());
        }
    }
    let mut packages = Packages::default();
    packages.install_for_own()?;
    packages.build_layers()?;
    let (parts, files) = (out.join("parts"), out.join("files"));
    fs::create_dir_all(&files)?;
    let version = Path::new(env!("CARGO_PKG_VERSION"));
    let mut pack = script("pack.py");
    debian::run(pack.args([&parts, &files]).arg(version).arg(GLIBC).envs(environment.clone()))?;
    if check {
        debian::run(script("check.py").arg(&files).envs(environment))?;
    }
    println!("{}", files.display());
    Ok(())
}

/// Compiles the program and the native parts of the packages for a machine.
fn build(toolchain: &Toolchain, machine: &str, profile: &str, parts: &Path) -> Result<()> {
    let program = compile(toolchain, &program_target(machine), &["pinfold-cli"], profile)?;
    let target = format!("{machine}-unknown-linux-gnu.{GLIBC}");
    let libraries = compile(toolchain, &target, &["pinfold-node", "pinfold-python"], profile)?;
    fs::create_dir_all(parts)?;
    for (built, part) in [
        (program.join("pinfold"), "pinfold"),
        (libraries.join("libpinfold_node.so"), "pinfold.node"),
        (libraries.join("lib_native.so"), "_native.abi3.so"),
    ] {
        fs::copy(&built, parts.join(part))
            .with_context(|| format!("cannot copy {}", built.display()))?;
    }
    Ok(())
}

/// The target of the static program for a machine.
pub(crate) fn program_target(machine: &str) -> String {
    format!("{machine}-unknown-linux-musl")
}

/// Compiles crates for a target, and returns their directory.
pub(crate) fn compile(
    toolchain: &Toolchain,
    target: &str,
    crates: &[&str],
    profile: &str,
) -> Result<PathBuf> {
    eprintln!("xtask: {} for {target}", crates.join(", "));
    let mut build = toolchain.zig("zigbuild", target);
    build.args(["--profile", profile]);
    build.args(crates.iter().flat_map(|name| ["--package", name]));
    debian::run(&mut build)?;
    // Removes the version of glibc.
    let target = target.split('.').next().unwrap_or(target);
    let profile = if profile == "dev" { "debug" } else { profile };
    Ok(place().join("target").join(target).join(profile))
}

fn script(name: &str) -> Command {
    let mut python = Command::new("python3");
    python.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("dist").join(name));
    python
}
