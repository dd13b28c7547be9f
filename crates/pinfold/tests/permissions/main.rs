//! Permissions on real files: what is withheld, who is asked, what is noted, and every way around a rule that is known.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

mod asking;
mod audit;
mod rules;

use std::fs;
use std::os::unix::fs::symlink;

use pinfold::operations::Edit;
use pinfold::{Denial, Error, Mode, Operation, Permissions, Session, Settings};
use tempfile::TempDir;

fn workspace() -> TempDir {
    let dir = TempDir::new().unwrap();
    for (name, content) in [
        ("src/a.txt", "plain text\n"),
        ("secrets/key.txt", "the hidden password\n"),
        ("secrets/public.txt", "public text\n"),
        (".env", "PASSWORD=hunter2\n"),
        (".git/config", "[core]\n"),
    ] {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    symlink("../secrets/key.txt", dir.path().join("src/alias")).unwrap();
    symlink("../secrets", dir.path().join("src/dir-alias")).unwrap();
    symlink("../.env", dir.path().join("src/env-alias")).unwrap();
    dir
}

fn permissions(mode: Mode, allow: &[&str], ask: &[&str], deny: &[&str]) -> Settings {
    let list = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
    let permissions = Permissions { mode, allow: list(allow), ask: list(ask), deny: list(deny) };
    Settings::default().with_permissions(permissions)
}

fn session(dir: &TempDir, settings: Settings) -> Session {
    Session::with_settings([dir.path()], settings).unwrap()
}

fn denying(dir: &TempDir, rules: &[&str]) -> Session {
    session(dir, permissions(Mode::SecureFileAccess, &[], &[], rules))
}

/// Why something was refused.
fn denial<O: Operation>(session: &Session, operation: &O) -> Denial {
    match session.perform(operation).map(|_| ()) {
        Err(Error::Denied { denial, .. }) => denial,
        other => panic!("{other:?}"),
    }
}

fn edit(path: &str, old: &str, new: &str) -> Edit {
    Edit::new(path, old, new)
}
