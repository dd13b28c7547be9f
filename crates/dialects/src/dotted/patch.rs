//! `file.patch`

use pinfold::operations;
use pinfold::{Done, Error, MatchMode, ReadBeforeWrite, Replacement};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::change_summary::ChangeSummary;
use crate::tool_context::RelativePath;
use crate::{Tool, ToolContext};

/// Replaces text in a file. Each `find` must be in it exactly once. Patches are applied in order,
/// each on the result of the one before; all of them or none. An empty first `find` creates the file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Patch {
    /// Path relative to the workspace root.
    path: RelativePath,
    /// The replacements, in order.
    patches: Vec<OnePatch>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OnePatch {
    /// The text to replace, exactly as it is in the file.
    find: String,
    /// The text to put in its place.
    replace: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Whether the patches are applied.
    success: bool,
    /// How many patches were applied.
    patches_applied: usize,
    /// What else there is to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl Tool for Patch {
    const NAME: &'static str = "file.patch";
    const TITLE: &'static str = "Patch file";
    const IDEMPOTENT: bool = false;
    type Op = operations::Edit;
    type Reply = Reply;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<operations::Edit, Error> {
        if self.patches.is_empty() {
            let problem = "`patches` is empty; give at least one patch";
            return Err(Error::InvalidArgument(problem.into()));
        }
        let one = |patch: &OnePatch| Replacement {
            old: patch.find.clone(),
            new: patch.replace.clone(),
            all: false,
        };
        Ok(operations::Edit::all(self.path.raw()?, self.patches.iter().map(one).collect())
            .with_matching(MatchMode::Exact)
            .with_read_rule(ctx.read_rule(ReadBeforeWrite::Off)))
    }

    fn reply(&self, done: Done<operations::Edit>, ctx: &ToolContext<'_>) -> Reply {
        let summary = ChangeSummary::of_edit(&done, &ctx.relative(&done.outcome.place));
        Reply { success: true, patches_applied: self.patches.len(), message: summary.message() }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        let patches = match self.patches.len() {
            1 => "1 patch".into(),
            several => format!("{several} patches"),
        };
        format!("{} {patches}", ctx.short_path(self.path.as_str()))
    }
}
