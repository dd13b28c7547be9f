//! The `reference` dialect: the tools of the MCP project's filesystem server, for configurations that use it.
//!
//! Names, arguments and the first clause of answers and errors are the same as there. Where that server guesses or
//! loses data, this one refuses. Every answer is also structured content.

mod edit;
mod error_text;
mod info;
mod list;
mod media;
mod path;
mod read;
mod search;
mod tree;
mod write;

use serde_json::{Value, json};

use crate::answer::{Block, Blocks};
use crate::tool::{DispatchTool, parse, parse_dispatch};
use crate::{Answer, Dialect, Tool, ToolEntry};

/// Absolute and relative paths, texts and errors as in the reference server.
pub static REFERENCE: Dialect = Dialect {
    name: "reference",
    tools: &[
        tool::<read::ReadFile>(),
        tool::<read::ReadTextFile>(),
        media_tool(),
        tool::<read::ReadMultipleFiles>(),
        tool::<write::WriteFile>(),
        dispatch_tool::<edit::EditFile>(),
        tool::<write::CreateDirectory>(),
        tool::<list::ListDirectory>(),
        tool::<list::ListDirectoryWithSizes>(),
        dispatch_tool::<tree::DirectoryTree>(),
        tool::<write::MoveFile>(),
        tool::<search::SearchFiles>(),
        tool::<info::GetFileInfo>(),
        dispatch_tool::<info::ListAllowedDirectories>(),
    ],
    error_answer: error_text::error_answer,
    answers_unknown_tools: true,
    requires_reads: false,
};

/// A text, and a note on what is missing in it.
struct Text {
    text: String,
    note: Option<String>,
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self { text, note: None }
    }
}

/// The text is also the structured content. The note is a separate block.
fn text_answer(Text { text, note }: Text) -> Answer {
    let structured = Some(json!({ "content": text }));
    let texts = std::iter::once(text).chain(note);
    let content = texts.map(|text| Block::Text { text }).collect();
    Answer::Blocks(Blocks { content, structured, ..Blocks::default() })
}

fn schema_of_answer(content: Value) -> Value {
    json!({ "type": "object", "properties": { "content": content }, "required": ["content"] })
}

fn text_schema() -> Option<Value> {
    Some(schema_of_answer(json!({ "type": "string" })))
}

const fn tool<T: Tool<Reply = Text>>() -> ToolEntry {
    ToolEntry::of::<T>(text_schema, |arguments| parse::<T>(arguments, text_answer))
}

const fn dispatch_tool<T: DispatchTool<Reply = Text>>() -> ToolEntry {
    ToolEntry::dispatch::<T>(text_schema, |arguments| parse_dispatch::<T>(arguments, text_answer))
}

const fn media_tool() -> ToolEntry {
    let schema =
        || Some(schema_of_answer(json!({ "type": "array", "items": { "type": "object" } })));
    ToolEntry::of::<media::ReadMediaFile>(schema, |arguments| {
        parse::<media::ReadMediaFile>(arguments, |block| {
            let structured = Some(json!({ "content": [block] }));
            Answer::Blocks(Blocks { content: vec![block], structured, ..Blocks::default() })
        })
    })
}
