//! Searching: pages, budgets, time, and what is found where.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use pinfold::operations::{AnswerWith, Find, FindOrder, List, ListOrder, Search, Searched, Which};
use pinfold::{Call, Cancel, Error, Role, Session, Settings};
use pinfold_confine::fault::{Fault, When, inject};
use proptest::prelude::*;
use tempfile::TempDir;

fn workspace(files: &[(&str, &str)]) -> (TempDir, Session) {
    let dir = TempDir::new().unwrap();
    for (path, content) in files {
        write(dir.path(), path, content.as_bytes());
    }
    let session = Session::open([dir.path()]).unwrap();
    (dir, session)
}

fn write(root: &Path, path: &str, content: &[u8]) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn search(session: &Session, search: &Search) -> Searched {
    session.perform(search).unwrap().outcome
}

/// The matching lines of a page: path, number, text.
fn lines(searched: &Searched) -> Vec<(String, u64, String)> {
    let mut found = Vec::new();
    for file in &searched.files {
        for line in file.lines.iter().filter(|line| line.role == Role::Match) {
            let text = String::from_utf8(line.text.clone()).unwrap();
            found.push((file.place.path.to_string(), line.number, text));
        }
    }
    found
}

fn with_context(before: usize, after: usize) -> AnswerWith {
    AnswerWith::Lines { before, after }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pages_together_are_the_whole(
        files in prop::collection::vec(prop::collection::vec(0..4_u8, 0..30), 1..6),
        most in 1..12_u64,
        budget in 60..2_000_usize,
        context in 0..4_usize,
    ) {
        let dir = TempDir::new().unwrap();
        let mut expected = Vec::new();
        for (number, file) in files.iter().enumerate() {
            let name = format!("d{}/f{number}", number % 2);
            let text: String = file.iter().map(|kind| match kind {
                0 => "match here\n",
                _ => "other\n",
            }).collect();
            write(dir.path(), &name, text.as_bytes());
            let hits = file.iter().zip(1..).filter(|(kind, _)| **kind == 0);
            expected.extend(hits.map(|(_, line)| (name.clone(), line, "match here\n".to_owned())));
        }
        expected.sort();
        let session = Session::open([dir.path()]).unwrap();
        let mut found = Vec::new();
        loop {
            let page = search(&session, &Search {
                skip: found.len() as u64,
                most: Some(most),
                budget,
                answer: with_context(context, context),
                ..Search::new("match")
            });
            prop_assert_eq!(page.total, expected.len() as u64);
            prop_assert_eq!(page.shown, lines(&page).len() as u64);
            prop_assert!(page.shown <= most);
            for file in &page.files {
                // Every line is one of the file's, in order, and near a match that is shown.
                let numbers: Vec<_> = file.lines.iter().map(|line| line.number).collect();
                prop_assert!(numbers.is_sorted_by(|one, other| one < other));
                for line in &file.lines {
                    let near = file.lines.iter().any(|other| {
                        other.role == Role::Match && other.number.abs_diff(line.number) <= context as u64
                    });
                    prop_assert!(near);
                }
            }
            found.extend(lines(&page));
            if found.len() == expected.len() {
                break;
            }
            prop_assert!(page.shown > 0, "no progress");
        }
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn a_page_is_found_again_where_its_lines_were_too_many_to_keep() {
    let dir = TempDir::new().unwrap();
    let many = "a line that matches, as all of them do\n".repeat(5_000);
    for number in 0..60 {
        write(dir.path(), &format!("f{number:02}"), many.as_bytes());
    }
    let session = Session::open([dir.path()]).unwrap();
    for skip in [0, 4_999, 150_000, 299_995] {
        let page = search(&session, &Search { skip, most: Some(3), ..Search::new("matches") });
        assert_eq!((page.total, page.shown), (300_000, 3));
        let first = &lines(&page)[0];
        let (file, line) = (skip / 5_000, skip % 5_000 + 1);
        assert_eq!((first.0.as_str(), first.1), (format!("f{file:02}").as_str(), line));
    }
}

#[test]
fn context_at_the_edge_of_a_page_belongs_to_matches_on_it() {
    let (_dir, session) = workspace(&[("f", "a\nM1\nb\nc\nM2\nM3\nd\ne\nf\nM4\n")]);
    let shown = |skip, most| {
        let page = search(
            &session,
            &Search { skip, most: Some(most), answer: with_context(1, 1), ..Search::new("M") },
        );
        let lines = page.files[0].lines.iter();
        lines.map(|line| (line.number, line.role)).collect::<Vec<_>>()
    };
    use Role::{Context, Elsewhere, Match};
    assert_eq!(shown(0, 1), [(1, Context), (2, Match), (3, Context)]);
    assert_eq!(shown(1, 1), [(4, Context), (5, Match), (6, Elsewhere)]);
    assert_eq!(shown(2, 1), [(5, Elsewhere), (6, Match), (7, Context)]);
    assert_eq!(shown(3, 1), [(9, Context), (10, Match)]);
}

#[test]
fn a_long_line_is_cut_around_its_match() {
    let long = format!("{}NEEDLE{}\n", "é".repeat(50_000), "ü".repeat(60_000));
    let (_dir, session) = workspace(&[("f", &long)]);
    let text = &lines(&search(&session, &Search::new("NEEDLE")))[0].2;
    assert!(text.starts_with("[+49500 characters] ...ééé"), "{}", &text[..60]);
    assert!(text.ends_with("... [+58506 characters]\n"));
    assert!(text.contains("éNEEDLEü"));
    let kept = text.chars().filter(|character| "éüNEDL".contains(*character)).count();
    assert_eq!(kept, 2_000);
}

#[test]
fn a_line_longer_than_memory_allows_is_said_not_to_be_searched() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), "long", &b"a".repeat(70 * 1024 * 1024));
    write(dir.path(), "short", b"aaa\n");
    let session = Session::open([dir.path()]).unwrap();
    let found = search(&session, &Search::new("a{3}$"));
    assert_eq!((found.total, found.skipped.too_large), (1, 1));
    let named = Search { path: Some("long".into()), ..Search::new("a{3}$") };
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
    let settings = Settings { deadline_seconds: 0, ..Settings::default() };
    let session = Session::with_settings([dir.path()], settings).unwrap();
    let slow = Search::new("(?:\\w+\\W+){8}zzz");
    let stopped = session.perform(&slow).unwrap_err();
    assert!(matches!(stopped, Error::Timeout { seconds: 0 }), "{stopped}");

    // In the midst of it, which it does not come to without having been asked so often.
    let session = Session::open([dir.path()]).unwrap();
    for most in [1, 10, 100] {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let beat = move || count.fetch_add(1, Ordering::Relaxed) + 1 >= most;
        let call = Call { cancel: Cancel::default().beating(beat), ..Call::default() };
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
    let settings = Settings { deadline_seconds: 1, ..Settings::default() };
    let session = Session::with_settings([dir.path()], settings).unwrap();
    // One line of which each byte may take thousands of steps.
    let (_dir, other) = workspace(&[("one.txt", &"ab".repeat(10 << 20))]);
    let start = Instant::now();
    let found = search(&other, &Search::new("(?:\\w{1,100}){10}!"));
    assert_eq!((found.total, found.skipped.too_large), (0, 1));
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    for multiline in [false, true] {
        let start = Instant::now();
        let heavy = Search { multiline, ..Search::new("(?:a|b|[a-h]{1,500}){30}\\d") };
        match session.perform(&heavy) {
            Err(stopped) => assert!(matches!(stopped, Error::Timeout { .. }), "{stopped}"),
            // Where it cannot be stopped it is not begun, which is said.
            Ok(done) => assert!(multiline && done.skipped.too_large == 8, "{done:?}"),
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    }
}

#[test]
fn a_place_that_is_named_is_searched_whatever_ignores_it() {
    let (_dir, session) = workspace(&[
        (".gitignore", "ig/**\nstar/*\nbuild/\n*.log\n"),
        ("ig/a.txt", "M"),
        ("star/a.txt", "M"),
        ("build/a.txt", "M"),
        ("build/b.log", "M"),
        ("open/b.log", "M"),
    ]);
    for (path, total) in [("ig", 1), ("star", 1), ("build", 1), ("open", 0)] {
        let named = Search { path: Some(path.into()), ..Search::new("M") };
        assert_eq!(search(&session, &named).total, total, "{path}");
        let find = Find { path: Some(path.into()), ..Find::new("*") };
        assert_eq!(session.perform(&find).unwrap().total, total, "{path}");
    }
    assert_eq!(search(&session, &Search::new("M")).total, 0);
}

#[test]
fn names_that_are_always_skipped_are_found_by_name_only() {
    let (_dir, session) = workspace(&[
        ("src/a.js", "M"),
        ("src/.git/b.js", "M"),
        ("node_modules/c.js", "M"),
        (".venv/d.js", "M"),
    ]);
    for glob in ["**/*", "*", "*.js", "src/**"] {
        let all = Search { glob: Some(glob.into()), ..Search::new("M") };
        assert_eq!(search(&session, &all).total, 1, "{glob}");
    }
    assert_eq!(session.perform(&Find::new("**/.*/*")).unwrap().total, 0);
    assert_eq!(session.perform(&Find::new("**/node_modules/*")).unwrap().total, 1);
}

#[test]
fn an_exclusion_holds_from_wherever_the_search_starts() {
    let (_dir, session) = workspace(&[("sub/x.rs", "M"), ("sub/y.rs", "M")]);
    let excluding = |path: Option<&str>, glob: &str| {
        let path = path.map(Into::into);
        search(&session, &Search { path, glob: Some(glob.into()), ..Search::new("M") }).total
    };
    assert_eq!(excluding(None, "*.rs,!sub/x.rs"), 1);
    assert_eq!(excluding(Some("sub"), "*.rs,!sub/x.rs"), 1);
    assert_eq!(excluding(Some("sub"), "*.rs,!x.rs"), 1);
}

#[test]
fn an_ignore_file_that_is_cut_is_said() {
    let (dir, session) = workspace(&[("a.txt", "M"), ("b.txt", "M")]);
    write(dir.path(), ".gitignore", format!("a.txt\n{}", "x\n".repeat(20_000)).as_bytes());
    let found = search(&session, &Search::new("M"));
    assert_eq!((found.total, found.skipped.rules), (1, 1));
    write(dir.path(), ".gitignore", format!("a.txt\n#{}\nb.txt\n", "x".repeat(2 << 20)).as_bytes());
    let found = search(&session, &Search::new("M"));
    assert_eq!((found.total, found.skipped.rules), (1, 1));
}

#[test]
fn files_come_newest_first_and_then_by_path() {
    let (dir, session) = workspace(&[
        ("b/x.rs", "M"),
        ("a/y.rs", "M"),
        ("a/new.rs", "M"),
        ("a.rs", "M"),
        ("c.txt", "M"),
    ]);
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    for (path, age) in [("b/x.rs", 10), ("a/y.rs", 10), ("a/new.rs", 0), ("a.rs", 10), ("c.txt", 5)]
    {
        let file = fs::File::options().write(true).open(dir.path().join(path)).unwrap();
        file.set_modified(old - Duration::from_secs(age)).unwrap();
    }
    let found = session.perform(&Find::new("**/*.rs")).unwrap();
    let paths: Vec<_> = found.files.iter().map(|file| file.place.path.to_string()).collect();
    // `a` comes before `a.rs`, as in a sorted tree.
    assert_eq!(paths, ["a/new.rs", "a/y.rs", "a.rs", "b/x.rs"]);
    let two = session.perform(&Find { most: 2, ..Find::new("**/*.rs") }).unwrap();
    assert_eq!((two.files.len(), two.total), (2, 4));
    assert_eq!(two.files[1].place.path.to_string(), "a/y.rs");
    let found = search(&session, &Search { answer: AnswerWith::Files, ..Search::new("M") });
    let paths: Vec<_> = found.files.iter().map(|file| file.place.path.to_string()).collect();
    assert_eq!(paths, ["a/new.rs", "c.txt", "a/y.rs", "a.rs", "b/x.rs"]);
}

#[test]
fn a_pattern_that_spells_out_a_hidden_or_ignored_place_looks_inside() {
    let (_dir, session) = workspace(&[
        (".gitignore", "dist/\n*.log\n"),
        (".github/workflows/ci.yml", ""),
        ("sub/.github/ci.yml", ""),
        ("dist/out.js", ""),
        ("dist/.secret.js", ""),
        ("pkg/node_modules/lib/index.js", ""),
        ("src/index.js", ""),
        ("debug.log", ""),
        (".editorconfig", ""),
    ]);
    let found = |pattern: &str| {
        let find = Find { order: FindOrder::Path, ..Find::new(pattern) };
        let found = session.perform(&find).unwrap().outcome;
        found.files.iter().map(|file| file.place.path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(found("**/*.yml"), [""; 0]);
    assert_eq!(found(".github/**/*.yml"), [".github/workflows/ci.yml"]);
    assert_eq!(found("**/.github/**"), [".github/workflows/ci.yml", "sub/.github/ci.yml"]);
    assert_eq!(found("**/*.js"), ["src/index.js"]);
    assert_eq!(found("dist/*"), ["dist/out.js"]);
    assert_eq!(found("**/{dist,src}/*.js"), ["dist/out.js", "src/index.js"]);
    assert_eq!(found("**/node_modules/*/index.js"), ["pkg/node_modules/lib/index.js"]);
    assert_eq!(found("debug.log"), ["debug.log"]);
    assert_eq!(found("*.log"), [""; 0]);
    assert_eq!(found(".edit*"), [".editorconfig"]);
    assert_eq!(found("src/../dist/*.js"), ["dist/out.js"]);
}

#[test]
fn links_to_files_inside_are_found_and_others_are_not() {
    let (dir, session) = workspace(&[("real.md", "x"), ("sub/deep.md", "M")]);
    let outside = TempDir::new().unwrap();
    write(outside.path(), "secret.md", b"M");
    symlink("real.md", dir.path().join("link.md")).unwrap();
    symlink(outside.path().join("secret.md"), dir.path().join("out.md")).unwrap();
    symlink(outside.path(), dir.path().join("outdir")).unwrap();
    symlink("sub", dir.path().join("subdir.md")).unwrap();
    symlink("nothing", dir.path().join("dangling.md")).unwrap();
    let find = Find { order: FindOrder::Path, ..Find::new("**/*.md") };
    let found = session.perform(&find).unwrap();
    let paths: Vec<_> = found.files.iter().map(|file| file.place.path.to_string()).collect();
    assert_eq!(paths, ["link.md", "real.md", "sub/deep.md"]);
    assert_eq!(search(&session, &Search::new("M")).total, 1);
    for pattern in ["outdir/*", "/etc/*", "../*", "**/../../*"] {
        let refused = session.perform(&Find::new(pattern)).unwrap_err();
        let right = matches!(refused, Error::Outside { .. } | Error::BadGlob { .. });
        assert!(right, "{pattern}: {refused}");
    }
}

#[test]
fn all_roots_are_searched_and_nested_ones_once() {
    let (one, _) = workspace(&[("a.txt", "M"), ("inner/b.txt", "M")]);
    let (two, _) = workspace(&[("c.txt", "M")]);
    let inner = one.path().join("inner");
    let session = Session::open([one.path(), &inner, two.path()]).unwrap();
    let found = search(&session, &Search::new("M"));
    let paths: Vec<_> = found.files.iter().map(|file| session.relative(&file.place)).collect();
    assert_eq!(
        paths,
        ["a.txt".into(), "inner/b.txt".into(), format!("{}/c.txt", two.path().display())]
    );
    let named = Search { path: Some(two.path().display().to_string().into()), ..Search::new("M") };
    assert_eq!(search(&session, &named).total, 1);
}

#[test]
fn a_root_is_searched_whatever_it_is_called() {
    use std::os::unix::ffi::OsStrExt as _;
    let dir = TempDir::new().unwrap();
    for name in ["line\nend".as_bytes(), "\u{202e}mark".as_bytes(), b"not \xff text"] {
        let root = dir.path().join(std::ffi::OsStr::from_bytes(name));
        // Not every file system has all of them.
        if fs::create_dir(&root).is_err() {
            continue;
        }
        write(&root, "a.txt", b"M");
        write(&root, "sub/b.txt", b"M");
        let session = Session::open([&root]).unwrap();
        assert_eq!(search(&session, &Search::new("M")).total, 2, "{root:?}");
        assert_eq!(session.perform(&Find::new("**/*.txt")).unwrap().total, 2, "{root:?}");
        let within = session.starting_at(root.join("sub")).unwrap();
        assert_eq!(search(&within, &Search::new("M")).total, 1, "{root:?}");
    }
}

#[test]
fn lists_show_what_is_asked_for() {
    let (_dir, session) = workspace(&[
        (".gitignore", "*.log\n"),
        ("a.log", ""),
        ("b.txt", ""),
        (".hidden", ""),
        ("dir/c.txt", ""),
    ]);
    let names = |list: &List| {
        let listed = session.perform(list).unwrap().outcome;
        listed.entries.iter().map(|entry| entry.place.path.to_string()).collect::<Vec<_>>()
    };
    let list = List::new(".");
    assert_eq!(names(&list), [".gitignore", ".hidden", "a.log", "b.txt", "dir"]);
    let not_ignored = List { which: Which::NotIgnored, ..List::new(".") };
    assert_eq!(names(&not_ignored), [".gitignore", ".hidden", "b.txt", "dir"]);
    let visible = List { which: Which::Visible, depth: 5, ..List::new(".") };
    assert_eq!(names(&visible), ["b.txt", "dir", "dir/c.txt"]);
    let glob = List { glob: Some("*.txt".into()), ..visible.clone() };
    assert_eq!(names(&glob), ["b.txt", "dir/c.txt"]);
    let hidden = List { glob: Some(".hid*".into()), which: Which::Visible, ..List::new(".") };
    assert_eq!(names(&hidden), [".hidden"]);
    let ignore = List { ignore: vec!["*.txt".into(), ".*".into()], ..List::new(".") };
    assert_eq!(names(&ignore), ["a.log", "dir"]);
    let cut = session.perform(&List { most: 2, ..List::new(".") }).unwrap();
    assert_eq!((cut.entries.len(), cut.total), (2, 5));
}

#[test]
fn a_search_sees_every_change_at_once() {
    let (dir, session) = workspace(&[("f.txt", "one\n")]);
    let total = |pattern: &str| search(&session, &Search::new(pattern)).total;
    assert_eq!((total("one"), total("two")), (1, 0));
    write(dir.path(), "f.txt", b"two\n");
    write(dir.path(), "g.txt", b"two\n");
    assert_eq!((total("one"), total("two")), (0, 2));
    write(dir.path(), ".gitignore", b"g.txt\n");
    assert_eq!(total("two"), 1);
    write(dir.path(), ".gitignore", b"f.txt\n");
    assert_eq!(search(&session, &Search::new("two")).files[0].place.path.to_string(), "g.txt");
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
            let search = Search { multiline, path: Some(path.into()), ..Search::new(pattern) };
            let call = Call::default();
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
    // Some hundred seconds, if nothing looked at the clock.
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
}

#[test]
fn what_cannot_be_looked_at_is_counted_during_the_walk_and_after_it() {
    let (dir, session) = workspace(&[]);
    (0..40).for_each(|number| write(dir.path(), &format!("f{number:02}"), b"text"));
    let list = List { most: 7, ..List::new(".") };
    let (mut listed, mut unreadable) = (0, 0);
    for nth in 1.. {
        let denied = (When::Nth(nth), Fault::Errno(13));
        let report = inject(&[denied], || session.perform(&list).map(|done| done.outcome));
        if let Ok(found) = &report.result {
            assert!(found.total == 40 || found.skipped.unreadable == 1, "{nth}: {found:?}");
            listed += 1;
            unreadable += found.skipped.unreadable;
        }
        if report.fired.is_none() {
            break;
        }
    }
    assert!(listed > unreadable && unreadable > 0, "{unreadable} of {listed}");
}

#[test]
fn a_list_that_is_cut_tells_as_much_about_each_entry_as_one_that_is_not() {
    let (dir, session) = workspace(&[]);
    for number in 0..40 {
        let content: &[u8] = if number % 3 == 0 { b"\0binary\0" } else { b"text" };
        write(dir.path(), &format!("f{number:02}"), &content[..content.len() - number % 2]);
    }
    symlink("f01", dir.path().join("a-link")).unwrap();
    fs::create_dir(dir.path().join("z-dir")).unwrap();
    let list = |most| {
        let list = List { sniff: true, most, order: ListOrder::DirectoriesFirst, ..List::new(".") };
        let listed = session.perform(&list).unwrap().outcome;
        assert_eq!(listed.total, 42);
        let entries = listed.entries.into_iter();
        let about = entries
            .map(|it| (it.place.path.to_string(), it.kind, it.size, it.link_target, it.binary));
        about.collect::<Vec<_>>()
    };
    let whole = list(100);
    assert_eq!(whole.len(), 42);
    assert_eq!(whole[0].0, "z-dir");
    assert_eq!(whole[1].3.as_deref(), Some(&b"f01"[..]));
    assert_eq!(whole.iter().filter(|entry| entry.4).count(), 14);
    // The walk meets entries in any order, so most of these are looked at after it.
    for most in [1, 2, 7, 41] {
        assert_eq!(list(most), whole[..most]);
    }
}
