//! `cargo xtask cross`: other systems, type-checked from here.
//!
//! The toolchain for them is Debian's second Rust, which has the standard library's sources as a package. It is unpacked
//! below `target/cross` and not installed. Its newest version is taken, since Debian drops older ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::release::home;

/// The systems that are type-checked.
const CHECKED: [&str; 3] =
    ["aarch64-apple-darwin", "x86_64-apple-darwin", "x86_64-unknown-freebsd"];

/// The compiler, its standard library with sources, and the shared libraries that they need. `{minor}` is
/// the first two parts of the version.
const PACKAGES: [&str; 7] = [
    "rustc-web",
    "cargo-web",
    "rust-web-clippy",
    "libstd-rust-web-{minor}",
    "libstd-rust-web-dev",
    "rust-web-src",
    "rust-web-llvm",
];
const LIBRARIES: [&str; 5] =
    ["libgit2-1.5", "libhttp-parser2.9", "libmbedcrypto7", "libmbedtls14", "libmbedx509-1"];

/// Lints the workspace with all its tests for other systems; `xtask` and the benchmarks run only here.
pub(crate) fn check(targets: &[&str]) -> Result<()> {
    let toolchain = Toolchain::set_up()?;
    for target in if targets.is_empty() { &CHECKED[..] } else { targets } {
        eprintln!("xtask: clippy for {target}");
        let mut clippy = toolchain.cargo();
        clippy.args(["clippy", "--keep-going", "--locked", "--target", target]);
        clippy.arg("-Zbuild-std=std,panic_unwind,panic_abort,test,proc_macro");
        clippy.args(["--workspace", "--exclude", "xtask", "--exclude", "pinfold-benches"]);
        clippy.args(["--all-targets", "--", "-D", "warnings"]);
        run(&mut clippy)?;
    }
    Ok(())
}

/// Debian's second Rust, unpacked.
struct Toolchain {
    root: PathBuf,
}

impl Toolchain {
    fn set_up() -> Result<Self> {
        let place = home().join("target/cross");
        let version = newest("rustc-web")?;
        let root = place.join(version.replace(['+', '~', ':'], "_"));
        let toolchain = Self { root: root.clone() };
        if root.join("complete").exists() {
            return Ok(toolchain);
        }
        let packed = place.join("packages");
        for directory in [&packed, &root] {
            fs::create_dir_all(directory)?;
        }
        let minor = version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
        let own = PACKAGES.map(|name| format!("{}={version}", name.replace("{minor}", &minor)));
        let llvm = depends(&format!("libstd-rust-web-{minor}"), &version, "libllvm")?;
        let names = own.into_iter().chain(LIBRARIES.map(String::from)).chain([llvm]);
        run(Command::new("apt-get").arg("download").args(names).current_dir(&packed))?;
        for package in fs::read_dir(&packed)? {
            run(Command::new("dpkg").arg("-x").arg(package?.path()).arg(&root))?;
        }
        fs::remove_dir_all(&packed)?;
        fs::write(root.join("complete"), "")?;
        Ok(toolchain)
    }

    fn cargo(&self) -> Command {
        let bin = self.root.join("usr/bin");
        let mut cargo = Command::new(bin.join("cargo"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = [bin.clone()].into_iter().chain(std::env::split_paths(&path));
        cargo.env("PATH", std::env::join_paths(path).unwrap_or_default());
        cargo.env("LD_LIBRARY_PATH", self.root.join("usr/lib/x86_64-linux-gnu"));
        cargo
            .env("RUSTC", bin.join("rustc"))
            .env("CARGO_TARGET_DIR", home().join("target/cross/target"));
        // For `-Zbuild-std`.
        cargo.env("RUSTC_BOOTSTRAP", "1");
        // `blake3` would compile C for ARM, which takes that system's headers.
        cargo.env("CARGO_FEATURE_NO_NEON", "1").env("CARGO_FEATURE_PURE", "1");
        // This command was started by another cargo.
        for name in ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTC_WRAPPER"] {
            cargo.env_remove(name);
        }
        cargo.current_dir(home());
        cargo
    }
}

/// The newest version of a Debian package.
fn newest(package: &str) -> Result<String> {
    let listed = output(Command::new("apt-cache").args(["madison", package]))?;
    let version = listed.lines().next().and_then(|line| line.split('|').nth(1));
    let missing = || format!("Debian's package `{package}` is not to be had; run `apt-get update`");
    Ok(version.with_context(missing)?.trim().to_owned())
}

/// The dependency of a package whose name begins with a word.
fn depends(package: &str, version: &str, begins: &str) -> Result<String> {
    let package = format!("{package}={version}");
    let listed = output(Command::new("apt-cache").args(["show", &package]))?;
    let lines = listed.lines().filter_map(|line| line.strip_prefix("Depends: "));
    let names = lines.flat_map(|line| line.split(", ")).filter_map(|name| name.split(' ').next());
    let found = names.filter(|name| name.starts_with(begins)).map(str::to_owned).next();
    found.with_context(|| format!("`{package}` needs no {begins}"))
}

fn output(command: &mut Command) -> Result<String> {
    let ended = command.output().with_context(|| format!("cannot run {:?}", program(command)))?;
    Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {:?}", program(command)))?;
    if !status.success() {
        bail!("{:?} ended with {status}", program(command));
    }
    Ok(())
}

fn program(command: &Command) -> &Path {
    Path::new(command.get_program())
}
