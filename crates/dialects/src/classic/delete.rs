//! `Delete`

use pinfold::operations;
use pinfold::{Done, Error};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::changed;
use crate::change_summary::ChangeSummary;
use crate::tool_context::RelativePath;
use crate::{Tool, ToolContext, ToolResult};

/// Deletes one file. A symlink is deleted itself; directories are left alone.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Delete {
    /// Absolute path, or relative to the workspace root.
    path: RelativePath,
}

impl Tool for Delete {
    const NAME: &'static str = "Delete";
    const TITLE: &'static str = "Delete file";
    const IDEMPOTENT: bool = false;
    type Op = operations::Delete;
    type Reply = ToolResult;

    fn operation(&self, _: &ToolContext<'_>) -> Result<operations::Delete, Error> {
        Ok(operations::Delete::new(self.path.raw()?))
    }

    fn reply(&self, done: Done<operations::Delete>, ctx: &ToolContext<'_>) -> ToolResult {
        let path = ctx.absolute(&done.outcome.place);
        let summary = ChangeSummary::of_delete(&done, &path);
        changed(summary, path, &done.receipt, json!({}))
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        ctx.short_path(self.path.as_str())
    }
}
