use super::*;

#[test]
fn each_kind_is_named_with_its_characters() {
    for (text, file, expected) in [
        ("say('a')", "say(\"a\")", "line 2: ' where the file has \""),
        ("a b", "a\u{a0}b", "line 2: a space where the file has a no-break space (U+00A0)"),
        ("ab", "a\u{200b}b", "line 2: U+200B after \"a\" in the file, not in the text"),
        (
            "\u{feff}ab",
            "ab",
            "line 2: U+FEFF at the start of the line in the text, not in the file",
        ),
        ("a - b", "a \u{2013} b", "line 2: - where the file has \u{2013} (U+2013)"),
        (
            "caf\u{e9}",
            "cafe\u{301}",
            "line 2: another Unicode form: the text has U+00E9, the file U+0065 U+0301",
        ),
        ("a\\tb", "a\tb", "line 2: the text has \\t written out; the file has a tab"),
        ("\\\"a\\\"", "\"a\"", "line 2: the text has \\\" written out; the file has \""),
        ("a\\\\d", "a\\d", "line 2: the text has \\\\ written out; the file has \\"),
        ("a &lt; b", "a < b", "line 2: the text has &lt; written out; the file has <"),
        ("a & b", "a &amp; b", "line 2: the file has &amp; written out; the text has &"),
        (
            "Value = 1",
            "value = 1",
            "line 2: letter case differs: \"Value\" where the file has \"value\"",
        ),
        ("f(a,b)", "f(a, b)", "line 2: whitespace inside the line differs"),
        ("a", "a  ", "line 2: whitespace at the end of the line differs"),
        ("    a", "\ta", "line 2: the indentation is `\u{2192}`, not `\u{b7}\u{b7}\u{b7}\u{b7}`"),
        ("connect(prot)", "connect(port)", "line 2: \"prot\" where the file has \"port\""),
        ("total = sum(a)", "let total = sum(a) + 1;", "line 2: the text has only part of the line"),
        ("f(a)", "f(a, b)", "line 2: \"a\" where the file has \"a, b\""),
    ] {
        let mut found = Vec::new();
        differences(text, file, 2, &mut found);
        assert_eq!(explanations(found), [expected], "{text:?} {file:?}");
    }
}

#[test]
fn one_kind_is_said_once() {
    let found = |kind, line, detail: &str| Difference { kind, line, detail: detail.into() };
    let words = explanations(vec![
        found(Kind::Case, 7, "x"),
        found(Kind::Case, 4, "x"),
        found(Kind::Case, 5, "x"),
        found(Kind::MissingInFile, 2, ""),
        found(Kind::MissingInFile, 3, ""),
        found(Kind::Quotes, 9, "a"),
        found(Kind::Quotes, 10, "b"),
    ]);
    let expected = [
        "lines 2-3 of the text are missing in the file",
        "line 9: a\nline 10: b",
        "lines 4-5, 7: x",
    ];
    assert_eq!(words, expected);
}
