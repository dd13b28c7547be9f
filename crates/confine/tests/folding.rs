//! File systems that treat two spellings of a name as one file, as on macOS.
//!
//! `PINFOLD_FOLDING_DIRECTORY` names a directory on such a file system. Without it, the tests mount an ext4 or FAT
//! that folds names, which needs root and a kernel with one of them (`CONFIG_UNICODE` or `CONFIG_VFAT_FS`). If that
//! fails, they print that they were skipped. Cases that a symlink can simulate are tested everywhere.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use pinfold_confine::{Deadline, Durability, Error, OpenMethod, Workspace};
use pinfold_testkit::skipped;
use tempfile::TempDir;

/// A directory in which `a` and `A` are one name. It is unmounted and removed at the end.
struct Folding {
    directory: TempDir,
    mounted: Option<TempDir>,
}

impl Drop for Folding {
    fn drop(&mut self) {
        if let Some(mounted) = &self.mounted {
            _ = Command::new("umount").arg("--lazy").arg(mounted.path().join("on")).status();
        }
    }
}

fn folding_directory() -> Option<Folding> {
    if let Some(given) = std::env::var_os("PINFOLD_FOLDING_DIRECTORY") {
        let directory = TempDir::new_in(given).unwrap();
        return Some(Folding { directory, mounted: None });
    }
    let ext4 = ["mkfs.ext4", "-q", "-O", "casefold", "-E", "encoding=utf8"];
    match mount(&ext4, &["chattr", "+F"]).or_else(|_| mount(&["mkfs.vfat"], &["ls"])) {
        Ok(folding) => Some(folding),
        Err(problem) => {
            skipped(&format!("NOT TRIED: no file system here folds names: {problem}"));
            None
        }
    }
}

/// Mounts a new file system, and prepares a directory in it by a command.
fn mount(format: &[&str], prepare: &[&str]) -> Result<Folding, String> {
    let run = |command: &[&str]| {
        let output = Command::new(command[0]).args(&command[1..]).output();
        let output = output.map_err(|error| format!("{}: {error}", command[0]))?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        output.status.success().then_some(()).ok_or(format!("{}: {said}", command[0]))
    };
    let place = TempDir::new().unwrap();
    let image = place.path().join("image");
    fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let image = image.to_str().unwrap();
    run(&[format, &[image]].concat())?;
    let on = place.path().join("on");
    fs::create_dir(&on).unwrap();
    run(&["mount", "-o", "loop", image, on.to_str().unwrap()])?;
    let directory = TempDir::new_in(&on).unwrap();
    let folding = Folding { directory, mounted: Some(place) };
    run(&[prepare, &[folding.directory.path().to_str().unwrap()]].concat())?;
    Ok(folding)
}

fn read(workspace: &Workspace, path: &Path) -> Result<Vec<u8>, Error> {
    let mut target = workspace.target(&path.to_str().unwrap().into(), &Deadline::default())?;
    target.content()
}

#[test]
fn a_root_may_be_spelled_otherwise_if_that_is_the_same_directory() {
    let dir = TempDir::new().unwrap();
    let at = |path: &str| dir.path().join(path);
    fs::create_dir(at("Root")).unwrap();
    fs::write(at("Root/f"), "inside").unwrap();
    for method in [OpenMethod::Kernel, OpenMethod::NameByName] {
        let workspace = Workspace::open([at("Root")], Some(method)).unwrap();
        assert!(matches!(read(&workspace, &at("root/f")), Err(Error::Outside)));
        // This is another directory with that name.
        fs::create_dir(at("root")).unwrap();
        fs::write(at("root/f"), "secret").unwrap();
        assert!(matches!(read(&workspace, &at("root/f")), Err(Error::Outside)));
        fs::remove_dir_all(at("root")).unwrap();
        // Simulates a file system that folds names.
        symlink("Root", at("root")).unwrap();
        assert_eq!(read(&workspace, &at("root/f")).unwrap(), b"inside");
        // The names must differ only in spelling.
        symlink("Root", at("other")).unwrap();
        assert!(matches!(read(&workspace, &at("other/f")), Err(Error::Outside)));
        fs::remove_file(at("root")).unwrap();
        fs::remove_file(at("other")).unwrap();
    }
}

#[test]
fn writers_that_spell_a_name_differently_do_not_lose_an_update() {
    let Some(folding) = folding_directory() else { return };
    let spellings = ["counter", "Counter", "COUNTER", "cOUNTER"];
    let root = folding.directory.path();
    fs::write(root.join(spellings[0]), "").unwrap();
    thread::scope(|scope| {
        for name in spellings {
            scope.spawn(move || {
                let workspace = Workspace::open([root], None).unwrap();
                for _ in 0..25 {
                    let mut target = workspace.target(&name.into(), &Deadline::default()).unwrap();
                    let mut content = target.content().unwrap();
                    content.push(b'x');
                    target.replace(&content, Durability::None).unwrap();
                }
            });
        }
    });
    let entries: Vec<PathBuf> = fs::read_dir(root).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(fs::read_to_string(&entries[0]).unwrap().len(), 100);
}

#[test]
fn a_root_within_a_root_is_found_under_every_spelling() {
    let Some(folding) = folding_directory() else { return };
    let root = folding.directory.path();
    let inner = root.join("Inner");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("f"), "kept").unwrap();
    let workspace = Workspace::open([root], None).unwrap().with_read_roots([&inner]).unwrap();
    for name in ["Inner/f", "inner/f", "INNER/F"] {
        let stat = workspace.stat(&name.into()).unwrap();
        let real = workspace.real_path(&stat.place);
        assert!(workspace.is_in_read_root(&real), "{name}: {}", String::from_utf8_lossy(&real));
    }
}
