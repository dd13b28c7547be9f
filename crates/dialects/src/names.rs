//! The names that answers use for arguments, where several dialects have the same tool under other names.

/// What an answer says to a model that wants to go on.
#[derive(Debug)]
pub(crate) struct Names {
    /// The argument with the text to replace.
    pub(crate) old_text: &'static str,
    /// The argument with the new text.
    pub(crate) new_text: &'static str,
    /// The argument that replaces every occurrence.
    pub(crate) replace_all: &'static str,
    /// How to read on from a line.
    pub(crate) read_on: fn(u64) -> String,
    /// How to see the results of a search after so many.
    pub(crate) more_results: fn(u64) -> String,
    /// How to search whatever the case.
    pub(crate) ignore_case: &'static str,
    /// The answer to a search without matches.
    pub(crate) no_matches: &'static str,
    /// What is said of the arguments that choose lines, and how to do without them.
    pub(crate) lines: [&'static str; 2],
    /// Whether a PDF can be read by pages.
    pub(crate) pages: bool,
}

/// The names of `classic`.
pub(crate) const CLASSIC: Names = Names {
    old_text: "old_string",
    new_text: "new_string",
    replace_all: "replace_all",
    read_on: |line| format!("continue with offset={line}"),
    more_results: |number| format!("continue with offset={number}"),
    ignore_case: "set -i",
    no_matches: "No matches found",
    lines: ["`offset` and `limit` are", "leave them out"],
    pages: true,
};

/// The names where a search has no page and cannot ignore case by an argument.
pub(crate) const SHORT: Names = Names {
    more_results: |_| "narrow the pattern or path to see the others".into(),
    ignore_case: "put `(?i)` before the pattern",
    pages: false,
    ..CLASSIC
};
