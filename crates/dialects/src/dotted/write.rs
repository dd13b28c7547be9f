//! `file.write`

use pinfold::operations;
use pinfold::{Done, Error, ReadBeforeWrite};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::change_summary::ChangeSummary;
use crate::tool_context::RelativePath;
use crate::{Tool, ToolContext};

/// Creates a file, or replaces the whole content of one. Missing directories are created.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Write {
    /// Path relative to the workspace root.
    path: RelativePath,
    /// The file's whole new content, stored as UTF-8 exactly as given.
    content: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Whether the file has the content now.
    success: bool,
    /// Bytes written; 0 if the file had this content already.
    bytes_written: u64,
    /// What else there is to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl Tool for Write {
    const NAME: &'static str = "file.write";
    const TITLE: &'static str = "Write file";
    const IDEMPOTENT: bool = true;
    type Op = operations::Write;
    type Reply = Reply;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<operations::Write, Error> {
        let mut write = operations::Write::new(self.path.raw()?, self.content.as_str());
        write.read_rule = ctx.read_rule(ReadBeforeWrite::Off);
        write.keeps_line_hashes = ctx.requires_reads;
        Ok(write)
    }

    fn reply(&self, done: Done<operations::Write>, ctx: &ToolContext<'_>) -> Reply {
        let summary = ChangeSummary::of_write(&done, &ctx.relative(&done.outcome.place));
        Reply { success: true, bytes_written: summary.bytes_written, message: summary.message() }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        ctx.short_path(self.path.as_str())
    }
}
