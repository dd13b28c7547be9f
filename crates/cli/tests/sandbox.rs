//! Landlock, seccomp and resource limits of the server, and of the processes that read PDFs.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use pinfold_testkit::mcp::{Lines, answer};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde_json::{Value, json};
use tempfile::TempDir;

const PDF: &str = "%PDF-1.4
1 0 obj
<< /Type /Catalog /Pages 2 0 R >>
endobj
2 0 obj
<< /Type /Pages /Kids [3 0 R] /Count 1 >>
endobj
3 0 obj
<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R
   /Resources << /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>
endobj
4 0 obj
<< /Length 39 >>
stream
BT /F 12 Tf 50 700 Td (Hello there) Tj ET
endstream
endobj
trailer << /Size 5 /Root 1 0 R >>
%%EOF
\0";

/// A workspace, and directories that it may not reach: `root`, `outside/secret`, `journal`, `state`.
fn places() -> TempDir {
    let dir = TempDir::with_prefix("sandbox-").unwrap();
    let at = |path: &str| dir.path().join(path);
    for directory in ["root/sub", "outside"] {
        fs::create_dir_all(at(directory)).unwrap();
    }
    fs::write(at("outside/secret"), "secret\n").unwrap();
    fs::write(at("root/a.txt"), "one\n").unwrap();
    fs::write(at("root/a.pdf"), PDF).unwrap();
    symlink("../outside/secret", at("root/link")).unwrap();
    symlink(at("outside"), at("root/sub/out")).unwrap();
    dir
}

fn pinfold(dir: &Path, command: &str, more: &[&str]) -> Command {
    let mut pinfold = Command::new(env!("CARGO_BIN_EXE_pinfold"));
    pinfold.arg(command).args(more).arg("--root").arg(dir.join("root"));
    pinfold.arg("--journal").arg(dir.join("journal")).arg("--audit").arg(dir.join("audit"));
    pinfold.env("XDG_CONFIG_HOME", dir.join("config")).env("XDG_STATE_HOME", dir.join("state"));
    pinfold.env_remove("PINFOLD_LOG").env_remove("PINFOLD_CONFIG");
    pinfold
}

fn call(server: &mut Lines, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    answer(&server.request("tools/call", params))
}

/// Whether this machine has Landlock. If not, prints that the test was skipped.
fn has_landlock(dir: &Path) -> bool {
    let doctor = pinfold(dir, "doctor", &[]).output().unwrap();
    let has = String::from_utf8_lossy(&doctor.stdout).contains("landlock: works");
    if !has {
        pinfold_testkit::skipped("NOT TRIED: this machine has no Landlock");
    }
    has
}

#[test]
fn the_tools_work_and_the_fence_holds_with_and_without_landlock() {
    for landlock in ["auto", "off"] {
        let dir = places();
        let root = dir.path().join("root");
        let serve = &mut pinfold(dir.path(), "serve", &["--landlock", landlock]);
        let mut server = Lines::initialized(serve, json!({}));
        let mut succeeds = |tool: &str, arguments: Value| {
            let answer = call(&mut server, tool, arguments);
            assert_eq!(answer["success"], true, "{landlock}: {answer}");
            answer["content"].as_str().unwrap().to_owned()
        };
        let (text, new) = (root.join("a.txt"), root.join("new/deep/b.txt"));
        assert!(succeeds("Read", json!({"file_path": text})).contains("one"));
        let pdf = succeeds("Read", json!({"file_path": root.join("a.pdf")}));
        assert!(pdf.contains("Hello there"), "{pdf}");
        succeeds("Write", json!({"file_path": new, "content": "x\n"}));
        succeeds("Edit", json!({"file_path": text, "old_string": "one", "new_string": "two"}));
        succeeds("Delete", json!({"path": new}));
        assert!(succeeds("Grep", json!({"pattern": "two"})).contains("a.txt"));
        assert!(succeeds("LS", json!({"path": root})).contains("a.pdf"));
        assert!(succeeds("Glob", json!({"pattern": "**/*.txt"})).contains("a.txt"));
        let outside = dir.path().join("outside/secret");
        for path in [
            outside.clone(),
            root.join("../outside/secret"),
            root.join("link"),
            root.join("sub/out/secret"),
            "/proc/self/environ".into(),
            "/etc/passwd".into(),
        ] {
            for (tool, arguments) in [
                ("Read", json!({"file_path": path})),
                ("Write", json!({"file_path": path, "content": "mine\n"})),
                ("Grep", json!({"pattern": "s", "path": path})),
            ] {
                let answer = call(&mut server, tool, arguments);
                let code = &answer["metadata"]["code"];
                assert_eq!(code, "path_outside_workspace", "{landlock}, {tool}: {answer}");
            }
        }
        drop(server);
        assert_eq!(fs::read_to_string(outside).unwrap(), "secret\n");
        let log = pinfold(dir.path(), "log", &[]);
        let log = without_audit(log).output().unwrap();
        let log = String::from_utf8(log.stdout).unwrap();
        assert!(log.lines().count() >= 3, "{landlock}: {log}");
    }
}

/// The same command without `--audit FILE`, which not every command has.
fn without_audit(command: Command) -> Command {
    let mut shorter = Command::new(command.get_program());
    let mut arguments = command.get_args();
    while let Some(argument) = arguments.next() {
        if argument == "--audit" {
            arguments.next();
        } else {
            shorter.arg(argument);
        }
    }
    shorter.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
    shorter
}

#[test]
fn a_server_cannot_write_to_a_directory_that_is_not_its_own() {
    let dir = places();
    let landlock = has_landlock(dir.path());
    for (setting, writes) in [("auto", !landlock), ("off", true)] {
        let (dir, elsewhere) = (places(), TempDir::new().unwrap());
        let at = |path: &str| dir.path().join(path);
        let serve = &mut pinfold(dir.path(), "serve", &["--landlock", setting]);
        let mut server = Lines::initialized(serve, json!({}));
        call(&mut server, "LS", json!({"path": at("root")}));
        // The journal is opened by its path, so without Landlock the server would follow this.
        if at("journal").exists() {
            fs::remove_dir_all(at("journal")).unwrap();
        }
        symlink(elsewhere.path(), at("journal")).unwrap();
        let new = at("root/new.txt");
        let written = call(&mut server, "Write", json!({"file_path": new, "content": "x\n"}));
        assert_eq!(written["success"], writes, "{setting}: {written}");
        let left = fs::read_dir(elsewhere.path()).unwrap().count();
        assert_eq!(left > 0, writes, "{setting}: {written}");
    }
}

#[test]
fn doctor_says_whether_landlock_holds() {
    let dir = places();
    let printed = |more: &[&str]| {
        String::from_utf8(pinfold(dir.path(), "doctor", more).output().unwrap().stdout).unwrap()
    };
    assert!(printed(&["--landlock", "off"]).contains("note  landlock: off"));
    let auto = printed(&[]);
    assert!(auto.contains("landlock: works (version ") || auto.contains("landlock: does not work"));
    assert!(without_kernel_support(|| printed(&[])).contains("note  landlock: does not work"));
}

#[test]
fn a_kernel_without_landlock_and_seccomp_is_no_obstacle() {
    without_kernel_support(|| {
        let dir = places();
        let mut server = Lines::initialized(&mut pinfold(dir.path(), "serve", &[]), json!({}));
        let pdf = dir.path().join("root/a.pdf");
        let read = call(&mut server, "Read", json!({"file_path": pdf}));
        assert!(read["content"].as_str().unwrap().contains("Hello there"), "{read}");
    });
}

/// Runs something on a thread whose child processes have neither Landlock nor seccomp.
fn without_kernel_support<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    let calls = [
        libc::SYS_landlock_create_ruleset,
        libc::SYS_landlock_add_rule,
        libc::SYS_landlock_restrict_self,
        libc::SYS_seccomp,
    ];
    let filter = SeccompFilter::new(
        calls.map(|call| (call, Vec::new())).into(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::ENOSYS.cast_unsigned()),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            seccompiler::apply_filter(&program).unwrap();
            run()
        });
        thread.join().unwrap()
    })
}

#[test]
fn the_process_that_reads_a_pdf_is_restricted_before_it_reads() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pinfold"))
        .args(["read-pdf", "1", "1", "1000"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let proc = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", child.id())).unwrap();
    let restricted = || {
        let status = proc("status");
        status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2")
    };
    let waited = (0..600).any(|_| {
        thread::sleep(Duration::from_millis(50));
        restricted()
    });
    assert!(waited, "{}", proc("status"));
    let limits = proc("limits");
    for (limit, max) in [
        ("Max address space", "805306368"),
        ("Max cpu time", "300"),
        ("Max core file size", "0"),
        ("Max file size", "0"),
        ("Max open files", "16"),
        ("Max processes", "0"),
    ] {
        let line = limits.lines().find(|line| line.starts_with(limit)).unwrap();
        let [soft, hard] = [0, 1].map(|n| line[limit.len()..].split_whitespace().nth(n).unwrap());
        assert_eq!((soft, hard), (max, max), "{line}");
    }
    use std::io::Write as _;
    child.stdin.take().unwrap().write_all(PDF.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("Hello there"), "{output:?}");
}

#[test]
fn a_replaced_root_is_used_unless_landlock_would_have_to_give_away_the_home_directory() {
    let landlock = has_landlock(places().path());
    for (setting, in_home, works) in
        [("auto", false, true), ("auto", true, !landlock), ("off", true, true)]
    {
        let dir = places();
        let root = dir.path().join("root");
        let serve = &mut pinfold(dir.path(), "serve", &["--landlock", setting]);
        if in_home {
            serve.env("HOME", dir.path());
        }
        let mut server = Lines::initialized(serve, json!({}));
        let read =
            |server: &mut Lines| call(server, "Read", json!({"file_path": root.join("a.txt")}));
        assert_eq!(read(&mut server)["success"], true);
        fs::rename(&root, dir.path().join("moved")).unwrap();
        fs::create_dir(&root).unwrap();
        fs::write(root.join("a.txt"), "new\n").unwrap();
        let answer = read(&mut server);
        if works {
            assert!(answer["content"].as_str().unwrap().contains("new"), "{setting}: {answer}");
        } else {
            let error = answer["error"].as_str().unwrap();
            assert!(error.contains("was replaced, and Landlock"), "{answer}");
            assert!(error.contains("start the server again"), "{answer}");
        }
        // Whatever the answer is, nothing is written to the moved directory.
        let write = json!({"file_path": root.join("b.txt"), "content": "x\n"});
        assert_eq!(call(&mut server, "Write", write)["success"], works);
        assert!(!dir.path().join("moved/b.txt").exists());
        assert_eq!(root.join("b.txt").exists(), works);
    }
}
