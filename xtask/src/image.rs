//! `cargo xtask image`: what `deploy/Containerfile` is built from, in `target/image`, and a trial of it.

use std::fs;

use anyhow::{Context as _, Result};

use crate::debian::Debian;
use crate::dist;
use crate::release::home;
use crate::toolchain::Toolchain;

/// Builds the static program of a release, puts it beside the file, and runs the image as the tests do. That takes no engine for
/// containers, but root.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    // To try it: compiled as tests are.
    let profile = if options == ["--debug"] { "dev" } else { "dist" };
    let toolchain = Toolchain::set_up(&Debian::update()?)?;
    let target = dist::program_target(std::env::consts::ARCH);
    let built = dist::compile(&toolchain, &target, &["pinfold-cli"], profile)?;
    let place = home().join("target/image");
    fs::create_dir_all(&place)?;
    for (from, to) in [
        (built.join("pinfold"), place.join("pinfold")),
        (home().join("deploy/Containerfile"), place.join("Containerfile")),
    ] {
        // A process may be running from the old one.
        _ = fs::remove_file(&to);
        fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    let program = place.join("pinfold").display().to_string();
    let test = ["test", "--package", "pinfold-cli", "--test", "service", "--", "image::"];
    crate::run(&test, &[("PINFOLD_IMAGE_PROGRAM", &program)])?;
    println!("{}", place.display());
    Ok(())
}
