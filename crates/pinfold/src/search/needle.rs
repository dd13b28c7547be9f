//! What is searched for: a compiled pattern, set up as ripgrep sets up its own.

use std::sync::{Arc, Mutex, PoisonError};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use crate::Error;
use crate::limits::{KEPT_PATTERNS, PATTERN_BYTES, REGEX_BYTES};

/// A pattern, and how it is to be read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Needle {
    pub(crate) pattern: String,
    pub(crate) literal: bool,
    pub(crate) ignore_case: bool,
    /// Whether matches may span lines, and `.` stands for line ends too.
    pub(crate) multiline: bool,
}

impl Needle {
    fn compile(&self) -> Result<RegexMatcher, Error> {
        if self.pattern.len() > PATTERN_BYTES {
            let problem = format!("it has more than {PATTERN_BYTES} bytes");
            return Err(Error::BadRegex { problem });
        }
        let mut builder = RegexMatcherBuilder::new();
        builder
            .multi_line(true)
            .unicode(true)
            .octal(false)
            .fixed_strings(self.literal)
            .case_insensitive(self.ignore_case)
            .size_limit(REGEX_BYTES)
            .dfa_size_limit(REGEX_BYTES)
            // No line of text has it, and what does is not searched as text.
            .ban_byte(Some(0));
        if self.multiline {
            builder.dot_matches_new_line(true);
        } else {
            builder.line_terminator(Some(b'\n')).dot_matches_new_line(false);
        }
        builder.build(&self.pattern).map_err(|error| {
            let mut problem = self.mistake().unwrap_or_else(|| error.to_string());
            if problem.contains("\"\\n\" is not allowed") {
                problem =
                    "it has a line end in it, and matches do not span lines; set `multiline`, \
                           or search for one of the lines"
                        .into();
            } else if problem.contains("look-") && problem.contains("not supported") {
                problem.push_str("; leave it out and look at the lines that are found");
            }
            Error::BadRegex { problem }
        })
    }
}

impl Needle {
    /// What is wrong with the pattern as it was written, and where.
    fn mistake(&self) -> Option<String> {
        if self.literal {
            return None;
        }
        let error = regex_syntax::ast::parse::Parser::new().parse(&self.pattern).err()?;
        let place = self.pattern.get(..error.span().start.offset)?.chars().count() + 1;
        Some(format!("{} (at character {place})", error.kind()))
    }
}

/// The patterns that a session has compiled last: agents search for one thing in several places.
#[derive(Debug, Default)]
pub(crate) struct Needles(Mutex<Vec<(Needle, Arc<RegexMatcher>)>>);

impl Needles {
    /// A pattern, compiled.
    pub(crate) fn compiled(&self, needle: &Needle) -> Result<Arc<RegexMatcher>, Error> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = lock();
        if let Some(found) = kept.iter().position(|(known, _)| known == needle) {
            // The last one used is the last one to go.
            let known = kept.remove(found);
            let matcher = known.1.clone();
            kept.push(known);
            return Ok(matcher);
        }
        drop(kept);
        let matcher = Arc::new(needle.compile()?);
        let mut kept = lock();
        if kept.len() >= KEPT_PATTERNS {
            kept.remove(0);
        }
        kept.push((needle.clone(), matcher.clone()));
        Ok(matcher)
    }
}
