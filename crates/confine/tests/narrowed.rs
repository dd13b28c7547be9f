//! A workspace that is narrowed to other directories is never wider than it was.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use pinfold_confine::fault::{inject, rounds};
use pinfold_confine::{Error, OpenMethod, RawPath, Workspace};
use tempfile::TempDir;

struct Place {
    dir: TempDir,
}

impl Place {
    /// `ws/{a,b/c}` with a file each, `out` beside it, and links from one to the other.
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        for file in ["ws/a/f", "ws/b/c/f", "ws/f", "out/f"] {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        symlink(dir.path().join("ws/a"), dir.path().join("to-a")).unwrap();
        symlink("../out", dir.path().join("ws/to-out")).unwrap();
        Self { dir }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    fn narrowed(&self, method: OpenMethod, to: &[&str]) -> Option<Workspace> {
        let workspace = Workspace::open([self.path("ws")], Some(method)).unwrap();
        workspace.narrowed(to.iter().map(|to| self.path(to)))
    }
}

fn opens(workspace: &Workspace, path: &Path) -> bool {
    workspace.file(&RawPath::from(path.to_str().unwrap())).is_ok()
}

#[test]
fn what_is_in_both_stays() {
    let place = Place::new();
    for method in [OpenMethod::Kernel, OpenMethod::NameByName] {
        for (to, open, closed) in [
            (&["ws/a"][..], &["ws/a/f"][..], &["ws/f", "ws/b/c/f", "out/f"][..]),
            (&["ws/a", "ws/b"], &["ws/a/f", "ws/b/c/f"], &["ws/f", "out/f"]),
            (&["ws"], &["ws/f", "ws/a/f", "ws/b/c/f"], &["out/f"]),
            (&["."], &["ws/f", "ws/a/f", "ws/b/c/f"], &["out/f"]),
            (&["out", "ws/b"], &["ws/b/c/f"], &["out/f", "ws/f"]),
            // By another name, and without duplicates.
            (&["to-a", "ws/a"], &["ws/a/f"], &["ws/f", "out/f"]),
        ] {
            let workspace = place.narrowed(method, to).unwrap();
            for path in open {
                assert!(opens(&workspace, &place.path(path)), "{to:?} {path}");
            }
            for path in closed {
                assert!(!opens(&workspace, &place.path(path)), "{to:?} {path}");
            }
            let roots: Vec<_> = workspace.roots().collect();
            assert!(roots.iter().all(|root| root.starts_with(place.path("ws"))), "{roots:?}");
        }
        assert_eq!(place.narrowed(method, &["to-a", "ws/a"]).unwrap().roots().len(), 1);
    }
}

#[test]
fn what_is_in_one_only_does_not() {
    let place = Place::new();
    for to in [&["out"][..], &["ws/to-out"], &["none"], &["ws/none"], &["ws/f"], &[]] {
        assert!(place.narrowed(OpenMethod::Kernel, to).is_none(), "{to:?}");
    }
}

/// A root that is not in the directory may be on a mount that hangs.
#[test]
fn only_the_roots_that_stay_are_looked_at() {
    let place = Place::new();
    let calls = |roots: &[&str]| {
        let roots = roots.iter().map(|root| place.path(root));
        let workspace = Workspace::open(roots, None).unwrap();
        let narrowed = || workspace.narrowed([place.path("ws/a")]).unwrap();
        let started = || workspace.starting_at(&place.path("ws/a")).unwrap();
        [inject(&[], narrowed).calls, inject(&[], started).calls]
    };
    assert_eq!(calls(&["out", "ws"]), calls(&["ws"]));
}

#[test]
fn a_root_with_a_new_real_path_is_narrowed_by_that() {
    let place = Place::new();
    symlink("ws/b", place.path("root")).unwrap();
    let workspace = Workspace::open([place.path("root")], None).unwrap();
    assert!(workspace.narrowed([place.path("ws/a")]).is_none());
    fs::remove_file(place.path("root")).unwrap();
    symlink("ws/a", place.path("root")).unwrap();
    let narrowed = workspace.narrowed([place.path("ws/a")]).unwrap();
    assert!(opens(&narrowed, &place.path("ws/a/f")));
}

#[test]
fn a_narrowed_root_is_gone_when_a_symlink_takes_its_place() {
    let place = Place::new();
    let workspace = place.narrowed(OpenMethod::Kernel, &["ws/a"]).unwrap();
    fs::rename(place.path("ws/a"), place.path("ws/was-a")).unwrap();
    symlink("../out", place.path("ws/a")).unwrap();
    let file = workspace.file(&RawPath::from(place.path("ws/a/f").to_str().unwrap()));
    assert!(matches!(file, Err(Error::RootGone(_))), "{file:?}");
}

/// Somebody swaps the directory for a link to outside, over and over.
#[test]
fn a_swap_does_not_widen_it() {
    let place = Place::new();
    let stop = AtomicBool::new(false);
    let mut read = 0;
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                fs::rename(place.path("ws/a"), place.path("ws/x")).unwrap();
                symlink("../out", place.path("ws/a")).unwrap();
                fs::remove_file(place.path("ws/a")).unwrap();
                fs::rename(place.path("ws/x"), place.path("ws/a")).unwrap();
            }
        });
        // On a busy machine this takes longer: until each case has occurred at least once.
        for round in 0..1_000_000 {
            if round >= rounds(2_000) && read > 0 {
                break;
            }
            let Some(workspace) = place.narrowed(OpenMethod::Kernel, &["ws/a"]) else { continue };
            if let Ok((_, mut file)) = workspace.file(&RawPath::from("a/f")) {
                let mut text = String::new();
                std::io::Read::read_to_string(&mut file, &mut text).unwrap();
                assert_eq!(text, "ws/a/f");
                read += 1;
            }
        }
    });
    assert!(read > 0, "it never was what it had been");
}

/// Also ends the other thread if this one panics.
struct StopOnDrop<'s>(&'s AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
