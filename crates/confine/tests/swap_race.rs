//! A directory that is swapped with a link to outside repeatedly while calls run.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

mod exchange;
mod landlock;

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use exchange::exchange;
use landlock::{Landlock, off_and_on, restricted};
use pinfold_confine::fault::rounds;
use pinfold_confine::{Durability, Error, OpenMethod, Workspace};
use tempfile::TempDir;

/// Longer than any content inside, so its size shows where it is from.
const SECRET: &str = "SECRET, and nobody's business";

#[test]
fn nothing_outside_is_read_created_or_changed() {
    for landlock in off_and_on() {
        for method in [OpenMethod::Kernel, OpenMethod::NameByName] {
            race(method, landlock);
        }
    }
}

fn race(method: OpenMethod, landlock: Landlock) {
    let dir = TempDir::new().unwrap();
    let (ws, outside) = (dir.path().join("ws"), dir.path().join("outside"));
    for (place, text) in [(ws.join("swapped"), "inside"), (outside.clone(), SECRET)] {
        fs::create_dir_all(place.join("deep")).unwrap();
        fs::write(place.join("f.txt"), text).unwrap();
        fs::write(place.join("deep/f.txt"), text).unwrap();
    }
    symlink("../outside", ws.join("trap")).unwrap();
    let workspace = Workspace::open([&ws], Some(method)).unwrap();
    let in_one_step = exchange(&ws.join("swapped"), &ws.join("trap"));
    exchange(&ws.join("swapped"), &ws.join("trap"));
    let is_refusal = |error: &Error| match error {
        Error::Outside | Error::NotFound | Error::Changed | Error::DirectoryMoved => true,
        // A file that was set aside cannot always go back to its place, and is named then.
        Error::RollbackFailed { .. } => !in_one_step,
        _ => false,
    };
    let stop = AtomicBool::new(false);
    let mut counts = [0; 3];
    thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                exchange(&ws.join("swapped"), &ws.join("trap"));
            }
        });
        counts =
            restricted(landlock, &[&ws], || call_while_swapped(&workspace, method, is_refusal));
    });
    let mut names: Vec<_> = fs::read_dir(&outside)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["deep", "f.txt"], "created outside by {method:?}");
    assert_eq!(fs::read_to_string(outside.join("f.txt")).unwrap(), SECRET);
    assert_eq!(fs::read_to_string(outside.join("deep/f.txt")).unwrap(), SECRET);
    let [inside, refused, looks] = counts;
    // Without both, there was no race.
    assert!(inside > 0 && refused > 0, "{method:?}: {inside} inside, {refused} refused");
    assert!(looks > 0, "{method:?}");
}

/// Makes every kind of call repeatedly. Counts the successful calls, the refused ones, and the checks.
fn call_while_swapped(
    workspace: &Workspace,
    method: OpenMethod,
    is_refusal: impl Fn(&Error) -> bool,
) -> [usize; 3] {
    let (mut inside, mut refused, mut looks) = (0, 0, 0);
    // On a busy machine this takes longer: until each case has occurred.
    let rounds = rounds(1_000);
    for round in 0..100 * rounds {
        if round >= rounds && inside > 0 && refused > 0 && looks > 0 {
            break;
        }
        for path in ["swapped/f.txt", "swapped/deep/f.txt", "swapped/../swapped/f.txt"] {
            match workspace.file(&path.into()) {
                Ok((_, mut file)) => {
                    let mut text = String::new();
                    file.read_to_string(&mut text).unwrap();
                    assert!(!text.contains("SECRET"), "read from outside by {method:?}");
                    inside += 1;
                }
                Err(Error::Outside | Error::NotFound | Error::Changed) => refused += 1,
                Err(other) => panic!("{other:?}"),
            }
        }
        let new = format!("swapped/new-{round}");
        for path in [new.as_str(), "swapped/f.txt", "swapped/fresh/deeper/f.txt"] {
            let target = workspace.target(&path.into(), &Default::default());
            match target.and_then(|target| target.replace(b"ours", Durability::None)) {
                Ok(_) => inside += 1,
                Err(error) if is_refusal(&error) => refused += 1,
                Err(other) => panic!("{other:?}"),
            }
        }
        match workspace
            .removal(&"swapped/f.txt".into(), &Default::default())
            .and_then(|removal| removal.remove(Durability::None))
        {
            Ok(_) => inside += 1,
            Err(error) if is_refusal(&error) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
        if let Ok(seen) = workspace.lstat(&"swapped/deep/f.txt".into()) {
            assert_eq!(seen.place.path.to_string(), "swapped/deep/f.txt");
            assert!(seen.meta.len < SECRET.len() as u64, "looked at outside by {method:?}");
            looks += 1;
        }
    }
    [inside, refused, looks]
}

/// Also ends the other thread if this one panics.
struct StopOnDrop<'s>(&'s AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
