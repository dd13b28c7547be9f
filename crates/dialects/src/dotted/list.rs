//! `file.list`

use pinfold::operations::{self, FindOrder, FoundFiles};
use pinfold::{Done, Error};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::phrases::{brackets, fit, joined, left_out, skipped, unread, utc, withheld};
use crate::tool_context::RelativePath;
use crate::{Tool, ToolContext};

/// Lists files: a directory's own, or those at all levels that a glob such as `**/*.ts` fits. Hidden
/// and git-ignored ones only where the pattern or path names them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// Directory relative to the workspace root; the root if left out.
    path: Option<RelativePath>,
    /// Glob with `**`, `*`, `?`, `[abc]`, `{a,b}`.
    pattern: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// The files, by path.
    files: Vec<File>,
    /// The names of its directories, where no pattern was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    directories: Option<Vec<String>>,
    /// How many may not be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    withheld: Option<u64>,
    /// What else there is to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct File {
    /// Path relative to the workspace root.
    path: String,
    /// Size in bytes.
    size: u64,
    /// When it was last changed, in UTC.
    modified: String,
}

impl Tool for List {
    const NAME: &'static str = "file.list";
    const TITLE: &'static str = "List files";
    const IDEMPOTENT: bool = true;
    type Op = operations::Find;
    type Reply = Reply;

    fn operation(&self, _: &ToolContext<'_>) -> Result<operations::Find, Error> {
        let directory = self.path.as_ref().map_or(Ok(".".into()), RelativePath::raw)?;
        Ok(operations::Find::in_directory(directory)
            .with_pattern(self.pattern.clone())
            .with_order(FindOrder::Path)
            .with_max_files(limits::MAX_LIST_ENTRIES))
    }

    fn reply(&self, done: Done<operations::Find>, ctx: &ToolContext<'_>) -> Reply {
        let found = done.outcome;
        /// JSON overhead of a file in bytes, besides its path.
        const OVERHEAD: usize = 80;
        let budget = ctx.budget(limits::DEFAULT_MAX_OUTPUT_BYTES);
        let files = found.files.iter().map(|file| File {
            path: ctx.relative(&file.place),
            size: file.size,
            modified: utc(file.modified),
        });
        let files = fit(budget, files, |file| file.path.len() + OVERHEAD);
        let how = "name one in `path` or `pattern` to look inside";
        let message = joined([
            left_out(files.len() as u64, found.total, "files", "narrow `pattern` or `path`"),
            skipped(&found.skipped, how)
                .filter(|_| found.total == 0 && found.directories.is_empty()),
            self.deeper(&found, ctx),
            self.pattern.as_deref().filter(|_| found.total == 0).and_then(brackets),
            unread(&found.skipped),
        ]);
        let names = || found.directories.iter().map(|place| place.path.name().to_string());
        let directories =
            self.pattern.is_none().then(|| fit(budget, names(), |name| name.len() + 4));
        Reply { files, directories, withheld: withheld(&found.skipped), message }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        let path = self.path.as_ref().map(|path| ctx.short_path(path.as_str()));
        match (path, &self.pattern) {
            (None, None) => ".".into(),
            (Some(path), None) => path,
            (None, Some(pattern)) => ctx.short_path(pattern),
            (Some(path), Some(pattern)) => format!("{} in {path}", ctx.short_path(pattern)),
        }
    }
}

impl List {
    /// How to look deeper, if a pattern for one level found nothing.
    fn deeper(&self, found: &FoundFiles, ctx: &ToolContext<'_>) -> Option<String> {
        let pattern = self.pattern.as_ref().filter(|_| found.total == 0)?;
        let one_level = !pattern.contains(['/', '{']) && !pattern.contains("**");
        one_level.then(|| format!("`**/{}` looks at all levels", ctx.short_path(pattern)))
    }
}
