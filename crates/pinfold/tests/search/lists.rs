//! Lists: their entries, and the fields of each entry.

use std::fs;
use std::os::unix::fs::symlink;

use pinfold::operations::{Include, List, ListOrder};
use pinfold_confine::fault::{Fault, When, inject};

use crate::{workspace, write};

#[test]
fn lists_show_what_is_asked_for() {
    let (dir, session) = workspace(&[
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
    let not_ignored = List::new(".").with_include(Include::NotIgnored);
    assert_eq!(names(&not_ignored), [".gitignore", ".hidden", "b.txt", "dir"]);
    let visible = List::new(".").with_include(Include::Visible).with_depth(5);
    assert_eq!(names(&visible), ["b.txt", "dir", "dir/c.txt"]);
    let glob = visible.clone().with_glob(Some("*.txt".into()));
    assert_eq!(names(&glob), ["b.txt", "dir/c.txt"]);
    let hidden = List::new(".").with_glob(Some(".hid*".into())).with_include(Include::Visible);
    assert_eq!(names(&hidden), [".hidden"]);
    let ignore = List::new(".").with_ignore(vec!["*.txt".into(), ".*".into()]);
    assert_eq!(names(&ignore), ["a.log", "dir"]);
    let root = dir.path().display();
    for glob in [format!("{root}/*.txt"), format!("{root}/b.*"), format!("{root}/**/*.txt")] {
        let ignore = List::new(".").with_ignore(vec![glob.clone()]);
        assert_eq!(names(&ignore), [".gitignore", ".hidden", "a.log", "dir"], "{glob}");
        let below = List::new("dir").with_ignore(vec![glob.clone()]);
        assert_eq!(names(&below).is_empty(), glob.contains("**"), "{glob}");
    }
    let cut = session.perform(&List::new(".").with_max_entries(2)).unwrap();
    assert_eq!((cut.outcome.entries.len(), cut.outcome.total), (2, 5));
}

#[test]
fn what_cannot_be_looked_at_is_counted_during_the_walk_and_after_it() {
    let (dir, session) = workspace(&[]);
    (0..40).for_each(|number| write(dir.path(), &format!("f{number:02}"), b"text"));
    let list = List::new(".").with_max_entries(7);
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
        let list = List::new(".")
            .with_sniff(true)
            .with_max_entries(most)
            .with_order(ListOrder::DirectoriesFirst);
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
    // The walk visits entries in any order, so most of these are read after it.
    for most in [1, 2, 7, 41] {
        assert_eq!(list(most), whole[..most]);
    }
}

#[test]
fn a_list_that_keeps_the_top_leaves_out_the_deepest_entries() {
    let (_dir, session) = workspace(&[("a/b/c", ""), ("a/b/d", ""), ("a/e", ""), ("z", "")]);
    let names = |most| {
        let list = List::new(".").with_depth(usize::MAX).with_max_entries(most);
        let list = list.with_order(ListOrder::PathTopKept);
        let listed = session.perform(&list).unwrap().outcome;
        assert_eq!(listed.total, 6);
        listed.entries.iter().map(|entry| entry.place.path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(2), ["a", "z"]);
    assert_eq!(names(5), ["a", "a/b", "a/b/c", "a/e", "z"]);
    assert_eq!(names(6), ["a", "a/b", "a/b/c", "a/b/d", "a/e", "z"]);
}

#[test]
fn a_directory_that_cannot_be_read_is_not_an_empty_one() {
    use pinfold::Error;
    use pinfold::operations::Find;
    let (dir, session) = workspace(&[]);
    write(dir.path(), "closed/f", b"text");
    let refused = |perform: &dyn Fn() -> Result<(), Error>| {
        (1..20).any(|nth| {
            let denied = (When::Nth(nth), Fault::Errno(13));
            let result = inject(&[denied], perform).result;
            matches!(result, Err(Error::DirectoryUnreadable { path }) if path.as_str() == "closed")
        })
    };
    assert!(refused(&|| session.perform(&List::new("closed")).map(drop)));
    let find = Find::new("*").with_path(Some("closed".into()));
    assert!(refused(&|| session.perform(&find).map(drop)));
}

#[test]
fn a_binary_file_is_marked_as_it_is_now() {
    let (dir, session) = workspace(&[("a", "text"), ("b", "text")]);
    let marks = || {
        let listed = session.perform(&List::new(".").with_sniff(true)).unwrap().outcome;
        listed.entries.iter().map(|entry| entry.binary).collect::<Vec<_>>()
    };
    for (content, marked) in [(&b"text"[..], false), (b"t\0xt", true), (b"TEXT", false)] {
        write(dir.path(), "a", content);
        assert_eq!([marks(), marks()], [[marked, false]; 2]);
    }
}
