//! Roots and directories that are removed, moved away or replaced while they are in use.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use pinfold_confine::{Durability, Error, OpenMethod, Workspace};
use tempfile::TempDir;

const METHODS: [OpenMethod; 2] = [OpenMethod::Openat2, OpenMethod::Walk];

fn read(workspace: &Workspace, path: &str) -> Result<String, Error> {
    let mut text = String::new();
    let (_, mut file) = workspace.file(&path.into())?;
    std::io::Read::read_to_string(&mut file, &mut text).map_err(Error::Os)?;
    Ok(text)
}

fn write(workspace: &Workspace, path: &str) -> Result<(), Error> {
    let target = workspace.target(&path.into(), &Default::default())?;
    target.replace(b"new", Durability::None).map(drop)
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_root_is_a_path() {
    for method in METHODS {
        let dir = TempDir::new().unwrap();
        let (root, moved) = (dir.path().join("ws"), dir.path().join("moved"));
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(root.join("sub/f"), "first").unwrap();
        let workspace = Workspace::open([&root], Some(method)).unwrap();
        let narrow = workspace.narrowed([root.join("sub")]).unwrap();
        let within = workspace.starting_at(&root.join("sub")).unwrap();
        assert_eq!(read(&workspace, "sub/f").unwrap(), "first");

        fs::rename(&root, &moved).unwrap();
        for workspace in [&workspace, &narrow, &within] {
            for result in [
                read(workspace, "sub/f").map(drop),
                write(workspace, "sub/g"),
                workspace.list(&".".into(), 9).map(drop),
                workspace.outermost_roots().map(drop),
                workspace.removal(&"sub/f".into(), &Default::default()).map(drop),
            ] {
                assert!(matches!(result, Err(Error::RootGone(_))), "{result:?}");
            }
        }

        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(root.join("sub/f"), "second").unwrap();
        assert_eq!(read(&workspace, "sub/f").unwrap(), "second");
        assert_eq!(read(&within, "f").unwrap(), "second");
        assert_eq!(read(&narrow, &root.join("sub/f").display().to_string()).unwrap(), "second");
        write(&workspace, "sub/g").unwrap();
        write(&within, "h").unwrap();
        assert_eq!(names(&moved.join("sub")), ["f"]);
        assert_eq!(names(&root.join("sub")), ["f", "g", "h"]);

        // What was narrowed is not followed out of the root by a symlink in its place.
        fs::rename(root.join("sub"), dir.path().join("outside")).unwrap();
        symlink(dir.path().join("outside"), root.join("sub")).unwrap();
        let result = read(&narrow, &root.join("sub/f").display().to_string());
        assert!(matches!(result, Err(Error::RootGone(_) | Error::Outside)), "{result:?}");
    }
}

#[test]
fn a_root_that_is_a_symlink_is_what_the_symlink_says() {
    for method in METHODS {
        let dir = TempDir::new().unwrap();
        let at = fs::canonicalize(dir.path()).unwrap();
        for name in ["one", "two"] {
            fs::create_dir(at.join(name)).unwrap();
            fs::write(at.join(name).join("f"), name).unwrap();
        }
        symlink("one", at.join("ws")).unwrap();
        let workspace = Workspace::open([at.join("ws")], Some(method)).unwrap();
        assert_eq!(read(&workspace, "f").unwrap(), "one");
        fs::remove_file(at.join("ws")).unwrap();
        symlink("two", at.join("ws")).unwrap();
        let two = at.join("two/f").display().to_string();
        assert_eq!(read(&workspace, &two).unwrap(), "two");
        assert_eq!(read(&workspace, "f").unwrap(), "two");
        let place = workspace.lstat(&"f".into()).unwrap().place;
        assert_eq!(workspace.real_path(&place), two.as_bytes());
        let one = at.join("one/f").display().to_string();
        assert!(matches!(read(&workspace, &one), Err(Error::Outside)));
    }
}
