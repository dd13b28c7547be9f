//! After a process was killed at any system call of a change, all changes before it can still be undone.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::path::Path;

use pinfold::operations::{Delete, Move, Undo, Write};
use pinfold::{JournalSetting, Session, Settings};
use pinfold_confine::fault::{Fault, When, inject};
use tempfile::TempDir;

fn session(dir: &Path) -> Session {
    let mut settings = Settings::default();
    settings.durability = pinfold::Durability::None;
    settings.journal = Some(JournalSetting::Directory(dir.join("journal")));
    Session::with_settings([dir.join("ws")], settings).unwrap()
}

/// The task of a process that this test starts: `DIRECTORY|KIND|NTH`, killed at the n-th system call. With 0 it is the
/// next process, which undoes all changes.
#[test]
fn task_of_another_process() {
    let Ok(task) = std::env::var("PINFOLD_TEST_TASK") else { return };
    let [dir, kind, nth] = task.split('|').collect::<Vec<_>>().try_into().unwrap();
    let session = session(Path::new(dir));
    if nth == "0" {
        while session.perform(&Undo::newest()).is_ok() {}
    } else {
        let kill = (When::Nth(nth.parse().unwrap()), Fault::Exit);
        let change = || match kind {
            "write" => session.perform(&Write::new("a.txt", "three\n")).map(drop),
            "delete" => session.perform(&Delete::new("a.txt")).map(drop),
            _ => session.perform(&Move::new("a.txt", "b.txt")).map(drop),
        };
        inject(&[kill], change).result.unwrap();
    }
    println!("done");
}

/// Runs the task, and tells whether it came to its end.
fn run_task(dir: &Path, kind: &str, nth: usize) -> bool {
    let mut command = pinfold_testkit::this_program();
    command.args(["task_of_another_process", "--exact", "--nocapture"]);
    let task = format!("{}|{kind}|{nth}", dir.display());
    let output = command.env("PINFOLD_TEST_TASK", task).output().unwrap();
    String::from_utf8_lossy(&output.stdout).contains("done")
}

#[test]
fn every_change_before_a_killed_one_can_be_undone() {
    for kind in ["write", "delete", "move"] {
        for nth in 1.. {
            let dir = TempDir::new().unwrap();
            let file = dir.path().join("ws/a.txt");
            fs::create_dir(dir.path().join("ws")).unwrap();
            fs::write(&file, "zero\n").unwrap();
            for content in ["one\n", "two\n"] {
                session(dir.path()).perform(&Write::new("a.txt", content)).unwrap();
            }
            let done = run_task(dir.path(), kind, nth);
            assert!(run_task(dir.path(), kind, 0), "{kind}: after {nth}");
            let left = fs::read_to_string(&file);
            assert_eq!(left.ok().as_deref(), Some("zero\n"), "{kind}: killed at {nth}");
            if done {
                break;
            }
        }
    }
}
