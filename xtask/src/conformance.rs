//! The official conformance suite, against Pinfold's server with a few fixtures added.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::packages::Packages;

/// The last version of the protocol with `initialize`, and the stateless version. The suite has tests for each.
///
/// Pinfold has neither of the extensions tasks (`tasks-*`) and skills (`sep-2640-*`) and does not declare them; the suite
/// tests them only on request.
const VERSIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

pub(crate) fn run(packages: &Packages) -> Result<()> {
    let Some(modules) = &packages.node_modules else {
        packages.report_missing();
        return Ok(());
    };
    // Built with the same features as the other tests, so that nothing is built twice.
    let build = ["build", "--workspace", "--example", "conformance"];
    crate::run(&build, &[])?;
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    let root = target.join("conformance");
    fs::create_dir_all(&root)?;
    let mut server = Server::start(&target.join("debug/examples/conformance"), &root)?;
    let url = server.url()?;
    for version in VERSIONS {
        eprintln!("xtask: the conformance suite, {version}");
        let mut suite = Command::new(modules.join(".bin/node"));
        suite.arg(modules.join(".bin/conformance"));
        suite.args(["server", "--url", &url, "--suite", "all", "--spec-version", version]);
        let output = suite.stdin(Stdio::null()).output()?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let (course, summary) = printed.split_once("=== SUMMARY ===").unwrap_or((&printed, ""));
        if !output.status.success() || summary.is_empty() {
            println!("{course}\n{}", String::from_utf8_lossy(&output.stderr));
            println!("{summary}");
            bail!("the conformance suite for {version} ended with {}", output.status);
        }
        println!("{}", summary.trim());
    }
    Ok(())
}

struct Server(Child);

impl Server {
    fn start(program: &Path, root: &Path) -> Result<Self> {
        let server = Command::new(program).arg(root).stdout(Stdio::piped()).spawn();
        Ok(Self(server.with_context(|| format!("cannot start {}", program.display()))?))
    }

    fn url(&mut self) -> Result<String> {
        let mut line = String::new();
        let output = self.0.stdout.take().context("the server has no output")?;
        BufReader::new(output).read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}
