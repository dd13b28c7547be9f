//! Globs: [`Pattern`] finds files, and [`Filter`] selects files by several patterns.
//!
//! This module has their common code, which checks and splits patterns, and collects the literal names in them.

mod filter;
mod pattern;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use globset::{Glob, GlobMatcher};
use pinfold_confine::{FilterDecision, brace_depth};

pub(crate) use filter::Filter;
pub(crate) use pattern::{PathGlob, Pattern};

use crate::limits::{MAX_GLOB_BRACES, MAX_GLOB_CHARS, MAX_GLOB_EXPANSIONS};
use crate::{Error, GlobUsage};

/// The characters that make a path component a pattern.
const SPECIAL: [char; 6] = ['*', '?', '[', ']', '{', '\\'];

/// The path components of a pattern that have no wildcards.
#[derive(Debug)]
struct LiteralNames {
    names: Vec<String>,
    /// Patterns for hidden names, such as `.eslintrc*`.
    hidden: Vec<GlobMatcher>,
}

impl LiteralNames {
    fn new(pattern: &str) -> Self {
        let mut literal = Self { names: Vec::new(), hidden: Vec::new() };
        for plain in expanded(pattern) {
            for part in plain.split('/') {
                if !part.contains(SPECIAL) {
                    literal.names.push(part.to_owned());
                } else if part.starts_with('.') {
                    literal.hidden.extend(Glob::new(part).map(|glob| glob.compile_matcher()));
                }
            }
        }
        literal
    }

    fn filter_decision(&self, name: &[u8]) -> FilterDecision {
        let fits = |glob: &GlobMatcher| glob.is_match(OsStr::from_bytes(name));
        if self.names.iter().any(|literal| literal.as_bytes() == name) {
            FilterDecision::Force
        } else if name.starts_with(b".") && self.hidden.iter().any(fits) {
            FilterDecision::Include
        } else {
            FilterDecision::Default
        }
    }
}

fn bad(usage: GlobUsage, pattern: &str, problem: &str) -> Error {
    Error::BadGlob { usage, pattern: pattern.into(), problem: problem.to_owned() }
}

fn check(usage: GlobUsage, pattern: &str) -> Result<(), Error> {
    let problem = if pattern.is_empty() {
        "it is empty".into()
    } else if pattern.chars().count() > MAX_GLOB_CHARS {
        format!("it has more than {MAX_GLOB_CHARS} characters")
    } else if pattern.contains('\0') {
        "it has a NUL character in it".into()
    } else if brace_depth(pattern) > MAX_GLOB_BRACES {
        format!("its braces are nested deeper than {MAX_GLOB_BRACES} levels")
    } else {
        return Ok(());
    };
    Err(bad(usage, pattern, &problem))
}

/// Splits a pattern at a character outside braces and classes that no backslash escapes.
fn split(pattern: &str, at: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut braces, mut class, mut escaped) = (0, 0_usize, false, false);
    let last_class = pattern.rfind(']');
    for (offset, character) in pattern.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' if last_class > Some(offset) => class = true,
            ']' => class = false,
            '{' if !class => braces += 1,
            '}' if !class => braces = braces.saturating_sub(1),
            _ if character == at && braces == 0 && !class => {
                parts.push(&pattern[start..offset]);
                start = offset + at.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&pattern[start..]);
    parts
}

/// Expands the braces of a pattern into one pattern for each choice, up to `MAX_GLOB_EXPANSIONS`.
fn expanded(pattern: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut pending = vec![pattern.to_owned()];
    while let Some(pattern) = pending.pop() {
        if done.len() + pending.len() > MAX_GLOB_EXPANSIONS {
            break;
        }
        let group = pattern.find('{').and_then(|open| {
            let mut depth = 0_usize;
            let close = pattern[open..].char_indices().find(|(_, character)| {
                match character {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    _ => {}
                }
                depth == 0
            });
            Some((open, open + close?.0))
        });
        match group {
            None => done.push(pattern),
            Some((open, close)) => {
                let (before, after) = (&pattern[..open], &pattern[close + 1..]);
                let choices = split(&pattern[open + 1..close], ',');
                pending.extend(choices.iter().map(|choice| format!("{before}{choice}{after}")));
            }
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_patterns_are_refused() {
        let deep = format!("{}a{}", "{".repeat(1_000), "}".repeat(1_000));
        for text in ["", "a[", "{a", "*/../b", &deep, &"a".repeat(5_000), "a\0b"] {
            let error = Pattern::parse(text, false).unwrap_err();
            assert!(matches!(error, Error::BadGlob { .. }), "{text}");
        }
        assert!(Filter::parse(GlobUsage::Filter, "*.rs,,").is_err());
        assert!(Filter::parse(GlobUsage::Filter, &deep).is_err());
    }

    #[test]
    fn commas_within_braces_and_classes_do_not_separate() {
        assert_eq!(split("*.{a,b},c[,]d,\\,e", ','), ["*.{a,b}", "c[,]d", "\\,e"]);
        assert_eq!(split("a[b,c", ','), ["a[b", "c"]);
        assert_eq!(split("[,],a[b,c", ','), ["[,]", "a[b", "c"]);
    }
}
