//! Regex searches that stop at the deadline.
//!
//! A call of the regex engine cannot be interrupted, and for each byte it may take as many steps as the pattern has
//! positions. So a text that would take too many steps is searched line by line. A line that still takes too many is
//! fed to a lazy DFA byte by byte (`stepped.rs`), which checks the deadline in between. Both find the same matches as
//! the engine.
//!
//! If the pattern has a matcher for ASCII text (`ascii_regex.rs`), text with other lines is searched line by line, too
//! (`bounded/mixed_text.rs`).

mod mixed_text;

use std::cell::{Cell, OnceCell, RefCell};
use std::io;

use grep_matcher::{ByteSet, LineMatchKind, LineTerminator, Match, Matcher, NoCaptures};
use grep_regex::RegexMatcher;
use pinfold_confine::Deadline;
use regex_automata::hybrid::regex;

use super::stepped::{Stepped, Steps, check};
use crate::limits::{MAX_CALL_STEPS, MAX_LINE_STEPS, MAX_UNSTOPPABLE_STEPS};
use crate::search::CompiledPattern;

/// The matcher of one thread. It checks the deadline.
pub(super) struct BoundedMatcher<'m> {
    compiled: &'m CompiledPattern,
    /// This thread's clones, since threads cannot share the cache of a regex.
    matcher: OnceCell<RegexMatcher>,
    ascii_matcher: Option<RegexMatcher>,
    text: Cell<TextKind>,
    /// The distance of the next non-ASCII byte from the end of the text, if it is known.
    next_non_ascii: Cell<usize>,
    /// How many bytes at the end of the text are known to be ASCII.
    ascii_tail: Cell<usize>,
    /// Whether the caller needs only one matching line, whichever it is. If so, ASCII lines are searched first.
    any_line: bool,
    /// Whether the ASCII lines have been searched.
    ascii_lines_done: Cell<bool>,
    deadline: &'m Deadline,
    cache: RefCell<Option<regex::Cache>>,
    /// Whether a line was refused because it takes too many steps.
    pub(super) too_costly: Cell<bool>,
    /// The maximum number of steps in one call of the regex engine.
    max_call_steps: u64,
    /// A line that this matches, too, is not a match.
    exclude: Option<Box<Self>>,
}

/// The kind of the searched text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TextKind {
    /// All of it is ASCII.
    Ascii,
    /// Some of it is not ASCII. It is searched as a whole, by lines.
    Mixed,
    /// Nothing is known about it.
    Unknown,
}

impl<'m> BoundedMatcher<'m> {
    pub(super) fn new(compiled: &'m CompiledPattern, deadline: &'m Deadline) -> Self {
        Self {
            compiled,
            matcher: OnceCell::new(),
            ascii_matcher: compiled.ascii_matcher().cloned(),
            text: Cell::new(TextKind::Mixed),
            next_non_ascii: Cell::new(0),
            ascii_tail: Cell::new(0),
            any_line: false,
            ascii_lines_done: Cell::new(false),
            deadline,
            cache: RefCell::new(None),
            too_costly: Cell::new(false),
            max_call_steps: MAX_CALL_STEPS,
            exclude: None,
        }
    }

    /// A matcher for single lines that does not match the lines which `exclude` matches.
    pub(super) fn excluding(self, exclude: Option<&'m CompiledPattern>) -> Self {
        let exclude = exclude.map(|exclude| Box::new(Self::new(exclude, self.deadline)));
        Self { exclude, ..self }
    }

    /// A matcher for callers that need only one matching line.
    pub(super) fn for_any_line(self, any_line: bool) -> Self {
        Self { any_line, ..self }
    }

    /// Whether the matcher needs to know if a text is ASCII.
    pub(super) fn has_ascii_matcher(&self) -> bool {
        self.ascii_matcher.is_some()
    }

    /// Sets the kind of the text that is searched next.
    pub(super) fn set_text(&self, text: TextKind) {
        self.text.set(text);
        self.next_non_ascii.set(0);
        self.ascii_tail.set(0);
        self.ascii_lines_done.set(false);
    }

    /// The matcher for any text.
    fn matcher(&self) -> &RegexMatcher {
        self.matcher.get_or_init(|| self.compiled.matcher().clone())
    }

    /// The matcher for ASCII text.
    fn for_ascii(&self) -> &RegexMatcher {
        self.ascii_matcher.as_ref().unwrap_or_else(|| self.matcher())
    }

    /// The matcher for a text.
    fn matcher_for(&self, text: &[u8]) -> &RegexMatcher {
        let is_ascii = match self.text.get() {
            TextKind::Ascii => true,
            TextKind::Unknown => false,
            TextKind::Mixed => self.has_ascii_matcher() && text.is_ascii(),
        };
        if is_ascii { self.for_ascii() } else { self.matcher() }
    }

    fn unconfirmed(&self, found: LineMatchKind, start: usize) -> LineMatchKind {
        match found {
            LineMatchKind::Confirmed(offset) if self.exclude.is_none() => {
                LineMatchKind::Confirmed(start + offset)
            }
            LineMatchKind::Confirmed(offset) | LineMatchKind::Candidate(offset) => {
                LineMatchKind::Candidate(start + offset)
            }
        }
    }

    /// Searches as many whole lines per call as the step limit allows. A longer line is returned as a candidate,
    /// which the searcher then searches alone.
    fn candidate(&self, matcher: &RegexMatcher, text: &[u8]) -> io::Result<Option<LineMatchKind>> {
        if self.steps(text.len()) <= self.max_call_steps {
            let found = matcher.find_candidate_line(text)?;
            return Ok(found.map(|found| self.unconfirmed(found, 0)));
        }
        let max = usize::try_from(self.max_call_steps / self.compiled.nfa_states.max(1) as u64);
        let max = max.unwrap_or(usize::MAX).max(1);
        let mut start = 0;
        while start < text.len() {
            check(self.deadline)?;
            let rest = &text[start..];
            // The piece ends before its last line feed, since the line after that is not part of it.
            let piece = match memchr::memrchr(b'\n', &rest[..max.min(rest.len())]) {
                _ if rest.len() <= max => rest,
                Some(end) => &rest[..end],
                None => return Ok(Some(LineMatchKind::Candidate(start))),
            };
            let found = matcher.find_candidate_line(piece)?;
            if let Some(found) = found {
                return Ok(Some(self.unconfirmed(found, start)));
            }
            start += piece.len() + 1;
        }
        Ok(None)
    }

    fn steps(&self, len: usize) -> u64 {
        (len as u64).saturating_mul(self.compiled.nfa_states as u64)
    }

    /// The first match that starts at `at` or later. If `earliest` is set, only the end of the shortest match is
    /// correct.
    fn stepped(&self, text: &[u8], at: usize, earliest: bool) -> io::Result<Option<Match>> {
        let steps = self.steps(text.len() - at);
        let refused = || {
            self.too_costly.set(true);
            Err(io::Error::other("the line would take too many steps to search"))
        };
        if steps > MAX_LINE_STEPS {
            return refused();
        }
        if !self.compiled.has_required(&text[at..]) {
            return Ok(None);
        }
        if let Some(regex) = self.compiled.lazy_regex() {
            let mut cache = self.cache.borrow_mut();
            let (ends, starts) = cache.get_or_insert_with(|| regex.create_cache()).as_parts_mut();
            let steps =
                Steps { text, deadline: self.deadline, nfa_states: self.compiled.nfa_states };
            match steps.end_of_match(regex.forward(), ends, at, earliest)? {
                Stepped::Found(None) => return Ok(None),
                Stepped::Found(Some(end)) if earliest => return Ok(Some(Match::zero(end))),
                Stepped::Found(Some(end)) => {
                    let start = steps.start_of_match(regex.reverse(), starts, at, end)?;
                    if let Stepped::Found(Some(start)) = start {
                        return Ok(Some(Match::new(start, end)));
                    }
                }
                Stepped::Unknown => {}
            }
        }
        if steps > MAX_UNSTOPPABLE_STEPS {
            return refused();
        }
        Ok(self.matcher_for(text).find_at(text, at)?)
    }
}

impl Matcher for &BoundedMatcher<'_> {
    type Captures = NoCaptures;
    type Error = io::Error;

    fn find_at(&self, text: &[u8], at: usize) -> io::Result<Option<Match>> {
        if self.steps(text.len() - at) <= self.max_call_steps {
            return Ok(self.matcher_for(text).find_at(text, at)?);
        }
        self.stepped(text, at, false)
    }

    fn shortest_match_at(&self, text: &[u8], at: usize) -> io::Result<Option<usize>> {
        let found = if self.steps(text.len() - at) <= self.max_call_steps {
            self.matcher_for(text).shortest_match_at(text, at)?
        } else {
            self.stepped(text, at, true)?.map(|found| found.end())
        };
        match (&self.exclude, found) {
            (Some(exclude), Some(_)) if (&&**exclude).is_match(text)? => Ok(None),
            _ => Ok(found),
        }
    }

    fn new_captures(&self) -> io::Result<NoCaptures> {
        Ok(NoCaptures::new())
    }

    fn non_matching_bytes(&self) -> Option<&ByteSet> {
        self.for_ascii().non_matching_bytes()
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        self.for_ascii().line_terminator()
    }

    fn find_candidate_line(&self, text: &[u8]) -> io::Result<Option<LineMatchKind>> {
        match self.text.get() {
            TextKind::Ascii => self.candidate(self.for_ascii(), text),
            TextKind::Mixed if self.has_ascii_matcher() => self.candidate_by_lines(text),
            TextKind::Mixed | TextKind::Unknown => self.candidate(self.matcher(), text),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::search::{PatternCache, SearchPattern};

    const PATTERNS: &[&str] = &[
        "a",
        "ab*c?",
        "^b",
        "b$",
        "^$",
        "a+b|ba",
        "[^a]+",
        ".{2,3}c",
        r"\bab",
        r"\w+\b",
        "é.?",
        r"(?i)É|AB",
        "(a|ab)(c|bcd)?",
        r"\s",
        r"b\B",
        "x*",
        r"(?-u:\xff)",
        "c[^b]*$",
        r"(?i)\w[^k]\s|\Bs",
        r"\W+c|b\w$",
        r"abc|b.\b",
    ];

    proptest! {
        /// For every text and every step limit, the results are those of the regex engine.
        #[test]
        fn a_bounded_search_finds_what_an_unbounded_one_does(
            number in 0..PATTERNS.len(),
            text in "[abckSéÉ\u{212a}\u{17f} \n]{0,40}",
            multiline: bool,
            max_call_steps in 0_u64..30,
        ) {
            let pattern = PATTERNS[number].to_owned();
            let search_pattern =
                SearchPattern { pattern, literal: false, ignore_case: false, multiline };
            let compiled = PatternCache::default().compiled(&search_pattern, &|_| Ok(None)).unwrap().0;
            let deadline = Deadline::default();
            let bounded = BoundedMatcher { max_call_steps, ..BoundedMatcher::new(&compiled, &deadline) };
            let bounded = &bounded;
            let text = text.as_bytes();
            // If matches do not span lines, the searcher passes single lines.
            let texts: Vec<&[u8]> =
                if multiline { vec![text] } else { text.split(|byte| *byte == b'\n').collect() };
            for text in texts {
                for at in 0..=text.len() {
                    prop_assert_eq!(
                        bounded.find_at(text, at).unwrap(),
                        compiled.matcher().find_at(text, at).unwrap(),
                        "{:?} in {:?} at {}", PATTERNS[number], String::from_utf8_lossy(text), at
                    );
                    prop_assert_eq!(
                        bounded.shortest_match_at(text, at).unwrap().is_some(),
                        compiled.matcher().shortest_match_at(text, at).unwrap().is_some()
                    );
                }
            }
        }

        #[test]
        fn a_bounded_searcher_reports_the_same_lines(
            number in 0..PATTERNS.len(),
            text in "[abckSéÉ\u{212a}\u{17f} \n]{0,60}",
            max_call_steps in 0_u64..60,
        ) {
            let pattern = PATTERNS[number].to_owned();
            let search_pattern =
                SearchPattern { pattern, literal: false, ignore_case: false, multiline: false };
            let compiled = PatternCache::default().compiled(&search_pattern, &|_| Ok(None)).unwrap().0;
            let deadline = Deadline::default();
            let bounded = BoundedMatcher { max_call_steps, ..BoundedMatcher::new(&compiled, &deadline) };
            let lines = |found: &mut Vec<u64>, matcher: &dyn Fn(&mut Vec<u64>)| matcher(found);
            let mut one = Vec::new();
            lines(&mut one, &|found| {
                let sink = grep_searcher::sinks::Bytes(|line, _| { found.push(line); Ok(true) });
                grep_searcher::Searcher::new().search_slice(&bounded, text.as_bytes(), sink).unwrap();
            });
            let mut other = Vec::new();
            lines(&mut other, &|found| {
                let sink = grep_searcher::sinks::Bytes(|line, _| { found.push(line); Ok(true) });
                grep_searcher::Searcher::new()
                    .search_slice(compiled.matcher(), text.as_bytes(), sink)
                    .unwrap();
            });
            // A caller that needs only one matching line may get another one first.
            let any = BoundedMatcher { max_call_steps, ..BoundedMatcher::new(&compiled, &deadline) };
            let any = any.for_any_line(true);
            let mut found = false;
            let sink = grep_searcher::sinks::Bytes(|_, _| { found = true; Ok(false) });
            grep_searcher::Searcher::new().search_slice(&any, text.as_bytes(), sink).unwrap();
            prop_assert_eq!(found, !other.is_empty(), "{:?} in {:?}", PATTERNS[number], text);
            prop_assert_eq!(one, other, "{:?} in {:?}", PATTERNS[number], text);
        }
    }
}
