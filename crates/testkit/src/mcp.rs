//! Minimal clients of an MCP server, for tests that check every message.

mod lines;
mod web;

pub use lines::Lines;
pub use web::{Reply, Web};

use serde_json::{Map, Value, json};

/// A result of content blocks, without members that only one version of the protocol has.
fn block_result(result: &Value) -> Value {
    let mut result = result.clone();
    result.as_object_mut().unwrap().remove("resultType");
    result
}

/// The parameters of `initialize`, for a client with these capabilities.
pub fn initialize(capabilities: Value) -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "testkit", "version": "1"},
    })
}

/// The `_meta` of every stateless request.
pub fn alone(client: &str) -> Map<String, Value> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    meta.as_object().unwrap().clone()
}

/// The answer to a call, in the form of the other front ends: a `ToolResult` of `classic`, an object, or content
/// blocks.
pub fn answer(message: &Value) -> Value {
    let Some(result) = message.get("result") else {
        // An unknown tool, or arguments that are not an object, are errors of the protocol.
        let error = &message["error"];
        assert_eq!(error["code"], -32602, "{message}");
        let unknown = error["message"].as_str().unwrap().starts_with("there is no tool");
        let metadata = json!({"code": if unknown { "unknown_tool" } else { "invalid_argument" }});
        return json!({"success": false, "content": "", "error": error["message"], "metadata": metadata});
    };
    let failed = result["isError"].as_bool().unwrap();
    let blocks = result["content"].as_array().unwrap();
    let text = blocks.iter().find_map(|block| block["text"].as_str());
    let beside = result["_meta"].get("pinfold/result");
    let Some(beside) = beside
        .filter(|beside| beside.get("compactParams").is_some() || beside.get("metadata").is_some())
    else {
        let value = text.and_then(|text| serde_json::from_str::<Value>(text).ok());
        return match value {
            // The object is there twice, or it is an error, which is only in the text.
            Some(value) if failed || result.get("structuredContent") == Some(&value) => value,
            _ => block_result(result),
        };
    };
    assert!(result.get("structuredContent").is_none(), "{result}");
    let text = text.unwrap_or_default();
    let mut answer = Map::new();
    answer.insert("success".into(), (!failed).into());
    answer.insert("content".into(), if failed { "" } else { text }.into());
    if failed {
        answer.insert("error".into(), text.into());
    }
    let images = blocks
        .iter()
        .filter(|block| block["type"] == "image")
        .map(|block| json!({"data": block["data"], "mediaType": block["mimeType"]}));
    let images: Vec<_> = images.collect();
    if !images.is_empty() {
        answer.insert("images".into(), images.into());
    }
    for key in ["shortResult", "filePath", "metadata"] {
        if let Some(value) = beside.get(key) {
            answer.insert(key.into(), value.clone());
        }
    }
    answer.into()
}
