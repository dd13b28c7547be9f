//! Directories that are deleted with all that is in them: all or nothing, undone together.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pinfold::limits::MAX_REMOVED_ENTRIES;
use pinfold::operations::{ChangeFiles, FileChange, Mkdir, Move, RemoveTree, Rewind, Undo, Write};
use pinfold::{
    ApprovalAnswer, ApprovalRequest, Approver, CallOptions, Denial, Error, JournalSetting, Mode,
    Session, Settings, State,
};
use pinfold_confine::fault::{Fault, When, inject};
use tempfile::TempDir;

struct Stage {
    dir: TempDir,
    root: PathBuf,
}

impl Stage {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let root = dir.path().join("ws");
        for (path, content) in [
            ("d/a.txt", "one\n"),
            ("d/sub/b.bin", "\0\u{1}two"),
            ("d/sub/deep/c.txt", "three\n"),
            ("keep.txt", "kept\n"),
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), content).unwrap();
        }
        fs::create_dir(root.join("d/empty")).unwrap();
        symlink("../keep.txt", root.join("d/link")).unwrap();
        symlink("/etc", root.join("d/out")).unwrap();
        fs::set_permissions(root.join("d/a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(root.join("d/empty"), fs::Permissions::from_mode(0o711)).unwrap();
        Self { dir, root }
    }

    fn session(&self, journal: bool) -> Session {
        self.session_with(journal, |_| {})
    }

    fn session_with(&self, journal: bool, set: impl FnOnce(&mut Settings)) -> Session {
        let mut settings = Settings::default();
        settings.durability = pinfold::Durability::None;
        if journal {
            let journal = self.dir.path().join("journal");
            settings.journal = Some(JournalSetting::Directory(journal));
        }
        set(&mut settings);
        Session::with_settings([&self.root], settings).unwrap()
    }

    fn tree(&self) -> BTreeMap<String, String> {
        tree(&self.root)
    }
}

/// Every path below a directory with what is there: mode and content.
fn tree(dir: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let (name, path) = (entry.file_name().into_string().unwrap(), entry.path());
        let meta = fs::symlink_metadata(&path).unwrap();
        let mode = meta.permissions().mode() & 0o777;
        let what = if meta.is_symlink() {
            format!("-> {}", fs::read_link(&path).unwrap().display())
        } else if meta.is_dir() {
            let below = tree(&path).into_iter();
            found.extend(below.map(|(below, what)| (format!("{name}/{below}"), what)));
            format!("{mode:o} directory")
        } else {
            format!("{mode:o} {:?}", fs::read(&path).unwrap())
        };
        found.insert(name, what);
    }
    found
}

fn only_kept(tree: &BTreeMap<String, String>) -> bool {
    tree.keys().eq(["keep.txt"])
}

#[test]
fn a_tree_is_deleted_and_comes_back_as_a_whole() {
    let it = Stage::new();
    let before = it.tree();
    let session = it.session(true);
    let done = session.perform(&RemoveTree::new("d")).unwrap();
    assert_eq!((done.outcome.files, done.outcome.directories), (5, 4));
    assert!(only_kept(&it.tree()), "{:?}", it.tree());
    assert!(Path::new("/etc").is_dir());
    let entries: Vec<_> = session.history().unwrap().map(Result::unwrap).collect();
    assert_eq!(entries.len(), 9);
    assert!(entries.iter().all(|it| it.confirmed && it.entry.group == done.receipt.id));
    let undone = session.perform(&Undo::newest()).unwrap();
    assert_eq!(it.tree(), before);
    let again = session.perform(&Undo::change(undone.receipt.id.unwrap())).unwrap();
    assert!(only_kept(&it.tree()), "{:?}", it.tree());
    session.perform(&Undo::change(again.receipt.id.unwrap())).unwrap();
    assert_eq!(it.tree(), before);
}

#[test]
fn a_dry_run_checks_and_deletes_nothing() {
    let it = Stage::new();
    let before = it.tree();
    let session = it.session(true);
    let dry = CallOptions::default().with_dry_run(true);
    let done = session.perform_with(&RemoveTree::new("d"), &dry).unwrap();
    assert!(done.receipt.dry_run);
    assert_eq!(it.tree(), before);
    assert!(session.history().unwrap().next().is_none());
}

#[test]
fn what_is_no_directory_of_its_own_is_refused() {
    let it = Stage::new();
    let before = it.tree();
    let session = it.session(false);
    let refused = |path: &str| session.perform(&RemoveTree::new(path)).unwrap_err();
    assert!(matches!(refused("."), Error::BadPath { .. }));
    assert!(matches!(refused("d/.."), Error::BadPath { .. }));
    assert!(matches!(refused(""), Error::BadPath { .. }));
    assert!(matches!(refused("/etc"), Error::Outside { .. }));
    assert!(matches!(refused("d/a.txt"), Error::NotADirectory { .. }));
    assert!(matches!(refused("none"), Error::NotFound { .. }));
    // A symlink to a directory is no directory.
    symlink("d", it.root.join("alias")).unwrap();
    assert!(matches!(refused("alias"), Error::NotADirectory { .. }));
    fs::remove_file(it.root.join("alias")).unwrap();
    let both = Session::open([&it.root, &it.root.join("d/sub")]).unwrap();
    let holds_root = both.perform(&RemoveTree::new("d")).unwrap_err();
    assert!(matches!(holds_root, Error::BadPath { .. }), "{holds_root}");
    let _socket = std::os::unix::net::UnixListener::bind(it.root.join("d/socket")).unwrap();
    assert!(refused("d").to_string().contains("named pipe, socket or device"));
    fs::remove_file(it.root.join("d/socket")).unwrap();
    assert_eq!(it.tree(), before);
}

#[test]
fn a_thousand_entries_are_deleted_and_one_more_is_not() {
    let it = Stage::new();
    for number in 0..MAX_REMOVED_ENTRIES - 10 {
        fs::write(it.root.join(format!("d/sub/deep/{number}")), number.to_string()).unwrap();
    }
    fs::create_dir_all(it.root.join("d/x")).unwrap();
    let session = it.session(true);
    fs::write(it.root.join("d/one-more"), "").unwrap();
    fs::write(it.root.join("d/two-more"), "").unwrap();
    let before = it.tree();
    let refused = session.perform(&RemoveTree::new("d")).unwrap_err();
    assert!(matches!(refused, Error::TooManyEntries { limit: 1_000, .. }), "{refused}");
    assert_eq!(it.tree(), before);
    fs::remove_file(it.root.join("d/two-more")).unwrap();
    let before = it.tree();
    session.perform(&RemoveTree::new("d")).unwrap();
    assert!(only_kept(&it.tree()));
    let undone = session.perform(&Undo::newest()).unwrap();
    assert_eq!(it.tree(), before);
    session.perform(&Undo::change(undone.receipt.id.unwrap())).unwrap();
    assert!(only_kept(&it.tree()));
}

#[derive(Clone, Debug, Default)]
struct Asked(Arc<Mutex<Vec<(String, String)>>>);

impl Approver for Asked {
    fn ask(&self, request: &ApprovalRequest) -> ApprovalAnswer {
        self.0.lock().unwrap().push((request.headline(), request.preview(10_000)));
        ApprovalAnswer::Once
    }
}

#[test]
fn a_question_about_several_files_counts_them() {
    let it = Stage::new();
    let asked = Asked::default();
    let session = it.session_with(true, |settings| settings.permissions.mode = Mode::Ask);
    let session = session.with_approver(asked.clone());
    let writes = ["x.txt", "y.txt"].map(|path| FileChange::Write(Write::new(path, "new\n")));
    session.perform(&ChangeFiles::new(writes)).unwrap();
    let asked = asked.0.lock().unwrap();
    let [(headline, _)] = &asked[..] else { panic!("{asked:?}") };
    assert!(headline.contains("/x.txt and 1 more? ("), "{headline}");
}

#[test]
fn one_question_shows_every_entry() {
    let it = Stage::new();
    let asked = Asked::default();
    let session = it.session_with(true, |settings| settings.permissions.mode = Mode::Ask);
    let session = session.with_approver(asked.clone());
    session.perform(&RemoveTree::new("d")).unwrap();
    let asked = asked.0.lock().unwrap();
    let [(headline, preview)] = &asked[..] else { panic!("{asked:?}") };
    assert!(headline.contains("deleting") && headline.contains("/d?"), "{headline}");
    let expected = "\
d: deletes the directory with all that is in it, 8 entries
d/a.txt: deletes a file of 4 bytes
d/empty: deletes a directory
d/link: deletes the symlink to ../keep.txt
d/out: deletes the symlink to /etc
d/sub: deletes a directory
d/sub/b.bin: deletes a file of 5 bytes
d/sub/deep: deletes a directory
d/sub/deep/c.txt: deletes a file of 6 bytes";
    assert_eq!(preview, expected);
    assert!(only_kept(&it.tree()));
}

#[test]
fn one_entry_that_is_denied_denies_all() {
    let it = Stage::new();
    let before = it.tree();
    for rule in ["Delete(d/sub/deep/**)", "Read(d/sub/b.bin)", "Delete(d)", "*(d/link)"] {
        let session = it.session_with(true, |settings| {
            settings.permissions.deny.push(rule.into());
        });
        let refused = session.perform(&RemoveTree::new("d")).unwrap_err();
        let Error::Denied { denial: Denial::Policy(_), path, .. } = &refused else {
            panic!("{rule}: {refused}")
        };
        // An entry that may not be read is not named.
        assert!(!rule.starts_with("Read") || !path.as_str().contains("b.bin"), "{refused}");
        assert_eq!(it.tree(), before, "{rule}");
    }
    // A protected path inside needs approval, and there is no approver.
    fs::create_dir(it.root.join("d/.git")).unwrap();
    fs::write(it.root.join("d/.git/config"), "").unwrap();
    let refused = it.session(true).perform(&RemoveTree::new("d")).unwrap_err();
    assert!(matches!(refused, Error::Denied { .. }), "{refused}");
    assert!(it.root.join("d/.git/config").exists());
}

#[test]
fn a_failure_at_any_system_call_leaves_all_of_it() {
    for journal in [false, true] {
        for (nth, errno) in (1..).zip([5, 13, 28].into_iter().cycle()) {
            let it = Stage::new();
            let before = it.tree();
            let session = it.session(journal);
            // An error of the disk, a missing permission, a full disk.
            let fault = (When::Nth(nth), Fault::Errno(errno));
            let remove = || session.perform(&RemoveTree::new("d")).map(drop);
            let report = inject(&[fault], remove);
            match &report.result {
                Ok(()) => assert!(only_kept(&it.tree()), "{nth} of {:?}", report.calls),
                Err(error) => {
                    assert_eq!(it.tree(), before, "{nth} of {:?}: {error}", report.calls);
                    assert!(session.history().unwrap().next().is_none(), "{nth}");
                }
            }
            if report.fired.is_none() {
                break;
            }
        }
    }
}

/// The task of a process that this test starts: `DIRECTORY|KIND|NTH`, killed at the n-th system call. With 0 it is the
/// next process, which restores what was interrupted; without a journal, it sweeps.
#[test]
fn task_of_another_process() {
    let Ok(task) = std::env::var("PINFOLD_TEST_TASK") else { return };
    let [dir, kind, nth] = task.split('|').collect::<Vec<_>>().try_into().unwrap();
    let (dir, mut settings) = (Path::new(dir), Settings::default());
    settings.durability = pinfold::Durability::None;
    if kind != "no journal" {
        settings.journal = Some(JournalSetting::Directory(dir.join("journal")));
    }
    let session = if kind == "memory" {
        settings.memory = Some(dir.join("ws"));
        fs::create_dir_all(dir.join("project")).unwrap();
        Session::with_settings([dir.join("project")], settings).unwrap().memory().unwrap()
    } else {
        Session::with_settings([dir.join("ws")], settings).unwrap()
    };
    if nth == "0" {
        if kind == "no journal" {
            session.perform(&Write::new("swept", "")).unwrap();
        }
    } else {
        let kill = (When::Nth(nth.parse().unwrap()), Fault::Exit);
        inject(&[kill], || session.perform(&RemoveTree::new("d")).map(drop)).result.unwrap();
    }
    println!("done");
}

/// Runs the task, and tells whether it came to its end.
fn run_task(it: &Stage, kind: &str, nth: usize) -> bool {
    let mut command = pinfold_testkit::this_program();
    command.args(["task_of_another_process", "--exact", "--nocapture"]);
    let task = format!("{}|{kind}|{nth}", it.dir.path().display());
    let output = command.env("PINFOLD_TEST_TASK", task).output().unwrap();
    String::from_utf8_lossy(&output.stdout).contains("done")
}

#[test]
fn a_process_that_is_killed_leaves_all_of_it_or_nothing() {
    for kind in ["no journal", "journal", "memory"] {
        let mut gone = 0;
        for nth in 1.. {
            let it = Stage::new();
            let before = it.tree();
            let done = run_task(&it, kind, nth);
            assert!(run_task(&it, kind, 0), "{kind}: after {nth}");
            let mut left = it.tree();
            left.remove("swept");
            // The half-deleted directory is visible.
            left.retain(|path, _| !path.starts_with(".pinfold-"));
            gone += usize::from(only_kept(&left));
            assert!(left == before || only_kept(&left), "{kind}: killed at {nth}: {left:?}");
            // The next change beside it deletes what the journal has, too.
            if kind != "no journal" {
                assert!(run_task(&it, "no journal", 0), "{kind}: sweep after {nth}");
                let swept = it.tree();
                let rest = swept.keys().filter(|path| path.starts_with(".pinfold-"));
                let rest: Vec<_> = rest.filter_map(|path| path.split_once('/')).collect();
                let are_links = rest.iter().all(|(top, path)| {
                    top.starts_with(".pinfold-kept-") && ["link", "out"].contains(path)
                });
                assert!(are_links, "{kind}: killed at {nth}: {swept:?}");
            }
            if done {
                break;
            }
        }
        assert!(gone > 1, "{gone}");
    }
}

#[test]
fn what_somebody_adds_meanwhile_stays_or_is_in_the_journal() {
    let it = Stage::new();
    let session = it.session(true);
    let staged = it.dir.path().join("staged");
    let stop = AtomicBool::new(false);
    let mut saved = Vec::new();
    std::thread::scope(|scope| {
        let saving = scope.spawn(|| {
            let mut saved = Vec::new();
            for number in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let _ = fs::create_dir(it.root.join("d"));
                fs::write(&staged, number.to_string()).unwrap();
                let path = it.root.join(format!("d/saved-{number}"));
                if fs::rename(&staged, &path).is_ok() {
                    saved.push((path, number.to_string()));
                }
            }
            saved
        });
        let mut removed = 0;
        for _ in 0..200 {
            removed += usize::from(session.perform(&RemoveTree::new("d")).is_ok());
            if removed == 10 {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        saved = saving.join().unwrap();
    });
    let journal: Vec<_> = session.history().unwrap().map(|it| it.unwrap().entry).collect();
    for (path, content) in saved {
        let hash = pinfold_confine::hash(content.as_bytes()).to_hex().to_string();
        let is_its_backup = |entry: &&pinfold::Entry| {
            Path::new(&entry.path) == path
                && matches!(&entry.before, State::File { hash: known, .. } if *known == hash)
        };
        // If a new directory has taken the name, the old one is kept under another name, which the error has.
        let entries = fs::read_dir(&it.root).unwrap().map(|entry| entry.unwrap().path());
        let kept = entries
            .filter(|it| it.file_name().unwrap().as_encoded_bytes().starts_with(b".pinfold-kept-"));
        let mut places =
            kept.map(|kept| kept.join(path.file_name().unwrap())).chain([path.clone()]);
        let there = places.any(|path| fs::read_to_string(path).is_ok_and(|found| found == content));
        assert!(there || journal.iter().any(|entry| is_its_backup(&entry)), "{}", path.display());
    }
}

#[test]
fn a_rewind_takes_back_directories_with_what_was_put_into_them() {
    let it = Stage::new();
    let session = it.session(true);
    let before = it.tree();
    let checkpoint = session.checkpoint("turn").unwrap();
    session.perform(&Mkdir::new("made")).unwrap();
    session.perform(&Write::new("made/x.txt", "x\n")).unwrap();
    session.perform(&Mkdir::new("made/in")).unwrap();
    session.perform(&Move::new("keep.txt", "made/in/keep.txt")).unwrap();
    session.perform(&Move::new("d/sub", "made/in/sub")).unwrap();
    session.perform(&Write::new("made/in/sub/new.txt", "new\n")).unwrap();
    session.perform(&Move::new("made", "renamed")).unwrap();
    session.perform(&Mkdir::new("renamed/later")).unwrap();
    session.perform(&RemoveTree::new("d")).unwrap();
    let after = it.tree();
    let done = session.perform(&Rewind::to(&checkpoint)).unwrap();
    assert_eq!(done.outcome.conflicts, []);
    assert_eq!(it.tree(), before);
    session.perform(&Undo::change(done.receipt.id.unwrap())).unwrap();
    assert_eq!(it.tree(), after);
    // Another process's file keeps a created directory from being removed.
    fs::write(it.root.join("renamed/theirs.txt"), "theirs\n").unwrap();
    let refused = session.perform(&Rewind::to(&checkpoint)).unwrap();
    let conflicts = &refused.outcome.conflicts;
    assert!(conflicts.iter().any(|it| it.why == "the directory holds other files"), "{refused:?}");
    let leave_out = Rewind::to(&checkpoint).with_leave_out_conflicts(true);
    session.perform(&leave_out).unwrap();
    let left = it.tree();
    assert!(left.contains_key("renamed/theirs.txt") || left.contains_key("made/theirs.txt"));
    assert_eq!(left["keep.txt"], before["keep.txt"]);
    assert_eq!(left["d/sub/deep/c.txt"], before["d/sub/deep/c.txt"]);
}
