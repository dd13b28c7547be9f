//! `read_file`

use pinfold::operations;
use pinfold::{Done, Error, PageEnd};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::TextReply;
use crate::limits;
use crate::phrases::malformed;
use crate::tool_context::RelativePath;
use crate::{Tool, ToolContext};

/// Reads a text file, or some of its lines.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Read {
    /// Path relative to the workspace root.
    path: RelativePath,
    /// First line, counting from 1.
    #[schemars(range(min = 1))]
    start_line: Option<u64>,
    /// Last line, itself included.
    #[schemars(range(min = 1))]
    end_line: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// The lines as they are in the file.
    content: String,
    /// How many lines the file has.
    lines: u64,
    /// Whether lines that were asked for are missing because there were too many.
    truncated: bool,
    /// The line to go on from, if lines are missing.
    #[serde(rename = "nextLine", skip_serializing_if = "Option::is_none")]
    next_line: Option<u64>,
    /// The file's encoding.
    encoding: String,
    /// What else there is to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl TextReply for Reply {
    fn text(&mut self) -> &mut String {
        &mut self.content
    }
}

impl Tool for Read {
    const NAME: &'static str = "read_file";
    const TITLE: &'static str = "Read file";
    const IDEMPOTENT: bool = true;
    type Op = operations::Read;
    type Reply = Reply;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<operations::Read, Error> {
        let first = self.start_line.unwrap_or(1);
        let lines = match self.end_line {
            Some(last) if last < first => {
                let problem =
                    format!("`endLine` ({last}) must not be before `startLine` ({first})");
                return Err(Error::InvalidArgument(problem));
            }
            last => last.map(|last| last - first + 1),
        };
        let budget = ctx.budget(limits::DEFAULT_MAX_OUTPUT_BYTES);
        Ok(operations::Read::new(self.path.raw()?)
            .with_first(first)
            .with_lines(lines)
            .with_budget(budget))
    }

    fn reply(&self, done: Done<operations::Read>, _: &ToolContext<'_>) -> Reply {
        let page = done.outcome.page;
        Reply {
            lines: page.total,
            truncated: page.end == PageEnd::ByteBudget,
            next_line: (page.end == PageEnd::ByteBudget)
                .then(|| self.start_line.unwrap_or(1) + page.shown),
            message: malformed(&page),
            encoding: page.encoding.name(),
            content: page.content,
        }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        let path = ctx.short_path(self.path.as_str());
        let number = |line: Option<u64>| line.map(|line| line.to_string()).unwrap_or_default();
        match (self.start_line, self.end_line) {
            (None, None) => path,
            (first, last) => format!("{path} {}-{}", number(first.or(Some(1))), number(last)),
        }
    }
}
