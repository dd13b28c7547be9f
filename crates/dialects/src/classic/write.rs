//! `Write`

use pinfold::operations;
use pinfold::{Done, Error, ReadBeforeWrite};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::changed;
use crate::change_summary::ChangeSummary;
use crate::tool_context::AbsolutePath;
use crate::{Tool, ToolContext, ToolResult};

/// Creates a file, or replaces the whole content of one. A file that exists must have been read
/// before. Missing directories are created.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Write {
    /// Absolute path.
    pub(crate) file_path: AbsolutePath,
    /// The whole new content, stored as UTF-8.
    pub(crate) content: String,
}

impl Tool for Write {
    const NAME: &'static str = "Write";
    const TITLE: &'static str = "Write file";
    const IDEMPOTENT: bool = true;
    type Op = operations::Write;
    type Reply = ToolResult;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<operations::Write, Error> {
        let path = self.file_path.raw("file_path", ctx)?;
        let mut write = operations::Write::new(path, self.content.as_str());
        write.read_rule = ctx.read_rule(ReadBeforeWrite::Require);
        Ok(write)
    }

    fn reply(&self, done: Done<operations::Write>, ctx: &ToolContext<'_>) -> ToolResult {
        let path = ctx.absolute(&done.outcome.place);
        let summary = ChangeSummary::of_write(&done, &path);
        let facts = json!({
            "bytes_written": summary.bytes_written,
            "created": done.outcome.created,
            "changed": done.outcome.changed,
        });
        changed(summary, path, &done.receipt, facts)
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        ctx.short_path(self.file_path.as_str())
    }
}
