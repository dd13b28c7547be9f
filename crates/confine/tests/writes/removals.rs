//! Removals, and what they leave.

use std::fs;
use std::time::Duration;

use pinfold_confine::{Durability, Error, OpenMethod, Workspace};
use pinfold_testkit::names_in;
use tempfile::TempDir;

use crate::{make_recent, put, workspace, write_unseen};

#[test]
fn a_removal_is_of_the_content_that_was_hashed_or_secured() {
    use pinfold_confine::{BackupStore, Name, Removal};
    let vaults = TempDir::new().unwrap();
    let backups = BackupStore::open(vaults.path()).unwrap();
    type Note<'n> = &'n dyn Fn(&Removal);
    let hash: Note<'_> = &|removal| assert!(removal.hash().unwrap().is_some());
    let secure: Note<'_> = &|removal| {
        backups.back_up_removed(removal, &Name::parse(b"kept").unwrap()).unwrap();
    };
    let cases = [("hashed", hash, 0), ("secured", secure, 0), ("hashed later", hash, 50)];
    for (what, note, milliseconds) in cases {
        let (dir, workspace) = workspace();
        let path = dir.path().join("f");
        fs::write(&path, "old").unwrap();
        // A file with two names is backed up by a copy.
        fs::hard_link(&path, dir.path().join("g")).unwrap();
        // Then a change shows in the file's times.
        std::thread::sleep(Duration::from_millis(milliseconds));
        let removal = workspace.removal(&"f".into(), &Default::default()).unwrap();
        note(&removal);
        write_unseen(&path, "thr");
        let removed = removal.remove(Durability::None).map(drop);
        assert!(matches!(removed, Err(Error::Changed)), "{what}: {removed:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "thr", "{what}");
    }
}

#[test]
fn a_file_that_may_not_be_read_can_be_removed() {
    use pinfold_confine::fault::{Fault, When, inject};
    let dir = TempDir::new().unwrap();
    let workspace = Workspace::open([dir.path()], Some(OpenMethod::Kernel)).unwrap();
    fs::write(dir.path().join("f"), "old").unwrap();
    let removal = workspace.removal(&"f".into(), &Default::default()).unwrap();
    let denied = Fault::Errno(rustix::io::Errno::ACCESS.raw_os_error());
    let report =
        inject(&[(When::Every("openat"), denied)], || removal.remove(Durability::None).map(drop));
    report.result.unwrap();
    assert!(!dir.path().join("f").exists());
}

#[test]
fn what_is_removed_is_what_was_found() {
    use pinfold_confine::fault::interleave;
    type Others = fn(&std::path::Path);
    let cases: [(&str, Others, Option<&str>); 5] = [
        ("replaced", |path| put(path, "theirs"), Some("theirs")),
        ("written", |path| fs::write(path, "theirs").unwrap(), Some("theirs")),
        ("replaced, same size", |path| put(path, "thr"), Some("thr")),
        // Within one tick of the clock.
        ("written, same size, unseen", |path| write_unseen(path, "thr"), Some("thr")),
        ("removed", |path| fs::remove_file(path).unwrap(), None),
    ];
    for (what, act, left) in cases {
        let (dir, workspace) = workspace();
        let path = dir.path().join("f");
        fs::write(&path, "old").unwrap();
        make_recent(&path);
        let removal = workspace.removal(&"f".into(), &Default::default()).unwrap();
        let own = path.clone();
        let others: Box<dyn FnOnce()> = Box::new(move || act(&own));
        let report = interleave(vec![("rename_new", 1, others)], || {
            removal.remove(Durability::None).map(drop)
        });
        assert!(matches!(report.result, Err(Error::Changed)), "{what}: {:?}", report.result);
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), left, "{what}");
        assert_eq!(names_in(dir.path()).len(), usize::from(left.is_some()), "{what}");
    }
}
