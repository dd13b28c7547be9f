//! One conversation that starts elsewhere, or goes on in another mode.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::os::unix::fs::symlink;

use pinfold::operations::{Edit, Find, Read, Write};
use pinfold::{Error, Mode, Permissions, ReadBeforeWrite, Session, Settings};
use tempfile::TempDir;

fn stage() -> (TempDir, Session) {
    let dir = TempDir::new().unwrap();
    for name in ["ws/sub/deep", "out", "two"] {
        fs::create_dir_all(dir.path().join(name)).unwrap();
    }
    for name in ["ws/top.txt", "ws/sub/a.txt", "two/b.txt", "out/secret.txt"] {
        fs::write(dir.path().join(name), "one\n").unwrap();
    }
    let roots = [dir.path().join("ws"), dir.path().join("two")];
    let session = Session::open(roots).unwrap();
    (dir, session)
}

fn found(session: &Session, pattern: &str) -> Vec<String> {
    let done = session.perform(&Find::new(pattern)).unwrap();
    let mut paths: Vec<_> =
        done.outcome.files.iter().map(|file| session.relative(&file.place)).collect();
    paths.sort_unstable();
    paths
}

#[test]
fn paths_and_searches_start_where_it_does() {
    let (dir, session) = stage();
    let sub = session.starting_at(dir.path().join("ws/sub")).unwrap();
    sub.perform(&Read::new("a.txt")).unwrap();
    sub.perform(&Read::new("../top.txt")).unwrap();
    assert_eq!(found(&sub, "**/*.txt"), ["a.txt"]);
    assert_eq!(found(&session, "**/*.txt").len(), 3);
    assert!(matches!(session.perform(&Read::new("a.txt")), Err(Error::NotFound { .. })));
    let out = sub.perform(&Read::new("../../out/secret.txt"));
    assert!(matches!(out, Err(Error::Outside { .. })), "{out:?}");
}

#[test]
fn it_starts_only_in_the_workspace() {
    let (dir, session) = stage();
    for name in ["out", "", "ws/nowhere", "ws/top.txt", "ws/../out"] {
        assert!(session.starting_at(dir.path().join(name)).is_none(), "{name}");
    }
    symlink(dir.path().join("out"), dir.path().join("ws/leads-out")).unwrap();
    assert!(session.starting_at(dir.path().join("ws/leads-out")).is_none());
    symlink("sub", dir.path().join("ws/leads-in")).unwrap();
    let sub = session.starting_at(dir.path().join("ws/leads-in")).unwrap();
    sub.perform(&Read::new("a.txt")).unwrap();
}

#[test]
fn another_root_is_a_place_to_start_too_and_the_first_one_is_none() {
    let (dir, session) = stage();
    let two = session.starting_at(dir.path().join("two")).unwrap();
    assert_eq!(found(&two, "*.txt"), ["b.txt"]);
    let first = session.starting_at(dir.path().join("ws")).unwrap();
    assert_eq!(found(&first, "**/*.txt").len(), 3);
}

#[test]
fn what_was_seen_from_one_place_has_been_seen() {
    let (dir, session) = stage();
    let sub = session.starting_at(dir.path().join("ws/sub")).unwrap();
    sub.perform(&Read::new("a.txt")).unwrap();
    let mut edit = Edit::new("sub/a.txt", "one", "two");
    edit.read_rule = ReadBeforeWrite::Require;
    session.perform(&edit).unwrap();
}

#[test]
fn another_mode_keeps_the_rules() {
    let dir = TempDir::new().unwrap();
    let permissions = Permissions { deny: vec!["Write(kept)".into()], ..Permissions::default() };
    let settings = Settings::default().with_permissions(permissions);
    let session = Session::with_settings([dir.path()], settings).unwrap();
    let denied = |session: &Session, name: &str| {
        matches!(session.perform(&Write::new(name, "")), Err(Error::Denied { .. }))
    };
    assert!(denied(&session.in_mode(Mode::Plan), "a"));
    assert!(denied(&session.in_mode(Mode::Ask), "a"));
    let free = session.in_mode(Mode::BypassPermissions);
    assert!(denied(&free, "kept"));
    assert!(!denied(&free, ".envrc"));
    assert!(denied(&session, ".envrc"));
    assert_eq!(session.settings().permissions.mode, Mode::SecureFileAccess);
    assert_eq!(free.settings().permissions.mode, Mode::BypassPermissions);
}
