//! `Write`

use pinfold::operations::{self, Parents};
use pinfold::{Done, Encoding, Error, SeenRule};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::changed;
use crate::desk::AbsolutePath;
use crate::story::Story;
use crate::{Desk, Tool, ToolResult};

/// Creates a file, or replaces the whole content of one. A file that exists must have been read
/// before. Missing directories are created.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Write {
    /// Absolute path.
    file_path: AbsolutePath,
    /// The whole new content, stored as UTF-8.
    content: String,
}

impl Tool for Write {
    const NAME: &'static str = "Write";
    const TITLE: &'static str = "Write file";
    const IDEMPOTENT: bool = true;
    type Op = operations::Write;
    type Reply = ToolResult;

    fn operation(&self, desk: &Desk<'_>) -> Result<operations::Write, Error> {
        Ok(operations::Write {
            path: self.file_path.raw("file_path", desk)?,
            content: self.content.clone(),
            encoding: Encoding::UTF_8,
            parents: Parents::Make,
            seen: desk.seen(SeenRule::Required),
        })
    }

    fn reply(&self, done: Done<operations::Write>, desk: &Desk<'_>) -> ToolResult {
        let path = desk.absolute(&done.place);
        let story = Story::of_write(&done, &path);
        let facts = json!({
            "bytes_written": story.bytes_written,
            "created": done.created,
            "changed": done.changed,
        });
        changed(story, path, &done.receipt, facts)
    }

    fn compact(&self, desk: &Desk<'_>) -> String {
        desk.brief(self.file_path.as_str())
    }
}
