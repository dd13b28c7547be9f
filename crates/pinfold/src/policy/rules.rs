//! Rules as people write them: `Tool(pattern)`, `Tool`, `*`.

use std::path::{Path, PathBuf};

use globset::GlobBuilder;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::Access;
use super::fold::{Names, folded};
use crate::limits::{GLOB_BRACES, GLOB_CHARS};

/// A rule that cannot be understood.
#[derive(Debug, thiserror::Error)]
#[error("the {list} rule `{rule}` {problem}")]
pub struct BadRule {
    /// The list that it is in: `allow`, `ask` or `deny`.
    pub list: &'static str,
    /// The rule as it was written.
    pub rule: String,
    /// What is wrong with it.
    pub problem: String,
}

/// One list of rules, by what they are about.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    by_access: [List; 3],
    /// Whether spellings that count as the same are, and every spelling of a path is looked at.
    broad: bool,
}

/// The rules of a list that are about one kind of access.
#[derive(Clone)]
struct List {
    patterns: Gitignore,
    /// Each pattern's rule, by the pattern as it was given to the matcher.
    rules: Vec<(String, String)>,
}

impl std::fmt::Debug for List {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self.rules.iter().map(|(_, rule)| rule)).finish()
    }
}

const ALL: [Access; 3] = [Access::Read, Access::Write, Access::Delete];

impl Rules {
    /// Rules that refuse or ask: no spelling slips by.
    pub(super) fn broad(
        list: &'static str,
        rules: &[String],
        roots: &[PathBuf],
    ) -> Result<Self, BadRule> {
        Self::new(list, rules, roots, true)
    }

    /// Rules that allow: only what they say.
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
            let (about, pattern) = parse(rule, roots).map_err(|problem| bad(rule, problem))?;
            parsed.push((about, if broad { folded(&pattern) } else { pattern }, rule));
        }
        let compile = |access: Access| {
            let about = parsed.iter().filter(|(about, ..)| about.contains(&access));
            List::new(about.map(|(_, pattern, rule)| (pattern.clone(), (*rule).clone())))
                .map_err(|(rule, problem)| bad(&rule, problem))
        };
        let [read, write, delete] = ALL;
        let by_access = [compile(read)?, compile(write)?, compile(delete)?];
        Ok(Self { by_access, broad })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_access.iter().all(|list| list.rules.is_empty())
    }

    /// The rule that is about a file, if one is.
    pub(super) fn matches(&self, access: Access, names: &Names<'_>) -> Option<&str> {
        let list = &self.by_access[access as usize];
        if list.rules.is_empty() {
            return None;
        }
        let matches = |path: &Path| list.matches(path, names.directory);
        match self.broad {
            true => names.folded.iter().find_map(|path| matches(path)),
            false => names.exact.iter().find_map(|path| matches(path)),
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
        // A pattern for everything is about the root itself, too.
        if path.as_os_str().is_empty() {
            let whole = |(pattern, _): &&(String, String)| pattern == EVERYTHING;
            return self.rules.iter().rev().find(whole).map(|(_, rule)| rule.as_str());
        }
        match self.patterns.matched_path_or_any_parents(path, directory) {
            Match::Ignore(glob) => {
                let same = |(pattern, _): &&(String, String)| pattern == glob.original();
                let rule = self.rules.iter().rev().find(same).map(|(_, rule)| rule.as_str());
                // That something matched counts, whatever it is called.
                Some(rule.unwrap_or(glob.original()))
            }
            Match::Whitelist(_) | Match::None => None,
        }
    }
}

const EVERYTHING: &str = "**";

/// What a rule is about, and its pattern.
fn parse(rule: &str, roots: &[PathBuf]) -> Result<(&'static [Access], String), String> {
    const SHAPE: &str = "is none: write `Tool(pattern)`, `Tool` or `*`, such as `Edit(src/**)`";
    let trimmed = rule.trim();
    let (tool, pattern) = match trimmed.split_once('(') {
        None => (trimmed, EVERYTHING),
        Some((tool, rest)) => (tool.trim_end(), rest.strip_suffix(')').ok_or(SHAPE)?),
    };
    let about: &[Access] = match tool {
        "*" => &ALL,
        "Read" => &[Access::Read],
        "Write" | "Edit" => &[Access::Write],
        "Delete" => &[Access::Delete],
        "" => return Err(SHAPE.into()),
        other => return Err(unknown(other)),
    };
    // Blanks around a pattern are nobody's request; one at the end of a name is written as `\ `.
    let trimmed = pattern.trim();
    let pattern = match trimmed.ends_with('\\') {
        true => pattern.trim_start(),
        false => trimmed,
    };
    let bare = pattern.strip_prefix('!').unwrap_or(pattern);
    if bare.trim().is_empty() || bare.trim_matches('/').is_empty() {
        return Err("has an empty pattern".into());
    }
    if pattern.starts_with('#') {
        return Err("has a comment for a pattern; write `\\#` for a name that begins so".into());
    }
    // What would never match anything must not look like a rule.
    if bare.starts_with(['"', '\'', '~', '!']) {
        return Err("begins with a quote, `~` or a second `!`, which mean nothing here".into());
    }
    if bare.split('/').any(|name| name == "..") || bare.trim_start_matches('/').contains("//") {
        return Err("has `..` or an empty name in its pattern".into());
    }
    if pinfold_confine::brace_depth(bare) > GLOB_BRACES || bare.len() > GLOB_CHARS {
        return Err("has a pattern that is too long or too deeply nested".into());
    }
    // The matcher takes a bracket that is never closed for itself; who wrote it meant something else.
    if let Err(error) = GlobBuilder::new(bare).literal_separator(true).build() {
        return Err(format!("has a bad pattern: {}", error.kind()));
    }
    if pattern.contains(['\n', '\0']) {
        return Err("has a line end or NUL in its pattern".into());
    }
    Ok((about, anchored(pattern, roots)))
}

/// A pattern in `.gitignore`'s words: one that begins with a root's own path, or with `./`, is meant from
/// there.
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

fn unknown(tool: &str) -> String {
    let covered = match tool {
        "LS" | "Glob" | "Grep" | "file.read" | "file.list" | "file.search" | "read_file"
        | "list_directory" | "search_files" | "get_file_info" => Some("Read"),
        "MultiEdit" | "file.write" | "file.patch" | "write_file" => Some("Edit"),
        "file.delete" => Some("Delete"),
        _ => None,
    };
    match covered {
        Some(covered) => {
            format!("names a tool; rules speak of operations, and `{covered}` covers it")
        }
        None => "names no operation; there are `Read`, `Write`, `Edit`, `Delete` and `*`".into(),
    }
}

/// A pattern that means a path and nothing else.
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
