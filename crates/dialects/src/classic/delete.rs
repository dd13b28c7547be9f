//! `Delete`

use pinfold::operations;
use pinfold::{Done, Error};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::changed;
use crate::desk::RelativePath;
use crate::story::Story;
use crate::{Desk, Tool, ToolResult};

/// Deletes one file. A symlink is deleted itself; directories are left alone.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Delete {
    /// Absolute path, or relative to the workspace root.
    path: RelativePath,
}

impl Tool for Delete {
    const NAME: &'static str = "Delete";
    const TITLE: &'static str = "Delete file";
    const IDEMPOTENT: bool = false;
    type Op = operations::Delete;
    type Reply = ToolResult;

    fn operation(&self, _: &Desk<'_>) -> Result<operations::Delete, Error> {
        Ok(operations::Delete::new(self.path.raw()))
    }

    fn reply(&self, done: Done<operations::Delete>, desk: &Desk<'_>) -> ToolResult {
        let path = desk.absolute(&done.place);
        let story = Story::of_delete(&done, &path);
        changed(story, path, &done.receipt, json!({}))
    }

    fn compact(&self, desk: &Desk<'_>) -> String {
        desk.brief(self.path.as_str())
    }
}
