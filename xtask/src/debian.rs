//! Debian's packages, unpacked below `target/cross`. Nothing is installed on this system.
//!
//! The private package list has two releases and two architectures, regardless of this system: the release before
//! last for its second Rust, and the last one for an emulator that supports `openat2`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::release::home;

/// The keys for the signatures of Debian's lists.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A private package list and its directory.
pub(crate) struct Debian {
    place: PathBuf,
}

/// The directory with everything for other platforms.
pub(crate) fn place() -> PathBuf {
    home().join("target/cross")
}

impl Debian {
    /// Downloads the lists, from the servers that this system uses.
    pub(crate) fn update() -> Result<Self> {
        let debian = Self { place: place().join("debian") };
        for directory in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(debian.place.join(directory))?;
        }
        let known =
            output(Command::new("apt-get").args(["indextargets", "--format", "$(REPO_URI)"]))?;
        let server = |name: &str| {
            let found = known.lines().find(|uri| uri.trim_end_matches('/').ends_with(name));
            found.with_context(|| format!("`apt-get` knows no server for `{name}`: not Debian?"))
        };
        let (main, security) = (server("/debian")?, server("/debian-security")?);
        let sources = [(main, "bookworm"), (security, "bookworm-security"), (main, "trixie")]
            .map(|(uri, suite)| format!("deb [signed-by={KEYS}] {uri} {suite} main\n"));
        fs::write(debian.place.join("sources.list"), sources.concat())?;
        run(debian.apt("apt-get").args(["update", "--quiet"]))?;
        Ok(debian)
    }

    /// A command of apt that uses only the private list.
    fn apt(&self, program: &str) -> Command {
        let below = |name: &str| self.place.join(name).display().to_string();
        let mut apt = Command::new(program);
        for option in [
            format!("Dir::Etc::SourceList={}", below("sources.list")),
            "Dir::Etc::SourceParts=-".to_owned(),
            format!("Dir::State::Lists={}", below("lists")),
            format!("Dir::Cache={}", below("cache")),
            "APT::Architectures::=amd64".to_owned(),
            "APT::Architectures::=arm64".to_owned(),
            // Other users may not enter root's directories.
            "APT::Sandbox::User=root".to_owned(),
        ] {
            apt.args(["-o", &option]);
        }
        apt
    }

    /// The newest version of a package in a release.
    pub(crate) fn newest(&self, package: &str, suite: &str) -> Result<String> {
        let listed = output(self.apt("apt-cache").args(["madison", package]))?;
        let suite = format!(" {suite}/");
        let version = listed.lines().find(|line| line.contains(&suite));
        let version = version.and_then(|line| line.split('|').nth(1));
        Ok(version.with_context(|| format!("Debian has no `{package}`"))?.trim().to_owned())
    }

    /// A dependency of a package, by the beginning of its name.
    pub(crate) fn depends(&self, package: &str, begins: &str) -> Result<String> {
        let listed = output(self.apt("apt-cache").args(["show", package]))?;
        let lines = listed.lines().filter_map(|line| line.strip_prefix("Depends: "));
        let mut names =
            lines.flat_map(|line| line.split(", ")).filter_map(|name| name.split(' ').next());
        let found = names.find(|name| name.starts_with(begins)).map(str::to_owned);
        found.with_context(|| format!("`{package}` needs no {begins}"))
    }

    /// Unpacks packages into a directory, which exists only once all of them are in it.
    pub(crate) fn unpack(&self, packages: &[String], to: &Path) -> Result<()> {
        if to.exists() {
            return Ok(());
        }
        let (packed, new) = (to.with_extension("packed"), to.with_extension("new"));
        for directory in [&packed, &new] {
            // Left by an interrupted run.
            _ = fs::remove_dir_all(directory);
            fs::create_dir_all(directory)?;
        }
        run(self.apt("apt-get").args(["download", "--quiet"]).args(packages).current_dir(&packed))?;
        for package in fs::read_dir(&packed)? {
            run(Command::new("dpkg").arg("-x").arg(package?.path()).arg(&new))?;
        }
        fs::remove_dir_all(&packed)?;
        fs::rename(&new, to)?;
        Ok(())
    }
}

fn output(command: &mut Command) -> Result<String> {
    let ended = command.output().with_context(|| format!("cannot run {:?}", program(command)))?;
    Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
}

pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {:?}", program(command)))?;
    if !status.success() {
        bail!("{:?} ended with {status}", program(command));
    }
    Ok(())
}

fn program(command: &Command) -> &Path {
    Path::new(command.get_program())
}
