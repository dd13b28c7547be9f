//! `search_files`

use pinfold::operations::{self, FindOrder};
use pinfold::{Done, Error};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::limits;
use crate::phrases::{fit, joined, left_out, unread};
use crate::reference::Text;
use crate::reference::error_text::SystemCall;
use crate::reference::path::ReferencePath;
use crate::{Tool, ToolContext};

/// Finds files and directories by a glob on the path below `path`: `**/*.ts` at any depth. Returns
/// absolute paths, at most 1,000.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct SearchFiles {
    /// Absolute or relative path.
    path: ReferencePath,
    /// Glob with `**`, `*`, `?`, `[abc]`, `{a,b}`.
    pattern: String,
    /// Globs to leave out, such as `**/node_modules`.
    exclude_patterns: Option<Vec<String>>,
}

impl Tool for SearchFiles {
    const NAME: &'static str = "search_files";
    const TITLE: &'static str = "Search Files";
    const IDEMPOTENT: bool = true;
    type Op = operations::Find;
    type Reply = Text;

    fn operation(&self, _: &ToolContext<'_>) -> Result<operations::Find, Error> {
        if self.pattern.starts_with('/') || self.pattern.split('/').any(|name| name == "..") {
            let problem =
                "`pattern` is for paths below `path`: leave out `..`, and the `/` at its start";
            return Err(Error::InvalidArgument(problem.into()));
        }
        let exclude = self.exclude_patterns.iter().flatten().filter(|glob| !glob.is_empty());
        Ok(operations::Find::new(self.pattern.as_str())
            .with_path(Some(self.path.raw()))
            .with_directories(true)
            .with_all(true)
            .with_exclude(exclude.cloned().collect())
            .with_order(FindOrder::Path)
            .with_max_files(limits::DEFAULT_MAX_GLOB_FILES))
    }

    fn reply(&self, done: Done<operations::Find>, ctx: &ToolContext<'_>) -> Text {
        let found = done.outcome;
        let paths = found.files.iter().map(|file| ctx.absolute(&file.place));
        let lines = fit(ctx.budget(limits::DEFAULT_MAX_LIBRARY_OUTPUT_BYTES) + 1, paths, |path| {
            path.len() + 1
        });
        let how = "narrow `path` or `pattern`";
        let missing = left_out(lines.len() as u64, found.total, "matches", how);
        let note = joined([missing, unread(&found.skipped)]);
        let text = if lines.is_empty() { "No matches found".into() } else { lines.join("\n") };
        Text { text, note }
    }

    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        SystemCall::Of("scandir", &self.path).error_text(error, ctx)
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        format!("{} in {}", ctx.short_path(&self.pattern), ctx.short_path(self.path.as_str()))
    }
}
