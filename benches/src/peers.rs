//! Pinfold against the servers that a user would pick instead, over MCP on standard input and output, in one
//! interleaved run with one client. Answers are checked, so that failing fast does not win.
//!
//! `peers [--corpus DIR]`: the tree that is searched; without it, Debian's kernel source is fetched.
//! `peers --reference`: only the dialect `reference` against the server whose tools it has.

mod client;
mod operations;
mod reference;
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::corpus;

use client::Client;
use operations::{Operation, operations};
use server::Server;

/// A program that is measured. It has no client if it is not a server.
struct Contender {
    server: Server,
    client: Option<Client>,
}

/// The shortest time and the length of its answers. `None` if it cannot do it.
#[derive(Clone, Copy, Default)]
struct Measured {
    time: Option<Duration>,
    bytes: Option<usize>,
}

pub(crate) fn run() {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    if arguments != ["--reference"] {
        run_all(&corpus("peers", &arguments));
        println!();
    }
    reference::run();
}

fn run_all(tree: &Path) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    prepare(&root);
    let start = |server: Server| Contender::start(server, &[&root, tree]);
    let mut contenders = Server::ALL.map(start);
    let idle = memory(&contenders, "VmRSS:");
    head("shortest time in ms", &contenders);
    let mut lengths = Vec::new();
    for operation in operations(&root, tree) {
        let measured = measure(&operation, &mut contenders);
        row(operation.name, &measured.iter().map(|it| it.time).collect::<Vec<_>>());
        lengths.push((operation.name, measured));
    }
    let small = root.join("small.txt");
    let starts = Server::ALL.map(|server| {
        let (tool, arguments) = server.read(&small);
        let start = |_| {
            let begin = Instant::now();
            start(server).client?.call(&tool, &arguments);
            Some(begin.elapsed())
        };
        (0..10).filter_map(start).min()
    });
    row("start to first answer", &starts);
    let behind = contenders.each_mut().map(|contender| {
        let (slow, slow_arguments) = contender.server.slow(tree);
        let (tool, arguments) = contender.server.read(&small);
        let client = contender.client.as_mut()?;
        (0..3).map(|_| client.behind((&slow, &slow_arguments), (&tool, &arguments))).min()
    });
    row("a small read behind a search of the tree", &behind);
    println!();
    head("", &contenders);
    for at_once in [1, 8] {
        let rates = rates(at_once, &small, &mut contenders);
        println!("| reads of 5 KB a second, {at_once} at once | {} |", rates.join(" | "));
    }
    println!("| memory after the start (MiB) | {} |", idle.join(" | "));
    println!("| memory at its highest (MiB) | {} |", memory(&contenders, "VmHWM:").join(" | "));
    for (name, measured) in lengths {
        let bytes = measured.iter().map(|it| it.bytes.map_or("—".into(), |it| it.to_string()));
        println!("| bytes of an answer: {name} | {} |", bytes.collect::<Vec<_>>().join(" | "));
    }
}

impl Contender {
    fn start(server: Server, roots: &[&Path]) -> Self {
        Self { server, client: server.command(roots).map(|mut it| Client::start(&mut it)) }
    }
}

fn prepare(root: &Path) {
    let line =
        |number: usize| format!("line {number}: let total = items.iter().map(price).sum();\n");
    let lines = |count: usize| (1..=count).map(line).collect::<String>();
    fs::write(root.join("small.txt"), lines(100)).unwrap();
    fs::write(root.join("edit.txt"), lines(100)).unwrap();
    fs::write(root.join("edit1m.txt"), lines(16_000)).unwrap();
    fs::write(root.join("large.txt"), lines(160_000)).unwrap();
    fs::create_dir(root.join("flat")).unwrap();
    for number in 0..1_000 {
        fs::write(root.join(format!("flat/file{number}.txt")), "x\n").unwrap();
    }
    for directory in 0..100 {
        let place: PathBuf = root.join(format!("deep/d{}/e{directory}", directory % 10));
        fs::create_dir_all(&place).unwrap();
        for number in 0..30 {
            let kind = if number % 3 == 0 { "rs" } else { "md" };
            fs::write(place.join(format!("f{number}.{kind}")), "x\n").unwrap();
        }
    }
}

/// The time of each contender, and the length of its answers.
fn measure(operation: &Operation, contenders: &mut [Contender]) -> Vec<Measured> {
    /// A contender that takes this long is tried less often.
    const LONG: Duration = Duration::from_secs(2);
    let count = contenders.len();
    let (mut measured, mut failed) = (vec![Measured::default(); count], vec![false; count]);
    let mut taken = vec![Duration::ZERO; count];
    for round in 0..operation.rounds {
        for turn in 0..count {
            // The first one finds colder caches, so they take turns in going first.
            let number = (turn + round) % count;
            let Contender { server, client } = &mut contenders[number];
            if failed[number] || round >= 3 && taken[number] > LONG {
                continue;
            }
            let Some((tool, arguments)) = (operation.call)(*server, round) else { continue };
            let (took, answer, length) = match client {
                Some(client) => {
                    let (took, answer) = client.timed(&tool, &arguments);
                    (took, client::text(&answer), answer.len())
                }
                None => {
                    let (took, printed) = client::program(&tool, &arguments);
                    let length = printed.len();
                    (took, printed, length)
                }
            };
            taken[number] += took;
            if (operation.check)(&answer, round) {
                let time = measured[number].time.map_or(took, |known| known.min(took));
                measured[number] = Measured { time: Some(time), bytes: Some(length) };
                continue;
            }
            let printed: String = answer.chars().take(300).collect();
            let name = server.name();
            assert!(server.is_peer(), "{name}, {}: {printed}", operation.name);
            // A server that fails has no time.
            eprintln!("{name} cannot {}: {printed}", operation.name);
            (failed[number], measured[number]) = (true, Measured::default());
        }
    }
    measured
}

fn rates(at_once: usize, small: &Path, contenders: &mut [Contender]) -> Vec<String> {
    let mut best = vec![0.0_f64; contenders.len()];
    for _ in 0..5 {
        for (best, Contender { server, client }) in best.iter_mut().zip(contenders.iter_mut()) {
            let Some(client) = client else { continue };
            let (tool, arguments) = server.read(small);
            *best = best.max(client.rate(at_once, &tool, &arguments));
        }
    }
    let shown = |rate: f64| if rate > 0.0 { format!("{rate:.0}") } else { "—".into() };
    best.into_iter().map(shown).collect()
}

fn memory(contenders: &[Contender], field: &str) -> Vec<String> {
    let mebibytes = |client: &Client| format!("{:.1}", client.memory(field) as f64 / 1024.0);
    contenders.iter().map(|it| it.client.as_ref().map_or("—".into(), mebibytes)).collect()
}

/// The head of a table with a column for each.
fn head(first: &str, contenders: &[Contender]) {
    let names: Vec<_> = contenders.iter().map(|it| it.server.name()).collect();
    println!("| {first} | {} |", names.join(" | "));
    println!("|---|{}", "---|".repeat(names.len()));
}

fn milliseconds(time: Option<Duration>) -> String {
    time.map_or("—".to_owned(), |time| format!("{:.2}", time.as_secs_f64() * 1000.0))
}

/// The times of [`Server::ALL`].
fn row(name: &str, times: &[Option<Duration>]) {
    let shown: Vec<_> = times.iter().copied().map(milliseconds).collect();
    let all = || Server::ALL.into_iter().zip(times);
    let best = |these: fn(Server) -> bool| {
        all().filter(|(server, _)| these(*server)).filter_map(|(_, time)| *time).min()
    };
    let ratio = |whose: &str, other: Option<Duration>| match (times[0], other) {
        (Some(ours), Some(other)) => {
            format!("; ours / {whose} {:.2}", ours.as_secs_f64() / other.as_secs_f64())
        }
        _ => String::new(),
    };
    let peer = ratio("best peer", best(Server::is_peer));
    let program = ratio("process", best(|server| server == Server::Programs));
    println!("| {name}{peer}{program} | {} |", shown.join(" | "));
}
