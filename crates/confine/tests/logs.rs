//! Logs with a line that did not fit, or with a partial line of another process: the lines before it stay, and the
//! next one is whole.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use std::fs::{self, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use pinfold_confine::fault::{Fault, When, inject, interleave};
use pinfold_confine::{BackupStore, LogFile, Name};
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use tempfile::TempDir;

fn log() -> (TempDir, PathBuf, LogFile) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("log");
    let log = LogFile::open(&path).unwrap();
    log.append("one\n").unwrap();
    (dir, path, log)
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn fails(errno: Errno) -> Fault {
    Fault::Errno(errno.raw_os_error())
}

/// The disk is full after half of a line, at every point of `append`.
fn fill_up(append: impl Fn() -> bool, left: impl Fn()) {
    let full = (When::Every("write"), fails(Errno::NOSPC));
    let mut halves = 0;
    for nth in 1.. {
        let report = inject(&[(When::Nth(nth), Fault::ShortWrite), full], &append);
        assert!(!report.result, "{:?}", report.calls);
        halves += usize::from(report.fired == Some("write"));
        left();
        if report.fired.is_none() {
            break;
        }
    }
    assert_eq!(halves, 1);
}

#[test]
fn half_a_line_is_taken_back() {
    let (_dir, path, log) = log();
    fill_up(|| log.append("two\n").is_ok(), || assert_eq!(text(&path), "one\n"));
    log.append("three\n").unwrap();
    assert_eq!(text(&path), "one\nthree\n");
}

#[test]
fn half_a_line_of_a_vault_is_taken_back() {
    let dir = TempDir::new().unwrap();
    let (backups, log) = (BackupStore::open(dir.path()).unwrap(), Name::parse(b"log").unwrap());
    let append = |line| backups.append(&log, line, &Default::default());
    append("one").unwrap();
    fill_up(|| append("two").is_ok(), || assert_eq!(backups.read_text(&log).unwrap(), "one\n"));
    append("three").unwrap();
    assert_eq!(backups.read_text(&log).unwrap(), "one\nthree\n");
}

#[test]
fn half_a_line_that_cannot_be_taken_back_gets_an_end() {
    let unlocked = (When::Every("flock"), fails(Errno::OPNOTSUPP));
    let stays = (When::Every("ftruncate"), fails(Errno::PERM));
    for cannot in [unlocked, stays] {
        let (_dir, path, log) = log();
        let full = (When::Every("write"), fails(Errno::NOSPC));
        // A lock, its length, its last byte, the line.
        let half = (When::Nth(4), Fault::ShortWrite);
        let report = inject(&[half, full, cannot], || log.append("two\n"));
        assert_eq!((report.result.is_err(), report.fired), (true, Some("write")));
        inject(&[cannot], || ["three\n", "four\n"].map(|line| log.append(line).unwrap()));
        assert_eq!(text(&path), "one\ntw\nthree\nfour\n", "{cannot:?}");
    }
}

#[test]
fn what_somebody_else_left_of_a_line_gets_an_end() {
    let (_dir, path, log) = log();
    let mut other = OpenOptions::new().append(true).open(&path).unwrap();
    for _ in 0..2 {
        other.write_all(b"tw").unwrap();
        log.append("three\n").unwrap();
    }
    assert_eq!(text(&path), "one\ntw\nthree\ntw\nthree\n");
}

#[test]
fn lines_are_appended_to_a_log_that_another_process_keeps_locked() {
    let (_dir, path, log) = log();
    let other = fs::File::open(&path).unwrap();
    rustix::fs::flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
    log.append("two\n").unwrap();
    assert_eq!(text(&path), "one\ntwo\n");
    // And it is not locked by us when the line is there.
    drop(other);
    log.append("three\n").unwrap();
    let other = fs::File::open(&path).unwrap();
    rustix::fs::flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
}

#[test]
fn half_a_line_in_a_pipe_gets_an_end() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let mut reader = OpenOptions::new().read(true).custom_flags(nonblocking).open(&path).unwrap();
    let mut read = || {
        let (mut all, mut some) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = reader.read(&mut some) {
            all.extend_from_slice(&some[..count]);
        }
        String::from_utf8(all).unwrap()
    };
    let log = LogFile::open(&path).unwrap();
    // More than the capacity of any pipe.
    let long = format!("{}\n", "x".repeat(16 * 1024 * 1024));
    log.append(&long).unwrap_err();
    // It is full, and takes nothing at all.
    log.append("two\n").unwrap_err();
    assert!(long.starts_with(&read()));
    for line in ["three\n", "four\n"] {
        log.append(line).unwrap();
    }
    assert_eq!(read(), "\nthree\nfour\n");
}

#[test]
fn a_symlink_is_not_a_log() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let dir = TempDir::new().unwrap();
    let (target, link) = (dir.path().join("target"), dir.path().join("log"));
    fs::write(&target, "somebody's\n").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o644)).unwrap();
    symlink(&target, &link).unwrap();
    let refused = LogFile::open(&link).unwrap_err();
    assert!(refused.to_string().contains("symlink"), "{refused}");
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o644);
    fs::remove_file(&target).unwrap();
    assert!(LogFile::open(&link).is_err());
    assert!(!target.exists(), "a dangling symlink was followed");
    // A log in a directory behind a symlink works like any other.
    fs::create_dir(dir.path().join("real")).unwrap();
    symlink("real", dir.path().join("through")).unwrap();
    LogFile::open(&dir.path().join("through/log")).unwrap();
}

#[test]
fn a_log_is_sealed_also_if_a_backup_is_removed_meanwhile() {
    let dir = TempDir::new().unwrap();
    for name in ["log", "a.before", "b.before"] {
        fs::write(dir.path().join(name), name).unwrap();
    }
    let store = BackupStore::open(dir.path()).unwrap();
    let log = Name::parse(b"log").unwrap();
    let other = dir.path().join("b.before");
    let removed = Box::new(move || fs::remove_file(other).unwrap());
    let report = interleave(vec![("rename_across", 1, removed)], || store.seal(&log, 1, |_| true));
    report.result.unwrap();
    assert!(!dir.path().join("log").exists() && !dir.path().join("a.before").exists());
    let segment = &store.segments().unwrap()[0];
    assert!(store.lines_from_end(&log, Some(segment)).unwrap().next().is_some());
}
