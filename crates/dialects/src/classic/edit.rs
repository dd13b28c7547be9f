//! `Edit` and `MultiEdit`

use pinfold::operations;
use pinfold::{Done, Error, MatchMode, ReadBeforeWrite, Replacement};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::changed;
use crate::change_summary::ChangeSummary;
use crate::phrases::count;
use crate::tool_context::AbsolutePath;
use crate::{Tool, ToolContext, ToolResult};

/// Replaces text in a file that has been read before. `old_string` must be in it exactly once, or
/// set `replace_all`; give enough lines to make it unique, without the numbers that Read shows.
/// An empty `old_string` creates the file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    /// Absolute path.
    pub(crate) file_path: AbsolutePath,
    /// The text to replace, exactly as it is in the file.
    pub(crate) old_string: String,
    /// The text to put in its place.
    pub(crate) new_string: String,
    /// Replace every occurrence.
    pub(crate) replace_all: Option<bool>,
    /// Whether the file must have been read first, if another dialect sets this.
    #[serde(skip)]
    pub(crate) read_rule: Option<ReadBeforeWrite>,
}

/// Makes several edits of one file, each as Edit does, in order, on the result of the one before: all
/// or none.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MultiEdit {
    /// Absolute path.
    file_path: AbsolutePath,
    /// The replacements, in order.
    edits: Vec<OneEdit>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneEdit {
    // The documentation is in `Edit`; repeating it would cost tokens.
    old_string: String,
    new_string: String,
    replace_all: Option<bool>,
}

impl Tool for Edit {
    const NAME: &'static str = "Edit";
    const TITLE: &'static str = "Edit file";
    const IDEMPOTENT: bool = false;
    type Op = operations::Edit;
    type Reply = ToolResult;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<operations::Edit, Error> {
        let Self { old_string, new_string, replace_all, .. } = self;
        let replacements = vec![replacement(old_string, new_string, *replace_all)];
        let rule = self.read_rule.unwrap_or(ReadBeforeWrite::Require);
        operation(&self.file_path, replacements, rule, ctx)
    }

    fn reply(&self, done: Done<operations::Edit>, ctx: &ToolContext<'_>) -> ToolResult {
        reply(&done, ctx)
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        ctx.short_path(self.file_path.as_str())
    }
}

impl Tool for MultiEdit {
    const NAME: &'static str = "MultiEdit";
    const TITLE: &'static str = "Edit file in several places";
    const IDEMPOTENT: bool = false;
    type Op = operations::Edit;
    type Reply = ToolResult;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<operations::Edit, Error> {
        if self.edits.is_empty() {
            return Err(Error::InvalidArgument("`edits` is empty; give at least one edit".into()));
        }
        let one =
            |edit: &OneEdit| replacement(&edit.old_string, &edit.new_string, edit.replace_all);
        let replacements = self.edits.iter().map(one).collect();
        operation(&self.file_path, replacements, ReadBeforeWrite::Require, ctx)
    }

    fn reply(&self, done: Done<operations::Edit>, ctx: &ToolContext<'_>) -> ToolResult {
        reply(&done, ctx)
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        let edits = count(self.edits.len() as u64, "edit");
        format!("{} {edits}", ctx.short_path(self.file_path.as_str()))
    }
}

fn replacement(old: &str, new: &str, all: Option<bool>) -> Replacement {
    Replacement { old: old.into(), new: new.into(), all: all.unwrap_or(false) }
}

fn operation(
    path: &AbsolutePath,
    replacements: Vec<Replacement>,
    read_rule: ReadBeforeWrite,
    ctx: &ToolContext<'_>,
) -> Result<operations::Edit, Error> {
    Ok(operations::Edit::all(path.raw("file_path", ctx)?, replacements)
        .with_matching(MatchMode::Lenient)
        .with_read_rule(ctx.read_rule(read_rule)))
}

/// The maximum number of replacements with listed lines; `replacements` counts all of them.
const MAX_LISTED_REPLACEMENTS: usize = 100;

fn reply(done: &Done<operations::Edit>, ctx: &ToolContext<'_>) -> ToolResult {
    let path = ctx.absolute(&done.outcome.place);
    let summary = ChangeSummary::of_edit(done, &path);
    let facts = json!({
        "replacements": done.outcome.replacements,
        "match": done.outcome.match_kind.name(),
        "lines": done.outcome.lines.iter().take(MAX_LISTED_REPLACEMENTS).collect::<Vec<_>>(),
        "start_line": done.outcome.lines.first().map(|lines| lines.0),
        "created": done.outcome.created,
    });
    changed(summary, path, &done.receipt, facts)
}
