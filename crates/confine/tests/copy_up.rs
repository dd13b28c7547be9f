//! A file of an overlay's lower layer that another process writes to during a call: the kernel copies it to the upper
//! layer, and the call's open handle still reads the old one.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use pinfold_confine::fault::{inject, interleave};
use pinfold_confine::{Durability, Error, Workspace};
use pinfold_testkit::{in_mount_namespace, mount, skipped};
use tempfile::TempDir;

/// The lower and the upper layer, and the overlay of both. `None` if no overlay can be mounted.
fn overlay(content: &str) -> Option<TempDir> {
    let dir = TempDir::new().unwrap();
    let layers = dir.path().to_str().unwrap().to_owned();
    // The layers of an overlay cannot be on an overlay.
    mount(&["-t", "tmpfs", "tmpfs", &layers]);
    for name in ["lower", "upper", "work", "ws"] {
        fs::create_dir(dir.path().join(name)).unwrap();
    }
    fs::write(dir.path().join("lower/f"), content).unwrap();
    let options = format!("lowerdir={layers}/lower,upperdir={layers}/upper,workdir={layers}/work");
    let ws = dir.path().join("ws");
    let mut command = Command::new("mount");
    command.args(["-t", "overlay", "-o", &options, "overlay"]).arg(ws);
    let output = command.output().unwrap();
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        skipped(&format!("NOT TRIED: no overlay can be mounted: {}", why.trim()));
        return None;
    }
    Some(dir)
}

fn append(path: &Path) {
    let mut file = fs::File::options().append(true).open(path).unwrap();
    file.write_all(b"theirs\n").unwrap();
}

#[test]
fn a_file_that_is_copied_up_during_a_change_loses_nothing() {
    in_mount_namespace("a_file_that_is_copied_up_during_a_change_loses_nothing", || {
        let Some(dir) = overlay("old\n") else { return };
        let workspace = Workspace::open([dir.path().join("ws")], None).unwrap();
        let target = workspace.target(&"f".into(), &Default::default()).unwrap();
        target.hash().unwrap();
        let calls = inject(&[], || target.replace(b"new\n", Durability::Data).map(drop)).calls;
        drop((target, workspace));
        let mut refused = 0;
        for at in 0..calls.len() {
            let Some(dir) = overlay("old\n") else { return };
            let ws = dir.path().join("ws");
            let workspace = Workspace::open([&ws], None).unwrap();
            let target = workspace.target(&"f".into(), &Default::default()).unwrap();
            target.hash().unwrap();
            let nth = calls[..=at].iter().filter(|call| **call == calls[at]).count();
            let path = ws.join("f");
            let theirs = (calls[at], nth, Box::new(move || append(&path)) as Box<dyn FnOnce()>);
            let replace = || target.replace(b"new\n", Durability::Data).map(drop);
            let report = interleave(vec![theirs], replace);
            let now = fs::read_to_string(ws.join("f")).unwrap();
            let what = format!("written to before call {at} of {:?}", report.calls);
            match report.result {
                Ok(()) => assert_eq!(now, "new\ntheirs\n", "{what}"),
                Err(Error::Changed) => {
                    refused += 1;
                    assert_eq!(now, "old\ntheirs\n", "{what}");
                }
                Err(other) => panic!("{what}: {other:?}"),
            }
            assert_eq!(fs::read_to_string(dir.path().join("lower/f")).unwrap(), "old\n");
            assert_eq!(fs::read_dir(&ws).unwrap().count(), 1, "{what}");
        }
        assert!(refused > 3, "{refused} of {calls:?}");
    });
}

#[test]
fn a_file_that_is_copied_up_while_it_is_read_is_old_or_new() {
    in_mount_namespace("a_file_that_is_copied_up_while_it_is_read_is_old_or_new", || {
        use std::io::Read as _;
        let Some(dir) = overlay("old\n") else { return };
        let ws = dir.path().join("ws");
        let workspace = Workspace::open([&ws], None).unwrap();
        let (_, mut file) = workspace.file(&"f".into()).unwrap();
        append(&ws.join("f"));
        let mut text = String::new();
        // The handle is that of the lower file, which no longer changes.
        file.read_to_string(&mut text).unwrap();
        assert!(["old\n", "old\ntheirs\n"].contains(&text.as_str()), "{text:?}");
        let (_, mut again) = workspace.file(&"f".into()).unwrap();
        text.clear();
        again.read_to_string(&mut text).unwrap();
        assert_eq!(text, "old\ntheirs\n");
    });
}
