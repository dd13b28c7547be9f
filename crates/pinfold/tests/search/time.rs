//! Searches that would take too much time or memory, and how they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pinfold::operations::Search;
use pinfold::{CallOptions, Cancel, Error, Session, Settings};
use tempfile::TempDir;

use crate::{search, workspace, write};

#[test]
fn a_line_longer_than_memory_allows_is_said_not_to_be_searched() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), "long", &b"a".repeat(70 * 1024 * 1024));
    write(dir.path(), "short", b"aaa\n");
    let session = Session::open([dir.path()]).unwrap();
    let found = search(&session, &Search::new("a{3}$"));
    assert_eq!((found.total, found.skipped.too_large), (1, 1));
    let named = Search::new("a{3}$").with_path(Some("long".into()));
    let refused = session.perform(&named).unwrap_err();
    assert!(matches!(refused, Error::TooLargeToSearch { .. }), "{refused}");
}

#[test]
fn patterns_that_ruin_others_end_in_an_answer() {
    let (_dir, session) = workspace(&[("f", &"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\n".repeat(3_000))]);
    for pattern in ["(.*)*", "(a|aa)+$", "(a*)*b", "^(a+)+$", "(?i)(\\w+\\s?)*!", "a{0,500}b"] {
        let start = Instant::now();
        search(&session, &Search::new(pattern));
        assert!(start.elapsed() < Duration::from_secs(30), "{pattern}");
    }
    for pattern in ["a{1000}{1000}{1000}", &"(".repeat(5_000), &"a".repeat(20_000), "("] {
        let refused = session.perform(&Search::new(pattern)).unwrap_err();
        assert!(matches!(refused, Error::BadRegex { .. }), "{refused}");
    }
}

#[test]
fn a_search_stops_at_its_deadline_and_when_cancelled() {
    let dir = TempDir::new().unwrap();
    let text = "some words in a line of text that go on for a while\n".repeat(200_000);
    (0..30).for_each(|number| write(dir.path(), &format!("f{number}"), text.as_bytes()));
    let settings = Settings::default().with_deadline_seconds(0);
    let session = Session::with_settings([dir.path()], settings).unwrap();
    let slow = Search::new("(?:\\w+\\W+){8}zzz");
    let stopped = session.perform(&slow).unwrap_err();
    assert!(matches!(stopped, Error::Timeout { seconds: 0 }), "{stopped}");

    // The deadline passes in the middle of the search, after it was checked this often.
    let session = Session::open([dir.path()]).unwrap();
    for most in [1, 10, 100] {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let beat = move || count.fetch_add(1, Ordering::Relaxed) + 1 >= most;
        let call = CallOptions::default().with_cancel(Cancel::default().with_poll(beat));
        let ended = session.perform_with(&slow, &call).map(drop);
        assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
        let asked = asked.load(Ordering::Relaxed);
        assert!((most..most + 100).contains(&asked), "{asked}, not {most}");
    }
}

#[test]
fn a_pattern_of_many_states_is_stopped_in_time() {
    let dir = TempDir::new().unwrap();
    let text: String = (0..120_000_u32)
        .map(|n| {
            if n % 80 == 79 {
                '\n'
            } else {
                char::from(b'a' + (n.wrapping_mul(2_654_435_761) >> 13) as u8 % 8)
            }
        })
        .collect();
    (0..8).for_each(|number| write(dir.path(), &format!("f{number}"), text.as_bytes()));
    let settings = Settings::default().with_deadline_seconds(1);
    let session = Session::with_settings([dir.path()], settings).unwrap();
    // One line in which each byte may take thousands of steps.
    let (_dir, other) = workspace(&[("one.txt", &"ab".repeat(10 << 20))]);
    let start = Instant::now();
    let found = search(&other, &Search::new("(?:\\w{1,100}){10}!"));
    assert_eq!((found.total, found.skipped.too_large), (0, 1));
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    for multiline in [false, true] {
        let start = Instant::now();
        let heavy = Search::new("(?:a|b|[a-h]{1,500}){30}\\d").with_multiline(multiline);
        match session.perform(&heavy) {
            Err(stopped) => assert!(matches!(stopped, Error::Timeout { .. }), "{stopped}"),
            // A search that could not be interrupted is not started, and the error has the reason.
            Ok(done) => assert!(multiline && done.outcome.skipped.too_large == 8, "{done:?}"),
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    }
}

/// A pattern that counts is watched, also where lines cannot be.
#[test]
fn a_pattern_that_counts_does_not_outlast_the_deadline() {
    let words = "some words that go on and on without an end ".repeat(25);
    let (_dir, session) = workspace(&[
        ("lines.txt", &format!("{words}\n").repeat(20_000)),
        ("line.txt", &words.repeat(4_000)),
    ]);
    let pattern = r"(?:\w{1,30}\s){5,15}[!-/]";
    let begin = Instant::now();
    for multiline in [true, false] {
        for path in ["lines.txt", "line.txt"] {
            let search =
                Search::new(pattern).with_multiline(multiline).with_path(Some(path.into()));
            let call = CallOptions::default();
            let cancel = call.cancel.clone();
            // Whoever waits gives up soon, so that only the checks on the way count.
            let ended = thread::scope(|scope| {
                scope.spawn(move || {
                    thread::sleep(Duration::from_millis(200));
                    cancel.cancel();
                });
                session.perform_with(&search, &call).map(|_| ())
            });
            assert!(
                matches!(ended, Err(Error::Cancelled | Error::TooLargeToSearch { .. }) | Ok(())),
                "{ended:?}"
            );
        }
    }
    // It would take some hundred seconds if the deadline was not checked.
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
}

/// Patterns for which each byte of a line may take as many steps as they have positions.
#[test]
fn the_deadline_is_looked_at_inside_one_line() {
    let hostile = "ab".repeat(256 * 1024);
    let (_dir, session) =
        workspace(&[("line.txt", &hostile), ("plain.txt", &"a".repeat(512 * 1024))]);
    for pattern in [format!("a{}[cd]", ".".repeat(480)), "[ab]*a[ab]{99}[cd]".into()] {
        for path in ["line.txt", "plain.txt"] {
            for multiline in [false, true] {
                let asked = Arc::new(AtomicUsize::new(0));
                let count = asked.clone();
                let beat = move || count.fetch_add(1, Ordering::Relaxed) + 1 >= 30;
                let call = CallOptions::default().with_cancel(Cancel::default().with_poll(beat));
                let search = Search::new(pattern.as_str())
                    .with_multiline(multiline)
                    .with_path(Some(path.into()));
                // It is checked this often only if it is checked inside the line.
                let ended = session.perform_with(&search, &call).map(drop);
                assert!(matches!(ended, Err(Error::Cancelled)), "{pattern} {path}: {ended:?}");
            }
        }
    }
}

#[test]
fn a_long_line_is_found_and_cut_around_its_match() {
    let text = format!("{}needle{}\nneedle\n", "ab".repeat(3 << 20), "cd".repeat(1 << 10));
    let (_dir, session) = workspace(&[("line.txt", &text)]);
    for pattern in ["n[e]{2}dle", "(?:n|m)e+d\\w+e(?:c|$)", "d?needle[cd]{5}"] {
        let found = search(&session, &Search::new(pattern));
        let first = &found.files[0].lines[0];
        assert_eq!((first.number, found.total >= 1), (1, true), "{pattern}");
        assert!(String::from_utf8_lossy(&first.text).contains("needle"), "{pattern}");
    }
}
