//! The closest miss: where a text that was not found would almost have been, and why it is not.
//!
//! Only ever told, never acted on. The work is bounded, however large the file and the text.

use std::collections::HashMap;
use std::fmt::Write as _;

use memchr::memmem;

use crate::indent::indentation;
use crate::locate::BLANKS;
use crate::replace::folded;

/// How much of a large file is looked at line by line. Lines that stand in it word for word are
/// found anywhere.
const LOOKED_AT: usize = 8 * 1024 * 1024;
/// How much of the text is looked for: enough to know a region by.
const WANTED_LINES: usize = 200;
/// How much of a region is compared with it.
const REGION_BYTES: usize = 64 * 1024;
/// Lines of the file that are compared by likeness, where nothing better is found, and how many bytes of
/// both sides are: pairs of letters are counted, which takes its time.
const COMPARED: usize = 20_000;
const COMPARED_BYTES: usize = 4 * 1024 * 1024;
/// Places that are weighed against each other.
const CANDIDATES: usize = 50;
/// Lines of the region that are shown.
const SHOWN: usize = 12;
/// Lines for which it is said why they differ.
const EXPLAINED: usize = 4;
/// Characters of a line that are shown.
const LINE: usize = 200;
/// Of a longer line it is not said why it differs.
const LONG_LINE: usize = 64 * 1024;

/// What to tell about a text that is not in a file: the nearest region with line numbers and why it
/// differs, and whether the new text is there already. `None` if nothing is near.
pub fn nearest(text: &str, old: &str, new: &str) -> Option<String> {
    let (old, new) = (folded(old), folded(new));
    let mut told = String::new();
    if let Some(at) = already(text, &new) {
        let line = line_number(text, at);
        writeln!(told, "the new text is there already, on line {line}").expect(INFALLIBLE);
    }
    let old: Vec<&str> = old.strip_suffix('\n').unwrap_or(&old).split('\n').collect();
    if let Some(start) = best_place(text, &old[..old.len().min(WANTED_LINES)]) {
        tell_region(text, start, &old, &mut told);
    }
    (!told.is_empty()).then(|| told.trim_end().to_owned())
}

const INFALLIBLE: &str = "a String takes anything";

fn already(text: &str, new: &str) -> Option<usize> {
    // Short texts are everywhere, and prove nothing.
    (new.trim().len() >= 8).then(|| memmem::find(text.as_bytes(), new.as_bytes()))?
}

fn line_number(text: &str, at: usize) -> usize {
    memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count() + 1
}

fn line_start(text: &str, at: usize) -> usize {
    memchr::memrchr(b'\n', &text.as_bytes()[..at]).map_or(0, |lf| lf + 1)
}

/// Where the region starts that has most lines in common with `old`.
fn best_place(text: &str, old: &[&str]) -> Option<usize> {
    let mut candidates = standing_word_for_word(text, old);
    if candidates.is_empty() {
        candidates = standing_nearly(text, old);
    }
    if candidates.is_empty() {
        candidates.extend(most_alike(text, old));
    }
    let score = |start: &usize| {
        let region = beginning_of(&text[*start..], REGION_BYTES);
        let pairs = region.split('\n').zip(old);
        pairs
            .map(
                |(found, old)| {
                    if found == *old { 3 } else { 2 * usize::from(plain(found) == plain(old)) }
                },
            )
            .sum::<usize>()
    };
    // Of equals the first.
    candidates.sort_unstable();
    candidates.dedup();
    candidates.into_iter().rev().max_by_key(score)
}

/// Regions in which a line of `old` stands as it is, but for blanks around it.
fn standing_word_for_word(text: &str, old: &[&str]) -> Vec<usize> {
    let mut lines: Vec<(usize, &str)> = old
        .iter()
        .map(|line| unnumbered(line).trim())
        .enumerate()
        .filter(|(_, line)| line.len() > 3)
        .collect();
    lines.sort_by_key(|(_, line)| std::cmp::Reverse(line.len()));
    let mut starts = Vec::new();
    for (number, line) in lines.into_iter().take(3) {
        let places = memmem::find_iter(text.as_bytes(), line.as_bytes()).take(CANDIDATES);
        starts.extend(places.map(|at| back(text, line_start(text, at), number)));
    }
    starts
}

/// The start of the line `lines` lines above the one that starts at `start`, or of the first line.
fn back(text: &str, mut start: usize, lines: usize) -> usize {
    for _ in 0..lines {
        if start > 0 {
            start = line_start(text, start - 1);
        }
    }
    start
}

fn beginning_of(text: &str, most_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(most_bytes)]
}

/// The beginning of a file, as lines with their places.
fn beginning(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    beginning_of(text, LOOKED_AT).split('\n').map(move |line| {
        let start = at;
        at += line.len() + 1;
        (start, line)
    })
}

/// Regions in which a line of `old` stands but for case, quotes and blanks.
fn standing_nearly(text: &str, old: &[&str]) -> Vec<usize> {
    let wanted: HashMap<String, usize> = old
        .iter()
        .enumerate()
        .map(|(number, line)| (plain(line), number))
        .filter(|(line, _)| line.len() > 3)
        .collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let found =
        beginning(text).filter_map(|(start, line)| Some((start, *wanted.get(&plain(line))?)));
    found.take(CANDIDATES).map(|(start, number)| back(text, start, number)).collect()
}

/// The region of the line that is most like the longest line of `old`.
fn most_alike(text: &str, old: &[&str]) -> Option<usize> {
    /// Less than this share of letter pairs in common is no likeness.
    const ALIKE: f64 = 0.5;
    let (number, wanted) =
        old.iter().map(|line| plain(line)).enumerate().max_by_key(|(_, l)| l.len())?;
    let likeness = |line: &str| strsim::sorensen_dice(&wanted, &plain(line));
    let mut compared = 0;
    beginning(text)
        .take(COMPARED)
        .filter(|(_, line)| line.len() < 4 * wanted.len() + 40)
        .take_while(|(_, line)| {
            compared += wanted.len() + line.len();
            compared <= COMPARED_BYTES
        })
        .map(|(start, line)| (likeness(line), start))
        .filter(|(score, _)| *score >= ALIKE)
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
        .map(|(_, start)| back(text, start, number))
}

/// A line less everything that is easily got wrong.
fn plain(line: &str) -> String {
    /// More of a line than this is not needed to know it again.
    const ENOUGH: usize = 2_000;
    let line: String = unnumbered(line).chars().take(ENOUGH).collect();
    let line = unquoted(&line).to_lowercase();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Curly quotes made straight.
fn unquoted(line: &str) -> String {
    let straight = |c| match c {
        '\u{2018}' | '\u{2019}' | '\u{201a}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{201e}' => '"',
        other => other,
    };
    line.chars().map(straight).collect()
}

/// A line less the number and tab that a reading tool puts before it.
fn unnumbered(line: &str) -> &str {
    match line.split_once('\t') {
        Some((number, rest)) => match number.trim_start_matches(' ') {
            digits if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                rest
            }
            _ => line,
        },
        None => line,
    }
}

fn tell_region(text: &str, start: usize, old: &[&str], told: &mut String) {
    let first = line_number(text, start);
    let lines: Vec<&str> = text[start..].split('\n').take(old.len().min(SHOWN)).collect();
    writeln!(told, "nearest is line {first}:").expect(INFALLIBLE);
    let mut reasons = Vec::new();
    for (number, (line, old)) in (first..).zip(lines.iter().zip(old)) {
        let reason = reason(old, line);
        let by_blanks = reason
            .as_deref()
            .is_some_and(|reason| reason.contains("blank") || reason.contains("indent"));
        let shown = if by_blanks { visible(line) } else { (*line).to_owned() };
        let shown: String = shown.chars().take(LINE).collect();
        writeln!(told, "{number:>6}\t{shown}").expect(INFALLIBLE);
        reasons.extend(reason.map(|reason| format!("line {number}: {reason}")));
    }
    if old.len() > lines.len() && lines.len() == SHOWN {
        writeln!(told, "(and {} more lines)", old.len() - SHOWN).expect(INFALLIBLE);
    }
    for reason in reasons.iter().take(EXPLAINED) {
        writeln!(told, "{reason}").expect(INFALLIBLE);
    }
}

/// Blanks at both ends of a line made visible.
fn visible(line: &str) -> String {
    let (indent, rest) = indentation(line);
    let body = rest.trim_end_matches(BLANKS);
    let show = |blanks: &str| blanks.replace('\t', "\u{2192}").replace(' ', "\u{b7}");
    format!("{}{body}{}", show(indent), show(&rest[body.len()..]))
}

/// Why a line of the file is not the line that was looked for, where that can be said in a few words.
fn reason(old: &str, found: &str) -> Option<String> {
    if old == found {
        return None;
    }
    if old.len().max(found.len()) > LONG_LINE {
        return Some("the text differs".into());
    }
    let bare = unnumbered(old);
    let reason = if bare != old && (bare == found || bare.trim() == found.trim()) {
        "leave out the line number and the tab after it, they are not in the file".into()
    } else if old.trim_end_matches(BLANKS) == found.trim_end_matches(BLANKS) {
        "blanks at the end of the line differ".into()
    } else if indentation(old).1 == indentation(found).1 {
        let named = |line| match indentation(line).0 {
            "" => "none".to_owned(),
            indent => format!("`{}`", visible(indent)),
        };
        format!("the indentation is {}, not {}", named(found), named(old))
    } else if old.trim_matches(BLANKS) == found.trim_matches(BLANKS) {
        "indentation and blanks at the end differ".into()
    } else if unquoted(old) == unquoted(found) {
        "the quotes are of another kind (curly or straight)".into()
    } else if old.replace('\u{a0}', " ") == found.replace('\u{a0}', " ") {
        "a blank is a no-break space (U+00A0) on one side".into()
    } else if old.to_lowercase() == found.to_lowercase() {
        "upper and lower case differ".into()
    } else if old.split_whitespace().eq(found.split_whitespace()) {
        "the blanks within the line differ".into()
    } else if !old.trim().is_empty() && found.contains(old.trim()) {
        "this is only a part of the line".into()
    } else if plain(old) == plain(found) {
        "case, quotes or blanks differ".into()
    } else {
        "the text differs".into()
    };
    Some(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_named() {
        for (file, old, told) in [
            (
                "x\n\tif a:\n\t\tb\n",
                "    if a:\n      b",
                "the indentation is `\u{2192}`, not `\u{b7}\u{b7}\u{b7}\u{b7}`",
            ),
            ("say(\u{201c}hi\u{201d})\n", "say(\"hi\")", "the quotes are of another kind"),
            ("a\u{a0}long line\n", "a long line", "no-break space"),
            ("Value = one\n", "value = one", "upper and lower case differ"),
            ("first\n    call(one)\n", "     2\t    call(one)", "leave out the line number"),
            ("foo(bar,  baz)\n", "foo(bar, baz)", "the blanks within the line differ"),
            (
                "let total = sum(items) + 1;\nb\n",
                "total = sum(items)\nc",
                "only a part of the line",
            ),
            ("def connect(host, port):\n", "def connect(host, prot):", "the text differs"),
        ] {
            let found = nearest(file, old, "").unwrap_or_default();
            assert!(found.contains(told), "{old:?}: {found}");
        }
    }

    #[test]
    fn the_region_is_shown_with_line_numbers() {
        let file = "a\nb\nfn one() {\n\treturn 1;\n}\n";
        let told = nearest(file, "fn one() {\n    return 1;\n}", "x").unwrap();
        let expected = "nearest is line 3:\n     3\tfn one() {\n     4\t\u{2192}return 1;\n     5\t}\n\
                        line 4: the indentation is `\u{2192}`, not `\u{b7}\u{b7}\u{b7}\u{b7}`";
        assert_eq!(told, expected);
    }

    #[test]
    fn a_new_text_that_is_there_already_is_said() {
        let told =
            nearest("one\nlet x = compute(2);\n", "let x = compute(1);", "let x = compute(2);");
        assert!(told.unwrap().starts_with("the new text is there already, on line 2\n"));
    }

    #[test]
    fn nothing_near_is_nothing_told() {
        assert_eq!(nearest("alpha\nbeta\n", "something else entirely", "x"), None);
        assert_eq!(nearest("", "a", "b"), None);
    }

    #[test]
    fn a_large_text_is_told_about_as_soon_as_a_small_one() {
        // A hundred places, each with a hundred thousand lines to compare.
        let file = "let value = compute(1);\n".repeat(200_000);
        let old = format!("{}the end\n", "let value = compute(1);\n".repeat(100_000));
        let begin = std::time::Instant::now();
        let told = nearest(&file, &old, "").unwrap();
        assert!(told.starts_with("nearest is line 1:"), "{told}");
        assert!(told.contains("(and 99989 more lines)"), "{told}");
        // Lines as long as files, and nothing like them.
        let long = |letters: &str| format!("{}\n", letters.repeat(700)).repeat(20_000);
        assert_eq!(nearest(&long("abc"), &long("xyz")[..2_101], ""), None);
        assert!(begin.elapsed() < std::time::Duration::from_secs(20), "{:?}", begin.elapsed());
    }

    #[test]
    fn the_place_with_most_in_common_is_the_nearest() {
        let file = "return 1;\n\nfn two() {\n    setup();\n    return 1;\n}\n";
        let told = nearest(file, "fn two() {\n    setup( );\n    return 1;\n}\n", "").unwrap();
        assert!(told.starts_with("nearest is line 3:"), "{told}");
    }
}
