//! The `patch` dialect: codex's `apply_patch`, and codex's tools for reading.

mod apply;
mod error_text;
mod hosted;
mod list_dir;
mod read_file;

use pinfold::Error;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::answer::Blocks;
use crate::classic::grep::{Grep, Mode};
use crate::hint::{FailedCall, HintNames};
use crate::names::{AnswerNames, SHORT_NAMES};
use crate::tool::{Alias, alias, parse, parse_alias, parse_dispatch};
use crate::tool_context::RelativePath;
use crate::{Answer, Dialect, ToolEntry};

pub(crate) use apply::{ApplyPatch, Notation};
pub(crate) use error_text::message;
pub use hosted::hosted_patch;

/// `apply_patch`, `read_file`, `list_dir` and `grep_files`.
pub static PATCH: Dialect = Dialect {
    name: "patch",
    tools: &[
        ToolEntry { openai_grammar: Some(("lark", GRAMMAR)), ..apply_entry() },
        ToolEntry::dispatch::<read_file::ReadFile>(
            || None,
            |arguments| parse_dispatch::<read_file::ReadFile>(arguments, text),
        ),
        ToolEntry::dispatch::<list_dir::ListDir>(
            || None,
            |arguments| parse_dispatch::<list_dir::ListDir>(arguments, text),
        ),
        alias::<GrepFiles>(&GREP_NAMES, |arguments| {
            parse_alias::<GrepFiles>(arguments, Blocks::of_result)
        }),
    ],
    error_answer,
    answers_unknown_tools: false,
    requires_reads: true,
};

/// The tool of `pinfold apply`: `apply_patch` for codex's notation and for unified diffs.
pub static APPLY: Dialect = Dialect {
    name: "apply",
    tools: &[alias::<AnyPatch>(&crate::names::CLASSIC_NAMES, |arguments| {
        parse_alias::<AnyPatch>(arguments, text)
    })],
    error_answer,
    answers_unknown_tools: false,
    requires_reads: true,
};

const GRAMMAR: &str = include_str!("patch/grammar.lark");

const fn apply_entry() -> ToolEntry {
    ToolEntry::of::<ApplyPatch>(|| None, |arguments| parse::<ApplyPatch>(arguments, text))
}

/// The answer with one text.
pub(crate) fn text(text: String) -> Answer {
    Answer::Blocks(Blocks::text(text))
}

/// Applies a patch to files of the workspace.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AnyPatch {
    /// The patch, in codex's notation or as unified diffs.
    patch: String,
}

impl Alias for AnyPatch {
    const NAME: &'static str = "apply";
    type Of = ApplyPatch;

    fn into_tool(self) -> Result<ApplyPatch, Error> {
        Ok(ApplyPatch::new(self.patch, Notation::Any))
    }
}

/// Lists the files whose content matches a regex, newest first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GrepFiles {
    /// Regex, matched line by line.
    pattern: String,
    /// Glob of the files to search, such as `*.rs`.
    include: Option<String>,
    /// File or directory, absolute or relative to the workspace root; all if left out.
    path: Option<RelativePath>,
    /// Most files; 100 if left out.
    #[schemars(range(min = 1, max = 2000))]
    limit: Option<u64>,
}

impl Alias for GrepFiles {
    const NAME: &'static str = "grep_files";
    type Of = Grep;

    fn into_tool(self) -> Result<Grep, Error> {
        let Self { pattern, include, path, limit } = self;
        let grep = Grep::new(pattern, path, include, Mode::FilesWithMatches);
        Ok(grep.with_limit(limit.unwrap_or(100)))
    }
}

static GREP_NAMES: AnswerNames = AnswerNames {
    no_matches: "No matches found.",
    more_results: |_| "raise limit, or narrow pattern, include or path to see the others".into(),
    ..SHORT_NAMES
};

/// The names of tools and arguments in hints.
pub(crate) static HINT_NAMES: HintNames = HintNames {
    relative_paths: false,
    read_tool: "read_file",
    list_tool: "list_dir",
    find_glob: "include",
    filter_glob: "include",
    ignore_glob: "include",
    multiline: None,
    plain_text: "escape it",
    create_parents: None,
};

fn error_answer(error: &Error, call: &FailedCall) -> Answer {
    Blocks::failure(message(error, call, &HINT_NAMES), crate::code(error))
}
