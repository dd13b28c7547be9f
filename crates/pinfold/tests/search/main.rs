//! Searching: pages, time, what is found where, and what lists show.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

mod lists;
mod pages;
mod places;
mod remembered;
mod time;

use std::fs;
use std::path::Path;

use pinfold::operations::{Search, Searched};
use pinfold::{Role, Session};
use tempfile::TempDir;

fn workspace(files: &[(&str, &str)]) -> (TempDir, Session) {
    let dir = TempDir::new().unwrap();
    for (path, content) in files {
        write(dir.path(), path, content.as_bytes());
    }
    let session = Session::open([dir.path()]).unwrap();
    (dir, session)
}

fn write(root: &Path, path: &str, content: &[u8]) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn search(session: &Session, search: &Search) -> Searched {
    session.perform(search).unwrap().outcome
}

/// The matching lines of a page: path, number, text.
fn lines(searched: &Searched) -> Vec<(String, u64, String)> {
    let mut found = Vec::new();
    for file in &searched.files {
        for line in file.lines.iter().filter(|line| line.role == Role::Match) {
            let text = String::from_utf8(line.text.clone()).unwrap();
            found.push((file.place.path.to_string(), line.number, text));
        }
    }
    found
}
