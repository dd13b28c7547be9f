//! The committed files of the page are the output of its build, and they are small.
//!
//! Building them needs packages that `cargo xtask test` installs. Without those, the test prints that it was skipped.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use pinfold_testkit::provided;

const BUILT: [&str; 2] = ["page.js", "page.css"];

fn assets() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/assets"))
}

#[test]
fn the_committed_files_are_those_that_the_source_builds() {
    if provided("PINFOLD_PAGE_MODULES", "THE PAGE WAS NOT BUILT ANEW").is_none() {
        return;
    }
    let built = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    let mut build = Command::new("node");
    let status = build.arg("build.mjs").arg(built.path()).current_dir(source).status().unwrap();
    assert!(status.success());
    for name in BUILT {
        let [built, committed] =
            [built.path(), assets()].map(|it| fs::read(it.join(name)).unwrap());
        assert!(
            built == committed,
            "{name}: run `npm run build` in crates/page/web, and commit it"
        );
    }
}

#[test]
fn a_browser_loads_at_most_sixty_kilobytes() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    for name in BUILT {
        packed.write_all(&fs::read(assets().join(name)).unwrap()).unwrap();
    }
    let bytes = packed.finish().unwrap().len();
    assert!(bytes <= 60_000, "{bytes}");
}
