//! `edit_file`

use pinfold::operations::{Edit, Read};
use pinfold::{DiffFormat, Error, MatchMode, ReadBeforeWrite, Replacement};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::ToolContext;
use crate::change_summary::ChangeSummary;
use crate::limits;
use crate::reference::Text;
use crate::reference::error_text::SystemCall;
use crate::reference::path::ReferencePath;
use crate::tool::{Annotations, DispatchTool};

/// Replaces texts in a file, all or none, and returns the diff. Each `oldText` must occur exactly
/// once.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct EditFile {
    /// Absolute or relative path.
    path: ReferencePath,
    /// The replacements.
    edits: Vec<TextEdit>,
    /// Only show the diff.
    dry_run: Option<bool>,
}

/// One replacement.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct TextEdit {
    /// The text to replace, as it is in the file.
    old_text: String,
    /// The new text.
    new_text: String,
}

impl DispatchTool for EditFile {
    const NAME: &'static str = "edit_file";
    const TITLE: &'static str = "Edit File";
    const ANNOTATIONS: Annotations =
        Annotations { read_only: false, destructive: true, idempotent: false };
    type Reply = Text;

    fn perform(&self, ctx: &ToolContext<'_>) -> Result<Text, Error> {
        if self.edits.is_empty() {
            let nothing = Read::new(self.path.raw()).with_lines(Some(0)).with_binary_as_text(true);
            let read = ctx.session.perform_with(&nothing, ctx.call)?;
            let path = ctx.absolute(&read.outcome.place);
            return Ok(fenced(&DiffFormat::Index.header(&path)).into());
        }
        let replacements = self.edits.iter().map(|edit| {
            let (old, new) = (edit.old_text.clone(), edit.new_text.clone());
            Replacement { old, new, all: false }
        });
        let edit = Edit::all(self.path.raw(), replacements.collect())
            .with_matching(MatchMode::Lenient)
            .with_read_rule(ctx.read_rule(ReadBeforeWrite::Off))
            .with_may_create(false)
            .with_diff_format(DiffFormat::Index)
            .with_max_diff_bytes(Some(ctx.budget(limits::DEFAULT_MAX_LIBRARY_OUTPUT_BYTES)));
        let mut call = ctx.call.clone();
        if self.dry_run == Some(true) {
            call = call.with_dry_run(true);
        }
        let done = ctx.session.perform_with(&edit, &call)?;
        let path = ctx.absolute(&done.outcome.place);
        let header = || DiffFormat::Index.header(&path);
        let mut text = fenced(&done.receipt.diff.clone().unwrap_or_else(header));
        if done.receipt.dry_run && self.dry_run != Some(true) {
            text.push_str("[Dry Run] Nothing was changed.\n");
        }
        text.push_str(ChangeSummary::of_edit(&done, &path).closing().trim_start());
        Ok(text.into())
    }

    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        let old_text = |number: Option<usize>| {
            let edit = self.edits.get(number.unwrap_or(1) - 1);
            edit.map_or("", |edit| edit.old_text.as_str())
        };
        Some(match error {
            Error::NoMatch { number, .. } => {
                format!("Could not find exact match for edit:\n{}", old_text(*number))
            }
            Error::ManyMatches { number, count, or_more, lines, .. } => {
                let more = if *or_more { " or more" } else { "" };
                let dots = if count > &lines.len() { ", …" } else { "" };
                let lines: Vec<_> = lines.iter().map(u64::to_string).collect();
                let (lines, old_text) = (lines.join(", "), old_text(*number));
                format!(
                    "Found {count}{more} matches for edit (lines {lines}{dots}); add lines around it:\n{old_text}"
                )
            }
            Error::EmptyOld { number, .. } => {
                let path = self.path.shown();
                format!(
                    "{}oldText is empty, and '{path}' is not; give the text to replace",
                    edit(*number)
                )
            }
            Error::NoChange { number } => {
                format!("{}oldText and newText are the same", edit(*number))
            }
            _ => return SystemCall::Of("open", &self.path).error_text(error, ctx),
        })
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        ctx.short_path(self.path.as_str())
    }
}

/// A prefix with the number of the edit, if there are several.
fn edit(number: Option<usize>) -> String {
    number.map(|number| format!("edit {number}: ")).unwrap_or_default()
}

/// The diff between fences that are longer than any row of backticks in it.
fn fenced(diff: &str) -> String {
    let rows = diff.split(|character| character != '`').map(str::len);
    let fence = "`".repeat(rows.max().unwrap_or(0).max(2) + 1);
    format!("{fence}diff\n{diff}{fence}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fence_outgrows_backticks_in_the_diff() {
        for (diff, fence) in [("+a\n", "```"), ("+``\n", "```"), ("+```\n ````\n", "`````")] {
            assert_eq!(fenced(diff), format!("{fence}diff\n{diff}{fence}\n\n"));
        }
    }
}
