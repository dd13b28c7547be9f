//! `Write`

use pinfold::operations::{self, Parents};
use pinfold::{Done, Encoding, Error, SeenRule};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::desk::AbsolutePath;
use crate::story::Story;
use crate::{Desk, Tool, ToolResult};

/// Creates a file, or replaces the whole content of one. A file that exists must have been read
/// before. Missing directories are created.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Write {
    /// Absolute path of the file.
    file_path: AbsolutePath,
    /// The file's whole new content, stored as UTF-8 exactly as given.
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
        let mut metadata = Map::new();
        let mut fact = |name: &str, value: Value| metadata.insert(name.into(), value);
        fact("bytes_written", story.bytes_written.into());
        fact("created", done.created.into());
        fact("changed", done.changed.into());
        fact("dry_run", done.receipt.dry_run.into());
        if let Some(id) = &done.receipt.id {
            fact("id", id.as_str().into());
        }
        ToolResult {
            success: true,
            content: story.long(),
            short_result: Some(story.short),
            file_path: Some(path),
            metadata,
            ..ToolResult::default()
        }
    }

    fn compact(&self, desk: &Desk<'_>) -> String {
        desk.brief(self.file_path.as_str())
    }
}
