//! `cargo xtask filesystems`: finds out which promise holds on which file system.
//!
//! The tests of each promise run with their directories on each file system (`TMPDIR`). It is mounted in its own
//! mount namespace, so nothing is left on this machine. File systems that this kernel does not have are mounted by
//! Debian's kernel, as a process. The printed table is the one in `docs/FILESYSTEMS.md`.

mod machine;
mod mounts;
mod promises;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::release::home;
use crate::tool;
use machine::Machine;
use mounts::{Mount, ROWS, SPECIAL, all};
use promises::Outcome;

const MARKS: [&str; 2] = ["<!-- cargo xtask filesystems -->\n", "<!-- end -->\n"];

const LIMITS: &str = "| file system | what is missing | tests that check what holds without it, or leave a part out |\n\
    |---|---|---|\n";

/// The test programs by name, and the `rg` that searches are compared with.
#[derive(Debug)]
pub(crate) struct Programs {
    tests: BTreeMap<String, (PathBuf, PathBuf)>,
    rg: String,
}

/// The directory for Debian's kernel, and for what it starts from.
fn place() -> PathBuf {
    home().join("target/filesystems")
}

/// Tries every file system, or the given ones, and writes their rows. With `--only TEST,TEST`, runs the tests whose names
/// contain one of these, and writes nothing.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    if let ["--inside", name, only @ ..] = arguments {
        return inside(name, only.first().copied().unwrap_or_default());
    }
    let (arguments, only) = match arguments {
        [rows @ .., "--only", test] => (rows, *test),
        rows => (rows, ""),
    };
    let known = |name: &&str| all().any(|row| row.name == *name);
    if let Some(unknown) = arguments.iter().find(|name| !known(name)) {
        let names: Vec<_> = all().map(|row| row.name).collect();
        bail!("no file system `{unknown}`; there are {}", names.join(", "));
    }
    fs::create_dir_all(place())?;
    Programs::build()?.save()?;
    let chosen = |row: &&Mount| arguments.is_empty() || arguments.contains(&row.name);
    let (here, there): (Vec<_>, Vec<_>) = all().filter(chosen).partition(|it| it.is_known_here());
    // First, since only one program at a time can install packages. The row says what went wrong.
    here.iter().chain(&there).for_each(|row| _ = row.install());
    there.iter().for_each(|row| _ = Machine::set_up(row.packages));
    // At once: Debian's kernel has one processor, and leaves the others to this one.
    let (page, problems) = (Mutex::new(()), Mutex::new(Vec::new()));
    let try_rows = |rows: &[&Mount]| {
        for row in rows {
            let found = try_row(row, only).and_then(|outcomes| {
                let line = row.line(&outcomes);
                println!("{line}");
                let _page = page.lock().unwrap_or_else(PoisonError::into_inner);
                if only.is_empty() {
                    write_row(row, &line, &row.limits(&outcomes))?;
                }
                Ok(row.problems(&outcomes))
            });
            let found = found.unwrap_or_else(|problem| {
                eprintln!("xtask: !!! {} WAS NOT TRIED: {problem:#} !!!", row.title);
                vec![format!("{}: {problem:#}", row.title)]
            });
            problems.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| try_rows(&there));
        try_rows(&here);
    });
    let problems = problems.into_inner().unwrap_or_else(PoisonError::into_inner);
    if problems.is_empty() { Ok(()) } else { bail!("{}", problems.join("\n")) }
}

/// Replaces a row of the page, and its limits. The others stay, since they take long.
fn write_row(row: &Mount, line: &str, limits: &[String]) -> Result<()> {
    let page = home().join("docs/FILESYSTEMS.md");
    let old = fs::read_to_string(&page)?;
    let known = |row: &Mount| {
        let start = format!("| {} |", row.title);
        old.lines().find(|line| line.starts_with(&start)).map(str::to_owned)
    };
    let tables = [(&ROWS[..], "file system"), (&SPECIAL, "mount")].map(|(rows, what)| {
        let line_of = |it: &Mount| if it.name == row.name { Some(line.into()) } else { known(it) };
        let lines = rows.iter().filter_map(line_of);
        lines.fold(head(what, &rows[0]), |table, line| table + &line + "\n")
    });
    let old_limits = old.split_once(LIMITS).map_or("", |(_, rest)| rest);
    let old_limits = old_limits.split(MARKS[1]).next().unwrap_or_default().lines();
    let limits_of = |it: &Mount| -> Vec<String> {
        let start = format!("| {} |", it.title);
        let known = old_limits.clone().filter(|line| line.starts_with(&start)).map(str::to_owned);
        if it.name == row.name { limits.to_vec() } else { known.collect() }
    };
    let limits =
        all().flat_map(limits_of).fold(LIMITS.to_owned(), |table, line| table + &line + "\n");
    crate::write_between(&page, MARKS, &format!("{}\n{limits}", tables.join("\n")))
}

fn head(what: &str, first: &Mount) -> String {
    let titles: String = first.columns.iter().map(|it| format!(" {} |", it.title)).collect();
    format!("| {what} | mounted by |{titles}\n|{}\n", "---|".repeat(first.columns.len() + 2))
}

/// The outcomes of all promises on a file system, and the kernel.
fn try_row(row: &Mount, only: &str) -> Result<BTreeMap<String, Outcome>> {
    eprintln!("xtask: {}", row.title);
    let begin = Instant::now();
    row.install()?;
    let said = if row.is_known_here() {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private"]).arg(std::env::current_exe()?);
        command.args(["filesystems", "--inside", row.name, only]);
        lines_of(row, &mut command)?
    } else {
        lines_of(row, &mut Machine::set_up(row.packages)?.command(row.name, only)?)?
    };
    let mut outcomes = BTreeMap::new();
    for line in said.lines().filter_map(|line| line.split_once("RESULT ")) {
        let value: Value = serde_json::from_str(line.1)?;
        if let Some(problem) = value["problem"].as_str() {
            bail!("{problem}");
        }
        outcomes.insert(value["column"].as_str().unwrap_or_default().into(), Outcome::of(&value));
    }
    if outcomes.is_empty() {
        bail!("no test ended");
    }
    eprintln!("xtask: {}: {} s", row.title, begin.elapsed().as_secs());
    Ok(outcomes)
}

/// Runs a program, shows its output, and returns it, too.
fn lines_of(row: &Mount, command: &mut Command) -> Result<String> {
    use std::io::{BufRead as _, BufReader};
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().context("it has no output")?;
    let mut text = String::new();
    for line in BufReader::new(output).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).trim_end().to_owned();
        eprintln!("{:>12}: {line}", row.name);
        writeln!(text, "{line}")?;
    }
    child.wait()?;
    Ok(text)
}

/// Runs in the namespace or below Debian's kernel: mounts the file system, and prints a line for each promise.
fn inside(name: &str, only: &str) -> Result<()> {
    let row = all().find(|row| row.name == name).context("no such file system")?;
    let programs = Programs::load()?;
    let at = match row.mount() {
        Ok(at) => at,
        Err(problem) => {
            println!("RESULT {}", json!({"problem": format!("{problem:#}")}));
            return Ok(());
        }
    };
    for column in row.columns {
        let outcome = column.run(&programs, &at, only)?;
        println!("RESULT {}", outcome.to_json(column.title));
    }
    // A process that provides a file system would keep the namespace and the disk.
    Command::new("umount").args(["--recursive", "--lazy", "/mnt"]).status()?;
    Ok(())
}

impl Programs {
    /// Compiles the tests.
    fn build() -> Result<Self> {
        let mut cargo = Command::new("cargo");
        // Optimised, since some tests race and others make thousands of changes.
        cargo.args(["test", "--release", "--no-run", "--message-format=json"]);
        for package in ["pinfold-confine", "pinfold", "pinfold-dialects", "pinfold-cli"] {
            cargo.args(["--package", package]);
        }
        let tests = all().flat_map(|row| row.columns).flat_map(|column| column.tests);
        let names: BTreeSet<_> = tests.filter_map(|(test, _)| test.split('/').nth(1)).collect();
        names.iter().for_each(|name| _ = cargo.args(["--test", name]));
        cargo.stderr(Stdio::inherit());
        let output = cargo.current_dir(home()).output()?;
        if !output.status.success() {
            bail!("the tests do not compile");
        }
        let mut tests = BTreeMap::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let message: Value = serde_json::from_str(line)?;
            let (Some(program), Some(name)) =
                (message["executable"].as_str(), message["target"]["name"].as_str())
            else {
                continue;
            };
            if message["target"]["kind"][0] != "test" {
                continue;
            }
            let manifest = Path::new(message["manifest_path"].as_str().unwrap_or_default());
            let (directory, package) = (manifest.parent().unwrap_or(manifest), manifest);
            let package = package.parent().and_then(Path::file_name).unwrap_or_default();
            let name = format!("{}/{name}", package.to_string_lossy());
            tests.insert(name, (program.into(), directory.to_owned()));
        }
        Ok(Self { tests, rg: tool("rg", "ripgrep", "15.2.0")? })
    }

    fn save(&self) -> Result<()> {
        let value = json!({"tests": self.tests, "rg": self.rg});
        Ok(fs::write(place().join("programs.json"), value.to_string())?)
    }

    fn load() -> Result<Self> {
        let value: Value =
            serde_json::from_str(&fs::read_to_string(place().join("programs.json"))?)?;
        Ok(Self {
            tests: serde_json::from_value(value["tests"].clone())?,
            rg: value["rg"].as_str().unwrap_or_default().into(),
        })
    }
}
