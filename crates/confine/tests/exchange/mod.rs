//! Exchanges the names of two entries of a directory, as another program would.

use std::fs;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// In one step where the file system can do that, else in three.
pub(crate) fn exchange(one: &Path, other: &Path) {
    if renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok() {
        return;
    }
    let between = one.with_file_name("between");
    fs::rename(one, &between).unwrap();
    while fs::rename(other, one).is_err() {
        // Somebody has made a directory where there was nothing, and may be making files in it.
        _ = fs::remove_dir_all(one);
    }
    fs::rename(&between, other).unwrap();
}
