use proptest::prelude::*;

use super::*;
use crate::patch::Patch;

fn chunks(body: &str) -> Vec<Chunk> {
    let patch = format!("*** Begin Patch\n*** Update File: a\n{body}*** End Patch");
    Patch::parse(&patch).unwrap().files[0].chunks().to_vec()
}

fn apply(text: &str, chunks: &[Chunk]) -> Result<PatchedText, PlaceError> {
    let (bytes, mode) = (text.as_bytes(), MatchMode::Lenient);
    apply_chunks(bytes, Encoding::UTF_8, chunks, mode, 1_000_000, &|| true)
}

fn patched(text: &str, body: &str) -> Result<String, PlaceProblem> {
    let patched = apply(text, &chunks(body)).map_err(|error| error.problem)?;
    Ok(String::from_utf8(patched.bytes).unwrap())
}

const DUP: &str = "def f():\n    x = 1\n    return x\n\ndef g():\n    x = 1\n    return x\n";

#[test]
fn chunks_find_their_lines() {
    for (text, body, expected) in [
        ("one\ntwo\nthree\n", "@@\n one\n-two\n+TWO\n three\n", "one\nTWO\nthree\n"),
        ("one\ntwo\nthree\n", "-one\n+1\n@@\n-three\n+3\n", "1\ntwo\n3\n"),
        ("one\ntwo\n", "@@\n+four\n", "one\ntwo\nfour\n"),
        ("", "@@\n+x\n", "x\n"),
        ("one\ntwo", "@@\n+x\n", "one\ntwo\nx"),
        ("one\ntwo", "@@\n-two\n+TWO\n", "one\nTWO"),
        ("one\ntwo", "@@\n one\n-two\n", "one"),
        ("one\ntwo", "@@\n-one\n-two\n", ""),
        ("one\ntwo\n", "@@\n one\n-two\n", "one\n"),
        ("one\r\ntwo\r\n", "@@\n one\n+x\n-two\n+y\n+z\n", "one\r\nx\r\ny\r\nz\r\n"),
        // Whole lines only.
        ("one more\none\n", "@@\n-one\n+1\n", "one more\n1\n"),
        // A header selects, and stacked ones narrow.
        (
            DUP,
            "@@ def g():\n-    x = 1\n+    x = 2\n",
            &DUP.replacen("g():\n    x = 1", "g():\n    x = 2", 1),
        ),
        ("a\n  f\n  x\nb\n  f\n  x\n", "@@ b\n@@   f\n-  x\n+  y\n", "a\n  f\n  x\nb\n  f\n  y\n"),
        (DUP, "@@ def f():\n-    x = 1\n+    x = 2\n", &DUP.replacen("x = 1", "x = 2", 1)),
        // The header is found with another indentation.
        (
            "class A:\n    def f():\n        x\n",
            "@@ def f():\n-        x\n+        y\n",
            "class A:\n    def f():\n        y\n",
        ),
        (
            DUP,
            "@@\n-    x = 1\n-    return x\n+    return 1\n*** End of File\n",
            "def f():\n    x = 1\n    return x\n\ndef g():\n    return 1\n",
        ),
        // The search only goes forward, so the second match is unique.
        (
            DUP,
            "@@\n-def f():\n+def h():\n     x = 1\n@@\n-    x = 1\n+    x = 2\n",
            "def h():\n    x = 1\n    return x\n\ndef g():\n    x = 2\n    return x\n",
        ),
        // The file need not have an empty line at the end of a chunk.
        ("one\ntwo\n", "@@\n-two\n+2\n\n", "one\n2\n"),
        ("one\ntwo\n", "@@\n-two\n\n+2\n", "one\n\n2\n"),
        ("one\n\ntwo\n", "@@\n-one\n+1\n\n", "1\n\ntwo\n"),
    ] {
        assert_eq!(patched(text, body).as_deref(), Ok(expected), "{text:?} {body:?}");
    }
}

#[test]
fn lenient_matches_are_unique_and_said() {
    let tabs = "def f():\n\tif a:\n\t\tb()\n";
    let spaces = "@@\n def f():\n     if a:\n-        b()\n+        c()\n+            d()\n";
    let done = apply(tabs, &chunks(spaces)).unwrap();
    assert_eq!(done.bytes, b"def f():\n\tif a:\n\t\tc()\n\t\t\td()\n");
    assert_eq!(done.lenient, [(MatchKind::Indentation, (1, 4))]);
    let done = apply("one  \ntwo\t\nthree\n", &chunks("@@\n one\n-two\n+2\n")).unwrap();
    assert_eq!(done.bytes, b"one  \n2\nthree\n");
    assert_eq!(done.lenient, [(MatchKind::TrailingWhitespace, (1, 2))]);
    assert_eq!(patched("  a\n\ta\n", "@@\n-a\n+b\n"), many(&[1, 2], MatchKind::Indentation));
    // Similarity never finds a place.
    assert_eq!(patched("it\u{2019}s\n", "@@\n-it's\n+x\n"), Err(PlaceProblem::NotFound));
    let exact =
        apply_chunks(b"a \n", Encoding::UTF_8, &chunks("-a\n"), MatchMode::Exact, 9, &|| true);
    assert_eq!(exact.unwrap_err().problem, PlaceProblem::NotFound);
}

fn many(lines: &[u64], match_kind: MatchKind) -> Result<String, PlaceProblem> {
    Err(PlaceProblem::Many { count: lines.len(), lines: lines.to_vec(), match_kind })
}

#[test]
fn places_that_are_not_clear_are_refused() {
    let header = |header: &str| header.to_owned();
    for (text, body, problem) in [
        (DUP, "@@\n-    x = 1\n+    x = 2\n", many(&[2, 6], MatchKind::Exact).unwrap_err()),
        (DUP, "@@ def h():\n-    x = 1\n", PlaceProblem::NoHeader { header: header("def h():") }),
        (
            DUP,
            "@@     return x\n \n",
            PlaceProblem::ManyHeaders { header: header("    return x"), lines: vec![3, 7] },
        ),
        ("a\nb\n", "@@\n-b\n@@\n-a\n", PlaceProblem::Elsewhere { line: 1, at_end: false }),
        ("a\nb\n", "@@ b\n-a\n", PlaceProblem::Elsewhere { line: 1, at_end: false }),
        ("a\nb\n", "@@\n-a\n*** End of File\n", PlaceProblem::Elsewhere { line: 1, at_end: true }),
        ("a\n", "@@\n-\n", PlaceProblem::NotFound),
        // The first match after the header is lenient: either this one or the exact one may be meant.
        ("h\nx \nx\n", "@@ h\n-x\n", many(&[2, 3], MatchKind::TrailingWhitespace).unwrap_err()),
    ] {
        assert_eq!(patched(text, body), Err(problem), "{text:?} {body:?}");
    }
    let late = apply("a\nb\n", &chunks("@@\n-a\n@@\n-c\n")).unwrap_err();
    assert_eq!(late.chunk, 2);
    let large = apply_chunks(
        b"a\n",
        Encoding::UTF_8,
        &chunks("-a\n+bbbb\n"),
        MatchMode::Lenient,
        4,
        &|| true,
    );
    assert_eq!(large.unwrap_err().problem, PlaceProblem::TooLarge { size: 5 });
}

#[test]
fn other_encodings_stay() {
    let latin1 = Encoding::for_label("latin1").unwrap();
    let change = |body: &str| {
        apply_chunks(b"caf\xe9\ntwo\n", latin1, &chunks(body), MatchMode::Lenient, 100, &|| true)
    };
    assert_eq!(change("@@\n caf\u{e9}\n-two\n+\u{fc}\n").unwrap().bytes, b"caf\xe9\n\xfc\n");
    let problem = change("@@\n-two\n+\u{65e5}\n").unwrap_err().problem;
    assert!(matches!(problem, PlaceProblem::Unmappable(_)));
}

#[test]
fn a_search_ends_with_the_call() {
    let text = "a\n".repeat(70_000);
    let stopped = apply_chunks(
        text.as_bytes(),
        Encoding::UTF_8,
        &chunks("-b\n"),
        MatchMode::Exact,
        9,
        &|| false,
    );
    assert_eq!(stopped.unwrap_err().problem, PlaceProblem::TimedOut);
}

proptest! {
    /// A unified diff of two texts, applied to the first, gives the second.
    #[test]
    fn a_diff_turns_the_old_text_into_the_new(old in "([ab]\n){0,12}[ab]?", new in "([abc]\n){0,12}[ab]?") {
        let diff = similar::TextDiff::from_lines(&old, &new);
        let diff = diff.unified_diff().header("a/x", "b/x").to_string();
        prop_assume!(!diff.is_empty());
        let patch = Patch::parse_unified(&diff).unwrap();
        let patched = apply(&old, patch.files[0].chunks());
        prop_assert_eq!(patched.map(|it| String::from_utf8(it.bytes).unwrap()), Ok(new), "{}", diff);
    }

    #[test]
    fn lines_outside_of_chunks_keep_their_bytes(before in "([ab]\r?\n){0,6}", after in "([ab]\r?\n){0,6}") {
        let text = format!("{before}needle\n{after}");
        let expected = format!("{before}thread\n{after}");
        prop_assert_eq!(patched(&text, "@@\n-needle\n+thread\n"), Ok(expected));
    }
}
