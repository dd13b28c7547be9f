//! Changes through a session: conflicts, faults, and many at once.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::sync::{Arc, Barrier};
use std::thread;

use pinfold::operations::{Read, Write};
use pinfold::{CallOptions, Error, ReadBeforeWrite, Session};
use pinfold_confine::fault::{Fault, When, each_call, inject};
use pinfold_testkit::{can_exchange, names_in};
use tempfile::TempDir;

fn session() -> (TempDir, Session) {
    let dir = TempDir::new().unwrap();
    let session = Session::open([dir.path()]).unwrap();
    (dir, session)
}

fn seen(path: &str, content: impl Into<String>) -> Write {
    let mut write = Write::new(path, content);
    write.read_rule = ReadBeforeWrite::Require;
    write
}

#[test]
fn fifty_blind_writes_at_once_all_land() {
    let (dir, session) = session();
    let barrier = Barrier::new(50);
    thread::scope(|scope| {
        for number in 0..50 {
            let (session, barrier) = (&session, &barrier);
            scope.spawn(move || {
                barrier.wait();
                // Half of them in a directory that does not exist at first.
                let path = if number % 2 == 0 { "a.txt" } else { "new/deep/b.txt" };
                session.perform(&Write::new(path, number.to_string())).unwrap();
            });
        }
    });
    for path in ["a.txt", "new/deep/b.txt"] {
        assert!(fs::read_to_string(dir.path().join(path)).unwrap().parse::<u32>().unwrap() < 50);
    }
    assert_eq!(names_in(&dir.path().join("new/deep")), ["b.txt"]);
    assert_eq!(names_in(dir.path()), ["a.txt", "new"]);
}

#[test]
fn of_two_sessions_that_create_one_file_one_is_told() {
    let dir = TempDir::new().unwrap();
    for round in 0..50 {
        let path = format!("new-{round}.txt");
        let sessions = [0, 1].map(|_| Session::open([dir.path()]).unwrap());
        let barrier = Arc::new(Barrier::new(2));
        let results = thread::scope(|scope| {
            let threads = sessions.each_ref().map(|session| {
                let (barrier, path) = (barrier.clone(), path.clone());
                scope.spawn(move || {
                    barrier.wait();
                    session.perform(&seen(&path, "mine")).map(|done| done.outcome.created)
                })
            });
            threads.map(|thread| thread.join().unwrap())
        });
        let created = results.iter().filter(|result| matches!(result, Ok(true))).count();
        // The other one either conflicts, or writes the same text and changes nothing.
        let conflicts = results
            .iter()
            .filter(|result| matches!(result, Err(Error::NotRead { .. }) | Ok(false)))
            .count();
        assert_eq!((created, conflicts), (1, 1), "{results:?}");
    }
}

#[test]
fn eight_sessions_that_read_before_they_write_lose_nothing() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("log"), "").unwrap();
    let exchanges = can_exchange(dir.path());
    thread::scope(|scope| {
        for writer in 0..8 {
            let session = Session::open([dir.path()]).unwrap();
            scope.spawn(move || {
                for number in 0..20 {
                    loop {
                        let text = match session.perform(&Read::new("log")) {
                            Ok(done) => done.outcome.page.content,
                            // There, a file that is replaced has no name for a moment.
                            Err(Error::NotFound { .. }) if !exchanges => continue,
                            Err(other) => panic!("{other:?}"),
                        };
                        match session.perform(&seen("log", format!("{text}{writer}.{number}\n"))) {
                            Ok(_) => break,
                            Err(Error::Changed { .. }) => {}
                            Err(other) => panic!("{other:?}"),
                        }
                    }
                }
            });
        }
    });
    let text = fs::read_to_string(dir.path().join("log")).unwrap();
    for writer in 0..8 {
        let own: Vec<_> =
            text.lines().filter(|line| line.starts_with(&format!("{writer}."))).collect();
        let expected: Vec<_> = (0..20).map(|number| format!("{writer}.{number}")).collect();
        assert_eq!(own, expected);
    }
}

#[test]
fn whatever_call_fails_the_session_tells_the_truth() {
    let io = Fault::Errno(5);
    for (setup, path) in [(Some("old"), "f"), (None, "f"), (None, "new/f")] {
        for nth in each_call() {
            let (dir, session) = session();
            if let Some(old) = setup {
                fs::write(dir.path().join(path), old).unwrap();
                session.perform(&Read::new(path)).unwrap();
            }
            let write = seen(path, "new");
            let report = inject(&[(When::Nth(nth), io)], || session.perform(&write).map(drop));
            let found = fs::read_to_string(dir.path().join(path)).ok();
            match report.result {
                Ok(()) => assert_eq!(found.as_deref(), Some("new")),
                Err(_) => assert_eq!(found.as_deref(), setup, "call {nth}: {:?}", report.fired),
            }
            // The session still works: the next call succeeds.
            session.perform(&write).unwrap();
            assert_eq!(fs::read_to_string(dir.path().join(path)).unwrap(), "new");
            if report.fired.is_none() {
                break;
            }
        }
    }
}

#[test]
fn a_file_that_is_written_with_its_own_beginning_is_cut() {
    let (dir, session) = session();
    let long = "x".repeat(100_000);
    fs::write(dir.path().join("f"), &long).unwrap();
    // The number of bytes that the detection of the encoding reads, and one more.
    for (changed, len) in [(true, 65_537), (false, 65_537), (true, 65_536)] {
        let done = session.perform(&Write::new("f", &long[..len])).unwrap();
        assert_eq!((done.outcome.changed, done.outcome.created), (changed, false));
        assert_eq!(fs::metadata(dir.path().join("f")).unwrap().len(), len as u64);
    }
}

#[test]
fn added_and_removed_lines_are_counted_if_asked_for_and_in_a_dry_run() {
    let (dir, session) = session();
    let counted = Some((1, 2));
    for (counts_lines, dry_run, lines) in
        [(true, false, counted), (false, false, None), (false, true, counted)]
    {
        fs::write(dir.path().join("f"), "one\ntwo\nthree\n").unwrap();
        let write = Write::new("f", "one\n2 and 3\n").with_counts_lines(counts_lines);
        let options = CallOptions::default().with_dry_run(dry_run);
        let done = session.perform_with(&write, &options).unwrap();
        assert_eq!(done.outcome.lines, lines, "{counts_lines} {dry_run}");
    }
}

#[test]
fn a_root_that_cannot_be_opened_is_named() {
    let error = Session::open(["/nowhere/at/all"]).unwrap_err();
    assert_eq!(error.to_string(), "cannot use `/nowhere/at/all` as a root: not found");
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let error = Session::open([dir.path().join("file")]).unwrap_err();
    assert!(error.to_string().ends_with("as a root: not a directory"), "{error}");
}
