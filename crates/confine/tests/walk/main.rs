//! Walking over trees that were made to lead astray.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use pinfold_confine::fault::{Fault, When, inject, interleave};
use pinfold_confine::{
    Candidate, Error, Found, Kind, Opinion, Patience, Place, RelPath, Result, Secrecy, Skipped,
    Visitor, Walk, Way, Workspace,
};
use rustix::fs::{CWD, Mode, RenameFlags, mkfifoat, renameat_with};
use tempfile::TempDir;

const ROOT: Place = Place { root: 0, path: RelPath::root() };

#[derive(Default)]
struct Names(Vec<String>);

impl Visitor for Names {
    fn visit(&mut self, found: &Found<'_>) -> Result<()> {
        self.0.push(found.place().path.to_string());
        Ok(())
    }
}

fn usual(_: &Candidate<'_>) -> Opinion {
    Opinion::Usual
}

fn walk(workspace: &Workspace) -> (BTreeSet<String>, Skipped) {
    walk_to(workspace, usize::MAX)
}

fn walk_to(workspace: &Workspace, depth: usize) -> (BTreeSet<String>, Skipped) {
    let patience = Patience::default();
    let walk = Walk {
        depth,
        hidden: false,
        opinion: &usual,
        secrecy: &|_| Secrecy::Shown,
        patience: &patience,
    };
    let (parts, skipped) = workspace.walk(&[ROOT], &walk, Names::default).unwrap();
    let names: Vec<_> = parts.into_iter().flat_map(|part| part.0).collect();
    let set: BTreeSet<_> = names.iter().cloned().collect();
    assert_eq!(names.len(), set.len(), "shown twice");
    (set, skipped)
}

fn both_ways(set_up: impl Fn(&Path), check: impl Fn(&Workspace)) {
    for way in [Way::Kernel, Way::Walk] {
        let dir = TempDir::new().unwrap();
        let root = dir.path().join("ws");
        fs::create_dir(&root).unwrap();
        set_up(&root);
        check(&Workspace::open([&root], Some(way)).unwrap());
    }
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn write(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

#[test]
fn links_are_shown_and_not_entered() {
    both_ways(
        |root| {
            write(root, "a/b/file", "");
            write(root, "../outside/secret", "");
            symlink("..", root.join("a/b/up")).unwrap();
            symlink("../outside", root.join("out")).unwrap();
            symlink("nowhere", root.join("dangling")).unwrap();
            symlink("a", root.join("inside")).unwrap();
        },
        |workspace| {
            let found = walk(workspace).0;
            assert_eq!(
                found,
                names(&["a", "a/b", "a/b/file", "a/b/up", "out", "dangling", "inside"])
            );
        },
    );
}

#[test]
fn an_ignore_file_that_is_a_pipe_a_device_or_outside_says_nothing() {
    type Make = fn(&Path);
    let makes: [Make; 4] = [
        |path| mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).unwrap(),
        |path| symlink("/dev/zero", path).unwrap(),
        |path| symlink("../outside_rules", path).unwrap(),
        |path| fs::create_dir(path).unwrap(),
    ];
    for make in makes {
        both_ways(
            |root| {
                write(root, "seen.log", "");
                write(root, "sub/seen.log", "");
                write(root, "../outside_rules", "*.log\n");
                make(&root.join(".gitignore"));
            },
            |workspace| {
                assert!(walk(workspace).0.contains("sub/seen.log"));
                // From further down, the rules above are read in another way.
                let start = workspace.directory(&"sub".into()).unwrap();
                let patience = Patience::default();
                let walk = Walk {
                    depth: 1,
                    hidden: false,
                    opinion: &usual,
                    secrecy: &|_| Secrecy::Shown,
                    patience: &patience,
                };
                let (parts, _) = workspace.walk(&[start], &walk, Names::default).unwrap();
                assert_eq!(parts[0].0, ["sub/seen.log"]);
            },
        );
    }
}

#[test]
fn an_ignore_file_that_is_a_link_inside_is_read() {
    both_ways(
        |root| {
            write(root, "rules", "*.log\n");
            write(root, "a.log", "");
            write(root, "sub/b.log", "");
            symlink("rules", root.join(".gitignore")).unwrap();
        },
        |workspace| {
            let (found, skipped) = walk(workspace);
            assert_eq!(found, names(&["rules", "sub"]));
            assert_eq!((skipped.ignored, skipped.hidden), (2, 1));
        },
    );
}

#[test]
fn what_is_skipped_is_counted_and_not_entered() {
    both_ways(
        |root| {
            for path in [".git/config", "node_modules/a/b.js", "x/__pycache__/c.pyc", ".venv/bin/d"]
            {
                write(root, path, "");
            }
            for path in ["target/e", ".hidden/f", "build/g", "build2/h", "keep/.wanted"] {
                write(root, path, "");
            }
            write(root, ".gitignore", "build/\n!.wanted\n");
        },
        |workspace| {
            let (found, skipped) = walk(workspace);
            assert_eq!(
                found,
                names(&["x", "target", "target/e", "build2", "build2/h", "keep", "keep/.wanted"])
            );
            assert_eq!(skipped, Skipped { hidden: 2, ignored: 5, ..Skipped::default() });
        },
    );
}

#[test]
fn rules_from_above_the_root_do_not_hold() {
    both_ways(
        |root| {
            write(root, "a.log", "");
            write(root, "../.gitignore", "*.log\n");
        },
        |workspace| assert_eq!(walk(workspace).0, names(&["a.log"])),
    );
}

#[test]
fn drafts_of_our_own_are_not_there() {
    both_ways(
        |root| {
            write(root, ".pinfold-0123456789abcdef.tmp", "");
            write(root, "a", "");
        },
        |workspace| {
            let (found, skipped) = walk(workspace);
            assert_eq!((found, skipped), (names(&["a"]), Skipped::default()));
        },
    );
}

#[test]
fn a_flat_directory_is_shared_out_and_shown_once() {
    both_ways(
        |root| (0..5_000).for_each(|number| write(root, &format!("file-{number}"), "")),
        |workspace| assert_eq!(walk(workspace).0.len(), 5_000),
    );
}

#[test]
fn depth_is_counted_from_one() {
    both_ways(
        |root| write(root, "a/b/c/d", ""),
        |workspace| {
            assert_eq!(walk_to(workspace, 1).0, names(&["a"]));
            assert_eq!(walk_to(workspace, 2).0, names(&["a", "a/b"]));
            assert_eq!(walk_to(workspace, 4).0.len(), 4);
        },
    );
}

#[test]
fn paths_may_be_longer_than_the_kernel_takes_but_trees_not_endlessly_deep() {
    both_ways(
        |root| {
            let mut dir = fs::File::open(root).unwrap();
            for _ in 0..1_005 {
                rustix::fs::mkdirat(&dir, "directory", Mode::RWXU).unwrap();
                let flags = rustix::fs::OFlags::RDONLY;
                let next = rustix::fs::openat(&dir, "directory", flags, Mode::empty()).unwrap();
                dir = fs::File::from(next);
            }
        },
        |workspace| {
            let (found, skipped) = walk(workspace);
            assert_eq!(found.len(), 1_000);
            assert!(found.iter().any(|path| path.len() > 9_000));
            assert_eq!(skipped.too_deep, 1);
        },
    );
}

#[test]
fn a_directory_that_becomes_a_link_to_outside_is_not_entered() {
    for way in [Way::Kernel, Way::Walk] {
        let dir = TempDir::new().unwrap();
        let root = dir.path().join("ws");
        write(&root, "swapped/inside", "");
        write(&root, "../outside/secret", "");
        let workspace = Workspace::open([&root], Some(way)).unwrap();
        // After the root was listed, and before what is in it is opened.
        let swap = move || {
            fs::rename(root.join("swapped"), root.join("../away")).unwrap();
            symlink("../outside", root.join("swapped")).unwrap();
        };
        let opens = if way == Way::Kernel { ("openat2", 2) } else { ("openat", 2) };
        let meanwhile = vec![(opens.0, opens.1, Box::new(swap) as Box<dyn FnOnce()>)];
        let found = interleave(meanwhile, || walk(&workspace)).result.0;
        assert_eq!(found, names(&["swapped"]), "{way:?}");
    }
}

/// Reads all that it is shown.
#[derive(Default)]
struct Contents(Vec<String>);

impl Visitor for Contents {
    fn visit(&mut self, found: &Found<'_>) -> Result<()> {
        match found.kind {
            Kind::File => found.open()?,
            Kind::Symlink => found.linked_file()?.1,
            _ => return Ok(()),
        }
        .read_to_string(self.0.push_mut(String::new()))
        .unwrap();
        Ok(())
    }
}

#[test]
fn nothing_outside_is_read_while_directories_are_swapped() {
    for way in [Way::Kernel, Way::Walk] {
        let dir = TempDir::new().unwrap();
        let (root, outside) = (dir.path().join("ws"), dir.path().join("outside"));
        for number in 0..20 {
            write(&root, &format!("swapped/deep/f{number}"), "inside");
            write(&outside, &format!("deep/f{number}"), "SECRET");
        }
        symlink("../outside", root.join("trap")).unwrap();
        let workspace = Workspace::open([&root], Some(way)).unwrap();
        let stop = AtomicBool::new(false);
        let mut read = 0;
        thread::scope(|scope| {
            let _stop = StopOnDrop(&stop);
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let (one, other) = (root.join("swapped"), root.join("trap"));
                    renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                }
            });
            // On a busy machine, longer: until something was read.
            for round in 0..100_000 {
                if round >= 300 && read > 0 {
                    break;
                }
                let patience = Patience::default();
                let walk = Walk {
                    depth: 9,
                    hidden: true,
                    opinion: &usual,
                    secrecy: &|_| Secrecy::Shown,
                    patience: &patience,
                };
                let walked = workspace.walk(&[ROOT], &walk, Contents::default);
                let texts = walked.map(|(parts, _)| {
                    parts.into_iter().flat_map(|part| part.0).collect::<Vec<_>>()
                });
                let texts = texts.unwrap();
                assert!(texts.iter().all(|text| text == "inside"), "{way:?}: {texts:?}");
                read += texts.len();
            }
        });
        assert!(read > 0, "{way:?}");
    }
}

/// Ends the other thread also if this one panics.
struct StopOnDrop<'s>(&'s AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn what_cannot_be_opened_is_counted() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), "a/file", "");
    let workspace = Workspace::open([dir.path()], Some(Way::Walk)).unwrap();
    let denied = [(When::Every("openat"), Fault::Errno(13))];
    let (found, skipped) = inject(&denied, || walk(&workspace)).result;
    assert_eq!((found.len(), skipped.unreadable), (0, 1));
}

#[test]
fn a_walk_ends_when_nobody_waits_for_it() {
    let dir = TempDir::new().unwrap();
    (0..100).for_each(|number| write(dir.path(), &format!("d{number}/file"), ""));
    let workspace = Workspace::open([dir.path()], None).unwrap();
    let asked = std::sync::Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let patience = Patience::while_true(move || counter.fetch_add(1, Ordering::Relaxed) < 10);
    let walk = Walk {
        depth: 9,
        hidden: false,
        opinion: &usual,
        secrecy: &|_| Secrecy::Shown,
        patience: &patience,
    };
    let walked = workspace.walk(&[ROOT], &walk, Names::default);
    assert!(matches!(walked.map(drop), Err(Error::Impatient)));
    assert!(asked.load(Ordering::Relaxed) < 100);
}

#[test]
fn a_walk_ends_in_the_middle_of_a_large_directory() {
    const MANY: usize = 5_000;
    let dir = TempDir::new().unwrap();
    (0..MANY).for_each(|number| write(dir.path(), &format!("file-{number}"), ""));
    let workspace = Workspace::open([dir.path()], None).unwrap();
    // While it is listed, and while its entries are judged.
    for (lasts, judges) in [(1, false), (8, true)] {
        let asked = AtomicUsize::new(0);
        let patience = Patience::while_true(move || asked.fetch_add(1, Ordering::Relaxed) < lasts);
        let judged = AtomicUsize::new(0);
        let opinion = |_: &Candidate<'_>| {
            judged.fetch_add(1, Ordering::Relaxed);
            Opinion::Usual
        };
        let walk = Walk {
            depth: 9,
            hidden: false,
            opinion: &opinion,
            secrecy: &|_| Secrecy::Shown,
            patience: &patience,
        };
        let walked = workspace.walk(&[ROOT], &walk, Names::default);
        assert!(matches!(walked.map(drop), Err(Error::Impatient)));
        let judged = judged.into_inner();
        assert_eq!((judged > 0, judged < MANY), (judges, true), "{judged} of them");
    }
}

struct Panics;

impl Visitor for Panics {
    fn visit(&mut self, found: &Found<'_>) -> Result<()> {
        assert!(!found.name().starts_with(b"file-77"), "on purpose");
        Ok(())
    }
}

#[test]
fn a_visitor_that_panics_does_not_leave_the_others_waiting() {
    let dir = TempDir::new().unwrap();
    (0..2_000).for_each(|number| write(dir.path(), &format!("d{}/file-{number}", number % 50), ""));
    let workspace = Workspace::open([dir.path()], None).unwrap();
    let patience = Patience::default();
    let walk = Walk {
        depth: 9,
        hidden: false,
        opinion: &usual,
        secrecy: &|_| Secrecy::Shown,
        patience: &patience,
    };
    let walked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        workspace.walk(&[ROOT], &walk, || Panics).map(drop)
    }));
    assert!(walked.is_err());
}
