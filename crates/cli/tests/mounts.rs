//! Roots on special mounts: read-only, full, over several layers, with another mount inside.
//!
//! Each test mounts what it needs, as root or in a user namespace. `PINFOLD_SMALL_DISK` names a directory with a
//! quota of 4 MiB, which is then filled instead of a small disk.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use pinfold_testkit::{in_mount_namespace, mount, skipped, tree};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A root, and beside it a state directory.
struct Place {
    dir: TempDir,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let root = dir.path().join("ws");
        fs::create_dir(&root).unwrap();
        Self { dir, root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Makes a directory beside the root, and returns its path as text.
    fn made(&self, name: &str) -> String {
        fs::create_dir_all(self.path(name)).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }

    fn root(&self) -> &str {
        self.root.to_str().unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn pinfold(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pinfold"));
        command.arg(arguments[0]).arg("--root").arg(&self.root).args(&arguments[1..]);
        command.env("XDG_STATE_HOME", self.path("state")).current_dir(self.dir.path());
        command.env("XDG_CONFIG_HOME", self.path("config")).stdin(Stdio::piped());
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(process.stdin.take().unwrap().write_all(input.as_bytes()));
        process.wait_with_output().unwrap()
    }

    fn call(&self, tool: &str, arguments: Value) -> Value {
        let words = ["call", "--dialect", "all", "--mode", "bypassPermissions", tool, "-"];
        let output = self.pinfold(&words, &arguments.to_string());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    }

    fn write(&self, path: &str, content: &str) -> Value {
        self.call("file.write", json!({"path": path, "content": content}))
    }

    fn doctor(&self) -> String {
        text(&self.pinfold(&["doctor"], "").stdout)
    }

    /// Every path with its content.
    fn tree(&self) -> BTreeMap<String, String> {
        tree(&self.root)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const PATCH: &str = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+ONE\n\
    *** Add File: new/n.txt\n+new\n*** Delete File: b.txt\n*** End Patch\n";

#[test]
fn a_read_only_mount_is_read_and_says_why_nothing_changes() {
    in_mount_namespace("a_read_only_mount_is_read_and_says_why_nothing_changes", || {
        let place = Place::new();
        mount(&["-t", "tmpfs", "tmpfs", place.root()]);
        fs::write(place.file("a.txt"), "one\n").unwrap();
        fs::write(place.file("b.txt"), "two\n").unwrap();
        mount(&["-o", "remount,ro", place.root()]);
        let before = place.tree();
        assert_eq!(place.call("file.read", json!({"path": "a.txt"}))["total_lines"], 1);
        let found = place.call("file.search", json!({"pattern": "two"}));
        assert_eq!(found["matches"][0]["path"], "b.txt");
        for (tool, arguments) in [
            ("file.write", json!({"path": "a.txt", "content": "new\n"})),
            ("file.write", json!({"path": "new/n.txt", "content": "new\n"})),
            ("file.patch", json!({"path": "a.txt", "patches": [{"find": "one", "replace": "1"}]})),
            ("file.delete", json!({"path": "a.txt"})),
            ("file.move", json!({"source": "a.txt", "destination": "c.txt"})),
        ] {
            let answer = place.call(tool, arguments);
            assert_eq!(answer["error"], "access_denied", "{tool}: {answer}");
            let message = answer["message"].as_str().unwrap();
            assert!(message.contains("mounted read-only"), "{tool}: {message}");
        }
        let applied = place.pinfold(&["apply", "--mode", "bypassPermissions"], PATCH);
        assert_eq!(applied.status.code(), Some(1));
        assert!(text(&applied.stderr).contains("mounted read-only"), "{applied:?}");
        assert_eq!(place.tree(), before);
        let doctor = place.doctor();
        assert!(doctor.contains("the file system is mounted read-only"), "{doctor}");
    });
}

/// Fills a disk, until not even a small file fits.
fn fill(dir: &Path) {
    let mut size = 1 << 20;
    for number in 0.. {
        let name = dir.join(format!("filler-{number}"));
        if fs::write(&name, vec![b'x'; size]).is_err() {
            _ = fs::remove_file(name);
            size /= 2;
        }
        if size < 512 {
            break;
        }
    }
}

#[test]
fn a_full_disk_or_quota_leaves_the_old_content_and_nothing_else() {
    in_mount_namespace("a_full_disk_or_quota_leaves_the_old_content_and_nothing_else", || {
        let mut place = Place::new();
        match std::env::var_os("PINFOLD_SMALL_DISK") {
            Some(dir) => place.root = PathBuf::from(dir).join("ws"),
            None => mount(&["-t", "tmpfs", "-o", "size=4m", "tmpfs", place.root()]),
        }
        fs::create_dir_all(&place.root).unwrap();
        fs::write(place.file("a.txt"), "one\n").unwrap();
        fs::write(place.file("b.txt"), "two\n").unwrap();
        fill(&place.root);
        let before = place.tree();
        let large = "x".repeat(200_000);
        for (tool, arguments) in [
            ("Write", json!({"file_path": place.file("a.txt"), "content": large})),
            ("Write", json!({"file_path": place.file("new/deep/n.txt"), "content": large})),
            (
                "Edit",
                json!({"file_path": place.file("a.txt"), "old_string": "one", "new_string": large}),
            ),
        ] {
            let answer = place.call(tool, arguments);
            assert_eq!(answer["metadata"]["code"], "no_space", "{tool}: {answer}");
            assert_eq!(place.tree(), before, "{tool}");
        }
        let set = PATCH.replace("+new\n", &format!("+{large}\n"));
        let applied = place.pinfold(&["apply", "--mode", "bypassPermissions"], &set);
        assert_eq!(applied.status.code(), Some(1), "{applied:?}");
        assert_eq!(place.tree(), before);
        // A deletion frees space. If a quota is used up, Btrfs refuses the rename that begins the deletion.
        let deleted = place.call("Delete", json!({"path": "filler-0"}));
        if deleted["success"] != true {
            assert_eq!(deleted["metadata"]["code"], "no_space", "{deleted}");
            assert_eq!(place.tree(), before);
            fs::remove_file(place.file("filler-0")).unwrap();
        }
        assert_eq!(place.write("c.txt", "small\n")["success"], true);
    });
}

#[test]
fn a_rewind_on_a_full_disk_changes_nothing_and_works_once_there_is_room() {
    in_mount_namespace(
        "a_rewind_on_a_full_disk_changes_nothing_and_works_once_there_is_room",
        || {
            let place = Place::new();
            mount(&["-t", "tmpfs", "-o", "size=4m", "tmpfs", place.root()]);
            fs::write(place.file("a.txt"), "one\n").unwrap();
            fs::write(place.file("large.txt"), "x".repeat(500_000)).unwrap();
            fs::create_dir(place.file("moved")).unwrap();
            std::os::unix::fs::symlink("a.txt", place.file("link")).unwrap();
            let before = place.tree();
            assert!(place.pinfold(&["checkpoint", "start"], "").status.success());
            for (tool, arguments) in [
                ("file.write", json!({"path": "a.txt", "content": "two\n"})),
                ("file.move", json!({"source": "moved", "destination": "new/deep/moved"})),
                ("file.delete", json!({"path": "link"})),
                ("file.write", json!({"path": "link", "content": "a file\n"})),
                ("file.delete", json!({"path": "large.txt"})),
            ] {
                assert_eq!(place.call(tool, arguments)["success"], true, "{tool}");
            }
            fill(&place.root);
            let full = place.tree();
            let rewound = place.pinfold(&["undo", "--since", "start"], "");
            assert!(!rewound.status.success(), "{rewound:?}");
            assert_eq!(place.tree(), full);
            let fillers = full.keys().filter(|path| path.starts_with("filler-"));
            fillers.for_each(|filler| fs::remove_file(place.file(filler)).unwrap());
            let rewound = place.pinfold(&["undo", "--since", "start"], "");
            assert!(rewound.status.success(), "{rewound:?}");
            assert_eq!(place.tree(), before);
        },
    );
}

#[test]
fn a_journal_on_a_full_disk_stops_the_change() {
    in_mount_namespace("a_journal_on_a_full_disk_stops_the_change", || {
        let place = Place::new();
        fs::write(place.file("a.txt"), "one\n").unwrap();
        assert_eq!(place.write("a.txt", "two\n")["success"], true);
        let state = place.made("state");
        let kept = place.path("kept");
        fs::rename(place.path("state/pinfold"), &kept).unwrap();
        mount(&["-t", "tmpfs", "-o", "size=1m", "tmpfs", &state]);
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(&kept).arg(format!("{state}/pinfold"));
        assert!(copy.status().unwrap().success());
        fill(&place.path("state"));
        let long = "x".repeat(200_000);
        fs::write(place.file("long.txt"), &long).unwrap();
        // The backup is a copy, since the journal is on another file system, and does not fit.
        let answer = place.write("long.txt", "short\n");
        assert!(answer["error"].is_string(), "{answer}");
        assert_eq!(fs::read_to_string(place.file("long.txt")).unwrap(), long);
        let log = place.pinfold(&["log"], "");
        assert!(log.status.success() && text(&log.stdout).contains("a.txt"), "{log:?}");
        let undone = place.pinfold(&["undo"], "");
        // If there is no room for the entry of the undo itself, the undo fails with that reason, and the file stays.
        if !undone.status.success() {
            assert_eq!(fs::read_to_string(place.file("a.txt")).unwrap(), "two\n");
        }
    });
}

#[test]
fn a_mount_inside_a_root_is_part_of_it() {
    in_mount_namespace("a_mount_inside_a_root_is_part_of_it", || {
        let place = Place::new();
        fs::create_dir(place.file("inner")).unwrap();
        mount(&["-t", "tmpfs", "tmpfs", place.file("inner").to_str().unwrap()]);
        fs::write(place.file("a.txt"), "one\n").unwrap();
        fs::write(place.file("b.txt"), "two\n").unwrap();
        fs::write(place.file("inner/c.txt"), "needle\n").unwrap();
        let found = place.call("file.search", json!({"pattern": "needle"}));
        assert_eq!(found["matches"][0]["path"], "inner/c.txt", "{found}");
        // The journal is on another file system than the file: the backup is a copy.
        assert_eq!(place.write("inner/c.txt", "changed\n")["success"], true);
        assert_eq!(place.write("inner/deep/new.txt", "new\n")["success"], true);
        let before = place.tree();
        // A set over both.
        let set = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+ONE\n\
            *** Update File: inner/c.txt\n@@\n-changed\n+CHANGED\n*** End Patch\n";
        let applied = place.pinfold(&["apply", "--mode", "bypassPermissions"], set);
        assert!(applied.status.success(), "{applied:?}");
        assert_eq!(fs::read_to_string(place.file("inner/c.txt")).unwrap(), "CHANGED\n");
        assert!(place.pinfold(&["undo"], "").status.success());
        assert_eq!(place.tree(), before);
        // Neither a file nor the mount point can be moved across, and the answer has the reason.
        for (from, to) in [("a.txt", "inner/a.txt"), ("inner/c.txt", "c.txt"), ("inner", "other")] {
            let answer = place.call("file.move", json!({"source": from, "destination": to}));
            let message = answer["message"].as_str().unwrap_or_default().to_owned();
            let said = ["file system", "mount"].iter().any(|word| message.contains(word));
            assert!(said, "{from} to {to}: {answer}");
        }
        assert_eq!(place.tree(), before);
        assert!(place.pinfold(&["undo"], "").status.success());
    });
}

/// Mounts an overlay on the root. `lower` is the lower layer, and changes go to `upper`.
fn overlay(place: &Place) -> Option<()> {
    let layers = place.made("layers");
    // The layers of an overlay cannot be on an overlay.
    mount(&["-t", "tmpfs", "tmpfs", &layers]);
    for name in ["lower/dir", "upper", "work"] {
        fs::create_dir_all(place.path("layers").join(name)).unwrap();
    }
    for (name, content) in [("a.txt", "one\n"), ("b.txt", "two\n"), ("dir/c.txt", "three\n")] {
        fs::write(place.path("layers/lower").join(name), content).unwrap();
    }
    let options = format!("lowerdir={layers}/lower,upperdir={layers}/upper,workdir={layers}/work");
    let output = Command::new("mount")
        .args(["-t", "overlay", "-o", &options, "overlay", place.root()])
        .output()
        .unwrap();
    if !output.status.success() {
        skipped(&format!("NOT TRIED: no overlay can be mounted: {}", text(&output.stderr).trim()));
        return None;
    }
    Some(())
}

#[test]
fn changes_of_an_overlay_stay_in_its_upper_layer() {
    in_mount_namespace("changes_of_an_overlay_stay_in_its_upper_layer", || {
        let place = Place::new();
        let Some(()) = overlay(&place) else { return };
        let (first, lower) = (place.tree(), tree(&place.path("layers/lower")));
        assert_eq!(place.write("a.txt", "ONE\n")["success"], true);
        assert_eq!(place.call("file.delete", json!({"path": "b.txt"}))["success"], true);
        // In the place of an entry that only a whiteout hides.
        assert_eq!(place.write("b.txt", "again\n")["success"], true);
        let arguments =
            json!({"path": "dir/c.txt", "patches": [{"find": "three", "replace": "3"}]});
        assert_eq!(place.call("file.patch", arguments)["success"], true);
        let now = place.tree();
        assert_eq!([&now["a.txt"], &now["b.txt"], &now["dir/c.txt"]], ["ONE\n", "again\n", "3\n"]);
        let applied = place.pinfold(
            &["apply", "--mode", "bypassPermissions"],
            &PATCH.replace("-one\n+ONE", "-ONE\n+one").replace("two", "again"),
        );
        assert!(applied.status.success(), "{applied:?}");
        let moved = place.call("file.move", json!({"source": "dir", "destination": "moved"}));
        // Without `redirect_dir`, the kernel does not move a directory of the lower layer.
        if moved["error"].is_string() {
            let message = moved["message"].as_str().unwrap();
            assert!(message.contains("overlay"), "{moved}");
        } else {
            assert!(place.pinfold(&["undo"], "").status.success());
        }
        for _ in 0..5 {
            let undone = place.pinfold(&["undo"], "");
            assert!(undone.status.success(), "{undone:?}");
        }
        assert_eq!(place.tree(), first);
        assert_eq!(tree(&place.path("layers/lower")), lower);
    });
}
