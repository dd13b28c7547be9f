//! `get_file_info`

use pinfold::operations;
use pinfold::{Done, Error, escaped};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::phrases::{kind_word, utc};
use crate::tool_context::RelativePath;
use crate::{Tool, ToolContext};

/// Describes a file, directory or symlink. A symlink is described as itself.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Info {
    /// Path relative to the workspace root.
    path: RelativePath,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reply {
    /// Its name, without directories.
    name: String,
    /// Its path.
    path: String,
    /// `file`, `directory`, `symlink` or `other`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Its size in bytes.
    size: u64,
    /// When it was last changed, in UTC.
    modified: String,
    /// Its media type.
    mime: &'static str,
    /// How many lines it has; null where it is not text.
    lines: Option<u64>,
    /// Whether it is a symlink.
    is_symlink: bool,
    /// Where it points, as it is written in the link; null for other things.
    symlink_target: Option<String>,
}

impl Tool for Info {
    const NAME: &'static str = "get_file_info";
    const TITLE: &'static str = "File info";
    const IDEMPOTENT: bool = true;
    type Op = operations::Info;
    type Reply = Reply;

    fn operation(&self, _: &ToolContext<'_>) -> Result<operations::Info, Error> {
        Ok(operations::Info::new(self.path.raw()?))
    }

    fn reply(&self, done: Done<operations::Info>, ctx: &ToolContext<'_>) -> Reply {
        let described = done.outcome;
        let path = &described.place.path;
        Reply {
            name: if path.is_root() { ".".into() } else { path.name().to_string() },
            path: ctx.relative(&described.place),
            kind: kind_word(described.meta.kind),
            size: described.meta.len,
            modified: utc(described.meta.modified),
            mime: described.mime,
            lines: described.lines,
            is_symlink: described.link_target.is_some(),
            symlink_target: described.link_target.map(|target| escaped(&target).to_string()),
        }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        ctx.short_path(self.path.as_str())
    }
}
