//! The directory for an agent's memory: a fence of its own, for its owner alone.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use pinfold::operations::{List, Move, Read, RemoveTree, Write};
use pinfold::{Error, Mode, Permissions, Session, Settings};
use tempfile::TempDir;

fn session(dir: &TempDir, memory: &str) -> Session {
    fs::create_dir_all(dir.path().join("ws")).unwrap();
    let settings = Settings::default().with_memory(Some(dir.path().join(memory)));
    Session::with_settings([dir.path().join("ws")], settings).unwrap()
}

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn created_files_are_for_the_owner_alone() {
    let dir = TempDir::new().unwrap();
    let memory = session(&dir, "state/memory").memory().unwrap();
    memory.perform(&Write::new("notes/deep/a.txt", "one\n")).unwrap();
    memory.perform(&Move::new("notes/deep/a.txt", "other/b.txt")).unwrap();
    let top = dir.path().join("state/memory");
    for directory in ["", "notes", "notes/deep", "other"] {
        assert_eq!(mode(top.join(directory)), 0o700, "{directory}");
    }
    assert_eq!(mode(top.join("other/b.txt")), 0o600);
    memory.perform(&RemoveTree::new("notes")).unwrap();
    assert!(!top.join("notes").exists());
}

#[test]
fn neither_fence_reaches_into_the_other() {
    let dir = TempDir::new().unwrap();
    // Inside of the workspace, so that only policy keeps it apart.
    let session = session(&dir, "ws/memory");
    let memory = session.memory().unwrap();
    memory.perform(&Write::new("a.txt", "kept\n")).unwrap();
    fs::write(dir.path().join("ws/b.txt"), "work\n").unwrap();
    let denied = session.perform(&Read::new("memory/a.txt")).unwrap_err();
    assert!(matches!(denied, Error::Denied { .. }), "{denied}");
    assert!(session.perform(&Write::new("memory/c.txt", "")).is_err());
    let listed = session.perform(&List::new(".")).unwrap().outcome;
    assert_eq!(listed.entries.len(), 1);
    symlink("../b.txt", dir.path().join("ws/memory/link")).unwrap();
    for path in ["../b.txt", "link", dir.path().join("ws/b.txt").to_str().unwrap()] {
        let outside = memory.perform(&Read::new(path)).unwrap_err();
        assert!(matches!(outside, Error::Outside { .. }), "{outside}");
    }
}

#[test]
fn modes_and_rules_hold_there_too() {
    let dir = TempDir::new().unwrap();
    let settings = Settings::default().with_memory(Some(dir.path().join("memory")));
    let mut permissions = Permissions::default();
    permissions.deny.push("Read(private/**)".into());
    let settings = settings.with_permissions(permissions);
    fs::create_dir_all(dir.path().join("memory/private")).unwrap();
    fs::write(dir.path().join("memory/private/x"), "x").unwrap();
    let session = Session::with_settings([dir.path()], settings).unwrap();
    let read = session.memory().unwrap().perform(&Read::new("private/x"));
    assert!(matches!(read, Err(Error::Denied { .. })));
    let planning = session.in_mode(Mode::Plan).memory().unwrap();
    assert!(matches!(planning.perform(&Write::new("a", "")), Err(Error::Denied { .. })));
}

#[test]
fn a_directory_that_cannot_be_made_stops_the_start() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let settings = Settings::default().with_memory(Some(dir.path().join("file/memory")));
    let refused = Session::with_settings([dir.path()], settings).unwrap_err().to_string();
    assert!(refused.contains("for the memory"), "{refused}");
    assert!(Session::open([dir.path()]).unwrap().memory().is_none());
}
