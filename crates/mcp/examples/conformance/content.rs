//! Tools that answer at once, each with another kind of content or another kind of schema.

use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock, ResourceContents, Tool};
use serde_json::{Value, json};

/// A PNG of one red pixel, in Base64.
pub(crate) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";

/// A WAV of two samples of silence, in Base64.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQIAAACAgA==";

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        plain("test_simple_text", "Answers with text."),
        plain("test_image_content", "Answers with an image."),
        plain("test_audio_content", "Answers with a sound."),
        plain("test_embedded_resource", "Answers with a resource."),
        plain("test_multiple_content_types", "Answers with text, an image and a resource."),
        plain("test_error_handling", "Always fails."),
        tool("json_schema_2020_12_tool", "Has a schema with much in it.", rich_schema()),
        tool("test_custom_header", "Has an argument that is also in a header.", header_schema()),
    ]
}

pub(crate) fn call(request: &CallToolRequestParams) -> Option<CallToolResult> {
    let content = match &*request.name {
        "test_simple_text" => {
            vec![ContentBlock::text("This is a simple text response for testing.")]
        }
        "test_image_content" => vec![ContentBlock::image(PNG, "image/png")],
        "test_audio_content" => vec![ContentBlock::audio(WAV, "audio/wav")],
        "test_embedded_resource" => {
            let text = "This is an embedded resource content.";
            vec![ContentBlock::resource(ResourceContents::text(text, "test://embedded-resource"))]
        }
        "test_multiple_content_types" => {
            let text = json!({ "test": "data", "value": 123 }).to_string();
            let resource = ResourceContents::text(text, "test://mixed-content-resource")
                .with_mime_type("application/json");
            vec![
                ContentBlock::text("Multiple content types test:"),
                ContentBlock::image(PNG, "image/png"),
                ContentBlock::resource(resource),
            ]
        }
        "test_error_handling" => {
            return Some(failure("This tool intentionally returns an error for testing"));
        }
        "json_schema_2020_12_tool" | "test_custom_header" => {
            let given = Value::Object(request.arguments.clone().unwrap_or_default());
            vec![ContentBlock::text(format!("Called with {given}"))]
        }
        _ => return None,
    };
    Some(CallToolResult::success(content))
}

/// A tool without arguments.
pub(crate) fn plain(name: &'static str, description: &'static str) -> Tool {
    tool(name, description, json!({ "type": "object", "properties": {} }))
}

pub(crate) fn tool(name: &'static str, description: &'static str, schema: Value) -> Tool {
    let Value::Object(schema) = schema else { unreachable!("schemas here are objects") };
    Tool::new(name, description, schema)
}

/// A result that is one text.
pub(crate) fn success(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// A result that says why there is none.
pub(crate) fn failure(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// Has the keywords that must come through as they are.
fn rich_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

/// Clients must repeat `region` in the header `Mcp-Param-Region`.
fn header_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
        "required": ["region"],
    })
}
