//! A private file that the child processes of one process share. It is removed after their parent has ended.

use std::fs;
use std::io;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};

use crate::ambient::{LogFile, make_private_directory, read_secret, write_secret};

/// The maximum size of the file. If it is larger, only the newer half is kept.
const MAX_BYTES: u64 = 1024 * 1024;

/// The maximum number of files in the directory, for all parents together.
const MAX_FILES: usize = 64;

/// Lines that every process with the same parent can append and read while the parent runs.
///
/// The file name has the parent's process id and start time, so a later process with the same id has another file.
#[derive(Debug)]
pub struct ParentFile {
    path: PathBuf,
}

impl ParentFile {
    /// The file of this process's parent in a directory. Returns `None` if the parent's start time is unknown.
    /// Creates nothing.
    pub fn new(directory: &Path) -> Option<Self> {
        let parent = parent_id();
        let stat = fs::read_to_string(format!("/proc/{parent}/stat")).ok()?;
        let started = start_time(&stat)?;
        Some(Self { path: directory.join(format!("{parent}-{started}.jsonl")) })
    }

    /// All lines, oldest first. Fails if other users may read them.
    pub fn read(&self) -> io::Result<String> {
        read_secret(&self.path)
    }

    /// Appends lines, and removes the files of parents that have ended.
    pub fn append(&self, lines: &str) -> io::Result<()> {
        if let Some(directory) = self.path.parent() {
            make_private_directory(directory)?;
            remove_stale(directory, &self.path);
        }
        LogFile::open(&self.path)?.append(lines)?;
        if fs::metadata(&self.path)?.len() <= MAX_BYTES {
            return Ok(());
        }
        let text = self.read()?;
        let half = text.len() / 2;
        let newer = text.as_bytes()[half..].iter().position(|byte| *byte == b'\n');
        let newer = newer.map_or("", |end| &text[half + end + 1..]);
        write_secret(&self.path, newer, true)
    }
}

/// The start time of a process in clock ticks since boot: field 22. The name in field 2 may contain any character.
fn start_time(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Removes the files of processes that have ended, and the oldest if there are too many.
fn remove_stale(directory: &Path, own: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut live = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path != own) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let process = name.split_once('-').map_or("", |(process, _)| process);
        // Landlock does not restrict `stat`.
        if process.parse::<u32>().is_ok() && Path::new("/proc").join(process).exists() {
            let modified = fs::metadata(&path).and_then(|meta| meta.modified()).ok();
            live.push((modified, path));
        } else {
            _ = fs::remove_file(path);
        }
    }
    live.sort();
    let extra = (live.len() + 1).saturating_sub(MAX_FILES);
    live.into_iter().take(extra).for_each(|(_, path)| _ = fs::remove_file(path));
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_start_time_is_found_whatever_the_name_of_the_process() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 8431 9 10";
        assert_eq!(start_time(stat), Some(8431));
        assert_eq!(start_time("7 (a"), None);
    }

    #[test]
    fn the_file_is_private_bounded_and_goes_with_its_parent() {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().join("reads");
        let file = ParentFile::new(&directory).unwrap();
        assert!(!directory.exists());
        file.append("one\n").unwrap();
        file.append("two\n").unwrap();
        assert_eq!(file.read().unwrap(), "one\ntwo\n");
        assert_eq!(fs::metadata(&file.path).unwrap().permissions().mode() & 0o777, 0o600);
        // No process has this id, since it is larger than the kernel's maximum.
        let dead = directory.join("4194305-1.jsonl");
        fs::write(&dead, "x\n").unwrap();
        file.append(&format!("{}\n", "x".repeat(100)).repeat(11_000)).unwrap();
        assert!(!dead.exists());
        let kept = file.read().unwrap();
        assert!(kept.len() < MAX_BYTES as usize && kept.starts_with('x'), "{}", kept.len());
        assert_eq!(fs::metadata(&file.path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
