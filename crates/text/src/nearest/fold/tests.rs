use proptest::prelude::*;

use super::*;

fn key_of(line: &str) -> String {
    let mut out = String::new();
    key(line, &mut out);
    out
}

#[test]
fn lines_that_are_easily_confused_have_one_key() {
    for (one, other) in [
        ("say(\"hi\")", "say('hi')"),
        ("say(\\\"hi\\\")", "say(\"hi\")"),
        ("a &lt; b &amp;&amp; c", "a < b && c"),
        ("&amp;lt;", "<"),
        ("C:\\\\Users\\\\me", "C:\\Users\\me"),
        ("caf\u{e9}", "cafe\u{301}"),
        ("\u{ac00}", "\u{1100}\u{1161}"),
        ("\u{ff41}\u{ff1d}1", "a=1"),
        ("a\u{200b}b", "ab"),
        ("a\u{a0}b", "a b"),
        ("1 \u{2013} 2\u{2026}", "1 - 2..."),
        ("Value = ONE", "value=one"),
        ("a\\tb", "a\tb"),
        ("\\u00e9", "\u{e9}"),
    ] {
        assert_eq!(key_of(one), key_of(other), "{one:?} {other:?}");
    }
}

#[test]
fn segments_end_with_line_breaks_of_any_kind() {
    let text = "a\nb\rc\u{2028}d\\ne\\\\nf\\r\\ng\\th\n";
    let parts: Vec<_> = segments(text, 0).map(|part| (part.text, part.line_break)).collect();
    let expected = [
        ("a", "\n"),
        ("b", "\r"),
        ("c", "\u{2028}"),
        ("d", "\\n"),
        ("e", "\\\\n"),
        ("f", "\\r\\n"),
        ("g\\th", "\n"),
    ];
    assert_eq!(parts, expected);
}

proptest! {
    #[test]
    fn a_text_is_its_segments(text in "[ab\\\\nrt\n\r\u{2028}\u{e9}]{0,30}") {
        let all: String =
            segments(&text, 0).flat_map(|part| [part.text, part.line_break]).collect();
        prop_assert_eq!(&all, &text);
        for part in segments(&text, 0) {
            prop_assert_eq!(&text[part.start..part.start + part.text.len()], part.text);
        }
    }

    #[test]
    fn both_ways_to_a_key_give_the_same(line in "[ -~\t]{0,20}") {
        let mut slow = String::new();
        each_piece(&line, Folds::ALL, |_, piece| slow.push_str(piece));
        prop_assert_eq!(key_of(&line), slow);
    }

    #[test]
    fn any_line_can_be_folded(line: String) {
        key_of(&line);
        for fold in Fold::EACH {
            let folded = Folded::new(&line, Folds::ALL.without(fold));
            prop_assert_eq!(folded.origins.len(), folded.text.len());
        }
    }
}
