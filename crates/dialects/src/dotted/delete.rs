//! `file.delete`

use pinfold::operations;
use pinfold::{Done, Error};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::change_summary::ChangeSummary;
use crate::tool_context::RelativePath;
use crate::{Tool, ToolContext};

/// Deletes one file. A symlink is deleted itself; directories are left alone.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Delete {
    /// Path relative to the workspace root.
    path: RelativePath,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Whether the file is gone.
    success: bool,
    /// What else there is to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl Tool for Delete {
    const NAME: &'static str = "file.delete";
    const TITLE: &'static str = "Delete file";
    const IDEMPOTENT: bool = false;
    type Op = operations::Delete;
    type Reply = Reply;

    fn operation(&self, _: &ToolContext<'_>) -> Result<operations::Delete, Error> {
        Ok(operations::Delete::new(self.path.raw()?))
    }

    fn reply(&self, done: Done<operations::Delete>, ctx: &ToolContext<'_>) -> Reply {
        let summary = ChangeSummary::of_delete(&done, &ctx.relative(&done.outcome.place));
        Reply { success: true, message: summary.message() }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        ctx.short_path(self.path.as_str())
    }
}
