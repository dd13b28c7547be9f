//! Searches in a tree that another process changes in between, compared with a fresh `rg`.
//!
//! The sessions cache the tree, its contents and their results, so an answer that differs is stale. Each step is
//! identified by its seed: `PINFOLD_FUZZ_SEED` starts with it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use pinfold::{Permissions, Session, Settings};
use pinfold_dialects::{CLASSIC, Toolbox};
use pinfold_testkit::{Random, provided};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The number of searches without `PINFOLD_FUZZ_SECONDS` and `PINFOLD_FUZZ_STEPS`.
const STEPS: u64 = 60;

/// Tells this program that it is the process that changes the tree.
const CHANGED_TREE: &str = "PINFOLD_CHANGED_TREE";

const WORDS: [&str; 9] = [
    "alpha_beta",
    "Gamma",
    "delta9",
    "epsilon(",
    "zeta\tzeta",
    "\u{3b7} theta",
    "iota = 1",
    "KAPPA",
    "needle",
];

fn text(random: &mut Random, lines: usize) -> String {
    let mut line = |_| {
        let (one, number) = (random.of(&WORDS), random.below(100_000));
        format!("{one} {number} {}\n", random.of(&WORDS))
    };
    (0..lines).map(&mut line).collect()
}

/// A tree that is watched and indexed: 1,100 files, 9 MB of text.
fn tree(root: &Path) {
    let mut random = Random(1);
    let long = text(&mut random, 12_000);
    for number in 0..1_100 {
        let directory = root.join(format!("d{}/s{}", number / 100, number / 50));
        fs::create_dir_all(&directory).unwrap();
        let content = format!("file_{number}\n{}", text(&mut random, 3));
        fs::write(directory.join(format!("{number}.txt")), content).unwrap();
    }
    fs::create_dir_all(root.join("long")).unwrap();
    for number in 0..25 {
        let content = format!("{long}only_in_{number}\n{}", text(&mut random, 10));
        fs::write(root.join(format!("long/{number}.c")), content).unwrap();
    }
}

fn some_directory(root: &Path, random: &mut Random) -> PathBuf {
    match random.below(5) {
        0 => root.to_owned(),
        1 => root.join("long"),
        2 => root.join(format!("d{}", random.below(11))),
        3 => root.join(format!("d{}/s{}", random.below(4), random.below(8))),
        _ => root.join(["new", "new/a", "new/a/b", "moved"][random.below(4)]),
    }
}

fn some_file(root: &Path, random: &mut Random) -> PathBuf {
    let name = match random.below(4) {
        0 => format!("{}.c", random.below(25)),
        1 => format!("{}.txt", random.below(400)),
        2 => random.of(&["fresh.txt", "b.log", ".hidden", "x.rs"]).to_owned(),
        _ => random.of(&[".gitignore", ".ignore", ".rgignore"]).to_owned(),
    };
    some_directory(root, random).join(name)
}

fn content_for(path: &Path, random: &mut Random) -> String {
    if path.file_name().is_some_and(|name| name.to_string_lossy().ends_with("ignore")) {
        return random.of(&["*.log\n", "d1/\n", "!*.txt\n", "*.c\n", "", "/new\n", "s3\n"]).into();
    }
    let lines = 1 + random.below(3);
    text(random, lines) + random.of(&["", "fresh_word\n", "only_in_7\n", "\0after\n", "no end"])
}

/// Makes a change. Some attempts are impossible, and then nothing happens. Returns whether there is a new hard link
/// outside.
fn change(root: &Path, outside: &Path, random: &mut Random) -> bool {
    let (path, other) = (some_file(root, random), some_file(root, random));
    let content = content_for(&path, random);
    let write = |path: &Path| fs::OpenOptions::new().write(true).open(path);
    let link = outside.join(random.below(4).to_string());
    let _ = match random.below(16) {
        0 | 1 => fs::write(&path, content),
        2 => write(&path).and_then(|file| file.write_all_at(content.as_bytes(), 20)),
        3 => write(&path).and_then(|file| file.set_len(random.below(200) as u64)),
        4 => fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(content.as_bytes())),
        5 => fs::write(outside.join("draft"), content)
            .and_then(|()| fs::rename(outside.join("draft"), &path)),
        6 => fs::rename(&path, &other),
        7 => fs::rename(some_directory(root, random), root.join("moved")),
        8 => fs::rename(root.join("moved"), some_directory(root, random)),
        9 => fs::create_dir_all(some_directory(root, random).join("deep/er")),
        10 if random.below(4) == 0 => fs::remove_dir_all(some_directory(root, random).join("deep")),
        10 => fs::remove_file(&path),
        11 => fs::set_permissions(&path, fs::Permissions::from_mode(0o600)),
        12 => fs::hard_link(&path, &other),
        // From here on the file changes by a name that is not watched.
        13 => {
            let _ = fs::remove_file(&link);
            return fs::hard_link(&path, &link).is_ok();
        }
        14 => write(&link).and_then(|file| file.write_all_at(content.as_bytes(), 0)),
        _ if random.below(10) == 0 => map_and_store(&path),
        _ => std::os::unix::fs::symlink("fresh.txt", &path),
    };
    if random.below(400) == 0 {
        overflow(root);
    }
    false
}

/// Stores into a file through a shared mapping, which is then closed.
fn map_and_store(path: &Path) -> std::io::Result<()> {
    const STORE: &str = "import mmap, sys\n\
        with open(sys.argv[1], 'r+b') as f, mmap.mmap(f.fileno(), 0) as m: m[:6] = b'stored'";
    Command::new("python3").args(["-c", STORE]).arg(path).stderr(Stdio::null()).status().map(drop)
}

/// Makes more changes than the kernel queues.
fn overflow(root: &Path) {
    let (one, other) = (root.join("d0/one"), root.join("d0/other"));
    let _ = fs::write(&one, "needle in an overflow\n");
    for _ in 0..9_000 {
        let _ = fs::rename(&one, &other);
        let _ = fs::rename(&other, &one);
    }
}

/// The process that changes the tree. For each seed that it reads, it makes some changes and then reports it.
pub(crate) fn change_tree() {
    let Some(base) = std::env::var_os(CHANGED_TREE).map(PathBuf::from) else { return };
    for line in std::io::stdin().lines() {
        let mut random = Random(line.unwrap().parse().unwrap());
        let (root, outside) = (base.join("ws"), base.join("outside"));
        let changes = 1 + random.below(6);
        let linked = (0..changes).filter(|_| change(&root, &outside, &mut random)).count() > 0;
        println!("\n{}", if linked { "linked" } else { "changed" });
    }
}

struct Changer {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Changer {
    fn start(base: &Path) -> Self {
        let mut command = pinfold_testkit::this_program();
        command.args(["the_tree_is_changed_by_another_process", "--exact", "--nocapture"]);
        command.env(CHANGED_TREE, base).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Self { process, input, output: BufReader::new(output) }
    }

    /// Changes the tree. True if there is a new hard link outside.
    fn change(&mut self, seed: u64) -> bool {
        writeln!(self.input, "{seed}").unwrap();
        let mut line = String::new();
        while !matches!(line.as_str(), "changed\n" | "linked\n") {
            line.clear();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the process has ended");
        }
        line == "linked\n"
    }
}

impl Drop for Changer {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// Arguments for `Grep`, and the same for `rg`.
fn query(random: &mut Random) -> (Value, Vec<&'static str>) {
    let (pattern, multiline) = random.of(&[
        ("needle", false),
        ("only_in_7", false),
        ("only_in_1[0-9]$", false),
        ("fresh_word|file_2[0-9]+", false),
        ("KAPPA \\d+ Gamma", false),
        ("after|stored", false),
        ("nowhere_at_all", false),
        ("\\w{9}_\\w+", false),
        ("file_1\\d\\n.*needle", true),
    ]);
    let mut arguments = json!({"pattern": pattern, "head_limit": 0});
    let mut flags = vec!["-e", pattern];
    if multiline {
        arguments["multiline"] = true.into();
        flags.extend(["-U", "--multiline-dotall"]);
    }
    if random.below(4) == 0 {
        arguments["-i"] = true.into();
        flags.push("-i");
    }
    match random.below(5) {
        0 => {
            arguments["glob"] = "*.txt".into();
            flags.extend(["-g", "*.txt"]);
        }
        1 => {
            arguments["type"] = "c".into();
            flags.extend(["-t", "c"]);
        }
        _ => {}
    }
    let (mode, more): (&str, &[&'static str]) = match random.below(4) {
        0 => ("count", &["-c"]),
        1 => ("files_with_matches", &["-l"]),
        2 if !multiline => {
            arguments["-C"] = 1.into();
            ("content", &["-n", "-C1"])
        }
        _ => ("content", &["-n"]),
    };
    arguments["output_mode"] = mode.into();
    flags.extend(more);
    (arguments, flags)
}

/// Whole answers.
fn settings() -> Settings {
    Settings::default().with_max_output_bytes(Some(1 << 30)).with_max_count_bytes(u64::MAX)
}

/// The compared sessions: one with everything, a second one beside it, one on a part of the workspace, one with two
/// roots, and one that may not read everything. Each has the `rg` arguments that give the same result.
fn sessions(root: &Path) -> Vec<(Toolbox, Vec<PathBuf>, &'static [&'static str])> {
    let deny = vec!["Read(*.log)".into(), "Read(/d2)".into()];
    let open = |roots: &[PathBuf], settings| Session::with_settings(roots, settings).unwrap();
    let whole = open(&[root.to_owned()], settings());
    let (second, part) = (whole.for_another_agent(), whole.narrowed([root.join("d3")]).unwrap());
    let two = [root.join("long"), root.join("d4")];
    let permissions = Permissions { deny, ..Permissions::default() };
    let denied = open(&[root.to_owned()], settings().with_permissions(permissions));
    let toolbox = |session| Toolbox::new(session, &[&CLASSIC]);
    vec![
        (toolbox(whole), vec![root.to_owned()], &[]),
        (toolbox(second), vec![root.to_owned()], &[]),
        (toolbox(part), vec![root.join("d3")], &[]),
        (toolbox(open(&two, settings())), two.to_vec(), &[]),
        (toolbox(denied), vec![root.to_owned()], &["-g", "!*.log", "-g", "!/d2"]),
    ]
}

fn ours(toolbox: &Toolbox, arguments: &Value) -> String {
    let answer = toolbox.call("Grep", arguments.clone()).to_json();
    assert_eq!(answer["success"], true, "{arguments} {answer}");
    let content = answer["content"].as_str().unwrap();
    let notice = |line: &&str| !line.starts_with("No matches") && !line.starts_with('(');
    content.lines().filter(notice).flat_map(|line| [line, "\n"]).collect()
}

fn theirs(rg: &Path, flags: &[&str], roots: &[PathBuf], more: &[&str]) -> String {
    let mut command = Command::new(rg);
    command.args(["--no-config", "--hidden", "--no-require-git", "--no-ignore-global"]);
    command.args(["--no-ignore-exclude", "--no-ignore-parent", "-H", "--no-heading"]);
    command.args(["--sort", "path"]).args(flags).args(more).arg("--").args(roots);
    let output = command.current_dir(&roots[0]).output().unwrap();
    assert_ne!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().flat_map(|line| [line, "\n"]).collect()
}

/// Sorted lines, if the order is by time.
fn comparable(answer: &str, arguments: &Value) -> Vec<String> {
    let mut lines: Vec<_> = answer.lines().map(str::to_owned).collect();
    if arguments["output_mode"] == "files_with_matches" {
        lines.sort_unstable();
    }
    lines
}

pub(crate) fn never_stale() {
    let Some(rg) = provided("PINFOLD_RG", "NOT COMPARED WITH RIPGREP") else { return };
    let base = TempDir::new().unwrap();
    let base_path = base.path().canonicalize().unwrap();
    let root = base_path.join("ws");
    fs::create_dir_all(base_path.join("outside")).unwrap();
    tree(&root);
    let mut changer = Changer::start(&base_path);
    let sessions = sessions(&root);
    for (toolbox, ..) in &sessions {
        for _ in 0..3 {
            ours(toolbox, &json!({"pattern": "nowhere_at_all"}));
        }
    }
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let (seconds, first) = (number("PINFOLD_FUZZ_SECONDS"), number("PINFOLD_FUZZ_SEED"));
    let first =
        first.unwrap_or(if seconds.is_some() { u64::from(std::process::id()) << 32 } else { 1 });
    let begin = Instant::now();
    let steps = number("PINFOLD_FUZZ_STEPS").unwrap_or(STEPS);
    let goes_on = |step: u64| match seconds {
        Some(seconds) => begin.elapsed() < Duration::from_secs(seconds),
        None => step < first + steps,
    };
    let mut seed = first;
    while goes_on(seed) {
        if changer.change(seed) {
            // This happens in the background some seconds after a search, because no event reports a link that is
            // made outside.
            sessions.iter().for_each(|(toolbox, ..)| toolbox.session().recheck_trees());
        }
        let mut random = Random(!seed);
        let fresh;
        let (toolbox, roots, more) = match sessions.get(random.below(sessions.len() + 1)) {
            Some(session) => session,
            // The first search of a session takes other ways.
            None => {
                let session = Session::with_settings([&root], settings()).unwrap();
                fresh = (Toolbox::new(session, &[&CLASSIC]), vec![root.clone()], &[][..]);
                &fresh
            }
        };
        let (arguments, flags) = query(&mut random);
        if roots.iter().all(|root| root.is_dir()) {
            let (ours, theirs) =
                (ours(toolbox, &arguments), theirs(Path::new(&rg), &flags, roots, more));
            let [ours, theirs] = [ours, theirs].map(|answer| comparable(&answer, &arguments));
            let only = |one: &[String], other: &[String]| {
                one.iter().filter(|line| !other.contains(line)).take(3).cloned().collect::<Vec<_>>()
            };
            assert!(
                ours == theirs,
                "PINFOLD_FUZZ_SEED={seed}: {arguments} in {roots:?}: only ours {:?}, only rg's {:?}",
                only(&ours, &theirs),
                only(&theirs, &ours)
            );
        }
        seed += 1;
    }
    eprintln!("{} searches", seed - first);
}
