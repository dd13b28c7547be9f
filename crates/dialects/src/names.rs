//! The names of arguments in answers. Several dialects have the same tool under other names.

/// The names of arguments in the answers of a tool, and the phrases that tell a model how to continue.
#[derive(Debug)]
pub(crate) struct AnswerNames {
    /// The argument with the text to replace.
    pub(crate) old_text: &'static str,
    /// The argument with the new text.
    pub(crate) new_text: &'static str,
    /// The argument that replaces every occurrence.
    pub(crate) replace_all: &'static str,
    /// How to read on from a line.
    pub(crate) read_on: fn(u64) -> String,
    /// How to see more results of a search, after this many.
    pub(crate) more_results: fn(u64) -> String,
    /// How to ignore case in a search.
    pub(crate) ignore_case: &'static str,
    /// The answer to a search without matches.
    pub(crate) no_matches: &'static str,
    /// The arguments that choose lines, with the verb after them.
    pub(crate) lines_are: &'static str,
    /// The advice to omit these arguments.
    pub(crate) omit_lines_hint: &'static str,
    /// Whether a PDF can be read by pages.
    pub(crate) pages: bool,
}

/// The names of `classic`.
pub(crate) const CLASSIC_NAMES: AnswerNames = AnswerNames {
    old_text: "old_string",
    new_text: "new_string",
    replace_all: "replace_all",
    read_on: |line| format!("continue with offset={line}"),
    more_results: |number| format!("continue with offset={number}"),
    ignore_case: "set -i",
    no_matches: "No matches found",
    lines_are: "`offset` and `limit` are",
    omit_lines_hint: "leave them out",
    pages: true,
};

/// For dialects whose search has neither pages nor an argument that ignores case.
pub(crate) const SHORT_NAMES: AnswerNames = AnswerNames {
    more_results: |_| "narrow the pattern or path to see the others".into(),
    ignore_case: "put `(?i)` before the pattern",
    pages: false,
    ..CLASSIC_NAMES
};
