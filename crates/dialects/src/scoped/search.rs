//! `search_files`

use pinfold::operations::{self, AnswerWith};
use pinfold::{Done, Error};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::matches::{SearchHints, compact_params, context, matches, message};
use crate::phrases::withheld;
use crate::tool_context::RelativePath;
use crate::{Tool, ToolContext};

/// Searches file contents for text, or for a regex. Git-ignored files only where `path` or `glob`
/// names them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Search {
    /// What to search for.
    pattern: String,
    /// File or directory relative to the workspace root; the root if left out.
    path: Option<RelativePath>,
    /// The pattern is a regex.
    regex: Option<bool>,
    /// Whether upper and lower case differ; true if left out.
    case_sensitive: Option<bool>,
    /// Lines before and after each match.
    #[schemars(range(max = limits::MAX_CONTEXT))]
    context_lines: Option<u64>,
    /// Files to search, such as `*.py,!test_*`.
    glob: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reply {
    /// The matches, by path.
    matches: Vec<Match>,
    /// How many there are, shown or not.
    total_matches: u64,
    /// How many files were searched.
    files_searched: u64,
    /// Whether there are more than are shown; absent if not.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    /// How many may not be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    withheld: Option<u64>,
    /// What else there is to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Match {
    /// Path relative to the workspace root.
    file: String,
    /// Line number, counting from 1.
    line: u64,
    /// The matching line.
    content: String,
    /// The lines around it, if some were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Context>,
}

#[derive(Serialize, JsonSchema)]
struct Context {
    /// Lines before it.
    before: Vec<String>,
    /// Lines after it.
    after: Vec<String>,
}

impl Tool for Search {
    const NAME: &'static str = "search_files";
    const TITLE: &'static str = "Search in files";
    const IDEMPOTENT: bool = true;
    type Op = operations::Search;
    type Reply = Reply;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<operations::Search, Error> {
        let lines = context(self.context_lines);
        Ok(operations::Search::new(self.pattern.as_str())
            .with_literal(!self.regex.unwrap_or(false))
            .with_ignore_case(!self.case_sensitive.unwrap_or(true))
            .with_path(self.path.as_ref().map(RelativePath::raw).transpose()?)
            .with_glob(self.glob.clone())
            .with_answer(AnswerWith::Lines { before: lines, after: lines })
            .with_max_results(Some(limits::MAX_SCOPED_RESULTS))
            .with_budget(ctx.budget(limits::DEFAULT_MAX_OUTPUT_BYTES)))
    }

    fn reply(&self, done: Done<operations::Search>, ctx: &ToolContext<'_>) -> Reply {
        let searched = done.outcome;
        let matches = matches(
            &searched,
            context(self.context_lines) as u64,
            ctx.budget(limits::DEFAULT_MAX_OUTPUT_BYTES),
        );
        let has_context = context(self.context_lines) > 0;
        let matches = matches.into_iter().map(|found| Match {
            file: ctx.relative(found.place),
            line: found.number,
            content: found.text,
            context: has_context.then_some(Context { before: found.before, after: found.after }),
        });
        let matches: Vec<_> = matches.collect();
        let hints = SearchHints {
            more: "narrow `path` or `glob`",
            ignore_case: "set `caseSensitive` to false",
        };
        let message = message((self.operation(ctx), &searched), matches.len(), hints, ctx);
        Reply {
            truncated: (searched.total > matches.len() as u64).then_some(true),
            matches,
            total_matches: searched.total,
            files_searched: searched.searched,
            withheld: withheld(&searched.skipped),
            message,
        }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        compact_params(&self.pattern, self.path.as_ref().map(RelativePath::as_str), ctx)
    }
}
