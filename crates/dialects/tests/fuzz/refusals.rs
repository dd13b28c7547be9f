//! Refused edits: the lines that a refusal shows, copied as a model would, are found by the next call.

use std::fs;

use pinfold::Session;
use pinfold_dialects::{CLASSIC, DOTTED, Toolbox};
use pinfold_testkit::shown_lines;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::choices::Choices;

const LINES: [&str; 18] = [
    "fn main() {",
    "    let total = items.iter().sum::<u32>();",
    "\tlet name = \"caf\u{e9}\";",
    "    println!(\"{}\\n\", name);",
    "    if a < b && c > d {",
    "        return Err(Error::new('x'));",
    "    }",
    "}",
    "",
    "# A comment \u{2013} with dashes\u{2026}",
    "value\u{a0}= 5",
    "path = C:\\Users\\me",
    "    self.cache.insert(key, value)  ",
    "\t\tfor x in range(10):",
    "Zeile mit \u{fc}mlauten und \u{df}",
    "<a href=\"x?a=1&amp;b=2\">Order</a>",
    "\u{2192} an arrow \u{b7} a dot",
    "    pass",
];

/// A file of mostly unique lines.
fn file(choices: &mut Choices) -> Vec<String> {
    let count = 3 + choices.below(30);
    let line = |number: usize, choices: &mut Choices| {
        let line = *choices.pick(&LINES);
        if choices.once_in(3) { line.to_owned() } else { format!("{line} {}", number * 37) }
    };
    (0..count).map(|number| line(number, choices)).collect()
}

/// Makes mistakes in some lines.
fn corrupted(mut lines: Vec<String>, choices: &mut Choices) -> String {
    for _ in 0..=choices.below(3) {
        let at = choices.below(lines.len());
        let other = choices.below(lines.len());
        match choices.below(12) {
            0 if lines.len() > 1 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[at].clone()),
            2 => lines.swap(at, other),
            3 => lines[at] = lines[at].replace('"', "'"),
            4 => lines[at] = lines[at].to_uppercase(),
            5 => lines[at] = format!("   {}", lines[at]),
            6 => lines[at] = lines[at].replace('\u{e9}', "e\u{301}").replace('\u{fc}', "u\u{308}"),
            7 => lines[at] = lines[at].replace('\\', "\\\\").replace('"', "\\\""),
            8 => lines[at] = lines[at].replace('<', "&lt;").replace('>', "&gt;"),
            9 => lines[at] = lines[at].replace('\u{2013}', "-").replace('\u{a0}', " "),
            10 => return lines.join("\\n"),
            _ => lines[at] = lines[at].replace(' ', "  "),
        }
    }
    lines.join("\n")
}

pub(crate) fn taken_over(choices: &mut Choices) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("f");
    let lines = file(choices);
    let line_break = if choices.once_in(4) { "\r\n" } else { "\n" };
    fs::write(&path, lines.join(line_break)).unwrap();
    let from = choices.below(lines.len());
    let count = 1 + choices.below((lines.len() - from).min(8));
    let old = corrupted(lines[from..from + count].to_vec(), choices);
    if old.trim().is_empty() {
        return;
    }
    let tools = Toolbox::new(Session::open([dir.path()]).unwrap(), &[&CLASSIC, &DOTTED]);
    tools.call("Read", json!({ "file_path": path }));
    for classic in [true, false] {
        let edit = |old: &str| -> Value {
            let answer = if classic {
                tools.call(
                    "Edit",
                    json!({"file_path": path, "old_string": old, "new_string": "NEW TEXT"}),
                )
            } else {
                let patches = json!([{"find": old, "replace": "NEW TEXT"}]);
                tools.call("file.patch", json!({"path": "f", "patches": patches}))
            };
            answer.to_json()
        };
        let answer = edit(&old);
        if answer["success"] == true {
            return;
        }
        let code = answer["metadata"]["code"].as_str().or(answer["error"].as_str());
        if code != Some("find_not_found") {
            return;
        }
        let message = answer["message"].as_str().or(answer["error"].as_str()).unwrap();
        assert!(message.len() < 4096, "{message}");
        let shown = shown_lines(message);
        if shown.is_empty() {
            // Every line was corrupted.
            assert!(
                !old.split('\n').any(|line| line.len() > 8 && lines.iter().any(|own| own == line))
            );
            return;
        }
        let whole = fs::read_to_string(&path).unwrap().replace("\r\n", "\n");
        let copies = whole.matches(&shown).count();
        assert!(copies >= 1, "{old:?}: {message}");
        // In a repetitive file, no few lines identify a region.
        if copies == 1 {
            let again = edit(&shown);
            assert_eq!(again["success"], true, "{old:?}: {message}: {again}");
            fs::write(&path, lines.join(line_break)).unwrap();
            tools.call("Read", json!({ "file_path": path }));
        }
    }
}
