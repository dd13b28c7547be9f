//! The dialect `reference`, compared with the server whose tools it has: each tool with the same arguments on the
//! same files. The answers are compared before the timing and again with each timed call.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::operations::Operation;
use super::server::{Call, Server};
use super::{Contender, client, head, measure, milliseconds, prepare};

/// The goal: how many times as fast as the original each tool should be.
const GOAL: f64 = 2.0;

/// One call of a tool.
struct Row {
    name: &'static str,
    rounds: usize,
    tool: &'static str,
    arguments: Value,
    /// Restores the files before each call; none for a tool that changes nothing.
    reset: Option<Box<dyn Fn()>>,
}

pub(crate) fn run() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("root");
    fs::create_dir(&root).unwrap();
    prepare(&root);
    prepare_more(&root);
    let servers = [Server::Reference, Server::ReferenceUnflushed, Server::Official];
    let mut contenders = servers.map(|server| Contender::start(server, &[&root]));
    head("shortest time in ms; original / ours", &contenders);
    let (mut slow, rows) = (0, rows(&root));
    let count = rows.len();
    for row in rows {
        let expected = row.agreed(&mut contenders);
        let operation = Operation {
            name: row.name,
            rounds: row.rounds,
            call: Box::new(move |server, _| row.call(server)),
            check: Box::new(move |text, _| text == expected),
        };
        let times: Vec<_> =
            measure(&operation, &mut contenders).into_iter().map(|it| it.time).collect();
        let ratio = |ours: usize| Some(times[2]?.as_secs_f64() / times[ours]?.as_secs_f64());
        let below = ratio(0).is_none_or(|ratio| ratio < GOAL);
        slow += usize::from(below);
        let shown = |ratio: Option<f64>| ratio.map_or("—".to_owned(), |it| format!("{it:.2}"));
        let mark = if below { format!(" **below {GOAL:.1}**") } else { String::new() };
        let unflushed = match ratio(1) {
            Some(_) => format!(" ({} with nothing flushed)", shown(ratio(1))),
            None => String::new(),
        };
        let (name, ratio) = (operation.name, shown(ratio(0)));
        let times: Vec<_> = times.into_iter().map(milliseconds).collect();
        println!("| {name}; {ratio}{mark}{unflushed} | {} |", times.join(" | "));
    }
    println!("\nrows below {GOAL:.1}: {slow} of {count}");
}

impl Row {
    fn call(&self, server: Server) -> Option<Call> {
        match &self.reset {
            Some(reset) => reset(),
            // There is nothing to flush.
            None if server == Server::ReferenceUnflushed => return None,
            None => {}
        }
        Some((self.tool.to_owned(), self.arguments.clone()))
    }

    /// The common answer of all of them.
    fn agreed(&self, contenders: &mut [Contender]) -> String {
        let mut agreed: Option<(Value, String)> = None;
        for Contender { server, client } in contenders {
            let Some((tool, arguments)) = self.call(*server) else { continue };
            let answer = client.as_mut().unwrap().call(&tool, &arguments);
            let text = client::text(&answer);
            let result = serde_json::from_str::<Value>(&answer).unwrap()["result"].take();
            let known = agreed.get_or_insert((result.clone(), text));
            for part in ["content", "structuredContent", "isError"] {
                let (ours, theirs) = (&known.0[part], &result[part]);
                // An answer without `isError` is not an error.
                let same =
                    ours == theirs || part == "isError" && *ours == false && theirs.is_null();
                let short =
                    |value: &Value| value.to_string().chars().take(2_000).collect::<String>();
                let (name, ours, theirs) = (server.name(), short(ours), short(theirs));
                assert!(same, "{}, {part}: ours {ours}, {name} {theirs}", self.name);
            }
        }
        let (result, text) = agreed.unwrap();
        assert_ne!(result["isError"], true, "{}: {text}", self.name);
        text
    }
}

/// Files that the other benchmarks of servers do not need.
fn prepare_more(root: &Path) {
    // The original counts the text after the last line ending as a line.
    let large = fs::read_to_string(root.join("large.txt")).unwrap();
    fs::write(root.join("unended.txt"), large.trim_end()).unwrap();
    let medium: String = large.lines().take(1_000).map(|line| format!("{line}\n")).collect();
    fs::write(root.join("medium.txt"), medium).unwrap();
    let pixels: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    fs::write(root.join("picture.png"), pixels).unwrap();
    for number in 0..10 {
        fs::write(root.join(format!("part{number}.txt")), &large[..5_000]).unwrap();
    }
    fs::write(root.join("here.txt"), "x\n").unwrap();
}

/// The fourteen tools, some of them with small and large files.
fn rows(root: &Path) -> Vec<Row> {
    let at = |name: &str| root.join(name);
    let reads = |name, rounds, tool, arguments| Row { name, rounds, tool, arguments, reset: None };
    let changes = |name, tool, arguments, reset| Row {
        name,
        rounds: 40,
        tool,
        arguments,
        reset: Some(reset),
    };
    let remove = |name: &str| -> Box<dyn Fn()> {
        let path = at(name);
        Box::new(move || drop(fs::remove_file(&path).or_else(|_| fs::remove_dir(&path))))
    };
    let restore = |name: &str, content: String| -> Box<dyn Fn()> {
        let path = at(name);
        Box::new(move || fs::write(&path, &content).unwrap())
    };
    let unchanged = |name: &str| restore(name, fs::read_to_string(at(name)).unwrap());
    let (here, there) = (at("here.txt"), at("there.txt"));
    let back: Box<dyn Fn()> = {
        let (here, there) = (here.clone(), there.clone());
        Box::new(move || drop(fs::rename(&there, &here)))
    };
    let edits = json!([{"oldText": "line 50: let", "newText": "line 50: LET"}]);
    let edit = |name: &str| json!({"path": at(name), "edits": edits});
    let parts: Vec<_> = (0..10).map(|number| at(&format!("part{number}.txt"))).collect();
    let write =
        |name: &str, size: usize| json!({"path": at(name), "content": "new\n".repeat(size / 4)});
    let (small, large) = (json!({"path": at("small.txt")}), at("unended.txt"));
    vec![
        reads("`read_text_file`, 5 KB", 60, "read_text_file", small.clone()),
        reads("the same, 55 KB", 60, "read_text_file", json!({"path": at("medium.txt")})),
        reads(
            "the same, the first 100 lines of 8.8 MB",
            40,
            "read_text_file",
            json!({"path": large, "head": 100}),
        ),
        reads(
            "the same, the last 100 lines of 8.8 MB",
            40,
            "read_text_file",
            json!({"path": large, "tail": 100}),
        ),
        reads("`read_file`, 5 KB", 60, "read_file", small.clone()),
        reads(
            "`read_media_file`, 100 KB",
            40,
            "read_media_file",
            json!({"path": at("picture.png")}),
        ),
        reads(
            "`read_multiple_files`, 10 of 5 KB",
            40,
            "read_multiple_files",
            json!({ "paths": parts }),
        ),
        changes(
            "`write_file`, 1 KB, new",
            "write_file",
            write("written.txt", 1_000),
            remove("written.txt"),
        ),
        changes(
            "the same, 1 MB, over another",
            "write_file",
            write("over.txt", 1_000_000),
            restore("over.txt", "old\n".repeat(250_000)),
        ),
        changes("`edit_file`, 5 KB", "edit_file", edit("edit.txt"), unchanged("edit.txt")),
        changes("the same, 0.9 MB", "edit_file", edit("edit1m.txt"), unchanged("edit1m.txt")),
        changes(
            "`create_directory`",
            "create_directory",
            json!({"path": at("new")}),
            remove("new"),
        ),
        changes("`move_file`", "move_file", json!({"source": here, "destination": there}), back),
        reads("`list_directory`, 1,000 files", 40, "list_directory", json!({"path": at("flat")})),
        reads(
            "`list_directory_with_sizes`, 1,000 files",
            40,
            "list_directory_with_sizes",
            json!({"path": at("flat")}),
        ),
        reads(
            "`directory_tree`, 300 files in 10 directories",
            40,
            "directory_tree",
            json!({"path": at("deep/d1")}),
        ),
        reads(
            "`search_files`, `**/*.rs` of 3,000 files",
            20,
            "search_files",
            json!({"path": at("deep"), "pattern": "**/*.rs"}),
        ),
        reads("`get_file_info`", 60, "get_file_info", small),
        reads("`list_allowed_directories`", 60, "list_allowed_directories", json!({})),
    ]
}
