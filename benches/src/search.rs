//! `Grep` and `Glob` in a running session, against `rg` and `fd` as processes.
//!
//! `--corpus DIR` names the tree; without it, Debian's kernel source is fetched. Smaller trees are cut out of it;
//! `--files N` measures one of that size alone, and `--query NAME` one query alone: `--query Glob` those by name, and
//! `--query 'Glob PATTERN'` one of them. Answers are compared with those of `rg --sort path` before anything is
//! timed. `Grep` returns the first 250 lines or files and counts all of them, as `rg` prints all of them; where
//! lines are limited, nothing is counted on either side. But for the last column, each call has a regex in a wording
//! that was not asked before, so that neither a compiled pattern nor a result is cached.

mod policy;
mod queries;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use pinfold::{Permissions, Session, Settings};
use pinfold_dialects::{CLASSIC, Toolbox};
use serde_json::{Value, json};

use self::queries::{FINDS, Query, queries};
use crate::corpus;

/// The directories of a kernel that smaller trees begin with.
const CORE: [&str; 6] = ["kernel", "mm", "lib", "fs", "net", "include"];

pub(crate) fn run() {
    let mut arguments: Vec<String> = std::env::args().skip(2).collect();
    let mut option = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.drain(at..at + 2).next_back()
    };
    let only = option("--files").map(|files| files.parse::<usize>().expect("--files N"));
    let query = option("--query");
    let corpus = corpus("search", &arguments);
    let cut = tempfile::tempdir().unwrap();
    for files in [1_500, 10_000].into_iter().filter(|files| only.is_none_or(|only| only == *files))
    {
        let tree = cut.path().join(files.to_string());
        let mut left = files;
        let core = CORE.iter().map(|name| corpus.join(name)).filter(|path| path.is_dir());
        for directory in core {
            copy_some(&directory, &tree.join(directory.file_name().unwrap()), &mut left);
        }
        copy_some(&corpus, &tree, &mut left);
        bench(&tree.canonicalize().unwrap(), query.as_deref(), 9);
    }
    if only.is_none_or(|only| only > 10_000) {
        bench(&corpus, query.as_deref(), 3);
    }
}

/// The settings of all sessions: as few differences from `rg` as possible.
fn settings() -> Settings {
    // The kernel's tests have a private key, which would be withheld.
    let keys = Permissions { allow: vec!["Read(*.pem)".into()], ..Permissions::default() };
    Settings::default()
        .with_permissions(keys)
        .with_max_output_bytes(Some(usize::MAX / 2))
        .with_max_line_chars(1_000_000)
        .with_max_count_bytes(u64::MAX)
}

fn toolbox(tree: &Path, settings: Settings) -> Toolbox {
    Toolbox::new(Session::with_settings([tree], settings).unwrap(), &[&CLASSIC])
}

fn bench(tree: &Path, only: Option<&str>, rounds: usize) {
    if let Some(pattern) = only.and_then(|only| only.strip_prefix("Glob")) {
        return globs(tree, Some(pattern.trim()).filter(|pattern| !pattern.is_empty()), rounds);
    }
    let warm = toolbox(tree, settings().with_max_index_bytes(Some(0)));
    let indexed = toolbox(tree, settings());
    build_index(tree, &indexed);
    // For queries with a limit.
    let warm_head = toolbox(tree, settings().with_max_index_bytes(Some(0)).with_max_count_bytes(0));
    let indexed_head = toolbox(tree, settings().with_max_count_bytes(0));
    build_index(tree, &indexed_head);
    println!(
        "{:<36} {:>10} | times as fast: {:>8} {:>8} {:>8} {:>8}",
        "query", "rg in ms", "cold", "tree", "index", "memo"
    );
    let mut logarithms = [0.0; 4];
    let mut queries = queries();
    queries.retain(|query| only.is_none_or(|only| only == query.name));
    for query in &queries {
        let (warm, indexed) =
            if query.head.is_some() { (&warm_head, &indexed_head) } else { (&warm, &indexed) };
        check(query, tree, indexed);
        let cold = settings().with_max_count_bytes(if query.head.is_some() { 0 } else { u64::MAX });
        let times = shortest(
            rounds,
            &mut [
                &mut || without_session(|| drop(searched(tree, query, &[]))),
                &mut || first_call(tree, cold.clone(), "Grep", &query.arguments),
                &mut || without_session(|| drop(answer(warm, "Grep", &query.reworded()))),
                &mut || without_session(|| drop(answer(indexed, "Grep", &query.reworded()))),
                &mut || without_session(|| drop(answer(indexed, "Grep", &query.arguments))),
            ],
        );
        let [rg, ours @ ..] = times.as_slice() else { unreachable!() };
        let ratios = print_ratios(query.name, *rg, ours);
        logarithms.iter_mut().zip(&ratios).for_each(|(sum, ratio)| *sum += ratio.ln());
        if query.head.is_some() {
            // This `rg` has the same answer.
            let sorted = shortest(
                rounds,
                &mut [&mut || without_session(|| drop(searched(tree, query, &["--sort", "path"])))],
            );
            print_ratios("  rg --sort path", sorted[0], ours);
        }
    }
    print!("{:<36} {:>10} |               ", "geometric mean", "");
    for sum in logarithms {
        print!(" {:>8.1}", (sum / queries.len() as f64).exp());
    }
    println!();
    if only.is_some() {
        return;
    }
    after_an_edit(tree, &indexed, rounds);
    globs(tree, None, rounds);
    policy::bench(tree, rounds);
}

/// The first call of a new session. The session ends later.
fn first_call(tree: &Path, settings: Settings, tool: &str, arguments: &Value) -> Option<Toolbox> {
    let toolbox = toolbox(tree, settings);
    answer(&toolbox, tool, arguments);
    Some(toolbox)
}

/// A call without a session of its own.
fn without_session(call: impl FnOnce()) -> Option<Toolbox> {
    call();
    None
}

/// Prints a row, and returns how many times as fast the calls are.
fn print_ratios(name: &str, rg: Duration, ours: &[Duration]) -> Vec<f64> {
    let ratios: Vec<f64> = ours.iter().map(|time| rg.as_secs_f64() / time.as_secs_f64()).collect();
    print!("{name:<36} {:>10.2} |               ", milliseconds(rg));
    ratios.iter().for_each(|ratio| print!(" {ratio:>8.2}"));
    println!();
    ratios
}

/// Waits for the index, and prints what it took.
fn build_index(tree: &Path, indexed: &Toolbox) {
    let no_match = json!({"pattern": "zzz_not_there_yet"});
    let begin = Instant::now();
    answer(indexed, "Grep", &no_match);
    let cold = begin.elapsed();
    answer(indexed, "Grep", &no_match);
    let begin = Instant::now();
    while indexed.session().index_summary().is_building {
        thread::sleep(Duration::from_millis(1));
    }
    let (built, summary) = (begin.elapsed(), indexed.session().index_summary());
    println!(
        "{}: the index of {} files was built in {:.0} ms, {:.1} times the first search, and takes {:.1} MiB",
        tree.display(),
        summary.files,
        milliseconds(built),
        built.as_secs_f64() / cold.as_secs_f64(),
        summary.bytes as f64 / f64::from(1 << 20)
    );
}

/// A search right after another process has changed, created and removed a file.
fn after_an_edit(tree: &Path, indexed: &Toolbox, rounds: usize) {
    let query = &queries()[0];
    let file = tree.join("kernel/pinfold-bench.c");
    let mut ours = [Duration::MAX; 3];
    let mut theirs = Duration::MAX;
    for round in 0..rounds {
        for (number, best) in ours.iter_mut().enumerate() {
            match number {
                0 => fs::write(&file, format!("int created_{round};\n")).unwrap(),
                1 => fs::write(&file, format!("int changed_{round};\n")).unwrap(),
                _ => fs::remove_file(&file).unwrap(),
            }
            let begin = Instant::now();
            drop(answer(indexed, "Grep", &query.reworded()));
            *best = begin.elapsed().min(*best);
        }
        let begin = Instant::now();
        drop(searched(tree, query, &[]));
        theirs = begin.elapsed().min(theirs);
    }
    for (what, ours) in ["created", "changed", "removed"].iter().zip(ours) {
        let name = format!("rare literal after a file was {what}");
        print_row(&name, "rg", theirs, &[("indexed", ours)]);
    }
}

fn globs(tree: &Path, only: Option<&str>, rounds: usize) {
    let usual = toolbox(tree, settings());
    let all = toolbox(tree, settings().with_max_glob_files(usize::MAX));
    let fd = std::env::var("PINFOLD_FD").unwrap();
    let mut logarithms = [0.0; 2];
    let finds = FINDS.iter().filter(|(pattern, ..)| only.is_none_or(|only| only == *pattern));
    let number = finds.clone().count() as f64;
    for (pattern, directory, theirs) in finds {
        let arguments = json!({"pattern": pattern});
        let theirs = || {
            let mut command = Command::new(&fd);
            command.args(["--no-global-ignore-file", "--no-require-git", "-t", "f"]);
            command.args(["--glob", theirs]).arg(tree.join(directory)).output().unwrap().stdout
        };
        // For us, a link to a file is a file.
        let ours = answer(&all, "Glob", &arguments);
        let links = |path: &&str| !fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
        let ours: Vec<_> = ours.lines().filter(links).collect();
        same_lines(pattern, &ours.join("\n"), &String::from_utf8_lossy(&theirs()));
        // A list of names is cached from the third call on.
        (0..3).for_each(|_| drop(answer(&usual, "Glob", &arguments)));
        let times = shortest(
            rounds,
            &mut [
                &mut || without_session(|| drop(theirs())),
                &mut || first_call(tree, settings(), "Glob", &arguments),
                &mut || without_session(|| drop(answer(&usual, "Glob", &arguments))),
            ],
        );
        let name = format!("Glob {pattern}");
        print_row(&name, "fd", times[0], &[("cold", times[1]), ("warm", times[2])]);
        for (sum, time) in logarithms.iter_mut().zip(&times[1..]) {
            *sum += (times[0].as_secs_f64() / time.as_secs_f64()).ln();
        }
    }
    let [cold, warm] = logarithms.map(|sum| (sum / number).exp());
    println!("Glob, geometric mean: cold {cold:.1}, warm {warm:.1} times as fast");
}

/// The output of `rg`. `more` has further flags, such as an order.
fn searched(tree: &Path, query: &Query, more: &[&str]) -> Vec<u8> {
    let mut command = Command::new(std::env::var("PINFOLD_RG").unwrap());
    command.args(["--no-config", "--hidden", "--no-require-git", "--no-ignore-global"]);
    command.args(["--no-ignore-exclude", "--no-ignore-parent", "-g", "!.git"]);
    command.args(["-H", "-n", "--no-heading"]).args(more).args(&query.flags);
    command.args(["-e", query.pattern()]).arg(tree);
    let Some(head) = query.head else { return command.output().unwrap().stdout };
    // Like `head`, this closes the pipe after this many lines.
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut lines = Vec::new();
    for _ in 0..head {
        reader.read_until(b'\n', &mut lines).unwrap();
    }
    drop(reader);
    child.wait().unwrap();
    lines
}

/// Compares a whole answer with that of `rg`.
fn check(query: &Query, tree: &Path, toolbox: &Toolbox) {
    let mut whole = query.reworded();
    if query.head.is_none() {
        whole["head_limit"] = 0.into();
    }
    let ours = answer(toolbox, "Grep", &whole);
    let theirs = searched(tree, query, &["--sort", "path"]);
    let theirs = String::from_utf8_lossy(&theirs);
    if query.is_by_path() {
        let notice = |line: &&str| !line.starts_with("No ") && !line.starts_with('(');
        let ours: String = ours.lines().filter(notice).flat_map(|line| [line, "\n"]).collect();
        let theirs: String = theirs.lines().flat_map(|line| [line, "\n"]).collect();
        assert!(ours == theirs, "{}: not the same bytes", query.name);
    } else {
        same_lines(query.name, &ours, &theirs);
    }
}

/// Fails unless both have the same lines, in any order.
fn same_lines(what: &str, ours: &str, theirs: &str) {
    let lines = |text: &str| -> BTreeSet<String> {
        let notice = |line: &&str| !line.starts_with("No ") && !line.starts_with('(');
        text.lines().filter(notice).map(str::to_owned).collect()
    };
    let (ours, theirs) = (lines(ours), lines(theirs));
    let (more, fewer): (Vec<_>, Vec<_>) =
        (ours.difference(&theirs).take(3).collect(), theirs.difference(&ours).take(3).collect());
    assert!(
        more.is_empty() && fewer.is_empty(),
        "{what}: only ours {more:?}, only theirs {fewer:?}"
    );
}

fn answer(toolbox: &Toolbox, tool: &str, arguments: &Value) -> String {
    let mut answer = toolbox.call(tool, arguments.clone()).to_json();
    assert_eq!(answer["success"], true, "{answer}");
    match answer["content"].take() {
        Value::String(content) => content,
        other => panic!("{other}"),
    }
}

/// The shortest time of each side. They take turns, and short calls are repeated. A session that a call opened ends
/// after its time was taken.
fn shortest(rounds: usize, sides: &mut [&mut dyn FnMut() -> Option<Toolbox>]) -> Vec<Duration> {
    let mut times = vec![Duration::MAX; sides.len()];
    for _ in 0..rounds {
        for (side, best) in sides.iter_mut().zip(&mut times) {
            let all = Instant::now();
            while all.elapsed() < Duration::from_millis(20) {
                let begin = Instant::now();
                let session = side();
                *best = begin.elapsed().min(*best);
                drop(session);
            }
        }
    }
    times
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Prints one side's time, and how many times as fast the other sides are.
fn print_row(name: &str, side: &str, time: Duration, others: &[(&str, Duration)]) {
    print!("{name:<40} {side} {:>8.2} ms", milliseconds(time));
    for (other, ours) in others {
        let ratio = time.as_secs_f64() / ours.as_secs_f64();
        print!("   {other} {:>8.3} ms, {ratio:.1} times as fast", milliseconds(*ours));
    }
    println!();
}

/// Copies the first files of a tree that do not exist yet.
fn copy_some(from: &Path, to: &Path, left: &mut usize) {
    let mut entries: Vec<_> =
        fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    fs::create_dir_all(to).unwrap();
    for path in entries {
        let to = to.join(path.file_name().unwrap());
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if *left == 0 {
            return;
        } else if kind.is_dir() {
            copy_some(&path, &to, left);
        } else if kind.is_file() && !to.exists() {
            fs::copy(&path, to).unwrap();
            *left -= 1;
        }
    }
}
