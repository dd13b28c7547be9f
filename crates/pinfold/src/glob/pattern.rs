//! A pattern that finds files, and the directory that its walk starts from.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::OnceLock;

use globset::{Glob, GlobBuilder, GlobMatcher};
use pinfold_confine::{Candidate, FilterDecision};
use regex_automata::meta::Regex;

use super::{LiteralNames, SPECIAL, bad, check, expanded, split};
use crate::limits::MAX_GLOB_EXPANSIONS;
use crate::search::NameQuery;
use crate::{Error, GlobUsage};

/// A pattern that finds files below a directory.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// The directory before the first wildcard of the pattern; may be empty.
    pub(crate) directory: String,
    /// How many levels below that directory it can match; `None` for all.
    pub(crate) depth: Option<usize>,
    /// Queries for a [`NameTable`](crate::search::NameTable): a file matches if one of them does.
    pub(crate) name_queries: Vec<NameQuery>,
    matcher: Matcher,
    literal_names: LiteralNames,
}

impl Pattern {
    /// Parses a pattern. `ignore_case` applies to all components of a relative pattern.
    pub(crate) fn parse(pattern: &str, ignore_case: bool) -> Result<Self, Error> {
        let wrong = |problem: &str| bad(GlobUsage::Find, pattern, problem);
        check(GlobUsage::Find, pattern)?;
        // A pattern that ends with a slash finds all files below the directory.
        let whole =
            if pattern.ends_with('/') { format!("{pattern}**") } else { pattern.to_owned() };
        let parts = split(&whole, '/');
        let is_name = |part: &&str| !part.contains(SPECIAL);
        let directories = &parts[..parts.len() - 1];
        let names = if ignore_case && !whole.starts_with('/') && !directories.contains(&"..") {
            0
        } else {
            directories.iter().take_while(|part| is_name(part)).count()
        };
        let rest = &parts[names..];
        if rest.contains(&"..") {
            return Err(wrong("`..` cannot come after a wildcard, nor last"));
        }
        let mut directory = parts[..names].join("/");
        if names > 0 && directory.is_empty() {
            directory.push('/');
        }
        let deep = rest.iter().any(|part| part.contains("**") || part.contains('/'));
        Ok(Self {
            directory,
            depth: (!deep).then_some(rest.len()),
            name_queries: name_queries(&rest.join("/"), ignore_case),
            matcher: Matcher::new(GlobUsage::Find, &rest.join("/"), ignore_case)?,
            literal_names: LiteralNames::new(&rest.join("/")),
        })
    }

    /// Whether a path relative to the pattern's directory matches. For most patterns, its name decides.
    pub(crate) fn fits(&self, path: &[u8]) -> bool {
        let name = memchr::memrchr(b'/', path).map_or(path, |slash| &path[slash + 1..]);
        let by_name = self.name_queries.iter().map(|query| query.fits_name(name));
        let by_name = by_name.reduce(|one, other| match (one, other) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            _ => one.and(other),
        });
        by_name.flatten().unwrap_or_else(|| self.fits_glob(path))
    }

    /// As [`Self::fits`], by the glob alone.
    pub(crate) fn fits_glob(&self, path: &[u8]) -> bool {
        self.matcher.fits(path)
    }

    /// Includes an entry whose name is a literal component of the pattern, even if it is hidden or ignored.
    pub(crate) fn filter_decision(&self, candidate: &Candidate<'_>) -> FilterDecision {
        self.literal_names.filter_decision(candidate.name())
    }

    /// Whether it includes entries with this name, even if they are hidden or ignored.
    pub(crate) fn includes_name(&self, name: &[u8]) -> bool {
        self.literal_names.filter_decision(name) != FilterDecision::Default
    }
}

/// The queries for a pattern: one for each expansion of its braces.
fn name_queries(pattern: &str, ignore_case: bool) -> Vec<NameQuery> {
    // Within a class or after a backslash, a brace is a plain character.
    let is_plain = !ignore_case && !pattern.contains(['[', '\\']);
    let choices = if is_plain { expanded(pattern) } else { Vec::new() };
    match choices.len() {
        1..MAX_GLOB_EXPANSIONS => choices.iter().map(|choice| NameQuery::new(choice)).collect(),
        _ => vec![NameQuery::Glob(String::new())],
    }
}

/// A glob for whole paths below a directory. Letter case counts, and `*` matches hidden names too.
#[derive(Debug)]
pub(crate) struct PathGlob(Matcher);

impl PathGlob {
    /// Parses a glob.
    pub(crate) fn parse(glob: &str) -> Result<Self, Error> {
        check(GlobUsage::Ignore, glob)?;
        Ok(Self(Matcher::new(GlobUsage::Ignore, glob, false)?))
    }

    /// Whether a path relative to the directory matches.
    pub(crate) fn fits(&self, path: &[u8]) -> bool {
        self.0.fits(path)
    }
}

#[derive(Debug)]
enum Matcher {
    /// Compiled when it is first used: for most patterns, [`NameQuery`] is enough.
    Bytes(Box<(Glob, OnceLock<GlobMatcher>)>),
    /// For `?` and classes, which match characters, not bytes.
    Characters(Box<Regex>),
}

impl Matcher {
    fn new(usage: GlobUsage, pattern: &str, ignore_case: bool) -> Result<Self, Error> {
        let built = GlobBuilder::new(pattern)
            .case_insensitive(ignore_case)
            .literal_separator(true)
            .backslash_escape(true)
            .empty_alternates(true)
            .build();
        let glob = built.map_err(|error| bad(usage, pattern, &error.kind().to_string()))?;
        if !pattern.contains(['?', '[']) {
            return Ok(Self::Bytes(Box::new((glob, OnceLock::new()))));
        }
        let regex = in_characters(glob.regex());
        let regex = Regex::new(&regex).map_err(|_| bad(usage, pattern, "it is too large"))?;
        Ok(Self::Characters(Box::new(regex)))
    }

    fn fits(&self, path: &[u8]) -> bool {
        match self {
            Self::Bytes(glob) => {
                let matcher = glob.1.get_or_init(|| glob.0.compile_matcher());
                matcher.is_match(OsStr::from_bytes(path))
            }
            Self::Characters(regex) => regex.is_match(&*String::from_utf8_lossy(path)),
        }
    }
}

/// Converts the regex of a glob, which matches bytes, to one that matches characters.
///
/// It starts with `(?-u)`, and has `\xC3\xA9` where the glob had `é`.
fn in_characters(regex: &str) -> String {
    let mut out = String::from("(?s)");
    let mut rest = regex.strip_prefix("(?-u)").unwrap_or(regex);
    let mut bytes = Vec::new();
    while let Some(first) = rest.chars().next() {
        let byte =
            rest.strip_prefix("\\x").and_then(|hex| u8::from_str_radix(hex.get(..2)?, 16).ok());
        match byte {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[4..];
            }
            None => {
                out.push_str(&String::from_utf8_lossy(&std::mem::take(&mut bytes)));
                // The second half of an escaped backslash does not start an escape.
                let whole = if first == '\\' { 2.min(rest.len()) } else { first.len_utf8() };
                let whole = (whole..=rest.len()).find(|end| rest.is_char_boundary(*end));
                let (this, next) = rest.split_at(whole.unwrap_or(rest.len()));
                out.push_str(this);
                if this == "[" && next.starts_with('^') {
                    // A negated class does not match the separator.
                    out.push_str("^/");
                    rest = &next[1..];
                    continue;
                }
                rest = next;
            }
        }
    }
    out.push_str(&String::from_utf8_lossy(&bytes));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text, false).unwrap()
    }

    #[test]
    fn patterns_match_like_shell_globs() {
        for (glob, path, fits) in [
            ("*.rs", "main.rs", true),
            ("*.rs", "src/main.rs", false),
            ("**/*.rs", "main.rs", true),
            ("**/*.rs", "a/b/main.rs", true),
            ("?.txt", "a.txt", true),
            ("?.txt", "é.txt", true),
            ("?.txt", "日.txt", true),
            ("?.txt", "ab.txt", false),
            ("[éa].txt", "é.txt", true),
            ("[!é].txt", "é.txt", false),
            ("[a-c]*", "beta", true),
            ("é?*", "éa", true),
            ("\\?[x]", "?x", true),
            ("*.{ts,tsx}", "a.tsx", true),
            ("*{.js,}", "a", true),
            ("{a,b}/**/c", "b/x/y/c", true),
            ("*", "a/b", false),
            ("a[!b]c", "a/c", false),
            ("a[!b]c", "axc", true),
        ] {
            assert_eq!(pattern(glob).fits(path.as_bytes()), fits, "{glob} {path}");
        }
        assert!(pattern("?.txt").fits(b"\xff.txt"));
    }

    #[test]
    fn the_walk_starts_at_the_directory_that_the_pattern_names() {
        for (text, directory, depth) in [
            ("*.rs", "", Some(1)),
            ("src/*.rs", "src", Some(1)),
            ("src/a/**/*.rs", "src/a", None),
            ("src/main.rs", "src", Some(1)),
            ("a/*/b/*.c", "a", Some(3)),
            ("/ws/src/*.rs", "/ws/src", Some(1)),
            ("/*.rs", "/", Some(1)),
            ("../x/*", "../x", Some(1)),
            ("src/", "src", None),
            ("{a,b/c}/*", "", None),
        ] {
            let pattern = pattern(text);
            assert_eq!((pattern.directory.as_str(), pattern.depth), (directory, depth), "{text}");
        }
    }

    #[test]
    fn literal_names_in_a_pattern_are_found() {
        let has = |text: &str, name: &str| {
            pattern(text).literal_names.filter_decision(name.as_bytes()) != FilterDecision::Default
        };
        assert!(has("**/.github/*.yml", ".github"));
        assert!(has("**/.env*", ".env.local"));
        assert!(has("{.github,docs}/**", ".github"));
        assert!(has("**/node_modules/**/package.json", "node_modules"));
        assert!(!has("**/*", ".github"));
        assert!(!has("**/.env*", ".git"));
    }
}
