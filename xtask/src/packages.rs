//! What tests need from other languages' registries: installed below `target`, once for each version.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where the packages are named.
const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/cli/tests/clients");

/// The packages that could be installed, and loud words about those that could not.
#[derive(Default)]
pub(crate) struct Packages {
    /// The directory `node_modules`, with a `node` of its own.
    pub(crate) node_modules: Option<PathBuf>,
    /// A Python that has the packages.
    pub(crate) python: Option<PathBuf>,
    missing: Vec<String>,
}

impl Packages {
    /// Installs what is not there yet.
    pub(crate) fn install() -> Self {
        let mut packages = Self::default();
        match node() {
            Ok(modules) => packages.node_modules = Some(modules),
            Err(problem) => packages.missing.push(format!("Node packages: {problem}")),
        }
        match python() {
            Ok(python) => packages.python = Some(python),
            Err(problem) => packages.missing.push(format!("Python packages: {problem}")),
        }
        packages
    }

    /// Says which tests did not run.
    pub(crate) fn complain(&self) {
        for missing in &self.missing {
            eprintln!("xtask: !!! SKIPPED, SINCE NOT INSTALLED: {missing} !!!");
        }
    }
}

fn node() -> Result<PathBuf, String> {
    let place = place("node", &["package.json", "package-lock.json"])?;
    let modules = place.join("node_modules");
    if !place.join("installed").exists() {
        for file in ["package.json", "package-lock.json"] {
            fs::copy(Path::new(CLIENTS).join(file), place.join(file)).map_err(words)?;
        }
        let mut npm = Command::new("npm");
        // The package `node` puts its program in place by a script.
        npm.args(["ci", "--no-audit", "--no-fund", "--foreground-scripts"]).current_dir(&place);
        run(&mut npm)?;
        run(Command::new(modules.join(".bin/node")).arg("--version"))?;
        fs::write(place.join("installed"), "").map_err(words)?;
    }
    Ok(modules)
}

fn python() -> Result<PathBuf, String> {
    let place = place("python", &["requirements.txt"])?;
    let python = place.join("bin/python");
    if !place.join("installed").exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
        run(pip.arg(Path::new(CLIENTS).join("requirements.txt")))?;
        fs::write(place.join("installed"), "").map_err(words)?;
    }
    Ok(python)
}

/// A directory for exactly these versions.
fn place(name: &str, files: &[&str]) -> Result<PathBuf, String> {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    for file in files {
        fs::read(Path::new(CLIENTS).join(file)).map_err(words)?.hash(&mut hasher);
    }
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/clients");
    let place = target.join(format!("{name}-{:016x}", hasher.finish()));
    fs::create_dir_all(&place).map_err(words)?;
    place.canonicalize().map_err(words)
}

fn run(command: &mut Command) -> Result<(), String> {
    eprintln!("xtask: {command:?}");
    let status = command.stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?} ended with {status}")),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

fn words(error: std::io::Error) -> String {
    error.to_string()
}
