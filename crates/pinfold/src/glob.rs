//! Patterns for paths: one that finds files, and several that filter them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use globset::{Glob, GlobBuilder, GlobMatcher};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use pinfold_confine::{Candidate, Kind, Opinion, brace_depth};
use regex_automata::meta::Regex;

use crate::Error;
use crate::limits::{GLOB_BRACES, GLOB_CHARS, GLOB_EXPANSIONS, GLOBS_BYTES};

/// What tells a pattern from a name.
const SPECIAL: [char; 6] = ['*', '?', '[', ']', '{', '\\'];

/// A pattern that finds files below a directory.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// The directory that the pattern itself names, before its first wildcard; may be empty.
    pub(crate) directory: String,
    /// How many levels below that directory it reaches; `None` for all.
    pub(crate) depth: Option<usize>,
    matcher: Matcher,
    spelled: Spelled,
}

impl Pattern {
    /// Understands a pattern, which `argument` was given as.
    pub(crate) fn parse(argument: &'static str, pattern: &str) -> Result<Self, Error> {
        let wrong = |problem: &str| bad(argument, pattern, problem);
        check(argument, pattern)?;
        let whole = match pattern.ends_with('/') {
            // All that is below a directory.
            true => format!("{pattern}**"),
            false => pattern.to_owned(),
        };
        let parts = split(&whole, '/');
        let is_name = |part: &&str| !part.contains(SPECIAL);
        let names = parts[..parts.len() - 1].iter().take_while(|part| is_name(part)).count();
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
            matcher: Matcher::new(argument, &rest.join("/"))?,
            spelled: Spelled::new(&rest.join("/")),
        })
    }

    /// Whether a path, counted from the pattern's directory, fits.
    pub(crate) fn fits(&self, path: &[u8]) -> bool {
        self.matcher.fits(path)
    }

    /// An entry that the pattern spells out is meant, even if it is hidden or ignored.
    pub(crate) fn opinion(&self, candidate: &Candidate<'_>) -> Opinion {
        self.spelled.opinion(candidate.name())
    }
}

/// Names that a pattern spells out.
#[derive(Debug)]
struct Spelled {
    names: Vec<String>,
    /// Patterns for hidden names, such as `.eslintrc*`.
    hidden: Vec<GlobMatcher>,
}

impl Spelled {
    fn new(pattern: &str) -> Self {
        let mut spelled = Self { names: Vec::new(), hidden: Vec::new() };
        for plain in expanded(pattern) {
            for part in plain.split('/') {
                if !part.contains(SPECIAL) {
                    spelled.names.push(part.to_owned());
                } else if part.starts_with('.') {
                    spelled.hidden.extend(Glob::new(part).map(|glob| glob.compile_matcher()));
                }
            }
        }
        spelled
    }

    fn opinion(&self, name: &[u8]) -> Opinion {
        let fits = |glob: &GlobMatcher| glob.is_match(OsStr::from_bytes(name));
        if self.names.iter().any(|spelled| spelled.as_bytes() == name) {
            Opinion::Named
        } else if name.starts_with(b".") && self.hidden.iter().any(fits) {
            Opinion::Take
        } else {
            Opinion::Usual
        }
    }
}

#[derive(Debug)]
enum Matcher {
    Bytes(Box<GlobMatcher>),
    /// For `?` and classes, which are about characters and not about bytes.
    Characters(Box<Regex>),
}

impl Matcher {
    fn new(argument: &'static str, pattern: &str) -> Result<Self, Error> {
        let built = GlobBuilder::new(pattern)
            .literal_separator(true)
            .backslash_escape(true)
            .empty_alternates(true)
            .build();
        let glob = built.map_err(|error| bad(argument, pattern, &error.kind().to_string()))?;
        if !pattern.contains(['?', '[']) {
            return Ok(Self::Bytes(Box::new(glob.compile_matcher())));
        }
        let regex = in_characters(glob.regex());
        let regex = Regex::new(&regex).map_err(|_| bad(argument, pattern, "it is too large"))?;
        Ok(Self::Characters(Box::new(regex)))
    }

    fn fits(&self, path: &[u8]) -> bool {
        match self {
            Self::Bytes(glob) => glob.is_match(OsStr::from_bytes(path)),
            Self::Characters(regex) => regex.is_match(&*String::from_utf8_lossy(path)),
        }
    }
}

/// The regex of a glob, which is about bytes, made into one about characters.
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
                // An escaped backslash must not be taken for the start of such a byte.
                let whole = if first == '\\' { 2.min(rest.len()) } else { first.len_utf8() };
                let whole = (whole..=rest.len()).find(|end| rest.is_char_boundary(*end));
                let (this, next) = rest.split_at(whole.unwrap_or(rest.len()));
                out.push_str(this);
                if this == "[" && next.starts_with('^') {
                    // Whatever a class leaves open, it does not reach across directories.
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

/// Patterns that say which files of a search are meant, as `rg -g` takes them.
///
/// They are gitignore patterns: one without a slash is about names at any level. A file that fits is
/// meant even if it is ignored; `!` excludes; the last one that fits decides.
#[derive(Debug)]
pub(crate) struct Filter {
    patterns: Gitignore,
    spelled: Spelled,
}

impl Filter {
    pub(crate) fn new(argument: &'static str, texts: &[String]) -> Result<Self, Error> {
        let mut builder = GitignoreBuilder::new("");
        builder.allow_unclosed_class(false);
        for pattern in texts {
            check(argument, pattern)?;
            builder.add_line(None, pattern).map_err(|error| match error {
                ignore::Error::Glob { err, .. } => bad(argument, pattern, &err),
                other => bad(argument, pattern, &other.to_string()),
            })?;
        }
        let patterns =
            builder.build().map_err(|_| bad(argument, &texts.join(","), "it is too large"))?;
        let mut spelled = Spelled { names: Vec::new(), hidden: Vec::new() };
        for pattern in texts.iter().filter(|pattern| !pattern.starts_with('!')) {
            let more = Spelled::new(pattern);
            spelled.names.extend(more.names);
            spelled.hidden.extend(more.hidden);
        }
        Ok(Self { patterns, spelled })
    }

    /// An entry that a pattern spells out is meant, even if it is hidden or ignored.
    pub(crate) fn spelled(&self, candidate: &Candidate<'_>) -> Opinion {
        self.spelled.opinion(candidate.name())
    }

    /// Patterns separated by commas, but for commas within braces.
    pub(crate) fn parse(argument: &'static str, patterns: &str) -> Result<Self, Error> {
        if patterns.len() > GLOBS_BYTES {
            let beginning = &patterns[..patterns.floor_char_boundary(GLOB_CHARS)];
            return Err(bad(argument, beginning, &format!("it has more than {GLOBS_BYTES} bytes")));
        }
        let parts = split(patterns, ',');
        let parts: Vec<_> = match parts.as_slice() {
            [only] => vec![(*only).to_owned()],
            several => several.iter().map(|part| part.trim().to_owned()).collect(),
        };
        if parts.iter().any(|part| part.is_empty() || part == "!") {
            return Err(bad(argument, patterns, "it has an empty part"));
        }
        Self::new(argument, &parts)
    }

    /// Whether a path is one of those that are asked for.
    pub(crate) fn names(&self, path: &[u8], kind: Kind) -> bool {
        let is_directory = kind == Kind::Directory;
        match self.said(path, is_directory) {
            Opinion::Take => true,
            Opinion::Leave => false,
            Opinion::Named | Opinion::Usual => self.patterns.num_ignores() == 0,
        }
    }

    /// A path is compared as counted from where the search starts, and as counted from the root.
    pub(crate) fn opinion(&self, candidate: &Candidate<'_>) -> Opinion {
        let is_directory = candidate.kind == Kind::Directory;
        let (near, far) = (candidate.below_start(), candidate.below_root());
        let said = match (self.said(near, is_directory), self.said(far, is_directory)) {
            (Opinion::Leave, _) | (_, Opinion::Leave) => Opinion::Leave,
            (Opinion::Take, _) | (_, Opinion::Take) => Opinion::Take,
            _ => Opinion::Usual,
        };
        // Where some are asked for by name, the others are not.
        match said {
            Opinion::Usual if self.patterns.num_ignores() > 0 && !is_directory => Opinion::Leave,
            said => said,
        }
    }

    fn said(&self, path: &[u8], is_directory: bool) -> Opinion {
        match self.patterns.matched(Path::new(OsStr::from_bytes(path)), is_directory) {
            // What an ignore file would leave out, a filter asks for.
            Match::Ignore(_) => Opinion::Take,
            Match::Whitelist(_) => Opinion::Leave,
            Match::None => Opinion::Usual,
        }
    }
}

fn bad(argument: &'static str, pattern: &str, problem: &str) -> Error {
    Error::BadGlob { argument, pattern: pattern.into(), problem: problem.to_owned() }
}

fn check(argument: &'static str, pattern: &str) -> Result<(), Error> {
    let problem = if pattern.is_empty() {
        "it is empty".into()
    } else if pattern.chars().count() > GLOB_CHARS {
        format!("it has more than {GLOB_CHARS} characters")
    } else if pattern.contains('\0') {
        "it has a NUL character in it".into()
    } else if brace_depth(pattern) > GLOB_BRACES {
        format!("its braces are nested deeper than {GLOB_BRACES} levels")
    } else {
        return Ok(());
    };
    Err(bad(argument, pattern, &problem))
}

/// Splits a pattern, but not within braces or classes, nor after a backslash.
fn split(pattern: &str, at: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut braces, mut class, mut escaped) = (0, 0_usize, false, false);
    let last_class = pattern.rfind(']');
    for (place, character) in pattern.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' if last_class > Some(place) => class = true,
            ']' => class = false,
            '{' if !class => braces += 1,
            '}' if !class => braces = braces.saturating_sub(1),
            _ if character == at && braces == 0 && !class => {
                parts.push(&pattern[start..place]);
                start = place + at.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&pattern[start..]);
    parts
}

/// A pattern without its braces: one for each choice, up to a number.
fn expanded(pattern: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut ahead = vec![pattern.to_owned()];
    while let Some(pattern) = ahead.pop() {
        if done.len() + ahead.len() > GLOB_EXPANSIONS {
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
                ahead.extend(choices.iter().map(|choice| format!("{before}{choice}{after}")));
            }
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::parse("pattern", text).unwrap()
    }

    #[test]
    fn patterns_fit_what_people_expect() {
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
    fn names_that_are_spelled_out_are_known() {
        let has = |text: &str, name: &str| {
            pattern(text).spelled.opinion(name.as_bytes()) != Opinion::Usual
        };
        assert!(has("**/.github/*.yml", ".github"));
        assert!(has("**/.env*", ".env.local"));
        assert!(has("{.github,docs}/**", ".github"));
        assert!(has("**/node_modules/**/package.json", "node_modules"));
        assert!(!has("**/*", ".github"));
        assert!(!has("**/.env*", ".git"));
    }

    #[test]
    fn what_is_no_pattern_is_refused_and_named() {
        let deep = format!("{}a{}", "{".repeat(1_000), "}".repeat(1_000));
        for text in ["", "a[", "{a", "*/../b", &deep, &"a".repeat(5_000), "a\0b"] {
            let error = Pattern::parse("pattern", text).unwrap_err();
            assert!(matches!(error, Error::BadGlob { .. }), "{text}");
        }
        assert!(Filter::parse("glob", "*.rs,,").is_err());
        assert!(Filter::parse("glob", &deep).is_err());
    }

    #[test]
    fn a_long_argument_is_refused_at_once() {
        let long = "[".repeat(16 << 20);
        let begin = std::time::Instant::now();
        let refused = Filter::parse("glob", &long).unwrap_err().to_string();
        assert!(refused.contains("more than") && refused.len() < 10_000, "{}", refused.len());
        // Nor does it matter how many classes are never closed.
        assert_eq!(split(&long[..1 << 20], ',').len(), 1);
        assert!(begin.elapsed() < std::time::Duration::from_secs(10), "{:?}", begin.elapsed());
        let many = vec!["*.rs"; 1_000].join(",");
        assert!(Filter::parse("glob", &many).is_ok());
    }

    #[test]
    fn commas_within_braces_and_classes_do_not_separate() {
        assert_eq!(split("*.{a,b},c[,]d,\\,e", ','), ["*.{a,b}", "c[,]d", "\\,e"]);
        assert_eq!(split("a[b,c", ','), ["a[b", "c"]);
        assert_eq!(split("[,],a[b,c", ','), ["[,]", "a[b", "c"]);
    }
}
