//! `write_file`

use pinfold::operations::Write;
use pinfold::{Done, Error, ReadBeforeWrite};
use schemars::JsonSchema;
use serde::Deserialize;

use super::omission::has_placeholder;
use super::{diff_format, updated_code};
use crate::change_summary::ChangeSummary;
use crate::tool_context::RelativePath;
use crate::{Tool, ToolContext};

/// Creates a file, or replaces the whole content of one. A file that exists must have been read
/// before. Missing directories are created.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteFile {
    /// Absolute path, or relative to the workspace root.
    file_path: RelativePath,
    /// The whole new content: nothing may be left out by a placeholder.
    content: String,
}

impl Tool for WriteFile {
    const NAME: &'static str = "write_file";
    const TITLE: &'static str = "Write file";
    const IDEMPOTENT: bool = true;
    type Op = Write;
    type Reply = String;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<Write, Error> {
        if has_placeholder(&self.content, "") {
            return Err(Error::InvalidArgument(
                "`content` contains an omission placeholder (for example 'rest of methods ...'). \
                 Provide complete file content."
                    .into(),
            ));
        }
        Ok(Write::new(self.file_path.raw()?, self.content.as_str())
            .with_read_rule(ctx.read_rule(ReadBeforeWrite::Require))
            .with_diff_format(Some(diff_format(ctx))))
    }

    fn reply(&self, done: Done<Write>, ctx: &ToolContext<'_>) -> String {
        let path = ctx.absolute(&done.outcome.place);
        let summary = ChangeSummary::of_write(&done, &path);
        let words = if done.outcome.created {
            format!("Successfully created and wrote to new file: {path}.")
        } else {
            format!("Successfully overwrote file: {path}.")
        };
        let code = if done.outcome.changed {
            updated_code(done.receipt.diff.as_deref())
        } else {
            " It already had this content, so nothing was written.".into()
        };
        summary.after(words + &code)
    }

    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        match error {
            Error::IsDirectory { .. } => {
                let path = ctx.absolute_path(self.file_path.as_str());
                Some(format!("Path is a directory, not a file: {path}"))
            }
            _ => None,
        }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        ctx.short_path(self.file_path.as_str())
    }
}
