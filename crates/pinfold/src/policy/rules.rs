//! Parses and matches rules: `Operation(pattern)`, `Operation` or `*`.
//!
//! The operations are `Read`, `Write` (also `Edit`) and `Delete`; the patterns have gitignore's syntax. Deny and ask
//! rules match every spelling of a path. Allow rules match the resolved path exactly.

use std::path::{Path, PathBuf};

use globset::GlobBuilder;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use super::Access;
use super::fold::{Names, folded};
use crate::limits::{MAX_GLOB_BRACES, MAX_GLOB_CHARS};

/// A rule that does not parse.
#[derive(Debug, thiserror::Error)]
#[error("the {list} rule `{rule}` {problem}")]
pub struct BadRule {
    /// The list that it is in: `allow`, `ask` or `deny`.
    pub list: &'static str,
    /// The rule, as the user wrote it.
    pub rule: String,
    /// The reason.
    pub problem: String,
}

/// One list of rules, by operation.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    by_access: [List; 3],
    /// Whether all folded spellings of a path are matched.
    broad: bool,
    /// A regex that matches somewhere in every path that a rule matches, ignoring ASCII case. `None` if there is no
    /// such regex.
    required: Option<Regex>,
}

/// The rules of a list for one operation.
#[derive(Clone)]
struct List {
    patterns: Gitignore,
    /// The rule of each pattern, by the pattern's text in the matcher.
    rules: Vec<(String, String)>,
}

impl std::fmt::Debug for List {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self.rules.iter().map(|(_, rule)| rule)).finish()
    }
}

const ALL: [Access; 3] = [Access::Read, Access::Write, Access::Delete];

impl Rules {
    /// Deny or ask rules, which match any spelling of a path.
    pub(super) fn broad(
        list: &'static str,
        rules: &[String],
        roots: &[PathBuf],
    ) -> Result<Self, BadRule> {
        Self::new(list, rules, roots, true)
    }

    /// Allow rules, which match the resolved path exactly.
    pub(super) fn exact(
        list: &'static str,
        rules: &[String],
        roots: &[PathBuf],
    ) -> Result<Self, BadRule> {
        Self::new(list, rules, roots, false)
    }

    fn new(
        list: &'static str,
        rules: &[String],
        roots: &[PathBuf],
        broad: bool,
    ) -> Result<Self, BadRule> {
        let bad = |rule: &str, problem: String| BadRule { list, rule: rule.into(), problem };
        let mut parsed = Vec::new();
        for rule in rules {
            let (operations, pattern) = parse(rule, roots).map_err(|problem| bad(rule, problem))?;
            parsed.push((operations, if broad { folded(&pattern) } else { pattern }, rule));
        }
        let compile = |access: Access| {
            let those = parsed.iter().filter(|(operations, ..)| operations.contains(&access));
            List::new(those.map(|(_, pattern, rule)| (pattern.clone(), (*rule).clone())))
                .map_err(|(rule, problem)| bad(&rule, problem))
        };
        let [read, write, delete] = ALL;
        let by_access = [compile(read)?, compile(write)?, compile(delete)?];
        let required = required(parsed.iter().map(|(_, pattern, _)| pattern.as_str()));
        Ok(Self { by_access, broad, required })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_access.iter().all(|list| list.rules.is_empty())
    }

    /// Whether no rule can match a path. It may be false although none matches, but it is never true for a path that
    /// one matches.
    pub(super) fn cannot_match(&self, path: &[u8]) -> bool {
        // Letters outside ASCII may fold to ASCII letters.
        let lacks = |required: &Regex| path.is_ascii() && !required.is_match(path);
        self.is_empty() || self.required.as_ref().is_some_and(lacks)
    }

    /// The rule that matches, if there is one.
    pub(super) fn matches(&self, access: Access, names: &Names<'_>) -> Option<&str> {
        let list = &self.by_access[access as usize];
        if list.rules.is_empty() {
            return None;
        }
        let matches = |path: &Path| list.matches(path, names.directory);
        if self.broad {
            names.folded.iter().find_map(|path| matches(path))
        } else {
            names.exact.iter().find_map(|path| matches(path))
        }
    }
}

impl List {
    fn new(rules: impl Iterator<Item = (String, String)>) -> Result<Self, (String, String)> {
        let mut builder = GitignoreBuilder::new("");
        let rules: Vec<_> = rules.collect();
        for (pattern, rule) in &rules {
            let added = builder.add_line(None, pattern);
            added.map_err(|error| (rule.clone(), format!("has no pattern: {error}")))?;
        }
        let last = rules.last().map(|(_, rule)| rule.clone()).unwrap_or_default();
        let patterns = builder.build().map_err(|error| (last, error.to_string()))?;
        Ok(Self { patterns, rules })
    }

    fn matches(&self, path: &Path, directory: bool) -> Option<&str> {
        // A pattern for everything also matches the root itself.
        if path.as_os_str().is_empty() {
            let whole = |(pattern, _): &&(String, String)| pattern == EVERYTHING;
            return self.rules.iter().rev().find(whole).map(|(_, rule)| rule.as_str());
        }
        match self.patterns.matched_path_or_any_parents(path, directory) {
            Match::Ignore(glob) => {
                let same = |(pattern, _): &&(String, String)| pattern == glob.original();
                let rule = self.rules.iter().rev().find(same).map(|(_, rule)| rule.as_str());
                // The match counts even if its rule is not found.
                Some(rule.unwrap_or(glob.original()))
            }
            Match::Whitelist(_) | Match::None => None,
        }
    }
}

const EVERYTHING: &str = "**";

/// A regex that matches somewhere in every path that one of the patterns matches. It has a part of a name for each
/// pattern.
fn required<'p>(patterns: impl Iterator<Item = &'p str>) -> Option<Regex> {
    let mut parts = Vec::new();
    // A pattern with `!` only makes exceptions.
    for pattern in patterns.filter(|pattern| !pattern.starts_with('!')) {
        // The text after a class, a brace or a backslash may not be literal.
        let plain = pattern.split(['[', '{', '\\']).next().unwrap_or_default();
        let longest = plain.split(['*', '?', '/']).max_by_key(|part| part.len())?;
        if longest.len() < 2 || !longest.is_ascii() {
            return None;
        }
        parts.push(regex_syntax::escape(longest));
    }
    if parts.is_empty() {
        return None;
    }
    parts.sort_unstable();
    parts.dedup();
    let syntax = syntax::Config::new().case_insensitive(true).unicode(false).utf8(false);
    Regex::builder().syntax(syntax).build(&parts.join("|")).ok()
}

/// The operations that a rule names, and its pattern.
fn parse(rule: &str, roots: &[PathBuf]) -> Result<(&'static [Access], String), String> {
    const SYNTAX: &str =
        "is not a rule: write `Operation(pattern)`, `Operation` or `*`, such as `Edit(src/**)`";
    let trimmed = rule.trim();
    let (operation, pattern) = match trimmed.split_once('(') {
        None => (trimmed, EVERYTHING),
        Some((operation, rest)) => (operation.trim_end(), rest.strip_suffix(')').ok_or(SYNTAX)?),
    };
    let operations: &[Access] = match operation {
        "*" => &ALL,
        "Read" => &[Access::Read],
        "Write" | "Edit" => &[Access::Write],
        "Delete" => &[Access::Delete],
        "" => return Err(SYNTAX.into()),
        _ => return Err(NO_OPERATION.into()),
    };
    // Whitespace around a pattern is ignored; a blank at the end of a name is written as `\ `.
    let trimmed = pattern.trim();
    let pattern = if trimmed.ends_with('\\') { pattern.trim_start() } else { trimmed };
    let bare = pattern.strip_prefix('!').unwrap_or(pattern);
    if bare.trim().is_empty() || bare.trim_matches('/').is_empty() {
        return Err("has an empty pattern".into());
    }
    if pattern.starts_with('#') {
        return Err("has a comment for a pattern; write `\\#` for a name that begins so".into());
    }
    // A pattern that can never match is a mistake.
    if bare.starts_with(['"', '\'', '~', '!']) {
        return Err("begins with a quote, `~` or a second `!`, which mean nothing here".into());
    }
    if bare.split('/').any(|name| name == "..") || bare.trim_start_matches('/').contains("//") {
        return Err("has `..` or an empty name in its pattern".into());
    }
    if pinfold_confine::brace_depth(bare) > MAX_GLOB_BRACES || bare.len() > MAX_GLOB_CHARS {
        return Err("has a pattern that is too long or too deeply nested".into());
    }
    // The matcher treats an unclosed bracket as a literal, which the user did not intend.
    if let Err(error) = GlobBuilder::new(bare).literal_separator(true).build() {
        return Err(format!("has a bad pattern: {}", error.kind()));
    }
    if pattern.contains(['\n', '\0']) {
        return Err("has a line end or NUL in its pattern".into());
    }
    Ok((operations, anchored(pattern, roots)))
}

/// The pattern in gitignore's syntax. A pattern that begins with a root's path or with `./` is anchored there.
fn anchored(pattern: &str, roots: &[PathBuf]) -> String {
    let (not, bare) = match pattern.strip_prefix('!') {
        Some(bare) => ("!", bare),
        None => ("", pattern),
    };
    let here = bare.strip_prefix("./").map(|below| below.trim_start_matches("./"));
    let below = here.or_else(|| {
        let inside = |root: &PathBuf| bare.strip_prefix(root.to_str()?)?.strip_prefix('/');
        roots.iter().filter(|root| root.parent().is_some()).find_map(inside)
    });
    match below {
        Some("") => format!("{not}{EVERYTHING}"),
        Some(below) => format!("{not}/{below}"),
        None => pattern.to_owned(),
    }
}

const NO_OPERATION: &str = "names no operation: `Read` covers reading, listing, finding and searching, `Write` or \
     `Edit` covers every change of content, and there are `Delete` and `*`";

/// A pattern that matches one path literally.
pub(super) fn literal(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for letter in path.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | '!' | '#') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    if pattern.ends_with(' ') {
        pattern.insert(pattern.len() - 1, '\\');
    }
    pattern
}
