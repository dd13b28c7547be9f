//! The paths of this dialect.

use std::path::{Path, PathBuf};

use pinfold::RawPath;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::ToolContext;

/// A path that is absolute, relative to the first root, or below the home directory as `~/x`.
///
/// `.` and `..` are resolved by name before the path is opened, and a slash at its end is removed. An empty path is
/// the first root.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(transparent)]
pub(super) struct ReferencePath(String);

impl ReferencePath {
    /// The path that is opened.
    pub(super) fn raw(&self) -> RawPath {
        normalized(&with_home(&self.0)).into()
    }

    /// The path as it was given, for answers.
    pub(super) fn shown(&self) -> String {
        RawPath::from(self.0.as_str()).to_string()
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The absolute path, resolved by name only: symlinks in it are not followed.
    pub(super) fn absolute(&self, ctx: &ToolContext<'_>) -> PathBuf {
        let path = self.raw();
        let relative = Path::new(path.as_str());
        let joined = ctx.session.base().join(relative);
        normalized(&joined.to_string_lossy()).into()
    }
}

/// The path with the home directory in place of `~`.
fn with_home(path: &str) -> String {
    let below = match path.strip_prefix('~') {
        Some(below) if below.is_empty() || below.starts_with('/') => below,
        _ => return path.to_owned(),
    };
    match std::env::home_dir() {
        Some(home) => format!("{}{below}", home.to_string_lossy()),
        None => path.to_owned(),
    }
}

/// The path without `.`, without `..` after a name, and without a slash at its end.
fn normalized(path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    let is_absolute = path.starts_with('/');
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." if names.last().is_some_and(|last| *last != "..") => _ = names.pop(),
            ".." if is_absolute => {}
            name => names.push(name),
        }
    }
    let below = names.join("/");
    match (is_absolute, below.is_empty()) {
        (true, _) => format!("/{below}"),
        (false, true) => ".".into(),
        (false, false) => below,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalized_by_their_names() {
        for (given, path) in [
            ("", "."),
            ("./", "."),
            ("/", "/"),
            ("a.txt/", "a.txt"),
            ("a//./b", "a/b"),
            ("nope/../a.txt", "a.txt"),
            ("/ws/x/../../y", "/y"),
            ("/..", "/"),
            ("../../a", "../../a"),
            ("a/../../b", "../b"),
        ] {
            assert_eq!(normalized(given), path, "{given}");
        }
    }

    #[test]
    fn only_a_tilde_alone_is_the_home_directory() {
        let home = std::env::home_dir().unwrap().to_string_lossy().into_owned();
        assert_eq!(with_home("~"), home);
        assert_eq!(with_home("~/x"), format!("{home}/x"));
        assert_eq!(with_home("~x"), "~x");
        assert_eq!(with_home("x/~"), "x/~");
    }
}
