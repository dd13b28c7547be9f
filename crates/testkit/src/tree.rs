//! The files of a directory, for comparisons.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::limits::names_in;

/// Every path below a directory, with the content of a file, the target of a symlink, or `directory`. Files that are
/// deleted while they are open are left out, also where they have another name until then.
pub fn tree(dir: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for name in names_in(dir) {
        let path = dir.join(&name);
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        let what = if kind.is_symlink() {
            fs::read_link(&path).unwrap().display().to_string()
        } else if kind.is_dir() {
            let below = tree(&path).into_iter();
            found.extend(below.map(|(below, what)| (format!("{name}/{below}"), what)));
            "directory".to_owned()
        } else {
            String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()
        };
        found.insert(name, what);
    }
    found
}
