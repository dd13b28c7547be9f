//! Answers in a common form for programs.

use pinfold_dialects::{Answer, Block};
use serde_json::{Value, json};

/// An answer as JSON text. If the dialect answers with objects, `data` has the object.
pub(crate) fn text(answer: Answer) -> String {
    match answer {
        Answer::Classic(_) => answer.to_json_text(),
        Answer::Blocks(ref blocks) => {
            let (texts, data) = (blocks.texts(), answer.to_json());
            let mut result = match blocks.code {
                None => json!({ "success": true, "content": texts, "data": data }),
                Some(code) => json!({
                    "success": false,
                    "content": "",
                    "error": texts,
                    "metadata": { "code": code },
                    "data": data,
                }),
            };
            if let Some(error_type) = blocks.error_type {
                result["metadata"]["type"] = error_type.into();
            }
            let images: Vec<Value> = blocks.content.iter().filter_map(image).collect();
            if !images.is_empty() {
                result["images"] = images.into();
            }
            result.to_string()
        }
        Answer::Structured { json, failed: false } => {
            format!("{{\"success\":true,\"data\":{json}}}")
        }
        Answer::Structured { failed: true, .. } => {
            let value = answer.to_json();
            let field = |key: &str| value.get(key).cloned().unwrap_or(Value::Null);
            json!({
                "success": false,
                "error": field("message"),
                "metadata": { "code": field("error") },
                "data": value,
            })
            .to_string()
        }
    }
}

/// An image in the form of results.
fn image(block: &Block) -> Option<Value> {
    match block {
        Block::Image { data, mime_type } => Some(json!({ "data": data, "mediaType": mime_type })),
        _ => None,
    }
}
