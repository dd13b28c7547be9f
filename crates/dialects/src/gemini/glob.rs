//! `glob`

use pinfold::operations::Find;
use pinfold::{Done, Error};
use schemars::JsonSchema;
use serde::Deserialize;

use super::ignore_files;
use crate::limits;
use crate::phrases::{fit, shortened, unread};
use crate::tool_context::RelativePath;
use crate::{Tool, ToolContext};

/// Finds files by name, newest first, such as `**/*.ts` or `src/*.{c,h}`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Glob {
    /// Glob with `**`, `*`, `?`, `[abc]`, `{a,b}`.
    pattern: String,
    /// Directory to start from; all if left out.
    dir_path: Option<RelativePath>,
    /// Regard letter case; false if left out.
    case_sensitive: Option<bool>,
    /// Leave out what `.gitignore` names; true if left out.
    respect_git_ignore: Option<bool>,
    /// Leave out what `.geminiignore` names; true if left out.
    respect_gemini_ignore: Option<bool>,
}

impl Tool for Glob {
    const NAME: &'static str = "glob";
    const TITLE: &'static str = "Find files";
    const IDEMPOTENT: bool = true;
    type Op = Find;
    type Reply = String;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<Find, Error> {
        Ok(Find::new(self.pattern.as_str())
            .with_path(self.dir_path.as_ref().map(RelativePath::raw).transpose()?)
            .with_ignore_case(!self.case_sensitive.unwrap_or(false))
            .with_ignore_files(ignore_files(self.respect_git_ignore, self.respect_gemini_ignore))
            .with_hidden(true)
            .with_max_files(ctx.session.settings().max_glob_files))
    }

    fn reply(&self, done: Done<Find>, ctx: &ToolContext<'_>) -> String {
        let found = done.outcome;
        let pattern = shortened(&self.pattern);
        let directory = ctx.searched_directory(self.dir_path.as_ref());
        if found.total == 0 {
            let mut text =
                format!("No files found matching pattern \"{pattern}\" within {directory}");
            if found.skipped.ignored > 0 {
                let ignored = found.skipped.ignored;
                text.push_str(&format!(" ({ignored} entries were ignored)"));
            }
            text.extend(unread(&found.skipped).map(|note| format!("\n({note})")));
            return text;
        }
        let budget = ctx.budget(limits::DEFAULT_MAX_OUTPUT_BYTES);
        let paths = found.files.iter().map(|file| ctx.absolute(&file.place));
        let paths = fit(budget, paths, |path| path.len() + 1);
        let (shown, total) = (paths.len() as u64, found.total);
        let ignored = match found.skipped.ignored {
            0 => String::new(),
            ignored => format!(" ({ignored} additional files were ignored)"),
        };
        let mut text = format!(
            "Found {total} file(s) matching \"{pattern}\" within {directory}{ignored}, sorted by \
             modification time (newest first):\n{}",
            paths.join("\n")
        );
        if shown < total {
            let narrow = "narrow pattern or dir_path to see the others";
            text.push_str(&format!("\n(files 1-{shown} of {total}; {narrow})"));
        }
        text.extend(unread(&found.skipped).map(|note| format!("\n({note})")));
        text
    }

    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        super::search_problem(error, self.dir_path.as_ref(), ctx)
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        let pattern = shortened(&self.pattern).escape_debug().to_string();
        match &self.dir_path {
            None => pattern,
            Some(path) => format!("{pattern} in {}", ctx.short_path(path.as_str())),
        }
    }
}
