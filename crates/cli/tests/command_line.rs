//! The command line: arguments, output and exit codes.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;

fn pinfold(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pinfold"));
    command.current_dir(dir).env("XDG_CONFIG_HOME", dir.join("no-config"));
    // Not in the workspace, since tests compare its files.
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

fn run(dir: &Path, arguments: &[&str]) -> Output {
    pinfold(dir).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn feed(command: &mut Command, input: &[u8]) -> Output {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process.stdin.take().unwrap().write_all(input).unwrap();
    process.wait_with_output().unwrap()
}

fn answers(output: &Output) -> Vec<Value> {
    let text = str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The answer of a call in a process with at most `kilobytes` of memory.
fn limited(dir: &TempDir, kilobytes: u32, call: &str) -> String {
    let script = format!("ulimit -v {kilobytes}; exec \"$0\" call --root . {call}");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_pinfold")]).current_dir(dir.path());
    command.env("XDG_CONFIG_HOME", dir.path().join("no-config"));
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    let output = command.output().unwrap();
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn a_window_of_a_line_without_end_takes_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = fs::File::create(dir.path().join("g.txt")).unwrap();
    let block = vec![b'a'; 1 << 20];
    (0..300).for_each(|_| file.write_all(&block).unwrap());
    let text = limited(&dir, 120_000, r#"file.read '{"path": "g.txt"}'"#);
    assert!(text.contains("... [+314570800 characters]"), "{text}");
}

#[test]
fn a_page_of_a_file_full_of_matches_takes_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("g"), "x\n".repeat(4 << 20)).unwrap();
    let arguments = r#"{"pattern": "x", "output_mode": "content", "head_limit": 1}"#;
    let text = limited(&dir, 200_000, &format!("Grep '{arguments}'"));
    assert!(text.contains("matches 1-1 of 4194304"), "{text}");
    let all = limited(&dir, 200_000, &format!("Grep '{}'", arguments.replace("1}", "0}")));
    assert!(all.len() < 300_000 && all.contains(" of 4194304; continue with"), "{}", all.len());
}

#[test]
fn exit_codes_tell_success_tool_errors_and_usage_apart() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("a.txt"), "hello\n").unwrap();
    for (arguments, code) in [
        (&["call", "file.read", r#"{"path": "a.txt"}"#][..], 0),
        (&["call", "file.read", r#"{"path": "b.txt"}"#], 1),
        (&["call", "file.read", r#"{"path": 5}"#], 1),
        (&["call", "file.read"], 1),
        (&["call", "no.such.tool", "{}"], 1),
        (&["call", "Read", "{}", "--dialect", "dotted"], 1),
        (&["call", "file.read", "not json"], 2),
        (&["call", "file.read", "{} {}"], 2),
        (&["call"], 2),
        (&["call", "file.read", "{}", "--dialect", "klingon"], 2),
        (&["call", "file.read", "{}", "--root", "nowhere"], 2),
        (&["call", "file.read", "{}", "--config", "nowhere.toml"], 2),
        (&["call", "file.read", "{}", "--durability", "most"], 2),
        (&["no-such-command"], 2),
        (&[], 2),
        (&["--help"], 0),
        (&["--version"], 0),
        (&["tools", "--format", "mcp"], 0),
        (&["tools", "--format", "latin"], 2),
    ] {
        let output = run(dir.path(), arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
        // Standard output carries answers, and standard error everything else.
        assert_eq!(output.stdout.is_empty(), code == 2, "{arguments:?}: {output:?}");
        assert_eq!(output.stderr.is_empty(), code != 2, "{arguments:?}: {output:?}");
    }
}

#[test]
fn arguments_that_are_no_text_are_a_usage_error() {
    let dir = TempDir::new().unwrap();
    let output = feed(pinfold(dir.path()).args(["call", "Read", "-"]), b"\xff\n");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("not JSON"), "{output:?}");
}

#[test]
fn the_doctor_says_so_if_nobody_listens() {
    let dir = TempDir::new().unwrap();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = pinfold(dir.path()).arg("doctor").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains("cannot write to standard output"), "{printed}");
}

#[test]
fn arguments_can_come_from_standard_input() {
    let dir = TempDir::new().unwrap();
    let content = "x".repeat(300_000);
    let arguments = json!({"path": "big.txt", "content": content}).to_string();
    let output = feed(pinfold(dir.path()).args(["call", "file.write", "-"]), arguments.as_bytes());
    assert_eq!(answers(&output), [json!({"success": true, "bytes_written": 300_000})]);
    assert_eq!(fs::read_to_string(dir.path().join("big.txt")).unwrap(), content);
}

#[test]
fn batch_answers_every_line_and_goes_on_after_errors() {
    let dir = TempDir::new().unwrap();
    let input = b"{\"tool\": \"file.write\", \"args\": {\"path\": \"a\", \"content\": \"1\"}}\n\
        \n\
        not json\n\
        {\"tool\": \"file.read\"}\n\
        \xFF\xFE\n\
        {\"tool\": \"nothing\", \"args\": {}}\n\
        {\"tool\": \"file.read\", \"args\": {\"path\": \"a\"}}";
    let output = feed(pinfold(dir.path()).arg("batch"), input);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let codes: Vec<_> = answers(&output)
        .iter()
        .map(|answer| {
            answer["metadata"]["code"].as_str().or(answer["error"].as_str()).map(str::to_owned)
        })
        .collect();
    let codes: Vec<_> = codes.iter().map(|code| code.as_deref().unwrap_or("ok")).collect();
    let expected =
        ["ok", "invalid_argument", "invalid_argument", "invalid_argument", "unknown_tool", "ok"];
    assert_eq!(codes, expected);
}

#[test]
fn batch_is_one_session_and_call_is_one_each() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("a.txt");
    fs::write(&file, "old\n").unwrap();
    let write = json!({"file_path": file, "content": "new\n"});
    let line = json!({"tool": "Write", "args": write}).to_string();
    let output = feed(pinfold(dir.path()).arg("batch"), line.as_bytes());
    assert_eq!(answers(&output)[0]["metadata"]["code"], "not_read");
    let output = run(dir.path(), &["call", "Write", &write.to_string()]);
    assert_eq!(answers(&output)[0]["success"], true);
    assert_eq!(fs::read_to_string(file).unwrap(), "new\n");
}

#[test]
fn settings_come_from_the_file_and_flags_are_over_them() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("a.txt"), "0123456789abcdef\n").unwrap();
    let config = dir.path().join("home/pinfold/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "max_line_chars = 10\n").unwrap();
    let call = |flags: &[&str]| {
        let mut command = pinfold(dir.path());
        command.env("XDG_CONFIG_HOME", dir.path().join("home"));
        command.args(["call", "read_file", r#"{"path": "a.txt"}"#]).args(flags);
        answers(&command.output().unwrap())[0]["content"].as_str().unwrap().to_owned()
    };
    assert_eq!(call(&[]), "0123456789... [+6 characters]\n");
    assert_eq!(call(&["--max-line-chars", "4"]), "0123... [+12 characters]\n");
    let other = dir.path().join("other.toml");
    fs::write(&other, "").unwrap();
    assert_eq!(call(&["--config", other.to_str().unwrap()]), "0123456789abcdef\n");
}

#[test]
fn a_mistake_in_the_configuration_stops_the_start_and_is_named() {
    let dir = TempDir::new().unwrap();
    let config = dir.path().join("config.toml");
    for (text, named) in
        [("max_line_char = 1\n", "max_line_char"), ("read_before_write = \"maybe\"\n", "maybe")]
    {
        fs::write(&config, text).unwrap();
        let output = run(dir.path(), &["tools", "--config", config.to_str().unwrap()]);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(message.contains(named) && message.contains("config.toml"), "{message}");
    }
}

#[test]
fn a_maximum_of_zero_stops_the_start_and_is_named() {
    let dir = TempDir::new().unwrap();
    let config = dir.path().join("config.toml");
    fs::write(&config, "max_line_chars = 0\n").unwrap();
    for (arguments, setting) in [
        (["--deadline-seconds", "0"], "deadline_seconds"),
        (["--config", config.to_str().unwrap()], "max_line_chars"),
    ] {
        let output = run(dir.path(), &[&["call", "file.list"][..], &arguments].concat());
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(&format!("`{setting}` must be at least 1")), "{message}");
    }
}

#[test]
fn a_configuration_inside_the_workspace_is_not_read() {
    let dir = TempDir::new().unwrap();
    for place in
        ["config.toml", "pinfold.toml", "pinfold/config.toml", ".config/pinfold/config.toml"]
    {
        let path = dir.path().join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "no_such_setting = true\n").unwrap();
    }
    assert_eq!(run(dir.path(), &["tools"]).status.code(), Some(0));
}

#[test]
fn dry_run_touches_nothing() {
    let dir = TempDir::new().unwrap();
    let arguments = r#"{"path": "x/y.txt", "content": "1\n"}"#;
    let output = run(dir.path(), &["call", "--dry-run", "file.write", arguments]);
    let message = answers(&output)[0]["message"].as_str().unwrap().to_owned();
    assert!(
        message.starts_with("[Dry Run] Would create x/y.txt (2 bytes)\n--- a/x/y.txt"),
        "{message}"
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn several_processes_lose_no_update() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("log");
    fs::write(&file, "").unwrap();
    thread::scope(|scope| {
        for writer in 0..4 {
            let (dir, file) = (dir.path(), &file);
            scope.spawn(move || append(dir, file, writer, 25));
        }
    });
    let text = fs::read_to_string(&file).unwrap();
    for writer in 0..4 {
        let own = text.lines().filter(|line| line.starts_with(&format!("{writer}."))).count();
        assert_eq!(own, 25, "{text}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

/// Appends lines by a read and a write in a separate process, and tries again after a conflict.
fn append(dir: &Path, file: &Path, writer: u32, lines: u32) {
    use std::io::{BufRead as _, BufReader};
    let mut process = pinfold(dir)
        .args(["batch", "--durability", "none"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = process.stdin.take().unwrap();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    let mut call = |tool: &str, arguments: Value| -> Value {
        writeln!(input, "{}", json!({"tool": tool, "args": arguments})).unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    for number in 0..lines {
        loop {
            let read = call("read_file", json!({"path": "log"}));
            let text = format!("{}{writer}.{number}\n", read["content"].as_str().unwrap());
            let written = call("Write", json!({"file_path": file, "content": text}));
            match written["metadata"]["code"].as_str() {
                None => break,
                Some("file_changed") => {}
                Some(other) => panic!("{other}: {written}"),
            }
        }
    }
    drop(input);
    assert!(process.wait().unwrap().success());
}

#[test]
fn the_readme_shows_what_its_first_command_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let shown = readme.split("$ cargo run --release -- call file.read '").nth(1).unwrap();
    let (arguments, rest) = shown.split_once("'\n").unwrap();
    let output = run(&root, &["call", "file.read", arguments]);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed.trim_end(), rest.lines().next().unwrap());
}

#[test]
fn several_processes_that_edit_one_file_lose_nothing() {
    let dir = TempDir::new().unwrap();
    let text: String = (0..4).map(|writer| format!("writer {writer}: 0\n")).collect();
    fs::write(dir.path().join("f"), text).unwrap();
    thread::scope(|scope| {
        for writer in 0..4 {
            let dir = dir.path();
            scope.spawn(move || {
                let edits: String = (0..25)
                    .map(|number| {
                        let line = |number: u32| format!("writer {writer}: {number}\n");
                        let patches = json!([{"find": line(number), "replace": line(number + 1)}]);
                        let args = json!({"path": "f", "patches": patches});
                        format!("{}\n", json!({"tool": "file.patch", "args": args}))
                    })
                    .collect();
                let output =
                    feed(pinfold(dir).args(["batch", "--durability", "none"]), edits.as_bytes());
                assert!(
                    answers(&output).iter().all(|answer| answer["success"] == true),
                    "{output:?}"
                );
            });
        }
    });
    let text: String = (0..4).map(|writer| format!("writer {writer}: 25\n")).collect();
    assert_eq!(fs::read_to_string(dir.path().join("f")).unwrap(), text);
}

#[test]
fn an_answer_that_cannot_be_printed_is_no_mistake_in_usage() {
    let dir = TempDir::new().unwrap();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = pinfold(dir.path());
    let output = command.args(["call", "get_file_info", r#"{"path": "."}"#]).stdout(full).output();
    assert_eq!(output.unwrap().status.code(), Some(1));
}

fn doctor(dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = pinfold(dir);
    command.env("XDG_STATE_HOME", dir.join("state")).env("HOME", dir.join("home"));
    let output = command.arg("doctor").args(arguments).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_doctor_finds_what_is_wrong_and_says_what_to_do() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("ws");
    fs::create_dir(&root).unwrap();
    let root = root.to_str().unwrap();
    for dialect in ["classic", "dotted", "scoped", "all"] {
        let (code, printed) = doctor(dir.path(), &["--root", root, "--dialect", dialect]);
        assert_eq!(code, Some(0), "{printed}");
        assert!(printed.contains("server: answers") && !printed.contains("BAD"), "{printed}");
        assert!(printed.lines().all(|line| line.starts_with("ok ")), "{printed}");
    }
    assert_eq!(fs::read_dir(root).unwrap().count(), 0, "nothing is left behind");
    let config = dir.path().join("config.toml");
    fs::write(&config, "durabilty = \"full\"").unwrap();
    let blocked = dir.path().join("file");
    fs::write(&blocked, "").unwrap();
    let inside = format!("{root}/journal");
    for (arguments, found) in [
        (vec!["--root", "/no/such/root"], "name a directory that exists"),
        (vec!["--root", root, "--config", config.to_str().unwrap()], "durabilty"),
        (vec!["--root", root, "--journal", &inside], "is inside a root"),
        (vec!["--root", root, "--journal", blocked.to_str().unwrap()], "cannot write to"),
    ] {
        let (code, printed) = doctor(dir.path(), &arguments);
        assert_eq!(code, Some(1), "{printed}");
        let bad = printed.lines().skip_while(|line| !line.starts_with("BAD ")).take(2);
        assert!(bad.collect::<String>().contains(found), "{printed}");
    }
    let (code, printed) = doctor(dir.path(), &["--root", "/", "--no-journal"]);
    assert_eq!(code, Some(0));
    assert_eq!(printed.lines().filter(|line| line.starts_with("note ")).count(), 2, "{printed}");
    // The socket of a feed needs a short path.
    let (feed, long) = (dir.path().join("feed"), dir.path().join("x".repeat(100)));
    for (arguments, found) in [
        (["--feed", feed.to_str().unwrap()], "ok    feed: "),
        (["--feed", long.to_str().unwrap()], "note  feed: no server can be watched"),
        (["--no-feed", "--no-journal"], "note  feed: off"),
    ] {
        let (code, printed) = doctor(dir.path(), &[&["--root", root], &arguments[..]].concat());
        assert!(code == Some(0) && printed.contains(found), "{printed}");
    }
    assert_eq!(fs::read_dir(feed).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn the_doctor_says_what_searches_remember() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("ws");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a.txt"), "").unwrap();
    let printed =
        |index: &str| doctor(dir.path(), &["--root", root.to_str().unwrap(), "--index", index]).1;
    for (index, found) in [
        ("auto", "1 entries in 1 directories, compared with the disk on each search"),
        ("strict", "because `index` is strict"),
        ("off", "search: searches cache nothing"),
    ] {
        let printed = printed(index);
        assert!(printed.contains(found), "{printed}");
    }
    for number in 0..1_100 {
        fs::write(root.join(number.to_string()), "").unwrap();
    }
    let printed = printed("auto");
    assert!(printed.contains("1101 entries in 1 directories"), "{printed}");
    assert!(printed.contains("search: no index: "), "{printed}");
}

#[test]
fn shells_and_manuals_know_every_command() {
    let dir = TempDir::new().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(dir.path(), &["completions", shell]);
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(printed.contains("serve") && printed.contains("token-file"), "{shell}");
        // The others complete no values.
        if ["bash", "zsh", "fish"].contains(&shell) {
            assert!(printed.contains("bypassPermissions") && printed.contains("scoped"), "{shell}");
        }
    }
    assert_eq!(run(dir.path(), &["completions", "nush"]).status.code(), Some(2));
    for (command, says) in
        [(None, "completions"), (Some("serve"), "token\\-file"), (Some("undo"), "pinfold\\-undo")]
    {
        let arguments: Vec<_> = ["man"].into_iter().chain(command).collect();
        let page = String::from_utf8(run(dir.path(), &arguments).stdout).unwrap();
        assert!(page.contains(says), "{page}");
        assert!(!page.contains("read\\-pdf"), "what is hidden stays so");
    }
    assert_eq!(run(dir.path(), &["man", "nope"]).status.code(), Some(2));
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_error() {
    let dir = TempDir::new().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = pinfold(dir.path()).arg("tools").stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn an_old_flag_or_value_is_an_error_that_names_the_new_one() {
    let dir = TempDir::new().unwrap();
    for (arguments, named) in [
        (&["serve", "--glob-limit", "5"][..], "`--glob-limit` is now `--max-glob-files`"),
        (&["serve", "--seen=off"], "`--seen` is now `--read-before-write`"),
        (&["undo", "--journal-bytes", "5"], "`--journal-bytes` is now `--max-journal-bytes`"),
        (&["serve", "--matching", "ladder"], "`--matching ladder` is now `--matching lenient`"),
        (&["undo", "--journal-failure=say"], "`--journal-failure say` is now"),
    ] {
        let output = run(dir.path(), arguments);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(message.contains(named), "{message}");
    }
}

#[test]
fn the_environment_names_the_configuration_file() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("a.txt"), "0123456789abcdef\n").unwrap();
    let (first, second) = (dir.path().join("first.toml"), dir.path().join("second.toml"));
    fs::write(&first, "max_line_chars = 10\n").unwrap();
    fs::write(&second, "max_line_chars = 4\n").unwrap();
    let call = |variable: &Path, flags: &[&str]| {
        let mut command = pinfold(dir.path());
        command.env("PINFOLD_CONFIG", variable);
        command.args(["call", "read_file", r#"{"path": "a.txt"}"#]).args(flags).output().unwrap()
    };
    let content = |output| answers(&output)[0]["content"].as_str().unwrap().to_owned();
    assert_eq!(content(call(&first, &[])), "0123456789... [+6 characters]\n");
    let flag = ["--config", second.to_str().unwrap()];
    assert_eq!(content(call(&first, &flag)), "0123... [+12 characters]\n");
    assert_eq!(content(call(Path::new(""), &[])), "0123456789abcdef\n");
    assert_eq!(call(&dir.path().join("missing.toml"), &[]).status.code(), Some(2));
}

#[test]
fn the_files_in_use_are_named() {
    let dir = TempDir::new().unwrap();
    let (_, printed) = doctor(dir.path(), &["--root", ".", "--journal", "j", "--audit", "a.log"]);
    let state = dir.path().join("state/pinfold");
    for line in [
        "ok    configuration: ",
        "ok    journal: j",
        &format!("ok    state: {}", state.display()),
        "ok    audit log: a.log",
    ] {
        assert!(printed.lines().any(|found| found.starts_with(line)), "{line}: {printed}");
    }
    let mut command = pinfold(dir.path());
    command.env("PINFOLD_LOG", "info").args(["serve", "--journal", "j"]);
    let printed = String::from_utf8(feed(&mut command, b"").stderr).unwrap();
    assert!(printed.contains("journal: j") && printed.contains("audit log: none"), "{printed}");
}

#[test]
fn the_memory_has_a_directory_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    for command in [&["serve", "--dialect", "memory"][..], &["batch", "--dialect", "memory"]] {
        let refused = run(dir.path(), command);
        assert!(!refused.status.success());
        let problem = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(problem.contains("set `memory`, or give `--memory DIR`"), "{problem}");
    }
    let call = r#"{"command": "create", "path": "/memories/a.txt", "file_text": "x"}"#;
    let flags = ["call", "--dialect", "memory", "--memory", "notes/memory", "memory", call];
    let answer = &answers(&run(dir.path(), &flags))[0];
    assert_eq!(answer["content"][0]["text"], "File created successfully at: /memories/a.txt");
    assert_eq!(fs::read(dir.path().join("notes/memory/a.txt")).unwrap(), b"x");
}
