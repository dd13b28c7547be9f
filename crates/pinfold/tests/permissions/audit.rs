//! The audit log, and changes while it cannot be written.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use pinfold::operations::{Read, Write};
use pinfold::{
    ApprovalAnswer, ApprovalRequest, Approver, AuditFailure, CallOptions, Error, Mode, Session,
    Settings,
};

use crate::{edit, permissions, session, workspace};

fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn calls_are_audited() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = workspace();
    let log = dir.path().join("audit.jsonl");
    let settings = permissions(Mode::SecureFileAccess, &[], &[], &["Read(secrets/**)"])
        .with_audit(Some(log.clone()));
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
fn the_decision_says_what_came_of_an_approval_request() {
    #[derive(Debug)]
    struct Answers(ApprovalAnswer);
    impl Approver for Answers {
        fn ask(&self, _: &ApprovalRequest) -> ApprovalAnswer {
            self.0.clone()
        }
    }
    for (answer, decision) in [
        (ApprovalAnswer::Once, "approved"),
        (ApprovalAnswer::Session, "approved"),
        (ApprovalAnswer::Denied(None), "denied_by_user"),
        (ApprovalAnswer::Unanswered("the time is over".into()), "unanswered"),
        (ApprovalAnswer::Unavailable, "no_approver"),
        (ApprovalAnswer::Deferred, "deferred"),
    ] {
        let dir = workspace();
        let log = dir.path().join("audit.jsonl");
        let settings = permissions(Mode::Ask, &[], &[], &[]).with_audit(Some(log.clone()));
        let session = session(&dir, settings).with_approver(Answers(answer.clone()));
        _ = session.perform(&edit("src/a.txt", "plain", "fancy"));
        let [line] = &lines(&log)[..] else { panic!("{:?}", lines(&log)) };
        assert_eq!(line["decision"], decision, "{answer:?}");
    }
}

#[test]
fn overlong_paths_and_names_are_cut_in_the_audit_log() {
    let dir = workspace();
    let log = dir.path().join("audit.jsonl");
    let session = session(&dir, Settings::default().with_audit(Some(log.clone())));
    let deny = permissions(Mode::SecureFileAccess, &[], &[], &["Read(secrets/**)"]);
    let denying = crate::session(&dir, deny.with_audit(Some(log.clone())));
    let (most, more) = ("é".repeat(4_096), "é".repeat(100_000));
    let missing = format!("secrets/{}", "a/".repeat(50_000));
    _ = session.perform(&Read::new(&most));
    _ = session.perform(&Read::new(&more));
    _ = denying.perform(&Read::new(&missing));
    let call = CallOptions::default().with_tool(&more).with_client(Arc::from(&*more));
    session.audited(&call, |_| (), |()| ("ok", 0));
    let cut = format!("{most}…");
    let [whole, long, hidden, called] = &lines(&log)[..] else { panic!("{:?}", lines(&log)) };
    assert_eq!(whole["paths"][0]["given"], most);
    assert_eq!(long["paths"][0]["given"], cut);
    assert_eq!((&called["tool"], &called["client"]), (&cut.clone().into(), &cut.into()));
    assert_eq!(hidden["decision"], "deny");
    for text in ["given", "path"].map(|key| hidden["paths"][0][key].as_str()) {
        assert!(text.is_none_or(|text| text.chars().count() == 4_097), "{text:?}");
    }
}

#[test]
fn an_audit_log_that_cannot_be_opened_stops_the_start() {
    let dir = workspace();
    let settings = Settings::default().with_audit(Some(dir.path().join("no/such/dir/log")));
    let error = Session::with_settings([dir.path()], settings).unwrap_err().to_string();
    assert!(error.contains("cannot open the audit log"), "{error}");
}

#[test]
fn without_a_log_that_can_be_written_nothing_is_changed() {
    let dir = workspace();
    // It can be opened, and takes nothing.
    let full = |audit_failure| {
        Settings::default().with_audit(Some("/dev/full".into())).with_audit_failure(audit_failure)
    };
    let session = session(&dir, full(AuditFailure::Refuse));
    session.perform(&Read::new("src/a.txt")).unwrap();
    let refused = session.perform(&Write::new("src/a.txt", "x")).unwrap_err();
    assert!(matches!(refused, Error::AuditFailed), "{refused}");
    assert!(!refused.with_hint().contains("/dev/full"), "where it is is nobody's business");
    assert_eq!(fs::read_to_string(dir.path().join("src/a.txt")).unwrap(), "plain text\n");
    let session = crate::session(&dir, full(AuditFailure::Ignore));
    session.perform(&Read::new("src/a.txt")).unwrap();
    assert!(session.perform(&Write::new("src/a.txt", "x")).is_ok());
}
