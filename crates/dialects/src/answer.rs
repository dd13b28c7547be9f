//! A tool's answer, as text or as an object, depending on the dialect.

use std::borrow::Cow;

use pinfold::escape_json;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A tool's answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Text for a model, with images and metadata.
    Classic(ToolResult),
    /// An object for a program.
    Structured {
        /// The object, as JSON text on one line.
        json: String,
        /// Whether it describes an error.
        failed: bool,
    },
    /// Content blocks of the Model Context Protocol.
    Blocks(Blocks),
}

impl Answer {
    /// Whether the call failed.
    pub fn failed(&self) -> bool {
        match self {
            Self::Classic(result) => !result.success,
            Self::Structured { failed, .. } => *failed,
            Self::Blocks(blocks) => blocks.code.is_some(),
        }
    }

    /// The answer as JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Classic(result) => as_value(result),
            Self::Structured { json, .. } => serde_json::from_str(json).expect(PLAIN),
            Self::Blocks(blocks) => blocks.to_json(),
        }
    }

    /// The answer as JSON text on one line.
    pub fn to_json_text(&self) -> String {
        match self {
            Self::Classic(result) => as_text(result),
            Self::Structured { json, .. } => json.clone(),
            Self::Blocks(blocks) => blocks.to_json().to_string(),
        }
    }
}

const PLAIN: &str = "answers are plain data with string keys";

fn as_value(data: &impl Serialize) -> Value {
    serde_json::to_value(data).expect(PLAIN)
}

pub(crate) fn as_text(data: &impl Serialize) -> String {
    serde_json::to_string(data).expect(PLAIN)
}

/// A reply whose first member is a text that may be long.
pub(crate) trait TextReply: Serialize {
    /// That text.
    fn text(&mut self) -> &mut String;
}

/// As [`as_text`], with a faster escape of the text.
pub(crate) fn text_reply(mut reply: impl TextReply) -> String {
    let text = std::mem::take(reply.text());
    let rest = as_text(&reply);
    // The text was taken out, so the first empty string is its position.
    let place = rest.find("\"\"").expect("the text is in it") + 1;
    let mut json = String::with_capacity(rest.len() + text.len() + text.len() / 8);
    json.push_str(&rest[..place]);
    escape_json(&text, &mut json);
    json.push_str(&rest[place..]);
    json
}

/// The answer of a `classic` tool.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// Whether the call succeeded.
    pub success: bool,
    /// The text for the model; empty on failure.
    pub content: String,
    /// One line for the user; always present on success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_result: Option<String>,
    /// The error message, with its hint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Images of the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// The file that the call read or changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_path: Option<String>,
    /// Metadata for programs.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// The answer of a dialect whose answers are content blocks.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    /// The blocks.
    pub content: Vec<Block>,
    /// The structured content, in dialects with output schemas.
    pub structured: Option<Value>,
    /// The error's code, if the call failed.
    pub code: Option<&'static str>,
    /// The error's type, in dialects that have types of their own.
    pub error_type: Option<&'static str>,
}

/// A content block.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Block {
    /// Text for the model.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    #[serde(rename_all = "camelCase")]
    Image {
        /// The image's bytes in base64.
        data: String,
        /// Its media type.
        mime_type: Cow<'static, str>,
    },
    /// A sound.
    #[serde(rename_all = "camelCase")]
    Audio {
        /// The sound's bytes in base64.
        data: String,
        /// Its media type.
        mime_type: &'static str,
    },
    /// Another file.
    Resource {
        /// The file.
        resource: Resource,
    },
}

/// A file in a content block.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// The file's URI.
    pub uri: String,
    /// Its media type.
    pub mime_type: &'static str,
    /// Its bytes in base64.
    pub blob: String,
}

impl Blocks {
    /// An answer with one text.
    pub(crate) fn text(text: String) -> Self {
        Self { content: vec![Block::Text { text }], ..Self::default() }
    }

    /// The text and the images of a result, for dialects that share the tools of `classic`.
    pub(crate) fn of_result(result: ToolResult) -> Answer {
        let ToolResult { content, images, .. } = result;
        let images = images
            .into_iter()
            .map(|Image { data, media_type }| Block::Image { data, mime_type: media_type.into() });
        let content = [Block::Text { text: content }].into_iter().chain(images).collect();
        Answer::Blocks(Self { content, ..Self::default() })
    }

    /// The answer to a call that failed.
    pub(crate) fn failure(message: String, code: &'static str) -> Answer {
        Answer::Blocks(Self { code: Some(code), ..Self::text(message) })
    }

    /// All texts, one after the other.
    pub fn texts(&self) -> String {
        let texts = self.content.iter().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The `_meta` of the answer for programs, if it has one.
    pub fn meta(&self) -> Option<Value> {
        let mut meta = json!({ "pinfold/result": { "code": self.code? } });
        if let Some(error_type) = self.error_type {
            meta["pinfold/result"]["type"] = error_type.into();
        }
        Some(meta)
    }

    /// The result of `tools/call`.
    fn to_json(&self) -> Value {
        let mut result = json!({ "content": self.content, "isError": self.code.is_some() });
        if let Some(structured) = &self.structured {
            result["structuredContent"] = structured.clone();
        }
        if let Some(meta) = self.meta() {
            result["_meta"] = meta;
        }
        result
    }
}

/// An image in an answer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// The image's bytes in base64.
    pub data: String,
    /// Its media type.
    pub media_type: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Serialize)]
    struct Reply {
        content: String,
        lines: u64,
        message: Option<String>,
    }

    impl TextReply for Reply {
        fn text(&mut self) -> &mut String {
            &mut self.content
        }
    }

    #[test]
    fn a_reply_with_a_text_is_as_serde_json_writes_it() {
        for text in ["", "\"\"", "one\ntwo\t\u{1b}\\\u{e9}\r\n"] {
            for message in [None, Some(text.to_owned())] {
                let reply = Reply { content: text.to_owned(), lines: 2, message };
                assert_eq!(text_reply(reply.clone()), as_text(&reply));
            }
        }
    }
}
