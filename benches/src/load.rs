//! Many clients of one server over HTTP: throughput, latencies, memory for each session, fairness, and how the cost of
//! a call grows with clients, files and history.
//!
//! `load [--write]` prints tables for `docs/BENCHMARKS.md`, and with `--write` draws `docs/images/load.svg`. It fails if a call
//! fails that no limit forbids, or if a client that searches without end more than doubles the time of another's small
//! reads, by the median or by the 90th or 99th percentile. `load --fair` measures only that.

mod client;
mod growth;
mod plot;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pinfold_testkit::mcp::Web;
use serde_json::{Value, json};
use tempfile::TempDir;

use client::Client;
use plot::{Panel, Series};

/// How many clients there are at a time.
const CLIENTS: [usize; 4] = [1, 10, 100, 1_000];

/// How long each number of clients is measured.
const MEASURED: Duration = Duration::from_secs(8);

/// The number of files that the clients read and search. Each directory has 100.
const FILES: usize = 2_000;

pub(crate) fn run() -> ExitCode {
    raise_file_limit();
    let place = Place::new(FILES);
    if std::env::args().any(|argument| argument == "--fair") {
        return if fair(&place) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let mut good = true;
    println!("\n| clients | calls a second | p50 (ms) | p99 (ms) | memory for each session (KB) |");
    println!("|---:|---:|---:|---:|---:|");
    let mut points = Vec::new();
    for clients in CLIENTS {
        let point = measure(&place, clients);
        println!(
            "| {clients} | {:.0} | {:.2} | {:.2} | {} |",
            point.throughput,
            point.p50,
            point.p99,
            point.session_kb.map_or("–".into(), |kb| format!("{kb:.0}"))
        );
        if point.failed > 0 {
            eprintln!("{} calls of {clients} clients failed", point.failed);
            good = false;
        }
        points.push((clients as f64, point));
    }
    good &= limited(&place);
    good &= fair(&place);
    let (files, history) = (growth::with_files(), growth::with_history());
    if std::env::args().any(|argument| argument == "--write") {
        let of = |value: fn(&Point) -> f64| points.iter().map(|(x, it)| (*x, value(it))).collect();
        let series = |name: &str, points| Series { name: name.into(), points };
        let panels = [
            Panel {
                title: "calls a second",
                x: "clients",
                series: vec![series("mixed calls", of(|it| it.throughput))],
            },
            Panel {
                title: "milliseconds a call",
                x: "clients",
                series: vec![series("p50", of(|it| it.p50)), series("p99", of(|it| it.p99))],
            },
            Panel { title: "milliseconds a call", x: "files in the workspace", series: files },
            Panel { title: "milliseconds a call", x: "changes in the journal", series: history },
        ];
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images/load.svg");
        fs::write(&file, plot::svg(&panels)).unwrap();
        println!("\nwrote {}", file.display());
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A thousand connections need more open files than a process may usually have, in the server and here.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum.map_or(Some(16_384), |maximum| Some(maximum.min(16_384)));
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// A workspace, a token for each kind of client, and the server's own files.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new(files: usize) -> Self {
        let dir = TempDir::new().unwrap();
        let place = Self { dir };
        let line = |number: usize, line: usize| format!("file {number} line {line} of some text\n");
        for number in 0..files {
            let path = place.file(number);
            if number.is_multiple_of(100) {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
            }
            let text: String = (0..60).map(|it| line(number, it)).collect();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(place.root().join("own")).unwrap();
        let config = format!(
            "[http]\nmax_sessions = 4000\nmax_connections = 4000\n[workspaces.load]\nroots = [{:?}]\n\
             dialects = [\"dotted\"]\ntoken_file = {:?}\ndurability = \"none\"\n",
            place.root(),
            place.path("tokens")
        );
        fs::write(place.path("config.toml"), config).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn root(&self) -> PathBuf {
        self.path("ws")
    }

    fn file(&self, number: usize) -> PathBuf {
        self.root().join(relative(number))
    }

    pub(crate) fn token(&self, name: &str, more: &[&str]) -> String {
        let mut command = Command::new(std::env::var("PINFOLD_BIN").unwrap());
        let output = command.args(["token", "new"]).arg(self.path("tokens")).arg(name).args(more);
        let output = output.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn serve(&self) -> Web {
        let mut command = Command::new(std::env::var("PINFOLD_BIN").unwrap());
        command.args(["serve", "--no-feed", "--http", "127.0.0.1:0", "--config"]);
        command.arg(self.path("config.toml")).env("XDG_STATE_HOME", self.path("state"));
        Web::start(&mut command)
    }
}

fn relative(number: usize) -> String {
    format!("d{}/{number}.txt", number / 100)
}

/// The private memory of a process, in KB.
fn memory(process: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// The call with a number, and whether it succeeds: mostly reads, some of every kind.
fn call(client: usize, number: usize) -> (&'static str, Value, bool) {
    let file = relative((client * 37 + number * 11) % FILES);
    let own = format!("own/{client}.txt");
    match number % 20 {
        0 => ("file.write", json!({"path": own, "content": format!("{number}\n")}), true),
        5 => ("file.search", json!({"pattern": format!("file {} line 7 ", number % FILES)}), true),
        10 => ("file.list", json!({"path": format!("d{}", number % (FILES / 100))}), true),
        15 => ("file.read", json!({"path": "missing.txt"}), false),
        _ => ("file.read", json!({"path": file}), true),
    }
}

/// The results of some clients.
struct Point {
    throughput: f64,
    p50: f64,
    p99: f64,
    session_kb: Option<f64>,
    failed: usize,
}

/// Runs this many clients at once. Each makes its next call as soon as it has an answer.
fn measure(place: &Place, clients: usize) -> Point {
    let token = place.token("agent", &[]);
    let mut web = place.serve();
    web.token = token;
    let process = web.process().id();
    // The first calls allocate memory that belongs to no session.
    let mut first = Client::new(&web);
    (0..40).for_each(|number| _ = first.call(call(0, number)));
    let before = memory(process);
    let mut open: Vec<Client> = (0..clients).map(|_| Client::new(&web)).collect();
    // By then, each has read and written something.
    for (client, connection) in open.iter_mut().enumerate() {
        connection.call(call(client, 0));
        connection.call(call(client, 1));
    }
    // The memory of a single session is less than the noise of the allocator.
    let session_kb = (clients >= 100).then(|| (memory(process) - before) / clients as f64);
    let (stop, failed) = (AtomicBool::new(false), AtomicUsize::new(0));
    let start = Instant::now();
    let mut times: Vec<Duration> = std::thread::scope(|scope| {
        let working: Vec<_> = open
            .iter_mut()
            .enumerate()
            .map(|(client, connection)| {
                let (stop, failed) = (&stop, &failed);
                let work = move || {
                    let mut times = Vec::new();
                    for number in 0.. {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let begin = Instant::now();
                        if !connection.call(call(client, number)) {
                            failed.fetch_add(1, Ordering::Relaxed);
                        }
                        times.push(begin.elapsed());
                    }
                    times
                };
                std::thread::Builder::new()
                    .stack_size(256 * 1024)
                    .spawn_scoped(scope, work)
                    .unwrap()
            })
            .collect();
        std::thread::sleep(MEASURED);
        stop.store(true, Ordering::Relaxed);
        working.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    let throughput = times.len() as f64 / start.elapsed().as_secs_f64();
    times.sort_unstable();
    let failed = failed.into_inner();
    Point {
        throughput,
        p50: quantile(&times, 0.5),
        p99: quantile(&times, 0.99),
        session_kb,
        failed,
    }
}

/// A quantile of sorted times, in milliseconds.
pub(crate) fn quantile(times: &[Duration], part: f64) -> f64 {
    let at = ((times.len() as f64 * part) as usize).min(times.len() - 1);
    times[at].as_secs_f64() * 1_000.0
}

/// Clients of a token with limits get the promised rate, and no other error.
fn limited(place: &Place) -> bool {
    const RATE: usize = 200;
    let token = place.token("limited", &["--max-calls-per-second", &RATE.to_string()]);
    let mut web = place.serve();
    web.token = token;
    let mut open: Vec<Client> = (0..10).map(|_| Client::new(&web)).collect();
    let seconds = 5;
    let limit = Instant::now() + Duration::from_secs(seconds);
    let counts: Vec<[usize; 3]> = std::thread::scope(|scope| {
        let working: Vec<_> = open
            .iter_mut()
            .map(|client| {
                scope.spawn(move || {
                    let mut counts = [0; 3];
                    while Instant::now() < limit {
                        counts[match client.status(call(0, 1)) {
                            200 => 0,
                            429 => 1,
                            _ => 2,
                        }] += 1;
                    }
                    counts
                })
            })
            .collect();
        working.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let [good, refused, other] =
        [0, 1, 2].map(|it| counts.iter().map(|all| all[it]).sum::<usize>());
    let rate = good as f64 / seconds as f64;
    println!(
        "\nA token with {RATE} calls a second, ten clients: {rate:.0} answered a second, {refused} refused (429), {other} other errors."
    );
    // One more second's worth may come at once, at the beginning.
    other == 0 && good <= RATE * (seconds as usize + 2)
}

/// Small reads of one client, in turns with and without another client that searches without end.
fn fair(place: &Place) -> bool {
    let (reader, searcher) = (place.token("reader", &[]), place.token("searcher", &[]));
    let mut web = place.serve();
    let mut client = |token: &String| {
        web.token.clone_from(token);
        Client::new(&web)
    };
    let (mut reads, mut searches) = (client(&reader), client(&searcher));
    let (stop, pause) = (AtomicBool::new(false), AtomicBool::new(true));
    let mut times = [Vec::new(), Vec::new()];
    let mut searched = 0;
    std::thread::scope(|scope| {
        let searching = scope.spawn(|| {
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                if pause.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                }
                // A different search each time, and none that an index helps with.
                number += 1;
                let pattern = format!("[a-z]+ [0-9]+{number} line .*[a-z]");
                assert!(searches.call(("file.search", json!({"pattern": pattern}), true)));
            }
            number
        });
        for round in 0..20 {
            let busy = round % 2;
            pause.store(busy == 0, Ordering::Relaxed);
            // Waits until the running search has ended.
            std::thread::sleep(Duration::from_millis(200));
            let limit = Instant::now() + Duration::from_millis(500);
            while Instant::now() < limit {
                let begin = Instant::now();
                assert!(reads.call(("file.read", json!({"path": relative(round)}), true)));
                times[busy].push(begin.elapsed());
            }
        }
        stop.store(true, Ordering::Relaxed);
        searched = searching.join().unwrap();
    });
    times.iter_mut().for_each(|times| times.sort_unstable());
    let [alone, beside] = times.map(|times| [0.5, 0.9, 0.99].map(|part| quantile(&times, part)));
    println!(
        "\n| a small read of one client | p50 (ms) | p90 (ms) | p99 (ms) |\n|---|---:|---:|---:|"
    );
    println!("| alone | {:.3} | {:.3} | {:.3} |", alone[0], alone[1], alone[2]);
    println!(
        "| while another searches without end ({searched} searches) | {:.3} | {:.3} | {:.3} |",
        beside[0], beside[1], beside[2]
    );
    let fair = alone.iter().zip(&beside).all(|(alone, beside)| *beside <= 2.0 * alone);
    if !fair {
        eprintln!("a client that searches holds up another by more than twice");
    }
    fair
}
