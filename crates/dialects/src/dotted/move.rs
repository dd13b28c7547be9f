//! `file.move`

use pinfold::operations;
use pinfold::{Done, Error};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::change_summary::ChangeSummary;
use crate::tool_context::RelativePath;
use crate::{Tool, ToolContext};

/// Moves or renames a file or directory. Never replaces: the destination must not exist.
/// Missing parent directories are created. A symlink is moved itself.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Move {
    /// Path of the file or directory, relative to the workspace root.
    source: RelativePath,
    /// Its new path.
    destination: RelativePath,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Whether it was moved.
    success: bool,
    /// What else there is to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl Tool for Move {
    const NAME: &'static str = "file.move";
    const TITLE: &'static str = "Move file";
    const IDEMPOTENT: bool = false;
    type Op = operations::Move;
    type Reply = Reply;

    fn operation(&self, _: &ToolContext<'_>) -> Result<operations::Move, Error> {
        Ok(operations::Move::new(self.source.raw()?, self.destination.raw()?))
    }

    fn reply(&self, done: Done<operations::Move>, ctx: &ToolContext<'_>) -> Reply {
        let (from, to) = (ctx.relative(&done.outcome.from), ctx.relative(&done.outcome.to));
        let summary = ChangeSummary::of_move(&done, &from, &to);
        Reply { success: true, message: summary.message() }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        let [from, to] =
            [&self.source, &self.destination].map(|path| ctx.short_path(path.as_str()));
        format!("{from} → {to}")
    }
}
