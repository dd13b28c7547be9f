//! Searches a line byte by byte with a lazy DFA, which can be stopped after each byte.

use std::io;

use pinfold_confine::Deadline;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::{Anchored, Input};

/// The result of a byte-by-byte search.
pub(super) enum Stepped {
    /// The start or end of the match, if there is one.
    Found(Option<usize>),
    /// The DFA gave up, since it cannot decide a Unicode word boundary next to a non-ASCII character.
    Unknown,
}

/// A text that is searched byte by byte until the deadline.
pub(super) struct Steps<'s> {
    pub(super) text: &'s [u8],
    pub(super) deadline: &'s Deadline,
    /// How many positions the pattern has.
    pub(super) nfa_states: usize,
}

/// Fails if the deadline has passed.
pub(super) fn check(deadline: &Deadline) -> io::Result<()> {
    if deadline.has_passed() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
}

impl Steps<'_> {
    /// How many bytes to search between checks of the deadline. A step of a heavy pattern takes longer.
    fn interval(&self) -> usize {
        (65_536 / self.nfa_states.max(1)).clamp(16, 4_096)
    }

    /// The end of the first match that starts at `at` or later, or of the shortest one if `earliest` is set.
    pub(super) fn end_of_match(
        &self,
        dfa: &DFA,
        cache: &mut Cache,
        at: usize,
        earliest: bool,
    ) -> io::Result<Stepped> {
        let text = self.text;
        let input = Input::new(text).span(at..text.len());
        let Ok(mut state) = dfa.start_state_forward(cache, &input) else {
            return Ok(Stepped::Unknown);
        };
        let mut end = None;
        let mut offset = at;
        for piece in text[at..].chunks(self.interval()) {
            check(self.deadline)?;
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
    pub(super) fn start_of_match(
        &self,
        dfa: &DFA,
        cache: &mut Cache,
        from: usize,
        end: usize,
    ) -> io::Result<Stepped> {
        let text = self.text;
        let input = Input::new(text).span(from..end).anchored(Anchored::Yes);
        let Ok(mut state) = dfa.start_state_reverse(cache, &input) else {
            return Ok(Stepped::Unknown);
        };
        let mut start = None;
        let mut offset = end;
        for piece in text[from..end].rchunks(self.interval()) {
            check(self.deadline)?;
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
