//! Many mixed calls on one server: whether its memory, its files or its threads grow.
//!
//! `soak [CALLS]`, 100,000 by default, first on standard input and output and then over HTTP.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::Kept;
use pinfold_testkit::mcp::{Lines, Web};
use serde_json::{Value, json};

/// The number of files for the calls.
const FILES: usize = 50;

/// The number of larger files for searches: enough text for an index.
const TEXTS: usize = 150;

/// A measured quantity, and by how much it may grow from the first half of the calls to the second. A thread pool
/// needs that much from time to time; a leak of a few bytes in each call would be far more.
const MEASURED: [(&str, f64); 3] =
    [("memory (KB)", 3_000.0), ("open files", 4.0), ("threads", 8.0)];

pub(crate) fn run() -> ExitCode {
    let calls = std::env::args().nth(2).map_or(100_000, |number| number.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("ws");
    let mut good = true;
    {
        prepare(&root);
        let log = dir.path().join("log");
        let mut command = serve(dir.path(), &root, &[]);
        command.env("PINFOLD_LOG", "info").stderr(fs::File::create(&log).unwrap());
        let mut server = Lines::initialized(&mut command, json!({}));
        let process = server.process().id();
        good &=
            drive("stdio", calls, process, &root, |tool, arguments| server.call(tool, arguments));
        let log = fs::read_to_string(log).unwrap();
        let is_indexed = log.contains("the index has ");
        println!("  the tree has {} index", if is_indexed { "an" } else { "NO" });
        good &= is_indexed;
    }
    {
        prepare(&root);
        let mut web = Web::start(&mut serve(dir.path(), &root, &["--http", "127.0.0.1:0"]));
        let mut connection = Kept::new(&web);
        let process = web.process().id();
        good &= drive("HTTP", calls, process, &root, |tool, arguments| {
            connection.call(tool, arguments)
        });
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn prepare(root: &Path) {
    let _ = fs::remove_dir_all(root);
    fs::create_dir_all(root.join("sub")).unwrap();
    for number in 0..FILES {
        fs::write(root.join(format!("{number}.txt")), "one\ntwo\nthree\n".repeat(50)).unwrap();
    }
    fs::create_dir(root.join("texts")).unwrap();
    for number in 0..TEXTS {
        let line =
            |line: usize| format!("old: line {line} of text {number}, word{}\n", line * number);
        let text: String = (0..2000).map(line).collect();
        fs::write(root.join(format!("texts/{number}.log")), text).unwrap();
    }
}

fn serve(place: &Path, root: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(std::env::var("PINFOLD_BIN").unwrap());
    let journal = place.join("journal");
    command.args(["serve", "--dialect", "all", "--durability", "none", "--journal"]).arg(journal);
    // The journal keeps little, since this is about the server and not the disk.
    command.args(["--max-journal-bytes", "1000000", "--root"]).arg(root).args(more);
    command.env("XDG_STATE_HOME", place.join("state"));
    command
}

/// The call with a number: reads, changes, searches, and mistakes of every kind.
fn call(number: usize, root: &Path) -> (&'static str, Value, bool) {
    let round = number / 15;
    let file = root.join(format!("{}.txt", round % FILES));
    let text = root.join(format!("texts/{}.log", round % TEXTS));
    match number % 15 {
        0 => ("Read", json!({ "file_path": file }), true),
        1 => {
            let (old, new) =
                if (round / FILES).is_multiple_of(2) { ("one", "eins") } else { ("eins", "one") };
            let edit = json!({"file_path": file, "old_string": old, "new_string": new, "replace_all": true});
            ("Edit", edit, true)
        }
        2 => (
            "Write",
            json!({"file_path": root.join("sub/new.txt"), "content": number.to_string()}),
            true,
        ),
        3 => ("Delete", json!({"path": root.join("sub/new.txt")}), true),
        4 => ("Grep", json!({"pattern": "t[hw]", "output_mode": "content"}), true),
        5 => ("Glob", json!({"pattern": "**/*.txt"}), true),
        6 => ("LS", json!({ "path": root }), true),
        7 => ("file.search", json!({"pattern": "three", "max_results": 5}), true),
        8 => ("get_file_info", json!({"path": "1.txt"}), true),
        9 => ("Read", json!({"file_path": "/etc/passwd"}), false),
        10 => {
            ("Edit", json!({"file_path": file, "old_string": "nowhere", "new_string": ""}), false)
        }
        11 => ("Grep", json!({"pattern": format!("word{}\\b", round % 10_000)}), true),
        12 => ("Read", json!({"file_path": text, "limit": 10}), true),
        13 => {
            let [old, new] =
                if (round / TEXTS).is_multiple_of(2) { ["old", "new"] } else { ["new", "old"] };
            let edit = |word: &str| format!("{word}: line 7 of");
            let edit = json!({"file_path": text, "old_string": edit(old), "new_string": edit(new)});
            ("Edit", edit, true)
        }
        _ => ("Grep", json!({"pattern": "("}), false),
    }
}

/// The resources of a process: kilobytes of memory, open files, threads.
fn measured(process: u32) -> [f64; 3] {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let field = |name: &str| -> f64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let files = fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
    [field("VmRSS:"), f64::from(u32::try_from(files).unwrap()), field("Threads:")]
}

fn drive(
    front_end: &str,
    calls: usize,
    process: u32,
    root: &Path,
    mut answer: impl FnMut(&str, &Value) -> Value,
) -> bool {
    let mut readings = Vec::new();
    for number in 0..calls {
        let (tool, arguments, succeeds) = call(number, root);
        let result = answer(tool, &arguments);
        assert_eq!(result["isError"] == true, !succeeds, "call {number}, {tool}: {result}");
        if (number + 1) % (calls / 10).max(1) == 0 {
            readings.push(measured(process));
        }
    }
    println!("{front_end}: {calls} calls, after each tenth of them");
    let mut good = true;
    for (what, (name, most)) in MEASURED.into_iter().enumerate() {
        let values: Vec<f64> = readings.iter().map(|reading| reading[what]).collect();
        let highest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        // The second half must not need more than the first.
        let (first, second) = values.split_at(values.len() / 2);
        let growth = highest(second) - highest(first);
        let verdict = if growth <= most { "steady" } else { "GROWS" };
        good &= growth <= most;
        let shown: Vec<String> = values.iter().map(|value| format!("{value}")).collect();
        println!("  {name:<12} {}: {verdict}", shown.join(" "));
    }
    good
}
