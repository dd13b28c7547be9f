//! Packages from other languages' registries for tests, and Pinfold's own packages for these languages. All of them
//! are installed below `target`, once for each version, or in `packages/node/node_modules`.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow, bail};

/// The directory with the lists of packages for clients in tests.
const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/cli/tests/clients");

/// The directory with the source of the page.
pub(crate) const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/page/web");

/// The directory of Pinfold's own packages.
const OURS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../packages");

/// The crates that Pinfold's own packages contain.
pub(crate) const OWN_CRATES: [&str; 3] = ["pinfold-cli", "pinfold-node", "pinfold-python"];

/// The installed packages, and the names of those that could not be installed.
#[derive(Default)]
pub(crate) struct Packages {
    /// The directory `node_modules`, which has its own `node`.
    pub(crate) node_modules: Option<PathBuf>,
    /// A Python with the packages.
    pub(crate) python: Option<PathBuf>,
    /// Whether the tools for building Pinfold's own Node package are installed.
    own_node: bool,
    /// A Python with the packages for the tests of Pinfold's own package. That package is added to it.
    own_python: Option<PathBuf>,
    /// Whether the tools for building and testing the page are installed.
    page: bool,
    /// A browser for the tests of the page.
    browser: Option<PathBuf>,
    /// Proxies for the tests with replicas, with their environment variables.
    proxies: Vec<(&'static str, PathBuf)>,
    missing: Vec<String>,
}

/// The profile that packages are built with.
#[derive(Clone, Copy)]
pub(crate) enum Profile {
    /// That of tests.
    Dev,
    /// That of published packages.
    Release,
}

impl Profile {
    /// The directory of cargo's output.
    fn directory(self) -> PathBuf {
        let name = match self {
            Self::Dev => "debug",
            Self::Release => "release",
        };
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../target").join(name)
    }
}

/// Builds the native parts of Pinfold's own packages, and puts them into the packages.
pub(crate) fn build(profile: Profile) -> Result<()> {
    let mut arguments = vec!["build", "--locked"];
    arguments.extend(OWN_CRATES.iter().flat_map(|name| ["--package", name]));
    if matches!(profile, Profile::Release) {
        arguments.push("--release");
    }
    crate::run(&arguments, &[])?;
    lay(profile)
}

/// Copies the native parts that cargo built into the packages' directories.
pub(crate) fn lay(profile: Profile) -> Result<()> {
    let library = |name: &str| format!("{DLL_PREFIX}{name}{DLL_SUFFIX}");
    let parts = [
        ("pinfold".to_owned(), "node/native/pinfold"),
        (library("pinfold_node"), "node/native/pinfold.node"),
        ("pinfold".to_owned(), "python/python/pinfold/bin/pinfold"),
        (library("_native"), "python/python/pinfold/_native.abi3.so"),
    ];
    for (built, part) in parts {
        let (built, part) = (profile.directory().join(built), Path::new(OURS).join(part));
        fs::create_dir_all(part.parent().unwrap_or(Path::new(OURS)))?;
        let new = part.with_extension("new");
        fs::copy(&built, &new).with_context(|| format!("cannot copy {}", built.display()))?;
        // Renamed, since a process may be running from the old file.
        fs::rename(new, part)?;
    }
    Ok(())
}

impl Packages {
    /// Installs what is missing.
    pub(crate) fn install() -> Result<Self> {
        let mut packages = Self::default();
        packages.node_modules = packages.given("npm", "tests with Node clients", node)?;
        packages.python = packages.given("python3", "tests with Python clients", clients_python)?;
        Ok(packages)
    }

    /// Installs everything for building and testing Pinfold's own packages.
    pub(crate) fn install_for_own(&mut self) -> Result<()> {
        self.own_node = self.given("npm", "Pinfold's Node package", own_node)?.is_some();
        self.own_python = self.given("python3", "Pinfold's Python package", own_python)?;
        Ok(())
    }

    /// Installs everything for building and testing the page.
    pub(crate) fn install_for_page(&mut self) -> Result<()> {
        self.page = self.given("npm", "the page for browsers", page_modules)?.is_some();
        self.browser = browser();
        if self.browser.is_none() {
            let way = "there is no `chromium`, and only root can install it by `apt-get`";
            self.missing.push(format!("tests of the page in a browser ({way})"));
        }
        Ok(())
    }

    /// Installs the proxies for the tests with replicas.
    pub(crate) fn install_proxies(&mut self) {
        for (variable, program, package) in
            [("PINFOLD_HAPROXY", "haproxy", "haproxy"), ("PINFOLD_NGINX", "nginx", "nginx-light")]
        {
            match debian_program(&[program], package) {
                Some(path) => self.proxies.push((variable, path)),
                None => {
                    let way = format!(
                        "there is no `{program}`, and only root can install it by `apt-get`"
                    );
                    self.missing.push(format!("tests of replicas behind {program} ({way})"));
                }
            }
        }
    }

    /// The environment of tests with replicas.
    pub(crate) fn proxy_environment(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.proxies.iter().map(|(variable, path)| (*variable, path.display().to_string()))
    }

    /// The environment of tests of the page.
    pub(crate) fn page_environment(&self) -> Vec<(&'static str, String)> {
        let modules = self.page.then(|| Path::new(PAGE).join("node_modules").display().to_string());
        let browser = self.browser.as_ref().map(|browser| browser.display().to_string());
        let modules = modules.map(|modules| ("PINFOLD_PAGE_MODULES", modules));
        modules.into_iter().chain(browser.map(|browser| ("PINFOLD_BROWSER", browser))).collect()
    }

    /// Installs something, if the program for that exists.
    fn given<T>(
        &mut self,
        program: &str,
        what: &str,
        install: fn() -> Result<T, String>,
    ) -> Result<Option<T>> {
        let mut ask = Command::new(program);
        ask.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        if !ask.status().is_ok_and(|status| status.success()) {
            self.missing.push(format!("{what} (there is no `{program}`)"));
            return Ok(None);
        }
        install().map(Some).map_err(|problem| anyhow!("{what}: {problem}"))
    }

    /// Compiles the TypeScript of the Node package. Returns the environment for tests and benchmarks of the packages.
    pub(crate) fn build_layers(&self) -> Result<Vec<(&'static str, String)>> {
        let mut environment = Vec::new();
        if self.own_node {
            run_or_bail(npm().args(["run", "build:layer"]))?;
            environment.push(("PINFOLD_NODE_PACKAGE", "built".to_owned()));
        }
        if let Some(python) = &self.own_python {
            environment.push(("PINFOLD_PYTHON_PACKAGE", python.display().to_string()));
        }
        Ok(environment)
    }

    /// Runs the tests of the packages in their own languages.
    pub(crate) fn test_own(&self) -> Result<()> {
        if self.own_node {
            run_or_bail(npm().arg("test"))?;
        }
        if self.page {
            run_or_bail(Command::new("npm").arg("test").current_dir(PAGE))?;
        }
        if let Some(python) = &self.own_python {
            let home = Path::new(OURS).join("python");
            run_or_bail(Command::new(python).args(["-m", "mypy"]).current_dir(&home))?;
            let mut tests = Command::new(python);
            run_or_bail(tests.args(["-m", "unittest", "--quiet"]).current_dir(home.join("tests")))?;
        }
        Ok(())
    }

    /// Reports the tests that did not run.
    pub(crate) fn report_missing(&self) {
        for missing in &self.missing {
            eprintln!("xtask: !!! SKIPPED: {missing} !!!");
        }
    }
}

fn node() -> Result<PathBuf, String> {
    // The package `node` installs its program by a script.
    let modules = modules("node", Path::new(CLIENTS), "--foreground-scripts")?;
    quiet(Command::new(modules.join(".bin/node")).arg("--version"))?;
    Ok(modules)
}

/// The servers that Pinfold is compared with.
pub(crate) fn peers() -> Result<PathBuf> {
    let named = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/peers");
    modules("peers", &named, "--ignore-scripts").map_err(|problem| anyhow!(problem))
}

/// The directory `node_modules` with the packages in a directory's lists.
fn modules(name: &str, named: &Path, scripts: &str) -> Result<PathBuf, String> {
    let files = ["package.json", "package-lock.json"].map(|file| named.join(file));
    let place = place(name, &files)?;
    once(&place, || {
        for file in &files {
            fs::copy(file, place.join(file.file_name().unwrap_or_default())).map_err(message)?;
        }
        let mut npm = Command::new("npm");
        quiet(npm.args(["ci", "--no-audit", "--no-fund", scripts]).current_dir(&place))
    })?;
    Ok(place.join("node_modules"))
}

fn own_node() -> Result<(), String> {
    in_place("own-node", &Path::new(OURS).join("node"))
}

fn page_modules() -> Result<(), String> {
    in_place("page", Path::new(PAGE))
}

/// Installs the packages in a directory's lists, in that directory.
fn in_place(name: &str, directory: &Path) -> Result<(), String> {
    let place = place(name, &[directory.join("package-lock.json")])?;
    if !directory.join("node_modules").exists() {
        let _ = fs::remove_file(place.join("installed"));
    }
    let mut npm = Command::new("npm");
    once(&place, || quiet(npm.args(["ci", "--no-audit", "--no-fund"]).current_dir(directory)))
}

/// Chromium.
fn browser() -> Option<PathBuf> {
    debian_program(&["chromium", "chromium-browser", "google-chrome"], "chromium")
}

/// A program with one of these names, from a package that root can install on Debian.
pub(crate) fn debian_program(names: &[&str], package: &str) -> Option<PathBuf> {
    let find = || {
        let path = std::env::var_os("PATH").unwrap_or_default();
        // Programs for administrators are not in every user's path.
        let mut places = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
        places.find_map(|it| names.iter().map(|name| it.join(name)).find(|file| file.is_file()))
    };
    find().or_else(|| {
        let apt = |arguments: &[&str]| {
            let mut apt = Command::new("apt-get");
            quiet(apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive")).ok()
        };
        apt(&["update", "--quiet"])?;
        apt(&["install", "--yes", "--quiet", "--no-install-recommends", package])?;
        find()
    })
}

fn clients_python() -> Result<PathBuf, String> {
    python("python", &Path::new(CLIENTS).join("requirements.txt"))
}

/// A Python that imports Pinfold's own package from its source directory.
fn own_python() -> Result<PathBuf, String> {
    let requirements = Path::new(OURS).join("python/requirements-dev.txt");
    let python = python("python-package", &requirements)?;
    let code = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let output = Command::new(&python).args(["-c", code]).output().map_err(message)?;
    let packages = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let source = Path::new(OURS).join("python/python").canonicalize().map_err(message)?;
    let source = source.display();
    fs::write(packages.join("pinfold.pth"), format!("{source}\n")).map_err(message)?;
    let script = python.with_file_name("pinfold");
    let start = "import sys\nfrom pinfold.__main__ import main\nsys.exit(main())\n";
    fs::write(&script, format!("#!{}\n{start}", python.display())).map_err(message)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).map_err(message)?;
    Ok(python)
}

/// A separate Python with the packages in a file.
fn python(name: &str, requirements: &Path) -> Result<PathBuf, String> {
    let place = place(name, &[requirements.to_owned()])?;
    let python = place.join("bin/python");
    once(&place, || {
        quiet(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
        quiet(pip(&python).arg("-r").arg(requirements))
    })?;
    Ok(python)
}

pub(crate) fn pip(python: &Path) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip
}

fn npm() -> Command {
    let mut npm = Command::new("npm");
    npm.current_dir(Path::new(OURS).join("node"));
    npm
}

/// A directory for exactly these versions.
fn place(name: &str, files: &[PathBuf]) -> Result<PathBuf, String> {
    let mut hasher = DefaultHasher::new();
    for file in files {
        fs::read(file).map_err(message)?.hash(&mut hasher);
    }
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/clients");
    let place = target.join(format!("{name}-{:016x}", hasher.finish()));
    fs::create_dir_all(&place).map_err(message)?;
    place.canonicalize().map_err(message)
}

/// Installs something, unless an earlier run has done so.
pub(crate) fn once(
    place: &Path,
    install: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let mark = place.join("installed");
    if mark.exists() {
        return Ok(());
    }
    install()?;
    fs::write(mark, "").map_err(message)
}

fn run_or_bail(command: &mut Command) -> Result<()> {
    match run(command) {
        Ok(()) => Ok(()),
        Err(problem) => bail!(problem),
    }
}

/// Runs a command, and shows its output only if it failed, since installations run beside cargo.
fn quiet(command: &mut Command) -> Result<(), String> {
    let line = line(command);
    eprintln!("xtask: {line}");
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let printed = [output.stdout, output.stderr].concat();
            Err(format!(
                "`{line}` ended with {}\n{}",
                output.status,
                String::from_utf8_lossy(&printed)
            ))
        }
        Err(error) => Err(format!("`{line}`: {error}")),
    }
}

pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let line = line(command);
    eprintln!("xtask: {line}");
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{line}` ended with {status}")),
        Err(error) => Err(format!("`{line}`: {error}")),
    }
}

fn line(command: &Command) -> String {
    let mut parts: Vec<_> = vec![command.get_program()];
    parts.extend(command.get_args());
    parts.join(OsStr::new(" ")).display().to_string()
}

fn message(error: std::io::Error) -> String {
    error.to_string()
}
