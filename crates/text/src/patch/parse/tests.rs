use proptest::prelude::*;

use super::*;

fn wrapped(body: &str) -> String {
    format!("{BEGIN}\n{body}{END}\n")
}

fn chunks(body: &str) -> Vec<Chunk> {
    let patch = Patch::parse(&wrapped(&format!("{UPDATE}a\n{body}"))).unwrap();
    patch.files[0].chunks().to_vec()
}

fn context(text: &str) -> PatchLine {
    PatchLine::Context(text.into())
}

#[test]
fn what_codex_accepts_is_accepted() {
    let plain = wrapped("*** Add File: x\n+y\n");
    let expected = FilePatch::Add { path: "x".into(), content: "y\n".into(), mode: None };
    for text in [
        plain.clone(),
        plain.trim_end().to_owned(),
        format!("\n  \n{plain}\n\n"),
        format!("<<'EOF'\n{plain}EOF"),
        format!("<<EOF\n{plain}EOF\n"),
        format!("<<\"EOF\"\n{plain}EOF\n"),
        plain.replace('\n', "\r\n"),
        "  *** Begin Patch  \n *** Add File: x \n+y\n\t*** End Patch ".to_owned(),
    ] {
        assert_eq!(Patch::parse(&text).unwrap().files, std::slice::from_ref(&expected), "{text:?}");
        assert!(Patch::is_codex(&text), "{text:?}");
    }
    for text in ["", "hello", "<<EOF\nhello\nEOF", "diff --git a/x b/x"] {
        assert!(!Patch::is_codex(text), "{text:?}");
    }
    let empty = Patch::parse(&wrapped("*** Add File: x\n")).unwrap();
    assert!(matches!(&empty.files[..], [FilePatch::Add { content, .. }] if content.is_empty()));
    assert_eq!(Patch::parse(&wrapped("")).unwrap().files, []);
}

#[test]
fn chunks_are_read_loosely() {
    let removed = PatchLine::Remove("b".into());
    let one = Chunk { lines: vec![context("a"), removed.clone()], ..Chunk::default() };
    for body in [" a\n-b\n", "@@\n a\n-b\n", "@@ \n a\n-b\n", "\n@@\n a\n-b\n"] {
        assert_eq!(chunks(body), std::slice::from_ref(&one), "{body:?}");
    }
    // An empty line belongs to the chunk before it.
    assert_eq!(chunks("@@\n a\n\n")[0].lines, [context("a"), context("")]);
    let stacked = &chunks("@@ class A:\n@@ \tdef f():\n-b\n*** End of File\n")[0];
    assert_eq!(stacked.headers, ["class A:", "\tdef f():"]);
    assert!(stacked.at_end);
    assert_eq!(chunks("@@\n-b\n*** End of File  \n@@ x\n a\n").len(), 2);
    // Only a line without a mark before it is a marker.
    assert_eq!(chunks(" *** End of File\n")[0].lines, [context("*** End of File")]);
    let moved = Patch::parse(&wrapped("*** Update File: a\n  *** Move to: b \n")).unwrap();
    assert_eq!(moved.files[0].paths().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn errors_name_their_line() {
    use ParseProblem::*;
    let update = |body: &str| wrapped(&format!("{UPDATE}a\n{body}"));
    let found = |text: &str| text.to_owned();
    for (text, line, problem) in [
        ("hello".into(), 1, NoBegin),
        (String::new(), 1, NoBegin),
        ("\n\nhello".into(), 3, NoBegin),
        (BEGIN.into(), 1, NoEnd),
        (format!("{BEGIN}\n{ADD}x\n+y\n"), 3, NoEnd),
        (format!("{BEGIN}\n{END}\nmore"), 3, NoEnd),
        (wrapped("*** Frobnicate: x\n"), 2, NotAFile { found: found("*** Frobnicate: x") }),
        (wrapped("*** Add File: x\ny\n"), 3, NotAFile { found: found("y") }),
        (wrapped("*** Add File: x\n+y\n\n"), 4, NotAFile { found: found("") }),
        (wrapped("*** Add File: \n"), 2, NotAFile { found: found("*** Add File:") }),
        (wrapped("*** Delete File: x\n+y\n"), 3, NotAFile { found: found("+y") }),
        (update(""), 2, NoChunks { path: found("a") }),
        (update("*** Delete File: b\n"), 2, NoChunks { path: found("a") }),
        (update("@@\n"), 4, NoLines),
        (update("@@ x\n@@ y\n"), 5, NoLines),
        (update("@@\n*** End of File\n"), 4, NoLines),
        (update("@@\ntwo\n"), 4, NoMark { found: found("two") }),
        (update("two\n"), 3, NoMark { found: found("two") }),
        (update("@@\n-one\ntwo\n"), 5, NoHeader { found: found("two") }),
        (update("@@ def f():\n+x\n"), 3, NoContext { header: found("def f():") }),
        (format!("<<EOF\n{}EOF", update("@@\ntwo\n")), 5, NoMark { found: found("two") }),
    ] {
        assert_eq!(Patch::parse(&text), Err(ParseError { line, problem }), "{text:?}");
    }
}

fn path() -> impl Strategy<Value = String> {
    "[a-z./*@+-]{1,8}( [a-z*]{1,4})?"
}

fn line() -> impl Strategy<Value = String> {
    "[ -~\t\u{e9}\u{4e2d}]{0,12}"
}

fn patch_lines() -> impl Strategy<Value = Vec<PatchLine>> {
    let line = (0..3, line()).prop_map(|(kind, text)| match kind {
        0 => PatchLine::Context(text),
        1 => PatchLine::Remove(text),
        _ => PatchLine::Add(text),
    });
    prop::collection::vec(line, 1..6)
}

fn chunk() -> impl Strategy<Value = Chunk> {
    let headers = prop::collection::vec("[ \t]{0,2}[!-~][ -~]{0,8}", 0..3);
    (headers, patch_lines(), any::<bool>()).prop_map(|(headers, mut lines, at_end)| {
        if !headers.is_empty() && lines.iter().all(|line| line.old_text().is_none()) {
            lines.push(PatchLine::Context("kept".into()));
        }
        Chunk { headers, lines, at_end, ..Chunk::default() }
    })
}

fn file() -> impl Strategy<Value = FilePatch> {
    let text = prop::collection::vec(line(), 0..5);
    let text = text.prop_map(|lines| lines.iter().map(|line| format!("{line}\n")).collect());
    let chunks = |least| prop::collection::vec(chunk(), least..4);
    prop_oneof![
        (path(), text).prop_map(|(path, content)| FilePatch::Add { path, content, mode: None }),
        path().prop_map(|path| FilePatch::Delete { path, chunks: Vec::new() }),
        (path(), chunks(1)).prop_map(|(path, chunks)| FilePatch::Update {
            path,
            move_to: None,
            chunks,
            mode: None
        }),
        (path(), path(), chunks(0)).prop_map(|(path, to, chunks)| FilePatch::Update {
            path,
            move_to: Some(to),
            chunks,
            mode: None
        }),
    ]
}

fn patch() -> impl Strategy<Value = Patch> {
    prop::collection::vec(file(), 0..4).prop_map(|files| Patch { files })
}

proptest! {
    #[test]
    fn a_printed_patch_parses_to_itself(patch in patch()) {
        let printed = patch.to_string();
        prop_assert_eq!(Patch::parse(&printed), Ok(patch), "{}", printed);
    }

    #[test]
    fn a_line_without_a_mark_is_where_the_error_is(patch in patch(), at: prop::sample::Index) {
        let printed = patch.to_string();
        let mut lines: Vec<&str> = printed.lines().collect();
        let at = 1 + at.index(lines.len() - 1);
        lines.insert(at, "?");
        let error = Patch::parse(&lines.join("\n")).unwrap_err();
        // The error for a file or chunk that ends too early has the line where it begins.
        let begins =
            matches!(error.problem, ParseProblem::NoChunks { .. } | ParseProblem::NoContext { .. });
        prop_assert!(error.line == at + 1 || begins && error.line <= at, "{error:?} {lines:#?}");
    }

    #[test]
    fn no_text_panics(text in "(\\*\\*\\* (Begin Patch|End Patch|Add File: x|Update File: x|Move to: y|End of File)\n|@@( x)?\n|[-+ ?]?[a\u{e9}]?\r?\n|<<EOF\n|EOF){0,12}") {
        if let Err(error) = Patch::parse(&text) {
            prop_assert!(error.line >= 1 && error.line <= text.split('\n').count());
        }
    }

    #[test]
    fn no_random_text_panics(text: String) {
        prop_assert!(Patch::parse(&text).is_err() || Patch::is_codex(&text));
    }
}
