//! Exchanges the names of two entries of a directory, as another program would.

use std::fs;
use std::path::Path;

/// Takes one step if the file system can exchange, otherwise three. Returns whether it was one.
pub(crate) fn exchange(one: &Path, other: &Path) -> bool {
    if pinfold_testkit::exchange(one, other).is_ok() {
        return true;
    }
    let between = one.with_file_name("between");
    fs::rename(one, &between).unwrap();
    while fs::rename(other, one).is_err() {
        // Another thread has created a directory there, and may be creating files in it.
        _ = fs::remove_dir_all(one);
    }
    fs::rename(&between, other).unwrap();
    false
}
