//! Every kind of error, as a model reads it in each dialect.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use pinfold::{
    Access, Denial, Error, GlobUsage, Kind, MatchKind, Mode, Reason, RegexMistake, Session,
};
use pinfold_dialects::{Toolbox, every_dialect};

fn errors() -> Vec<Error> {
    let path = || "src/a.rs".into();
    let near = || vec!["src/b.rs".to_owned()];
    let regex = |pattern: &str, problem: &str, kind| Error::BadRegex {
        pattern: pattern.into(),
        problem: problem.into(),
        kind,
    };
    let many = |match_kind| Error::ManyMatches {
        path: path(),
        number: None,
        count: 3,
        or_more: false,
        lines: vec![5, 10, 15],
        match_kind,
    };
    let anchor =
        |lines| Error::BadAnchor { path: path(), anchor: "fn a() {".into(), lines, nearest: None };
    let denied = |denial| Error::Denied { path: path(), access: Access::Write, denial };
    let rule = || Reason::Rule("Edit(/src/**)".into());
    vec![
        Error::NotFound { path: path(), near: near() },
        Error::NotFound { path: path(), near: Vec::new() },
        Error::DirectoryNotFound { path: path(), near: near() },
        Error::Dangling { path: path() },
        Error::ParentMissing { path: path(), parent: "src".into() },
        Error::Outside { path: path(), roots: vec!["/ws".into()] },
        Error::NoCommonRoot { workspace: vec!["/ws".into()], client: vec!["/other".into()] },
        Error::Denied { path: path(), access: Access::Write, denial: Denial::User(None) },
        Error::Denied {
            path: path(),
            access: Access::Write,
            denial: Denial::User(Some("use the other file".into())),
        },
        denied(Denial::Unanswered("the approval callback failed: no network".into())),
        denied(Denial::DontAsk {
            reason: Reason::Mode(Mode::DontAsk),
            allow: Some("Edit(/src/a.rs)".into()),
        }),
        denied(Denial::DontAsk { reason: rule(), allow: None }),
        denied(Denial::Policy(Reason::Mode(Mode::Plan))),
        denied(Denial::Policy(Reason::Own)),
        denied(Denial::Policy(rule())),
        denied(Denial::NoApprover { reason: rule(), allow: Some("Edit(/src/a.rs)".into()) }),
        denied(Denial::NoApprover { reason: rule(), allow: None }),
        Error::RootGone { root: "/ws".into() },
        Error::RootReplaced { root: "/ws".into() },
        Error::DirectoryMoved { path: path() },
        Error::DirectoryUnreadable { path: path() },
        Error::AuditFailed,
        Error::Exists { path: path() },
        Error::NotEmpty { path: path() },
        Error::CrossDevice { path: path() },
        Error::TooManyEntries { path: path(), limit: 1_000 },
        Error::IsDirectory { path: path() },
        Error::NotADirectory { path: path() },
        Error::NotRegular { path: path(), kind: Kind::Fifo },
        Error::BadPath { path: path(), problem: "has a NUL byte in it" },
        Error::TooManyLinks { path: path() },
        Error::Binary { path: path(), mime: "application/zip", size: 22 },
        Error::UnsupportedDocument { path: path(), problem: "it is damaged".into() },
        Error::ImageTooLarge { path: path(), problem: "it has too many bytes".into() },
        Error::PageOutOfRange { path: path(), first: 4, total: 3 },
        Error::OutOfRange { path: path(), first: 4, total: 3 },
        Error::OutOfRange { path: path(), first: 4, total: 0 },
        Error::InvalidArgument("`limit` must be a whole number, not -1".into()),
        Error::NoLines { path: path(), what: "an image", has_pages: false },
        Error::NoLines { path: path(), what: "a PDF", has_pages: true },
        Error::NoPages { path: path() },
        Error::UnknownFileType { name: "rs".into(), near: vec!["rust".into()] },
        Error::UnknownFileType { name: "qqqq".into(), near: Vec::new() },
        Error::BadGlob { usage: GlobUsage::Find, pattern: "a[".into(), problem: "no `]`".into() },
        Error::BadGlob { usage: GlobUsage::Filter, pattern: "a[".into(), problem: "no `]`".into() },
        Error::BadGlob { usage: GlobUsage::Ignore, pattern: "a[".into(), problem: "no `]`".into() },
        regex("foo(", "unclosed group (at character 4)", RegexMistake::Syntax),
        regex("^foo(.*", "unclosed group (at character 5)", RegexMistake::Syntax),
        regex("a\\nb", "it has a line end in it", RegexMistake::LineEnd),
        regex("(?=a)", "look-around is not supported", RegexMistake::LookAround),
        regex("", "it has more than 16384 bytes", RegexMistake::Size),
        Error::NotRead { path: path(), names_setting: false },
        Error::NotRead { path: path(), names_setting: true },
        Error::Changed { path: path(), now: None, read_again: true },
        Error::NoMatch { path: path(), number: None, nearest: None },
        Error::NoMatch { path: path(), number: Some(2), nearest: None },
        many(MatchKind::Exact),
        many(MatchKind::Indentation),
        anchor(Vec::new()),
        anchor(vec![3, 7]),
        Error::ChangedTwice { path: path() },
        Error::EmptyOld { path: path(), number: None },
        Error::NoChange { number: None },
        Error::BreaksNotebook { path: path(), problem: "EOF at line 3".into() },
        Error::NotANotebook { path: path(), problem: "it has no cells".into() },
        Error::NoCell { path: path(), cell: "b1".into(), near: vec!["a1".into()] },
        Error::NoCell { path: path(), cell: "b1".into(), near: Vec::new() },
        Error::TooLarge { path: path(), size: 200, limit: 100 },
        Error::TooLargeToRead { path: path(), size: 200, limit: 100 },
        Error::TooLargeToSearch { path: path() },
        Error::Unmappable {
            number: None,
            encoding: "windows-1252".into(),
            character: "日".into(),
            line: 2,
        },
        Error::AccessDenied { path: path(), why: None },
        Error::NoSpace { path: path() },
        Error::ReadFailed { path: path(), cause: std::io::Error::other("Input/output error") },
        Error::JournalFailed { cause: "No space left on device".into() },
        Error::TooManyStuck { calls: 64 },
        Error::WriteFailed { path: path(), cause: "Input/output error".into() },
        Error::NothingToUndo { id: None },
        Error::NotAsLeft { path: path(), what: "its content has changed since" },
        Error::Timeout { seconds: 60 },
        Error::Locked { path: path() },
        Error::Cancelled,
        Error::UnknownTool { name: "Reed".into(), tools: vec!["Read".into(), "Write".into()] },
        Error::Internal { what: "`Read` panicked".into() },
    ]
}

#[test]
fn every_error_says_what_to_do_next_in_its_dialect() {
    let mut table = String::new();
    for dialect in every_dialect().iter().copied() {
        let session = Session::open([env!("CARGO_MANIFEST_DIR")]).unwrap();
        let toolbox = Toolbox::new(session, &[dialect]);
        table.push_str(&format!("== {}\n", dialect.name));
        for error in errors() {
            let answer = toolbox.error_answer(&error).to_json();
            let beside = &answer["_meta"]["pinfold/result"]["code"];
            let code = answer["metadata"]["code"].as_str().or(answer["error"].as_str());
            let code = code.or(beside.as_str()).unwrap();
            let text = answer["message"].as_str().or(answer["error"].as_str());
            let text = text.or(answer["content"][0]["text"].as_str()).unwrap();
            table.push_str(&format!("{code}: {text}\n"));
        }
    }
    insta::assert_snapshot!("errors", table);
}
