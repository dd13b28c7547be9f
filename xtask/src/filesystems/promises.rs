//! The promises, and the tests for each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use serde_json::{Value, json};

use super::Programs;

/// A promise and its tests: a test program, and the names of its tests, or none for all.
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) tests: &'static [(&'static str, &'static [&'static str])],
}

pub(crate) const PROMISES: [Column; 7] = [
    Column {
        title: "fence",
        tests: &[("confine/fence", &[]), ("confine/narrowed", &[]), ("confine/walk", &[])],
    },
    Column { title: "races", tests: &[("confine/swap_race", &[]), ("confine/moved_roots", &[])] },
    Column {
        title: "atomic replace",
        tests: &[
            ("confine/writes", &[]),
            ("confine/sweep", &[]),
            ("confine/moves", &[]),
            ("confine/trees", &[]),
        ],
    },
    Column {
        title: "faults at every call",
        tests: &[("confine/faults", &[]), ("pinfold/commits", &[])],
    },
    Column { title: "change sets", tests: &[("pinfold/sets", &[]), ("pinfold/rewinds", &[])] },
    Column { title: "journal and undo", tests: &[("cli/journal", &[])] },
    Column {
        title: "never stale",
        tests: &[("confine/tree", &[]), ("dialects/fuzz", &["searches_are_never_stale"])],
    },
];

/// The outcome of a promise.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) passed: u64,
    pub(crate) failed: Vec<String>,
    pub(crate) unfinished: Vec<String>,
    /// What the file system lacks, each with the tests that found it. They checked what holds without it.
    pub(crate) limits: BTreeMap<String, BTreeSet<String>>,
}

/// How long a test may take. Below Debian's kernel, some take minutes.
const TEST_LIMIT: Duration = Duration::from_secs(20 * 60);

/// Tests that take longer are named, since they make a row slow.
const SLOW: Duration = Duration::from_secs(5);

impl Outcome {
    pub(crate) fn of(value: &Value) -> Self {
        let names = |key: &str| {
            let names = value[key].as_array().into_iter().flatten();
            names.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            passed: value["passed"].as_u64().unwrap_or_default(),
            failed: names("failed"),
            unfinished: names("unfinished"),
            limits: serde_json::from_value(value["limits"].clone()).unwrap_or_default(),
        }
    }

    pub(crate) fn to_json(&self, column: &str) -> Value {
        let Self { passed, failed, unfinished, limits } = self;
        json!({
            "column": column, "passed": passed, "failed": failed, "unfinished": unfinished, "limits": limits,
        })
    }
}

/// A test of a program. It runs in its own process, as under `cargo nextest`.
struct Test<'p> {
    program: &'p Path,
    directory: &'p Path,
    name: String,
    title: String,
}

impl Test<'_> {
    /// Whether it passes, and what it found missing. Returns `None` if it did not end in time.
    fn run(&self, rg: &str, at: &Path) -> Result<Option<(bool, BTreeSet<String>)>> {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", &TEST_LIMIT.as_secs().to_string()]);
        let small = at.with_file_name("small");
        if small.exists() {
            // Root may exceed a quota, unless it lacks this capability.
            command.args(["setpriv", "--bounding-set=-sys_resource"]);
            // The journal is on another file system, because its backups of deleted files would use space on this
            // one.
            command.env("PINFOLD_SMALL_DISK", small);
        } else {
            command.env("TMPDIR", at);
        }
        command.arg(self.program).args([&self.name, "--exact"]).current_dir(self.directory);
        command.env("PINFOLD_RG", rg).env("RUST_BACKTRACE", "0");
        let skipped = Path::new("/mnt").join(format!("skipped {}", self.name));
        command.env("PINFOLD_SKIPPED", &skipped);
        let begin = Instant::now();
        let output = command.stdin(Stdio::null()).output()?;
        let took = begin.elapsed();
        if took > SLOW {
            eprintln!("{}: {} s", self.title, took.as_secs());
        }
        if matches!(output.status.code(), Some(124 | 137)) {
            return Ok(None);
        }
        if !output.status.success() {
            let [said, also] =
                [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
            eprintln!("{}: {}\n{said}{also}", self.title, output.status);
        }
        // A test that could not try anything shows nothing.
        let notices = fs::read_to_string(&skipped).unwrap_or_default();
        let not_tried = notices.lines().find(|notice| notice.starts_with("NOT TRIED:"));
        not_tried.into_iter().for_each(|notice| eprintln!("{}: {notice}", self.title));
        let limits = notices.lines().filter_map(|notice| notice.strip_prefix("LIMITED: "));
        let limits = limits.map(str::to_owned).collect();
        Ok(Some((output.status.success() && not_tried.is_none(), limits)))
    }
}

impl Column {
    /// The tests for a special mount.
    pub(crate) const fn of(tests: &'static [(&'static str, &'static [&'static str])]) -> Self {
        Self { title: "holds", tests }
    }

    /// Runs the tests whose names contain a part of `only`, with their directories below `at`, two at a time.
    pub(crate) fn run(&self, programs: &Programs, at: &Path, only: &str) -> Result<Outcome> {
        let mut tests = self.tests_in(programs)?;
        tests.retain(|test| only.split(',').any(|part| test.title.contains(part)));
        let tests = Mutex::new(tests.into_iter());
        let outcome = Mutex::new(Outcome::default());
        let work = || -> Result<()> {
            loop {
                let next = tests.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(test) = next else { return Ok(()) };
                let ended = test.run(&programs.rg, at)?;
                let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
                match ended {
                    Some((true, limits)) => {
                        outcome.passed += 1;
                        for limit in limits {
                            outcome.limits.entry(limit).or_default().insert(test.title.clone());
                        }
                    }
                    Some((false, _)) => outcome.failed.push(test.title),
                    None => outcome.unfinished.push(test.title),
                }
            }
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(work);
            work()?;
            other.join().map_err(|_| anyhow!("a thread panicked"))?
        })?;
        Ok(outcome.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn tests_in<'p>(&self, programs: &'p Programs) -> Result<Vec<Test<'p>>> {
        let mut tests = Vec::new();
        for (test, wanted) in self.tests {
            let (program, directory) =
                programs.tests.get(*test).with_context(|| format!("there is no test `{test}`"))?;
            let list = Command::new(program).args(["--list", "--format", "terse"]).output()?;
            let list = String::from_utf8(list.stdout)?;
            for name in list.lines().filter_map(|line| line.strip_suffix(": test")) {
                if wanted.is_empty() || wanted.contains(&name) {
                    let title = format!("{test}::{name}");
                    tests.push(Test { program, directory, name: name.into(), title });
                }
            }
        }
        Ok(tests)
    }
}
