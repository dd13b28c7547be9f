//! The cost of an edit: of a large file, compared with copying it; of a small one, compared with rewriting it.

use std::fs;
use std::process::Command;

use crate::{compare, compare_slow};
use pinfold::operations::Edit;
use pinfold::{Durability, JournalSetting, Session, Settings};

pub(crate) fn run() {
    let dir = tempfile::tempdir().unwrap();
    let ws = dir.path().join("ws");
    fs::create_dir(&ws).unwrap();
    let settings = |journal| {
        Settings::default()
            .with_durability(Durability::None)
            .with_journal(Some(journal))
            .with_max_journal_bytes(u64::MAX)
    };
    let plain = Session::with_settings([&ws], settings(JournalSetting::Enabled(false))).unwrap();
    let kept = JournalSetting::Directory(dir.path().join("journal"));
    let kept = Session::with_settings([&ws], settings(kept)).unwrap();

    let line = "let total = items.iter().map(|item| item.price * item.count).sum();\n";
    let mut large = line.repeat(50_000_000 / line.len());
    large.push_str("// state: 0\n");
    fs::write(ws.join("large"), &large).unwrap();
    fs::write(ws.join("small"), line.repeat(100) + "// state: 0\n").unwrap();
    let (from, to) = (ws.join("large"), dir.path().join("copy"));
    let mut state = 0;
    let mut edit = |session: &Session, file: &str| {
        let (old, new) = (format!("// state: {state}\n"), format!("// state: {}\n", state + 1));
        session.perform(&Edit::new(file, old, new)).unwrap();
        state += 1;
    };
    let copy = || assert!(Command::new("cp").arg(&from).arg(&to).status().unwrap().success());
    compare_slow("edit in 50 MB, no journal / cp of it", 21, || edit(&plain, "large"), copy);
    compare_slow("edit in 50 MB, journal / cp of it", 21, || edit(&kept, "large"), copy);

    let mut state = 0;
    let mut edit = |session: &Session| {
        let (old, new) = (format!("// state: {state}\n"), format!("// state: {}\n", state + 1));
        session.perform(&Edit::new("small", old, new)).unwrap();
        state += 1;
    };
    let rewrite = || {
        let draft = dir.path().join("draft");
        let text = fs::read_to_string(ws.join("small")).unwrap();
        fs::write(&draft, text.replace("// state", "// STATE")).unwrap();
        fs::rename(&draft, dir.path().join("small")).unwrap();
    };
    compare("edit in 7 KB, no journal / read, write, rename", 100, || edit(&plain), rewrite);
    compare("edit in 7 KB, journal / read, write, rename", 100, || edit(&kept), rewrite);
}
