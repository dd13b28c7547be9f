//! Threads that restrict themselves, and what they can do afterwards.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use std::fs;
use std::io::{ErrorKind, Read as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread;

use pinfold_sandbox::{
    FileAccess, FileRestriction, Scope, deny_system_calls, program_files, restrict_files,
};

/// Runs `check` on a thread of its own in a process of its own, whose only other threads wait.
fn alone(name: &str, check: impl FnOnce()) {
    const CHILD: &str = "PINFOLD_SANDBOX_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return check();
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([name, "--exact", "--nocapture", "--test-threads=1"]).env(CHILD, "1");
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn denied<T: std::fmt::Debug>(result: std::io::Result<T>) {
    assert_eq!(result.unwrap_err().kind(), ErrorKind::PermissionDenied);
}

/// Landlock on this machine, or a loud note that there is none.
fn enforced(restriction: FileRestriction) -> bool {
    match restriction {
        FileRestriction::Enforced(version) => {
            assert!(version >= 2, "{version}");
            true
        }
        FileRestriction::Unavailable(reason) => {
            eprintln!("SKIPPED: no Landlock here: {reason}");
            false
        }
    }
}

#[test]
fn files_outside_can_neither_be_read_nor_changed() {
    alone("files_outside_can_neither_be_read_nor_changed", || {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let secret = outside.path().join("secret");
        fs::write(&secret, "s").unwrap();
        fs::write(inside.path().join("a"), "a").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let access = FileAccess { write: vec![inside.path().to_owned()], ..Default::default() };
        if !enforced(restrict_files(&access, Scope::Process)) {
            return;
        }
        let check = move || {
            denied(fs::read(&secret));
            denied(fs::write(&secret, "t"));
            denied(fs::remove_file(&secret));
            denied(fs::read_dir(outside.path()));
            denied(fs::write(outside.path().join("new"), ""));
            denied(Command::new("/bin/true").status());
            denied(TcpStream::connect(listener.local_addr().unwrap()));
            denied(TcpListener::bind("127.0.0.1:0"));
            let inside = inside.path();
            assert_eq!(fs::read(inside.join("a")).unwrap(), b"a");
            fs::create_dir(inside.join("d")).unwrap();
            fs::rename(inside.join("a"), inside.join("d/b")).unwrap();
            fs::hard_link(inside.join("d/b"), inside.join("c")).unwrap();
            std::os::unix::fs::symlink("c", inside.join("link")).unwrap();
            fs::write(inside.join("c"), "longer").unwrap();
            fs::remove_dir_all(inside.join("d")).unwrap();
            // A link to outside leads nowhere.
            std::os::unix::fs::symlink(&secret, inside.join("out")).unwrap();
            denied(fs::read(inside.join("out")));
            // A directory in the place of the one with the rule has none.
            let moved = inside.with_extension("moved");
            denied(fs::rename(inside, &moved));
        };
        // On a thread that was started later, too.
        thread::spawn(check).join().unwrap();
    });
}

#[test]
fn a_thread_besides_is_restricted_too_or_nothing_is() {
    alone("a_thread_besides_is_restricted_too_or_nothing_is", || {
        let (send, receive) = std::sync::mpsc::channel::<()>();
        let besides = thread::spawn(move || {
            receive.recv().unwrap();
            fs::read("/proc/self/maps").is_err()
        });
        let restriction = restrict_files(&FileAccess::default(), Scope::Process);
        send.send(()).unwrap();
        let restricted = besides.join().unwrap();
        assert_eq!(matches!(restriction, FileRestriction::Enforced(_)), restricted);
        assert_eq!(fs::read("/proc/self/maps").is_err(), restricted);
    });
}

#[test]
fn a_program_that_may_start_itself_can() {
    alone("a_program_that_may_start_itself_can", || {
        let access = FileAccess { execute: program_files(), ..Default::default() };
        if !enforced(restrict_files(&access, Scope::Process)) {
            return;
        }
        let mut itself = Command::new("/proc/self/exe");
        let itself = itself.arg("--list").env_clear();
        let output = itself.stdin(std::process::Stdio::piped()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        denied(Command::new("/bin/sh").arg("-c").arg(":").status());
    });
}

#[test]
fn denied_system_calls_fail_and_computing_goes_on() {
    alone("denied_system_calls_fail_and_computing_goes_on", || {
        let mut open = fs::File::open("/proc/self/maps").unwrap();
        deny_system_calls(Scope::Thread).unwrap();
        denied(fs::read("/etc/passwd"));
        denied(fs::create_dir("/tmp/x"));
        denied(fs::metadata("/etc/passwd").and_then(|_| fs::read_link("/proc/self/exe")));
        denied(TcpListener::bind("127.0.0.1:0"));
        denied(UdpSocket::bind("127.0.0.1:0"));
        denied(UnixStream::pair());
        denied(Command::new("/bin/true").status());
        denied(thread::Builder::new().spawn(|| ()));
        // Memory, clocks, random numbers, a panic, and what is open.
        let large = vec![1_u8; 8 << 20];
        let map: std::collections::HashMap<_, _> =
            large.iter().take(9).map(|byte| (byte, byte)).collect();
        assert_eq!(map.len(), 1);
        std::panic::catch_unwind(|| panic!("on purpose")).unwrap_err();
        let mut text = String::new();
        open.read_to_string(&mut text).unwrap();
        assert!(!text.is_empty());
    });
}
