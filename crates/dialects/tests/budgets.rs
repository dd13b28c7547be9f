//! Answers keep within their budgets, and an answer that just fits is not marked as cut.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;

use pinfold::{Session, Settings};
use pinfold_dialects::{EDITOR, MEMORY, Toolbox, core_dialects};
use serde_json::{Value, json};
use tempfile::TempDir;

fn toolbox(dir: &TempDir, max_output_bytes: Option<usize>) -> Toolbox {
    let settings = Settings::default().with_max_output_bytes(max_output_bytes);
    Toolbox::new(Session::with_settings([dir.path()], settings).unwrap(), &core_dialects())
}

fn ask(dir: &TempDir, max_output_bytes: Option<usize>, tool: &str, arguments: &Value) -> Value {
    toolbox(dir, max_output_bytes).call(tool, arguments.clone()).to_json()
}

#[test]
fn a_result_that_is_exactly_as_long_as_its_limit_is_whole() {
    let dir = TempDir::new().unwrap();
    for number in 1..=9 {
        let lines = format!("x {number}\nother\nother\nx\n").repeat(number);
        fs::write(dir.path().join(format!("f{number}.txt")), lines).unwrap();
    }
    for (tool, arguments) in [
        ("Glob", json!({"pattern": "*.txt"})),
        ("Grep", json!({"pattern": "x"})),
        ("Grep", json!({"pattern": "x", "output_mode": "count"})),
        ("Grep", json!({"pattern": "x", "output_mode": "content"})),
        ("Grep", json!({"pattern": "x", "output_mode": "content", "-n": false})),
        ("Grep", json!({"pattern": "x", "output_mode": "content", "-A": 1})),
        ("Grep", json!({"pattern": "^x \\d", "output_mode": "content", "-B": 1})),
    ] {
        let whole = ask(&dir, None, tool, &arguments);
        let content = whole["content"].as_str().unwrap();
        assert_eq!(whole["metadata"]["truncated"], false);
        let same = ask(&dir, Some(content.len()), tool, &arguments);
        assert_eq!(same, whole, "{tool} {arguments}");
        let less = ask(&dir, Some(content.len() - 1), tool, &arguments);
        assert_ne!(less["content"], whole["content"], "{tool} {arguments}");
        let shown = less["content"].as_str().unwrap();
        let notice = shown.rfind("\n(").map_or(0, |start| shown.len() - start);
        assert!(shown.len() - notice < content.len(), "{tool} {arguments}");
    }
}

#[test]
fn context_that_is_shown_again_and_again_is_counted_each_time() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("y.txt"), "x\n".repeat(10_000)).unwrap();
    for (tool, arguments) in [
        ("file.search", json!({"pattern": "x", "context_lines": 1000, "max_results": 10_000})),
        ("search_files", json!({"pattern": "x", "contextLines": 1000})),
    ] {
        let answer = ask(&dir, None, tool, &arguments);
        let size = answer.to_string().len();
        assert!((50_000..250_000).contains(&size), "{tool}: {size}");
        assert!(answer["message"].as_str().unwrap().contains("of 10000"), "{tool}");
    }
}

#[test]
fn lines_around_the_first_match_do_not_burst_the_answer() {
    let dir = TempDir::new().unwrap();
    let text = format!("{}x\n", format!("{}\n", "y".repeat(1_900)).repeat(1_000));
    fs::write(dir.path().join("y.txt"), text).unwrap();
    let arguments = json!({"pattern": "^x", "output_mode": "content", "-B": 1000});
    let answer = ask(&dir, None, "Grep", &arguments);
    let content = answer["content"].as_str().unwrap();
    assert!(content.len() <= 100 * 1024 && content.contains(":1001:x\n"), "{}", content.len());
    // The lines nearest to the match are kept.
    assert!(content.contains("-1000-yy"));
}

#[test]
fn bytes_that_become_longer_when_they_are_shown_are_counted_as_shown() {
    let dir = TempDir::new().unwrap();
    let line = [&b"q"[..], &[0xFF].repeat(1_900), b"\n"].concat();
    fs::write(dir.path().join("y.txt"), line.repeat(60)).unwrap();
    let arguments = json!({"pattern": "q", "output_mode": "content"});
    let answer = ask(&dir, Some(20_000), "Grep", &arguments);
    assert!(answer["content"].as_str().unwrap().len() < 20_200);
}

#[test]
fn a_page_says_how_many_matches_there_are_or_more_than_how_many() {
    let dir = TempDir::new().unwrap();
    for number in 0..100 {
        fs::write(dir.path().join(format!("f{number:02}.txt")), "x\n").unwrap();
    }
    let grep = |max_count_bytes, mode: &str| {
        let settings = Settings::default().with_max_count_bytes(max_count_bytes);
        let session = Session::with_settings([dir.path()], settings).unwrap();
        let arguments = json!({"pattern": "x", "output_mode": mode, "head_limit": 10});
        Toolbox::new(session, &core_dialects()).call("Grep", arguments).to_json()
    };
    for (mode, what) in
        [("content", "matches"), ("count", "files"), ("files_with_matches", "files")]
    {
        let exact = grep(1_000, mode);
        let notice = format!("({what} 1-10 of 100; continue with offset=10)");
        assert!(exact["content"].as_str().unwrap().ends_with(&notice), "{exact}");
        let early = grep(10, mode);
        let notice = format!("({what} 1-10 of more than 10; continue with offset=10)");
        assert!(early["content"].as_str().unwrap().ends_with(&notice), "{early}");
        assert_eq!(early["metadata"]["truncated"], true);
        assert_eq!(early["metadata"]["counted_all"], false);
        assert!(early["shortResult"].as_str().unwrap().contains("more than 10"), "{early}");
    }
}

#[test]
fn a_refused_edit_of_a_large_file_is_answered_in_few_words_and_by_its_deadline() {
    let dir = TempDir::new().unwrap();
    let text = "a line of a file that is long, and has lines like these\n".repeat(900_000);
    assert!(text.len() > 50_000_000);
    fs::write(dir.path().join("large.txt"), text).unwrap();
    let settings = Settings::default().with_deadline_seconds(1);
    let session = Session::with_settings([dir.path()], settings).unwrap();
    let patches = json!([{"find": "A line of the file", "replace": ""}]);
    let answer = Toolbox::new(session, &core_dialects())
        .call("file.patch", json!({"path": "large.txt", "patches": patches}))
        .to_json();
    // The search for the nearest region ends at the deadline, so its result varies.
    let codes = ["find_not_found", "timeout"];
    assert!(codes.contains(&answer["error"].as_str().unwrap()), "{answer}");
    assert!(answer["message"].as_str().unwrap().len() < 4_096, "{answer}");
}

#[test]
fn a_view_has_as_many_characters_whatever_their_bytes() {
    let dir = TempDir::new().unwrap();
    let editor = Toolbox::new(Session::open([dir.path()]).unwrap(), &[&EDITOR]);
    let last_line = |character: &str| {
        let line = format!("{}\n", character.repeat(92));
        fs::write(dir.path().join("long.txt"), line.repeat(200)).unwrap();
        let arguments = json!({"command": "view", "path": "long.txt"});
        let answer = editor.call("str_replace_based_edit_tool", arguments).to_json();
        let text = answer["content"][0]["text"].as_str().unwrap();
        let (_, note) = text.rsplit_once("<response clipped>").unwrap();
        note.to_owned()
    };
    let note = "<NOTE>Lines 1-160 of 200 are shown. Continue with view_range=[161, -1].</NOTE>";
    assert_eq!(["x", "é", "語", "🦀"].map(last_line), [note; 4]);
}

#[test]
fn a_listing_of_the_memory_that_is_cut_keeps_the_top() {
    let dir = TempDir::new().unwrap();
    let memory = dir.path().join("memory");
    fs::create_dir_all(memory.join("a/deep")).unwrap();
    for number in 0..1_000 {
        fs::write(memory.join(format!("a/deep/{number}")), "x").unwrap();
    }
    fs::write(memory.join("z.txt"), "x").unwrap();
    let settings = Settings::default().with_memory(Some(memory));
    let session = Session::with_settings([dir.path()], settings).unwrap();
    let arguments = json!({"command": "view", "path": "/memories"});
    let answer = Toolbox::new(session, &[&MEMORY]).call("memory", arguments).to_json();
    let text = answer["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("\n1B\t/memories/z.txt\n<NOTE>Only 1000 entries"), "{text}");
}
