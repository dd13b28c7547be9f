//! A long journal and a long diff: the page has elements only for what is on screen.

use std::fs;

use pinfold::{Entry, State};

use crate::browser::Browser;
use crate::stage::{Stage, write};

const CHANGES: u64 = 10_000;

#[test]
fn ten_thousand_changes_are_a_list_of_which_little_exists() {
    let Some(browser) = Browser::start() else { return };
    let stage = Stage::new(&[]);
    fs::create_dir_all(stage.path("state/pinfold/journal")).unwrap();
    let mut log = String::new();
    for number in 0..CHANGES {
        let entry = Entry {
            id: format!("{number:010}"),
            time: 1_790_000_000_000 + number,
            session: "s".into(),
            tool: "Write".into(),
            path: stage.file(&format!("{number}.txt")).display().to_string(),
            roots: vec![stage.path("ws").display().to_string()],
            before: State::Absent,
            after: State::File { hash: "0".repeat(64), bytes: 1, mode: None },
            moved_to: None,
            made_parents: 0,
            undoes: None,
            also_undoes: Vec::new(),
            group: None,
            checkpoint: None,
        };
        let id = &entry.id;
        log += &format!("{}\n{{\"made\":\"{id}\"}}\n", serde_json::to_string(&entry).unwrap());
    }
    fs::write(stage.path("state/pinfold/journal/log.jsonl"), log).unwrap();
    let page = stage.page(&[]);
    let tab = browser.open_page(&page);
    tab.press("2");
    tab.wait("[role=option] >> text=9999.txt");
    // Scrolling loads the older ones, to the first.
    let scroll =
        "const list = document.querySelector('pin-rows'); list.scrollTop = list.scrollHeight";
    while tab.count("[role=option] >> text=/^0.txt/") == 0 {
        tab.run(scroll);
        assert!(tab.count("[role=option]") < 100);
    }
    assert_eq!(tab.text(".foot"), "10,000 changes");
    tab.fill("pin-changes .search", "/4321.txt");
    tab.wait("text=1 change");
    tab.press("Escape");
    tab.press("j");
    // The journal has no backup of it, and the page says so.
    tab.wait("pin-detail >> text=There is no diff");
    tab.assert_no_problems();
}

#[test]
fn a_diff_of_fifty_thousand_lines_is_scrolled_to_its_end() {
    let Some(browser) = Browser::start() else { return };
    let stage = Stage::new(&[]);
    let mut server = stage.serve(&[]);
    let [before, after] = ["old", "new"]
        .map(|word| (1..=25_000).map(|line| format!("{word} line {line}\n")).collect::<String>());
    server.request("tools/call", write("a.txt", &before));
    server.request("tools/call", write("a.txt", &after));
    let page = stage.page(&[]);
    let tab = browser.open_page(&page);
    tab.press("2");
    tab.wait("[role=option]");
    tab.press("j");
    tab.wait("pin-detail .diff-head >> text=+25000");
    tab.wait("pin-detail .diff-head >> text=−25000");
    for (key, last) in [("", "new line 25000"), ("v", "new line 25000")] {
        if !key.is_empty() {
            tab.press(key);
        }
        tab.run("const diff = document.querySelector('pin-detail pin-rows'); diff.scrollTop = diff.scrollHeight");
        tab.wait(&format!("pin-detail .code >> text=/{last}$/"));
        assert!(tab.count("pin-detail .line") < 200);
    }
    // Side by side, the words that changed are marked.
    assert_eq!(tab.text("pin-detail .side.removed mark"), "old");
    assert_eq!(tab.text("pin-detail .side.added mark"), "new");
    tab.assert_no_problems();
}
