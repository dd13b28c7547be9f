//! The project's own commands: `cargo xtask NAME`.

#![forbid(unsafe_code)]

mod api;
mod checks;
mod conformance;
mod crash;
mod cross;
mod debian;
mod dist;
mod filesystems;
mod frameworks;
mod image;
mod packages;
mod release;
mod test;
mod toolchain;

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use packages::{Packages, Profile};

const HELP: &str = "\
cargo xtask test           all checks and tests that a change has to pass
cargo xtask packages       builds the native parts of the Node and Python packages, into them; `--release`
cargo xtask api            the public API of `pinfold` against crates/pinfold/api.txt: part of `test`;
                           `PINFOLD_BLESS=1` writes the file
cargo xtask features       checks the crates with each of their features alone, and with none
cargo xtask conformance    the official conformance suite against the server: part of `test`
cargo xtask screenshots    the pictures of the page in docs/images
cargo xtask frameworks     agent frameworks against the server; writes the table in docs/CLIENTS.md
cargo xtask crash          what is on the disk after a loss of power at any moment, on ext4 and XFS, as root
cargo xtask filesystems    which promises hold on ext4, XFS, Btrfs, F2FS, overlayfs, FUSE, NFS …, as root; writes the
                           table in docs/FILESYSTEMS.md; `[NAME…]` for some of the rows
cargo xtask fuzz [SECONDS] random calls of every kind, 600 seconds for each by default
cargo xtask coverage       which lines the tests reach, for each crate
cargo xtask deny           licences, advisories, sources and duplicates of the dependencies
cargo xtask cross check    lints everything for macOS and FreeBSD, with Debian's second Rust below `target`;
                           `[TARGET…]` for others
cargo xtask cross test     the tests of the engine, the fence and the tools on an emulated ARM machine;
                           `[CRATE…]` for some
cargo xtask dist           what a release is, for both machines, in `target/dist`; `--check` installs each file;
                           `[PLATFORM…]` for some: linux-x64, linux-arm64
cargo xtask image          a static program and deploy/Containerfile in `target/image`, tried as root
cargo xtask package        packs every crate, and builds the packed crates
cargo xtask minimal        checks everything with the oldest dependencies that the manifests allow
cargo xtask bench NAME     a benchmark, both sides in one run: fence, edit, search, read, journal,
                           serve, load, packages, peers [--reference], documents DIR…, repair
cargo xtask bench soak     many calls on one server: whether it grows";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["test"] => test::run_all(),
        ["packages"] => packages::build(Profile::Dev),
        ["packages", "--release"] => packages::build(Profile::Release),
        ["api"] => api::check_fresh(),
        ["features"] => release::features(),
        ["conformance"] => Packages::install().and_then(|packages| conformance::run(&packages)),
        ["screenshots"] => screenshots(),
        ["frameworks"] => frameworks::run(),
        ["crash", rest @ ..] => crash::run(rest),
        ["filesystems", rest @ ..] => filesystems::run(rest),
        ["bench", name, rest @ ..] => bench(name, rest),
        ["fuzz", rest @ ..] => fuzz(rest),
        ["deny"] => release::deny(),
        ["coverage"] => release::coverage(),
        ["cross", "check", targets @ ..] => cross::check(targets),
        ["cross", "test", crates @ ..] => cross::test(crates),
        ["dist", rest @ ..] => dist::run(rest),
        ["image", rest @ ..] => image::run(rest),
        ["package", rest @ ..] => release::package(rest),
        ["minimal"] => release::minimal(),
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

/// A program that tests or benchmarks compare with. It is installed below `target`, once.
fn tool(name: &str, package: &str, version: &str) -> Result<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools").join(version);
    let program = root.join("bin").join(name);
    if !program.exists() {
        let root = root.display().to_string();
        let install =
            ["install", package, "--version", version, "--locked", "--quiet", "--root", &root];
        run(&install, &[])?;
    }
    Ok(program.display().to_string())
}

/// Takes the screenshots of the page for the documentation.
fn screenshots() -> Result<()> {
    let mut packages = Packages::default();
    packages.install_for_page()?;
    packages.report_missing();
    let images = release::home().join("docs/images");
    std::fs::create_dir_all(&images)?;
    let mut own = packages.page_environment();
    own.push(("PINFOLD_SCREENSHOTS", images.display().to_string()));
    let environment: Vec<_> = own.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let test = ["test", "--package", "pinfold-cli", "--test", "page", "--"];
    run(
        &[&test[..], &["--ignored", "--exact", "screenshots::pictures_of_the_views"]].concat(),
        &environment,
    )
}

/// Makes random calls, each kind for some seconds.
fn fuzz(rest: &[&str]) -> Result<()> {
    let seconds = match rest {
        [] => "600",
        [seconds] if seconds.parse::<u64>().is_ok() => seconds,
        _ => bail!("`cargo xtask fuzz [SECONDS]`"),
    };
    let test = ["test", "--release", "--package", "pinfold-dialects", "--test", "fuzz", "--"];
    let arguments: Vec<&str> = test.iter().copied().chain(["--nocapture"]).collect();
    let rg = tool("rg", "ripgrep", "15.2.0")?;
    run(&arguments, &[("PINFOLD_FUZZ_SECONDS", seconds), ("PINFOLD_RG", &rg)])
}

fn bench(name: &str, rest: &[&str]) -> Result<()> {
    let mut own = Vec::new();
    // These rows need only one of the servers, and no programs.
    let reference = name == "peers" && rest == ["--reference"];
    if matches!(name, "peers" | "search") && !reference {
        own.push(("PINFOLD_RG", tool("rg", "ripgrep", "15.2.0")?));
        own.push(("PINFOLD_FD", tool("fd", "fd-find", "10.5.0")?));
    }
    if matches!(name, "load" | "peers" | "read" | "serve" | "soak") {
        // The program with the profile of the installed one.
        run(&["build", "--profile", "dist", "--package", "pinfold-cli"], &[])?;
    }
    if name == "packages" {
        let mut packages = Packages::default();
        packages.install_for_own()?;
        packages::build(Profile::Release)?;
        own.extend(packages.build_layers()?);
    }
    if name == "peers" {
        own.push(("PINFOLD_PEERS", packages::peers()?.display().to_string()));
    }
    if name == "peers" && !reference {
        let peer = tool("rust-mcp-filesystem", "rust-mcp-filesystem", "0.4.5")?;
        own.push(("PINFOLD_RUST_PEER", peer));
    }
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/dist/pinfold");
    own.push(("PINFOLD_BIN", program.display().to_string()));
    let mut arguments =
        vec!["run", "--quiet", "--release", "--package", "pinfold-benches", "--", name];
    arguments.extend(rest);
    let environment: Vec<_> = own.iter().map(|(name, value)| (*name, value.as_str())).collect();
    run(&arguments, &environment)
}

/// Replaces the text of a page between two marks.
fn write_between(page: &Path, marks: [&str; 2], text: &str) -> Result<()> {
    let old = std::fs::read_to_string(page)?;
    let (before, rest) = old.split_once(marks[0]).context("the page has no mark")?;
    let (_, after) = rest.split_once(marks[1]).context("the page has no second mark")?;
    Ok(std::fs::write(page, [before, marks[0], text, marks[1], after].concat())?)
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
