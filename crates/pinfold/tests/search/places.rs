//! Which files are searched and found, and in which order.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use pinfold::operations::{AnswerWith, Find, FindOrder, Search};
use pinfold::{Error, Session};
use tempfile::TempDir;

use crate::{search, workspace, write};

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
        let named = Search::new("M").with_path(Some(path.into()));
        assert_eq!(search(&session, &named).total, total, "{path}");
        let find = Find::new("*").with_path(Some(path.into()));
        assert_eq!(session.perform(&find).unwrap().outcome.total, total, "{path}");
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
        let all = Search::new("M").with_glob(Some(glob.into()));
        assert_eq!(search(&session, &all).total, 1, "{glob}");
    }
    assert_eq!(session.perform(&Find::new("**/.*/*")).unwrap().outcome.total, 0);
    assert_eq!(session.perform(&Find::new("**/node_modules/*")).unwrap().outcome.total, 1);
}

#[test]
fn an_exclusion_holds_from_wherever_the_search_starts() {
    let (_dir, session) = workspace(&[("sub/x.rs", "M"), ("sub/y.rs", "M")]);
    let excluding = |path: Option<&str>, glob: &str| {
        let path = path.map(Into::into);
        search(&session, &Search::new("M").with_path(path).with_glob(Some(glob.into()))).total
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
    assert_eq!((found.total, found.skipped.cut_ignore_files), (1, 1));
    write(dir.path(), ".gitignore", format!("a.txt\n#{}\nb.txt\n", "x".repeat(2 << 20)).as_bytes());
    let found = search(&session, &Search::new("M"));
    assert_eq!((found.total, found.skipped.cut_ignore_files), (1, 1));
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
    let paths: Vec<_> =
        found.outcome.files.iter().map(|file| file.place.path.to_string()).collect();
    // `a` comes before `a.rs`, as in a sorted tree.
    assert_eq!(paths, ["a/new.rs", "a/y.rs", "a.rs", "b/x.rs"]);
    let two = session.perform(&Find::new("**/*.rs").with_max_files(2)).unwrap();
    assert_eq!((two.outcome.files.len(), two.outcome.total), (2, 4));
    assert_eq!(two.outcome.files[1].place.path.to_string(), "a/y.rs");
    let found = search(&session, &Search::new("M").with_answer(AnswerWith::Files));
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
        let find = Find::new(pattern).with_order(FindOrder::Path);
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
    let find = Find::new("**/*.md").with_order(FindOrder::Path);
    let found = session.perform(&find).unwrap();
    let paths: Vec<_> =
        found.outcome.files.iter().map(|file| file.place.path.to_string()).collect();
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
    let named = Search::new("M").with_path(Some(two.path().display().to_string().into()));
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
        assert_eq!(session.perform(&Find::new("**/*.txt")).unwrap().outcome.total, 2, "{root:?}");
        let within = session.starting_at(root.join("sub")).unwrap();
        assert_eq!(search(&within, &Search::new("M")).total, 1, "{root:?}");
    }
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
