//! What the file system of a test's directory cannot do.
//!
//! `cargo xtask filesystems` runs the tests on many file systems. A test that finds something missing checks what
//! Pinfold promises without it, or leaves that part out, and notes it. The command lists these notes.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use rustix::fs::{CWD, Mode, statfs};
use rustix::fs::{OFlags, openat};

use crate::extended::{exchange, rename_new};
use crate::skipped;

/// Notes that the file system lacks something that this test is about.
pub fn limited(what: &str) {
    skipped(&format!("LIMITED: {what}"));
}

/// Whether two files can be exchanged.
pub fn can_exchange(dir: &Path) -> bool {
    let can = can_rename(dir, &["one", "other"], exchange);
    if !can {
        limited("two files cannot be exchanged in one step (`RENAME_EXCHANGE`)");
    }
    can
}

/// Whether a rename can refuse to replace a file.
pub fn can_rename_new(dir: &Path) -> bool {
    let can = can_rename(dir, &["one"], rename_new);
    if !can {
        limited("a rename cannot refuse to replace a file (`RENAME_NOREPLACE`)");
    }
    can
}

/// Whether a file can be created without a name.
pub fn can_create_unnamed(dir: &Path) -> bool {
    let can = can_flush_unnamed(dir);
    if !can {
        limited(
            "a file cannot be created without a name (`O_TMPFILE`), or is not known to be flushed then",
        );
    }
    can
}

#[cfg(target_os = "linux")]
fn can_flush_unnamed(dir: &Path) -> bool {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let can = openat(CWD, dir, flags, Mode::RUSR | Mode::WUSR).is_ok();
    // Elsewhere a flush of such a file may not be one.
    let [ext4, xfs, tmpfs] = [0xef53, 0x5846_5342, 0x0102_1994];
    can && statfs(dir).is_ok_and(|it| [ext4, xfs, tmpfs].contains(&it.f_type))
}

#[cfg(not(target_os = "linux"))]
fn can_flush_unnamed(_dir: &Path) -> bool {
    false
}

fn can_rename(
    dir: &Path,
    files: &[&str],
    rename: fn(&Path, &Path) -> rustix::io::Result<()>,
) -> bool {
    let probe = tempfile::tempdir_in(dir).unwrap();
    for name in files {
        fs::write(probe.path().join(name), "").unwrap();
    }
    rename(&probe.path().join("one"), &probe.path().join("other")).is_ok()
}

/// Whether a path can be longer than the 4,096 bytes that a system call takes, as a chain of directories.
pub fn can_have_long_paths(dir: &Path) -> bool {
    let probe = tempfile::tempdir_in(dir).unwrap();
    let name = "d".repeat(250);
    let mut at = fs::File::open(probe.path()).unwrap();
    for _ in 0..17 {
        let flags = OFlags::RDONLY;
        let made = rustix::fs::mkdirat(&at, &name, 0o755.into())
            .and_then(|()| openat(&at, &name, flags, 0.into()));
        match made {
            Ok(next) => at = next.into(),
            Err(_) => {
                limited("a path can have at most 4,096 bytes");
                return false;
            }
        }
    }
    true
}

/// Whether inotify reports all changes. It does not if another process or machine provides the files.
pub fn is_watched(dir: &Path) -> bool {
    let watched = !is_provided(dir);
    if !watched {
        limited("changes are not watched, so each search compares the tree with the disk");
    }
    watched
}

#[cfg(target_os = "linux")]
fn is_provided(dir: &Path) -> bool {
    let [fuse, nfs] = [0x6573_5546, 0x6969];
    [fuse, nfs].contains(&statfs(dir).unwrap().f_type)
}

#[cfg(not(target_os = "linux"))]
fn is_provided(_dir: &Path) -> bool {
    false
}

/// The sorted names in a directory, without those that FUSE and NFS give to files that are deleted while they are
/// open.
pub fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    let all = names.len();
    names.retain(|name| !name.starts_with(".fuse_hidden") && !name.starts_with(".nfs"));
    if names.len() < all {
        limited("a file that is deleted while it is open has another name until it is closed");
    }
    names.sort_unstable();
    names
}

/// Waits until the kernel itself sees a change: FUSE and NFS cache metadata of each name for some time.
pub fn until_seen(is_seen: impl Fn() -> bool) {
    if is_seen() {
        return;
    }
    limited(
        "the kernel caches metadata of each name, so a change by another hard link is seen later",
    );
    let limit = Instant::now() + Duration::from_secs(120);
    while !is_seen() && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(100));
    }
}
