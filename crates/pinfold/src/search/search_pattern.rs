//! Compiles search patterns with ripgrep's settings.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use pinfold_index::Query;
use regex_automata::hybrid::{dfa, regex};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_syntax::ast::{self, Ast, GroupKind};
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::limits::{
    MAX_ASCII_REGEX_STATES, MAX_KEPT_PATTERN_BYTES, MAX_KEPT_PATTERNS, MAX_KEPT_REGEX_CACHE_BYTES,
    MAX_LINE_STEPS, MAX_PATTERN_BYTES, MAX_REGEX_BYTES, MAX_REGEX_CACHE_BYTES,
    MAX_UNSTOPPABLE_STEPS,
};
use crate::memory_budget::LargePermit;
use crate::search::ascii_regex::can_compile_as_ascii;
use crate::{Error, RegexMistake};

/// A pattern and its options.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SearchPattern {
    pub(crate) pattern: String,
    pub(crate) literal: bool,
    pub(crate) ignore_case: bool,
    /// Whether matches may span lines, and `.` matches line endings.
    pub(crate) multiline: bool,
}

impl SearchPattern {
    /// This is checked before parsing, since parsing needs many times the length of the pattern in memory.
    fn check_length(&self) -> Result<(), Error> {
        if self.pattern.len() > MAX_PATTERN_BYTES {
            let problem = format!("it has more than {MAX_PATTERN_BYTES} bytes");
            return Err(Error::BadRegex {
                pattern: String::new(),
                problem,
                kind: RegexMistake::Size,
            });
        }
        Ok(())
    }

    /// Compiles the pattern. Without `unicode` it is correct only for ASCII text: see `ascii_regex.rs`.
    fn compile(&self, unicode: bool) -> Result<RegexMatcher, Error> {
        let mut builder = RegexMatcherBuilder::new();
        builder
            .multi_line(true)
            .unicode(unicode)
            .octal(false)
            .fixed_strings(self.literal)
            .case_insensitive(self.ignore_case)
            .size_limit(MAX_REGEX_BYTES)
            .dfa_size_limit(MAX_KEPT_REGEX_CACHE_BYTES)
            // Text has no NUL bytes, and binary files are not searched as text.
            .ban_byte(Some(0));
        if self.multiline {
            builder.dot_matches_new_line(true);
        } else {
            builder.line_terminator(Some(b'\n')).dot_matches_new_line(false);
        }
        let pattern = if self.literal { None } else { without_captures(&self.pattern) };
        builder.build(pattern.as_deref().unwrap_or(&self.pattern)).map_err(|error| {
            let (problem, kind) = match (self.mistake(), error.kind()) {
                (Some(mistake), _) => mistake,
                (None, ErrorKind::NotAllowed(_)) => (
                    "it has a line end in it, and matches do not span lines".into(),
                    RegexMistake::LineEnd,
                ),
                (None, _) => (error.to_string(), RegexMistake::Size),
            };
            Error::BadRegex { pattern: self.pattern.clone(), problem, kind }
        })
    }
}

/// What a pattern says about its cost and its matches.
#[derive(Default)]
struct Shape {
    /// The number of NFA states, which bounds the steps for one byte of text. 0 for a search with `literal`.
    nfa_states: usize,
    /// Whether it has a word boundary.
    has_word_boundary: bool,
    /// About how many bytes of memory the compiled pattern takes.
    memory: u64,
    /// A literal that each match contains; may be empty.
    required: Vec<u8>,
}

impl SearchPattern {
    /// Parses the pattern. Nothing in the result depends on `unicode`, which says how to parse.
    fn shape(&self, unicode: bool) -> Shape {
        if self.literal {
            return Shape { memory: self.pattern.len() as u64, ..Shape::default() };
        }
        // A pattern may match bytes that are not UTF-8.
        let mut parser = regex_syntax::ParserBuilder::new().utf8(false).unicode(unicode).build();
        let Ok(hir) = parser.parse(&self.pattern) else {
            return Shape { nfa_states: 1, has_word_boundary: true, ..Shape::default() };
        };
        Shape {
            nfa_states: nfa_states(&hir).max(1),
            has_word_boundary: hir.properties().look_set().contains_word(),
            memory: memory(&hir),
            required: if self.ignore_case { Vec::new() } else { required(&hir).to_vec() },
        }
    }

    /// The same regex as a lazy DFA, which can be stopped after each byte. Returns `None` if it would take too much
    /// memory.
    fn lazy_regex(&self) -> Option<regex::Regex> {
        let syntax = syntax::Config::new()
            .multi_line(true)
            .dot_matches_new_line(self.multiline)
            .case_insensitive(self.ignore_case)
            .utf8(false);
        let compile = thompson::Config::new().utf8(false).nfa_size_limit(Some(MAX_REGEX_BYTES));
        let lazy =
            dfa::Config::new().cache_capacity(MAX_REGEX_CACHE_BYTES).unicode_word_boundary(true);
        let mut builder = regex::Builder::new();
        let builder = builder.syntax(syntax).thompson(compile).dfa(lazy);
        builder.build(&format!("(?:{})", self.pattern)).ok()
    }

    /// The syntax error in the caller's pattern, with its position.
    fn mistake(&self) -> Option<(String, RegexMistake)> {
        if self.literal {
            return None;
        }
        let error = ast::parse::Parser::new().parse(&self.pattern).err()?;
        let position = self.pattern.get(..error.span().start.offset)?.chars().count() + 1;
        let kind = match error.kind() {
            ast::ErrorKind::UnsupportedLookAround => RegexMistake::LookAround,
            _ => RegexMistake::Syntax,
        };
        Some((format!("{} (at character {position})", error.kind()), kind))
    }
}

/// The pattern without capturing groups, which are not needed: some of the engine's fast paths are only for such
/// patterns. Returns `None` if the pattern has none, or is invalid.
fn without_captures(pattern: &str) -> Option<String> {
    let ast = ast::parse::Parser::new().parse(pattern).ok()?;
    let mut openings = Vec::new();
    add_openings(&ast, &mut openings);
    openings.sort_unstable_by_key(|opening| opening.start);
    let mut plain = String::with_capacity(pattern.len() + 2 * openings.len());
    let mut rest = 0;
    for opening in &openings {
        plain.push_str(pattern.get(rest..opening.start)?);
        plain.push_str("(?:");
        rest = opening.end;
    }
    plain.push_str(pattern.get(rest..)?);
    (!openings.is_empty()).then_some(plain)
}

/// Collects the opening of each capturing group.
fn add_openings(ast: &Ast, openings: &mut Vec<Range<usize>>) {
    match ast {
        Ast::Group(group) => {
            if !matches!(group.kind, GroupKind::NonCapturing(_)) {
                openings.push(group.span.start.offset..group.ast.span().start.offset);
            }
            add_openings(&group.ast, openings);
        }
        Ast::Repetition(repetition) => add_openings(&repetition.ast, openings),
        Ast::Alternation(any) => any.asts.iter().for_each(|ast| add_openings(ast, openings)),
        Ast::Concat(all) => all.asts.iter().for_each(|ast| add_openings(ast, openings)),
        _ => {}
    }
}

fn nfa_states(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 0,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(_) => 1,
        HirKind::Capture(capture) => nfa_states(&capture.sub),
        HirKind::Repetition(repeated) => {
            let times = repeated.max.unwrap_or(repeated.min).max(repeated.min).max(1);
            nfa_states(&repeated.sub).saturating_mul(times as usize)
        }
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(nfa_states).fold(0, usize::saturating_add)
        }
    }
}

/// About how many bytes of memory a pattern takes when it is compiled with Unicode, in the order of magnitude.
fn memory(hir: &Hir) -> u64 {
    /// A byte, a range of characters, and `\w`, which has the most ranges of the classes that compile as ASCII.
    const BYTE: u64 = 64;
    const RANGE: u64 = 160;
    const CLASS: u64 = 128 * 1024;
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => BYTE,
        HirKind::Literal(literal) => BYTE * literal.0.len() as u64,
        HirKind::Class(Class::Unicode(class)) => RANGE * class.ranges().len() as u64,
        HirKind::Class(Class::Bytes(_)) => CLASS,
        HirKind::Capture(capture) => memory(&capture.sub),
        HirKind::Repetition(repeated) => {
            let times = repeated.max.unwrap_or(repeated.min).max(repeated.min).max(1);
            memory(&repeated.sub).saturating_mul(times.into())
        }
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(memory).fold(0, u64::saturating_add)
        }
    }
}

/// The longest literal that is found to be part of each match; may be empty.
fn required(hir: &Hir) -> &[u8] {
    match hir.kind() {
        HirKind::Literal(literal) => &literal.0,
        HirKind::Capture(capture) => required(&capture.sub),
        HirKind::Repetition(repeated) if repeated.min > 0 => required(&repeated.sub),
        HirKind::Concat(parts) => {
            parts.iter().map(required).max_by_key(|literal| literal.len()).unwrap_or_default()
        }
        _ => &[],
    }
}

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct CompiledPattern {
    /// A matcher for ASCII text, if it compiles faster.
    ascii_matcher: Option<RegexMatcher>,
    /// If there is an ASCII matcher, this is compiled for the first text that needs it.
    matcher: OnceLock<RegexMatcher>,
    /// The number of NFA states, which bounds the steps for one byte of text.
    pub(crate) nfa_states: usize,
    /// About how many bytes of memory it takes.
    memory: u64,
    /// Whether it has a word boundary, which a lazy DFA cannot always decide.
    has_word_boundary: bool,
    /// A literal that each match contains; may be empty.
    required: Vec<u8>,
    search_pattern: SearchPattern,
    /// Is built for the first line that needs it.
    lazy_regex: OnceLock<Option<regex::Regex>>,
    query: OnceLock<Query>,
}

impl CompiledPattern {
    /// Also returns the permit for its memory.
    fn new(
        search_pattern: &SearchPattern,
        reserve: &ReserveMemory<'_>,
    ) -> Result<(Self, LargePermit), Error> {
        let has_ascii_matcher =
            !search_pattern.literal && can_compile_as_ascii(&search_pattern.pattern);
        let Shape { nfa_states, has_word_boundary, memory, required } =
            search_pattern.shape(!has_ascii_matcher);
        // It may be compiled twice: see `lazy_regex`.
        let permit = reserve(2 * memory.min(MAX_REGEX_BYTES as u64))?;
        // A heavier pattern may be too large with Unicode. It is then refused for every text.
        let has_ascii_matcher = has_ascii_matcher && nfa_states <= MAX_ASCII_REGEX_STATES;
        let ascii_matcher = has_ascii_matcher.then(|| search_pattern.compile(false).ok()).flatten();
        let matcher = OnceLock::new();
        if ascii_matcher.is_none() {
            let _ = matcher.set(search_pattern.compile(true)?);
        }
        let compiled = Self {
            ascii_matcher,
            matcher,
            nfa_states,
            memory,
            has_word_boundary,
            required,
            search_pattern: search_pattern.clone(),
            lazy_regex: OnceLock::new(),
            query: OnceLock::new(),
        };
        Ok((compiled, permit))
    }

    /// The matcher for any text.
    pub(crate) fn matcher(&self) -> &RegexMatcher {
        self.matcher.get_or_init(|| {
            let compiled = self.search_pattern.compile(true);
            compiled.expect("a pattern with an ASCII matcher is far from the limit of size")
        })
    }

    /// The matcher for ASCII text, if there is a separate one.
    pub(crate) fn ascii_matcher(&self) -> Option<&RegexMatcher> {
        self.ascii_matcher.as_ref()
    }

    /// The trigrams that every match contains.
    pub(crate) fn query(&self) -> &Query {
        let SearchPattern { pattern, literal, ignore_case, .. } = &self.search_pattern;
        self.query.get_or_init(|| Query::new(pattern, *literal, *ignore_case))
    }

    /// Whether a text has the literal that each match contains.
    pub(crate) fn has_required(&self, text: &[u8]) -> bool {
        memchr::memmem::find(text, &self.required).is_some()
    }

    /// The pattern before compilation.
    pub(crate) fn source(&self) -> &SearchPattern {
        &self.search_pattern
    }

    /// Whether a search of `len` bytes at once may be refused as too costly: see `BoundedMatcher`.
    pub(crate) fn may_be_refused(&self, len: u64) -> bool {
        let steps = len.saturating_mul(self.nfa_states as u64);
        steps > MAX_LINE_STEPS
            || steps > MAX_UNSTOPPABLE_STEPS
                && (self.has_word_boundary || self.lazy_regex().is_none())
    }

    /// The pattern as a lazy DFA, if it is not too large for one.
    pub(crate) fn lazy_regex(&self) -> Option<&regex::Regex> {
        self.lazy_regex.get_or_init(|| self.search_pattern.lazy_regex()).as_ref()
    }
}

/// Waits for the memory of a pattern.
type ReserveMemory<'a> = dyn Fn(u64) -> Result<LargePermit, Error> + 'a;

/// The patterns that a session compiled last. Agents search for one pattern in several directories.
#[derive(Debug, Default)]
pub(crate) struct PatternCache(Mutex<Vec<(SearchPattern, Arc<CompiledPattern>)>>);

impl PatternCache {
    /// Compiles a pattern, or returns it from the cache. The search for it keeps the permit, which a cached pattern does not need.
    pub(crate) fn compiled(
        &self,
        search_pattern: &SearchPattern,
        reserve: &ReserveMemory<'_>,
    ) -> Result<(Arc<CompiledPattern>, LargePermit), Error> {
        search_pattern.check_length()?;
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = lock();
        if let Some(found) = kept.iter().position(|(known, _)| known == search_pattern) {
            // The least recently used pattern is evicted first.
            let known = kept.remove(found);
            let compiled = known.1.clone();
            kept.push(known);
            return Ok((compiled, None));
        }
        drop(kept);
        let (compiled, permit) = CompiledPattern::new(search_pattern, reserve)?;
        let compiled = Arc::new(compiled);
        if compiled.memory > MAX_KEPT_PATTERN_BYTES / 2 {
            return Ok((compiled, permit));
        }
        let mut kept = lock();
        kept.push((search_pattern.clone(), compiled.clone()));
        let memory =
            |kept: &[(_, Arc<CompiledPattern>)]| kept.iter().map(|(_, it)| it.memory).sum::<u64>();
        while kept.len() > MAX_KEPT_PATTERNS || memory(&kept) > MAX_KEPT_PATTERN_BYTES {
            kept.remove(0);
        }
        Ok((compiled, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_with_an_ascii_matcher_can_be_compiled_with_unicode() {
        for class in [r"\w", r"\W", r"[^x]", r"[\w--y]", r"[\W\d]", r"[^\s\d_]"] {
            let pattern = format!("(?i){}", class.repeat(MAX_ASCII_REGEX_STATES));
            let search_pattern =
                SearchPattern { pattern, literal: false, ignore_case: false, multiline: false };
            let (compiled, _) = CompiledPattern::new(&search_pattern, &|_| Ok(None)).unwrap();
            assert!(compiled.ascii_matcher().is_some(), "{class}");
            assert_eq!(compiled.nfa_states, MAX_ASCII_REGEX_STATES);
            compiled.matcher();
        }
    }

    #[test]
    fn large_patterns_are_not_kept_together_and_wait_for_memory() {
        let (cache, asked) = (PatternCache::default(), Mutex::new(0));
        let compile = |pattern: String| {
            let search_pattern =
                SearchPattern { pattern, literal: false, ignore_case: false, multiline: false };
            let reserve = |bytes| {
                *asked.lock().unwrap() = bytes;
                Ok(None)
            };
            let (compiled, _) = cache.compiled(&search_pattern, &reserve).unwrap();
            (compiled.memory, std::mem::take(&mut *asked.lock().unwrap()))
        };
        let kept = || cache.0.lock().unwrap().iter().map(|(_, it)| it.memory).sum::<u64>();
        // Its compiled form takes some 57 MB.
        let (memory, asked) = compile(r"\w{480}".into());
        assert!((30_000_000..100_000_000).contains(&memory) && asked == 2 * memory, "{memory}");
        for number in 0..8 {
            compile(format!(r"\w{{60}}{number}"));
            assert!(kept() <= MAX_KEPT_PATTERN_BYTES, "{}", kept());
        }
        // Usual ones are kept.
        for pattern in [r"fn \w+\(", r"\d{4}-\d{2}-\d{2}", "[a-zA-Z_][a-zA-Z0-9_]*"] {
            compile(pattern.into());
        }
        assert_eq!(compile(r"fn \w+\(".into()).1, 0, "it is not compiled again");
    }

    #[test]
    fn the_required_literal_is_in_each_match() {
        for (pattern, ignore_case, literal) in [
            (r"struct fops \w+ = \{\s*\.owner", false, "struct fops "),
            ("(ab|cd)x+", false, "x"),
            ("a(?:bcd){2,}e?", false, "bcd"),
            ("a(?i:bcd)", false, "a"),
            ("abc", true, ""),
            ("abc|abd", false, ""),
            ("(abc)?", false, ""),
        ] {
            let pattern = pattern.to_owned();
            let search_pattern =
                SearchPattern { pattern, literal: false, ignore_case, multiline: true };
            let required = search_pattern.shape(true).required;
            assert_eq!(required, literal.as_bytes(), "{}", search_pattern.pattern);
        }
    }

    #[test]
    fn groups_capture_nothing() {
        for (pattern, plain) in [
            ("(a|b)c", Some("(?:a|b)c")),
            ("(?P<name>a(b)){2}", Some("(?:a(?:b)){2}")),
            ("((?<n>a)|(?:b))", Some("(?:(?:a)|(?:b))")),
            ("(?i)(é|[(])", Some("(?i)(?:é|[(])")),
            ("()", Some("(?:)")),
            ("(?x) ( # (not this one\n a)", Some("(?x) (?:a)")),
            (r"\(a\)", None),
            ("(?i:a)", None),
            ("(", None),
        ] {
            assert_eq!(without_captures(pattern).as_deref(), plain, "{pattern}");
        }
    }

    #[test]
    fn a_pattern_that_is_too_long_is_not_parsed() {
        let pattern = "(a?b+c*|d)".repeat(1_000_000);
        let search_pattern =
            SearchPattern { pattern, literal: false, ignore_case: false, multiline: false };
        let begin = std::time::Instant::now();
        let refused = PatternCache::default().compiled(&search_pattern, &|_| Ok(None)).unwrap_err();
        assert!(matches!(refused, Error::BadRegex { .. }), "{refused}");
        assert!(begin.elapsed() < std::time::Duration::from_secs(2), "{:?}", begin.elapsed());
    }
}
