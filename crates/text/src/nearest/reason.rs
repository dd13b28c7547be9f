//! Explains how a region of a file differs from the text of an edit.
//!
//! There is one reason for each kind of difference, however many lines have it. The most telling kind comes first.
//! Invisible characters are named by their code points.

use std::fmt::Write as _;
use std::ops::Range;

use super::fold::{Fold, Folded, Folds, is_invisible, is_odd_space};
use crate::indent::indentation;

/// A kind of difference. The most helpful ones come first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Kind {
    Placeholder,
    LineNumbers,
    DiffMarkers,
    LineBreaks,
    Escapes,
    Entities,
    Order,
    MissingInFile,
    MissingInText,
    Invisible,
    Quotes,
    Spaces,
    LookAlikes,
    Width,
    Form,
    Case,
    Text,
    Part,
    InnerWhitespace,
    Indentation,
    TrailingWhitespace,
}

/// A difference on one line.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    pub(super) kind: Kind,
    /// The line of the file, or the line of the text if the file does not have it.
    pub(super) line: usize,
    pub(super) detail: String,
}

/// The maximum number of named kinds of differences.
const MAX_REASONS: usize = 6;
/// The maximum number of named line ranges for one kind.
const MAX_RANGES: usize = 5;
/// The maximum number of quoted characters of a word.
const MAX_WORD: usize = 40;
/// A longer segment is only reported as different.
const MAX_COMPARED: usize = 8 * 1024;
/// A longer segment of the file is not searched for the text.
const MAX_FOLDED: usize = 1024 * 1024;

/// The reasons as sentences, one on each line.
pub(super) fn explanations(mut differences: Vec<Difference>) -> Vec<String> {
    differences.sort_by_key(|difference| (difference.kind, difference.line));
    let by_kind: Vec<&[Difference]> =
        differences.chunk_by(|one, other| one.kind == other.kind).collect();
    by_kind.iter().take(MAX_REASONS).map(|alike| one_kind(alike)).collect()
}

fn one_kind(alike: &[Difference]) -> String {
    let lines = ranges(alike.iter().map(|difference| difference.line));
    let several = lines.contains([',', '-']);
    let plural = if several { "s" } else { "" };
    let Difference { kind, line, detail } = &alike[0];
    let are = if several { "are" } else { "is" };
    match kind {
        Kind::Placeholder | Kind::Order => {
            alike.iter().map(|difference| &*difference.detail).collect::<Vec<_>>().join("\n")
        }
        Kind::LineBreaks if alike.iter().all(|difference| difference.detail == *detail) => {
            detail.clone()
        }
        Kind::MissingInFile => {
            format!("line{plural} {lines} of the text {are} missing in the file")
        }
        Kind::MissingInText => format!("line{plural} {lines} {are} missing in the text"),
        _ if alike.iter().all(|difference| difference.detail == *detail) => {
            format!("line{plural} {lines}: {detail}")
        }
        Kind::Indentation if several => {
            format!("lines {lines}: the indentation differs (line {line}: {detail})")
        }
        _ => {
            let mut out = String::new();
            let mut details: Vec<&str> = Vec::new();
            for difference in alike {
                if details.len() < 3 && !details.contains(&&*difference.detail) {
                    details.push(&difference.detail);
                    let lines = alike.iter().filter(|other| other.detail == difference.detail);
                    let lines = ranges(lines.map(|other| other.line));
                    let plural = if lines.contains([',', '-']) { "s" } else { "" };
                    let _ = writeln!(out, "line{plural} {lines}: {}", difference.detail);
                }
            }
            out.trim_end().to_owned()
        }
    }
}

/// Line numbers as ranges: `2-4, 7`.
fn ranges(lines: impl Iterator<Item = usize>) -> String {
    let mut all: Vec<Range<usize>> = Vec::new();
    for line in lines {
        match all.last_mut() {
            Some(last) if line == last.end => last.end += 1,
            Some(last) if last.contains(&line) => {}
            _ => all.push(line..line + 1),
        }
    }
    let one = |range: &Range<usize>| match range.len() {
        1 => range.start.to_string(),
        _ => format!("{}-{}", range.start, range.end - 1),
    };
    let more = all.len() > MAX_RANGES;
    let mut named: Vec<String> = all.iter().take(MAX_RANGES).map(one).collect();
    if more {
        named.push("...".into());
    }
    named.join(", ")
}

/// Finds how a segment of the text differs from that of the file.
pub(super) fn differences(text: &str, file: &str, line: usize, found: &mut Vec<Difference>) {
    if text == file {
        return;
    }
    let mut push = |kind, detail| found.push(Difference { kind, line, detail });
    if text.len() > MAX_COMPARED || file.len() > MAX_FOLDED {
        return push(Kind::Text, "the text differs".into());
    }
    let folded = [text, file].map(|line| Folded::new(line, Folds::ALL));
    if folded[0].text == folded[1].text {
        for fold in Fold::EACH {
            let [one, other] = [text, file].map(|line| Folded::new(line, Folds::ALL.without(fold)));
            if one.text != other.text {
                let (kind, detail) = detail(fold, (text, &one), (file, &other));
                push(kind, detail);
            }
        }
    } else if let Some(part) = part_of(&folded[0], &folded[1]) {
        push(Kind::Part, "the text has only part of the line".into());
        let trim = |line: &str| line.trim_matches([' ', '\t']).to_owned();
        differences(&trim(text), &trim(&file[part]), line, found);
    } else if file.len() > MAX_COMPARED {
        push(Kind::Text, "the text differs".into());
    } else {
        push(Kind::Text, words_that_differ((text, &folded[0]), (file, &folded[1])));
        let indents = [text, file].map(|line| indentation(line).0);
        // The text may start in the middle of a line.
        if indents[0] != indents[1] && !indents[0].is_empty() {
            push(Kind::Indentation, indentation_detail(text, file));
        }
    }
}

/// The part of the file's segment that equals the text, once both are folded.
pub(super) fn part_of(text: &Folded, file: &Folded) -> Option<Range<usize>> {
    if text.text.is_empty() {
        return None;
    }
    let at = file.text.find(&text.text)?;
    let (first, last) = (file.origin(at)?, file.origin(at + text.text.len() - 1)?);
    Some(first.start..last.end)
}

/// The length of the common prefix of two texts in bytes.
fn common_prefix(one: &str, other: &str) -> usize {
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other);
    same.map(|(c, _)| c.len_utf8()).sum()
}

/// The part of a line that a byte of its folded text comes from.
fn token_at<'l>((line, folded): (&'l str, &Folded), at: usize) -> &'l str {
    folded.origin(at).map_or("", |from| &line[from])
}

fn detail(fold: Fold, text: (&str, &Folded), file: (&str, &Folded)) -> (Kind, String) {
    let at = common_prefix(&text.1.text, &file.1.text);
    let place = |side: (&str, &Folded)| side.1.origin(at).map_or(side.0.len(), |from| from.start);
    let (in_text, in_file) = (place(text), place(file));
    let (text_token, file_token) = (token_at(text, at), token_at(file, at));
    let swapped = || format!("{} where the file has {}", named(text_token), named(file_token));
    match fold {
        Fold::Escapes => (Kind::Escapes, {
            let sides = [(text.0, in_text), (file.0, in_file)];
            let [mut one, mut other] = sides.map(|(line, at)| escape_at(line, at));
            // A tab is folded as whitespace, so it is before the offset.
            let tab = |escape: &str| escape.starts_with('\\') && escape.ends_with('t');
            if tab(&one) && !tab(&other) && file.0[..in_file].ends_with([' ', '\t']) {
                other = file.0[..in_file].chars().next_back().into_iter().collect();
            } else if tab(&other) && !tab(&one) && text.0[..in_text].ends_with([' ', '\t']) {
                one = text.0[..in_text].chars().next_back().into_iter().collect();
            }
            written_out(&one, &other)
        }),
        Fold::Entities => (Kind::Entities, {
            let [one, other] =
                [(text.0, in_text), (file.0, in_file)].map(|(line, at)| entity_at(line, at));
            written_out(&one, &other)
        }),
        Fold::Invisible => (Kind::Invisible, {
            let in_the_file = file_token.chars().any(is_invisible);
            let (line, at, token) = if in_the_file {
                (file.0, in_file, file_token)
            } else {
                (text.0, in_text, text_token)
            };
            let code = token.chars().find(|c| is_invisible(*c)).map_or(String::new(), code_point);
            let after = match line[..at].chars().next_back() {
                Some(c) => format!("after \"{}\"", visible(&c.to_string())),
                None => "at the start of the line".into(),
            };
            let (has, lacks) = if in_the_file { ("file", "text") } else { ("text", "file") };
            format!("{code} {after} in the {has}, not in the {lacks}")
        }),
        Fold::Spaces => (Kind::Spaces, {
            // Ordinary spaces are folded, so they are before the offset.
            let space = |line: &str, at: usize, token: &str| match line[..at].chars().next_back() {
                _ if token.starts_with(is_odd_space) => named(token),
                Some(c @ (' ' | '\t')) => named(&c.to_string()),
                _ => named(token),
            };
            let text = space(text.0, in_text, text_token);
            format!("{text} where the file has {}", space(file.0, in_file, file_token))
        }),
        Fold::LookAlikes => (Kind::LookAlikes, swapped()),
        Fold::Width => (Kind::Width, format!("{} (full-width or compatibility form)", swapped())),
        Fold::Form => (Kind::Form, {
            let codes = |token: &str| token.chars().map(code_point).collect::<Vec<_>>().join(" ");
            let (text, file) = (codes(text_token), codes(file_token));
            format!("another Unicode form: the text has {text}, the file {file}")
        }),
        Fold::Quotes => (Kind::Quotes, swapped()),
        Fold::Case => (Kind::Case, {
            let (text, file) = (word_around(text.0, in_text), word_around(file.0, in_file));
            format!("letter case differs: \"{text}\" where the file has \"{file}\"")
        }),
        Fold::InnerWhitespace => {
            (Kind::InnerWhitespace, "whitespace inside the line differs".into())
        }
        Fold::Indentation => (Kind::Indentation, indentation_detail(text.0, file.0)),
        Fold::TrailingWhitespace => {
            (Kind::TrailingWhitespace, "whitespace at the end of the line differs".into())
        }
    }
}

fn indentation_detail(text: &str, file: &str) -> String {
    let named = |line| match indentation(line).0 {
        "" => "none".to_owned(),
        indent => format!("`{}`", cut(&super::mark_whitespace(indent))),
    };
    format!("the indentation is {}, not {}", named(file), named(text))
}

/// Two spellings of one character or line break, one of which is an escape.
pub(super) fn written_out(text: &str, file: &str) -> String {
    let escaped = |token: &str| token.len() > 1 && token.starts_with(['\\', '&']);
    match (escaped(text), escaped(file)) {
        (false, true) => {
            format!("the file has {} written out; the text has {}", named(file), named(text))
        }
        _ => format!("the text has {} written out; the file has {}", named(text), named(file)),
    }
}

/// The escape at an offset of a line, or the character there if it is not in an escape.
fn escape_at(line: &str, at: usize) -> String {
    let start = line[..at].trim_end_matches('\\').len();
    let after = line[start..].trim_start_matches('\\');
    let backslashes = line[start..].len() - after.len();
    let take = match after.chars().next() {
        Some('u') if backslashes > 0 => 5,
        _ => 1,
    };
    // Doubled backslashes before a letter that needs none.
    let plain = |c: char| !matches!(c, 't' | 'u' | '"' | '\'' | '`' | 'n' | 'r' | '/' | '$');
    if backslashes > 0 && after.chars().next().is_none_or(plain) {
        return line[start..start + backslashes].to_owned();
    }
    line[start..].chars().take(backslashes + take).collect()
}

/// The entity at an offset of a line, or the character there if it is not in an entity.
fn entity_at(line: &str, at: usize) -> String {
    let before = line[..at].trim_end_matches([' ', '\t']);
    let start = if before.ends_with('&') { before.len() - 1 } else { at };
    let rest = &line[start..];
    match rest.bytes().take(12).position(|byte| byte == b';') {
        Some(end) if rest.starts_with('&') => rest[..=end].to_owned(),
        _ => rest.chars().take(1).collect(),
    }
}

/// One or two characters, with their code points if they look alike.
fn named(token: &str) -> String {
    match token {
        "" => "nothing".into(),
        " " => "a space".into(),
        "\t" => "a tab".into(),
        "\n" => "a line break".into(),
        "\r" => "a lone CR (U+000D)".into(),
        "\u{a0}" => "a no-break space (U+00A0)".into(),
        _ => {
            let mut chars = token.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) if is_odd_space(c) => format!("a space {}", code_point(c)),
                (Some(c), None) if is_invisible(c) || matches!(c, '\u{2028}' | '\u{2029}') => {
                    code_point(c)
                }
                (Some(c), None) if !c.is_ascii() => format!("{c} ({})", code_point(c)),
                _ => cut(&visible(token)),
            }
        }
    }
}

fn code_point(c: char) -> String {
    format!("U+{:04X}", u32::from(c))
}

/// The text, with invisible characters as code points.
fn visible(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if is_invisible(c) || is_odd_space(c) || matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
        {
            let _ = write!(out, "<{}>", code_point(c));
        } else {
            out.push(c);
        }
    }
    out
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_WORD) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The word at an offset of a line.
fn word_around(line: &str, at: usize) -> String {
    let start = line[..at].trim_end_matches(is_word).len();
    let end = line.len() - line[at..].trim_start_matches(is_word).len();
    cut(&visible(&line[start..end]))
}

/// The words of two lines between their common prefix and suffix.
fn words_that_differ(text: (&str, &Folded), file: (&str, &Folded)) -> String {
    let before = common_prefix(&text.1.text, &file.1.text);
    let backwards = text.1.text[before..].chars().rev().zip(file.1.text[before..].chars().rev());
    let same = backwards.take_while(|(one, other)| one == other);
    let after: usize = same.map(|(c, _)| c.len_utf8()).sum();
    let middle = |(line, folded): (&str, &Folded)| {
        let start = folded.origin(before).map_or(line.len(), |from| from.start);
        let last = folded.text.len() - after;
        let end =
            if last > before { folded.origin(last - 1).map_or(start, |to| to.end) } else { start };
        let end = end.max(start);
        // Whole words are easier to find in a line.
        let starts =
            line[start..].starts_with(is_word) || line[..end].ends_with(is_word) || start == end;
        let (mut from, mut to) = (start, end);
        if starts {
            from = line[..start].trim_end_matches(is_word).len();
            to = line.len() - line[end..].trim_start_matches(is_word).len();
        }
        cut(&visible(line[from..to].trim()))
    };
    match (middle(text), middle(file)) {
        (text, file) if text == file => "the text differs".into(),
        (text, file) if text.is_empty() => format!("{} is missing in the text", quoted(&file)),
        (text, file) if file.is_empty() => format!("{} is not in the file", quoted(&text)),
        (text, file) => format!("{} where the file has {}", quoted(&text), quoted(&file)),
    }
}

/// Words in quotes that do not occur in them.
fn quoted(words: &str) -> String {
    if words.contains('"') { format!("`{words}`") } else { format!("\"{words}\"") }
}

#[cfg(test)]
mod tests;
