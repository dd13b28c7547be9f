//! Filters for files, with the syntax of `rg -g`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use pinfold_confine::{Candidate, FilterDecision, Kind};

use super::{LiteralNames, bad, check, split};
use crate::limits::{MAX_GLOB_CHARS, MAX_GLOBS_BYTES};
use crate::{Error, GlobUsage};

/// Patterns that select the files of a search, with the syntax of `rg -g`.
///
/// They are gitignore patterns: one without a slash matches names at any level. A file that matches is
/// included even if it is ignored; `!` excludes; the last pattern that matches decides.
#[derive(Debug)]
pub(crate) struct Filter {
    patterns: Gitignore,
    literal_names: LiteralNames,
}

impl Filter {
    pub(crate) fn new(usage: GlobUsage, texts: &[String]) -> Result<Self, Error> {
        let mut builder = GitignoreBuilder::new("");
        builder.allow_unclosed_class(false);
        for pattern in texts {
            check(usage, pattern)?;
            builder.add_line(None, pattern).map_err(|error| match error {
                ignore::Error::Glob { err, .. } => bad(usage, pattern, &err),
                other => bad(usage, pattern, &other.to_string()),
            })?;
        }
        let patterns =
            builder.build().map_err(|_| bad(usage, &texts.join(","), "it is too large"))?;
        let mut literal_names = LiteralNames { names: Vec::new(), hidden: Vec::new() };
        for pattern in texts.iter().filter(|pattern| !pattern.starts_with('!')) {
            let more = LiteralNames::new(pattern);
            literal_names.names.extend(more.names);
            literal_names.hidden.extend(more.hidden);
        }
        Ok(Self { patterns, literal_names })
    }

    /// Includes an entry whose name is a literal component of a pattern, even if it is hidden or ignored.
    pub(crate) fn name_decision(&self, candidate: &Candidate<'_>) -> FilterDecision {
        self.literal_names.filter_decision(candidate.name())
    }

    /// Parses patterns separated by commas; commas within braces do not separate.
    pub(crate) fn parse(usage: GlobUsage, patterns: &str) -> Result<Self, Error> {
        if patterns.len() > MAX_GLOBS_BYTES {
            let beginning = &patterns[..patterns.floor_char_boundary(MAX_GLOB_CHARS)];
            return Err(bad(
                usage,
                beginning,
                &format!("it has more than {MAX_GLOBS_BYTES} bytes"),
            ));
        }
        let parts = split(patterns, ',');
        let parts: Vec<_> = match parts.as_slice() {
            [only] => vec![(*only).to_owned()],
            several => several.iter().map(|part| part.trim().to_owned()).collect(),
        };
        if parts.iter().any(|part| part.is_empty() || part == "!") {
            return Err(bad(usage, patterns, "it has an empty part"));
        }
        Self::new(usage, &parts)
    }

    /// Whether the filter includes a path.
    pub(crate) fn includes(&self, path: &[u8], kind: Kind) -> bool {
        let is_directory = kind == Kind::Directory;
        match self.decide(path, is_directory) {
            FilterDecision::Include => true,
            FilterDecision::Exclude => false,
            FilterDecision::Force | FilterDecision::Default => self.patterns.num_ignores() == 0,
        }
    }

    /// Matches a candidate's path relative to the start of the search, and relative to the root.
    pub(crate) fn filter_decision(&self, candidate: &Candidate<'_>) -> FilterDecision {
        let is_directory = candidate.kind == Kind::Directory;
        let (below_start, below_root) = (candidate.below_start(), candidate.below_root());
        let decision =
            match (self.decide(below_start, is_directory), self.decide(below_root, is_directory)) {
                (FilterDecision::Exclude, _) | (_, FilterDecision::Exclude) => {
                    FilterDecision::Exclude
                }
                (FilterDecision::Include, _) | (_, FilterDecision::Include) => {
                    FilterDecision::Include
                }
                _ => FilterDecision::Default,
            };
        // If a pattern includes files, files that match no pattern are excluded.
        match decision {
            FilterDecision::Default if self.patterns.num_ignores() > 0 && !is_directory => {
                FilterDecision::Exclude
            }
            decision => decision,
        }
    }

    fn decide(&self, path: &[u8], is_directory: bool) -> FilterDecision {
        match self.patterns.matched(Path::new(OsStr::from_bytes(path)), is_directory) {
            // A pattern that ignores in an ignore file includes in a filter.
            Match::Ignore(_) => FilterDecision::Include,
            Match::Whitelist(_) => FilterDecision::Exclude,
            Match::None => FilterDecision::Default,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_argument_is_refused_at_once() {
        let long = "[".repeat(16 << 20);
        let begin = std::time::Instant::now();
        let refused = Filter::parse(GlobUsage::Filter, &long).unwrap_err().to_string();
        assert!(refused.contains("more than") && refused.len() < 10_000, "{}", refused.len());
        // Many unclosed classes take no longer than one.
        assert_eq!(split(&long[..1 << 20], ',').len(), 1);
        assert!(begin.elapsed() < std::time::Duration::from_secs(10), "{:?}", begin.elapsed());
        let many = vec!["*.rs"; 1_000].join(",");
        assert!(Filter::parse(GlobUsage::Filter, &many).is_ok());
    }
}
