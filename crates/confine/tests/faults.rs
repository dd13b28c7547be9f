//! Every system call of a write fails once, with several errors, and nothing is ever lost or left behind.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pinfold_confine::fault::{Fault, When, each_call, inject, inject_while};
use pinfold_confine::{Deadline, Durability, Error, OpenMethod, ReplacedFile, Workspace};
use pinfold_testkit::names_in;
use rustix::io::Errno;
use tempfile::TempDir;

const OLD: &[u8] = b"old content\n";
const NEW: &[u8] = b"new content, and longer than the old\n";
const MODE: u32 = 0o640;

fn faults() -> Vec<Fault> {
    let errnos = [Errno::IO, Errno::NOSPC, Errno::INTR, Errno::ACCESS];
    let errnos = errnos.iter().map(|errno| Fault::Errno(errno.raw_os_error()));
    errnos.chain([Fault::ShortWrite]).collect()
}

fn write(workspace: &Workspace, path: &str, how: Durability) -> Result<ReplacedFile, Error> {
    workspace.target(&path.into(), &Default::default())?.replace(NEW, how)
}

/// Every name below `dir`, hidden ones too.
fn names(dir: &Path) -> Vec<String> {
    let mut names = names_in(dir);
    for name in names.clone() {
        if fs::symlink_metadata(dir.join(&name)).is_ok_and(|meta| meta.is_dir()) {
            let below = self::names(&dir.join(&name)).into_iter();
            names.extend(below.map(|below| format!("{name}/{below}")));
        }
    }
    names.sort();
    names
}

/// Fails the 1st, 2nd, … call of a write until one write has gone through without a fault.
fn sweep(
    path: &str,
    existing: bool,
    how: Durability,
    method: OpenMethod,
    always: &[(When, Fault)],
) {
    for fault in faults() {
        for nth in each_call() {
            let dir = TempDir::new().unwrap();
            let ws = dir.path();
            fs::write(ws.join("bystander"), b"untouched").unwrap();
            let file = ws.join(path);
            if existing {
                fs::write(&file, OLD).unwrap();
                fs::set_permissions(&file, fs::Permissions::from_mode(MODE)).unwrap();
            }
            let before = names(ws);
            let workspace = Workspace::open([ws], Some(method)).unwrap();

            let faults: Vec<_> = always.iter().copied().chain([(When::Nth(nth), fault)]).collect();
            let report = inject(&faults, || write(&workspace, path, how).map(drop));

            let what = format!("{fault:?} at call {nth} {:?} of {:?}", report.fired, report.calls);
            assert_eq!(fs::read(ws.join("bystander")).unwrap(), b"untouched", "{what}");
            match &report.result {
                Ok(()) => {
                    assert_eq!(fs::read(&file).unwrap(), NEW, "{what}");
                    let mut after = before;
                    if !existing {
                        let parts: Vec<_> = path.split('/').collect();
                        after.extend((1..=parts.len()).map(|n| parts[..n].join("/")));
                        after.sort();
                    }
                    assert_eq!(names(ws), after, "{what}");
                }
                Err(_) => {
                    assert!(report.fired.is_some(), "{what}: {:?}", report.result);
                    if existing {
                        assert_eq!(fs::read(&file).unwrap(), OLD, "{what}");
                    }
                    assert_eq!(names(ws), before, "{what}: {:?}", report.result);
                }
            }
            if existing {
                let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o7777;
                assert_eq!(mode, MODE, "{what}");
            }
            if report.fired.is_none() {
                assert!(report.result.is_ok(), "{what}");
                assert!(nth > 8, "a write makes more calls than {nth}: {what}");
                break;
            }
        }
    }
}

fn sweep_all(always: &[(When, Fault)]) {
    for how in [Durability::None, Durability::Data, Durability::Full] {
        for method in [OpenMethod::Kernel, OpenMethod::NameByName] {
            sweep("file", true, how, method, always);
            sweep("file", false, how, method, always);
            sweep("new/deeper/file", false, how, method, always);
        }
    }
}

#[test]
fn a_failing_call_leaves_the_old_content_or_the_new() {
    sweep_all(&[]);
}

#[test]
fn file_systems_that_cannot_exchange_lose_nothing_either() {
    let cannot = Fault::Errno(Errno::INVAL.raw_os_error());
    let rename_only = [(When::Every("exchange"), cannot), (When::Every("rename_new"), cannot)];
    sweep_all(&rename_only);
}

/// They cannot create a file without a name, or cannot name it afterwards.
#[test]
fn file_systems_without_unnamed_files_lose_nothing_either() {
    let cannot = Fault::Errno(Errno::OPNOTSUPP.raw_os_error());
    for call in ["create_unnamed", "link_unnamed"] {
        for how in [Durability::None, Durability::Full] {
            let always = [(When::Every(call), cannot)];
            sweep("new/file", false, how, OpenMethod::Kernel, &always);
            sweep("file", true, how, OpenMethod::Kernel, &always);
        }
    }
}

#[test]
fn file_systems_that_can_only_rename_replace_whole_files() {
    let cannot = Fault::Errno(Errno::INVAL.raw_os_error());
    let always = ["create_unnamed", "exchange", "rename_new", "linkat", "flock"]
        .map(|call| (When::Every(call), cannot));
    for path in ["file", "new/file"] {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("file"), OLD).unwrap();
        let workspace = Workspace::open([dir.path()], None).unwrap();
        let report = inject(&always, || write(&workspace, path, Durability::Full));
        assert!(report.result.unwrap().may_have_replaced);
        assert_eq!(fs::read(dir.path().join(path)).unwrap(), NEW);
        assert!(!names(dir.path()).iter().any(|name| name.contains("pinfold")));
    }
}

#[test]
fn a_full_disk_is_told_from_other_failures() {
    let dir = TempDir::new().unwrap();
    let workspace = Workspace::open([dir.path()], None).unwrap();
    let full = (When::Every("write"), Fault::Errno(Errno::NOSPC.raw_os_error()));
    let report = inject(&[full], || write(&workspace, "file", Durability::Data));
    assert!(matches!(report.result, Err(Error::NoSpace)));
}

#[test]
fn what_cannot_be_put_back_is_kept_and_named() {
    let dir = TempDir::new().unwrap();
    if !pinfold_testkit::can_exchange(dir.path()) {
        return;
    }
    fs::write(dir.path().join("file"), OLD).unwrap();
    let workspace = Workspace::open([dir.path()], None).unwrap();
    let target = workspace.target(&"file".into(), &Default::default()).unwrap();
    // The first change in a directory also sweeps it, which takes calls that later ones do not make.
    target.replace(OLD, Durability::None).map(drop).unwrap();
    drop(target);
    let target = workspace.target(&"file".into(), &Default::default()).unwrap();
    // The file is checked before, during and after the exchange; every later exchange fails.
    let calls = inject(&[], || target.replace(NEW, Durability::None).map(drop)).calls;
    drop(target);
    let traded = calls.iter().position(|call| *call == "exchange").unwrap() as u64 + 1;
    fs::write(dir.path().join("file"), OLD).unwrap();
    let target = workspace.target(&"file".into(), &Default::default()).unwrap();
    let broken = Fault::Errno(Errno::IO.raw_os_error());
    let after = (traded + 1..traded + 40).map(|nth| (When::Nth(nth), broken)).collect::<Vec<_>>();
    let report = inject(&after, || target.replace(NEW, Durability::None).map(drop));
    let Err(Error::RollbackFailed { kept }) = report.result else { panic!("{:?}", report.result) };
    assert_eq!(fs::read(dir.path().join(kept)).unwrap(), OLD);
    assert_eq!(fs::read(dir.path().join("file")).unwrap(), NEW);
}

#[test]
fn a_failing_removal_leaves_the_file_or_nothing() {
    let cannot = Fault::Errno(Errno::INVAL.raw_os_error());
    for always in [&[][..], &[(When::Every("rename_new"), cannot)]] {
        for (how, fault) in [Durability::None, Durability::Full]
            .into_iter()
            .flat_map(|how| faults().into_iter().map(move |fault| (how, fault)))
        {
            for nth in each_call() {
                let dir = TempDir::new().unwrap();
                fs::write(dir.path().join("file"), OLD).unwrap();
                let workspace = Workspace::open([dir.path()], None).unwrap();
                let faults: Vec<_> =
                    always.iter().copied().chain([(When::Nth(nth), fault)]).collect();
                let report = inject(&faults, || {
                    workspace.removal(&"file".into(), &Default::default())?.remove(how).map(drop)
                });
                let what =
                    format!("{fault:?} at call {nth} {:?} of {:?}", report.fired, report.calls);
                match report.result {
                    Ok(()) => assert_eq!(names(dir.path()), [""; 0], "{what}"),
                    Err(_) => {
                        assert_eq!(names(dir.path()), ["file"], "{what}");
                        assert_eq!(fs::read(dir.path().join("file")).unwrap(), OLD, "{what}");
                    }
                }
                if report.fired.is_none() {
                    break;
                }
            }
        }
    }
}

/// The deadline passes while the directory is flushed, after the rename.
#[test]
fn a_change_that_ends_after_its_deadline_is_rolled_back() {
    let cannot = (When::Every("exchange"), Fault::Errno(Errno::INVAL.raw_os_error()));
    for (action, faults, call) in [
        ("replace", &[][..], "fsync"),
        ("replace", &[cannot], "fsync"),
        ("create", &[], "fsync"),
        ("remove", &[], "fsync"),
        ("link", &[], "symlinkat"),
    ] {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("file"), OLD).unwrap();
        let workspace = Workspace::open([dir.path()], None).unwrap();
        let passed = Arc::new(AtomicBool::new(false));
        let (set, get) = (passed.clone(), passed);
        let deadline = Deadline::lasting_while(move || !get.load(Ordering::Relaxed));
        let slow = (call, 1, Box::new(move || set.store(true, Ordering::Relaxed)) as Box<_>);
        let target = |name: &str| workspace.target(&name.into(), &deadline);
        let report = inject_while(faults, vec![slow], || match action {
            "replace" => target("file")?.replace(NEW, Durability::Full).map(drop),
            "create" => target("new")?.replace(NEW, Durability::Full).map(drop),
            "link" => target("new")?.link(b"file", Durability::Full),
            _ => workspace.removal(&"file".into(), &deadline)?.remove(Durability::Full).map(drop),
        });
        assert!(matches!(report.result, Err(Error::TimedOut)), "{action}: {:?}", report.result);
        assert_eq!(names(dir.path()), ["file"], "{action}");
        assert_eq!(fs::read(dir.path().join("file")).unwrap(), OLD, "{action}");
    }
}

#[test]
fn an_error_of_the_file_system_is_not_taken_for_a_socket_or_a_device() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("file"), OLD).unwrap();
    let workspace = Workspace::open([dir.path()], None).unwrap();
    for errno in [Errno::PIPE, Errno::NXIO, Errno::NODEV] {
        let failing = (When::Every("openat"), Fault::Errno(errno.raw_os_error()));
        let report = inject(&[failing], || workspace.file(&"file".into()));
        let Err(Error::Os(error)) = report.result else { panic!("{errno:?}: {:?}", report.result) };
        assert_eq!(error.raw_os_error(), Some(errno.raw_os_error()));
    }
}
