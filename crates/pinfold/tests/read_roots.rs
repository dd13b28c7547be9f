//! Roots that are only read.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test prepares real files")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use pinfold::operations::{
    ChangeFiles, Delete, Edit, FileChange, Find, FindOrder, Insert, Mkdir, Move, Read, Undo, Write,
};
use pinfold::{Denial, Error, JournalSetting, Mode, Permissions, Reason, Session, Settings};

/// A session in which every rule allows every change, on `work` and with `docs` to be read.
fn session(dir: &Path, roots: &[&str], read_roots: &[&str]) -> Session {
    let (mode, allow) = (Mode::BypassPermissions, vec!["*".into()]);
    let settings = Settings::default()
        .with_permissions(Permissions { mode, allow, ..Permissions::default() })
        .with_journal(Some(JournalSetting::Directory(dir.join("journal"))))
        .with_read_roots(read_roots.iter().map(|root| dir.join(root)).collect());
    Session::with_settings(roots.iter().map(|root| dir.join(root)), settings).unwrap()
}

fn stage() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in [("work/a.txt", "a\n"), ("docs/b.txt", "b\n"), ("docs/in/c.txt", "c\n")] {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    symlink("../docs/b.txt", dir.path().join("work/link")).unwrap();
    symlink("../docs", dir.path().join("work/docs")).unwrap();
    dir
}

fn is_refused<T: std::fmt::Debug>(result: Result<T, Error>) {
    let error = result.unwrap_err();
    let denied = matches!(&error, Error::Denied { denial: Denial::Policy(Reason::ReadRoot), .. });
    assert!(denied, "{error:?}");
}

#[test]
fn everything_looks_there_and_nothing_changes_there() {
    let dir = stage();
    let session = session(dir.path(), &["work"], &["docs"]);
    let docs = |name: &str| dir.path().join("docs").join(name).to_str().unwrap().to_owned();
    assert_eq!(session.perform(&Read::new(docs("b.txt"))).unwrap().outcome.page.content, "b\n");
    let found = session.perform(&Find::new("**/*.txt").with_order(FindOrder::Path)).unwrap();
    assert_eq!(found.outcome.files.len(), 3);
    for path in [docs("b.txt"), "link".into(), "docs/b.txt".into()] {
        is_refused(session.perform(&Write::new(path.as_str(), "new\n")));
        is_refused(session.perform(&Edit::new(path.as_str(), "b", "new")));
        is_refused(session.perform(&Insert::new(path.as_str(), 0, "new")));
    }
    for path in [docs("new.txt"), docs("new/deep.txt"), "docs/new.txt".into()] {
        is_refused(session.perform(&Write::new(path, "new\n")));
    }
    is_refused(session.perform(&Delete::new(docs("b.txt"))));
    is_refused(session.perform(&Delete::new("docs/in/c.txt")));
    // The link itself is in the other root.
    session.perform(&Delete::new("link")).unwrap();
    assert_eq!(fs::read_to_string(docs("b.txt")).unwrap(), "b\n");
}

#[test]
fn nothing_moves_into_it_or_out_of_it() {
    let dir = stage();
    let session = session(dir.path(), &["work"], &["docs"]);
    let docs = |name: &str| dir.path().join("docs").join(name).to_str().unwrap().to_owned();
    for (from, to) in [
        (docs("b.txt"), "taken.txt".to_owned()),
        (docs("in"), "taken".to_owned()),
        ("a.txt".to_owned(), docs("a.txt")),
        ("a.txt".to_owned(), "docs/a.txt".to_owned()),
    ] {
        is_refused(session.perform(&Move::new(from.as_str(), to.as_str())));
    }
    is_refused(session.perform(&Mkdir::new(docs("new"))));
    let set = [
        FileChange::Write(Write::new("a.txt", "new\n")),
        FileChange::Write(Write::new(docs("b.txt"), "new\n")),
    ];
    is_refused(session.perform(&ChangeFiles::new(set)));
    assert_eq!(fs::read_to_string(dir.path().join("work/a.txt")).unwrap(), "a\n");
    assert_eq!(fs::read_to_string(docs("b.txt")).unwrap(), "b\n");
    assert!(dir.path().join("docs/in/c.txt").exists() && !dir.path().join("docs/a.txt").exists());
}

#[test]
fn a_change_from_before_is_not_undone_there() {
    let dir = stage();
    let path = dir.path().join("docs/b.txt");
    let before = session(dir.path(), &["docs"], &[]);
    let id = before.perform(&Write::new("b.txt", "changed\n")).unwrap().receipt.id.unwrap();
    let now = session(dir.path(), &["work"], &["docs"]);
    is_refused(now.perform(&Undo::change(id)));
    is_refused(now.perform(&Undo::newest()));
    assert_eq!(fs::read_to_string(path).unwrap(), "changed\n");
}

#[test]
fn the_innermost_root_decides() {
    let dir = stage();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let outer = session(dir.path(), &["docs"], &["docs/in"]);
    is_refused(outer.perform(&Write::new(path("docs/in/c.txt"), "new\n")));
    outer.perform(&Write::new(path("docs/b.txt"), "new\n")).unwrap();
    // A client that narrows the workspace gets no more than the whole allows.
    let narrowed = outer.narrowed([dir.path().join("docs/in")]).unwrap();
    is_refused(narrowed.perform(&Write::new(path("docs/in/c.txt"), "new\n")));

    let inner = session(dir.path(), &["docs/in"], &["docs"]);
    inner.perform(&Write::new(path("docs/in/c.txt"), "new\n")).unwrap();
    is_refused(inner.perform(&Write::new(path("docs/b.txt"), "new\n")));

    let both = session(dir.path(), &["docs"], &["docs"]);
    is_refused(both.perform(&Write::new(path("docs/b.txt"), "new\n")));
}
