//! Rules, modes and protected paths: what they refuse and withhold.

use std::fs;
use std::os::unix::fs::symlink;

use pinfold::operations::{Delete, Find, Info, List, Open, Read, Search, Show, Undo, Write};
use pinfold::{Access, Denial, Error, JournalSetting, Mode, Reason, Session, Settings};
use tempfile::TempDir;

use crate::{denial, denying, edit, permissions, session, workspace};

#[test]
fn a_denied_file_is_refused_by_every_name() {
    let dir = workspace();
    let session = denying(&dir, &["Read(secrets/**)", "Read(!secrets/public.txt)"]);
    let absolute = dir.path().join("secrets/key.txt");
    for path in [
        "secrets/key.txt",
        "src/../secrets/key.txt",
        "./secrets//key.txt",
        "src/alias",
        "src/dir-alias/key.txt",
        absolute.to_str().unwrap(),
        // It does not exist, and the answer must not reveal that.
        "secrets/none.txt",
        "src/dir-alias/none.txt",
        "SECRETS/KEY.TXT",
    ] {
        let rule = Denial::Policy(Reason::Rule("Read(secrets/**)".into()));
        assert_eq!(denial(&session, &Read::new(path)), rule, "{path}");
        assert_eq!(denial(&session, &Open::new(path)), rule, "{path}");
    }
    assert_eq!(
        denial(&session, &Info::new("secrets/key.txt")).to_string(),
        "the rule `Read(secrets/**)` forbids it"
    );
    assert!(session.perform(&Read::new("secrets/public.txt")).is_ok());
    // A search of the file itself, and an edit that would show what is near.
    let named = Search::new("password").with_path(Some("secrets/key.txt".into()));
    assert!(matches!(denial(&session, &named), Denial::Policy(_)));
    assert!(matches!(
        denial(&session, &edit("secrets/key.txt", "the hidden", "x")),
        Denial::Policy(_)
    ));
    assert!(matches!(
        denial(&session, &edit("src/alias", "nothing like it", "x")),
        Denial::Policy(_)
    ));
    assert!(matches!(denial(&session, &Write::new("secrets/key.txt", "x")), Denial::Policy(_)));
    // A guess of the content is not confirmed.
    let same = Write::new("secrets/key.txt", "the hidden password\n");
    assert!(matches!(denial(&session, &same), Denial::Policy(_)));
    assert_eq!(fs::read_to_string(&absolute).unwrap(), "the hidden password\n");
}

#[test]
fn files_that_may_not_be_read_are_withheld_from_every_list() {
    let dir = workspace();
    let session = denying(&dir, &["Read(secrets/key.txt)"]);
    let found = session.perform(&Find::new("**/*")).unwrap();
    let names: Vec<_> =
        found.outcome.files.iter().map(|file| file.place.path.to_string()).collect();
    assert!(names.contains(&"secrets/public.txt".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| name.contains("key") || name.ends_with("alias")), "{names:?}");
    // The file, and the links to it and to the one that may hold secrets.
    assert_eq!(found.outcome.skipped.withheld, 3);
    let other = session.perform(&Find::new("**/*.md")).unwrap();
    assert_eq!(other.outcome.skipped.withheld, 0, "what does not fit is not missed");
    let searched = session.perform(&Search::new("password|PASSWORD|text")).unwrap();
    let files: Vec<_> =
        searched.outcome.files.iter().map(|file| file.place.path.to_string()).collect();
    assert_eq!(files, ["secrets/public.txt", "src/a.txt"]);
    assert_eq!(searched.outcome.skipped.withheld, 2, "the key, and `.env`");
    let listed = session.perform(&List::new("secrets")).unwrap();
    assert_eq!(
        (listed.outcome.entries.len(), listed.outcome.total, listed.outcome.skipped.withheld),
        (1, 1, 1)
    );
    // It is not suggested as a similar name.
    let missed = session.perform(&Read::new("secrets/kee.txt")).unwrap_err();
    assert!(!missed.with_hint().contains("key"), "{}", missed.with_hint());
    let missed = session.perform(&Read::new("secrets/publik.txt")).unwrap_err();
    assert!(missed.with_hint().contains("public.txt"), "{}", missed.with_hint());
}

#[test]
fn a_denied_directory_is_not_entered() {
    let dir = workspace();
    let session = denying(&dir, &["Read(secrets/)"]);
    assert!(matches!(denial(&session, &List::new("secrets")), Denial::Policy(_)));
    assert!(matches!(denial(&session, &List::new("src/dir-alias")), Denial::Policy(_)));
    let found = session.perform(&Find::new("**/*.txt")).unwrap();
    assert_eq!((found.outcome.total, found.outcome.skipped.withheld), (1, 1));
}

#[test]
fn a_narrowed_session_keeps_its_rules() {
    let dir = workspace();
    let session = denying(&dir, &["Read(secrets/key.txt)", "Edit(/src)"]);
    let narrowed = session.narrowed([dir.path().join("secrets")]).unwrap();
    assert!(matches!(denial(&narrowed, &Read::new("secrets/key.txt")), Denial::Policy(_)));
    assert!(narrowed.perform(&Read::new("secrets/public.txt")).is_ok());
    let narrowed = session.narrowed([dir.path().join("src")]).unwrap();
    assert!(matches!(denial(&narrowed, &Write::new("src/a.txt", "x")), Denial::Policy(_)));
}

#[test]
fn protected_places_ask_whether_they_are_there_or_not() {
    let dir = workspace();
    let session = session(&dir, Settings::default());
    for path in
        [".git/config", ".git/hooks/new", ".mcp.json", "sub/.vscode/tasks.json", ".Git/config"]
    {
        let Denial::NoApprover { reason, allow } = denial(&session, &Write::new(path, "x")) else {
            panic!("{path}")
        };
        assert_eq!(reason, Reason::MakesCodeRun);
        assert!(allow.unwrap().starts_with("Write(/"));
    }
    assert_eq!(fs::read_to_string(dir.path().join(".git/config")).unwrap(), "[core]\n");
    assert!(!dir.path().join(".mcp.json").exists() && !dir.path().join("sub").exists());
    assert!(matches!(denial(&session, &Delete::new(".git/config")), Denial::NoApprover { .. }));
    for path in [".env", "src/env-alias"] {
        let Denial::NoApprover { reason, allow } = denial(&session, &Read::new(path)) else {
            panic!("{path}")
        };
        assert_eq!((reason, allow.as_deref()), (Reason::Secret, Some("Read(/.env)")));
    }
    match session.perform(&Read::new("src/../.ENV")).map(|_| ()) {
        // Where case counts it is not there, and what is near is not named.
        Err(Error::NotFound { near, .. }) => assert_eq!(near, [""; 0]),
        Err(Error::Denied { denial: Denial::NoApprover { reason, .. }, .. }) => {
            assert_eq!(reason, Reason::Secret);
        }
        other => panic!("{other:?}"),
    }
    // A directory that is called like a key.
    fs::create_dir(dir.path().join("server.pem")).unwrap();
    fs::write(dir.path().join("server.pem/x.txt"), "key").unwrap();
    let inside = denial(&session, &Read::new("server.pem/x.txt"));
    assert!(matches!(inside, Denial::NoApprover { reason: Reason::Secret, .. }), "{inside:?}");
    assert!(session.perform(&Write::new("src/new.txt", "x")).is_ok());
    let allowed =
        crate::session(&dir, permissions(Mode::Ask, &["Read(/.env)", "Edit(.git/**)"], &[], &[]));
    assert!(allowed.perform(&Read::new("src/env-alias")).is_ok());
    assert!(allowed.perform(&Write::new(".git/config", "x")).is_ok());
}

#[test]
fn plan_changes_nothing_whatever_the_rules_say() {
    let dir = workspace();
    let session = session(&dir, permissions(Mode::Plan, &["*"], &[], &[]));
    assert!(session.perform(&Read::new("src/a.txt")).is_ok());
    for denial in [
        denial(&session, &Write::new("src/a.txt", "x")),
        denial(&session, &Write::new("new/file", "x")),
        denial(&session, &edit("src/a.txt", "plain", "x")),
        denial(&session, &Delete::new("src/a.txt")),
    ] {
        assert_eq!(denial.to_string(), "the mode `plan` changes nothing");
    }
    assert!(!dir.path().join("new").exists());
}

#[test]
fn whether_a_denied_file_is_there_is_not_said() {
    let dir = workspace();
    fs::create_dir(dir.path().join("secrets/sub")).unwrap();
    let session = denying(&dir, &["Read(secrets/**)"]);
    let says = |path: &str| {
        let absent = Error::Denied {
            path: path.into(),
            access: Access::Read,
            denial: Denial::Policy(Reason::Rule("Read(secrets/**)".into())),
        };
        let printed = |error: Option<Error>| error.unwrap().to_string();
        for error in [
            session.perform(&Read::new(path)).err(),
            session.perform(&Write::new(path, "x")).err(),
            session.perform(&edit(path, "a", "b")).err(),
            session.perform(&Delete::new(path)).err(),
            session.perform(&List::new(path)).err(),
            session.perform(&Info::new(path)).err(),
        ] {
            assert_eq!(printed(error), absent.to_string(), "{path}");
        }
    };
    for path in [
        "secrets/key.txt",
        "secrets/none",
        "secrets/sub",
        "secrets/sub/none",
        "secrets/key.txt/x",
        "src/dir-alias/key.txt",
        "src/dir-alias/none",
        "src/dir-alias/sub",
    ] {
        says(path);
    }
}

#[test]
fn what_was_deleted_is_shown_only_to_those_who_could_have_read_it() {
    let (dir, journal) = (workspace(), TempDir::new().unwrap());
    let journaled = |deny: &[&str]| {
        let journal = Some(JournalSetting::Directory(journal.path().join("journal")));
        let permissions = permissions(Mode::SecureFileAccess, &[], &[], deny);
        session(&dir, permissions.with_journal(journal))
    };
    let free = journaled(&[]);
    let id = free.perform(&Delete::new("secrets/key.txt")).unwrap().receipt.id.unwrap();
    let show = Show::new(id);
    assert!(free.perform(&show).unwrap().outcome.diff.unwrap().contains("the hidden password"));
    let rule = Denial::Policy(Reason::Rule("Read(secrets/**)".into()));
    assert_eq!(denial(&journaled(&["Read(secrets/**)"]), &show), rule);
}

#[test]
fn our_own_files_are_out_of_reach() {
    let dir = workspace();
    let (journal, audit) = (dir.path().join("state/journal"), dir.path().join("audit.jsonl"));
    let settings = permissions(Mode::BypassPermissions, &["*"], &[], &[])
        .with_journal(Some(JournalSetting::Directory(journal)))
        .with_audit(Some(audit.clone()));
    let config = dir.path().join("config.toml");
    fs::write(&config, "").unwrap();
    let session = session(&dir, settings).with_denied_files([config]);
    session.perform(&Write::new("src/a.txt", "x")).unwrap();
    symlink("../audit.jsonl", dir.path().join("src/log")).unwrap();
    // A link on the path to them cannot be changed, either.
    let link = dir.path().join("linked.toml");
    symlink("config.toml", &link).unwrap();
    let linked = crate::session(&dir, permissions(Mode::BypassPermissions, &[], &[], &[]))
        .with_denied_files([link]);
    assert_eq!(denial(&linked, &Delete::new("linked.toml")), Denial::Policy(Reason::Own));
    for path in ["audit.jsonl", "src/log", "config.toml", "state/journal/log.jsonl"] {
        assert_eq!(denial(&session, &Read::new(path)), Denial::Policy(Reason::Own), "{path}");
        assert_eq!(denial(&session, &Write::new(path, "x")), Denial::Policy(Reason::Own), "{path}");
    }
    assert_eq!(denial(&session, &Delete::new("audit.jsonl")), Denial::Policy(Reason::Own));
    assert_eq!(
        denial(&session, &Write::new("state/journal/new", "x")),
        Denial::Policy(Reason::Own)
    );
    // Also where others have the same rules already.
    let free = crate::session(&dir, permissions(Mode::BypassPermissions, &[], &[], &[]));
    let another = free.for_another_agent();
    let kept = free.with_denied_files([dir.path().join("config.toml")]);
    assert_eq!(denial(&kept, &Read::new("config.toml")), Denial::Policy(Reason::Own));
    assert!(another.perform(&Read::new("config.toml")).is_ok());
    let found = session.perform(&Find::new("**/*.{jsonl,toml}")).unwrap();
    assert_eq!(found.outcome.total, 0);
    assert!(session.perform(&Undo::newest()).is_ok());
}

#[test]
fn the_rules_follow_a_root_that_leads_elsewhere() {
    let (first, second) = (workspace(), workspace());
    let home = TempDir::new().unwrap();
    let root = home.path().join("ws");
    symlink(first.path(), &root).unwrap();
    let mut settings = permissions(Mode::SecureFileAccess, &[], &[], &["Read(secrets/**)"]);
    settings.journal = Some(JournalSetting::Directory(second.path().join("journal")));
    let session = Session::with_settings([&root], settings).unwrap();
    let refused = |session: &Session| {
        let rule = Denial::Policy(Reason::Rule("Read(secrets/**)".into()));
        assert_eq!(denial(session, &Read::new("secrets/key.txt")), rule);
        assert!(matches!(denial(session, &Read::new(".env")), Denial::NoApprover { .. }));
        let hook = Write::new(".git/hooks/x", "");
        assert!(matches!(denial(session, &hook), Denial::NoApprover { .. }));
    };
    refused(&session);
    fs::remove_file(&root).unwrap();
    symlink(second.path(), &root).unwrap();
    refused(&session);
    let journal = Write::new("journal/log.jsonl", "");
    assert_eq!(denial(&session, &journal), Denial::Policy(Reason::Own));
    let found = session.perform(&Find::new("**/*.txt")).unwrap().outcome;
    assert!(found.files.iter().all(|file| !file.place.path.to_string().starts_with("secrets")));
    session.perform(&Write::new("src/new.txt", "x")).unwrap();
    assert!(second.path().join("src/new.txt").exists());
}
