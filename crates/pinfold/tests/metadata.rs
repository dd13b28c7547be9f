//! A file that an undo creates again has its old mode, owner and extended attributes.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use pinfold::operations::{AfterUpdate, Delete, RemoveTree, Rewind, Undo, Update, Write};
use pinfold::patch::Patch;
use pinfold::{JournalSetting, Session, Settings};
use pinfold_testkit::{attribute, set_attribute};
use tempfile::TempDir;

struct Stage {
    _dir: TempDir,
    file: PathBuf,
    session: Session,
}

/// A workspace with the file `d/f`, which has a mode, an owner and an extended attribute of its own.
fn stage() -> Stage {
    let dir = TempDir::new().unwrap();
    let (root, journal) = (dir.path().join("ws"), dir.path().join("journal"));
    let file = root.join("d/f");
    fs::create_dir_all(root.join("d")).unwrap();
    fs::write(&file, "old\n").unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&file, Some(1234), Some(2345)).unwrap();
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).unwrap();
    set_attribute(&file, "user.note", b"kept").unwrap();
    let mut settings = Settings::default();
    settings.journal = Some(JournalSetting::Directory(journal));
    let session = Session::with_settings([&root], settings).unwrap();
    Stage { _dir: dir, file, session }
}

/// The content, mode, owner and extended attribute of a file.
fn state(path: &Path) -> (String, u32, u32, Vec<u8>) {
    let meta = fs::metadata(path).unwrap();
    let note = attribute(path, "user.note").unwrap_or_default();
    let content = fs::read_to_string(path).unwrap();
    (content, meta.permissions().mode() & 0o7777, meta.uid(), note)
}

#[test]
fn a_deleted_file_comes_back_as_it_was() {
    let it = stage();
    let before = state(&it.file);
    it.session.perform(&Delete::new("d/f")).unwrap();
    it.session.perform(&Undo::newest()).unwrap();
    assert_eq!(state(&it.file), before);
    it.session.perform(&RemoveTree::new("d")).unwrap();
    it.session.perform(&Undo::newest()).unwrap();
    assert_eq!(state(&it.file), before);
}

#[test]
fn the_copy_of_a_file_with_other_hard_links_has_its_attributes() {
    let it = stage();
    fs::hard_link(&it.file, it.file.with_file_name("other")).unwrap();
    let before = state(&it.file);
    it.session.perform(&Delete::new("d/f")).unwrap();
    it.session.perform(&Undo::newest()).unwrap();
    let (content, mode, _, note) = state(&it.file);
    assert_eq!((content, mode, note), (before.0, before.1, before.3));
}

#[test]
fn a_rewind_restores_a_file_that_was_deleted_and_created_anew() {
    let it = stage();
    let before = state(&it.file);
    it.session.checkpoint("start").unwrap();
    it.session.perform(&Delete::new("d/f")).unwrap();
    it.session.perform(&Write::new("d/f", "new\n")).unwrap();
    it.session.perform(&Rewind::to("start")).unwrap();
    assert_eq!(state(&it.file), before);
    // What the user did to the file meanwhile stays.
    it.session.checkpoint("later").unwrap();
    it.session.perform(&Write::new("d/f", "new\n")).unwrap();
    fs::set_permissions(&it.file, fs::Permissions::from_mode(0o700)).unwrap();
    set_attribute(&it.file, "user.note", b"mine").unwrap();
    it.session.perform(&Rewind::to("later")).unwrap();
    let (content, mode, _, note) = state(&it.file);
    assert_eq!((content.as_str(), mode, &note[..]), ("old\n", 0o700, &b"mine"[..]));
}

#[test]
fn a_file_that_a_patch_moves_and_changes_keeps_its_attributes() {
    let it = stage();
    let before = state(&it.file);
    let patch = "*** Begin Patch\n*** Update File: x\n-old\n+new\n*** End Patch";
    let chunks = Patch::parse(patch).unwrap().files[0].chunks().to_vec();
    let moved = Update::new("d/f", chunks).with_after(AfterUpdate::MoveTo("d/g".into()));
    it.session.perform(&moved).unwrap();
    let (content, mode, owner, note) = state(&it.file.with_file_name("g"));
    assert_eq!(content, "new\n");
    assert_eq!((mode, owner, &note), (before.1, before.2, &before.3));
    it.session.perform(&Undo::newest()).unwrap();
    assert_eq!(state(&it.file), before);
}
