//! `replace`

use pinfold::operations::Edit;
use pinfold::{Done, Error, MatchMode, ReadBeforeWrite, Replacement};
use schemars::JsonSchema;
use serde::Deserialize;

use super::omission::has_placeholder;
use super::{diff_format, updated_code};
use crate::change_summary::ChangeSummary;
use crate::tool_context::RelativePath;
use crate::{Tool, ToolContext};

/// Replaces text in a file. `old_string` must be in it exactly once, or set `allow_multiple`; give
/// enough lines to make it unique. An empty `old_string` creates the file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Replace {
    /// Absolute path, or relative to the workspace root.
    file_path: RelativePath,
    /// What the change is for; not used.
    #[serde(rename = "instruction")]
    _instruction: Option<String>,
    /// The text to replace, exactly as it is in the file.
    old_string: String,
    /// The text to put in its place: nothing may be left out by a placeholder.
    new_string: String,
    /// Replace every occurrence.
    allow_multiple: Option<bool>,
}

impl Tool for Replace {
    const NAME: &'static str = "replace";
    const TITLE: &'static str = "Edit file";
    const IDEMPOTENT: bool = false;
    type Op = Edit;
    type Reply = String;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<Edit, Error> {
        if has_placeholder(&self.new_string, &self.old_string) {
            return Err(Error::InvalidArgument(
                "`new_string` contains an omission placeholder (for example 'rest of methods \
                 ...'). Provide exact literal replacement text."
                    .into(),
            ));
        }
        let replacement = Replacement {
            old: self.old_string.clone(),
            new: self.new_string.clone(),
            all: self.allow_multiple.unwrap_or(false),
        };
        Ok(Edit::all(self.file_path.raw()?, vec![replacement])
            .with_matching(MatchMode::Lenient)
            .with_read_rule(ctx.read_rule(ReadBeforeWrite::Off))
            .with_diff_format(diff_format(ctx)))
    }

    fn reply(&self, done: Done<Edit>, ctx: &ToolContext<'_>) -> String {
        let path = ctx.absolute(&done.outcome.place);
        let words = if done.outcome.created {
            format!("Created new file: {path} with provided content.")
        } else {
            let replacements = done.outcome.replacements;
            format!("Successfully modified file: {path} ({replacements} replacements).")
        };
        let words = words + &updated_code(done.receipt.diff.as_deref());
        ChangeSummary::of_edit(&done, &path).after(words)
    }

    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        let given = pinfold::RawPath::from(self.file_path.as_str());
        let path = ctx.absolute_path(self.file_path.as_str());
        Some(match error {
            Error::NotFound { .. } | Error::Dangling { .. } | Error::DirectoryNotFound { .. } => {
                format!("File not found: {path}")
            }
            Error::IsDirectory { .. } => format!("Path is a directory, not a file: {path}"),
            Error::EmptyOld { .. } => format!("File already exists, cannot create: {path}"),
            Error::NoMatch { .. } => {
                format!("Could not find an exact match for 'old_string' in '{given}'.")
            }
            Error::ManyMatches { count, or_more, .. } => {
                let more = if *or_more { " or more" } else { "" };
                format!(
                    "Failed to edit, Expected 1 occurrence but found {count}{more} for old_string \
                     in file: {given}."
                )
            }
            Error::NoChange { .. } => format!(
                "No changes to apply. The old_string and new_string are identical in file: {given}"
            ),
            _ => return None,
        })
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        ctx.short_path(self.file_path.as_str())
    }
}
