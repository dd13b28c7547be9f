//! `Move`

use pinfold::operations;
use pinfold::{Done, Error};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::changed;
use crate::change_summary::ChangeSummary;
use crate::tool_context::AbsolutePath;
use crate::{Tool, ToolContext, ToolResult};

/// Moves or renames a file or directory. Never replaces: the destination must not exist.
/// Missing parent directories are created. A symlink is moved itself.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Move {
    /// Absolute path of the file or directory.
    source: AbsolutePath,
    /// Its new absolute path.
    destination: AbsolutePath,
}

impl Tool for Move {
    const NAME: &'static str = "Move";
    const TITLE: &'static str = "Move file";
    const IDEMPOTENT: bool = false;
    type Op = operations::Move;
    type Reply = ToolResult;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<operations::Move, Error> {
        let source = self.source.raw("source", ctx)?;
        Ok(operations::Move::new(source, self.destination.raw("destination", ctx)?))
    }

    fn reply(&self, done: Done<operations::Move>, ctx: &ToolContext<'_>) -> ToolResult {
        let (from, to) = (ctx.absolute(&done.outcome.from), ctx.absolute(&done.outcome.to));
        let summary = ChangeSummary::of_move(&done, &from, &to);
        changed(summary, to, &done.receipt, json!({}))
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        let [from, to] =
            [&self.source, &self.destination].map(|path| ctx.short_path(path.as_str()));
        format!("{from} → {to}")
    }
}
