use proptest::prelude::*;

use super::*;
use crate::{Encoding, sniff};

fn edit(bytes: &[u8], old: &str, new: &str, all: bool) -> Result<Replaced, ReplaceError> {
    let crate::Content::Text(encoding) = sniff(bytes, true) else { panic!("binary") };
    let replacement = Replacement { old: old.into(), new: new.into(), all };
    replace(&Document::new(bytes, encoding), &replacement, MatchMode::Lenient, u64::MAX)
}

#[test]
fn each_reading_waits_for_the_one_before() {
    for (file, old, new, after, match_kind) in [
        ("a\nb\n", "a", "x", "x\nb\n", MatchKind::Exact),
        ("a\r\nb\r\n", "a\nb\n", "x\ny\nz\n", "x\r\ny\r\nz\r\n", MatchKind::LineEndings),
        ("a\r\nb\n", "a\r\nb\n", "x\ny\n", "x\r\ny\n", MatchKind::Exact),
        ("a \nb\n", "a\nb\n", "x\ny\n", "x\ny\n", MatchKind::TrailingWhitespace),
        (
            "\tif a:\n\t\tb\n",
            "if a:\n    b\n",
            "if c:\n    d\n",
            "\tif c:\n\t\td\n",
            MatchKind::Indentation,
        ),
        ("a\n    a\n", "    a\n", "    x\n", "a\n    x\n", MatchKind::Exact),
    ] {
        let replaced = edit(file.as_bytes(), old, new, false).unwrap();
        assert_eq!(str::from_utf8(&replaced.bytes).unwrap(), after, "{file:?}");
        assert_eq!(replaced.match_kind, match_kind, "{file:?}");
    }
}

#[test]
fn nothing_is_guessed() {
    for (file, old, new) in [
        ("x = 10\n", "x=1", "x=2"),
        ("def f():\n    return 1\n", "def g():\n    return 1\n", "def h():\n    pass\n"),
        ("say(\u{201c}hi\u{201d})\n", "say(\"hi\")", "say(\"ho\")"),
        ("Value = 1\n", "value = 1", "value = 2"),
        ("a  b\n", "a b", "c"),
        ("a\u{a0}b\n", "a b", "c"),
        ("if a:\n    b\n  c\n", "if a:\n  b\n  c\n", "x\n"),
        ("a\n", "     1\ta", "b"),
        // The new text would have a negative indentation.
        ("a\n  b\n", "  a\n    b\n", "x\n"),
    ] {
        assert_eq!(
            edit(file.as_bytes(), old, new, false).unwrap_err(),
            ReplaceError::NotFound,
            "{old:?}"
        );
    }
}

#[test]
fn several_places_are_counted_and_named() {
    let many = |count, lines: &[u64], match_kind| ReplaceError::Many {
        count,
        or_more: false,
        lines: lines.to_vec(),
        match_kind,
    };
    for (file, old, refused) in [
        ("aaa\n", "aa", many(2, &[1, 1], MatchKind::Exact)),
        ("x\ny\nx\ny\n", "x\ny\n", many(2, &[1, 3], MatchKind::Exact)),
        ("  a\n    a\n", "\ta", many(2, &[1, 2], MatchKind::Indentation)),
        ("a \nb\na  \n", "a\t", many(2, &[1, 3], MatchKind::TrailingWhitespace)),
    ] {
        assert_eq!(edit(file.as_bytes(), old, "z", false).unwrap_err(), refused, "{file:?}");
    }
    // A place where the new text cannot be shifted counts, too.
    let refused = edit(b"  a\na\n", "    a", "  b", false).unwrap_err();
    assert_eq!(refused, many(2, &[1, 2], MatchKind::Indentation));
    let file = "a".repeat(20_000);
    let Err(ReplaceError::Many { count, or_more, lines, .. }) =
        edit(file.as_bytes(), "a", "b", false)
    else {
        panic!("found once")
    };
    assert_eq!((count, or_more, lines.len()), (20_000, false, MAX_NAMED));
}

#[test]
fn all_goes_from_left_to_right_without_overlap() {
    let replaced = edit(b"aaaa\na\n", "aa", "b", true).unwrap();
    assert_eq!((replaced.bytes.as_slice(), replaced.count), (&b"bb\na\n"[..], 2));
    let replaced = edit(b"x\ny\nx\n", "x\n", "1\n2\n", true).unwrap();
    assert_eq!(replaced.lines, [(1, 2), (4, 5)]);
    assert_eq!(edit(b"a \n", "a\t", "b", true).unwrap_err(), ReplaceError::NotFound);
}

#[test]
fn line_ends_are_those_of_the_lines_replaced() {
    for (file, old, new, after) in [
        ("a\r\nb\r\n", "a", "a\nx", "a\r\nx\r\nb\r\n"),
        ("a\nb\r\nc\n", "b", "x\ny", "a\nx\ny\r\nc\n"),
        ("a\r\nb\nc", "c", "x\ny", "a\r\nb\nx\ny"),
        ("a\r\nb", "a", "x\ny", "x\r\ny\r\nb"),
        ("a", "a", "x\r\ny", "x\ny"),
        ("a\nb\r\nc\r\n", "a\nb\nc\n", "1\n2\n3\n4\n", "1\n2\r\n3\r\n4\r\n"),
    ] {
        let replaced = edit(file.as_bytes(), old, new, false).unwrap();
        assert_eq!(str::from_utf8(&replaced.bytes).unwrap(), after, "{file:?} {old:?}");
    }
    assert_eq!(edit(b"a\nb\n", "a\nb", "a\r\nb", false).unwrap_err(), ReplaceError::Same);
}

#[test]
fn text_outside_an_edit_is_not_encoded_again() {
    // A byte that is invalid in UTF-8 is within the replaced text.
    let replaced = edit("gr\u{fc}n\n".as_bytes(), "gr", "GR", false).unwrap();
    assert_eq!(replaced.bytes, "GR\u{fc}n\n".as_bytes());
    let file = ["gr\u{fc}n ".as_bytes(), b"\xFF end\n"].concat();
    let replaced = edit(&file, "gr\u{fc}n \u{fffd} end", "gr\u{fc}n \u{fffd} END", false).unwrap();
    assert_eq!(replaced.bytes, ["gr\u{fc}n ".as_bytes(), b"\xFF END\n"].concat());
    let latin = b"F\xFCr die \xDCbung: gr\xF6\xDFer, sch\xF6ner\n";
    let replaced = edit(latin, "gr\u{f6}\u{df}er", "kl\u{fc}ger", false).unwrap();
    assert_eq!(replaced.bytes, b"F\xFCr die \xDCbung: kl\xFCger, sch\xF6ner\n");
    let refused = edit(latin, "die", "\u{65e5}", false).unwrap_err();
    assert!(matches!(refused, ReplaceError::Unmappable(_)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn everything_outside_the_span_stays(
        before in "[ab \u{e9}\r\n]{0,30}",
        old in "[xy\u{4e2d}\n]{1,8}",
        new in "[xyz\u{e9}\n]{0,8}",
        after in "[ab \u{e9}\r\n]{0,30}",
        label in prop::sample::select(vec!["utf-8", "utf-16", "utf-16be", "utf-32", "gb18030"]),
    ) {
        // The marks make the span unique.
        let (old, new) = (format!("<{old}>"), format!("<{new}>"));
        prop_assume!(old != new);
        let encoding = Encoding::for_label(label).unwrap();
        let whole = encoding.encode(&format!("{before}{old}{after}")).unwrap();
        let head = encoding.encode(&before).unwrap();
        let tail = Encoding { bom: false, ..encoding }.encode(&after).unwrap();
        let replacement = Replacement { old, new, all: false };
        let document = Document::new(&whole, encoding);
        let replaced = replace(&document, &replacement, MatchMode::Lenient, u64::MAX).unwrap();
        prop_assert!(replaced.bytes.starts_with(&head));
        prop_assert!(replaced.bytes.ends_with(&tail));
        let text = Document::new(&replaced.bytes, encoding).text().to_owned();
        prop_assert_eq!(text, fold_line_endings(&format!("{before}{}{after}", replacement.new)).into_owned());
        prop_assert_eq!(replaced.match_kind, MatchKind::Exact);
    }

    #[test]
    fn any_edit_of_any_bytes_is_made_or_refused(
        bytes: Vec<u8>,
        old in "[a-c \t\n\r\u{fffd}]{1,5}",
        new in "[a-c \t\n\r]{0,5}",
        all: bool,
    ) {
        if let crate::Content::Text(encoding) = sniff(&bytes, true) {
            let replacement = Replacement { old, new, all };
            let _ = replace(&Document::new(&bytes, encoding), &replacement, MatchMode::Lenient, u64::MAX);
        }
    }

    #[test]
    fn an_edit_and_its_reverse_are_nothing(
        lines in prop::collection::vec("[ab\t ]{0,6}", 1..8),
        at: prop::sample::Index,
        new in "[xyz]{1,5}",
        crlf: bool,
    ) {
        let end = if crlf { "\r\n" } else { "\n" };
        let number = at.index(lines.len());
        let mut lines = lines;
        lines[number].push_str("<mark>");
        let file = lines.join(end);
        let there = edit(file.as_bytes(), "<mark>", &format!("<{new}>"), false).unwrap();
        let back = edit(&there.bytes, &format!("<{new}>"), "<mark>", false).unwrap();
        prop_assert_eq!(back.bytes, file.as_bytes());
        prop_assert_eq!(&there.lines, &vec![(number as u64 + 1, number as u64 + 1)]);
    }
}

#[test]
fn replacements_in_order_work_on_each_others_results() {
    let order = |edits: &[(&str, &str)]| {
        let edits: Vec<_> = edits
            .iter()
            .map(|(old, new)| Replacement { old: (*old).into(), new: (*new).into(), all: false })
            .collect();
        let file = b"one\ntwo\nthree\n";
        replace_in_order(file, Encoding::UTF_8, &edits, MatchMode::Lenient, u64::MAX, &|| true)
    };
    let edited = order(&[("two", "2\n2"), ("one", "0\n1"), ("2\n2", "zwei")]).unwrap();
    assert_eq!(edited.bytes, b"0\n1\nzwei\nthree\n");
    assert_eq!(edited.lines, [(3, 4), (1, 2), (3, 3)]);
    let failed = order(&[("two", "2"), ("two", "3")]).unwrap_err();
    assert_eq!(
        (failed.number, failed.why, failed.bytes),
        (2, ReplaceError::NotFound, b"one\n2\nthree\n".to_vec())
    );
}

#[test]
fn what_would_grow_too_large_is_refused_before_it_is_made() {
    let file = "a\n".repeat(5000);
    let replacement = Replacement { old: "a".into(), new: "b".repeat(1_000_000), all: true };
    let document = Document::new(file.as_bytes(), Encoding::UTF_8);
    let refused = replace(&document, &replacement, MatchMode::Lenient, 100_000_000).unwrap_err();
    assert!(matches!(refused, ReplaceError::TooLarge { .. }));
    // Each line of the new text would have the same large indentation as the old one.
    let file = format!("{}a \n", " ".repeat(1_000));
    let (old, new) = ("\ta \n".into(), "\tb\n".repeat(1_000));
    let replacement = Replacement { old, new, all: false };
    let document = Document::new(file.as_bytes(), Encoding::UTF_8);
    let refused = replace(&document, &replacement, MatchMode::Lenient, 100_000).unwrap_err();
    assert!(matches!(refused, ReplaceError::TooLarge { .. }), "{refused:?}");
}

#[test]
fn what_counts_is_how_large_the_file_becomes() {
    let utf16 = Encoding::for_label("utf-16le").unwrap();
    let cyrillic = Encoding::for_label("windows-1251").unwrap();
    for (text, old, new, encoding, limit, fits) in [
        // Two bytes for each letter.
        ("a".repeat(99) + "x", "x".to_owned(), "y".repeat(10), utf16, 217, false),
        ("a".repeat(99) + "x", "x".to_owned(), "y".repeat(10), utf16, 218, true),
        // Common text counts as well.
        ("a".repeat(100), "a".repeat(100), "a".repeat(150), Encoding::UTF_8, 149, false),
        ("a".repeat(100), "a".repeat(100), "a".repeat(150), Encoding::UTF_8, 150, true),
        // One byte for a letter that has two in UTF-8.
        ("\u{434}".repeat(99) + "x", "x".to_owned(), "y".repeat(2), cyrillic, 100, false),
        ("\u{434}".repeat(99) + "x", "x".to_owned(), "y".repeat(2), cyrillic, 101, true),
    ] {
        let bytes = encoding.encode(&text).unwrap();
        let replacement = Replacement { old, new, all: false };
        let document = Document::new(&bytes, encoding);
        let made = replace(&document, &replacement, MatchMode::Lenient, limit);
        match made {
            Ok(made) => assert!(fits && made.bytes.len() as u64 == limit, "{encoding:?}"),
            Err(refused) => {
                assert!(!fits, "{encoding:?}");
                assert_eq!(refused, ReplaceError::TooLarge { size: limit + 1 }, "{encoding:?}");
            }
        }
    }
}

#[test]
fn nothing_is_replaced_once_nobody_waits() {
    let asked = std::cell::Cell::new(0);
    let edits: Vec<_> = ["a", "b", "c", "d"]
        .map(|old| Replacement { old: old.into(), new: old.repeat(2), all: false })
        .into();
    let failed = replace_in_order(
        b"a\nb\nc\nd\n",
        Encoding::UTF_8,
        &edits,
        MatchMode::Lenient,
        u64::MAX,
        &|| {
            asked.set(asked.get() + 1);
            asked.get() < 3
        },
    )
    .unwrap_err();
    assert_eq!((failed.number, failed.why, asked.get()), (3, ReplaceError::TimedOut, 3));
    assert_eq!(failed.bytes, b"aa\nbb\nc\nd\n");
}

#[test]
fn long_lines_and_many_places_take_no_longer_than_they_must() {
    // Each of these took quadratic time before.
    let long = format!("head\r\n{}\r\n", "var x; ".repeat(100_000));
    let replaced = edit(long.as_bytes(), "var", "let", true).unwrap();
    assert_eq!(replaced.count, 100_000);
    let one_line = "var x;\t".repeat(300_000);
    assert_eq!(
        edit(one_line.as_bytes(), " var", "let", false).unwrap_err(),
        ReplaceError::NotFound
    );
    let repeated = "aaaa\n".repeat(100_000);
    let old = "aaaa\n".repeat(500) + "b\n";
    assert_eq!(edit(repeated.as_bytes(), &old, "x", false).unwrap_err(), ReplaceError::NotFound);
    let edits =
        ["a", "b"].map(|old| Replacement { old: old.into(), new: "c\nc".into(), all: true });
    let file = "a b\n".repeat(20_000);
    let (file, utf8) = (file.as_bytes(), Encoding::UTF_8);
    let made = replace_in_order(file, utf8, &edits, MatchMode::Lenient, u64::MAX, &|| true);
    assert_eq!(made.unwrap().counts, [20_000, 20_000]);
}

#[test]
fn more_than_can_be_replaced_at_once_is_refused() {
    let file = "a".repeat(MAX_REPLACEMENTS + 5);
    let refused = edit(file.as_bytes(), "a", "b", true).unwrap_err();
    let count = MAX_REPLACEMENTS + 5;
    assert!(
        matches!(refused, ReplaceError::Many { count: all, or_more: false, .. } if all == count)
    );
}
