//! Converts a regex to the trigrams that every match contains.
//!
//! The regex becomes a sequence of positions, each with a few alternatives, for example a letter in either case, or a
//! small class. Every three adjacent positions give trigrams, one of which must occur. If there are too many
//! possibilities, the sequence is cut; the parts on both sides must still occur.

use regex_syntax::hir::{Class, Hir, HirKind};

use crate::slot;

/// The trigrams that a text must contain for a match to be possible.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Query {
    /// Any text may match.
    All,
    /// One of these trigrams, by their slots.
    Grams(Vec<u32>),
    /// All of these.
    And(Vec<Self>),
    /// One of these.
    Or(Vec<Self>),
}

/// The maximum number of alternatives at a position.
const MAX_ALTERNATIVES: usize = 16;

/// The maximum number of trigrams for three positions.
const MAX_GRAMS: usize = 1_024;

/// The maximum number of trigrams in a query. Looking one up takes a microsecond.
const MAX_QUERY_GRAMS: usize = 10_000;

/// How often a repetition is expanded.
const MAX_REPEATED: u32 = 8;

impl Query {
    /// The query for a regex. `literal` says that it is plain text, and `ignore_case` that case is ignored.
    pub fn new(pattern: &str, literal: bool, ignore_case: bool) -> Self {
        let escaped;
        let pattern = if literal {
            escaped = regex_syntax::escape(pattern);
            &escaped
        } else {
            pattern
        };
        let mut parser = regex_syntax::ParserBuilder::new()
            .utf8(false)
            .multi_line(true)
            .case_insensitive(ignore_case)
            .build();
        let Ok(hir) = parser.parse(pattern) else { return Self::All };
        let query = of(&hir);
        if query.grams() > MAX_QUERY_GRAMS { Self::All } else { query }
    }

    /// Whether it excludes nothing.
    pub fn is_all(&self) -> bool {
        *self == Self::All
    }

    /// Whether a match in a text is possible.
    pub fn admits(&self, text: &[u8]) -> bool {
        let mut slots: Vec<_> =
            text.windows(3).map(|gram| slot([gram[0], gram[1], gram[2]])).collect();
        slots.sort_unstable();
        self.admits_slots(&slots)
    }

    fn admits_slots(&self, slots: &[u32]) -> bool {
        match self {
            Self::All => true,
            Self::Grams(any) => any.iter().any(|slot| slots.binary_search(slot).is_ok()),
            Self::And(parts) => parts.iter().all(|part| part.admits_slots(slots)),
            Self::Or(parts) => parts.iter().any(|part| part.admits_slots(slots)),
        }
    }

    fn grams(&self) -> usize {
        match self {
            Self::All => 0,
            Self::Grams(slots) => slots.len(),
            Self::And(parts) | Self::Or(parts) => parts.iter().map(Self::grams).sum(),
        }
    }

    fn and(mut parts: Vec<Self>) -> Self {
        parts.retain(|part| !part.is_all());
        // Queries that are cheap to look up come first.
        parts.sort_by_key(Self::grams);
        match parts.len() {
            0 => Self::All,
            1 => parts.remove(0),
            _ => Self::And(parts),
        }
    }

    fn or(parts: Vec<Self>) -> Self {
        if parts.iter().any(Self::is_all) { Self::All } else { Self::Or(parts) }
    }
}

/// The alternatives at one position: non-empty byte strings.
type Position = Vec<Vec<u8>>;

/// Collects the trigrams while the regex is read from left to right.
#[derive(Default)]
struct Reader {
    /// The positions since the last cut.
    positions: Vec<Position>,
    required: Vec<Query>,
}

fn of(hir: &Hir) -> Query {
    let mut reader = Reader::default();
    reader.read(hir);
    reader.cut();
    Query::and(reader.required)
}

impl Reader {
    fn read(&mut self, hir: &Hir) {
        match hir.kind() {
            // They match no bytes, so the text on both sides is adjacent.
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => {
                self.positions.extend(literal.0.iter().map(|byte| vec![vec![*byte]]));
            }
            HirKind::Class(class) => match alternatives(class) {
                Some(position) => self.positions.push(position),
                None => self.cut(),
            },
            HirKind::Capture(capture) => self.read(&capture.sub),
            HirKind::Concat(parts) => parts.iter().for_each(|part| self.read(part)),
            HirKind::Alternation(parts) => {
                self.cut();
                self.required.push(Query::or(parts.iter().map(of).collect()));
            }
            HirKind::Repetition(repeated) if repeated.min == 0 => self.cut(),
            HirKind::Repetition(repeated) => {
                let written_out = repeated.min.min(MAX_REPEATED);
                (0..written_out).for_each(|_| self.read(&repeated.sub));
                if repeated.max != Some(written_out) {
                    // The last repetition is adjacent to the text after it.
                    self.cut();
                    self.read(&repeated.sub);
                }
            }
        }
    }

    /// The text that follows need not be adjacent to the text so far.
    fn cut(&mut self) {
        let positions = std::mem::take(&mut self.positions);
        let grams = positions.windows(3).filter_map(grams);
        self.required.extend(grams.map(Query::Grams));
    }
}

/// The trigrams that a text can have at three positions. Returns `None` if there are too many.
fn grams(positions: &[Position]) -> Option<Vec<u32>> {
    let number: usize = positions.iter().map(Vec::len).product();
    if number > MAX_GRAMS {
        return None;
    }
    let mut texts: Vec<Vec<u8>> = vec![Vec::new()];
    for position in positions {
        let longer = |text: &Vec<u8>| {
            let text = text.clone();
            position.iter().map(move |alternative| [&text[..], alternative].concat())
        };
        texts = texts.iter().flat_map(longer).collect();
    }
    let mut slots: Vec<u32> = texts.iter().map(|text| slot([text[0], text[1], text[2]])).collect();
    slots.sort_unstable();
    slots.dedup();
    Some(slots)
}

/// The texts that a class matches, if there are few.
fn alternatives(class: &Class) -> Option<Position> {
    let mut position = Position::new();
    match class {
        Class::Unicode(class) => {
            for range in class.iter() {
                if range.len() > MAX_ALTERNATIVES {
                    return None;
                }
                let mut buffer = [0; 4];
                let characters = range.start()..=range.end();
                position.extend(
                    characters.map(|letter| letter.encode_utf8(&mut buffer).as_bytes().to_vec()),
                );
            }
        }
        Class::Bytes(class) => {
            for range in class.iter() {
                if range.len() > MAX_ALTERNATIVES {
                    return None;
                }
                position.extend((range.start()..=range.end()).map(|byte| vec![byte]));
            }
        }
    }
    // A class that matches nothing makes a regex that never matches.
    (1..=MAX_ALTERNATIVES).contains(&position.len()).then_some(position)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex_automata::meta::Regex;
    use regex_automata::util::syntax;

    use super::*;
    use crate::SegmentBuilder;

    fn grams_of(text: &str) -> Query {
        let grams = text.as_bytes().windows(3).map(|gram| slot([gram[0], gram[1], gram[2]]));
        Query::and(grams.map(|gram| Query::Grams(vec![gram])).collect())
    }

    #[test]
    fn every_part_that_must_occur_is_required() {
        for (pattern, required) in [
            ("mutex_lock", Some("mutex_lock")),
            ("\\bpage\\b", Some("page")),
            ("(abc)d", Some("abcd")),
            ("abc{1}", Some("abc")),
            ("ab", None),
            ("\\w+", None),
            ("(abc)?", None),
            ("abc|x", None),
            ("", None),
        ] {
            let query = Query::new(pattern, false, false);
            assert_eq!(query, required.map_or(Query::All, grams_of), "{pattern}");
        }
        assert_eq!(Query::new("a.b", true, false), grams_of("a.b"));
        let both = Query::new("abc.*xyz", false, false);
        assert_eq!(both, Query::and(vec![grams_of("abc"), grams_of("xyz")]));
        let either = Query::new("abc|xyz", false, false);
        assert_eq!(either, Query::Or(vec![grams_of("abc"), grams_of("xyz")]));
    }

    #[test]
    fn a_letter_that_folds_to_a_longer_one_rules_nothing_out() {
        let mut builder = SegmentBuilder::default();
        let texts = ["MASK it", "ma\u{17f}\u{212a} it", "other"];
        let texts = texts.map(|text| builder.add(text.as_bytes()));
        let segment = builder.build();
        let candidates: Vec<_> =
            segment.candidates(&Query::new("mask", false, true), false).collect();
        assert_eq!(candidates, texts[..2]);
    }

    const PATTERNS: &[&str] = &[
        "abc",
        "ab+c",
        "a{2,3}b",
        "[ab]{3}",
        "(abc|cab)a?",
        "a.c",
        "^abc$",
        "b\\s*c",
        "abca|b",
        "(?i)ABC",
        "é.?a",
        "[ab][bc][ca]x?",
        "(a|b)(b|c)(c|a)",
        "(?:ab){2,}c",
        "a\\nb",
        "c[^a]b",
        "\\w{3}",
        "[0-9]{2}a",
        "(?-u:\\xff)ab",
    ];

    proptest! {
        /// No text with a match is ever excluded.
        #[test]
        fn a_text_with_a_match_is_a_candidate(
            number in 0..PATTERNS.len(),
            texts in prop::collection::vec("[abcé1 \n]{0,30}", 1..20),
            ignore_case: bool,
        ) {
            let syntax = syntax::Config::new().utf8(false).multi_line(true).case_insensitive(ignore_case);
            let regex = Regex::builder().syntax(syntax).build(PATTERNS[number]).unwrap();
            let query = Query::new(PATTERNS[number], false, ignore_case);
            let mut builder = SegmentBuilder::default();
            for text in &texts {
                builder.add(text.as_bytes());
            }
            let segment = builder.build();
            for multiline in [false, true] {
                let candidates: Vec<_> = segment.candidates(&query, multiline).collect();
                prop_assert!(candidates.is_sorted_by(|one, other| one < other));
                for (id, text) in texts.iter().enumerate() {
                    if regex.is_match(text.as_bytes()) {
                        prop_assert!(query.admits(text.as_bytes()), "{} in {text:?}", PATTERNS[number]);
                        prop_assert!(candidates.contains(&(id as u32)), "{} in {text:?}", PATTERNS[number]);
                    }
                }
            }
        }
    }

    #[test]
    fn matches_across_blocks_are_found_where_they_span_lines() {
        let line = "0123456789 some text that fills a block, line by line\n";
        let mut text = line.repeat(65_536 / line.len() + 1);
        text.truncate(65_536);
        // The first block ends in the middle of the word that is searched for.
        text.replace_range(65_530.., "needle");
        text.push('\n');
        text.push_str("across");
        text.push_str(&line.repeat(3_000));
        let mut builder = SegmentBuilder::default();
        let id = builder.add(text.as_bytes());
        let other = builder.add(line.repeat(5_000).as_bytes());
        let segment = builder.build();
        for (pattern, multiline) in [
            ("needle", false),
            ("needle\\nacross", true),
            ("e\\na", true),
            ("across0123", false),
            ("needle(?s:.)*block", true),
        ] {
            let query = Query::new(pattern, false, false);
            let candidates: Vec<_> = segment.candidates(&query, multiline).collect();
            assert!(candidates.contains(&id) && !candidates.contains(&other), "{pattern}");
        }
        let nowhere = Query::new("nowhere_at_all", false, false);
        assert!(!nowhere.admits(text.as_bytes()));
        let mut candidates = segment.candidates(&nowhere, false);
        assert!(candidates.next().is_none() && segment.bytes() > 0);
    }
}
