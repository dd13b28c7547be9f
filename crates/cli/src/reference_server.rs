//! The directories of the reference dialect, and the program under the name of the server that it replaces:
//! `mcp-server-filesystem DIR…` stands for `pinfold serve --dialect reference DIR…`.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use pinfold_confine::{device_and_inode, owner};

use crate::{TOOL_ERROR, USAGE};

/// The name of the server.
const NAME: &str = "mcp-server-filesystem";

/// The command line to parse. If the program was started by the server's name, it is that of `pinfold serve`, with
/// every argument as a directory. The error is the exit code if there is no argument.
pub(crate) fn command_line(
    given: impl IntoIterator<Item = OsString>,
) -> Result<Vec<OsString>, ExitCode> {
    let mut given = given.into_iter();
    let program = given.next().unwrap_or_default();
    if Path::new(&program).file_name() != Some(NAME.as_ref()) {
        return Ok([program].into_iter().chain(given).collect());
    }
    let directories: Vec<_> = given.collect();
    if directories.is_empty() {
        eprintln!("Usage: {NAME} [allowed-directory] [additional-directories...]");
        eprintln!("Give at least one directory. The roots of the client only narrow it.");
        eprintln!(
            "Every argument is a directory; for options, use `pinfold serve --dialect reference`."
        );
        return Err(ExitCode::from(USAGE));
    }
    let serve = ["pinfold", "serve", "--dialect", "reference", "--"].map(OsString::from);
    Ok(serve.into_iter().chain(directories).collect())
}

/// The existing directories, with `~` expanded. Warns about the others. The error is the exit code if none exists.
pub(crate) fn existing(directories: Vec<PathBuf>) -> Result<Vec<PathBuf>, ExitCode> {
    let are_given = !directories.is_empty();
    let directories = directories.iter().map(|directory| absolute(directory));
    let existing: Vec<_> = directories.filter(|directory| exists(directory)).collect();
    if are_given && existing.is_empty() {
        eprintln!("Error: None of the specified directories are accessible");
        return Err(ExitCode::from(TOOL_ERROR));
    }
    Ok(existing)
}

/// Whether a directory exists. Warns if not.
fn exists(directory: &Path) -> bool {
    let shown = directory.display();
    if device_and_inode(directory).is_none() {
        eprintln!("Warning: Cannot access directory {shown}, skipping");
        return false;
    }
    if owner(directory).is_none() {
        eprintln!("Warning: {shown} is not a directory, skipping");
        return false;
    }
    true
}

/// The absolute path, without `.` and `..`, and with the home directory for `~`.
fn absolute(directory: &Path) -> PathBuf {
    let expanded = match (directory.strip_prefix("~"), std::env::home_dir()) {
        (Ok(below), Some(home)) => home.join(below),
        _ => directory.to_owned(),
    };
    let whole = std::path::absolute(&expanded).unwrap_or(expanded);
    let mut path = PathBuf::new();
    for component in whole.components() {
        match component {
            Component::ParentDir => _ = path.pop(),
            other => path.push(other),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_servers_name_changes_the_command_line() {
        let line = |words: &[&str]| command_line(words.iter().map(OsString::from)).ok();
        let words = |words: &[&str]| Some(words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(line(&["pinfold", "tools"]), words(&["pinfold", "tools"]));
        let serve = ["pinfold", "serve", "--dialect", "reference", "--", "a", "--help"];
        assert_eq!(line(&["/usr/bin/mcp-server-filesystem", "a", "--help"]), words(&serve));
        assert_eq!(line(&["mcp-server-filesystem"]), None);
    }

    #[test]
    fn directories_are_absolute() {
        let home = std::env::home_dir().unwrap();
        for (given, path) in [("~", home.clone()), ("~/x/../y/", home.join("y"))] {
            assert_eq!(absolute(Path::new(given)), path);
        }
        assert_eq!(absolute(Path::new("/a/./b/../c/")), Path::new("/a/c"));
        assert!(absolute(Path::new("~x")).is_absolute());
    }
}
