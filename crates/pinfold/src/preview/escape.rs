//! Escapes invisible characters in text for the user.

use std::fmt::Write as _;
use std::sync::LazyLock;

use regex_syntax::hir::{Class, ClassUnicode, HirKind};

use super::INFALLIBLE;

/// The number of bytes that are not part of readable text.
pub(super) fn unreadable(bytes: &[u8]) -> usize {
    let chunks = bytes.utf8_chunks().map(|chunk| {
        let hidden = chunk.valid().chars().filter(|it| *it != '\r' && is_hidden(*it));
        hidden.map(char::len_utf8).sum::<usize>() + chunk.invalid().len()
    });
    chunks.sum()
}

/// Bytes as text for the user. Invalid UTF-8 and control characters become `\x1b`, and other invisible characters
/// become `\u{200b}`. Line feeds and tabs stay. A backslash that looks like the start of such an escape becomes
/// `\x5c`.
pub fn escaped_text(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid().chars();
        while let Some(character) = rest.next() {
            match character {
                '\\' if rest.as_str().starts_with(['x', 'u']) => out.push_str("\\x5c"),
                _ if !is_hidden(character) => out.push(character),
                '\0'..='\x7f' => {
                    write!(out, "\\x{:02x}", u32::from(character)).expect(INFALLIBLE);
                }
                _ => write!(out, "\\u{{{:x}}}", u32::from(character)).expect(INFALLIBLE),
            }
        }
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}").expect(INFALLIBLE);
        }
    }
    out
}

/// As [`escaped_text`], on one line: line feeds and tabs are escaped, too.
pub fn escaped_line(bytes: &[u8]) -> String {
    escaped_text(bytes).replace('\n', "\\x0a").replace('\t', "\\x09")
}

/// Whether a character is invisible, or changes how the text around it looks: controls, format and bidirectional
/// characters, everything that Unicode calls default-ignorable, all unusual blanks, and code points without a character,
/// which some fonts leave out.
pub(super) fn is_hidden(character: char) -> bool {
    static HIDDEN: LazyLock<ClassUnicode> = LazyLock::new(|| {
        let class = r"[[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u{2800}\u{FFFC}\u{1107F}\u{13441}\u{13442}\u{16FE4}\u{1D159}]--[ \t\n]]";
        let parsed = regex_syntax::parse(class).expect("the class is well-formed");
        match parsed.into_kind() {
            HirKind::Class(Class::Unicode(class)) => class,
            other => unreachable!("a class of characters: {other:?}"),
        }
    });
    if matches!(character, ' '..='~' | '\t' | '\n') {
        return false;
    }
    let ranges = HIDDEN.ranges();
    let after = ranges.partition_point(|range| range.end() < character);
    ranges.get(after).is_some_and(|range| range.start() <= character)
}
