use super::*;

fn nearest(file: &str, old: &str, new: &str) -> Option<String> {
    super::nearest(file.as_bytes(), Encoding::UTF_8, old, new, &|| true)
}

/// The lines that an explanation shows, as a model would copy them.
fn shown_lines(explanation: &str) -> String {
    let lines = explanation.split('\n').filter_map(|line| {
        let (number, rest) = line.split_once('\t')?;
        number.trim().parse::<u64>().ok()?;
        Some(rest)
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    if explanation.contains("are in the file as they are shown)") {
        text
    } else {
        text.replace('\u{b7}', " ").replace('\u{2192}', "\t")
    }
}

#[test]
fn the_reason_is_named_and_the_lines_are_found() {
    for (file, old, explanation) in [
        (
            "x\n\tif a:\n\t\tb\n",
            "    if a:\n      b",
            "lines 2-3: the indentation differs (line 2: the indentation is `\u{2192}`, not `\u{b7}\u{b7}\u{b7}\u{b7}`)",
        ),
        (
            "say(\u{201c}hi\u{201d})\n",
            "say(\"hi\")",
            "line 1: \" where the file has \u{201c} (U+201C)",
        ),
        (
            "first\n    call(one)\n",
            "     2\t    call(one)",
            "line 2: leave out the line number and the tab after it",
        ),
        ("first\n    call(one)\n", "2: call(one)", "line 2: leave out the line number"),
        (
            "a = 1\nb = 2\nc = 3\n",
            "     1\ta = 1\n     2\tb = 2\n",
            "lines 1-2: leave out the line number and the tab",
        ),
        ("a = 1\nb = 2\nc = 3\n", "-a = 1\n+a = 2\n b = 2", "lines 1-2: leave out the diff marker"),
        (
            "one()\ntwo()\n",
            "one()\\ntwo()",
            "the text has \\n written out; the file has a line break",
        ),
        (
            "print(\"a\\nb\")\n",
            "print(\"a\nb\")",
            "the file has \\n written out; the text has a line break",
        ),
        (
            "one()\rtwo()\rthree()\r",
            "one()\ntwo()",
            "the text has a line break; the file has a lone CR (U+000D) as line break",
        ),
        ("one()\u{2028}two()\n", "one()\ntwo()", "the file has U+2028 as line break"),
        (
            "alpha = 1\nbeta = 2\ngamma = 3\ndelta = 4\n",
            "alpha = 1\ndelta = 4",
            "lines 2-3 are missing in the text",
        ),
        (
            "alpha = 1\ndelta = 4\n",
            "alpha = 1\nbeta = 2\ngamma = 3\ndelta = 4",
            "lines 2-3 of the text are missing in the file",
        ),
        (
            "alpha = 1\nbeta = 2\ngamma = 3\n",
            "beta = 2\nalpha = 1\ngamma = 3",
            "lines are in another order",
        ),
        (
            "fn a() {\n  one();\n  two();\n  three();\n}\n",
            "fn a() {\n  ...\n}",
            "3 lines left out where the text has \"...\"",
        ),
        (
            "fn a() {\n  one();\n  two();\n  three();\n}\n",
            "fn a() {\n  // ... existing code ...\n  three();\n}",
            "2 lines left out where the text has \"// ... existing code ...\"",
        ),
        (
            "let total = sum(items) + 1;\nb\n",
            "total = sum(items)\nb",
            "line 1: the text has only part of the line",
        ),
        ("x = 1\n", "x = 2", "line 1: \"2\" where the file has \"1\""),
        ("one\ntwo\nthree\nfour", "two\nthree\nfive", "line 3 of the text is missing in the file"),
        ("one\ntwo", "two\n", "the file ends without a line break after line 2"),
    ] {
        let found = nearest(file, old, "").unwrap_or_default();
        assert!(found.contains(explanation), "{old:?}: {found}");
        let text = shown_lines(&found);
        assert_eq!(file.matches(&text).count(), 1, "{old:?}: {found}");
    }
}

#[test]
fn the_region_is_shown_with_line_numbers() {
    let file = "a\nb\nfn one() {\n\treturn 1;\n}\n";
    let explanation = nearest(file, "fn one() {\n    return 1;\n}", "x").unwrap();
    let expected = "nearest is line 3:\n     3\tfn one() {\n     4\t\u{2192}return 1;\n     5\t}\n\
                    line 4: the indentation is `\u{2192}`, not `\u{b7}\u{b7}\u{b7}\u{b7}`";
    assert_eq!(explanation, expected);
}

#[test]
fn a_new_text_that_is_there_already_is_said() {
    let explanation =
        nearest("one\nlet x = compute(2);\n", "let x = compute(1);", "let x = compute(2);");
    assert!(explanation.unwrap().starts_with("the new text is there already, on line 2\n"));
}

#[test]
fn without_a_similar_region_there_is_no_explanation() {
    assert_eq!(nearest("alpha\nbeta\n", "something else entirely", "x"), None);
    assert_eq!(nearest("", "a", "b"), None);
}

#[test]
fn the_explanation_of_a_large_text_is_short() {
    // A hundred places, each with a hundred thousand lines to compare.
    let file = "let value = compute(1);\n".repeat(200_000);
    let old = format!("{}the end\n", "let value = compute(1);\n".repeat(100_000));
    let explanation = nearest(&file, &old, "").unwrap();
    assert!(explanation.starts_with("nearest is line 1:"), "{explanation}");
    assert!(explanation.contains("more lines)"), "{explanation}");
    assert!(explanation.len() < 4_000, "{explanation}");
    // The lines are as long as files, and nothing resembles them.
    let long = |letters: &str| format!("{}\n", letters.repeat(700)).repeat(2_000);
    assert_eq!(nearest(&long("abc"), &long("xyz")[..2_101], ""), None);
}

#[test]
fn a_part_of_a_long_line_is_shown() {
    let names: String = (0..20_000).map(|n| format!("var v{n}=f({n});")).collect();
    let explanation = nearest(&names, "var v15000=g(15000);", "").unwrap();
    assert!(explanation.len() < 4_000, "{explanation}");
    let text = shown_lines(&explanation);
    assert_eq!(names.matches(&text).count(), 1, "{explanation}");
    assert!(text.contains("v15000="), "{explanation}");
}

#[test]
fn the_place_with_most_in_common_is_the_nearest() {
    let file = "return 1;\n\nfn two() {\n    setup();\n    return 1;\n}\n";
    let explanation = nearest(file, "fn two() {\n    setup( );\n    return 1;\n}\n", "").unwrap();
    assert!(explanation.starts_with("nearest is line 3:"), "{explanation}");
}

#[test]
fn long_lines_are_explained_and_the_search_ends_at_the_deadline() {
    let line = |seed: usize, words: usize| {
        (0..words).map(|at| format!("word{} ", (at * at + seed) % 97)).collect::<String>()
    };
    let lines = |count: usize, words: usize| {
        (0..count).map(|seed| line(seed, words)).collect::<Vec<_>>().join("\n")
    };
    let one_line = format!("{}needle here{}\n", line(1, 100_000), line(2, 100_000));
    for (file, old) in
        [(one_line.clone(), "nedle here".to_owned()), (lines(80, 1_500), lines(80, 100))]
    {
        // The deadline has passed before, or passes during the search.
        for checks in [1_usize, 3] {
            let left = std::cell::Cell::new(checks);
            let in_time = || left.replace(left.get().saturating_sub(1)) > 1;
            super::nearest(file.as_bytes(), Encoding::UTF_8, &old, "", &in_time);
            assert_eq!(left.get(), 0, "the deadline was not checked");
        }
    }
    let explanation = nearest(&one_line, "nedle here", "").unwrap();
    assert!(explanation.starts_with("nearest is line 1, from its character "), "{explanation}");
    assert!(shown_lines(&explanation).contains("needle here"), "{explanation}");
}
