//! The journal in a browser: changes, undo, and the versions of a file.

use std::fs;

use pinfold_testkit::mcp::answer;
use serde_json::json;

use crate::browser::Browser;
use crate::stage::{Stage, write};

#[test]
fn changes_are_undone_and_that_too_and_conflicts_are_named() {
    let Some(browser) = Browser::start() else { return };
    let stage = Stage::new(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    let mut server = stage.serve(&[]);
    for (path, content) in [("a.txt", "two\n"), ("b.txt", "two\n"), ("dir/new.txt", "new\n")] {
        let done = answer(&server.request("tools/call", write(path, content)));
        assert_eq!(done["success"], true, "{done}");
    }
    let page = stage.page(&[]);
    let tab = browser.open_page(&page);
    tab.press("2");
    tab.wait("[role=option] >> text=new.txt");
    assert_eq!(tab.count("[role=option]"), 3);
    tab.assert_accessible();
    // Newest first; keys go through the list.
    for (name, added) in [("dir/new.txt", "new"), ("b.txt", "two"), ("a.txt", "two")] {
        tab.press("j");
        tab.wait(&format!("pin-detail h2 >> text={name}"));
        tab.wait(&format!("pin-detail .line.added .code >> text={added}"));
    }
    tab.assert_accessible();
    tab.press("u");
    tab.wait("dialog[open] .files >> text=restored");
    tab.wait("dialog[open] .line.removed .code >> text=two");
    tab.assert_accessible();
    tab.click("dialog[open] button.yes");
    tab.wait(".notice >> text=Undone: 1 file");
    assert_eq!(stage.content("a.txt"), "one\n");
    tab.wait(".row.change.undone >> text=a.txt");
    // The undo of the undo.
    tab.click(".notice >> text=Undo that");
    tab.wait("dialog[open] >> text=Undo the undo");
    tab.click("dialog[open] button.yes");
    // The newest change is the undo of the undo, so the undo is undone, and the first change is in effect again.
    tab.wait("[role=option] >> nth=1 >> text=undone");
    assert_eq!(tab.count(".row.change.undone"), 1);
    assert_eq!(stage.content("a.txt"), "two\n");
    // Another process changed the file since: the preview says so.
    fs::write(stage.file("b.txt"), "by hand\n").unwrap();
    tab.click("[role=option] >> text=b.txt");
    tab.wait("pin-detail h2 >> text=b.txt");
    tab.press("u");
    tab.wait("dialog[open] .why >> text=its content has changed since");
    assert_eq!(tab.count("dialog[open] button.yes"), 0);
    tab.assert_accessible();
    tab.press("Escape");
    assert_eq!(stage.content("b.txt"), "by hand\n");
    // A created file is removed, with the directory that was made for it.
    tab.click("[role=option] >> text=new.txt");
    tab.wait("pin-detail h2 >> text=new.txt");
    tab.press("u");
    tab.click("dialog[open] button.yes");
    tab.wait(".row.change.undone >> text=new.txt");
    assert!(!stage.file("dir").exists());
    tab.assert_no_problems();
}

#[test]
fn all_that_a_session_did_is_undone_but_what_others_changed_since() {
    let Some(browser) = Browser::start() else { return };
    let stage = Stage::new(&[("a.txt", "one\n"), ("b.txt", "one\n"), ("c.txt", "one\n")]);
    let mut server = stage.serve(&[]);
    for (path, content) in
        [("a.txt", "two\n"), ("a.txt", "three\n"), ("b.txt", "two\n"), ("d.txt", "new\n")]
    {
        server.request("tools/call", write(path, content));
    }
    let mut other = stage.serve(&[]);
    other.request("tools/call", write("c.txt", "by another session\n"));
    fs::write(stage.file("b.txt"), "by hand\n").unwrap();
    let page = stage.page(&[]);
    let tab = browser.open_page(&page);
    tab.press("2");
    tab.click("[role=option] >> text=d.txt");
    tab.click("pin-detail >> text=Undo the session…");
    // The preview names what would be done, and what would be refused and why.
    tab.wait("dialog[open] .why >> text=its content has changed since");
    let preview = tab.text("dialog[open]");
    for part in ["restored", "a.txt", "removed", "d.txt", "b.txt", "stay as they are"] {
        assert!(preview.contains(part), "{part}: {preview}");
    }
    assert!(!preview.contains("c.txt"), "{preview}");
    tab.assert_accessible();
    tab.click("dialog[open] >> text=Undo the others: 2 files");
    tab.wait(".notice >> text=Undone: 2 files");
    assert_eq!(
        ["a.txt", "b.txt", "c.txt"].map(|name| stage.content(name)),
        ["one\n", "by hand\n", "by another session\n"]
    );
    assert!(!stage.file("d.txt").exists());
    // They were undone together, and are redone together.
    tab.wait(".row.change.grouped");
    tab.click(".notice >> text=Undo that");
    tab.wait("dialog[open] .files");
    tab.click("dialog[open] button.yes");
    tab.wait(".notice >> text=Undone: 2 files");
    assert_eq!(["a.txt", "d.txt"].map(|name| stage.content(name)), ["three\n", "new\n"]);
    tab.assert_no_problems();
}

#[test]
fn changes_are_found_by_words_session_and_directory() {
    let Some(browser) = Browser::start() else { return };
    let stage = Stage::new(&[]);
    let (mut one, mut other) = (stage.serve(&[]), stage.serve(&[]));
    one.request("tools/call", write("src/main.rs", "1\n"));
    other.request("tools/call", write("src/lib.rs", "1\n"));
    other.request("tools/call", write("docs/notes.md", "1\n"));
    let page = stage.page(&[]);
    let tab = browser.open_page(&page);
    tab.view("#/changes");
    tab.wait("[role=option] >> nth=2");
    tab.press("/");
    tab.fill("pin-changes .search", "SRC/");
    tab.wait_gone("[role=option] >> text=notes.md");
    assert_eq!(tab.count("[role=option]"), 2);
    tab.fill("pin-changes .search", "nowhere");
    tab.wait("text=No change matches");
    tab.click("text=Show all");
    tab.click("[role=option] >> text=notes.md");
    tab.click("pin-detail p a");
    tab.wait_gone("[role=option] >> text=main.rs");
    assert_eq!(tab.count("[role=option]"), 2, "one session");
    tab.click("button.chip >> text=session");
    tab.wait("[role=option] >> text=main.rs");
    tab.view(&format!("#/changes?path={}", stage.file("docs").display()));
    tab.wait_gone("[role=option] >> text=main.rs");
    assert_eq!(tab.count("[role=option]"), 1);
    // A page for another directory shows none of them.
    fs::create_dir(stage.path("elsewhere")).unwrap();
    let elsewhere = stage.path("elsewhere").display().to_string();
    let page = stage.page(&["--root", &elsewhere]);
    let tab = browser.open_page(&page);
    tab.wait("text=No server is running in the chosen directories (2 elsewhere)");
    tab.press("2");
    tab.wait("text=No changes yet");
    tab.assert_accessible();
}

#[test]
fn any_two_versions_of_a_file_are_compared_also_after_a_move() {
    let Some(browser) = Browser::start() else { return };
    let stage = Stage::new(&[]);
    let mut server = stage.serve(&[]);
    server.request("tools/call", write("a.txt", "first\n"));
    server.request("tools/call", write("a.txt", "second\n"));
    let moved =
        json!({"name": "file.move", "arguments": {"source": "a.txt", "destination": "b.txt"}});
    let moved = answer(&server.request("tools/call", moved));
    assert_eq!(moved["success"], true, "{moved}");
    server.request("tools/call", write("b.txt", "third\n"));
    let page = stage.page(&[]);
    let tab = browser.open_page(&page);
    tab.view(&format!("#/file?path={}", stage.file("b.txt").display()));
    // Four changes, the current version, and the version before the first.
    tab.wait("text=before the first change");
    assert_eq!(tab.count("input[name=to]"), 6);
    tab.wait("pin-file .line.added .code >> text=third");
    tab.assert_accessible();
    tab.click("input[name=from] >> nth=5");
    tab.wait("pin-file .diff-head >> text=−0");
    tab.click("input[name=to] >> nth=4");
    tab.wait("pin-file .line.added .code >> text=first");
    fs::write(stage.file("b.txt"), "by hand\n").unwrap();
    tab.click("input[name=to] >> nth=0");
    tab.wait("pin-file .line.added .code >> text=by hand");
    tab.view("#/file?path=/nowhere");
    tab.wait("text=The journal has no change of");
    tab.assert_no_problems();
}
