//! Paths as callers give them, and checked paths.

use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;

use unicode_normalization::UnicodeNormalization as _;

use crate::{Error, Result};

/// A path as it was given. It has not been checked.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct RawPath(String);

impl RawPath {
    /// The path as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it starts at the file system's root.
    pub fn is_absolute(&self) -> bool {
        self.0.starts_with('/')
    }

    /// Whether it can only name a directory, since it ends with a slash or a dot.
    pub(crate) fn names_a_directory(&self) -> bool {
        let last = self.0.rsplit('/').next().unwrap_or_default();
        matches!(last, "" | "." | "..")
    }
}

impl<S: Into<String>> From<S> for RawPath {
    fn from(path: S) -> Self {
        Self(path.into())
    }
}

impl fmt::Display for RawPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The maximum length of a path in a message.
        const SHOWN: usize = 500;
        match self.0.char_indices().nth(SHOWN) {
            Some((cut, _)) => write!(out, "{}…", escaped(&self.0.as_bytes()[..cut])),
            None => escaped(self.0.as_bytes()).fmt(out),
        }
    }
}

/// The longest name that Linux file systems allow.
const MAX_NAME_BYTES: usize = 255;

/// One name in a directory: not empty, no slash, no NUL, neither `.` nor `..`.
#[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Name(Vec<u8>);

impl Name {
    /// Parses a name.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        match bytes {
            b"" | b"." | b".." => Err(Error::BadPath("names no file")),
            _ if bytes.contains(&b'/') => Err(Error::BadPath("has a slash within a name")),
            _ if bytes.contains(&0) => Err(Error::BadPath("has a NUL character in it")),
            _ if bytes.len() > MAX_NAME_BYTES => {
                Err(Error::BadPath("has a name of more than 255 bytes, which no file can have"))
            }
            _ => Ok(Self(bytes.to_vec())),
        }
    }

    /// The name's bytes, as the file system has them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A common spelling for all names that some file system treats as the same. It folds case and Unicode form.
    pub(crate) fn folded(&self) -> Vec<u8> {
        match std::str::from_utf8(&self.0) {
            Ok(text) if !text.is_ascii() => {
                // Converts to upper case first, since some letters differ only in lower case.
                let upper: String = text.nfkc().flat_map(char::to_uppercase).collect();
                let folded: String = upper.chars().flat_map(char::to_lowercase).nfkc().collect();
                folded.into_bytes()
            }
            _ => self.0.to_ascii_lowercase(),
        }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "\"{self}\"")
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        escaped(&self.0).fmt(out)
    }
}

/// A path below a root: names joined by `/`, without `.` or `..`.
///
/// It consists of [`Name`]s only, so it cannot lead up. Opening it checks that no name in it is a symlink. The root
/// itself is the path without names.
#[derive(Clone, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RelPath(Vec<u8>);

impl RelPath {
    /// The root itself.
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// Whether this is the root itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The path's bytes; empty for the root.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// This path and one name below it.
    pub fn join(&self, name: &Name) -> Self {
        let mut path = self.clone();
        path.push(name);
        path
    }

    pub(crate) fn push(&mut self, name: &Name) {
        if !self.0.is_empty() {
            self.0.push(b'/');
        }
        self.0.extend_from_slice(&name.0);
    }

    /// Its directory, and its name there. Returns `None` for the root.
    pub fn split(&self) -> Option<(Self, Name)> {
        if self.is_root() {
            return None;
        }
        let name = name_of(&self.0);
        let parent = &self.0[..(self.0.len() - name.len()).saturating_sub(1)];
        Some((Self(parent.to_vec()), Name(name.to_vec())))
    }

    /// Its last name. Empty for the root.
    pub fn name(&self) -> impl fmt::Display + '_ {
        escaped(name_of(&self.0))
    }

    /// Its part below a directory, or the whole path if it is not below that directory.
    pub fn below(&self, directory: &Self) -> impl fmt::Display + '_ {
        let rest = self.0.strip_prefix(directory.as_bytes()).unwrap_or(&self.0);
        escaped(rest.strip_prefix(b"/").unwrap_or(rest))
    }

    /// Its names, from the root down.
    pub fn names(&self) -> impl Iterator<Item = Name> {
        let names = self.0.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        names.map(|name| Name(name.to_vec()))
    }

    /// A path whose names were read from directories, each below the one before it.
    pub(crate) fn proved(path: Vec<u8>) -> Self {
        Self(path)
    }

    pub(crate) fn steps(&self) -> Vec<Step> {
        self.names().map(Step::Name).collect()
    }

    /// The path for system calls: `.` for the root.
    pub(crate) fn for_kernel(&self) -> &[u8] {
        if self.is_root() { b"." } else { &self.0 }
    }
}

impl FromIterator<Name> for RelPath {
    fn from_iter<I: IntoIterator<Item = Name>>(names: I) -> Self {
        let mut path = Self::root();
        names.into_iter().for_each(|name| path.push(&name));
        path
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "\"{self}\"")
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        escaped(self.for_kernel()).fmt(out)
    }
}

/// The part after the last slash.
pub(crate) fn name_of(path: &[u8]) -> &[u8] {
    let slash = path.iter().rposition(|byte| *byte == b'/');
    slash.map_or(path, |slash| &path[slash + 1..])
}

/// One step of an unchecked path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    Name(Name),
    Parent,
}

/// The steps of a path. Empty names and `.` are left out.
pub(crate) fn steps(path: &[u8]) -> Result<Vec<Step>> {
    path.split(|byte| *byte == b'/')
        .filter(|name| !matches!(*name, b"" | b"."))
        .map(
            |name| if name == b".." { Ok(Step::Parent) } else { Name::parse(name).map(Step::Name) },
        )
        .collect()
}

/// The names of `steps`, if none of them goes up.
pub(crate) fn without_parent_steps(steps: &[Step]) -> Option<RelPath> {
    let bytes = |step: &Step| if let Step::Name(name) = step { name.0.len() + 1 } else { 0 };
    let mut path = RelPath(Vec::with_capacity(steps.iter().map(bytes).sum()));
    for step in steps {
        match step {
            Step::Name(name) => path.push(name),
            Step::Parent => return None,
        }
    }
    Some(path)
}

/// File names and paths for printing: on one line, and readable whatever they contain.
///
/// Control characters, invisible marks that change the direction of text, and invalid UTF-8 are escaped.
pub fn escaped(bytes: &[u8]) -> impl fmt::Display + '_ {
    Escaped(bytes)
}

/// Appends [`escaped`] text to a text.
#[doc(hidden)]
pub fn push_escaped(out: &mut String, bytes: &[u8]) {
    match plain(bytes) {
        Some(plain) => out.push_str(plain),
        // Writing to a string cannot fail.
        None => drop(write!(out, "{}", Escaped(bytes))),
    }
}

/// The text of these bytes, if it is plain ASCII. Most names are, and this check is faster than looking for characters
/// to escape. It has no branch, so it is made for many bytes at once.
fn plain(bytes: &[u8]) -> Option<&str> {
    let is_plain = |is_plain: bool, byte: &u8| is_plain & matches!(byte, b' '..=b'~');
    str::from_utf8(bytes).ok().filter(|_| bytes.iter().fold(true, is_plain))
}

struct Escaped<'b>(&'b [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(plain) = plain(self.0) {
            return out.write_str(plain);
        }
        for chunk in self.0.utf8_chunks() {
            let valid = chunk.valid();
            let mut written = 0;
            for (at, character) in valid.match_indices(is_escaped) {
                write!(out, "{}{}", &valid[written..at], character.escape_default())?;
                written = at + character.len();
            }
            out.write_str(&valid[written..])?;
            for byte in chunk.invalid() {
                write!(out, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Whether a character would change how the text around it looks.
fn is_escaped(character: char) -> bool {
    let turns = matches!(
        character,
        '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    character.is_control() || turns
}

/// The bytes of a path from the operating system.
pub(crate) fn bytes_of(path: &(impl AsRef<OsStr> + ?Sized)) -> &[u8] {
    path.as_ref().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_leave_out_what_goes_nowhere() {
        let down = |name: &str| Step::Name(Name::parse(name.as_bytes()).unwrap());
        assert_eq!(
            steps(b"./a//b/../c/").unwrap(),
            [down("a"), down("b"), Step::Parent, down("c")]
        );
        assert_eq!(steps(b"/").unwrap(), []);
        assert!(steps(b"a\0b").is_err());
    }

    #[test]
    fn a_path_splits_into_directory_and_name() {
        let path = without_parent_steps(&steps(b"a/b/c").unwrap()).unwrap();
        let (parent, name) = path.split().unwrap();
        assert_eq!((parent.to_string(), name.to_string()), ("a/b".into(), "c".into()));
        assert_eq!(parent.join(&name), path);
        let top = without_parent_steps(&steps(b"top").unwrap()).unwrap();
        assert_eq!(top.split().unwrap(), (RelPath::root(), Name::parse(b"top").unwrap()));
        let names = [path, top, RelPath::root()].map(|path| path.name().to_string());
        assert_eq!(names, ["c", "top", ""]);
        assert_eq!(RelPath::root().split(), None);
        assert_eq!(format!("{parent:?} {name:?} {:?}", RelPath::root()), r#""a/b" "c" ".""#);
        assert_eq!(without_parent_steps(&steps(b"a/../b").unwrap()), None);
    }

    #[test]
    fn what_could_mislead_a_reader_is_escaped() {
        for (name, shown) in [
            (&b"plain name"[..], "plain name"),
            (b"two\nlines\t", "two\\nlines\\t"),
            (b"\x1b[31m", "\\u{1b}[31m"),
            (b"caf\xE9", "caf\\xe9"),
            ("\u{202e}txt.exe \u{e9}".as_bytes(), "\\u{202e}txt.exe \u{e9}"),
            ("a\u{200e}b\u{200f}c\u{61c}".as_bytes(), "a\\u{200e}b\\u{200f}c\\u{61c}"),
        ] {
            assert_eq!(escaped(name).to_string(), shown);
        }
    }
}
