//! Permissions on real files: what is withheld, who is asked, and every way around a rule that is known.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Arc, Mutex};

use pinfold::operations::{Delete, Edit, Find, Info, List, Open, Read, Search, Undo, Write};
use pinfold::{
    Access, Approver, AuditFailure, Call, Denial, Error, JournalSetting, Mode, Operation,
    Permissions, Question, Reason, Session, Settings, Verdict,
};
use tempfile::TempDir;

fn workspace() -> TempDir {
    let dir = TempDir::new().unwrap();
    for (name, content) in [
        ("src/a.txt", "plain text\n"),
        ("secrets/key.txt", "the hidden password\n"),
        ("secrets/public.txt", "public text\n"),
        (".env", "PASSWORD=hunter2\n"),
        (".git/config", "[core]\n"),
    ] {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    symlink("../secrets/key.txt", dir.path().join("src/alias")).unwrap();
    symlink("../secrets", dir.path().join("src/dir-alias")).unwrap();
    symlink("../.env", dir.path().join("src/env-alias")).unwrap();
    dir
}

fn permissions(mode: Mode, allow: &[&str], ask: &[&str], deny: &[&str]) -> Settings {
    let list = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
    let permissions = Permissions { mode, allow: list(allow), ask: list(ask), deny: list(deny) };
    Settings { permissions, ..Settings::default() }
}

fn session(dir: &TempDir, settings: Settings) -> Session {
    Session::with_settings([dir.path()], settings).unwrap()
}

fn denying(dir: &TempDir, rules: &[&str]) -> Session {
    session(dir, permissions(Mode::SecureFileAccess, &[], &[], rules))
}

/// Why something was refused.
fn denial<O: Operation>(session: &Session, operation: &O) -> Denial {
    match session.perform(operation).map(|_| ()) {
        Err(Error::Denied { denial, .. }) => denial,
        other => panic!("{other:?}"),
    }
}

fn edit(path: &str, old: &str, new: &str) -> Edit {
    Edit::new(path, old, new)
}

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
        // Not there, and that is not for everybody to know.
        "secrets/none.txt",
        "src/dir-alias/none.txt",
        "SECRETS/KEY.TXT",
    ] {
        let rule = Denial::Policy(Reason::Rule("Read(secrets/**)".into()));
        assert_eq!(denial(&session, &Read::new(path)), rule, "{path}");
        assert_eq!(
            denial(&session, &Open { read: Read::new(path), has_window: false, pages: None }),
            rule,
            "{path}"
        );
    }
    assert_eq!(
        denial(&session, &Info::new("secrets/key.txt")).to_string(),
        "the rule `Read(secrets/**)` forbids it"
    );
    assert!(session.perform(&Read::new("secrets/public.txt")).is_ok());
    // A search of the file itself, and an edit that would show what is near.
    let named = Search { path: Some("secrets/key.txt".into()), ..Search::new("password") };
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
    // A guess is not confirmed either.
    let same = Write::new("secrets/key.txt", "the hidden password\n");
    assert!(matches!(denial(&session, &same), Denial::Policy(_)));
    assert_eq!(fs::read_to_string(&absolute).unwrap(), "the hidden password\n");
}

#[test]
fn what_may_not_be_read_is_withheld_from_every_list() {
    let dir = workspace();
    let session = denying(&dir, &["Read(secrets/key.txt)"]);
    let found = session.perform(&Find::new("**/*")).unwrap();
    let names: Vec<_> = found.files.iter().map(|file| file.place.path.to_string()).collect();
    assert!(names.contains(&"secrets/public.txt".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| name.contains("key") || name.ends_with("alias")), "{names:?}");
    // The file, and the links to it and to the one that may hold secrets.
    assert_eq!(found.skipped.withheld, 3);
    let other = session.perform(&Find::new("**/*.md")).unwrap();
    assert_eq!(other.skipped.withheld, 0, "what does not fit is not missed");
    let searched = session.perform(&Search::new("password|PASSWORD|text")).unwrap();
    let files: Vec<_> = searched.files.iter().map(|file| file.place.path.to_string()).collect();
    assert_eq!(files, ["secrets/public.txt", "src/a.txt"]);
    assert_eq!(searched.skipped.withheld, 2, "the key, and `.env`");
    let listed = session.perform(&List::new("secrets")).unwrap();
    assert_eq!((listed.entries.len(), listed.total, listed.skipped.withheld), (1, 1, 1));
    // Nor is it a name that somebody might have meant.
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
    assert_eq!((found.total, found.skipped.withheld), (1, 1));
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
        let Denial::Nobody { reason, allow } = denial(&session, &Write::new(path, "x")) else {
            panic!("{path}")
        };
        assert_eq!(reason, Reason::MakesCodeRun);
        assert!(allow.unwrap().starts_with("Write(/"));
    }
    assert_eq!(fs::read_to_string(dir.path().join(".git/config")).unwrap(), "[core]\n");
    assert!(!dir.path().join(".mcp.json").exists() && !dir.path().join("sub").exists());
    assert!(matches!(denial(&session, &Delete::new(".git/config")), Denial::Nobody { .. }));
    for path in [".env", "src/env-alias", "src/../.ENV"] {
        let operation = Read::new(path);
        // The last is not there, and by its name it would have to be asked about.
        if path != "src/../.ENV" {
            let Denial::Nobody { reason, allow } = denial(&session, &operation) else {
                panic!("{path}")
            };
            assert_eq!((reason, allow.as_deref()), (Reason::Secret, Some("Read(/.env)")));
        }
    }
    assert!(session.perform(&Write::new("src/new.txt", "x")).is_ok());
    let allowed =
        self::session(&dir, permissions(Mode::Ask, &["Read(/.env)", "Edit(.git/**)"], &[], &[]));
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

/// Answers what it is told to, and remembers what it was asked.
#[derive(Clone, Debug)]
struct Person {
    answers: Arc<Mutex<Vec<Verdict>>>,
    asked: Arc<Mutex<Vec<Question>>>,
}

impl Person {
    fn saying(answers: &[Verdict]) -> Self {
        let answers = answers.iter().rev().cloned().collect();
        Self { answers: Arc::new(Mutex::new(answers)), asked: Arc::default() }
    }

    fn asked(&self) -> Vec<Question> {
        self.asked.lock().unwrap().drain(..).collect()
    }
}

impl Approver for Person {
    fn ask(&self, question: &Question) -> Verdict {
        self.asked.lock().unwrap().push(question.clone());
        self.answers.lock().unwrap().pop().expect("nobody expected this question")
    }
}

#[test]
fn a_person_sees_what_would_change_and_decides() {
    let dir = workspace();
    let no = Verdict::No(Some("use the other file".into()));
    let person = Person::saying(&[no, Verdict::Once, Verdict::Once]);
    let session =
        session(&dir, permissions(Mode::Ask, &[], &[], &[])).with_approver(person.clone());
    let change = edit("src/a.txt", "plain", "fancy");
    assert_eq!(denial(&session, &change).to_string(), "the person said no: use the other file");
    assert_eq!(fs::read_to_string(dir.path().join("src/a.txt")).unwrap(), "plain text\n");
    let [question] = &person.asked()[..] else { panic!() };
    assert_eq!(question.access, Access::Write);
    assert!(question.path.ends_with("src/a.txt"));
    let diff = question.diff.as_ref().unwrap();
    assert!(diff.contains("-plain text") && diff.contains("+fancy text"), "{diff}");
    session.perform(&change).unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("src/a.txt")).unwrap(), "fancy text\n");
    // Once is once.
    session.perform(&edit("src/a.txt", "fancy", "plain")).unwrap();
    assert_eq!(person.asked().len(), 2);
}

#[test]
fn a_yes_for_the_session_is_for_one_operation_on_one_file() {
    let dir = workspace();
    let person = Person::saying(&[Verdict::Session, Verdict::No(None), Verdict::No(None)]);
    let session =
        session(&dir, permissions(Mode::Ask, &[], &[], &[])).with_approver(person.clone());
    session.perform(&Write::new("src/a.txt", "1")).unwrap();
    session.perform(&Write::new("src/a.txt", "2")).unwrap();
    assert_eq!(person.asked().len(), 1);
    assert!(matches!(denial(&session, &Write::new("src/b.txt", "1")), Denial::Person(None)));
    assert!(matches!(denial(&session, &Delete::new("src/a.txt")), Denial::Person(None)));
    // Another conversation has been allowed nothing.
    assert_eq!(session.another().id().len(), session.id().len());
    let other = Person::saying(&[Verdict::No(None)]);
    let call = Call { approver: Some(Arc::new(other.clone())), ..Call::default() };
    let refused = session.another().perform_with(&Write::new("src/a.txt", "3"), &call);
    assert!(matches!(refused, Err(Error::Denied { .. })));
    assert_eq!(other.asked().len(), 1);
}

#[test]
fn reading_a_secret_can_be_allowed() {
    let dir = workspace();
    let person = Person::saying(&[Verdict::Once, Verdict::No(None), Verdict::Session]);
    let session = session(&dir, Settings::default()).with_approver(person.clone());
    let read = session.perform(&Read::new("src/env-alias")).unwrap();
    assert_eq!(read.page.content, "PASSWORD=hunter2\n");
    let [question] = &person.asked()[..] else { panic!() };
    assert!(question.path.ends_with(".env") && question.given == "src/env-alias");
    assert_eq!(question.reason, Reason::Secret);
    assert!(matches!(denial(&session, &Read::new(".env")), Denial::Person(None)));
    // From now on it is in searches, too.
    session.perform(&Read::new(".env")).unwrap();
    let searched = session.perform(&Search::new("hunter2")).unwrap();
    assert_eq!((searched.total, searched.skipped.withheld), (1, 0));
}

#[test]
fn a_yes_is_for_one_file_and_not_for_what_is_below_or_beside_it() {
    let dir = workspace();
    fs::create_dir(dir.path().join(".aws")).unwrap();
    fs::write(dir.path().join(".aws/credentials"), "aws_secret\n").unwrap();
    // To list a directory of secrets is not to read them by name.
    let person = Person::saying(&[Verdict::Session, Verdict::No(None)]);
    let session = session(&dir, Settings::default()).with_approver(person.clone());
    assert_eq!(session.perform(&List::new(".aws")).unwrap().entries.len(), 1);
    assert!(matches!(denial(&session, &Read::new(".aws/credentials")), Denial::Person(_)));
    // To search everything, where everything asks, is not to search secrets.
    let person = Person::saying(&[Verdict::Once]);
    let session = self::session(&dir, permissions(Mode::Ask, &[], &["Read"], &[]));
    let session = session.with_approver(person.clone());
    let searched = session.perform(&Search::new("plain|hunter2|aws_secret")).unwrap();
    assert_eq!((searched.total, searched.skipped.withheld), (1, 2), "{:?}", person.asked());
    // To change a file is not to change what lies in a directory of its name.
    let person = Person::saying(&[Verdict::Session, Verdict::Once, Verdict::No(None)]);
    let session = self::session(&dir, Settings::default()).with_approver(person);
    session.perform(&Write::new(".claude", "x")).unwrap();
    session.perform(&Delete::new(".claude")).unwrap();
    let write = Write::new(".claude/settings.json", "{}");
    assert!(matches!(denial(&session, &write), Denial::Person(_)));
}

#[test]
fn a_root_that_is_narrowed_to_secrets_is_asked_about() {
    let dir = workspace();
    fs::create_dir(dir.path().join(".aws")).unwrap();
    fs::write(dir.path().join(".aws/credentials"), "aws_secret\n").unwrap();
    let session = session(&dir, Settings::default());
    let narrowed = session.narrowed([dir.path().join(".aws")]).unwrap();
    assert!(matches!(denial(&narrowed, &Search::new("secret")), Denial::Nobody { .. }));
    assert!(matches!(denial(&narrowed, &Find::new("**")), Denial::Nobody { .. }));
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
        let said = |error: Option<Error>| error.unwrap().to_string();
        for error in [
            session.perform(&Read::new(path)).err(),
            session.perform(&Write::new(path, "x")).err(),
            session.perform(&edit(path, "a", "b")).err(),
            session.perform(&Delete::new(path)).err(),
            session.perform(&List::new(path)).err(),
            session.perform(&Info::new(path)).err(),
        ] {
            assert_eq!(said(error), absent.to_string(), "{path}");
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
fn a_yes_to_a_change_that_is_shown_in_part_is_for_all_of_it() {
    let dir = workspace();
    let long = "line\n".repeat(10_000);
    fs::write(dir.path().join("src/long.txt"), &long).unwrap();
    let root = dir.path().to_owned();
    let asked = Arc::new(Mutex::new(0));
    let count = asked.clone();
    // While the person thinks, somebody changes what the diff did not show.
    let change = Meanwhile(move |_: &Question| {
        let mut count = count.lock().unwrap();
        *count += 1;
        match *count {
            1 => {
                fs::write(root.join("src/long.txt"), format!("{}mine\n", "line\n".repeat(10_000)))
                    .unwrap();
                Verdict::Once
            }
            _ => Verdict::No(None),
        }
    });
    let settings = Settings { output_bytes: Some(300), ..permissions(Mode::Ask, &[], &[], &[]) };
    let session = session(&dir, settings).with_approver(change);
    let write = Write::new("src/long.txt", "other\n".repeat(10_000));
    assert!(matches!(denial(&session, &write), Denial::Person(_)));
    assert_eq!(*asked.lock().unwrap(), 2);
}

#[test]
fn what_the_person_is_told_to_type_is_safe() {
    let dir = workspace();
    let session = session(&dir, permissions(Mode::Ask, &[], &["Edit(asked)"], &[]));
    let hint = |path: &str| session.perform(&Write::new(path, "x")).unwrap_err().with_hint();
    assert!(
        hint("x'; touch PWNED; echo '")
            .contains(r"--allow 'Write(/x'\''; touch PWNED; echo '\'')'")
    );
    assert!(!hint("x\u{1b}[2J").contains("--allow"));
    assert!(!hint("asked").contains("--allow"), "another rule would not help");
}

#[test]
fn in_dont_ask_nobody_is_asked() {
    let dir = workspace();
    let person = Person::saying(&[]);
    let session = session(&dir, permissions(Mode::DontAsk, &["Edit(src/**)"], &[], &[]));
    let session = session.with_approver(person);
    assert!(matches!(denial(&session, &Write::new("b.txt", "x")), Denial::Nobody { .. }));
    assert!(matches!(denial(&session, &Read::new(".env")), Denial::Nobody { .. }));
    assert!(session.perform(&Write::new("src/b.txt", "x")).is_ok());
}

/// Says yes, and does something first.
struct Meanwhile<F>(F);

impl<F> std::fmt::Debug for Meanwhile<F> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Meanwhile")
    }
}

impl<F: Fn(&Question) -> Verdict + Send + Sync> Approver for Meanwhile<F> {
    fn ask(&self, question: &Question) -> Verdict {
        (self.0)(question)
    }
}

#[test]
fn what_was_decided_on_is_what_is_acted_on() {
    let dir = workspace();
    let root = dir.path().to_owned();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    // While the person thinks, the file becomes a link to a protected one.
    let swap = Meanwhile(move |question: &Question| {
        seen.lock().unwrap().push(question.path.clone());
        if seen.lock().unwrap().len() > 1 {
            return Verdict::No(None);
        }
        fs::remove_file(root.join("src/a.txt")).unwrap();
        symlink("../.git/config", root.join("src/a.txt")).unwrap();
        Verdict::Once
    });
    let session = session(&dir, permissions(Mode::Ask, &[], &[], &[])).with_approver(swap);
    assert!(matches!(denial(&session, &Write::new("src/a.txt", "evil")), Denial::Person(None)));
    let asked = asked.lock().unwrap();
    assert!(asked[0].ends_with("src/a.txt") && asked[1].ends_with(".git/config"), "{asked:?}");
    assert_eq!(fs::read_to_string(dir.path().join(".git/config")).unwrap(), "[core]\n");
}

#[test]
fn a_yes_to_one_change_is_none_to_another() {
    let dir = workspace();
    let root = dir.path().to_owned();
    let diffs = Arc::new(Mutex::new(Vec::new()));
    let seen = diffs.clone();
    // While the person thinks, somebody else changes the file: what they said yes to is gone.
    let change = Meanwhile(move |question: &Question| {
        let mut seen = seen.lock().unwrap();
        seen.push(question.diff.clone().unwrap_or_default());
        if seen.len() == 1 {
            fs::write(root.join("src/a.txt"), "other text\n").unwrap();
        }
        if seen.len() < 3 { Verdict::Once } else { Verdict::No(None) }
    });
    let session = session(&dir, permissions(Mode::Ask, &[], &[], &[])).with_approver(change);
    session.perform(&Write::new("src/a.txt", "mine\n")).unwrap();
    let diffs = diffs.lock().unwrap();
    assert_eq!(diffs.len(), 2, "{diffs:?}");
    assert!(diffs[0].contains("-plain text") && diffs[1].contains("-other text"), "{diffs:?}");
}

#[test]
fn a_secret_that_is_swapped_while_the_person_thinks_is_asked_about_anew() {
    let dir = workspace();
    fs::write(dir.path().join("src/.env"), "harmless\n").unwrap();
    let root = dir.path().to_owned();
    let asked = Arc::new(Mutex::new(0));
    let count = asked.clone();
    let swap = Meanwhile(move |_: &Question| {
        let mut count = count.lock().unwrap();
        *count += 1;
        if *count > 1 {
            return Verdict::No(None);
        }
        fs::remove_file(root.join("src/.env")).unwrap();
        symlink("../.env", root.join("src/.env")).unwrap();
        Verdict::Once
    });
    let session = session(&dir, Settings::default()).with_approver(swap);
    assert!(matches!(denial(&session, &Read::new("src/.env")), Denial::Person(None)));
    assert_eq!(*asked.lock().unwrap(), 2);
}

#[test]
fn the_clock_stands_still_while_a_person_thinks_and_the_file_is_free() {
    let dir = workspace();
    let root = dir.path().to_owned();
    let settings = Settings { deadline_seconds: 1, ..permissions(Mode::Ask, &[], &[], &[]) };
    let slow = Meanwhile(move |_: &Question| {
        std::thread::sleep(std::time::Duration::from_millis(1_200));
        // Somebody else is not held up by it.
        let other = permissions(Mode::BypassPermissions, &[], &[], &[]);
        let other = Session::with_settings([&root], other).unwrap();
        other.perform(&edit("src/a.txt", "text", "words")).unwrap();
        Verdict::Session
    });
    let session = session(&dir, settings).with_approver(slow);
    session.perform(&edit("src/a.txt", "plain", "fancy")).unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("src/a.txt")).unwrap(), "fancy words\n");
}

#[test]
fn a_dry_run_checks_permissions_and_asks_nobody() {
    let dir = workspace();
    let settings =
        |mode| Settings { dry_run: true, ..permissions(mode, &[], &[], &["Edit(secrets/**)"]) };
    let nobody = session(&dir, settings(Mode::Ask));
    assert!(matches!(denial(&nobody, &Write::new("src/a.txt", "x")), Denial::Nobody { .. }));
    assert!(matches!(denial(&nobody, &Write::new("secrets/x", "x")), Denial::Policy(_)));
    let person = session(&dir, settings(Mode::Ask)).with_approver(Person::saying(&[]));
    let done = person.perform(&Write::new("src/a.txt", "x")).unwrap();
    assert!(done.receipt.warning.unwrap().contains("a person will be asked"));
    let free = session(&dir, settings(Mode::SecureFileAccess));
    assert!(free.perform(&Write::new("src/a.txt", "x")).unwrap().receipt.warning.is_none());
}

#[test]
fn our_own_files_are_out_of_reach() {
    let dir = workspace();
    let (journal, audit) = (dir.path().join("state/journal"), dir.path().join("audit.jsonl"));
    let settings = Settings {
        journal: Some(JournalSetting::Directory(journal)),
        audit: Some(audit.clone()),
        ..permissions(Mode::BypassPermissions, &["*"], &[], &[])
    };
    let config = dir.path().join("config.toml");
    fs::write(&config, "").unwrap();
    let session = session(&dir, settings).keeping_out_of([config]);
    session.perform(&Write::new("src/a.txt", "x")).unwrap();
    symlink("../audit.jsonl", dir.path().join("src/log")).unwrap();
    // Nor is a link on the way to them.
    let link = dir.path().join("linked.toml");
    symlink("config.toml", &link).unwrap();
    let linked = self::session(&dir, permissions(Mode::BypassPermissions, &[], &[], &[]))
        .keeping_out_of([link]);
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
    let found = session.perform(&Find::new("**/*.{jsonl,toml}")).unwrap();
    assert_eq!(found.total, 0);
    assert!(session.perform(&Undo { id: None }).is_ok());
}

fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn calls_are_audited() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = workspace();
    let log = dir.path().join("audit.jsonl");
    let settings = Settings {
        audit: Some(log.clone()),
        ..permissions(Mode::SecureFileAccess, &[], &[], &["Read(secrets/**)"])
    };
    let session = session(&dir, settings);
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
    session.perform(&edit("src/a.txt", "plain", "fancy")).unwrap();
    _ = session.perform(&Read::new("src/alias"));
    _ = session.perform(&Read::new("src/none"));
    let [edited, denied, missing] = &lines(&log)[..] else { panic!("{:?}", lines(&log)) };
    assert_eq!((&edited["outcome"], &edited["decision"]), (&"ok".into(), &"allow".into()));
    assert_eq!(edited["operation"], "Write");
    assert_eq!(edited["before"].as_str().unwrap().len(), 64);
    assert_ne!(edited["before"], edited["after"]);
    assert_eq!(edited["why"], "the mode `secure-file-access`");
    assert_eq!(denied["decision"], "deny");
    assert_eq!(denied["paths"][0]["given"], "src/alias");
    assert!(denied["paths"][0]["path"].as_str().unwrap().ends_with("secrets/key.txt"));
    assert_eq!(denied["why"], "the rule `Read(secrets/**)`");
    assert_eq!((&missing["outcome"], &missing["decision"]), (&"failed".into(), &"none".into()));
    assert_eq!(missing["paths"][0]["given"], "src/none");
    assert!(!fs::read_to_string(&log).unwrap().contains("fancy"), "no contents");
}

#[test]
fn an_audit_log_that_cannot_be_opened_stops_the_start() {
    let dir = workspace();
    let settings =
        Settings { audit: Some(dir.path().join("no/such/dir/log")), ..Settings::default() };
    let error = Session::with_settings([dir.path()], settings).unwrap_err().to_string();
    assert!(error.contains("cannot open the audit log"), "{error}");
}

#[test]
fn without_a_log_that_can_be_written_nothing_is_changed() {
    let dir = workspace();
    // It can be opened, and takes nothing.
    let full = |audit_failure| Settings {
        audit: Some("/dev/full".into()),
        audit_failure,
        ..Settings::default()
    };
    let session = session(&dir, full(AuditFailure::Refuse));
    session.perform(&Read::new("src/a.txt")).unwrap();
    let refused = session.perform(&Write::new("src/a.txt", "x")).unwrap_err();
    assert!(matches!(refused, Error::AuditFailed { .. }), "{refused}");
    assert_eq!(fs::read_to_string(dir.path().join("src/a.txt")).unwrap(), "plain text\n");
    let session = self::session(&dir, full(AuditFailure::Ignore));
    session.perform(&Read::new("src/a.txt")).unwrap();
    assert!(session.perform(&Write::new("src/a.txt", "x")).is_ok());
}
