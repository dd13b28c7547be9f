//! Sockets in directories that only their user may enter. Viewers reach running servers by them.
//!
//! A socket gets its name once it accepts connections. So a named socket that refuses them belongs to a process that
//! has ended, and may be removed.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::make_private_directory;

/// The end of a socket's name.
const SUFFIX: &str = ".sock";

/// Creates a directory for sockets if it is missing. Fails if it belongs to another user, and removes other users'
/// access to it.
pub fn make_socket_directory(directory: &Path) -> io::Result<()> {
    make_private_directory(directory)?;
    let metadata = fs::symlink_metadata(directory)?;
    if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
        let problem = "it is not a directory of this user";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    if metadata.mode() & 0o077 != 0 {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Listens at a new socket in a directory.
pub fn listen_in(directory: &Path, name: &str) -> io::Result<(UnixListener, PathBuf)> {
    let (hidden, path) =
        (directory.join(format!(".{name}{SUFFIX}")), directory.join(format!("{name}{SUFFIX}")));
    let listener = UnixListener::bind(&hidden)?;
    fs::rename(&hidden, &path)?;
    Ok((listener, path))
}

/// Connects to every socket in a directory that `selects` accepts, and removes those of ended processes. A directory
/// of another user counts as empty.
pub fn connect_all(
    directory: &Path,
    selects: impl Fn(&Path) -> bool,
) -> Vec<(PathBuf, UnixStream)> {
    let own = rustix::process::geteuid().as_raw();
    let mut connected = Vec::new();
    if !fs::symlink_metadata(directory).is_ok_and(|it| it.is_dir() && it.uid() == own) {
        return connected;
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_suffix(SUFFIX)) else { continue };
        if !entry.file_type().is_ok_and(|kind| kind.is_socket()) {
            continue;
        }
        if let Some(name) = name.strip_prefix('.') {
            // It has no name yet, or its process was killed before it got one.
            if !process_of(name).is_some_and(is_running) {
                _ = fs::remove_file(&path);
            }
        } else if selects(&path) {
            match UnixStream::connect(&path) {
                Ok(stream) => connected.push((path, stream)),
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    _ = fs::remove_file(&path);
                }
                Err(_) => {}
            }
        }
    }
    connected
}

/// Removes a socket that [`listen_in`] made.
pub fn remove_socket(path: &Path) -> io::Result<()> {
    fs::remove_file(path)
}

/// The id of the process at the beginning of a socket's name.
fn process_of(name: &str) -> Option<rustix::process::Pid> {
    rustix::process::Pid::from_raw(name.split('-').next()?.parse().ok()?)
}

fn is_running(process: rustix::process::Pid) -> bool {
    !matches!(rustix::process::test_kill_process(process), Err(rustix::io::Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_processes_that_are_gone_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().join("a/feed");
        make_socket_directory(&directory).unwrap();
        assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
        let (_live, path) = listen_in(&directory, &format!("{}-1", std::process::id())).unwrap();
        let (gone, stale) = listen_in(&directory, "1-2").unwrap();
        drop(gone);
        let half = directory.join(format!(".{}-3{SUFFIX}", i32::MAX));
        let starting = directory.join(format!(".{}-4{SUFFIX}", std::process::id()));
        drop([&half, &starting].map(|path| UnixListener::bind(path).unwrap()));
        let found = connect_all(&directory, |_| true);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, path);
        assert!(path.exists() && starting.exists() && !stale.exists() && !half.exists());
    }

    #[test]
    fn a_directory_for_sockets_is_closed_to_others() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        make_socket_directory(dir.path()).unwrap();
        assert_eq!(fs::metadata(dir.path()).unwrap().mode() & 0o777, 0o700);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        assert!(make_socket_directory(&link).is_err());
    }
}
