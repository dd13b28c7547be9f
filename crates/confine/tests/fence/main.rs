//! The fence: paths that it allows and refuses, with and without `openat2`.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

#[cfg(target_os = "linux")]
mod cached_file;
#[path = "../landlock/mod.rs"]
mod landlock;
mod links;

use std::cell::Cell;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use landlock::{Landlock, off_and_on, restricted};
use pinfold_confine::{Error, Kind, OpenMethod, RawPath, Workspace};
use pinfold_testkit::can_have_long_paths;
use tempfile::TempDir;

/// Makes a FIFO. `mkfifoat` is not on every system.
fn make_fifo(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// `ws/` is the root; `outside/` and `ws-sibling/` lie beside it.
fn tree() -> TempDir {
    let dir = TempDir::new().unwrap();
    let at = |path: &str| dir.path().join(path);
    for path in ["ws/a/b", "ws/other", "outside/d", "ws-sibling", "second/x"] {
        fs::create_dir_all(at(path)).unwrap();
    }
    for path in ["ws/top.txt", "ws/a/b/deep.txt", "ws/other/o.txt", "second/x/s.txt"] {
        fs::write(at(path), format!("inside {path}")).unwrap();
    }
    for path in ["outside/secret.txt", "outside/d/f.txt", "ws-sibling/secret.txt"] {
        fs::write(at(path), "secret").unwrap();
    }
    dir
}

thread_local! {
    /// Whether [`read`] and [`write`] run with Landlock.
    static LANDLOCK: Cell<Landlock> = const { Cell::new(Landlock::Off) };
}

/// Runs a test with both ways of opening, with and without Landlock.
fn both_ways(test: impl Fn(&Path, &Workspace)) {
    for landlock in off_and_on() {
        LANDLOCK.set(landlock);
        for method in [OpenMethod::Kernel, OpenMethod::NameByName] {
            let dir = tree();
            let workspace = Workspace::open([dir.path().join("ws")], Some(method)).unwrap();
            test(dir.path(), &workspace);
        }
    }
}

/// Runs code like a server that Landlock restricts to its roots, if Landlock is on.
fn as_server<T: Send>(workspace: &Workspace, code: impl FnOnce() -> T + Send) -> T {
    let roots: Vec<_> = workspace.roots().collect();
    restricted(LANDLOCK.get(), &roots, code)
}

fn read(workspace: &Workspace, path: impl Into<RawPath>) -> Result<String, Error> {
    let path = path.into();
    as_server(workspace, || {
        let (_, mut file) = workspace.file(&path)?;
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        Ok(text)
    })
}

fn write(workspace: &Workspace, path: impl Into<RawPath>) -> Result<(), Error> {
    let path = path.into();
    as_server(workspace, || {
        let target = workspace.target(&path, &Default::default())?;
        target.replace(b"new", Default::default()).map(drop)
    })
}

#[test]
fn the_kernel_walks_where_it_can() {
    let dir = tree();
    let workspace = Workspace::open([dir.path()], None).unwrap();
    assert_eq!(
        workspace.open_method(),
        OpenMethod::Kernel,
        "this kernel has no openat2, or a filter forbids it"
    );
}

#[test]
fn every_spelling_of_a_path_inside_is_understood() {
    both_ways(|dir, workspace| {
        let absolute = dir.join("ws/a/b/deep.txt").display().to_string();
        let around = dir.join("ws/../ws/a/b/deep.txt").display().to_string();
        for path in ["a/b/deep.txt", "./a//b/./deep.txt", "a/../a/b/deep.txt", &absolute, &around] {
            assert_eq!(read(workspace, path).unwrap(), "inside ws/a/b/deep.txt", "{path}");
        }
    });
}

#[test]
fn no_spelling_leads_out() {
    both_ways(|dir, workspace| {
        let secret = dir.join("outside/secret.txt").display().to_string();
        let sibling = dir.join("ws-sibling/secret.txt").display().to_string();
        let dotted = dir.join("ws/../outside/secret.txt").display().to_string();
        for path in [
            "../outside/secret.txt",
            "a/../../outside/secret.txt",
            "../ws-sibling/secret.txt",
            "..",
            "../..",
            "../../../../../../../../../../etc/passwd",
            "/etc/passwd",
            "/proc/self/environ",
            "/",
            &secret,
            &sibling,
            &dotted,
        ] {
            assert!(matches!(read(workspace, path), Err(Error::Outside)), "{path}");
            assert!(matches!(write(workspace, path), Err(Error::Outside)), "{path}");
            assert!(matches!(workspace.lstat(&path.into()), Err(Error::Outside)), "{path}");
            assert!(matches!(workspace.list(&path.into(), 9), Err(Error::Outside)), "{path}");
        }
        assert_eq!(fs::read_to_string(dir.join("outside/secret.txt")).unwrap(), "secret");
    });
}

#[test]
fn only_regular_files_are_read() {
    both_ways(|dir, workspace| {
        let fifo = dir.join("ws/fifo");
        make_fifo(&fifo);
        let _socket = std::os::unix::net::UnixListener::bind(dir.join("ws/socket")).unwrap();
        for (path, kind) in [("fifo", Kind::Fifo), ("socket", Kind::Socket)] {
            assert!(
                matches!(read(workspace, path), Err(Error::NotRegular(found)) if found == kind),
                "{path}"
            );
            assert!(
                matches!(write(workspace, path), Err(Error::NotRegular(found)) if found == kind),
                "{path}"
            );
        }
        assert!(matches!(read(workspace, "a"), Err(Error::IsDirectory)));
        assert!(matches!(write(workspace, "a"), Err(Error::IsDirectory)));
        assert!(matches!(read(workspace, "."), Err(Error::IsDirectory)));
        assert!(matches!(write(workspace, "."), Err(Error::IsDirectory)));
    });
}

#[cfg(target_os = "linux")]
/// Whether a process that waits at a pipe's other end still waits after `look`.
fn leaves_waiting(dir: fs::File, look: impl FnOnce()) -> bool {
    use rustix::fs::{Mode, OFlags, openat};
    use std::{thread, time::Duration};
    let (sender, receiver) = std::sync::mpsc::channel();
    let end = dir.try_clone().unwrap();
    let writer = thread::spawn(move || {
        sender.send(()).unwrap();
        openat(end, "fifo", OFlags::WRONLY, Mode::empty()).unwrap();
        sender.send(()).unwrap();
    });
    receiver.recv().unwrap();
    // Time to arrive there, and later to be woken.
    let moment = Duration::from_millis(100);
    assert!(receiver.recv_timeout(moment).is_err(), "nobody was to open the pipe yet");
    look();
    let waiting = receiver.recv_timeout(moment).is_err();
    let _reader = openat(dir, "fifo", OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap();
    writer.join().unwrap();
    waiting
}

#[cfg(target_os = "linux")]
#[test]
fn a_fifo_is_never_opened() {
    both_ways(|dir, workspace| {
        // The longer path does not fit into one system call.
        let depths: &[_] = if can_have_long_paths(dir) { &[0, 1, 25] } else { &[0, 1] };
        for depth in depths.iter().copied() {
            let mut end = fs::File::open(dir.join("ws")).unwrap();
            let name = "d".repeat(200);
            for _ in 0..depth {
                let _ = rustix::fs::mkdirat(&end, &name, 0o755.into());
                let flags = rustix::fs::OFlags::RDONLY;
                end = rustix::fs::openat(&end, &name, flags, 0.into()).unwrap().into();
            }
            rustix::fs::mkfifoat(&end, "fifo", 0o644.into()).unwrap();
            let path = format!("{name}/").repeat(depth) + "fifo";
            let look = || {
                let found = read(workspace, path.as_str());
                assert!(matches!(found, Err(Error::NotRegular(Kind::Fifo))), "{depth}: {found:?}");
            };
            assert!(leaves_waiting(end, look), "{depth} {:?}", workspace.open_method());
        }
    });
}

#[test]
fn what_is_not_there_or_no_path_is_said() {
    both_ways(|_, workspace| {
        assert!(matches!(read(workspace, "none"), Err(Error::NotFound)));
        assert!(matches!(read(workspace, "none/x"), Err(Error::NotFound)));
        assert!(matches!(read(workspace, "none/../top.txt"), Err(Error::NotFound)));
        assert!(matches!(write(workspace, "none/../new.txt"), Err(Error::NotFound)));
        assert!(matches!(read(workspace, "top.txt/x"), Err(Error::NotADirectory)));
        assert!(matches!(write(workspace, "top.txt/x"), Err(Error::NotADirectory)));
        assert!(matches!(read(workspace, "top.txt/"), Err(Error::NotADirectory)));
        assert!(matches!(write(workspace, "top.txt/"), Err(Error::NotADirectory)));
        assert!(matches!(write(workspace, "new/"), Err(Error::BadPath(_))));
        assert!(matches!(read(workspace, ""), Err(Error::BadPath(_))));
        assert!(matches!(read(workspace, "a\0b"), Err(Error::BadPath(_))));
        assert!(matches!(read(workspace, "n".repeat(300)), Err(Error::BadPath(_))));
        assert!(matches!(write(workspace, "n".repeat(300)), Err(Error::BadPath(_))));
        assert!(matches!(write(workspace, "d/".repeat(200) + "f"), Err(Error::BadPath(_))));
        for path in ["./".repeat(40_000), "/".repeat(70_000), "x/../".repeat(20_000) + "top.txt"] {
            let found = workspace.lstat(&path.into()).map(drop);
            assert!(matches!(found, Err(Error::BadPath("is too long"))), "{found:?}");
        }
        assert!(read(workspace, "./".repeat(30_000) + "top.txt").is_ok());
    });
}

#[test]
fn paths_longer_than_one_call_takes_are_walked() {
    both_ways(|dir, workspace| {
        let path = format!("{}f.txt", format!("{}/", "d".repeat(200)).repeat(90));
        let written = write(workspace, path.as_str());
        if !can_have_long_paths(dir) {
            assert!(matches!(written, Err(Error::BadPath(_))), "{written:?}");
            assert!(!dir.join("ws").join("d".repeat(200)).exists());
            return;
        }
        written.unwrap();
        assert_eq!(read(workspace, path.as_str()).unwrap(), "new");
    });
}

#[test]
fn several_roots_are_one_workspace() {
    for method in [OpenMethod::Kernel, OpenMethod::NameByName] {
        let dir = tree();
        let roots = [dir.path().join("ws"), dir.path().join("second")];
        let workspace = Workspace::open(&roots, Some(method)).unwrap();
        symlink("../second/x/s.txt", dir.path().join("ws/across")).unwrap();
        symlink(dir.path().join("second/x"), dir.path().join("ws/across-dir")).unwrap();
        let absolute = dir.path().join("second/x/s.txt").display().to_string();
        for path in ["across", "across-dir/s.txt", "../second/x/s.txt", &absolute] {
            let (place, _) = workspace.file(&path.into()).unwrap();
            assert_eq!((place.root, place.path.to_string()), (1, "x/s.txt".into()), "{path}");
        }
        assert!(matches!(read(&workspace, "../outside/secret.txt"), Err(Error::Outside)));
        assert!(matches!(read(&workspace, "x/s.txt"), Err(Error::NotFound)));
    }
}

#[test]
fn a_root_reached_by_a_link_is_known_by_both_names() {
    for method in [OpenMethod::Kernel, OpenMethod::NameByName] {
        let dir = tree();
        symlink("ws", dir.path().join("alias")).unwrap();
        let workspace = Workspace::open([dir.path().join("alias")], Some(method)).unwrap();
        for path in ["alias/top.txt", "ws/top.txt"] {
            let path = dir.path().join(path).display().to_string();
            assert_eq!(read(&workspace, path.as_str()).unwrap(), "inside ws/top.txt", "{path}");
        }
    }
}

#[test]
fn a_root_can_be_above_the_current_directory() {
    let workspace = Workspace::open(["../confine/src"], None).unwrap();
    assert!(read(&workspace, "lib.rs").is_ok());
    let root = workspace.roots().next().unwrap().join("lib.rs").display().to_string();
    assert!(!root.contains(".."), "{root}");
    assert!(read(&workspace, root).is_ok());
}

#[test]
fn temp_files_are_not_there_and_others_with_such_names_are() {
    use std::os::unix::fs::MetadataExt as _;
    both_ways(|dir, workspace| {
        let ws = dir.join("ws");
        let users = ".pinfold-0123456789abcdef.tmp";
        fs::create_dir(ws.join(users)).unwrap();
        fs::write(ws.join(users).join("f"), "the user's").unwrap();
        assert_eq!(read(workspace, format!("{users}/f")).unwrap(), "the user's");
        write(workspace, format!("{users}/f")).unwrap();
        write(workspace, format!("{users}/new")).unwrap();
        let listed = workspace.list(&".".into(), 99).unwrap().1;
        assert!(listed.iter().any(|entry| entry.name.to_string() == users));
        let new = workspace.target(&".pinfold-00000000000000aa.tmp".into(), &Default::default());
        assert!(matches!(new, Err(Error::BadPath(_))), "{new:?}");

        fs::write(ws.join("half"), "half of something").unwrap();
        let inode = fs::metadata(ws.join("half")).unwrap().ino();
        let name = &*format!(".pinfold-0123456789abcdef-n{inode:x}.tmp");
        fs::rename(ws.join("half"), ws.join(name)).unwrap();
        assert!(matches!(read(workspace, name), Err(Error::NotFound)));
        assert!(matches!(write(workspace, name), Err(Error::NotFound)));
        assert!(matches!(workspace.lstat(&name.into()), Err(Error::NotFound)));
        let removal = workspace.removal(&name.into(), &Default::default());
        assert!(matches!(removal, Err(Error::NotFound)));
        let listed = workspace.list(&".".into(), 99).unwrap().1;
        assert!(listed.iter().all(|entry| entry.name.to_string() != name));
    });
}

#[test]
fn near_misses_can_be_looked_for() {
    both_ways(|_, workspace| {
        let (place, missing) = workspace.deepest_existing(&"a/c/deep.txt".into()).unwrap();
        let missing: Vec<_> = missing.iter().map(ToString::to_string).collect();
        assert_eq!(
            (place.path.to_string(), missing),
            ("a".into(), vec!["c".into(), "deep.txt".into()])
        );
        let names = |most| {
            let mut names: Vec<_> = workspace.list(&".".into(), most).unwrap().1;
            names.sort_by(|one, other| one.name.cmp(&other.name));
            names.iter().map(|entry| entry.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(9), ["a", "other", "top.txt"]);
        assert_eq!(names(2).len(), 2);
        assert_eq!(workspace.entries(&place, 9).unwrap().len(), 1);
    });
}

#[test]
fn nothing_new_gets_the_name_of_a_temp_file() {
    for method in [OpenMethod::Kernel, OpenMethod::NameByName] {
        let dir = TempDir::new().unwrap();
        let workspace = Workspace::open([dir.path()], Some(method)).unwrap();
        let temp = ".pinfold-0123456789abcdef-n1.aside..git";
        for path in
            [temp, &format!("{temp}/config"), &format!("a/{temp}/b"), &format!("a/b/{temp}")]
        {
            let target = workspace.target(&path.into(), &Default::default());
            assert!(matches!(target, Err(Error::BadPath(_))), "{path}: {target:?}");
        }
    }
}
