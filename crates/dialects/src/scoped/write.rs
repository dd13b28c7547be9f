//! `write_file`

use pinfold::operations::{self, Parents};
use pinfold::{Done, Error, ReadBeforeWrite};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::change_summary::ChangeSummary;
use crate::tool_context::RelativePath;
use crate::{Tool, ToolContext};

/// Creates a file, or replaces the whole content of one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Write {
    /// Path relative to the workspace root.
    path: RelativePath,
    /// The file's whole new content.
    content: String,
    /// Encoding to store it in, e.g. `latin1`; `utf-8` if left out.
    encoding: Option<String>,
    /// Whether to create missing directories; false if left out.
    create_dirs: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// The file.
    path: String,
    /// Its size in bytes.
    bytes: u64,
    /// What else there is to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl Tool for Write {
    const NAME: &'static str = "write_file";
    const TITLE: &'static str = "Write file";
    const IDEMPOTENT: bool = true;
    type Op = operations::Write;
    type Reply = Reply;

    fn operation(&self, ctx: &ToolContext<'_>) -> Result<operations::Write, Error> {
        let mut write = operations::Write::new(self.path.raw()?, self.content.as_str());
        if let Some(label) = &self.encoding {
            write.encoding = ctx.encoding("encoding", label)?;
        }
        if self.create_dirs != Some(true) {
            write.parents = Parents::Refuse;
        }
        write.read_rule = ctx.read_rule(ReadBeforeWrite::Off);
        write.keeps_line_hashes = ctx.requires_reads;
        Ok(write)
    }

    fn reply(&self, done: Done<operations::Write>, ctx: &ToolContext<'_>) -> Reply {
        let path = ctx.relative(&done.outcome.place);
        let message = ChangeSummary::of_write(&done, &path).message();
        Reply { path, bytes: done.outcome.bytes, message }
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        ctx.short_path(self.path.as_str())
    }
}
