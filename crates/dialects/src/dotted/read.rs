//! `file.read`

use pinfold::operations;
use pinfold::{Done, Error, PageEnd, Style};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::TextReply;
use crate::limits;
use crate::phrases::malformed;
use crate::tool_context::RelativePath;
use crate::{Tool, ToolContext};

/// Reads a text file and gives its lines with their numbers, as `cat -n` does.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Read {
    /// Path relative to the workspace root.
    path: RelativePath,
    /// First line, counting from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// Most lines; all if left out.
    #[schemars(range(min = 1, max = limits::MAX_READ_LINES))]
    limit: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// The lines, each with its number and a tab before it.
    content: String,
    /// How many lines the file has.
    total_lines: u64,
    /// Whether lines were left out after the last one shown.
    truncated: bool,
    /// The offset to go on from, if lines were left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
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
    const NAME: &'static str = "file.read";
    const TITLE: &'static str = "Read file";
    const IDEMPOTENT: bool = true;
    type Op = operations::Read;
    type Reply = Reply;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<operations::Read, Error> {
        Ok(operations::Read::new(self.path.raw()?)
            .with_first(self.offset.unwrap_or(1))
            .with_lines(self.limit)
            .with_style(Style::Numbered)
            .with_budget(ctx.budget(limits::DEFAULT_MAX_OUTPUT_BYTES)))
    }

    fn reply(&self, done: Done<operations::Read>, _: &ToolContext<'_>) -> Reply {
        let page = done.outcome.page;
        Reply {
            total_lines: page.total,
            truncated: page.end != PageEnd::EndOfFile,
            next_offset: (page.end != PageEnd::EndOfFile)
                .then(|| self.offset.unwrap_or(1) + page.shown),
            message: malformed(&page),
            content: page.content,
        }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        let path = ctx.short_path(self.path.as_str());
        match (self.offset, self.limit) {
            (None, None) => path,
            (offset, None) => format!("{path} {}:", offset.unwrap_or(1)),
            (offset, Some(limit)) => format!("{path} {}:{limit}", offset.unwrap_or(1)),
        }
    }
}
