//! `pinfold apply`: both notations, all or nothing, undone as a whole.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

struct Stage {
    dir: TempDir,
    root: PathBuf,
}

/// A workspace with `a.txt`, `b.txt`, `old.txt` and `gone.txt`.
fn stage() -> Stage {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("ws");
    fs::create_dir(&root).unwrap();
    for (name, content) in [
        ("a.txt", "one\ntwo\nthree\n"),
        ("b.txt", "b\n"),
        ("old.txt", "1\n2\n3\n4\n5\n"),
        ("gone.txt", "bye\n"),
    ] {
        fs::write(root.join(name), content).unwrap();
    }
    Stage { dir, root }
}

impl Stage {
    fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pinfold"));
        command.args(arguments).current_dir(&self.root);
        command.env("XDG_CONFIG_HOME", self.dir.path().join("config"));
        command.env("XDG_STATE_HOME", self.dir.path().join("state"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        // A refused command line is not read to its end.
        drop(process.stdin.take().unwrap().write_all(input.as_bytes()));
        process.wait_with_output().unwrap()
    }

    /// The output of a successful run.
    fn applied(&self, arguments: &[&str], patch: &str) -> String {
        let output = self.run(arguments, patch);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The error of a refused run, which changed nothing.
    fn refused(&self, arguments: &[&str], patch: &str) -> String {
        let before = self.files();
        let output = self.run(arguments, patch);
        assert_eq!((output.status.code(), &*output.stdout), (Some(1), &b""[..]), "{output:?}");
        assert_eq!(self.files(), before);
        String::from_utf8(output.stderr).unwrap()
    }

    fn files(&self) -> Vec<(PathBuf, u32, String)> {
        let mut files = Vec::new();
        let mut directories = vec![self.root.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                let path = entry.path();
                if path.ends_with(".git") {
                    continue;
                }
                let mode = entry.metadata().unwrap().permissions().mode();
                if path.is_dir() {
                    directories.push(path.clone());
                }
                let content = fs::read_to_string(&path).unwrap_or_default();
                files.push((path, mode, content));
            }
        }
        files.sort();
        files
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(name)).unwrap()
    }
}

fn codex(body: &str) -> String {
    format!("*** Begin Patch\n{body}*** End Patch\n")
}

#[test]
fn a_patch_is_applied_and_undone_as_a_whole() {
    let it = stage();
    let before = it.files();
    let patch = codex(
        "*** Add File: new/n.txt\n+hi\n*** Update File: a.txt\n@@\n-two\n+TWO\n*** Delete File: gone.txt\n",
    );
    let dry = it.applied(&["apply", "--dry-run"], &patch);
    assert!(dry.starts_with("[Dry Run] Would update the following files:\nA new/n.txt\n"), "{dry}");
    assert!(dry.contains("-two\n+TWO\n"), "{dry}");
    assert_eq!(it.applied(&["apply", "--check"], &patch), "");
    assert_eq!(it.files(), before);
    let answer = "Success. Updated the following files:\nA new/n.txt\nM a.txt\nD gone.txt\n";
    assert_eq!(it.applied(&["apply", "-"], &patch), answer);
    assert_eq!(it.text("a.txt"), "one\nTWO\nthree\n");
    it.applied(&["undo"], "");
    assert_eq!(it.files(), before);
    let file = it.dir.path().join("x.patch");
    fs::write(&file, &patch).unwrap();
    assert_eq!(it.applied(&["apply", file.to_str().unwrap()], ""), answer);
}

/// Runs git without the user's configuration.
fn git(root: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(root).env("HOME", root).env("GIT_CONFIG_NOSYSTEM", "1");
    command.env("GIT_CONFIG_COUNT", "2").env("GIT_CONFIG_KEY_0", "user.name");
    command.env("GIT_CONFIG_VALUE_0", "a").env("GIT_CONFIG_KEY_1", "user.email");
    let output = command.env("GIT_CONFIG_VALUE_1", "a@b").output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_output_of_git_diff_is_applied_and_undone() {
    let it = stage();
    fs::write(it.root.join("open.txt"), "x\ny").unwrap();
    fs::write(it.root.join("crlf.txt"), "one\r\ntwo\r\n").unwrap();
    fs::write(it.root.join("na\u{ef}ve name.txt"), "n\n").unwrap();
    git(&it.root, &["init", "-q"]);
    git(&it.root, &["-c", "core.autocrlf=false", "add", "-A"]);
    git(&it.root, &["commit", "-qm", "start"]);
    let before = it.files();
    fs::write(it.root.join("a.txt"), "one\nTWO\nthree\nfour\n").unwrap();
    fs::write(it.root.join("open.txt"), "x\nY\n").unwrap();
    fs::write(it.root.join("b.txt"), "b").unwrap();
    fs::write(it.root.join("crlf.txt"), "one\r\nTWO\r\n").unwrap();
    fs::write(it.root.join("na\u{ef}ve name.txt"), "N\n").unwrap();
    fs::remove_file(it.root.join("gone.txt")).unwrap();
    fs::create_dir(it.root.join("dir")).unwrap();
    fs::rename(it.root.join("old.txt"), it.root.join("dir/new.txt")).unwrap();
    fs::write(it.root.join("dir/new.txt"), "1\n2\n3\n4\nfive\n").unwrap();
    fs::write(it.root.join("empty.txt"), "").unwrap();
    fs::write(it.root.join("run.sh"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(it.root.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    git(&it.root, &["add", "-A"]);
    let after = it.files();
    let diff = git(&it.root, &["diff", "--cached", "-M"]);
    for part in ["rename from", "new file mode 100755", "deleted file mode", "\\ No newline"] {
        assert!(diff.contains(part), "{part}: {diff}");
    }
    git(&it.root, &["reset", "-q", "--hard"]);
    let _ = fs::remove_dir(it.root.join("dir"));
    assert_eq!(it.files(), before);
    let answer = it.applied(&["apply"], &diff);
    assert!(answer.contains("A run.sh\n") && answer.contains("M dir/new.txt\n"), "{answer}");
    assert_eq!(it.files(), after, "{diff}");
    // A diff is for the version that it was made of.
    let again = it.refused(&["apply", "--check"], &diff);
    assert!(again.contains("apply_patch verification failed: "), "{again}");
    it.applied(&["undo"], "");
    let mut left = it.files();
    left.retain(|(path, ..)| !path.ends_with("dir"));
    assert_eq!(left, before);
}

#[test]
fn what_cannot_be_applied_is_refused_with_its_reason() {
    let it = stage();
    let head = "--- a/a.txt\n+++ b/a.txt\n";
    for (patch, words) in [
        ("hello\n".to_owned(), "invalid patch at line 1: there is no patch here"),
        (
            "diff --git a/x.png b/x.png\nindex 1..2 100644\nGIT binary patch\nliteral 3\n".into(),
            "invalid patch at line 3: this is the diff of a binary file",
        ),
        (
            format!("{head}@@ -2 +2 @@\n-zwei\n+2\n"),
            "Failed to find expected lines in a.txt:\nzwei\n",
        ),
        (format!("{head}@@ -1,9 +1 @@\n-one\n"), "fewer lines than its `@@` line says"),
        (
            "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n".into(),
            "Failed to write a.txt: File exists",
        ),
        (
            "--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-c\n".into(),
            "Failed to find expected lines in b.txt",
        ),
        (
            "--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n".into(),
            "lines that the patch does not delete",
        ),
        (
            "--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n".into(),
            "Failed to write ../x: it is outside the workspace",
        ),
        (
            codex("*** Add File: n\n+x\n*** Update File: a.txt\n@@\n-none\n"),
            "Failed to find expected lines",
        ),
        (codex("*** Add File: .git/hooks/x\n+x\n"), "--allow 'Write(/.git/hooks/x)'"),
    ] {
        let printed = it.refused(&["apply"], &patch);
        assert!(printed.contains(words), "{patch}\n{printed}");
        assert!(printed.starts_with("pinfold: "), "{printed}");
    }
    let denied = it.refused(&["apply", "--read-only"], &codex("*** Delete File: b.txt\n"));
    assert!(denied.contains("the mode `plan` changes nothing"), "{denied}");
    let missing = it.run(&["apply", "no-such.patch"], "");
    assert_eq!(missing.status.code(), Some(1), "{missing:?}");
    let usage = it.run(&["apply", "--frobnicate"], "");
    assert_eq!(usage.status.code(), Some(2), "{usage:?}");
}

#[test]
fn modes_of_existing_files_are_kept_and_that_is_said() {
    let it = stage();
    let diff = "diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n";
    let answer = it.applied(&["apply"], diff);
    assert!(answer.contains("(a.txt keeps its mode; the patch gives it 755)"), "{answer}");
    // Lines above have moved the place: the lines are unique, so they are found.
    fs::write(it.root.join("a.txt"), "zero\none\ntwo\nthree\n").unwrap();
    it.applied(&["apply"], "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
    assert_eq!(it.text("a.txt"), "zero\none\n2\nthree\n");
}
