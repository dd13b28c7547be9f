//! The memory of a whole server is bounded, however many calls it answers at once.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]
#![cfg(target_os = "linux")]

use std::fs;
use std::process::Command;

use pinfold_testkit::mcp::{Lines, Web};
use serde_json::{Value, json};
use tempfile::TempDir;

const MIB: u64 = 1024 * 1024;

/// The size of an image, and how many are read at once: together more than the limit.
const IMAGE: u64 = 6 * MIB;
const CALLS: u64 = 64;

/// The memory for answers with a whole file, and as much as the server takes without them.
const LIMIT: u64 = 256 * MIB + 64 * MIB;

/// A workspace with an image, and a directory for the server's own files.
fn workspace() -> TempDir {
    let dir = TempDir::with_prefix("memory-").unwrap();
    fs::create_dir(dir.path().join("ws")).unwrap();
    let mut image =
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89".to_vec();
    image.resize(IMAGE as usize, 7);
    fs::write(dir.path().join("ws/a.png"), image).unwrap();
    dir
}

fn serve(dir: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pinfold"));
    command.args(["serve", "--no-journal", "--deadline-seconds", "3600", "--root"]);
    command.arg(dir.path().join("ws"));
    command.env_remove("PINFOLD_TOKEN").env_remove("PINFOLD_LOG");
    command.env("XDG_STATE_HOME", dir.path().join("state"));
    command.env("XDG_CONFIG_HOME", dir.path().join("config"));
    command
}

fn read(dir: &TempDir) -> Value {
    json!({"file_path": dir.path().join("ws/a.png")})
}

fn has_image(message: &Value) -> bool {
    message["result"]["content"][1]["data"].as_str().is_some_and(|it| it.len() as u64 > IMAGE)
}

/// The most memory that a process ever had.
fn peak(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn many_images_at_once_wait_for_memory_on_standard_output() {
    let dir = workspace();
    let mut server = Lines::initialized(&mut serve(&dir), json!({}));
    for _ in 0..CALLS {
        server.ask("tools/call", json!({"name": "Read", "arguments": read(&dir)}));
    }
    for _ in 0..CALLS {
        assert!(has_image(&server.read().unwrap()));
    }
    let peak = peak(server.process().id());
    assert!(peak < LIMIT, "{} MiB", peak / MIB);
}

#[test]
fn many_images_at_once_wait_for_memory_over_http() {
    let dir = workspace();
    let mut web = Web::start(serve(&dir).args(["--http", "127.0.0.1:0"]));
    let session = web.session();
    std::thread::scope(|scope| {
        for _ in 0..CALLS {
            scope.spawn(|| {
                let reply = web.call(&session, "Read", &read(&dir));
                assert!(has_image(&reply.message()), "{}", reply.status);
            });
        }
    });
    let peak = peak(web.process().id());
    assert!(peak < LIMIT, "{} MiB", peak / MIB);
}
