use proptest::prelude::*;

use super::*;

fn files(text: &str) -> Vec<FilePatch> {
    Patch::parse_unified(text).unwrap().files
}

/// The output of `git diff -M` for a few changes at once.
const GIT: &str = "\
commit 1234\n\n    A message with --- in it\n\n\
diff --git a/kept.txt b/kept.txt\n\
index 1..2 100644\n\
--- a/kept.txt\n\
+++ b/kept.txt\n\
@@ -1,3 +1,3 @@ fn x\n\
\x20one\n\
-two\n\
+TWO\n\
\x20three\n\
diff --git a/run.sh b/run.sh\n\
new file mode 100755\n\
index 0..3\n\
--- /dev/null\n\
+++ b/run.sh\n\
@@ -0,0 +1,2 @@\n\
+#!/bin/sh\n\
+exit\n\
\\ No newline at end of file\n\
diff --git a/gone b/gone\n\
deleted file mode 100644\n\
--- a/gone\n\
+++ /dev/null\n\
@@ -1 +0,0 @@\n\
-bye\n\
diff --git a/old name b/new name\n\
similarity index 100%\n\
rename from old name\n\
rename to new name\n\
diff --git a/mode b/mode\n\
old mode 100644\n\
new mode 100755\n\
diff --git a/empty b/empty\n\
new file mode 100644\n\
index 0000000..e69de29\n\
-- \n2.47.3\n";

#[test]
fn git_s_diffs_are_read() {
    let files = files(GIT);
    let paths: Vec<_> = files.iter().map(FilePatch::path).collect();
    assert_eq!(paths, ["kept.txt", "run.sh", "gone", "old name", "mode", "empty"]);
    assert_eq!(files[0].chunks()[0].line, Some(1));
    assert_eq!(
        files[1],
        FilePatch::Add {
            path: "run.sh".into(),
            content: "#!/bin/sh\nexit".into(),
            mode: Some(0o755)
        }
    );
    assert!(matches!(&files[2], FilePatch::Delete { chunks, .. } if chunks.len() == 1));
    assert_eq!(files[3].paths().last(), Some("new name"));
    assert!(matches!(files[4], FilePatch::Update { mode: Some(0o755), .. }));
    assert!(matches!(&files[5], FilePatch::Add { content, .. } if content.is_empty()));
}

#[test]
fn names_lose_only_the_prefix_of_git() {
    let hunk = "@@ -1 +1 @@\n-a\n+b\n";
    for (head, path) in [
        ("--- a/src/x\n+++ b/src/x\n", "src/x"),
        ("--- src/x\n+++ src/x\n", "src/x"),
        ("--- x.orig\t2024-01-01\n+++ x\t2024-01-02\n", "x"),
        ("diff --git src/x src/x\n--- src/x\n+++ src/x\n", "src/x"),
        ("diff --git i/x w/x\n--- i/x\n+++ w/x\n", "x"),
        (
            "diff --git \"a/\\303\\251\" \"b/\\303\\251\"\n--- \"a/\\303\\251\"\n+++ \"b/\\303\\251\"\n",
            "\u{e9}",
        ),
        ("--- a/x\r\n+++ b/x\r\n", "x"),
    ] {
        assert_eq!(files(&format!("{head}{hunk}"))[0].path(), path, "{head:?}");
    }
}

#[test]
fn the_end_of_the_file_is_read() {
    let chunk = |body: &str| files(&format!("--- a/x\n+++ b/x\n{body}"))[0].chunks()[0].clone();
    let open = "\\ No newline at end of file\n";
    for (body, at_end, final_newline) in [
        ("@@ -1 +1 @@\n-a\n+b\n".to_owned(), false, None),
        (format!("@@ -1 +1 @@\n-a\n{open}+a\n"), true, Some(true)),
        (format!("@@ -1 +1 @@\n-a\n+a\n{open}"), true, Some(false)),
        (format!("@@ -1 +1 @@\n-a\n{open}+b\n{open}"), true, Some(false)),
        (format!("@@ -1,2 +1 @@\n-a\n b\n{open}"), true, Some(false)),
    ] {
        let chunk = chunk(&body);
        assert_eq!((chunk.at_end, chunk.final_newline), (at_end, final_newline), "{body}");
    }
    let crlf = chunk("@@ -1 +1 @@\r\n-a\r\n+b\r\n");
    assert_eq!(crlf.new_lines(), ["b"]);
}

#[test]
fn what_cannot_be_applied_is_refused_by_line() {
    use UnifiedProblem::*;
    let head = "--- a/x\n+++ b/x\n";
    let git = "diff --git a/x b/x\n";
    for (text, line, problem) in [
        (String::new(), 1, Nothing),
        ("hello\n".into(), 1, Nothing),
        (format!("{git}index 1..2\nGIT binary patch\n"), 3, Binary),
        (format!("{git}index 1..2\nBinary files a/x and b/x differ\n"), 3, Binary),
        ("Binary files x and y differ\n".into(), 1, Binary),
        ("diff --cc x\n".into(), 1, Combined),
        (format!("{git}similarity index 90%\ncopy from x\n"), 3, Copy),
        (format!("{git}new file mode 120000\n"), 2, SpecialFile),
        (format!("{git}new file mode 160000\n"), 2, SpecialFile),
        (format!("{git}index 1..2 100644\n"), 1, NoChange),
        (head.into(), 1, NoChange),
        ("@@ -1 +1 @@\n".into(), 1, NoFile),
        (format!("{head}@@ hello\n"), 3, BadHunk),
        (format!("{head}@@ -1 +1 @@\n-a\n"), 5, ShortHunk),
        (format!("{head}@@ -1,2 +1 @@\n-a\n+b\nhello\n"), 6, ShortHunk),
        (format!("{head}@@ -1 +1 @@\n-a\n+b\n+c\n"), 6, LongHunk),
        (format!("{head}@@ -1 +1 @@\n-a\n-b\n+c\n"), 5, LongHunk),
        (format!("{head}@@ -3,0 +4 @@\n+a\n"), 3, NoContext),
        (format!("{head}@@ -1 +1 @@\n\\ No newline\n"), 4, BadHunk),
        ("diff --git a/one two b/three\nold mode 100644\nnew mode 100755\n".into(), 1, NoName),
    ] {
        assert_eq!(Patch::parse_unified(&text), Err(UnifiedError { line, problem }), "{text:?}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "(diff --git a/x b/x\n|--- a/x\n|\\+\\+\\+ b/x\n|@@ -[01](,[0-3])? \\+[01](,[0-3])? @@\n|[-+ \\\\]?[a\u{e9}]?\r?\n|rename from x\n|new file mode 1[02]0644\n){0,12}") {
        if let Err(error) = Patch::parse_unified(&text) {
            prop_assert!(error.line >= 1 && error.line <= text.split('\n').count());
        }
    }

    #[test]
    fn no_random_text_panics(text: String) {
        drop(Patch::parse_unified(&text));
    }
}
