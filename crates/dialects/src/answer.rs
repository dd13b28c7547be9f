//! A tool's answer, as text or as an object, depending on the dialect.

use serde::Serialize;
use serde_json::{Map, Value};

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
}

impl Answer {
    /// Whether the call failed.
    pub fn failed(&self) -> bool {
        match self {
            Self::Classic(result) => !result.success,
            Self::Structured { failed, .. } => *failed,
        }
    }

    /// The answer as JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Classic(result) => as_value(result),
            Self::Structured { json, .. } => serde_json::from_str(json).expect(PLAIN),
        }
    }

    /// The answer as JSON text on one line.
    pub fn to_json_text(&self) -> String {
        match self {
            Self::Classic(result) => as_text(result),
            Self::Structured { json, .. } => json.clone(),
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
    /// What went wrong, and what to try next.
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

/// An image in an answer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// The image's bytes in base64.
    pub data: String,
    /// Its media type.
    pub media_type: String,
}
