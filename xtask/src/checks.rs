//! Checks of the repository's files that the compiler does not make.

use std::process::Command;

use anyhow::{Result, bail};

use crate::release::home;

/// A larger file would stay in the history forever.
const MAX_FILE_BYTES: u64 = 1_000_000;

/// Documents that name files of the repository.
const DOCUMENTS: [&str; 2] = ["docs/ARCHITECTURE.md", "SECURITY.md"];

/// Refuses large files and documents that name missing files.
pub(crate) fn run() -> Result<()> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(home()).output()?;
    if !listed.status.success() {
        bail!("`git ls-files` failed");
    }
    let files = String::from_utf8(listed.stdout)?;
    let files: Vec<&str> = files.split_terminator('\0').collect();
    for file in files.iter().filter(|file| !file.starts_with("scenarios/")) {
        // A file that was deleted and not committed yet has no metadata.
        let size = home().join(file).metadata().map_or(0, |metadata| metadata.len());
        if size > MAX_FILE_BYTES {
            bail!("{file} has {size} bytes; at most {MAX_FILE_BYTES} outside `scenarios/`");
        }
    }
    for document in DOCUMENTS {
        let text = std::fs::read_to_string(home().join(document))?;
        if let Some(path) = paths(&text).find(|path| !names_a_file(path, &files)) {
            bail!("{document} names `{path}`, which does not exist");
        }
    }
    Ok(())
}

/// The paths in backticks, outside code blocks.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2);
    let code = prose.flat_map(|prose| prose.split('`').skip(1).step_by(2));
    code.filter(|code| {
        let known = [".rs", ".md", ".toml", ".mjs", ".py", ".ts"];
        let path = code.starts_with("crates/") || code.starts_with("packages/");
        path || known.iter().any(|end| code.ends_with(end)) && !code.starts_with("*")
    })
}

/// Whether a path, or the end of one, is that of a file or directory.
fn names_a_file(path: &str, files: &[&str]) -> bool {
    let path = path.trim_end_matches('/');
    let inner = format!("/{path}/");
    files.iter().any(|file| format!("/{file}/").contains(&inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_passes() {
        run().unwrap_or_else(|error| panic!("{error}"));
    }

    #[test]
    fn a_path_in_a_document_is_that_of_a_file() {
        let text = "See `a.rs`, `stat` and `crates/b/src`.\n```text\n`c.rs`\n```\n`src/d.rs`";
        assert_eq!(paths(text).collect::<Vec<_>>(), ["a.rs", "crates/b/src", "src/d.rs"]);
        let files = ["crates/b/src/a.rs"];
        for (path, there) in [("a.rs", true), ("src/a.rs", true), ("crates/b/src", true)] {
            assert_eq!(names_a_file(path, &files), there, "{path}");
        }
        for path in ["b.rs", "rc/a.rs", "crates/c"] {
            assert!(!names_a_file(path, &files), "{path}");
        }
    }
}
