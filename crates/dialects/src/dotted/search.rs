//! `file.search`

use pinfold::operations::{self, AnswerWith};
use pinfold::{Done, Error};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::matches::{SearchHints, compact_params, context, matches, message};
use crate::phrases::withheld;
use crate::tool_context::RelativePath;
use crate::{Tool, ToolContext};

/// Searches file contents for a regex. Git-ignored files only where `path` or `glob` names them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Search {
    /// Regex, matched line by line.
    pattern: String,
    /// File or directory relative to the workspace root; the root if left out.
    path: Option<RelativePath>,
    /// Files to search, such as `*.py,!test_*`.
    glob: Option<String>,
    /// Whether upper and lower case differ; true if left out.
    case_sensitive: Option<bool>,
    /// Lines before and after each match.
    #[schemars(range(max = limits::MAX_CONTEXT))]
    context_lines: Option<u64>,
    /// Most matches to show; 100 if left out.
    #[schemars(range(min = 1, max = limits::MAX_SEARCH_RESULTS))]
    max_results: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// The matches, by path.
    matches: Vec<Match>,
    /// Whether there are more than are shown.
    truncated: bool,
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
    path: String,
    /// Line number, counting from 1.
    line: u64,
    /// The line; with context, all lines, the matching one after `--> `.
    content: String,
}

impl Tool for Search {
    const NAME: &'static str = "file.search";
    const TITLE: &'static str = "Search in files";
    const IDEMPOTENT: bool = true;
    type Op = operations::Search;
    type Reply = Reply;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<operations::Search, Error> {
        let lines = context(self.context_lines);
        Ok(operations::Search::new(self.pattern.as_str())
            .with_ignore_case(!self.case_sensitive.unwrap_or(true))
            .with_path(self.path.as_ref().map(RelativePath::raw).transpose()?)
            .with_glob(self.glob.clone())
            .with_answer(AnswerWith::Lines { before: lines, after: lines })
            .with_max_results(Some(self.max_results.unwrap_or(limits::DEFAULT_SEARCH_RESULTS)))
            .with_budget(ctx.budget(limits::DEFAULT_MAX_OUTPUT_BYTES)))
    }

    fn reply(&self, done: Done<operations::Search>, ctx: &ToolContext<'_>) -> Reply {
        let searched = done.outcome;
        let lines = context(self.context_lines);
        let matches: Vec<_> =
            matches(&searched, lines as u64, ctx.budget(limits::DEFAULT_MAX_OUTPUT_BYTES))
                .into_iter()
                .map(|found| {
                    let path = ctx.relative(found.place);
                    let content = match lines {
                        0 => found.text,
                        _ => {
                            let plain = |line: &String| format!("    {line}");
                            let before = found.before.iter().map(plain);
                            let this = std::iter::once(format!("--> {}", found.text));
                            let after = found.after.iter().map(plain);
                            before.chain(this).chain(after).collect::<Vec<_>>().join("\n")
                        }
                    };
                    Match { path, line: found.number, content }
                })
                .collect();
        let shown = matches.len() as u64;
        let more = match self.max_results {
            Some(limits::MAX_SEARCH_RESULTS) => "narrow `path` or `glob`",
            _ => "narrow `path` or `glob`, or raise `max_results`",
        };
        let hints = SearchHints { more, ignore_case: "set `case_sensitive` to false" };
        let message = message((self.operation(ctx), &searched), matches.len(), hints, ctx);
        let withheld = withheld(&searched.skipped);
        Reply { truncated: shown < searched.total, matches, withheld, message }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        compact_params(&self.pattern, self.path.as_ref().map(RelativePath::as_str), ctx)
    }
}
