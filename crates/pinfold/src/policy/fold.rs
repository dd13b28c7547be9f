//! Folds names that a file system or a reader takes for the same: case, Unicode forms, invisible characters.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization as _;

/// Folds case, Unicode form and invisible code points, so that texts that look the same, or that file systems treat
/// as the same, are equal.
pub(super) fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let composed = text.nfkc().filter(|letter| !is_ignorable(*letter));
    // Converts to upper case first, since some letters differ only in lower case.
    let upper: String = composed.flat_map(char::to_uppercase).collect();
    upper.chars().flat_map(char::to_lowercase).nfkc().collect()
}

/// Whether a code point is invisible; some file systems drop such code points from names.
fn is_ignorable(letter: char) -> bool {
    matches!(u32::from(letter),
        0xAD | 0x34F | 0x61C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F
        | 0x202A..=0x202E | 0x2060..=0x206F | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0
        | 0xFFF0..=0xFFF8 | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF)
}

/// All names of a file: its given and its resolved path, relative to each root that contains it.
#[derive(Debug)]
pub(super) struct Names<'n> {
    /// As they are.
    pub(super) exact: Vec<&'n Path>,
    /// Folded, and also without blanks and dots at the end of each component if that differs.
    pub(super) folded: Vec<PathBuf>,
    pub(super) directory: bool,
}

impl<'n> Names<'n> {
    pub(super) fn new(paths: impl Iterator<Item = &'n Path>, directory: bool) -> Self {
        let mut exact: Vec<&Path> = Vec::new();
        let mut all: Vec<PathBuf> = Vec::new();
        for path in paths {
            if exact.contains(&path) {
                continue;
            }
            exact.push(path);
            let text = folded(&String::from_utf8_lossy(path.as_os_str().as_bytes()));
            let trimmed = trimmed(&text);
            if let Cow::Owned(trimmed) = trimmed {
                all.push(trimmed.into());
            }
            all.push(text.into());
        }
        all.dedup();
        Self { exact, folded: all, directory }
    }

    /// The same file with more folded names: those that `more` derives from each name.
    pub(super) fn with(&self, more: fn(&str) -> Vec<String>) -> Self {
        let texts = self.folded.iter().filter_map(|path| path.to_str());
        let added: Vec<_> = texts.flat_map(more).map(PathBuf::from).collect();
        let folded = self.folded.iter().cloned().chain(added).collect();
        Self { exact: self.exact.clone(), folded, directory: self.directory }
    }
}

/// The path without blanks and dots at the end of each component.
fn trimmed(path: &str) -> Cow<'_, str> {
    let ends_so =
        |part: &str| part.ends_with([' ', '.']) && !part.trim_end_matches([' ', '.']).is_empty();
    if !path.split('/').any(ends_so) {
        return Cow::Borrowed(path);
    }
    let parts: Vec<_> = path
        .split('/')
        .map(|part| if ends_so(part) { part.trim_end_matches([' ', '.']) } else { part })
        .collect();
    Cow::Owned(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_that_count_as_the_same_fold_to_one() {
        for (one, other) in [
            (".ENV", ".env"),
            ("Straße", "STRASSE"),
            ("caf\u{e9}", "cafe\u{301}"),
            ("\u{FF0E}env", ".env"),
            (".e\u{200B}nv", ".env"),
            ("\u{FEFF}.env", ".env"),
            ("\u{212A}ey", "key"),
            ("\u{17F}ecret", "secret"),
            ("ﬁle", "file"),
            ("ΣΑΣ", "σας"),
        ] {
            assert_eq!(folded(one), folded(other), "{one} {other}");
        }
        assert_ne!(folded("a"), folded("b"));
    }

    #[test]
    fn ends_of_parts_are_trimmed() {
        for (path, expected) in [
            (".env.", ".env"),
            (".env . .", ".env"),
            ("a. /b.", "a/b"),
            ("a.b", "a.b"),
            ("...", "..."),
            ("", ""),
        ] {
            assert_eq!(trimmed(path), expected);
        }
    }
}
