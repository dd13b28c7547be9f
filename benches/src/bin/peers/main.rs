//! Pinfold against the servers that a user would pick instead, over MCP on standard input and output, in one
//! interleaved run with one client. Answers are checked, so that failing fast does not win.
//!
//! `peers [--corpus DIR]`: the tree that is searched; without it, Debian's kernel source is fetched.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot be set up has nothing to measure")]

mod client;
mod operations;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use pinfold_benches::corpus;

use client::Client;
use operations::{Operation, Server, operations};

fn main() {
    let tree = corpus("peers");
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    prepare(&root);
    let servers = Server::all();
    let mut clients: Vec<Client> =
        servers.iter().map(|server| Client::start(&mut server.command(&root, &tree))).collect();
    let idle: Vec<u64> = clients.iter().map(|client| client.memory("VmRSS:")).collect();
    println!("| floor in ms | {} |", servers.map(Server::name).join(" | "));
    println!("|---|{}", "---|".repeat(servers.len()));
    for operation in operations(&root, &tree) {
        row(operation.name, &servers, &measure(&operation, &servers, &mut clients));
    }
    let starts = servers.map(|server| {
        let start = |_| {
            let begin = Instant::now();
            let mut client = Client::start(&mut server.command(&root, &tree));
            let (tool, arguments) = server.read(&root.join("small.txt"));
            client.call(&tool, &arguments);
            begin.elapsed()
        };
        (0..10).map(start).min()
    });
    row("start to first answer", &servers, &starts);
    for at_once in [1, 8] {
        let rates = rates(at_once, &root, &servers, &mut clients);
        let rates = rates.map(|rate| format!("{rate:.0}"));
        println!("| calls a second, {at_once} at once | {} |", rates.join(" | "));
    }
    let behind = servers.map(|server| {
        let client = &mut clients[server as usize];
        let (slow, slow_arguments) = server.slow(&tree);
        let (tool, arguments) = server.read(&root.join("small.txt"));
        let times = (0..3).map(|_| client.behind((&slow, &slow_arguments), (&tool, &arguments)));
        times.min()
    });
    row("a small read behind a search of the tree", &servers, &behind);
    let mebibytes = |kilobytes: u64| format!("{:.1}", kilobytes as f64 / 1024.0);
    let idle: Vec<_> = idle.into_iter().map(mebibytes).collect();
    println!("| memory after the start (MiB) | {} |", idle.join(" | "));
    let peak: Vec<_> = clients.iter().map(|client| mebibytes(client.memory("VmHWM:"))).collect();
    println!("| memory at its highest (MiB) | {} |", peak.join(" | "));
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

/// The shortest time that each server took; none for those that cannot do it.
fn measure(
    operation: &Operation,
    servers: &[Server; 4],
    clients: &mut [Client],
) -> [Option<Duration>; 4] {
    let mut shortest: [Option<Duration>; 4] = [None; 4];
    let mut failed = [false; 4];
    for round in 0..operation.rounds {
        for turn in 0..servers.len() {
            // Whoever goes first finds colder caches: take turns in that too.
            let number = (turn + round) % servers.len();
            if failed[number] {
                continue;
            }
            let Some((tool, arguments)) = (operation.call)(servers[number], round) else {
                continue;
            };
            let (took, answer) = clients[number].timed(&tool, &arguments);
            let answer = client::text(&answer);
            if (operation.check)(&answer, round) {
                shortest[number] = Some(shortest[number].map_or(took, |known| known.min(took)));
                continue;
            }
            let said: String = answer.chars().take(300).collect();
            let name = servers[number].name();
            assert!(number > 0, "{name}, {}: {said}", operation.name);
            // A server that fails has no time, however short.
            eprintln!("{name} cannot {}: {said}", operation.name);
            (failed[number], shortest[number]) = (true, None);
        }
    }
    shortest
}

fn rates(at_once: usize, root: &Path, servers: &[Server; 4], clients: &mut [Client]) -> [f64; 4] {
    let mut best = [0.0_f64; 4];
    for _ in 0..2 {
        for (number, server) in servers.iter().enumerate() {
            let (tool, arguments) = server.read(&root.join("small.txt"));
            let begin = Instant::now();
            for _ in 0..64 / at_once {
                clients[number].together(at_once, &tool, &arguments);
            }
            let calls = f64::from(u32::try_from(64 / at_once * at_once).unwrap());
            best[number] = best[number].max(calls / begin.elapsed().as_secs_f64());
        }
    }
    best
}

fn row(name: &str, servers: &[Server; 4], times: &[Option<Duration>; 4]) {
    let shown = times.map(|time| match time {
        Some(time) => format!("{:.2}", time.as_secs_f64() * 1000.0),
        None => "—".to_owned(),
    });
    let peers = servers.iter().zip(times).skip(1).filter_map(|(_, time)| *time);
    let ratio = match (times[0], peers.min()) {
        (Some(ours), Some(best)) => {
            format!("; ours / best {:.2}", ours.as_secs_f64() / best.as_secs_f64())
        }
        _ => String::new(),
    };
    println!("| {name}{ratio} | {} |", shown.join(" | "));
}

/// A program for Node among the packages that were installed for this.
fn node_program(package: &str) -> Command {
    let modules = std::env::var("PINFOLD_PEERS").unwrap();
    let mut command = Command::new("node");
    command.arg(Path::new(&modules).join(package));
    command
}
