//! What killed processes leave behind. In a file of its own: a process sweeps a directory once, and
//! takes a new directory for one that it knows if the system gives it the number of an old one.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use std::fs;
use std::os::unix::fs::symlink;

use pinfold_confine::fault::{Fault, When, inject};
use pinfold_confine::{Durability, Workspace};
use tempfile::TempDir;

#[test]
fn what_a_killed_process_left_is_swept_and_what_is_being_written_is_not() {
    let dir = TempDir::new().unwrap();
    let workspace = Workspace::open([dir.path()], None).unwrap();
    let names =
        [".pinfold-00000000000000aa.tmp", ".pinfold-00000000000000bb.tmp", ".pinfold-cc.tmp"];
    let [left, written, other] = names.map(|name| dir.path().join(name));
    fs::write(&left, "left behind").unwrap();
    fs::write(&other, "somebody's own").unwrap();
    let writer = fs::File::create(&written).unwrap();
    rustix::fs::flock(&writer, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let link = ".pinfold-00000000000000dd.tmp";
    symlink("nowhere", dir.path().join(link)).unwrap();
    let write = || {
        let target = workspace.target(&"f".into(), &Default::default()).unwrap();
        target.replace(b"new", Durability::None).map(drop).unwrap();
        let mut found: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        found.sort();
        found
    };
    // Where directories cannot be locked, nobody knows what is left behind.
    let no_locks = Fault::Errno(rustix::io::Errno::NOLCK.raw_os_error());
    let found = inject(&[(When::Every("flock"), no_locks)], write).result;
    assert_eq!(found, [names[0], names[1], link, names[2], "f"]);
    assert_eq!(write(), [names[1], names[2], "f"]);
}
