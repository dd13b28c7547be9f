//! Unusual text for everything that parses text.

use std::fs;
use std::path::PathBuf;

use pinfold::{ReadBeforeWrite, Session, Settings};
use pinfold_dialects::{Toolbox, core_dialects};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::choices::Choices;

/// A workspace with a few files beside a secret, and all tools on it.
struct Place {
    dir: TempDir,
    root: PathBuf,
    tools: Toolbox,
}

impl Place {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let root = dir.path().join("ws");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(dir.path().join("secret.txt"), "SECRET\n").unwrap();
        fs::write(root.join("a.txt"), "one\ntwo\n").unwrap();
        fs::write(root.join("sub/b.rs"), "fn main() {}\n").unwrap();
        let settings = Settings::default()
            .with_relative_paths(true)
            .with_read_before_write(Some(ReadBeforeWrite::Off))
            .with_deadline_seconds(20);
        let session = Session::with_settings([&root], settings).unwrap();
        Self { dir, root, tools: Toolbox::new(session, &core_dialects()) }
    }

    /// Calls a tool. The answer must not report a bug, or have content from outside.
    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let answer = self.tools.call(tool, arguments.clone());
        let (failed, answer) = (answer.failed(), answer.to_json());
        let text = answer.to_string();
        assert!(!text.contains("SECRET"), "{tool} {arguments}: {text}");
        let code = answer["metadata"]["code"].as_str().or(answer["error"].as_str());
        assert_ne!(
            failed.then_some(code).flatten(),
            Some("internal"),
            "{tool} {arguments}: {text}"
        );
        assert!(!text.contains("panicked"), "{tool} {arguments}: {text}");
        answer
    }

    /// Checks that the files outside have not changed.
    fn outside_is_untouched(&self) {
        let names: Vec<_> = fs::read_dir(self.dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names.len(), 2, "{names:?}");
        assert_eq!(fs::read_to_string(self.dir.path().join("secret.txt")).unwrap(), "SECRET\n");
    }
}

const PIECES: [&str; 28] = [
    "a.txt",
    "sub",
    "b.rs",
    "/",
    "..",
    ".",
    "*",
    "**",
    "?",
    "[",
    "]",
    "{",
    "}",
    ",",
    "!",
    "\\",
    "\0",
    "\n",
    " ",
    "ä",
    "\u{202e}",
    "~",
    "$HOME",
    "(",
    ")",
    "|",
    "+",
    "proc/self/root",
];

/// Any JSON at all.
fn value(choices: &mut Choices, depth: usize) -> Value {
    match choices.below(if depth == 0 { 7 } else { 9 }) {
        0 => Value::Null,
        1 => choices.once_in(2).into(),
        2 => json!(choices.below(10)),
        3 => json!(-1),
        4 => json!(2.5),
        5 => json!(u64::MAX),
        6 => choices.text(&PIECES, 6).into(),
        7 => (0..choices.below(4)).map(|_| value(choices, depth - 1)).collect(),
        _ => {
            let fields = (0..choices.below(4))
                .map(|_| (choices.text(&PIECES, 2), value(choices, depth - 1)));
            Value::Object(fields.collect())
        }
    }
}

pub(crate) fn arguments(choices: &mut Choices) {
    let place = Place::new();
    for _ in 0..30 {
        let tool = choices.pick(place.tools.tools());
        let named = tool.input()["properties"].as_object().unwrap();
        // Mostly known arguments, some with values of the right type.
        let mut arguments = Map::new();
        for (name, schema) in named {
            if choices.once_in(3) {
                continue;
            }
            let given = match schema["type"].as_str() {
                Some("string") if !choices.once_in(4) => choices.text(&PIECES, 5).into(),
                Some("integer") if !choices.once_in(4) => json!(choices.below(5)),
                Some("boolean") if !choices.once_in(4) => choices.once_in(2).into(),
                _ => value(choices, 3),
            };
            arguments.insert(name.clone(), given);
        }
        let arguments = if choices.once_in(10) { value(choices, 3) } else { arguments.into() };
        place.call(tool.entry.name, &arguments);
    }
    place.outside_is_untouched();
}

pub(crate) fn paths(choices: &mut Choices) {
    let place = Place::new();
    for _ in 0..30 {
        let path = match choices.below(3) {
            0 => choices.text(&PIECES, 8),
            1 => format!("{}/{}", place.root.display(), choices.text(&PIECES, 6)),
            _ => format!(
                "{}/{}",
                choices.text(&["..", "/", ".", "sub", "//"], 6),
                choices.text(&PIECES, 3)
            ),
        };
        place.call("Read", &json!({ "file_path": path }));
        place.call("get_file_info", &json!({ "path": path }));
        place.call("LS", &json!({"path": path, "ignore": [choices.text(&PIECES, 4)]}));
        place.call("Glob", &json!({ "pattern": path }));
        place.call("Grep", &json!({"pattern": choices.text(&PIECES, 4), "glob": path}));
        place.call("file.list", &json!({"pattern": path}));
        if choices.once_in(3) {
            place.call("file.write", &json!({"path": path, "content": "x"}));
            place.call("file.delete", &json!({ "path": path }));
        }
    }
    place.outside_is_untouched();
}

pub(crate) fn bytes(choices: &mut Choices) {
    let place = Place::new();
    let file = place.root.join("bytes");
    let parts: [&[u8]; 14] = [
        b"one line\n",
        b"two\r\n",
        b"\xff\xfe",
        b"\xfe\xff",
        b"\xef\xbb\xbf",
        b"\0",
        b"\xe4\xf6\xfc ",
        b"\x82\xa0\x82\xa2",
        b"\x1b$B",
        b"a",
        b"\n",
        b"\r",
        b"\xc3\xa4\xc3\xb6",
        b"\xff",
    ];
    let count = choices.below(30);
    let mut content: Vec<u8> = (0..count).flat_map(|_| choices.pick(&parts).to_vec()).collect();
    // A unique text, with arbitrary bytes around it.
    let at = choices.below(content.len() + 1);
    content.splice(at..at, *b"\nNEEDLE\n");
    fs::write(&file, &content).unwrap();
    for tool in ["Read", "file.read", "read_file"] {
        let name = if tool == "Read" { "file_path" } else { "path" };
        place.call(tool, &json!({ name: file }));
    }
    let edit = json!({"file_path": file, "old_string": "NEEDLE", "new_string": "thread"});
    let answer = place.call("Edit", &edit);
    let after = fs::read(&file).unwrap();
    if answer["success"] == true {
        // The bytes before and after the text are unchanged.
        let same = |mut one: std::slice::Iter<'_, u8>, mut other: std::slice::Iter<'_, u8>| {
            let mut count = 0;
            while let (Some(one), Some(other)) = (one.next(), other.next()) {
                if one != other {
                    break;
                }
                count += 1;
            }
            count
        };
        let head = same(content.iter(), after.iter());
        let mut reversed = (content.clone(), after.clone());
        reversed.0.reverse();
        reversed.1.reverse();
        let tail = same(reversed.0.iter(), reversed.1.iter());
        // In UTF-16 and UTF-32 a letter has more bytes.
        assert!(head + tail + 4 * "NEEDLE".len() >= content.len(), "{content:?} became {after:?}");
    } else {
        assert_eq!(after, content, "{answer}");
    }
    place.outside_is_untouched();
}

pub(crate) fn notebooks(choices: &mut Choices) {
    let place = Place::new();
    let file = place.root.join("n.ipynb");
    for _ in 0..10 {
        let cells: Vec<Value> = (0..choices.below(5)).map(|_| cell(choices)).collect();
        let mut notebook = json!({"cells": cells, "metadata": value(choices, 2), "nbformat": 4, "nbformat_minor": 5});
        if choices.once_in(3) {
            let key = (*choices.pick(&["cells", "metadata", "nbformat"])).to_owned();
            notebook[key] = value(choices, 3);
        }
        let mut text = notebook.to_string();
        if choices.once_in(4) {
            let mut end = choices.below(text.len() + 1);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
        }
        fs::write(&file, text).unwrap();
        place.call("Read", &json!({ "file_path": file }));
        place.call(
            "Read",
            &json!({"file_path": file, "offset": 1 + choices.below(9), "limit": 1 + choices.below(9)}),
        );
        place.call("file.read", &json!({ "path": file }));
    }
}

fn cell(choices: &mut Choices) -> Value {
    let source = if choices.once_in(4) {
        value(choices, 2)
    } else {
        json!(["print(1)\n", choices.text(&PIECES, 4)])
    };
    let output = match choices.below(5) {
        0 => json!({"output_type": "stream", "name": "stdout", "text": value(choices, 2)}),
        1 => {
            json!({"output_type": "display_data", "data": {"image/png": value(choices, 1), "text/plain": "x"}})
        }
        2 => {
            json!({"output_type": "error", "ename": "E", "evalue": value(choices, 1), "traceback": value(choices, 2)})
        }
        3 => json!({"output_type": "execute_result", "data": value(choices, 2)}),
        _ => value(choices, 2),
    };
    let kind = (*choices.pick(&["code", "markdown", "raw", "odd"])).to_owned();
    json!({"cell_type": kind, "id": value(choices, 0), "execution_count": value(choices, 0), "source": source, "outputs": [output]})
}

pub(crate) fn ignore_files(choices: &mut Choices) {
    let place = Place::new();
    let lines = [
        "*.rs", "!b.rs", "/sub", "sub/", "**", "a.txt", "#", "\\#", "[", "a[", "***", "/", "!",
        "\\", " ", "{a,b}", "\u{feff}",
    ];
    let text: String = (0..choices.below(6))
        .map(|_| format!("{}{}\n", choices.pick(&lines), choices.text(&lines, 1)))
        .collect();
    fs::write(place.root.join(".gitignore"), &text).unwrap();
    let found = place.call("Glob", &json!({"pattern": "**/*"}));
    let searched = place.call("Grep", &json!({"pattern": "main|two"}));
    // Both show the same lines.
    for name in ["a.txt", "sub/b.rs"] {
        let shown = |answer: &Value| {
            let path = place.root.join(name).display().to_string();
            answer["content"].as_str().is_some_and(|content| content.contains(&path))
        };
        assert_eq!(shown(&found), shown(&searched), "{text:?}: {found} {searched}");
    }
    // A line with just the name always hides it.
    fs::write(place.root.join(".gitignore"), format!("{text}\na.txt\n")).unwrap();
    let found = place.call("Glob", &json!({"pattern": "**/*"}));
    let listed = found["content"].as_str().unwrap_or_default();
    assert!(!listed.contains("/a.txt"), "{text:?}: {found}");
}
