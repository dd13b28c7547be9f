//! The source tree for measuring searches.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The tree of the argument `--corpus DIR`, or Debian's kernel source.
pub(crate) fn corpus(benchmark: &str, arguments: &[String]) -> PathBuf {
    let tree = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => fetched(),
        ["--corpus", path] => PathBuf::from(path),
        _ => panic!("usage: cargo xtask bench {benchmark} [--corpus DIR]"),
    };
    tree.canonicalize().unwrap()
}

/// Debian's kernel source, unpacked below `target`, once.
fn fetched() -> PathBuf {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/corpus");
    let tree = base.join("usr/src/linux-source-6.1");
    if tree.join(".complete").exists() {
        return tree;
    }
    fs::create_dir_all(&base).unwrap();
    let shell = |script: &str| {
        let status = Command::new("sh").args(["-ec", script]).current_dir(&base).status().unwrap();
        assert!(status.success(), "`{script}` failed; give a tree with --corpus DIR instead");
    };
    eprintln!("fetching Debian's linux-source-6.1");
    shell("apt-get download linux-source-6.1 && dpkg-deb -x linux-source-6.1_*.deb .");
    shell("cd usr/src && tar xJf linux-source-6.1.tar.xz");
    // Debian's file ends with two lines that ignore everything except its own directory.
    shell("cd usr/src/linux-source-6.1 && sed -i '/^\\/\\*$/d; /^!\\/debian\\/$/d' .gitignore");
    shell("touch usr/src/linux-source-6.1/.complete");
    tree
}
