//! Regex searches that stop at the deadline.
//!
//! A call of the regex engine cannot be interrupted, and it may take as many steps for each byte as the
//! pattern has positions. So a text that would cost too many steps is searched line by line, and a line
//! that is still too costly is fed to a lazy DFA byte by byte, with checks of the deadline in between.
//! Both find the same matches as the engine.

use std::cell::{Cell, RefCell};
use std::io;

use grep_matcher::{ByteSet, LineMatchKind, LineTerminator, Match, Matcher, NoCaptures};
use grep_regex::RegexMatcher;
use pinfold_confine::Deadline;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::hybrid::{LazyStateID, regex};
use regex_automata::{Anchored, Input};

use crate::limits::{MAX_CALL_STEPS, MAX_LINE_STEPS, MAX_UNSTOPPABLE_STEPS};
use crate::search::Compiled;

/// The matcher of one thread; it checks the deadline.
pub(super) struct BoundedMatcher<'m> {
    compiled: &'m Compiled,
    /// A clone for this thread: threads cannot share the cache of a regex.
    matcher: RegexMatcher,
    deadline: &'m Deadline,
    cache: RefCell<Option<regex::Cache>>,
    /// Whether a line was refused because it would take too many steps.
    pub(super) too_costly: Cell<bool>,
    /// How many steps one call of the regex engine may take.
    max_call_steps: u64,
    /// A line that this matches too is no match.
    exclude: Option<Box<Self>>,
}

/// The result of a byte-by-byte search.
enum Stepped {
    /// The start or end of the match, if there is one.
    Found(Option<usize>),
    /// The DFA gave up: it cannot decide a Unicode word boundary next to a non-ASCII character.
    Unknown,
}

impl<'m> BoundedMatcher<'m> {
    pub(super) fn new(compiled: &'m Compiled, deadline: &'m Deadline) -> Self {
        Self {
            compiled,
            matcher: compiled.matcher.clone(),
            deadline,
            cache: RefCell::new(None),
            too_costly: Cell::new(false),
            max_call_steps: MAX_CALL_STEPS,
            exclude: None,
        }
    }

    /// The same matcher for single lines, which does not match those that `exclude` matches.
    pub(super) fn excluding(self, exclude: Option<&'m Compiled>) -> Self {
        let exclude = exclude.map(|exclude| Box::new(Self::new(exclude, self.deadline)));
        Self { exclude, ..self }
    }

    fn steps(&self, len: usize) -> u64 {
        (len as u64).saturating_mul(self.compiled.weight as u64)
    }

    fn check_deadline(&self) -> io::Result<()> {
        if self.deadline.has_passed() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }

    /// The first match that starts at `at` or later. If `earliest`, only the end of the shortest match
    /// is correct.
    fn stepped(&self, text: &[u8], at: usize, earliest: bool) -> io::Result<Option<Match>> {
        let steps = self.steps(text.len() - at);
        let refused = || {
            self.too_costly.set(true);
            Err(io::Error::other("the line would take too many steps to search"))
        };
        if steps > MAX_LINE_STEPS {
            return refused();
        }
        if let Some(regex) = self.compiled.lazy_regex() {
            let mut cache = self.cache.borrow_mut();
            let (ends, starts) = cache.get_or_insert_with(|| regex.create_cache()).as_parts_mut();
            match self.end_of_match(regex.forward(), ends, text, at, earliest)? {
                Stepped::Found(None) => return Ok(None),
                Stepped::Found(Some(end)) if earliest => return Ok(Some(Match::zero(end))),
                Stepped::Found(Some(end)) => {
                    if let Stepped::Found(Some(start)) =
                        self.start_of_match(regex.reverse(), starts, text, at, end)?
                    {
                        return Ok(Some(Match::new(start, end)));
                    }
                }
                Stepped::Unknown => {}
            }
        }
        if steps > MAX_UNSTOPPABLE_STEPS {
            return refused();
        }
        Ok(self.matcher.find_at(text, at)?)
    }

    /// After how many bytes to check the deadline: a step of a heavy pattern takes longer.
    fn interval(&self) -> usize {
        (65_536 / self.compiled.weight.max(1)).clamp(16, 4_096)
    }

    fn end_of_match(
        &self,
        dfa: &DFA,
        cache: &mut Cache,
        text: &[u8],
        at: usize,
        earliest: bool,
    ) -> io::Result<Stepped> {
        let input = Input::new(text).span(at..text.len());
        let Ok(mut state) = dfa.start_state_forward(cache, &input) else {
            return Ok(Stepped::Unknown);
        };
        let mut end = None;
        let mut offset = at;
        for piece in text[at..].chunks(self.interval()) {
            self.check_deadline()?;
            for byte in piece {
                let Ok(next) = dfa.next_state(cache, state, *byte) else {
                    return Ok(Stepped::Unknown);
                };
                state = next;
                if state.is_tagged() {
                    match tag(state) {
                        // The DFA reports a match one byte after its end.
                        Tag::Match => end = Some(offset),
                        Tag::Dead => return Ok(Stepped::Found(end)),
                        Tag::Quit => return Ok(Stepped::Unknown),
                        Tag::None => {}
                    }
                    if earliest && end.is_some() {
                        return Ok(Stepped::Found(end));
                    }
                }
                offset += 1;
            }
        }
        let Ok(state) = dfa.next_eoi_state(cache, state) else { return Ok(Stepped::Unknown) };
        Ok(Stepped::Found(if state.is_match() { Some(text.len()) } else { end }))
    }

    /// The start, at `from` or later, of the match with this end.
    fn start_of_match(
        &self,
        dfa: &DFA,
        cache: &mut Cache,
        text: &[u8],
        from: usize,
        end: usize,
    ) -> io::Result<Stepped> {
        let input = Input::new(text).span(from..end).anchored(Anchored::Yes);
        let Ok(mut state) = dfa.start_state_reverse(cache, &input) else {
            return Ok(Stepped::Unknown);
        };
        let mut start = None;
        let mut offset = end;
        for piece in text[from..end].rchunks(self.interval()) {
            self.check_deadline()?;
            for byte in piece.iter().rev() {
                let Ok(next) = dfa.next_state(cache, state, *byte) else {
                    return Ok(Stepped::Unknown);
                };
                state = next;
                if state.is_tagged() {
                    match tag(state) {
                        Tag::Match => start = Some(offset),
                        Tag::Dead => return Ok(Stepped::Found(start)),
                        Tag::Quit => return Ok(Stepped::Unknown),
                        Tag::None => {}
                    }
                }
                offset -= 1;
            }
        }
        let last = match from.checked_sub(1) {
            None => dfa.next_eoi_state(cache, state),
            Some(before) => dfa.next_state(cache, state, text[before]),
        };
        Ok(match last {
            Ok(state) if state.is_quit() => Stepped::Unknown,
            Ok(state) => Stepped::Found(if state.is_match() { Some(from) } else { start }),
            Err(_) => Stepped::Unknown,
        })
    }
}

/// The kind of a tagged DFA state.
enum Tag {
    Match,
    Dead,
    Quit,
    None,
}

fn tag(state: LazyStateID) -> Tag {
    if state.is_match() {
        Tag::Match
    } else if state.is_dead() {
        Tag::Dead
    } else if state.is_quit() {
        Tag::Quit
    } else {
        Tag::None
    }
}

impl Matcher for &BoundedMatcher<'_> {
    type Captures = NoCaptures;
    type Error = io::Error;

    fn find_at(&self, text: &[u8], at: usize) -> io::Result<Option<Match>> {
        if self.steps(text.len() - at) <= self.max_call_steps {
            return Ok(self.matcher.find_at(text, at)?);
        }
        self.stepped(text, at, false)
    }

    fn shortest_match_at(&self, text: &[u8], at: usize) -> io::Result<Option<usize>> {
        let found = if self.steps(text.len() - at) <= self.max_call_steps {
            self.matcher.shortest_match_at(text, at)?
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
        self.matcher.non_matching_bytes()
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        self.matcher.line_terminator()
    }

    /// Searches as many whole lines per call as the step limit allows. A longer line is returned as a
    /// candidate, which the searcher then searches by itself.
    fn find_candidate_line(&self, text: &[u8]) -> io::Result<Option<LineMatchKind>> {
        let unconfirmed = |found: LineMatchKind, start: usize| match found {
            LineMatchKind::Confirmed(offset) if self.exclude.is_none() => {
                LineMatchKind::Confirmed(start + offset)
            }
            LineMatchKind::Confirmed(offset) | LineMatchKind::Candidate(offset) => {
                LineMatchKind::Candidate(start + offset)
            }
        };
        if self.steps(text.len()) <= self.max_call_steps {
            let found = self.matcher.find_candidate_line(text)?;
            return Ok(found.map(|found| unconfirmed(found, 0)));
        }
        let max = usize::try_from(self.max_call_steps / self.compiled.weight.max(1) as u64);
        let max = max.unwrap_or(usize::MAX).max(1);
        let mut start = 0;
        while start < text.len() {
            self.check_deadline()?;
            let rest = &text[start..];
            // Without the last line feed: the line after it is not in this piece.
            let piece = match memchr::memrchr(b'\n', &rest[..max.min(rest.len())]) {
                _ if rest.len() <= max => rest,
                Some(end) => &rest[..end],
                None => return Ok(Some(LineMatchKind::Candidate(start))),
            };
            let found = self.matcher.find_candidate_line(piece)?;
            if let Some(found) = found {
                return Ok(Some(unconfirmed(found, start)));
            }
            start += piece.len() + 1;
        }
        Ok(None)
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
    ];

    proptest! {
        /// Whatever the text and however small the steps, the answers are those of the regex engine.
        #[test]
        fn a_bounded_search_finds_what_an_unbounded_one_does(
            number in 0..PATTERNS.len(),
            text in "[abcéÉ \n]{0,40}",
            multiline: bool,
            max_call_steps in 0_u64..30,
        ) {
            let pattern = PATTERNS[number].to_owned();
            let search_pattern =
                SearchPattern { pattern, literal: false, ignore_case: false, multiline };
            let compiled = PatternCache::default().compiled(&search_pattern).unwrap();
            let deadline = Deadline::default();
            let bounded = BoundedMatcher { max_call_steps, ..BoundedMatcher::new(&compiled, &deadline) };
            let bounded = &bounded;
            let text = text.as_bytes();
            // Where matches do not span lines, the searcher asks about single lines.
            let texts: Vec<&[u8]> =
                if multiline { vec![text] } else { text.split(|byte| *byte == b'\n').collect() };
            for text in texts {
                for at in 0..=text.len() {
                    prop_assert_eq!(
                        bounded.find_at(text, at).unwrap(),
                        compiled.matcher.find_at(text, at).unwrap(),
                        "{:?} in {:?} at {}", PATTERNS[number], String::from_utf8_lossy(text), at
                    );
                    prop_assert_eq!(
                        bounded.shortest_match_at(text, at).unwrap().is_some(),
                        compiled.matcher.shortest_match_at(text, at).unwrap().is_some()
                    );
                }
            }
        }

        #[test]
        fn a_bounded_searcher_reports_the_same_lines(
            number in 0..PATTERNS.len(),
            text in "[abcéÉ \n]{0,60}",
            max_call_steps in 0_u64..60,
        ) {
            let pattern = PATTERNS[number].to_owned();
            let search_pattern =
                SearchPattern { pattern, literal: false, ignore_case: false, multiline: false };
            let compiled = PatternCache::default().compiled(&search_pattern).unwrap();
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
                    .search_slice(&compiled.matcher, text.as_bytes(), sink)
                    .unwrap();
            });
            prop_assert_eq!(one, other, "{:?} in {:?}", PATTERNS[number], text);
        }
    }
}
