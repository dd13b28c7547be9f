//! Walks of hostile trees.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

mod ends;
#[path = "../exchange/mod.rs"]
mod exchange;
mod swaps;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use pinfold_confine::fault::{Fault, When, inject, rounds};
use pinfold_confine::{
    Candidate, Deadline, FilterDecision, IgnoreFiles, IndexMode, OpenMethod, Place, RelPath,
    Result, Skipped, Visibility, Visitor, Walk, WalkEntry, Workspace,
};
use rustix::fs::Mode;
use tempfile::TempDir;

/// Makes a FIFO. `mkfifoat` is not on every system.
fn make_fifo(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

const ROOT: Place = Place { root: 0, path: RelPath::root() };

#[derive(Default)]
struct Names(Vec<String>);

impl Visitor for Names {
    fn visit(&mut self, found: &WalkEntry<'_>) -> Result<()> {
        self.0.push(found.place().path.to_string());
        Ok(())
    }
}

fn usual(_: &Candidate<'_>) -> FilterDecision {
    FilterDecision::Default
}

/// A walk of everything that is not hidden.
fn usually(deadline: &Deadline) -> Walk<'_> {
    let visibility = &|_: &Candidate<'_>| Visibility::Visible;
    let index = IndexMode::Auto;
    Walk {
        depth: usize::MAX,
        hidden: false,
        filter_decision: &usual,
        visibility,
        deadline,
        index,
        watch: true,
        ignore_files: IgnoreFiles::STANDARD,
    }
}

fn walk(workspace: &Workspace) -> (BTreeSet<String>, Skipped) {
    walk_to(workspace, usize::MAX)
}

fn walk_to(workspace: &Workspace, depth: usize) -> (BTreeSet<String>, Skipped) {
    let deadline = Deadline::default();
    let walk = Walk { depth, ..usually(&deadline) };
    let (parts, skipped) = workspace.walk(&[ROOT], &walk, Names::default).unwrap();
    let names: Vec<_> = parts.into_iter().flat_map(|part| part.0).collect();
    let set: BTreeSet<_> = names.iter().cloned().collect();
    assert_eq!(names.len(), set.len(), "shown twice");
    (set, skipped)
}

fn both_ways(set_up: impl Fn(&Path), check: impl Fn(&Workspace)) {
    for method in [OpenMethod::Kernel, OpenMethod::NameByName] {
        let dir = TempDir::new().unwrap();
        let root = dir.path().join("ws");
        fs::create_dir(&root).unwrap();
        set_up(&root);
        check(&Workspace::open([&root], Some(method)).unwrap());
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
        make_fifo,
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
                // From a directory further down, the rules above are read in another way.
                let start = workspace.directory(&"sub".into()).unwrap();
                let deadline = Deadline::default();
                let walk = Walk { depth: 1, ..usually(&deadline) };
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
fn temp_files_of_our_own_are_not_there() {
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
    let files = rounds(5_000);
    both_ways(
        |root| (0..files).for_each(|number| write(root, &format!("file-{number}"), "")),
        |workspace| assert_eq!(walk(workspace).0.len(), files),
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
    if !pinfold_testkit::can_have_long_paths(&std::env::temp_dir()) {
        return;
    }
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
fn what_cannot_be_opened_is_counted_unless_it_is_the_start() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), "a/file", "");
    let workspace = Workspace::open([dir.path()], Some(OpenMethod::NameByName)).unwrap();
    let (mut counted, mut refused) = (0, 0);
    for nth in 1.. {
        let report = inject(&[(When::Nth(nth), Fault::Errno(13))], || {
            workspace.walk(&[ROOT], &usually(&Deadline::default()), Names::default)
        });
        match report.result {
            Err(error) => refused += usize::from(matches!(error, pinfold_confine::Error::Denied)),
            Ok((_, skipped)) => counted += skipped.unreadable,
        }
        if report.fired.is_none() {
            break;
        }
    }
    assert!(refused > 0 && counted > 0, "{refused} refused, {counted} counted");
}
