//! `cargo xtask image`: makes the files for `deploy/Containerfile` in `target/image`, and tries the image.

use std::fs;

use anyhow::{Context as _, Result};

use crate::debian::Debian;
use crate::dist;
use crate::release::home;
use crate::toolchain::Toolchain;

/// Builds the static program of a release, puts it beside the file, and runs the image as the tests do. That needs
/// root, but no container engine.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    // For a trial, with the profile of tests.
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
