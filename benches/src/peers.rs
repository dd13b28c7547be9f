//! Pinfold against the servers that a user would pick instead, over MCP on standard input and output, in one
//! interleaved run with one client. Answers are checked, so that failing fast does not win.
//!
//! `peers [--corpus DIR]`: the tree that is searched; without it, Debian's kernel source is fetched.

mod client;
mod operations;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::corpus;

use client::Client;
use operations::{Operation, Server, operations};

/// A time for each of [`Server::ALL`]; none for those that cannot do it.
type Times = [Option<Duration>; Server::ALL.len()];

pub(crate) fn run() {
    let tree = corpus("peers", &std::env::args().skip(2).collect::<Vec<_>>());
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    prepare(&root);
    let start = |server: Server| server.command(&root, &tree).map(|mut it| Client::start(&mut it));
    let mut clients = Server::ALL.map(start);
    let idle = memory(&clients, "VmRSS:");
    println!("| floor in ms | {} |", Server::ALL.map(Server::name).join(" | "));
    println!("|---|{}", "---|".repeat(Server::ALL.len()));
    let mut lengths = Vec::new();
    for operation in operations(&root, &tree) {
        let (times, bytes) = measure(&operation, &mut clients);
        row(operation.name, &times);
        lengths.push((operation.name, bytes));
    }
    let small = root.join("small.txt");
    let starts = Server::ALL.map(|server| {
        let (tool, arguments) = server.read(&small);
        let start = |_| {
            let begin = Instant::now();
            start(server)?.call(&tool, &arguments);
            Some(begin.elapsed())
        };
        (0..10).filter_map(start).min()
    });
    row("start to first answer", &starts);
    let behind = Server::ALL.map(|server| {
        let client = clients[server as usize].as_mut()?;
        let (slow, slow_arguments) = server.slow(&tree);
        let (tool, arguments) = server.read(&small);
        (0..3).map(|_| client.behind((&slow, &slow_arguments), (&tool, &arguments))).min()
    });
    row("a small read behind a search of the tree", &behind);
    println!();
    println!("| | {} |", Server::ALL.map(Server::name).join(" | "));
    println!("|---|{}", "---|".repeat(Server::ALL.len()));
    for at_once in [1, 8] {
        let rates = rates(at_once, &small, &mut clients);
        println!("| reads of 5 KB a second, {at_once} at once | {} |", rates.join(" | "));
    }
    println!("| memory after the start (MiB) | {} |", idle.join(" | "));
    println!("| memory at its highest (MiB) | {} |", memory(&clients, "VmHWM:").join(" | "));
    for (name, bytes) in lengths {
        let bytes = bytes.map(|bytes| bytes.map_or("—".into(), |bytes| bytes.to_string()));
        println!("| bytes of an answer: {name} | {} |", bytes.join(" | "));
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

/// The shortest time that each took, and how long its answers are.
fn measure(operation: &Operation, clients: &mut [Option<Client>]) -> (Times, [Option<usize>; 6]) {
    /// Whoever has taken so long need not try as often as the others.
    const LONG: Duration = Duration::from_secs(2);
    let (mut shortest, mut lengths, mut failed) = (Times::default(), [None; 6], [false; 6]);
    let mut taken = [Duration::ZERO; 6];
    for round in 0..operation.rounds {
        for turn in 0..Server::ALL.len() {
            // Whoever goes first finds colder caches: take turns in that too.
            let number = (turn + round) % Server::ALL.len();
            let server = Server::ALL[number];
            if failed[number] || round >= 3 && taken[number] > LONG {
                continue;
            }
            let Some((tool, arguments)) = (operation.call)(server, round) else { continue };
            let (took, answer, length) = match &mut clients[number] {
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
                shortest[number] = Some(shortest[number].map_or(took, |known| known.min(took)));
                lengths[number] = Some(length);
                continue;
            }
            let said: String = answer.chars().take(300).collect();
            let name = server.name();
            assert!(server.is_peer(), "{name}, {}: {said}", operation.name);
            // A server that fails has no time, however short.
            eprintln!("{name} cannot {}: {said}", operation.name);
            (failed[number], shortest[number], lengths[number]) = (true, None, None);
        }
    }
    (shortest, lengths)
}

fn rates(at_once: usize, small: &Path, clients: &mut [Option<Client>]) -> [String; 6] {
    let mut best = [0.0_f64; 6];
    for _ in 0..5 {
        for (number, server) in Server::ALL.into_iter().enumerate() {
            let Some(client) = &mut clients[number] else { continue };
            let (tool, arguments) = server.read(small);
            best[number] = best[number].max(client.rate(at_once, &tool, &arguments));
        }
    }
    best.map(|rate| if rate > 0.0 { format!("{rate:.0}") } else { "—".into() })
}

fn memory(clients: &[Option<Client>], field: &str) -> Vec<String> {
    let mebibytes = |client: &Client| format!("{:.1}", client.memory(field) as f64 / 1024.0);
    clients.iter().map(|client| client.as_ref().map_or("—".into(), mebibytes)).collect()
}

fn row(name: &str, times: &Times) {
    let shown = times.map(|time| match time {
        Some(time) => format!("{:.2}", time.as_secs_f64() * 1000.0),
        None => "—".to_owned(),
    });
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

/// A program for Node among the packages that were installed for this.
fn node_program(package: &str) -> Command {
    let modules = std::env::var("PINFOLD_PEERS").unwrap();
    let mut command = Command::new("node");
    command.arg(Path::new(&modules).join(package));
    command
}
