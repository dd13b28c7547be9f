//! `list_directory`

use pinfold::operations::{self, Include, ListOrder};
use pinfold::{Done, Error, Kind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::phrases::{brackets, fit, joined, kind_word, left_out, skipped, unread, withheld};
use crate::tool_context::RelativePath;
use crate::{Tool, ToolContext};

/// Lists a directory's entries, at one level or more. Git-ignored ones only where the path names them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct List {
    /// Directory relative to the workspace root.
    path: RelativePath,
    /// List what is in subdirectories too.
    recursive: Option<bool>,
    /// How many levels; 1 is the directory's own entries.
    #[schemars(range(min = 1))]
    depth: Option<u64>,
    /// Only entries that this glob fits, such as `*.ts` or `src/**/*.ts`.
    glob: Option<String>,
    /// List hidden entries too.
    include_hidden: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// The entries, by path.
    entries: Vec<Entry>,
    /// How many there are, shown or not.
    total: u64,
    /// Whether there are more than are shown.
    truncated: bool,
    /// How many may not be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    withheld: Option<u64>,
    /// What else there is to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Entry {
    /// Its name.
    name: String,
    /// Path relative to the workspace root.
    path: String,
    /// `file`, `directory`, `symlink` or `other`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Size in bytes; 0 for directories.
    size: u64,
}

impl Tool for List {
    const NAME: &'static str = "list_directory";
    const TITLE: &'static str = "List directory";
    const IDEMPOTENT: bool = true;
    type Op = operations::List;
    type Reply = Reply;

    fn operation(&self, _: &ToolContext<'_>) -> Result<operations::List, Error> {
        let depth = match (self.recursive, self.depth) {
            (Some(false), _) | (None, None) => 1,
            (_, Some(depth)) => usize::try_from(depth).unwrap_or(usize::MAX),
            (Some(true), None) => usize::MAX,
        };
        let hidden = self.include_hidden.unwrap_or(false);
        let include = if hidden { Include::NotIgnored } else { Include::Visible };
        Ok(operations::List::new(self.path.raw()?)
            .with_depth(depth)
            .with_glob(self.glob.clone())
            .with_include(include)
            .with_order(ListOrder::Path))
    }

    fn reply(&self, done: Done<operations::List>, ctx: &ToolContext<'_>) -> Reply {
        let listed = done.outcome;
        /// JSON overhead of an entry in bytes, besides its path and name.
        const OVERHEAD: usize = 60;
        let entries = listed.entries.iter().map(|entry| Entry {
            name: entry.place.path.name().to_string(),
            path: ctx.relative(&entry.place),
            kind: kind_word(entry.kind),
            // A directory's own size does not include its contents.
            size: if entry.kind == Kind::Directory { 0 } else { entry.size },
        });
        let entries = fit(ctx.budget(limits::DEFAULT_MAX_OUTPUT_BYTES), entries, |entry| {
            entry.name.len() + entry.path.len() + OVERHEAD
        });
        let how = "set `includeHidden`, or name one in `path` to look inside";
        let shown = entries.len() as u64;
        let message = joined([
            left_out(shown, listed.total, "entries", "narrow `path`, `depth` or `glob`"),
            skipped(&listed.skipped, how).filter(|_| listed.total == 0),
            self.glob.as_deref().filter(|_| listed.total == 0).and_then(brackets),
            unread(&listed.skipped),
        ]);
        let (total, withheld) = (listed.total, withheld(&listed.skipped));
        Reply { entries, total, truncated: shown < total, withheld, message }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        let path = ctx.short_path(self.path.as_str());
        match &self.glob {
            None => path,
            Some(glob) => format!("{} in {path}", ctx.short_path(glob)),
        }
    }
}
