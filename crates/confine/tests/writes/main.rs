//! Writes: the metadata that they keep, their order, and their errors.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

mod others;
mod removals;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use pinfold_confine::{Durability, Error, Workspace};
use pinfold_testkit::{attribute, can_create_unnamed, can_exchange, set_attribute};
use tempfile::TempDir;

fn workspace() -> (TempDir, Workspace) {
    let dir = TempDir::new().unwrap();
    let workspace = Workspace::open([dir.path()], None).unwrap();
    (dir, workspace)
}

fn write(workspace: &Workspace, path: &str, content: &str) -> Result<(), Error> {
    let target = workspace.target(&path.into(), &Default::default())?;
    target.replace(content.as_bytes(), Durability::None).map(drop)
}

#[test]
fn mode_owner_and_attributes_stay_but_not_the_right_to_act_as_the_owner() {
    let (dir, workspace) = workspace();
    let path = dir.path().join("f");
    fs::write(&path, "old").unwrap();
    let root = rustix::process::geteuid().is_root();
    if root {
        std::os::unix::fs::chown(&path, Some(1234), Some(2345)).unwrap();
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6751)).unwrap();
    set_attribute(&path, "user.note", b"kept").unwrap();
    write(&workspace, "f", "new").unwrap();
    let meta = fs::metadata(&path).unwrap();
    assert_eq!(meta.permissions().mode() & 0o7777, 0o751);
    if root {
        assert_eq!((meta.uid(), meta.gid()), (1234, 2345));
    }
    assert_eq!(attribute(&path, "user.note").unwrap(), b"kept");
}

/// The hard link of the backup changes ctime, so afterwards the change would not show.
#[test]
fn metadata_that_changes_before_the_backup_is_noticed() {
    use pinfold_confine::{BackupStore, Error, Name};
    let (dir, workspace) = workspace();
    let path = dir.path().join("f");
    fs::write(&path, "old").unwrap();
    // Then a change shows in the file's times.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let mut target = workspace.target(&"f".into(), &Default::default()).unwrap();
    target.hash().unwrap();
    let backups = TempDir::new().unwrap();
    let backups = BackupStore::open(backups.path()).unwrap();
    set_attribute(&path, "user.note", b"new").unwrap();
    let backed_up = backups.back_up(&mut target, &Name::parse(b"kept").unwrap());
    assert!(matches!(backed_up, Err(Error::Changed)), "{backed_up:?}");
}

#[test]
fn a_new_file_has_the_mode_of_any_new_file() {
    let (dir, workspace) = workspace();
    write(&workspace, "made/by/us", "x").unwrap();
    fs::create_dir_all(dir.path().join("made/by/them")).unwrap();
    fs::write(dir.path().join("made/by/them/f"), "x").unwrap();
    let mode = |path: &str| fs::metadata(dir.path().join(path)).unwrap().permissions().mode();
    assert_eq!(mode("made/by/us"), mode("made/by/them/f"));
    assert_eq!(mode("made/by"), mode("made/by/them"));
}

#[test]
fn a_link_stays_and_its_target_is_written() {
    let (dir, workspace) = workspace();
    fs::create_dir(dir.path().join("d")).unwrap();
    fs::write(dir.path().join("d/real"), "old").unwrap();
    symlink("d/real", dir.path().join("link")).unwrap();
    write(&workspace, "link", "new").unwrap();
    assert!(dir.path().join("link").is_symlink());
    assert_eq!(fs::read_to_string(dir.path().join("d/real")).unwrap(), "new");
}

#[test]
fn other_names_of_the_file_keep_the_old_content() {
    let (dir, workspace) = workspace();
    fs::write(dir.path().join("one"), "old").unwrap();
    fs::hard_link(dir.path().join("one"), dir.path().join("other")).unwrap();
    write(&workspace, "one", "new").unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("one")).unwrap(), "new");
    assert_eq!(fs::read_to_string(dir.path().join("other")).unwrap(), "old");
}

#[test]
fn the_longest_name_can_be_written() {
    let (dir, workspace) = workspace();
    let name = "n".repeat(255);
    write(&workspace, &name, "one").unwrap();
    write(&workspace, &name, "two").unwrap();
    assert_eq!(fs::read_to_string(dir.path().join(&name)).unwrap(), "two");
}

/// Puts a file in the place of another, as editors do.
fn put(path: &std::path::Path, text: &str) {
    let draft = path.with_extension("theirs");
    fs::write(&draft, text).unwrap();
    fs::rename(&draft, path).unwrap();
}

/// Gives a file a modification time that is recent for as long as the test takes.
fn make_recent(path: &std::path::Path) {
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(600);
    fs::File::options().append(true).open(path).unwrap().set_modified(later).unwrap();
}

/// Writes the same number of bytes, and sets the time back.
fn write_unseen(path: &std::path::Path, text: &str) {
    let time = fs::metadata(path).unwrap().modified().unwrap();
    fs::write(path, text).unwrap();
    fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn a_file_that_may_not_be_written_is_not_replaced() {
    if rustix::process::geteuid().is_root() {
        // Root is never refused: `denied_calls_are_told` injects the error.
        return;
    }
    let (dir, workspace) = workspace();
    fs::write(dir.path().join("f"), "old").unwrap();
    fs::set_permissions(dir.path().join("f"), fs::Permissions::from_mode(0o444)).unwrap();
    assert!(matches!(write(&workspace, "f", "new"), Err(Error::Denied)));
}

#[test]
fn denied_calls_are_told() {
    use pinfold_confine::fault::{Fault, When, inject};
    let (dir, workspace) = workspace();
    fs::write(dir.path().join("f"), "old").unwrap();
    let denied = Fault::Errno(rustix::io::Errno::ACCESS.raw_os_error());
    let report = inject(&[(When::Every("faccessat"), denied)], || write(&workspace, "f", "new"));
    assert!(matches!(report.result, Err(Error::Denied)));
    let foreign = Fault::Errno(rustix::io::Errno::PERM.raw_os_error());
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(dir.path().join("f"), Some(1), Some(1)).unwrap();
        let report = inject(&[(When::Every("fchown"), foreign)], || write(&workspace, "f", "new"));
        assert!(matches!(report.result, Err(Error::Owner { uid: 1, gid: 1 })));
    }
    assert_eq!(fs::read_to_string(dir.path().join("f")).unwrap(), "old");
}

/// An access list with one more user, as the kernel stores it.
fn access_list(user: u32, rights: u16) -> Vec<u8> {
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, rights, id) in [
        (0x01u16, 7u16, u32::MAX),
        (0x02, rights, user),
        (0x04, 0, u32::MAX),
        (0x10, 7, u32::MAX),
        (0x20, 0, u32::MAX),
    ] {
        list.extend(
            tag.to_le_bytes().into_iter().chain(rights.to_le_bytes()).chain(id.to_le_bytes()),
        );
    }
    list
}

#[test]
fn a_default_access_list_of_the_directory_lets_nobody_in() {
    let (dir, workspace) = workspace();
    let name = "system.posix_acl_default";
    fs::write(dir.path().join("f"), "old").unwrap();
    fs::set_permissions(dir.path().join("f"), fs::Permissions::from_mode(0o660)).unwrap();
    if set_attribute(dir.path(), name, &access_list(65534, 7)).is_err() {
        eprintln!("skipped: this file system has no access lists");
        return;
    }
    write(&workspace, "f", "new").unwrap();
    let found = attribute(&dir.path().join("f"), "system.posix_acl_access");
    assert!(found.is_err(), "{found:?}");
    assert_eq!(fs::metadata(dir.path().join("f")).unwrap().permissions().mode() & 0o777, 0o660);
}

#[test]
fn an_access_list_of_the_file_stays() {
    use pinfold_confine::fault::{Fault, When, inject};
    let (dir, workspace) = workspace();
    let (path, name) = (dir.path().join("f"), "system.posix_acl_access");
    fs::write(&path, "old").unwrap();
    if set_attribute(&path, name, &access_list(65534, 4)).is_err() {
        eprintln!("skipped: this file system has no access lists");
        return;
    }
    // If the new file cannot get its name, a copy of it does.
    let unsupported = Fault::Errno(rustix::io::Errno::OPNOTSUPP.raw_os_error());
    for (faults, text) in
        [(&[][..], "new"), (&[(When::Every("link_unnamed"), unsupported)], "newer")]
    {
        inject(faults, || write(&workspace, "f", text)).result.unwrap();
        assert_eq!(attribute(&path, name).unwrap(), access_list(65534, 4));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn content_is_flushed_before_it_takes_its_place_and_the_directory_after() {
    use pinfold_confine::fault::inject;
    for (existing, how) in [
        (true, Durability::None),
        (true, Durability::Data),
        (true, Durability::Full),
        (false, Durability::None),
        (false, Durability::Data),
        (false, Durability::Full),
    ] {
        let (dir, workspace) = workspace();
        if existing {
            fs::write(dir.path().join("f"), "old").unwrap();
        }
        let target = workspace.target(&"f".into(), &Default::default()).unwrap();
        let calls = inject(&[], || target.replace(b"new", how).map(drop)).calls;
        let at = |name: &str| calls.iter().position(|call| *call == name);
        let exchange = if existing { at("exchange") } else { at("link_unnamed") };
        let exchange = exchange.or(at("rename_new")).unwrap();
        let what = format!("{existing} {how:?}: {calls:?}");
        assert!(at("flock").unwrap() < exchange, "{what}");
        match how {
            Durability::None => assert_eq!(at("fdatasync"), None, "{what}"),
            _ => assert!(
                at("write").unwrap() < at("fdatasync").unwrap()
                    && at("fdatasync").unwrap() < exchange,
                "{what}"
            ),
        }
        assert_eq!(
            at("fsync").is_some_and(|fsync| fsync > exchange),
            how == Durability::Full,
            "{what}"
        );
    }
}

/// All calls except those that read the content. A new call needs a reason.
#[test]
fn a_second_write_in_a_directory_makes_these_calls() {
    let (dir, workspace) = workspace();
    if !can_exchange(dir.path()) || !can_create_unnamed(dir.path()) {
        return;
    }
    write(&workspace, "f", "one").unwrap();
    let mut report = pinfold_confine::fault::inject(&[], || write(&workspace, "f", "two")).calls;
    report.retain(|call| *call != "pread");
    let find = ["stat", "openat2", "fstat", "fstatat", "openat", "fstat"];
    let check = ["faccessat"];
    let temp_file = ["fstatfs", "create_unnamed", "fstat", "getrandom", "write"];
    let metadata = ["flistxattr", "fchmod", "flistxattr"];
    let lock = ["openat", "flock", "stat"];
    let exchange = ["lock_temp", "link_unnamed", "fstatat", "exchange", "fstatat", "stat"];
    let end = ["fstat", "unlinkat"];
    let parts: [&[&str]; 7] = [&find, &check, &temp_file, &metadata, &lock, &exchange, &end];
    assert_eq!(report, parts.concat());
    assert_eq!(fs::read_to_string(dir.path().join("f")).unwrap(), "two");
}
