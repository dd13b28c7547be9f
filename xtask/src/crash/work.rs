//! The calls that change files, and the checks of a disk on which they were interrupted.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

/// The setting `durability`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Durability {
    None,
    Data,
    Full,
}

impl Durability {
    pub(crate) const ALL: [Self; 3] = [Self::Full, Self::Data, Self::None];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Data => "data",
            Self::Full => "full",
        }
    }
}

/// A command that changes files.
enum Step {
    Call(&'static str, Value),
    /// Several files, all or none.
    Apply(&'static str),
    Undo,
}

const PATCH: &str = "*** Begin Patch
*** Update File: small.txt
@@
-second version
+version of the set
*** Add File: set/added.txt
+added by the set
*** Update File: other.txt
@@
-other, old
+other, new
*** Delete File: leaves.txt
*** End Patch
";

/// The files that the patch changes. Other calls change only the first of them.
const SET: [&str; 4] = ["small.txt", "set/added.txt", "other.txt", "leaves.txt"];

fn steps() -> Vec<Step> {
    let write =
        |path, content: String| Step::Call("file.write", json!({"path": path, "content": content}));
    let patch = |path, find: &str, replace: &str| {
        let patches = json!([{"find": find, "replace": replace}]);
        Step::Call("file.patch", json!({"path": path, "patches": patches}))
    };
    vec![
        write("small.txt", "second version\n".into()),
        patch("large.txt", "line 7777\n", "line seven\n"),
        write("new/deep/file.txt", "created\n".repeat(2_000)),
        Step::Call("file.delete", json!({"path": "gone.txt"})),
        Step::Apply(PATCH),
        write("large.txt", "x".repeat(70_000)),
        Step::Undo,
        Step::Undo,
        patch("large.txt", "line seven\n", "line 7\n"),
        write("small.txt", "last version\n".into()),
    ]
}

/// Every path below the root with its content. The paths also tell the entries of directories.
type Tree = BTreeMap<String, Vec<u8>>;

pub(crate) struct Work {
    at: PathBuf,
    program: PathBuf,
    pub(crate) durability: Durability,
    /// Whether a change that is on the disk means that those before it are, too.
    keeps_order: bool,
    /// The files before the first call, and after each.
    states: Vec<Tree>,
}

impl Work {
    /// Makes the workspace.
    pub(crate) fn prepare(
        at: &Path,
        program: &Path,
        durability: Durability,
        keeps_order: bool,
    ) -> Result<Self> {
        let config = at.with_file_name("config/pinfold");
        fs::create_dir_all(&config)?;
        let text = format!("durability = \"{}\"\n", durability.name());
        fs::write(config.join("config.toml"), text)?;
        let root = at.join("ws");
        fs::create_dir(&root)?;
        let large: String = (0..30_000).map(|number| format!("line {number}\n")).collect();
        for (name, content) in [
            ("small.txt", "first version\n"),
            ("large.txt", &large),
            ("gone.txt", "to be deleted\n"),
            ("other.txt", "other, old\n"),
            ("leaves.txt", "deleted by the set\n"),
        ] {
            fs::write(root.join(name), content)?;
        }
        let states = vec![tree(&root)?];
        let (at, program) = (at.to_owned(), program.to_owned());
        Ok(Self { at, program, durability, keeps_order, states })
    }

    pub(crate) fn calls(&self) -> usize {
        self.states.len() - 1
    }

    /// Makes the calls, one after the other.
    pub(crate) fn perform(&mut self, answered: impl Fn()) -> Result<()> {
        for step in steps() {
            let output = match &step {
                Step::Call(tool, arguments) => self
                    .pinfold(&["call", "--dialect", "dotted", tool, &arguments.to_string()], "")?,
                Step::Apply(patch) => self.pinfold(&["apply"], patch)?,
                Step::Undo => self.pinfold(&["undo"], "")?,
            };
            answered();
            if !output.status.success() {
                bail!("a call failed: {output:?}");
            }
            self.states.push(tree(&self.root())?);
        }
        Ok(())
    }

    fn root(&self) -> PathBuf {
        self.at.join("ws")
    }

    fn pinfold(&self, arguments: &[&str], input: &str) -> Result<Output> {
        let mut command = Command::new(&self.program);
        command.args(&arguments[..1]).arg("--root").arg(self.root()).args(&arguments[1..]);
        if matches!(arguments[0], "call" | "apply") {
            command.args(["--mode", "bypassPermissions"]);
        }
        command.env("XDG_STATE_HOME", self.at.join("state"));
        command.env("XDG_CONFIG_HOME", self.at.with_file_name("config"));
        command.current_dir("/mnt").stdin(Stdio::piped());
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        process.stdin.take().context("no input")?.write_all(input.as_bytes())?;
        Ok(process.wait_with_output()?)
    }

    /// Checks the disk after this many answered calls. The next call may have been running.
    pub(crate) fn check(&self, answered: usize) -> Result<Result<(), String>> {
        let possible = self.possible(answered);
        if let Err(problem) = self.check_files(&tree(&self.root())?, possible) {
            return Ok(Err(problem));
        }
        // The next process rolls back an interrupted set of changes when it starts.
        let log = self.pinfold(&["log", "--json"], "")?;
        let text = String::from_utf8_lossy(&log.stdout);
        let lines: Option<Vec<Value>> =
            text.lines().map(|line| serde_json::from_str(line).ok()).collect();
        let Some(lines) = lines.filter(|_| log.status.success()) else {
            return Ok(Err(format!("the journal cannot be read: {log:?}")));
        };
        let restored = tree(&self.root())?;
        if let Err(problem) = self.check_together(&restored, possible) {
            return Ok(Err(problem));
        }
        if lines.is_empty() {
            let changed = restored != self.states[0] && self.durability == Durability::Full;
            return Ok(if changed { Err("the journal is empty".into()) } else { Ok(()) });
        }
        let undone = self.pinfold(&["undo"], "")?;
        let now = tree(&self.root())?;
        if !undone.status.success() {
            let said = String::from_utf8_lossy(&undone.stderr);
            // The entry is there before the change.
            let none = said.contains("there is no change to undo") && now == self.states[0];
            // Without `full`, the disk may have a change that the journal does not have. Then undo refuses.
            let refused = said.contains("is not as the change left it")
                && self.durability != Durability::Full;
            if !(none || refused) || now != restored {
                return Ok(Err(format!("the newest change cannot be undone: {}", said.trim())));
            }
        }
        Ok(self.check_files(&now, &self.states).and_then(|()| self.check_names()))
    }

    /// The possible states of the disk. Only `full` promises that an answered change is on it.
    fn possible(&self, answered: usize) -> &[Tree] {
        let first = if self.durability == Durability::Full { answered } else { 0 };
        &self.states[first..(answered + 2).min(self.states.len())]
    }

    /// Checks that each file has its content in one of the states.
    fn check_files(&self, found: &Tree, possible: &[Tree]) -> Result<(), String> {
        let names = self.states.iter().flat_map(Tree::keys).chain(found.keys());
        for name in names.filter(|name| !is_temporary(name)) {
            if !possible.iter().any(|state| state.get(name) == found.get(name)) {
                let what =
                    found.get(name).map_or("missing".into(), |it| format!("{} bytes", it.len()));
                return Err(format!("{name} is {what}, neither old nor new: {}", self.ages(found)));
            }
        }
        Ok(())
    }

    /// Checks that all files are of one state. If changes are neither flushed nor kept in order, only those of the set are.
    fn check_together(&self, found: &Tree, possible: &[Tree]) -> Result<(), String> {
        let matches = |state: &Tree| {
            if self.keeps_order || self.durability == Durability::Full {
                state == found
            } else {
                SET.iter().all(|name| state.get(*name) == found.get(*name))
            }
        };
        if possible.iter().any(matches) {
            return self.check_files(found, possible);
        }
        Err(format!("some files are older than others: {}", self.ages(found)))
    }

    /// Checks that no temp file is left after a call has swept the directory. The rest of a directory that was being
    /// deleted stays, under a name that says so: others may have put files into it.
    fn check_names(&self) -> Result<(), String> {
        let arguments = json!({"path": "probe.txt", "content": "probe\n"}).to_string();
        let made = self.pinfold(&["call", "--dialect", "dotted", "file.write", &arguments], "");
        if !made.as_ref().is_ok_and(|output| output.status.success()) {
            return Err(format!("the next call fails: {made:?}"));
        }
        let names = fs::read_dir(self.root()).map_err(|error| error.to_string())?;
        let is_rest = |entry: &fs::DirEntry| {
            let name = entry.file_name().to_string_lossy().starts_with(".pinfold-kept-");
            name && entry.file_type().is_ok_and(|kind| kind.is_dir())
        };
        let names = names.flatten().filter(|entry| !is_rest(entry));
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        match names.into_iter().find(|name| is_temporary(name)) {
            Some(name) => Err(format!("{name} is left behind")),
            None => Ok(()),
        }
    }

    /// For each file, the calls after which it had this content.
    fn ages(&self, found: &Tree) -> String {
        let mut names: Vec<_> = self.states.iter().flat_map(Tree::keys).collect();
        names.sort_unstable();
        names.dedup();
        let age = |name: &String| {
            let same = |state: &Tree| state.get(name) == found.get(name);
            let calls: Vec<_> =
                (0..self.states.len()).filter(|it| same(&self.states[*it])).collect();
            format!("{name} {calls:?}")
        };
        names.into_iter().map(age).collect::<Vec<_>>().join(", ")
    }
}

/// Whether the last component is the name of one of our temp files.
fn is_temporary(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    last.starts_with(".pinfold-")
}

/// The files below a directory, without temp files and without directories that a removal has set aside.
fn tree(dir: &Path) -> Result<Tree> {
    let mut found = Tree::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
        if is_temporary(&name) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            let below = tree(&path)?.into_iter();
            found.extend(below.map(|(below, content)| (format!("{name}/{below}"), content)));
        } else {
            found.insert(name, fs::read(&path)?);
        }
    }
    Ok(found)
}
