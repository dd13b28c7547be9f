//! Folds away the differences that models get wrong, one kind at a time or all at once.
//!
//! Two lines resemble each other if they are the same once everything is folded (their *keys*). A
//! kind of difference is to blame if they differ once everything but that kind is folded.

use std::ops::Range;

use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfkc_quick};

/// A kind of difference between two lines.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Fold {
    /// `\"`, `\t`, `\u00e9`, doubled backslashes. A written out `\n` separates segments instead.
    Escapes,
    /// `&lt;`, `&#39;`
    Entities,
    /// Zero-width and control characters.
    Invisible,
    /// No-break and other spaces that are not U+0020.
    Spaces,
    /// Typographic quotes, dashes and dots, letters of other scripts that look like Latin ones.
    LookAlikes,
    /// Full-width and other compatibility characters.
    Width,
    /// Composed or decomposed accents.
    Form,
    /// `'`, `"` and a backtick.
    Quotes,
    /// Upper and lower case.
    Case,
    /// Spaces and tabs between other characters.
    InnerWhitespace,
    /// Spaces and tabs before the first other character.
    Indentation,
    /// Spaces and tabs after the last other character.
    TrailingWhitespace,
}

/// A set of folds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Folds(u16);

impl Folds {
    pub(super) const ALL: Self = Self(u16::MAX);

    pub(super) fn without(self, fold: Fold) -> Self {
        Self(self.0 & !(1 << fold as u16))
    }

    fn has(self, fold: Fold) -> bool {
        self.0 & (1 << fold as u16) != 0
    }
}

impl Fold {
    pub(super) const EACH: [Self; 12] = [
        Self::Escapes,
        Self::Entities,
        Self::Invisible,
        Self::Spaces,
        Self::LookAlikes,
        Self::Width,
        Self::Form,
        Self::Quotes,
        Self::Case,
        Self::InnerWhitespace,
        Self::Indentation,
        Self::TrailingWhitespace,
    ];
}

/// A character that takes no room on the screen, or that a terminal would obey.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}'
        | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{e0000}'..='\u{e0fff}')
}

/// A space that is neither U+0020 nor a tab.
pub(super) fn is_odd_space(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

/// The ASCII text that a character is easily taken for.
fn look_alike(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{2043}' => "-",
        '\u{2026}' => "...",
        '\u{2025}' => "..",
        '\u{2024}' => ".",
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' | '\u{2032}' | '\u{b4}' | '\u{2bc}' => {
            "'"
        }
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{ab}' | '\u{bb}' => "\"",
        '\u{2044}' | '\u{2215}' => "/",
        '\u{2217}' => "*",
        '\u{d7}' => "x",
        '\u{2236}' => ":",
        '\u{37e}' => ";",
        '\u{430}' | '\u{3b1}' => "a",
        '\u{435}' => "e",
        '\u{43e}' | '\u{3bf}' => "o",
        '\u{440}' | '\u{3c1}' => "p",
        '\u{441}' => "c",
        '\u{443}' => "y",
        '\u{445}' => "x",
        '\u{456}' => "i",
        '\u{458}' => "j",
        '\u{455}' => "s",
        '\u{410}' | '\u{391}' => "A",
        '\u{412}' | '\u{392}' => "B",
        '\u{415}' | '\u{395}' => "E",
        '\u{41a}' | '\u{39a}' => "K",
        '\u{41c}' | '\u{39c}' => "M",
        '\u{41d}' | '\u{397}' => "H",
        '\u{41e}' | '\u{39f}' => "O",
        '\u{420}' | '\u{3a1}' => "P",
        '\u{421}' => "C",
        '\u{422}' | '\u{3a4}' => "T",
        '\u{425}' | '\u{3a7}' => "X",
        '\u{406}' | '\u{399}' => "I",
        _ => return None,
    })
}

/// The folded line, for finding it again.
pub(super) fn key(line: &str, out: &mut String) {
    out.clear();
    let plain = |byte: u8| byte.is_ascii() && byte != b'\\' && byte != b'&';
    if line.bytes().all(plain) {
        for byte in line.bytes() {
            match byte {
                b'"' | b'`' => out.push('\''),
                b'!'..=b'~' => out.push(byte.to_ascii_lowercase() as char),
                _ => {}
            }
        }
    } else {
        each_piece(line, Folds::ALL, |_, piece| out.push_str(piece));
    }
}

/// The [`key`] of a segment.
pub(super) fn key_of(segment: &Segment<'_>) -> String {
    let mut out = String::new();
    key(segment.text, &mut out);
    out
}

/// A folded line that knows where its characters come from.
pub(super) struct Folded {
    pub(super) text: String,
    /// For each byte of the text, the place in the line that it comes from.
    origins: Vec<Range<usize>>,
}

impl Folded {
    pub(super) fn new(line: &str, folds: Folds) -> Self {
        let mut folded = Self { text: String::with_capacity(line.len()), origins: Vec::new() };
        each_piece(line, folds, |origin, piece| {
            folded.text.push_str(piece);
            folded.origins.resize(folded.text.len(), origin);
        });
        folded
    }

    /// Where a byte of the folded text comes from; `None` past its end.
    pub(super) fn origin(&self, at: usize) -> Option<Range<usize>> {
        self.origins.get(at).cloned()
    }
}

/// Calls back with each piece of a line and its folded text.
fn each_piece(line: &str, folds: Folds, mut emit: impl FnMut(Range<usize>, &str)) {
    let is_space = |c: char| c == ' ' || c == '\t' || is_odd_space(c);
    let indent = line.len() - line.trim_start_matches(is_space).len();
    let content = line.trim_end_matches(is_space).len();
    let mut folded = String::new();
    let mut at = 0;
    while at < line.len() {
        let (len, replaced) = token(&line[at..], folds);
        let raw = &line[at..at + len];
        folded.clear();
        fold_characters(replaced.as_deref().unwrap_or(raw), folds, &mut folded);
        let whitespace = if at >= content {
            Fold::TrailingWhitespace
        } else if at < indent {
            Fold::Indentation
        } else {
            Fold::InnerWhitespace
        };
        if folds.has(whitespace) {
            folded.retain(|c| c != ' ' && c != '\t');
        }
        emit(at..at + len, &folded);
        at += len;
    }
}

/// The length of the next token of a line, and its value if it is an escape or an entity.
fn token(rest: &str, folds: Folds) -> (usize, Option<String>) {
    if rest.starts_with('\\')
        && folds.has(Fold::Escapes)
        && let Some(escape) = escape(rest)
    {
        return (escape.0, Some(escape.1));
    }
    if rest.starts_with('&')
        && folds.has(Fold::Entities)
        && let Some((len, c)) = entity(rest)
    {
        return (len, Some(c.to_string()));
    }
    let mut chars = rest.char_indices();
    let first = chars.next().map_or('\0', |(_, c)| c);
    if first.is_ascii() && rest.as_bytes().get(1).is_none_or(u8::is_ascii) {
        return (1, None);
    }
    let joins = |c: char| is_combining_mark(c) || matches!(c, '\u{1161}'..='\u{11ff}');
    let end = chars.find(|(_, c)| !joins(*c)).map_or(rest.len(), |(at, _)| at);
    (end, None)
}

/// Backslashes and what follows them, as the characters they stand for. However many backslashes there
/// are, it is the same: they are doubled and halved on the way through JSON and shells.
fn escape(rest: &str) -> Option<(usize, String)> {
    let backslashes = rest.len() - rest.trim_start_matches('\\').len();
    let after = &rest[backslashes..];
    let hex = |from: usize, digits: usize| {
        let code = u32::from_str_radix(after.get(from..from + digits)?, 16).ok()?;
        Some((backslashes + from + digits, char::from_u32(code)?.to_string()))
    };
    Some(match after.chars().next() {
        None => (backslashes, String::new()),
        Some('t') => (backslashes + 1, "\t".into()),
        Some('u') => hex(1, 4).unwrap_or((backslashes, String::new())),
        Some('x') => hex(1, 2).unwrap_or((backslashes, String::new())),
        Some(_) => (backslashes, String::new()),
    })
}

/// An HTML entity, also if its ampersand was escaped again.
fn entity(rest: &str) -> Option<(usize, char)> {
    let mut body = &rest[1..];
    while let Some(again) = body.strip_prefix("amp;") {
        // `&amp;` alone stands for the ampersand.
        let Some(end) = again.find(';').filter(|end| *end <= 7) else { break };
        if end == 0 || !again[..end].bytes().all(|b| b.is_ascii_alphanumeric() || b == b'#') {
            break;
        }
        body = again;
    }
    let end = body.bytes().take(9).position(|byte| byte == b';')?;
    let name = &body[..end];
    let c = match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    };
    Some((rest.len() - body.len() + end + 1, c))
}

/// The folds of single characters and of those that join them.
fn fold_characters(raw: &str, folds: Folds, out: &mut String) {
    let composed = |form: &str| -> Option<String> {
        if folds.has(Fold::Form) && is_nfc_quick(form.chars()) != IsNormalized::Yes {
            return Some(form.nfc().collect());
        }
        None
    };
    let composed = composed(raw);
    for c in composed.as_deref().unwrap_or(raw).chars() {
        if is_odd_space(c) {
            out.push(if folds.has(Fold::Spaces) { ' ' } else { c });
        } else if is_invisible(c) {
            if !folds.has(Fold::Invisible) {
                out.push(c);
            }
        } else if let Some(alike) = look_alike(c) {
            if folds.has(Fold::LookAlikes) {
                alike.chars().for_each(|c| fold_ascii(c, folds, out));
            } else {
                fold_ascii(c, folds, out);
            }
        } else if folds.has(Fold::Width)
            && !c.is_ascii()
            && is_nfkc_quick(std::iter::once(c)) != IsNormalized::Yes
        {
            std::iter::once(c).nfkc().for_each(|c| fold_ascii(c, folds, out));
        } else {
            fold_ascii(c, folds, out);
        }
    }
}

fn fold_ascii(c: char, folds: Folds, out: &mut String) {
    match c {
        '"' | '`' if folds.has(Fold::Quotes) => out.push('\''),
        c if folds.has(Fold::Case) => out.extend(c.to_lowercase()),
        c => out.push(c),
    }
}

/// Bytes of a segment: a longer line is several segments, so that a line without end takes no more time and memory
/// than many lines.
const MAX_SEGMENT_BYTES: usize = 256 * 1024;

/// A part of a text between two line breaks of any kind, also those that are written out as `\n`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'t> {
    pub(super) start: usize,
    pub(super) text: &'t str,
    /// The line break after it; empty at the end of the text, and inside a line that is several segments.
    pub(super) line_break: &'t str,
}

/// The segments of a text; places are counted from `start`.
pub(super) fn segments(text: &str, start: usize) -> Segments<'_> {
    let bytes = text.as_bytes();
    let unusual = [&b"\xe2\x80\xa8"[..], b"\xe2\x80\xa9", b"\xc2\x85"];
    let unusual = unusual.iter().any(|needle| memchr::memmem::find(bytes, needle).is_some());
    Segments { rest: Some(text), start, unusual }
}

pub(super) struct Segments<'t> {
    rest: Option<&'t str>,
    start: usize,
    /// Whether there are line breaks beyond ASCII.
    unusual: bool,
}

impl<'t> Iterator for Segments<'t> {
    type Item = Segment<'t>;

    fn next(&mut self) -> Option<Segment<'t>> {
        let rest = self.rest?;
        let piece = &rest[..rest.floor_char_boundary(MAX_SEGMENT_BYTES)];
        let bytes = piece.as_bytes();
        let mut from = 0;
        let (end, len) = loop {
            let mut next = memchr::memchr3(b'\n', b'\r', b'\\', &bytes[from..]);
            if self.unusual {
                let before = &piece[from..next.map_or(piece.len(), |at| from + at)];
                next = before.find(['\u{2028}', '\u{2029}', '\u{85}']).or(next);
            }
            let Some(at) = next else { break (piece.len(), 0) };
            let at = from + at;
            match bytes[at] {
                b'\n' | b'\r' => break (at, 1),
                b'\\' => {
                    let written = written_break(&piece[at..]);
                    if written > 0 {
                        break (at, written);
                    }
                    let after = piece[at..].trim_start_matches('\\');
                    from = piece.len() - after.len();
                }
                _ => break (at, piece[at..].chars().next().map_or(1, char::len_utf8)),
            }
        };
        let segment =
            Segment { start: self.start, text: &rest[..end], line_break: &rest[end..end + len] };
        // A final line break starts no new segment.
        self.rest = Some(&rest[end + len..]).filter(|rest| !rest.is_empty());
        self.start += end + len;
        Some(segment)
    }
}

/// How long the line break is that is written out at the beginning of a text; 0 if there is none.
fn written_break(text: &str) -> usize {
    let escaped = |text: &str, letter: u8| {
        let backslashes = text.len() - text.trim_start_matches('\\').len();
        let found = backslashes > 0 && text.as_bytes().get(backslashes) == Some(&letter);
        if found { backslashes + 1 } else { 0 }
    };
    let cr = escaped(text, b'r');
    let lf = escaped(&text[cr..], b'n');
    if lf > 0 { cr + lf } else { 0 }
}

#[cfg(test)]
mod tests;
