//! What the fence lets through and what it does not, the same in both ways of opening.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread;
use std::time::Duration;

use pinfold_confine::{Error, Kind, RawPath, Way, Workspace};
use tempfile::TempDir;

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

fn both_ways(test: impl Fn(&Path, &Workspace)) {
    for way in [Way::Kernel, Way::Walk] {
        let dir = tree();
        let workspace = Workspace::open([dir.path().join("ws")], Some(way)).unwrap();
        test(dir.path(), &workspace);
    }
}

fn read(workspace: &Workspace, path: impl Into<RawPath>) -> Result<String, Error> {
    let (_, mut file) = workspace.file(&path.into())?;
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    Ok(text)
}

fn write(workspace: &Workspace, path: impl Into<RawPath>) -> Result<(), Error> {
    workspace
        .target(&path.into(), &Default::default())?
        .replace(b"new", Default::default())
        .map(drop)
}

#[test]
fn the_kernel_walks_where_it_can() {
    let dir = tree();
    let workspace = Workspace::open([dir.path()], None).unwrap();
    assert_eq!(workspace.way(), Way::Kernel, "this kernel has no openat2, or a filter forbids it");
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
            assert!(matches!(workspace.look(&path.into()), Err(Error::Outside)), "{path}");
            assert!(matches!(workspace.list(&path.into(), 9), Err(Error::Outside)), "{path}");
        }
        assert_eq!(fs::read_to_string(dir.join("outside/secret.txt")).unwrap(), "secret");
    });
}

#[test]
fn links_inside_are_followed_and_links_out_are_refused() {
    both_ways(|dir, workspace| {
        let ws = dir.join("ws");
        symlink("a/b/deep.txt", ws.join("relative")).unwrap();
        symlink(ws.join("a/b/deep.txt"), ws.join("absolute")).unwrap();
        symlink("../a", ws.join("other/dir")).unwrap();
        symlink(&ws, ws.join("a/all")).unwrap();
        symlink("relative", ws.join("twice")).unwrap();
        for path in ["relative", "absolute", "other/dir/b/deep.txt", "a/all/relative", "twice"] {
            assert_eq!(read(workspace, path).unwrap(), "inside ws/a/b/deep.txt", "{path}");
            let place = workspace.file(&path.into()).unwrap().0;
            assert_eq!(place.path.to_string(), "a/b/deep.txt", "{path}");
        }

        symlink("../outside/secret.txt", ws.join("out")).unwrap();
        symlink(dir.join("outside/secret.txt"), ws.join("out-absolute")).unwrap();
        symlink("../../outside", ws.join("a/outdir")).unwrap();
        symlink("out", ws.join("out-twice")).unwrap();
        symlink("../outside/none", ws.join("out-dangling")).unwrap();
        symlink("/proc/self/root/etc/passwd", ws.join("magic")).unwrap();
        symlink("..", ws.join("up")).unwrap();
        for path in [
            "out",
            "out-absolute",
            "a/outdir/secret.txt",
            "out-twice",
            "out-dangling",
            "magic",
            "up/outside/secret.txt",
            "a/outdir/../ws/top.txt",
        ] {
            assert!(matches!(read(workspace, path), Err(Error::Outside)), "{path}");
            assert!(matches!(write(workspace, path), Err(Error::Outside)), "{path}");
        }
        assert!(!dir.join("outside/none").exists());
        assert_eq!(fs::read_to_string(dir.join("outside/secret.txt")).unwrap(), "secret");
    });
}

#[test]
fn a_link_is_looked_at_itself() {
    both_ways(|dir, workspace| {
        symlink("../outside/secret.txt", dir.join("ws/out")).unwrap();
        let seen = workspace.look(&"out".into()).unwrap();
        assert_eq!(seen.meta.kind, Kind::Symlink);
        assert_eq!(seen.link_target.as_deref(), Some(&b"../outside/secret.txt"[..]));
        symlink("a", dir.join("ws/dir")).unwrap();
        let seen = workspace.look(&"dir/b/deep.txt".into()).unwrap();
        assert_eq!(
            (seen.meta.kind, seen.place.path.to_string()),
            (Kind::File, "a/b/deep.txt".into())
        );
        assert_eq!(workspace.look(&".".into()).unwrap().meta.kind, Kind::Directory);
    });
}

#[test]
fn behind_a_link_that_leads_out_and_in_again_the_last_name_is_still_the_callers() {
    for way in [Way::Kernel, Way::Walk] {
        let dir = tree();
        let roots = ["ws", "second"].map(|root| dir.path().join(root));
        let workspace = Workspace::open(&roots, Some(way)).unwrap();
        symlink("../ws", roots[0].join("loop")).unwrap();
        symlink("../second", roots[0].join("across")).unwrap();
        for (number, link) in ["loop", "across"].into_iter().enumerate() {
            let root = &roots[number];
            fs::write(root.join("y"), "kept").unwrap();
            symlink("y", root.join("l")).unwrap();
            let (path, what) = (format!("{link}/l"), format!("{link} {way:?}"));

            let seen = workspace.look(&path.as_str().into()).unwrap();
            assert_eq!(seen.link_target.as_deref(), Some(&b"y"[..]), "{what}");
            assert_eq!((seen.place.root, seen.place.path.to_string()), (number, "l".into()));

            let removal = workspace.removal(&path.into(), &Default::default()).unwrap();
            removal.remove(Default::default()).map(drop).unwrap();
            assert!(!root.join("l").is_symlink(), "{what}");
            assert_eq!(fs::read_to_string(root.join("y")).unwrap(), "kept", "{what}");

            for new in ["new.txt", "fresh/new.txt"] {
                write(&workspace, format!("{link}/{new}")).unwrap();
                assert_eq!(fs::read_to_string(root.join(new)).unwrap(), "new", "{what}");
            }
            // What a link itself asks for has to be there.
            let none = Path::new("..").join(root.file_name().unwrap()).join("none");
            symlink(none, root.join("dangling")).unwrap();
            let dangling = write(&workspace, format!("{link}/dangling"));
            assert!(matches!(dangling, Err(Error::Dangling)), "{what}: {dangling:?}");
        }
    }
}

#[test]
fn a_link_that_leads_out_of_a_root_that_was_moved_makes_nothing() {
    for way in [Way::Kernel, Way::Walk] {
        let dir = tree();
        let roots = ["ws/a/b", "ws"].map(|root| dir.path().join(root));
        let workspace = Workspace::open(&roots, Some(way)).unwrap();
        symlink("../new.txt", roots[0].join("link")).unwrap();
        fs::rename(roots[1].join("a"), roots[1].join("moved")).unwrap();
        let written = write(&workspace, "link");
        assert!(matches!(written, Err(Error::Dangling)), "{way:?}: {written:?}");
        assert!(!roots[1].join("a").exists(), "{way:?}");
    }
}

#[test]
fn links_that_go_nowhere_or_in_circles_end() {
    both_ways(|dir, workspace| {
        let ws = dir.join("ws");
        symlink("none", ws.join("dangling")).unwrap();
        symlink("circle", ws.join("circle")).unwrap();
        symlink("ping", ws.join("pong")).unwrap();
        symlink("pong", ws.join("ping")).unwrap();
        assert!(matches!(read(workspace, "dangling"), Err(Error::Dangling)));
        assert!(matches!(write(workspace, "dangling"), Err(Error::Dangling)));
        for path in ["circle", "ping", "circle/x"] {
            assert!(matches!(read(workspace, path), Err(Error::TooManyLinks)), "{path}");
            assert!(matches!(write(workspace, path), Err(Error::TooManyLinks)), "{path}");
        }
    });
}

#[test]
fn only_regular_files_are_read() {
    both_ways(|dir, workspace| {
        let fifo = dir.join("ws/fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o644.into()).unwrap();
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

/// Whether somebody who waits at a pipe's other end still does after a look at it.
fn leaves_waiting(dir: fs::File, look: impl FnOnce()) -> bool {
    use rustix::fs::{Mode, OFlags, openat};
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

#[test]
fn whoever_waits_at_a_pipe_is_not_disturbed() {
    both_ways(|dir, workspace| {
        // The longer path does not fit into one system call.
        for depth in [0, 1, 25] {
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
            assert!(leaves_waiting(end, look), "{depth} {:?}", workspace.way());
        }
    });
}

#[test]
fn nothing_behind_a_link_is_looked_at_before_the_link_is_resolved() {
    both_ways(|dir, workspace| {
        symlink("../outside", dir.join("ws/out")).unwrap();
        let report = pinfold_confine::fault::inject(&[], || read(workspace, "out/secret.txt"));
        assert!(matches!(report.result, Err(Error::Outside)));
        let first = if workspace.way() == Way::Kernel { "openat2" } else { "openat" };
        assert_eq!(report.calls.first(), Some(&first), "{:?}", report.calls);
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
            let found = workspace.look(&path.into()).map(drop);
            assert!(matches!(found, Err(Error::BadPath("is too long"))), "{found:?}");
        }
        assert!(read(workspace, "./".repeat(30_000) + "top.txt").is_ok());
    });
}

#[test]
fn paths_longer_than_one_call_takes_are_walked() {
    both_ways(|_, workspace| {
        let path = format!("{}f.txt", format!("{}/", "d".repeat(200)).repeat(90));
        write(workspace, path.as_str()).unwrap();
        assert_eq!(read(workspace, path.as_str()).unwrap(), "new");
    });
}

#[test]
fn several_roots_are_one_workspace() {
    for way in [Way::Kernel, Way::Walk] {
        let dir = tree();
        let roots = [dir.path().join("ws"), dir.path().join("second")];
        let workspace = Workspace::open(&roots, Some(way)).unwrap();
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
    for way in [Way::Kernel, Way::Walk] {
        let dir = tree();
        symlink("ws", dir.path().join("alias")).unwrap();
        let workspace = Workspace::open([dir.path().join("alias")], Some(way)).unwrap();
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
fn drafts_are_not_there_for_whoever_asks() {
    both_ways(|dir, workspace| {
        let name = ".pinfold-0123456789abcdef.tmp";
        fs::write(dir.join("ws").join(name), "half of something").unwrap();
        assert!(matches!(read(workspace, name), Err(Error::NotFound)));
        assert!(matches!(write(workspace, name), Err(Error::NotFound)));
        assert!(matches!(workspace.look(&name.into()), Err(Error::NotFound)));
        let removal = workspace.removal(&name.into(), &Default::default());
        assert!(matches!(removal, Err(Error::NotFound)));
        let listed = workspace.list(&".".into(), 99).unwrap().1;
        assert!(listed.iter().all(|entry| entry.name.to_string() != name));
    });
}

#[test]
fn near_misses_can_be_looked_for() {
    both_ways(|_, workspace| {
        let (place, missing) = workspace.missing(&"a/c/deep.txt".into()).unwrap();
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

/// Whether the file system can say that something is not in memory, rather than fetch it.
fn can_tell_what_is_cached(file: &Path) -> bool {
    use rustix::io::{IoSliceMut, ReadWriteFlags, preadv2};
    let mut buffer = [0];
    let file = fs::File::open(file).unwrap();
    preadv2(&file, &mut [IoSliceMut::new(&mut buffer)], 0, ReadWriteFlags::NOWAIT).is_ok()
}

/// Whether it is on one of the file systems that tests are mostly run on.
fn is_on_a_usual_disk(file: &Path) -> bool {
    let kind = rustix::fs::statfs(file).unwrap().f_type;
    [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630].contains(&kind)
}

#[test]
fn only_a_small_regular_file_without_links_is_at_hand() {
    both_ways(|dir, workspace| {
        let at_hand = |path: &str, most| workspace.at_hand(&path.into(), most);
        symlink("top.txt", dir.join("ws/link")).unwrap();
        symlink("a", dir.join("ws/dir-link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.join("ws/fifo"), 0o644.into()).unwrap();
        let refused = ["link", "dir-link/b/deep.txt", "../outside/secret.txt", "a", "fifo", "none"];
        for path in refused.into_iter().chain(["", "top.txt/", "top.txt/x", "a/../link"]) {
            assert!(at_hand(path, 1000).is_none(), "{path}");
        }
        let content = "inside ws/a/b/deep.txt";
        assert!(at_hand("a/b/deep.txt", content.len() - 1).is_none());
        let found = at_hand("a/b/deep.txt", content.len());
        let deep = dir.join("ws/a/b/deep.txt");
        if workspace.way() == Way::Walk {
            assert!(found.is_none());
        } else if can_tell_what_is_cached(&deep) && is_on_a_usual_disk(&deep) {
            let (place, mut file, bytes) = found.unwrap();
            assert_eq!(place.path.to_string(), "a/b/deep.txt");
            assert_eq!(bytes, content.as_bytes());
            // What was proved is what is used, whatever has the name by now.
            fs::remove_file(&deep).unwrap();
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, content);
        }
    });
}

#[test]
fn what_another_process_or_server_may_stand_behind_is_not_at_hand() {
    use pinfold_confine::fault::{Fault, When, inject};
    let dir = tree();
    fs::write(dir.path().join("empty"), "").unwrap();
    let is_at_hand = |workspace: &Workspace| workspace.at_hand(&"empty".into(), 9).is_some();
    let open = || Workspace::open([dir.path()], Some(Way::Kernel)).unwrap();
    let usually = is_at_hand(&open());
    assert!(usually || !is_on_a_usual_disk(dir.path()));
    // Nor is what the system does not say it of.
    for call in ["fstatfs", "statx"] {
        let unknown = (When::Every(call), Fault::Errno(rustix::io::Errno::NOSYS.raw_os_error()));
        assert!(!is_at_hand(&inject(&[unknown], open).result), "{call}");
        let workspace = open();
        let later = inject(&[unknown], || is_at_hand(&workspace)).result;
        assert_eq!(later, call == "fstatfs" && usually, "{call}");
    }
}

#[test]
fn what_is_mounted_inside_is_not_at_hand() {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(dir) = TempDir::new_in("/dev/shm") else { return };
    let path = dir.path().join("empty");
    fs::write(&path, "").unwrap();
    if fs::metadata(&path).unwrap().dev() == fs::metadata("/").unwrap().dev() {
        eprintln!("skipped: nothing is mounted at /dev/shm");
        return;
    }
    for (root, found) in [("/dev/shm", is_on_a_usual_disk(&path)), ("/", false)] {
        let workspace = Workspace::open([root], Some(Way::Kernel)).unwrap();
        let at_hand = workspace.at_hand(&path.display().to_string().into(), 9);
        assert_eq!(at_hand.is_some(), found, "{root}");
    }
}
