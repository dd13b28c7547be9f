//! Turns tools' answers into results of the protocol.

use pinfold_dialects::{Answer, Block, Blocks, ToolResult};
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, MetaObject, ResourceContents};
use serde_json::{Map, Value};

/// A tool's answer as the result of a call. `compact_params` is the call's arguments on one line.
pub(crate) fn of_answer(answer: Answer, compact_params: Option<String>) -> CallToolResult {
    match answer {
        Answer::Classic(result) => classic(result, compact_params),
        Answer::Structured { json, failed } => structured(json, failed),
        Answer::Blocks(answer) => blocks(answer),
    }
}

/// Passes the blocks on unchanged.
fn blocks(answer: Blocks) -> CallToolResult {
    let meta = answer.meta();
    let content = answer.content.into_iter().map(|block| match block {
        Block::Text { text } => ContentBlock::text(text),
        Block::Image { data, mime_type } => ContentBlock::image(data, mime_type),
        Block::Audio { data, mime_type } => ContentBlock::audio(data, mime_type),
        Block::Resource { resource } => {
            let contents = ResourceContents::blob(resource.blob, resource.uri);
            ContentBlock::resource(contents.with_mime_type(resource.mime_type))
        }
    });
    let mut result = CallToolResult::success(content.collect());
    result.is_error = Some(answer.code.is_some());
    result.structured_content = answer.structured;
    result.meta = match meta {
        Some(Value::Object(meta)) => Some(MetaObject(meta)),
        _ => None,
    };
    result
}

/// The text is for the model. Data for programs and the user is in `_meta`, which no client shows to the model.
fn classic(result: ToolResult, compact_params: Option<String>) -> CallToolResult {
    let ToolResult { success, content, short_result, error, images, file_path, metadata } = result;
    let text = error.unwrap_or(content);
    let text = (!text.is_empty() || images.is_empty()).then(|| ContentBlock::text(text));
    let images = images.into_iter().map(|image| ContentBlock::image(image.data, image.media_type));
    let mut result = CallToolResult::success(text.into_iter().chain(images).collect());
    result.is_error = Some(!success);
    let facts = [
        ("shortResult", short_result.map(Value::from)),
        ("filePath", file_path.map(Value::from)),
        ("metadata", (!metadata.is_empty()).then_some(Value::Object(metadata))),
        ("compactParams", compact_params.map(Value::from)),
    ];
    let facts = facts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let facts = Value::Object(facts.collect());
    result.meta = Some(MetaObject(Map::from_iter([("pinfold/result".to_owned(), facts)])));
    result
}

/// A placeholder for structured content that is the same object as the text. `rmcp` wants a [`Value`], and parsing a
/// long text into one takes longer than the rest of the call. [`line`](crate::line::serialize) (stdio) or [`fill_in`]
/// (HTTP) replaces it. Tools return only objects, so none returns `null`.
pub(crate) const SAME_AS_TEXT: Value = Value::Null;

/// An object, as text and as structured content. An error does not match the output schema, so it is only text.
fn structured(json: String, failed: bool) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(json)]);
    result.is_error = Some(failed);
    result.structured_content = (!failed).then_some(SAME_AS_TEXT);
    result
}

/// Replaces [`SAME_AS_TEXT`] by the object, for transports that do not.
pub(crate) fn fill_in(response: &mut CallToolResponse) {
    let CallToolResponse::Complete(result) = response else { return };
    if let (Some(structured @ SAME_AS_TEXT), [ContentBlock::Text(text)]) =
        (&mut result.structured_content, result.content.as_slice())
    {
        *structured = serde_json::from_str(&text.text)
            .expect("the text beside structured content is the object that a tool made");
    }
}
