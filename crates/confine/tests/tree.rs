//! A walk of a cached tree has the same results as one without a cache, after any change.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pinfold_confine::fault::interleave;
use pinfold_confine::{
    Candidate, Deadline, FilterDecision, IgnoreFiles, IndexMode, Kind, Place, RelPath, Result,
    Skipped, Visibility, Visitor, Walk, WalkEntry, Workspace,
};
use pinfold_testkit::{Random, is_watched, until_seen};
use tempfile::TempDir;

/// A walk's data about an entry: its size and time, and the version of a file.
type Entry = (u64, std::time::SystemTime, u64);

type Shown = BTreeMap<String, Entry>;

struct Show<'s>(&'s Mutex<Shown>);

impl Visitor for Show<'_> {
    fn visit(&mut self, found: &WalkEntry<'_>) -> Result<()> {
        let (version, meta) = found.version_and_meta()?;
        let len = if found.kind == Kind::Directory { 0 } else { meta.len };
        let shown = (len, meta.modified, version);
        let twice = self.0.lock().unwrap().insert(found.place().path.to_string(), shown);
        assert!(twice.is_none(), "shown twice");
        Ok(())
    }
}

fn walk(workspace: &Workspace, index: IndexMode, start: &RelPath) -> (Shown, Skipped, bool) {
    walk_without(b"", workspace, index, start)
}

/// A walk that does not `stat` entries with this name.
fn walk_without(
    name: &[u8],
    workspace: &Workspace,
    index: IndexMode,
    start: &RelPath,
) -> (Shown, Skipped, bool) {
    let deadline = Deadline::default();
    let forced = |candidate: &Candidate<'_>| match candidate.name() {
        b"forced" => FilterDecision::Force,
        other if other == name => FilterDecision::Exclude,
        _ => FilterDecision::Default,
    };
    let walk = Walk {
        depth: usize::MAX,
        hidden: false,
        filter_decision: &forced,
        visibility: &|_| Visibility::Visible,
        deadline: &deadline,
        index,
        watch: true,
        ignore_files: IgnoreFiles::STANDARD,
    };
    let shown = Mutex::default();
    let start = Place { root: 0, path: start.clone() };
    let walked = workspace.walk_watched(&[start], &walk, || Show(&shown));
    let (_, skipped, all_watched) = walked.unwrap();
    (shown.into_inner().unwrap(), skipped, all_watched)
}

/// A tree that is large enough to be watched.
fn large() -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("ws");
    for number in 0..1_200 {
        let directory = root.join(format!("many/{}", number / 75));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(format!("{number}.txt")), "").unwrap();
    }
    (dir, root)
}

/// Waits until the kernel itself reports this length.
fn until_len(path: &Path, len: u64) {
    until_seen(|| fs::metadata(path).unwrap().len() == len);
}

fn same_names(one: &Shown, other: &Shown) {
    let plain = |shown: &Shown| -> Vec<_> {
        shown.iter().map(|(path, (len, time, _))| (path.clone(), *len, *time)).collect()
    };
    let (one, other) = (plain(one), plain(other));
    let missing: Vec<_> = other.iter().filter(|entry| !one.contains(entry)).take(3).collect();
    let stale: Vec<_> = one.iter().filter(|entry| !other.contains(entry)).take(3).collect();
    assert!(missing.is_empty() && stale.is_empty(), "missing {missing:?}, stale {stale:?}");
}

const NAMES: [&str; 8] = ["a", "b", "c.log", "d.txt", ".h", ".gitignore", ".ignore", "forced"];

fn some_path(root: &Path, random: &mut Random) -> PathBuf {
    let mut path = root.join("work");
    for _ in 0..random.below(3) {
        path.push(["a", "b", "forced"][random.below(3)]);
    }
    path.join(NAMES[random.below(NAMES.len())])
}

/// Makes a change. Most attempts are impossible, and then nothing happens.
fn mutate(root: &Path, outside: &Path, random: &mut Random) {
    let (path, other) = (some_path(root, random), some_path(root, random));
    let text = ["*.log\n", "a/\n", "!c.log\n", "", "some text\n"][random.below(5)];
    let _ = match random.below(11) {
        0 | 1 => fs::write(&path, text),
        2 => fs::create_dir_all(&path),
        3 => fs::remove_file(&path),
        4 => fs::remove_dir_all(&path),
        5 => fs::rename(&path, &other),
        6 => fs::rename(&path, outside.join("moved"))
            .and_then(|()| fs::rename(outside.join("moved"), &other)),
        7 => fs::hard_link(&path, &other),
        8 => fs::set_permissions(&path, fs::Permissions::from_mode(0o700)),
        9 => std::os::unix::fs::symlink("d.txt", &path),
        _ => fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, b"more\n")),
    };
}

#[test]
fn a_remembered_tree_is_never_stale() {
    for (large_tree, steps) in [(false, 300), (true, 60)] {
        let (dir, root) = if large_tree {
            large()
        } else {
            let dir = TempDir::new().unwrap();
            let root = dir.path().join("ws");
            (dir, root)
        };
        let outside = dir.path().join("outside");
        fs::create_dir_all(&outside).unwrap();
        fs::create_dir_all(root.join("work/a/b")).unwrap();
        let workspace = Workspace::open([&root], None).unwrap();
        let mut random = Random(7);
        let work: RelPath = workspace.directory(&"work".into()).unwrap().path;
        for step in 0..steps {
            for _ in 0..random.below(4) {
                mutate(&root, &outside, &mut random);
            }
            let start = if step % 3 == 0 && root.join("work").is_dir() {
                work.clone()
            } else {
                RelPath::root()
            };
            let (remembered, skipped, _) = walk(&workspace, IndexMode::Auto, &start);
            let (fresh, fresh_skipped, _) = walk(&workspace, IndexMode::Off, &start);
            same_names(&remembered, &fresh);
            assert_eq!(skipped, fresh_skipped, "step {step}");
        }
    }
}

#[test]
fn a_large_tree_is_watched_and_a_small_one_is_compared() {
    let (_dir, root) = large();
    let workspace = Workspace::open([&root], None).unwrap();
    let start = RelPath::root();
    let (first, ..) = walk(&workspace, IndexMode::Auto, &start);
    // Directories that were listed before the tree was known to be large are watched from the second walk on.
    walk(&workspace, IndexMode::Auto, &start);
    let (third, _, all_watched) = walk(&workspace, IndexMode::Auto, &start);
    same_names(&first, &third);
    let is_watched = is_watched(&root);
    assert_eq!(all_watched, is_watched, "{:?}", workspace.tree_summaries());
    let stamps = || workspace.tree_stamps(&[Place { root: 0, path: start.clone() }]);
    let stamp = stamps();
    fs::write(root.join("many/9/700.txt"), "text").unwrap();
    assert!(!is_watched || stamp != stamps());
    let (fourth, ..) = walk(&workspace, IndexMode::Auto, &start);
    let files = fourth.iter().filter(|(path, _)| path.ends_with(".txt"));
    // Without events, every file may have changed, and gets another version.
    let is_same = |old: &Entry, new: &Entry| {
        (old.0, old.1) == (new.0, new.1) && (old.2 == new.2 || !is_watched)
    };
    let changed =
        files.filter(|(path, new)| !third.get(*path).is_some_and(|old| is_same(old, new)));
    let changed: Vec<_> = changed.collect();
    assert_eq!(changed.len(), 1, "{changed:?}");
    let (_, _, all_watched) = walk(&workspace, IndexMode::Strict, &start);
    assert!(!all_watched);
}

/// Events go to the listing that is cached. A set of files with another listing would miss them.
#[test]
fn a_directory_that_another_walk_lists_at_the_same_time_does_not_count_as_watched() {
    let (_dir, root) = large();
    if !is_watched(&root) {
        return;
    }
    let workspace = Arc::new(Workspace::open([&root], None).unwrap());
    let start = RelPath::default();
    for _ in 0..2 {
        walk(&workspace, IndexMode::Auto, &start);
    }
    // Both walks have to list the directory that they start at.
    fs::write(root.join("new.txt"), "").unwrap();
    let (other, from) = (workspace.clone(), start.clone());
    let others = move || {
        let walk = move || walk(&other, IndexMode::Auto, &from).2;
        assert!(std::thread::spawn(walk).join().unwrap());
    };
    let report = interleave(vec![("getdents", 1, Box::new(others))], || {
        walk(&workspace, IndexMode::Auto, &start).2
    });
    assert!(!report.result);
    assert!(walk(&workspace, IndexMode::Auto, &start).2);
}

#[test]
fn a_write_through_a_hard_link_outside_is_seen() {
    let (dir, root) = large();
    fs::write(root.join("inside"), "one").unwrap();
    fs::hard_link(root.join("inside"), dir.path().join("outside")).unwrap();
    let workspace = Workspace::open([&root], None).unwrap();
    let start = RelPath::root();
    let version = |shown: &Shown| shown["inside"].2;
    walk(&workspace, IndexMode::Auto, &start);
    walk(&workspace, IndexMode::Auto, &start);
    let before = walk(&workspace, IndexMode::Auto, &start).0;
    fs::write(dir.path().join("outside"), "three").unwrap();
    until_len(&root.join("inside"), 5);
    let after = walk(&workspace, IndexMode::Auto, &start).0;
    assert_ne!(version(&before), version(&after));
    assert_eq!(after["inside"].0, 5);
}

#[test]
fn a_hard_link_is_still_known_after_its_directory_was_listed_again() {
    let (dir, root) = large();
    fs::write(root.join("many/3/linked"), "one").unwrap();
    fs::hard_link(root.join("many/3/linked"), dir.path().join("outside")).unwrap();
    let workspace = Workspace::open([&root], None).unwrap();
    let start = RelPath::root();
    for _ in 0..3 {
        walk(&workspace, IndexMode::Auto, &start);
    }
    fs::write(root.join("many/3/new"), "").unwrap();
    walk_without(b"linked", &workspace, IndexMode::Auto, &start);
    fs::write(dir.path().join("outside"), "three").unwrap();
    until_len(&root.join("many/3/linked"), 5);
    assert_eq!(walk(&workspace, IndexMode::Auto, &start).0["many/3/linked"].0, 5);
}

#[test]
fn an_ignore_file_that_changes_by_another_name_counts() {
    let (dir, root) = large();
    fs::write(root.join("many/3/.gitignore"), "").unwrap();
    fs::hard_link(root.join("many/3/.gitignore"), dir.path().join("outside")).unwrap();
    let workspace = Workspace::open([&root], None).unwrap();
    let start = RelPath::root();
    for _ in 0..3 {
        walk(&workspace, IndexMode::Auto, &start);
    }
    // The walks do not show hidden files. The first one lists directories that are watched from the second on.
    fs::write(dir.path().join("outside"), "*.txt\n").unwrap();
    until_len(&root.join("many/3/.gitignore"), 6);
    let (remembered, ..) = walk(&workspace, IndexMode::Auto, &start);
    let (fresh, ..) = walk(&workspace, IndexMode::Off, &start);
    same_names(&remembered, &fresh);
    assert!(!fresh.contains_key("many/3/230.txt"));
    // A later link is found by a recheck.
    fs::write(root.join("many/5/.ignore"), "").unwrap();
    walk(&workspace, IndexMode::Auto, &start);
    fs::hard_link(root.join("many/5/.ignore"), dir.path().join("later")).unwrap();
    fs::write(dir.path().join("later"), "*.txt\n").unwrap();
    until_len(&root.join("many/5/.ignore"), 6);
    workspace.recheck_trees();
    let (remembered, ..) = walk(&workspace, IndexMode::Auto, &start);
    let (fresh, ..) = walk(&workspace, IndexMode::Off, &start);
    same_names(&remembered, &fresh);
}

#[test]
fn a_write_through_a_later_hard_link_inside_is_seen_at_once() {
    let (_dir, root) = large();
    fs::write(root.join("one"), "one").unwrap();
    let workspace = Workspace::open([&root], None).unwrap();
    let start = RelPath::root();
    for _ in 0..3 {
        walk(&workspace, IndexMode::Auto, &start);
    }
    fs::hard_link(root.join("one"), root.join("many/3/two")).unwrap();
    fs::write(root.join("many/3/two"), "three").unwrap();
    for (content, len) in [("fifteen", 7), ("x", 1)] {
        fs::write(root.join("many/3/two"), content).unwrap();
        until_len(&root.join("one"), len);
        assert_eq!(walk(&workspace, IndexMode::Auto, &start).0["one"].0, len);
    }
}

#[test]
fn a_write_through_a_later_hard_link_is_seen_after_a_recheck() {
    let (dir, root) = large();
    fs::write(root.join("inside"), "one").unwrap();
    let workspace = Workspace::open([&root], None).unwrap();
    let start = RelPath::root();
    for _ in 0..3 {
        walk(&workspace, IndexMode::Auto, &start);
    }
    let before = walk(&workspace, IndexMode::Auto, &start).0;
    workspace.recheck_trees();
    let rechecked = walk(&workspace, IndexMode::Auto, &start).0;
    assert!(before["inside"] == rechecked["inside"] || !is_watched(&root));
    fs::hard_link(root.join("inside"), dir.path().join("outside")).unwrap();
    fs::write(dir.path().join("outside"), "three").unwrap();
    until_len(&root.join("inside"), 5);
    workspace.recheck_trees();
    let after = walk(&workspace, IndexMode::Auto, &start).0;
    assert_ne!(before["inside"].2, after["inside"].2);
    assert_eq!(after["inside"].0, 5);
    // From here on it is compared on each walk.
    fs::write(dir.path().join("outside"), "fifteen").unwrap();
    until_len(&root.join("inside"), 7);
    assert_eq!(walk(&workspace, IndexMode::Auto, &start).0["inside"].0, 7);
}

#[test]
fn an_ignored_tree_is_not_watched() {
    let (_dir, root) = large();
    fs::write(root.join(".gitignore"), "/out\n").unwrap();
    for number in 0..20 {
        fs::create_dir_all(root.join(format!("out/{number}"))).unwrap();
        fs::create_dir_all(root.join(format!("node_modules/{number}"))).unwrap();
    }
    let workspace = Workspace::open([&root], None).unwrap();
    for _ in 0..3 {
        walk(&workspace, IndexMode::Auto, &RelPath::root());
    }
    // The root, `many`, and its directories.
    let watched = if is_watched(&root) { 1 + 1 + 16 } else { 0 };
    assert_eq!(workspace.tree_summaries()[0].watched, watched);
}

#[test]
fn an_overflow_of_the_queue_forgets_the_tree() {
    let (_dir, root) = large();
    let workspace = Workspace::open([&root], None).unwrap();
    for _ in 0..3 {
        walk(&workspace, IndexMode::Auto, &RelPath::root());
    }
    let queue = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let events: usize = queue.trim().parse().unwrap();
    if events > 50_000 {
        return;
    }
    // Two events that differ for each pair.
    for number in 0..=events / 2 {
        let from = root.join(if number % 2 == 0 { "many/0/0.txt" } else { "many/0/x.txt" });
        let to = root.join(if number % 2 == 0 { "many/0/x.txt" } else { "many/0/0.txt" });
        fs::rename(from, to).unwrap();
    }
    fs::write(root.join("late"), "text").unwrap();
    let (remembered, ..) = walk(&workspace, IndexMode::Auto, &RelPath::root());
    let (fresh, ..) = walk(&workspace, IndexMode::Off, &RelPath::root());
    same_names(&remembered, &fresh);
}
