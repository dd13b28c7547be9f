//! The user's own files outside the workspace: configuration, secrets, logs, the terminal.
//!
//! No function in this file may get a path from an agent.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown,
};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::lines::{self, LogLock};
use crate::{Deadline, random_number};

/// Reads a text file that the user named, such as the configuration.
pub fn read_user_file(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// Reads a secret. Fails if other users may read the file.
pub fn read_secret(path: &Path) -> io::Result<String> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let problem = format!("others may read it (mode {mode:03o}); `chmod 600` it");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    fs::read_to_string(path)
}

/// Creates a directory that only its owner may enter, and missing directories above it.
pub fn make_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates a file that only its owner may read, and missing directories above it. If the file exists, it is replaced
/// if `replace` is set; otherwise this is an error. The replacement is atomic.
pub fn write_secret(path: &Path, text: &str, replace: bool) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        make_private_directory(parent)?;
    }
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{:016x}", random_number().map_err(io::Error::other)?));
    let temporary = PathBuf::from(temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    if replace && let Ok(old) = fs::symlink_metadata(path) {
        // Root may replace a file of the user that a server runs as.
        _ = fchown(&file, Some(old.uid()), Some(old.gid()));
    }
    // Flushed, so that a loss of power leaves the old secret or the new one.
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).and_then(|()| {
        if replace { fs::rename(&temporary, path) } else { fs::hard_link(&temporary, path) }
    });
    if !replace || written.is_err() {
        _ = fs::remove_file(&temporary);
    }
    written
}

/// Waits until no other process holds the lock for changing a secret. The lock lasts until the file is dropped. A missing
/// directory is created.
pub fn lock_secret(path: &Path) -> io::Result<fs::File> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    make_private_directory(parent)?;
    // The directory is locked, since the file itself is replaced.
    let directory = fs::File::open(parent)?;
    match directory.lock() {
        // NFS cannot lock directories.
        Err(error) if error.raw_os_error() != Some(rustix::io::Errno::BADF.raw_os_error()) => {
            Err(error)
        }
        _ => Ok(directory),
    }
}

/// Creates an empty file in a directory. Returns `false` if it already exists. Removes files in the directory that
/// are older than `max_age`.
pub fn create_marker_file(directory: &Path, name: &str, max_age: Duration) -> io::Result<bool> {
    make_private_directory(directory)?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let age = entry.metadata().and_then(|meta| meta.modified()).map(|time| time.elapsed());
        if age.is_ok_and(|age| age.is_ok_and(|age| age > max_age)) {
            // Another process may have removed it.
            _ = fs::remove_file(entry.path());
        }
    }
    let mut mark = OpenOptions::new();
    match mark.write(true).create_new(true).mode(0o600).open(directory.join(name)) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// The device and inode that a path currently leads to. They identify a directory.
pub fn device_and_inode(path: &Path) -> Option<(u64, u64)> {
    let meta = fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

/// The user id of a directory's owner. Returns `None` if there is no directory.
pub fn owner(directory: &Path) -> Option<u32> {
    let meta = fs::symlink_metadata(directory).ok()?;
    meta.is_dir().then(|| meta.uid())
}

/// The machine's memory in bytes, if it is known.
pub fn memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Lowers the priority of the calling thread, for work that nobody waits for.
pub fn lower_priority() {
    /// Lower than normal, but higher than that of programs that should only run on an idle machine.
    #[cfg(target_os = "linux")]
    const NICE: i32 = 10;
    // On Linux this applies to the calling thread only.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, NICE);
}

/// Fails if this process may not create and remove entries in a directory.
pub fn may_write(directory: &Path) -> Result<(), crate::Error> {
    Ok(rustix::fs::access(directory, rustix::fs::Access::WRITE_OK)?)
}

/// The type of a directory's file system, such as `ext4`, as the kernel names it. Returns `None` if it is unknown.
pub fn file_system_type(directory: &Path) -> Option<String> {
    let directory = fs::canonicalize(directory).ok()?;
    file_system_in(&fs::read_to_string("/proc/self/mountinfo").ok()?, &directory)
}

/// Finds a directory in the text of `mountinfo`. The deepest mount counts, and the later one of two at the same path.
fn file_system_in(mounts: &str, directory: &Path) -> Option<String> {
    let mount = |line: &str| {
        let (place, source) = line.split_once(" - ")?;
        // The kernel writes blanks and other special characters as octal numbers.
        let place = place.split(' ').nth(4)?.replace("\\040", " ").replace("\\134", "\\");
        let inside = directory.starts_with(&place);
        inside.then(|| (place.len(), source.split(' ').next().unwrap_or_default().to_owned()))
    };
    mounts.lines().filter_map(mount).max_by_key(|(depth, _)| *depth).map(|(_, name)| name)
}

/// Every symlink on a path, and the path that it resolves to, even if that does not exist. A change to any of them
/// changes where the path leads.
pub fn symlinks_and_target(path: &Path) -> Vec<PathBuf> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut ways = Vec::new();
    let mut todo = vec![absolute];
    while let Some(path) = todo.pop() {
        let mut real = PathBuf::new();
        let mut onward = None;
        let mut parts = path.components();
        for part in parts.by_ref() {
            let here = real.join(part);
            match fs::read_link(&here) {
                Ok(target) if ways.len() < 40 => {
                    ways.push(here);
                    onward = Some(real.join(target).join(parts.as_path()));
                    break;
                }
                _ => match part {
                    std::path::Component::ParentDir => _ = real.pop(),
                    _ => real = here,
                },
            }
        }
        match onward {
            Some(path) => todo.push(path),
            None => ways.push(real),
        }
    }
    ways
}

/// How long `append` waits for other processes. Appending a line takes almost no time, unless its process was
/// stopped.
const LOCK_WAIT: Duration = Duration::from_millis(100);

/// A log that only its owner may read.
#[derive(Debug)]
pub struct LogFile {
    file: fs::File,
    /// Whether its end can be read. The end of a pipe or device cannot.
    can_look: bool,
    /// Whether this process has written its last line only in part.
    partial: Mutex<bool>,
}

impl LogFile {
    /// Opens or creates the file, and removes other users' access to it.
    ///
    /// A symlink or a second hard link is refused, because whoever made it could choose which file is written to and gets
    /// another mode.
    /// `/dev/stderr` and similar symlinks of the system are accepted.
    pub fn open(path: &Path) -> io::Result<Self> {
        let of_system = is_open_file(path);
        // `NONBLOCK`: a pipe may have no reader.
        let mut flags = rustix::fs::OFlags::NONBLOCK;
        flags.set(rustix::fs::OFlags::NOFOLLOW, !of_system);
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600).custom_flags(flags.bits().cast_signed());
        let file = options.open(path).map_err(|error| {
            if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
                let problem = "it is a symlink, which is not followed; give the path of the file";
                return io::Error::new(io::ErrorKind::InvalidInput, problem);
            }
            error
        })?;
        let metadata = file.metadata()?;
        let (partial, can_look) = (Mutex::new(false), false);
        if !metadata.is_file() {
            // Opened for writing only. If this process could read the pipe, the pipe would always have a reader.
            return Ok(Self { file, can_look, partial });
        }
        if !of_system && metadata.nlink() > 1 {
            let problem = "it has other hard links; give the path of a file of its own";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        // Standard error may be the user's own file, and Pinfold does not change its mode.
        if !of_system && metadata.permissions().mode() & 0o077 != 0 {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
        let same = |other: &fs::File| {
            other
                .metadata()
                .is_ok_and(|it| (it.dev(), it.ino()) == (metadata.dev(), metadata.ino()))
        };
        match options.create(false).read(true).open(path).ok().filter(same) {
            Some(file) => Ok(Self { file, can_look: true, partial }),
            None => Ok(Self { file, can_look, partial }),
        }
    }

    /// Appends a line, which ends with a newline. Completes a partial line first.
    pub fn append(&self, line: &str) -> io::Result<()> {
        let mut partial = self.partial.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.can_look {
            let (now, done) = lines::write(&self.file, line, *partial);
            *partial = now;
            return Ok(done?);
        }
        let begin = Instant::now();
        let deadline = Deadline::lasting_while(move || begin.elapsed() < LOCK_WAIT);
        // A line in the wrong order is better than a missing one.
        let turn =
            LogLock::wait(&self.file, &deadline).unwrap_or_else(|_| LogLock::take(&self.file));
        turn.add(line)?;
        Ok(())
    }
}

/// Whether a path names a file that a process has open, as `/dev/stderr` and `/proc/1/fd/1` do. Anybody can make symlinks
/// elsewhere below `/dev`.
fn is_open_file(path: &Path) -> bool {
    let is_number = |name: &str| !name.is_empty() && name.bytes().all(|it| it.is_ascii_digit());
    let names: Vec<_> = path.to_str().unwrap_or_default().split('/').collect();
    match names[..] {
        ["", "dev", "stdout" | "stderr"] => true,
        ["", "dev", "fd", file] | ["", "proc", "self", "fd", file] => is_number(file),
        ["", "proc", process, "fd", file] => is_number(process) && is_number(file),
        _ => false,
    }
}

/// Opens the terminal that controls this process, if it has one, for reading and writing.
pub fn terminal() -> io::Result<fs::File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}

/// Removes a file that [`write_secret`] made.
pub fn remove_secret(path: &Path) -> io::Result<()> {
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_made_once_until_it_is_too_old() {
        let dir = tempfile::tempdir().unwrap();
        let marks = dir.path().join("marks");
        let mark = |name, age| create_marker_file(&marks, name, Duration::from_secs(age)).unwrap();
        assert_eq!((mark("a", 60), mark("b", 60), mark("a", 60)), (true, true, false));
        let old = fs::File::options().write(true).open(marks.join("a")).unwrap();
        old.set_modified(std::time::SystemTime::now() - Duration::from_secs(100)).unwrap();
        assert_eq!((mark("b", 60), marks.join("a").exists()), (false, false));
    }

    #[test]
    fn the_deepest_mount_has_the_directory() {
        let mounts = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
            23 22 0:5 / /proc rw - proc proc rw\n\
            24 22 0:7 /x /my\\040files rw master:2 - nfs4 server:/x rw\n\
            25 24 0:8 / /my\\040files rw - fuse.bindfs /y rw\n";
        for (path, name) in [
            ("/home/a", "ext4"),
            ("/proc", "proc"),
            ("/process", "ext4"),
            ("/my files/b", "fuse.bindfs"),
        ] {
            assert_eq!(file_system_in(mounts, Path::new(path)).as_deref(), Some(name), "{path}");
        }
    }

    #[test]
    fn a_secret_is_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/token");
        write_secret(&path, "one", false).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(read_secret(&path).unwrap(), "one");
        let again = write_secret(&path, "two", false).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        write_secret(&path, "two", true).unwrap();
        assert_eq!(read_secret(&path).unwrap(), "two");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(read_secret(&path).unwrap_err().to_string().contains("chmod 600"));
        remove_secret(&path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn every_link_on_the_way_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(root.join("real/deep")).unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        std::os::unix::fs::symlink("../link/deep/file", root.join("real/other")).unwrap();
        // There are no others, since policy denies each of these paths and everything below it.
        let ways = ["link", "real/other", "link", "real/deep/file"].map(|way| root.join(way));
        assert_eq!(symlinks_and_target(&root.join("link/other")), ways);
        assert_eq!(symlinks_and_target(&root.join("none/at/all")), [root.join("none/at/all")]);
    }

    #[test]
    fn a_log_that_is_a_link_is_refused_unless_the_system_made_it() {
        let dir = tempfile::tempdir().unwrap();
        let (link, target) = (dir.path().join("link"), dir.path().join("target"));
        fs::write(&target, "mine").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        for before in ["", "/dev/..", "/proc/self/root", "/dev/fd/../../.."] {
            let path = PathBuf::from(format!("{before}{}", link.display()));
            assert!(LogFile::open(&path).is_err(), "{}", path.display());
        }
        let hard_link = dir.path().join("hard link");
        fs::hard_link(&target, &hard_link).unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o644)).unwrap();
        let error = LogFile::open(&hard_link).err().unwrap().to_string();
        assert!(error.contains("hard links"), "{error}");
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
        for path in ["/dev/stderr", "/dev/stdout", "/dev/fd/2", "/proc/self/fd/2", "/proc/1/fd/1"] {
            assert!(is_open_file(path.as_ref()), "{path}");
        }
        for path in ["/dev/shm/x", "/dev/fd/x", "/dev/fd/", "/dev/stderr/", "/proc/self/cwd/x"] {
            assert!(!is_open_file(path.as_ref()), "{path}");
        }
        LogFile::open("/dev/null".as_ref()).unwrap();
    }

    #[test]
    fn a_link_in_a_secrets_place_is_not_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("token"), dir.path().join("other"));
        fs::write(&other, "mine").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(write_secret(&path, "x", false).is_err());
        write_secret(&path, "x", true).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
    }
}
