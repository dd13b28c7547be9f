//! `NotebookEdit`

use pinfold::media::{CellEdit, CellKind};
use pinfold::operations;
use pinfold::{Done, Error, ReadBeforeWrite};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::changed;
use crate::change_summary::ChangeSummary;
use crate::phrases::shortened;
use crate::tool_context::AbsolutePath;
use crate::{Tool, ToolContext, ToolResult};

/// Replaces, inserts or deletes one cell of a Jupyter notebook that has been read before. Outputs and
/// execution count of a replaced code cell are cleared.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NotebookEdit {
    /// Absolute path.
    notebook_path: AbsolutePath,
    /// The cell's id as Read shows it; `cell-N` for cell N if it has none. The new cell of `insert`
    /// comes after it, or first if left out.
    cell_id: Option<String>,
    /// The cell's new source; unused by `delete`.
    new_source: String,
    /// Kind of the cell. `insert` needs it; `replace` keeps the kind if left out.
    cell_type: Option<CellType>,
    /// `replace` if left out.
    edit_mode: Option<EditMode>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CellType {
    Code,
    Markdown,
    Raw,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
enum EditMode {
    Replace,
    Insert,
    Delete,
}

impl Tool for NotebookEdit {
    const NAME: &'static str = "NotebookEdit";
    const TITLE: &'static str = "Edit notebook cell";
    const IDEMPOTENT: bool = false;
    type Op = operations::EditNotebook;
    type Reply = ToolResult;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<operations::EditNotebook, Error> {
        let path = self.notebook_path.raw("notebook_path", ctx)?;
        let source = self.new_source.clone();
        let kind = self.cell_type.map(|kind| match kind {
            CellType::Code => CellKind::Code,
            CellType::Markdown => CellKind::Markdown,
            CellType::Raw => CellKind::Raw,
        });
        let edit = match self.mode() {
            EditMode::Replace => CellEdit::Replace { cell: self.cell()?, source, kind },
            EditMode::Delete => CellEdit::Delete { cell: self.cell()? },
            EditMode::Insert => {
                let missing = "`cell_type` is missing; `insert` needs `code`, `markdown` or `raw`";
                let kind = kind.ok_or_else(|| Error::InvalidArgument(missing.into()))?;
                CellEdit::Insert { after: self.cell_id.clone(), source, kind }
            }
        };
        Ok(operations::EditNotebook::new(path, edit)
            .with_read_rule(ctx.read_rule(ReadBeforeWrite::Require)))
    }

    fn reply(&self, done: Done<operations::EditNotebook>, ctx: &ToolContext<'_>) -> ToolResult {
        let path = ctx.absolute(&done.outcome.place);
        let verbs = match self.mode() {
            EditMode::Replace => ["Replaced", "replace"],
            EditMode::Insert => ["Inserted", "insert"],
            EditMode::Delete => ["Deleted", "delete"],
        };
        let summary = ChangeSummary::of_cell(&done, verbs, &path);
        let facts = json!({
            "cell_number": done.outcome.number,
            "cell_id": done.outcome.id,
            "cell_type": done.outcome.kind,
            "cell_count": done.outcome.cells,
            "cleared_outputs": done.outcome.cleared,
            "changed": done.outcome.changed,
        });
        changed(summary, path, &done.receipt, facts)
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        let mode = match self.mode() {
            EditMode::Replace => "replace",
            EditMode::Insert => "insert",
            EditMode::Delete => "delete",
        };
        let cell =
            self.cell_id.as_deref().map(|cell| format!(" {}", shortened(cell).escape_debug()));
        format!(
            "{} {mode}{}",
            ctx.short_path(self.notebook_path.as_str()),
            cell.unwrap_or_default()
        )
    }
}

impl NotebookEdit {
    fn mode(&self) -> EditMode {
        self.edit_mode.unwrap_or(EditMode::Replace)
    }

    fn cell(&self) -> Result<String, Error> {
        let missing = "`cell_id` is missing; give the id of the cell as Read shows it, or `cell-N`";
        self.cell_id.clone().ok_or_else(|| Error::InvalidArgument(missing.into()))
    }
}
