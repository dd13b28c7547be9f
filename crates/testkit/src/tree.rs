//! The files of a directory, for comparisons.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Every path below a directory, with the content of a file, the target of a symlink, or `directory`.
pub fn tree(dir: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let (name, path) = (entry.file_name().into_string().unwrap(), entry.path());
        let kind = entry.file_type().unwrap();
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
