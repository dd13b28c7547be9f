//! Walks that end before they are done.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pinfold_confine::{
    Candidate, Deadline, Error, FilterDecision, Name, Place, Result, Visitor, Walk, WalkEntry,
    Workspace,
};
use tempfile::TempDir;

use crate::{Names, ROOT, usually, write};

#[test]
fn a_walk_ends_when_nobody_waits_for_it() {
    let dir = TempDir::new().unwrap();
    (0..100).for_each(|number| write(dir.path(), &format!("d{number}/file"), ""));
    let workspace = Workspace::open([dir.path()], None).unwrap();
    let asked = std::sync::Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let deadline = Deadline::lasting_while(move || counter.fetch_add(1, Ordering::Relaxed) < 10);
    let walk = usually(&deadline);
    let walked = workspace.walk(&[ROOT], &walk, Names::default);
    assert!(matches!(walked.map(drop), Err(Error::TimedOut)));
    assert!(asked.load(Ordering::Relaxed) < 100);
}

#[test]
fn a_walk_ends_in_the_middle_of_a_large_directory() {
    const MANY: usize = 5_000;
    let dir = TempDir::new().unwrap();
    (0..MANY).for_each(|number| write(dir.path(), &format!("file-{number}"), ""));
    let workspace = Workspace::open([dir.path()], None).unwrap();
    // While it is listed, and while its entries are filtered.
    for (lasts, judges) in [(1, false), (8, true)] {
        let asked = AtomicUsize::new(0);
        let deadline =
            Deadline::lasting_while(move || asked.fetch_add(1, Ordering::Relaxed) < lasts);
        let judged = AtomicUsize::new(0);
        let filter_decision = |_: &Candidate<'_>| {
            judged.fetch_add(1, Ordering::Relaxed);
            FilterDecision::Default
        };
        let walk = Walk { filter_decision: &filter_decision, ..usually(&deadline) };
        let walked = workspace.walk(&[ROOT], &walk, Names::default);
        assert!(matches!(walked.map(drop), Err(Error::TimedOut)));
        let judged = judged.into_inner();
        assert_eq!((judged > 0, judged < MANY), (judges, true), "{judged} of them");
    }
}

/// Ends the walk as soon as all entries before `d3` have been visited.
struct FirstOnes<'s>(&'s Mutex<Vec<Place>>);

impl Visitor for FirstOnes<'_> {
    fn visit(&mut self, found: &WalkEntry<'_>) -> Result<()> {
        self.0.lock().unwrap().push(found.place());
        Ok(())
    }

    fn goes_on(&mut self, first_open: &dyn Fn() -> Option<Vec<u8>>) -> bool {
        let path = [Name::parse(b"d3").unwrap()].into_iter().collect();
        let wanted = Place { root: 0, path };
        first_open().is_some_and(|first| first < wanted.sort_key())
    }
}

#[test]
fn a_walk_that_ends_early_has_visited_the_first_entries() {
    let dir = TempDir::new().unwrap();
    for number in 0..900 {
        write(dir.path(), &format!("d{}/{}/file-{number}", number % 9, number % 30), "");
    }
    let workspace = Workspace::open([dir.path()], None).unwrap();
    let deadline = Deadline::default();
    let visited = Mutex::default();
    workspace.walk(&[ROOT], &usually(&deadline), || FirstOnes(&visited)).unwrap();
    let visited = visited.into_inner().unwrap();
    let files = |directory: usize| {
        let start = format!("d{directory}/");
        let is_file = |place: &&Place| place.path.to_string().contains("/file-");
        let files = visited.iter().filter(is_file);
        files.filter(|place| place.path.to_string().starts_with(&start)).count()
    };
    assert_eq!([files(0), files(1), files(2)], [100; 3]);
}

struct Panics;

impl Visitor for Panics {
    fn visit(&mut self, found: &WalkEntry<'_>) -> Result<()> {
        assert!(!found.name().starts_with(b"file-77"), "on purpose");
        Ok(())
    }
}

#[test]
fn a_visitor_that_panics_does_not_leave_the_others_waiting() {
    let dir = TempDir::new().unwrap();
    (0..2_000).for_each(|number| write(dir.path(), &format!("d{}/file-{number}", number % 50), ""));
    let workspace = Workspace::open([dir.path()], None).unwrap();
    let deadline = Deadline::default();
    let walk = usually(&deadline);
    let walked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        workspace.walk(&[ROOT], &walk, || Panics).map(drop)
    }));
    assert!(walked.is_err());
}
