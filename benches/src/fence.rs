//! The cost of the fence: opening, reading and writing through it, compared with plain system calls.

use std::fs;
use std::hint::black_box;
use std::path::Path;

use crate::compare;
use pinfold::{Session, Settings};
use pinfold_confine::{Durability, OpenMethod, RawPath, Workspace};
use pinfold_dialects::{DOTTED, Toolbox};
use serde_json::json;

pub(crate) fn run() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("src/deep/er")).unwrap();
    fs::write(root.join("src/deep/er/file.rs"), "fn main() {}\n".repeat(300)).unwrap();
    std::os::unix::fs::symlink("src/deep", root.join("link")).unwrap();
    let direct = root.join("src/deep/er/file.rs");
    let linked = root.join("link/er/file.rs");

    for method in [OpenMethod::Kernel, OpenMethod::NameByName] {
        let workspace = Workspace::open([&root], Some(method)).unwrap();
        for (what, path) in [("plain path", &direct), ("path through a symlink", &linked)] {
            let raw = RawPath::from(path.to_str().unwrap());
            let name = format!("open, {method:?}, {what} / canonicalise, check, open");
            compare(
                &name,
                2_000,
                || drop(black_box(workspace.file(&raw).unwrap())),
                || drop(black_box(checked_open(&root, path))),
            );
        }
    }

    let workspace = Workspace::open([&root], None).unwrap();
    let (content, raw) = ("x".repeat(4096), RawPath::from("src/written.txt"));
    let theirs = root.join("src/theirs.txt");
    compare(
        "write 4 KiB, nothing flushed / write and rename",
        500,
        || {
            drop(
                workspace
                    .target(&raw, &Default::default())
                    .unwrap()
                    .replace(content.as_bytes(), Durability::None)
                    .unwrap(),
            )
        },
        || {
            let draft = theirs.with_extension("tmp");
            fs::write(&draft, &content).unwrap();
            fs::rename(&draft, &theirs).unwrap();
        },
    );

    let settings = Settings::default().with_durability(Durability::None);
    let session = Session::with_settings([&root], settings).unwrap();
    let toolbox = Toolbox::new(session, &[&DOTTED]);
    compare(
        "file.read of 300 lines, JSON to JSON / read_to_string",
        1_000,
        || {
            let answer = toolbox.call("file.read", json!({"path": "src/deep/er/file.rs"}));
            black_box(answer.to_json_text());
        },
        || drop(black_box(fs::read_to_string(&direct).unwrap())),
    );
}

/// The common check of a path, with a race between the check and the open.
fn checked_open(root: &Path, path: &Path) -> fs::File {
    let real = path.canonicalize().unwrap();
    assert!(real.starts_with(root));
    let file = fs::File::open(real).unwrap();
    assert!(file.metadata().unwrap().is_file());
    file
}
