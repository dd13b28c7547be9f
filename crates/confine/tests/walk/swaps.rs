//! Walks of directories that another thread swaps meanwhile.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use pinfold_confine::fault::{interleave, rounds};
use pinfold_confine::{Deadline, Kind, OpenMethod, Result, Visitor, Walk, WalkEntry, Workspace};
use tempfile::TempDir;

use crate::exchange::exchange;
use crate::{ROOT, names, usually, walk, write};

#[test]
fn a_directory_that_becomes_a_link_to_outside_is_not_entered() {
    for method in [OpenMethod::Kernel, OpenMethod::NameByName] {
        let dir = TempDir::new().unwrap();
        let root = dir.path().join("ws");
        write(&root, "swapped/inside", "");
        write(&root, "../outside/secret", "");
        let workspace = Workspace::open([&root], Some(method)).unwrap();
        // After the root was listed, and before its entries are opened.
        let swap = move || {
            fs::rename(root.join("swapped"), root.join("../away")).unwrap();
            symlink("../outside", root.join("swapped")).unwrap();
        };
        let opens = if method == OpenMethod::Kernel { ("openat2", 2) } else { ("openat", 2) };
        let meanwhile = vec![(opens.0, opens.1, Box::new(swap) as Box<dyn FnOnce()>)];
        let found = interleave(meanwhile, || walk(&workspace)).result.0;
        assert_eq!(found, names(&["swapped"]), "{method:?}");
    }
}

/// Reads every visited file.
#[derive(Default)]
struct Contents(Vec<String>);

impl Visitor for Contents {
    fn visit(&mut self, found: &WalkEntry<'_>) -> Result<()> {
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
    for method in [OpenMethod::Kernel, OpenMethod::NameByName] {
        let dir = TempDir::new().unwrap();
        let (root, outside) = (dir.path().join("ws"), dir.path().join("outside"));
        for number in 0..20 {
            write(&root, &format!("swapped/deep/f{number}"), "inside");
            write(&outside, &format!("deep/f{number}"), "SECRET");
        }
        symlink("../outside", root.join("trap")).unwrap();
        let workspace = Workspace::open([&root], Some(method)).unwrap();
        let stop = AtomicBool::new(false);
        let mut read = 0;
        thread::scope(|scope| {
            let _stop = StopOnDrop(&stop);
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    exchange(&root.join("swapped"), &root.join("trap"));
                }
            });
            // On a busy machine this takes longer: until something was read.
            for round in 0..100_000 {
                if round >= rounds(300) && read > 0 {
                    break;
                }
                let deadline = Deadline::default();
                let walk = Walk { hidden: true, ..usually(&deadline) };
                let walked = workspace.walk(&[ROOT], &walk, Contents::default);
                let texts = walked.map(|(parts, _)| {
                    parts.into_iter().flat_map(|part| part.0).collect::<Vec<_>>()
                });
                let texts = texts.unwrap();
                assert!(texts.iter().all(|text| text == "inside"), "{method:?}: {texts:?}");
                read += texts.len();
            }
        });
        assert!(read > 0, "{method:?}");
    }
}

/// Also ends the other thread if this one panics.
struct StopOnDrop<'s>(&'s AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
