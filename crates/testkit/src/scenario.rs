//! A scenario on the disk, and its run.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::compare::differences;
use crate::{Open, Stage};

/// One case of the corpus.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Topic and case, e.g. `read/empty_file`.
    pub name: String,
    dir: PathBuf,
}

/// All scenarios, sorted by name.
pub fn corpus() -> Vec<Scenario> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut corpus = Vec::new();
    for topic in directories(&root) {
        for dir in directories(&topic) {
            let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
            corpus.push(Scenario { name: format!("{}/{}", name(&topic), name(&dir)), dir });
        }
    }
    assert!(!corpus.is_empty(), "no scenarios below {}", root.display());
    corpus
}

fn directories(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut directories: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    directories.sort();
    directories
}

impl Scenario {
    /// Makes the calls through a front end, and compares the results.
    pub(crate) fn run(&self, open: Open, bless: bool) -> Result<(), String> {
        let stage = Stage::set(&self.dir);
        let before = stage.entries();
        let Some(mut front_end) = open(&stage) else { return Ok(()) };
        let mut replies = Vec::new();
        for call in &stage.calls {
            match call.get("tool").and_then(Value::as_str) {
                Some(tool) => {
                    let arguments = call.get("args").cloned().unwrap_or_default();
                    replies.push(stage.portable(front_end.call(tool, &arguments)));
                }
                None => stage.perform(call),
            }
        }
        drop(front_end);
        let after = stage.entries();
        if bless {
            self.bless(&stage, replies);
            return Ok(());
        }
        let mut problems = Vec::new();
        let expected = self.expected_replies();
        if expected.len() != replies.len() {
            problems.push(format!("{} replies expected, {} came", expected.len(), replies.len()));
        }
        for (number, (expected, reply)) in expected.iter().zip(&replies).enumerate() {
            differences(expected, reply, &format!("reply {}", number + 1), &mut problems);
        }
        stage.compare_tree(&self.dir, before, after, &mut problems);
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
    }

    fn expected_replies(&self) -> Vec<Value> {
        let text =
            fs::read_to_string(self.dir.join("reply.json")).expect("a scenario has a reply.json");
        match serde_json::from_str(&text).expect("reply.json is JSON") {
            Value::Array(replies) => replies,
            reply => vec![reply],
        }
    }

    fn bless(&self, stage: &Stage, mut replies: Vec<Value>) {
        let path = self.dir.join("reply.json");
        // A field that is not in the expectation is not compared.
        if path.exists() {
            for (old, new) in self.expected_replies().iter().zip(&mut replies) {
                keep_open(old, new);
            }
        }
        let replies = if let [only] = replies.as_slice() { only.clone() } else { replies.into() };
        fs::write(path, serde_json::to_string_pretty(&replies).unwrap() + "\n").unwrap();
        stage.bless_tree(&self.dir);
    }
}

fn keep_open(old: &Value, new: &mut Value) {
    match (old, new) {
        (Value::String(any), new) if any == "$ANY" => *new = Value::from("$ANY"),
        (Value::Object(old), Value::Object(new)) => {
            old.iter().for_each(|(key, old)| {
                if let Some(new) = new.get_mut(key) {
                    keep_open(old, new);
                }
            });
        }
        (Value::Array(old), Value::Array(new)) => {
            old.iter().zip(new).for_each(|(old, new)| keep_open(old, new));
        }
        _ => {}
    }
}
