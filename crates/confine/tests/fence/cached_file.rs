//! Which files can be read without waiting for a disk, a network or another process.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use pinfold_confine::{OpenMethod, Workspace};
use pinfold_testkit::limited;
use tempfile::TempDir;

use crate::{both_ways, make_fifo, tree};

/// Whether the file system can report that data is not in the page cache, without reading it.
fn can_tell_what_is_cached(file: &Path) -> bool {
    use rustix::io::{IoSliceMut, ReadWriteFlags, preadv2};
    let mut buffer = [0];
    let file = fs::File::open(file).unwrap();
    preadv2(&file, &mut [IoSliceMut::new(&mut buffer)], 0, ReadWriteFlags::NOWAIT).is_ok()
}

/// Whether it is on one of the file systems that tests are mostly run on.
fn is_on_a_usual_disk(file: &Path) -> bool {
    let kind = rustix::fs::statfs(file).unwrap().f_type;
    [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0xf2f5_2010].contains(&kind)
}

/// Looks a new file up once: in a directory that folds case, the kernel does not cache a name when it is created.
fn look_up(file: &Path) {
    fs::metadata(file).unwrap();
}

/// Whether the kernel finds a path that was just used in its caches alone. On some file systems it does not if a symlink
/// is on the path.
fn is_found_in_caches(path: &Path) -> bool {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    // The access time of a symlink that has just been made is set once the file system's clock has gone on.
    let found = (0..10).any(|_| {
        fs::metadata(path).unwrap();
        let opened = openat2(CWD, path, OFlags::PATH, Mode::empty(), ResolveFlags::CACHED);
        opened.is_ok() || {
            std::thread::sleep(std::time::Duration::from_millis(10));
            false
        }
    });
    if !found {
        limited("small reads do not take the fast path, which uses only the kernel's caches");
    }
    found
}

/// Whether a file with content that was just written counts as cached.
fn is_usually_cached(file: &Path) -> bool {
    is_on_a_usual_disk(file) && can_tell_what_is_cached(file) && is_found_in_caches(file)
}

#[test]
fn only_a_small_regular_file_without_links_is_cached() {
    both_ways(|dir, workspace| {
        let cached_file = |path: &str, max| workspace.cached_file(&path.into(), max);
        symlink("top.txt", dir.join("ws/link")).unwrap();
        symlink("a", dir.join("ws/dir-link")).unwrap();
        make_fifo(&dir.join("ws/fifo"));
        let refused = ["link", "dir-link/b/deep.txt", "../outside/secret.txt", "a", "fifo", "none"];
        for path in refused.into_iter().chain(["", "top.txt/", "top.txt/x", "a/../link"]) {
            assert!(cached_file(path, 1000).is_none(), "{path}");
        }
        let content = "inside ws/a/b/deep.txt";
        look_up(&dir.join("ws/a/b/deep.txt"));
        assert!(cached_file("a/b/deep.txt", content.len() - 1).is_none());
        let found = cached_file("a/b/deep.txt", content.len());
        let deep = dir.join("ws/a/b/deep.txt");
        if workspace.open_method() == OpenMethod::NameByName {
            assert!(found.is_none());
        } else if is_usually_cached(&deep) {
            let (place, mut file) = found.unwrap();
            assert_eq!(place.path.to_string(), "a/b/deep.txt");
            // The checked file is the one that is read, even if another one has the name by now.
            fs::remove_file(&deep).unwrap();
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, content);
            file.seek_to(7);
            text.clear();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, &content[7..]);
        }
    });
}

#[test]
fn a_file_that_another_process_or_server_provides_is_not_cached() {
    use pinfold_confine::fault::{Fault, When, inject};
    let dir = tree();
    fs::write(dir.path().join("empty"), "").unwrap();
    let is_cached = |workspace: &Workspace| workspace.cached_file(&"empty".into(), 9).is_some();
    let open = || Workspace::open([dir.path()], Some(OpenMethod::Kernel)).unwrap();
    let empty = dir.path().join("empty");
    look_up(&empty);
    let usually = is_cached(&open());
    assert!(usually || !is_on_a_usual_disk(&empty) || !is_found_in_caches(&empty));
    // Neither is a file for which the system does not report it.
    for call in ["fstatfs", "statx"] {
        let unknown = (When::Every(call), Fault::Errno(rustix::io::Errno::NOSYS.raw_os_error()));
        assert!(!is_cached(&inject(&[unknown], open).result), "{call}");
        let workspace = open();
        let later = inject(&[unknown], || is_cached(&workspace)).result;
        assert_eq!(later, call == "fstatfs" && usually, "{call}");
    }
}

#[test]
fn a_file_on_a_mount_inside_the_root_is_not_cached() {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(dir) = TempDir::new_in("/dev/shm") else { return };
    let path = dir.path().join("empty");
    fs::write(&path, "").unwrap();
    if fs::metadata(&path).unwrap().dev() == fs::metadata("/").unwrap().dev() {
        eprintln!("skipped: nothing is mounted at /dev/shm");
        return;
    }
    for (root, found) in [("/dev/shm", is_on_a_usual_disk(&path)), ("/", false)] {
        let workspace = Workspace::open([root], Some(OpenMethod::Kernel)).unwrap();
        let cached_file = workspace.cached_file(&path.display().to_string().into(), 9);
        assert_eq!(cached_file.is_some(), found, "{root}");
    }
}

#[test]
fn a_cached_read_makes_no_call_that_waits_for_a_root() {
    use pinfold_confine::fault::{Fault, When, inject};
    let dir = tree();
    let roots = [dir.path().join("second"), dir.path().join("ws")];
    let file = dir.path().join("ws/top.txt").display().to_string();
    let open = || Workspace::open(&roots, Some(OpenMethod::Kernel)).unwrap();
    let fails =
        |call, errno: rustix::io::Errno| (When::Every(call), Fault::Errno(errno.raw_os_error()));
    look_up(Path::new(&file));
    let workspace = open();
    let narrowed = workspace.narrowed([dir.path().join("ws")]).unwrap();
    for workspace in [&workspace, &narrowed] {
        let report = inject(&[], || workspace.cached_file(&file.as_str().into(), 99).is_some());
        assert!(report.result || !is_usually_cached(Path::new(&file)));
        // `stat` and `open` of a whole path wait for every mount on the path.
        for call in ["stat", "open", "openat", "fstatat"] {
            assert!(!report.calls.contains(&call), "{call}: {:?}", report.calls);
        }
    }
    // The root's path is not in the caches, or crosses a mount whose server would have to be asked.
    let report = inject(&[fails("openat2", rustix::io::Errno::AGAIN)], || {
        workspace.cached_file(&file.as_str().into(), 99).is_some()
    });
    let asked = if is_on_a_usual_disk(Path::new(&file)) { vec!["openat2"] } else { vec![] };
    assert_eq!((report.result, report.calls), (false, asked));
    // For a root that is not known to be local, or a path in no root, no call is made.
    let remote = inject(&[fails("fstatfs", rustix::io::Errno::NOSYS)], open).result;
    let outside = dir.path().join("outside/secret.txt").display().to_string();
    for (workspace, path) in [(&remote, &file), (&workspace, &outside)] {
        let report = inject(&[], || workspace.cached_file(&path.as_str().into(), 99).is_some());
        assert_eq!((report.result, report.calls), (false, vec![]), "{path}");
    }
}

#[test]
fn a_file_of_a_root_that_was_replaced_is_not_cached() {
    let dir = tree();
    let (root, inner) = (dir.path().join("ws"), dir.path().join("ws/a"));
    let workspace = Workspace::open([&root], Some(OpenMethod::Kernel)).unwrap();
    let narrowed = workspace.narrowed([&inner]).unwrap();
    let file = inner.join("b/deep.txt").display().to_string();
    let is_cached =
        |workspace: &Workspace| workspace.cached_file(&file.as_str().into(), 99).is_some();
    let usually = is_usually_cached(Path::new(&file));
    assert_eq!([is_cached(&workspace), is_cached(&narrowed)], [usually; 2]);
    for (replaced, whole) in [(&inner, usually), (&root, false)] {
        fs::rename(replaced, dir.path().join("old")).unwrap();
        fs::create_dir_all(inner.join("b")).unwrap();
        fs::write(&file, "new").unwrap();
        look_up(Path::new(&file));
        assert_eq!([is_cached(&workspace), is_cached(&narrowed)], [whole, false], "{replaced:?}");
        fs::remove_dir_all(dir.path().join("old")).unwrap();
    }
    // Once a call has opened the new one, it is.
    for workspace in [&workspace, &narrowed] {
        workspace.file(&file.as_str().into()).unwrap();
        assert_eq!(is_cached(workspace), usually);
    }
}

#[test]
fn a_file_of_a_root_whose_real_path_changed_is_not_cached() {
    let dir = tree();
    let at = fs::canonicalize(dir.path()).unwrap();
    let (root, moved) = (at.join("ws"), at.join("moved"));
    let workspace = Workspace::open([&root], Some(OpenMethod::Kernel)).unwrap();
    let is_cached = || workspace.cached_file(&"top.txt".into(), 99).is_some();
    let usually = is_usually_cached(&root.join("top.txt"));
    assert_eq!(is_cached(), usually);
    // The path leads to the same directory, which now has another real path.
    fs::rename(&root, &moved).unwrap();
    symlink("moved", &root).unwrap();
    assert!(!is_cached());
    let (place, _) = workspace.file(&"top.txt".into()).unwrap();
    assert_eq!(workspace.real_path(&place), moved.join("top.txt").as_os_str().as_encoded_bytes());
    let usually = usually && is_found_in_caches(&root.join("top.txt"));
    assert_eq!(is_cached(), usually);
}
