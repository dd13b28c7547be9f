//! Answers as the protocol carries them.

use pinfold_dialects::{Answer, ToolResult};
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Map, Value, json};

/// A tool's answer as the result of a call. `compact` is the call's arguments on one line.
pub(crate) fn result(answer: Answer, compact: Option<String>) -> CallToolResult {
    match answer {
        Answer::Classic(result) => classic(result, compact),
        Answer::Structured { value, failed } => structured(value, failed),
    }
}

/// Text for the model; what is for programs and people lies beside it, where no client shows it to
/// the model instead.
fn classic(result: ToolResult, compact: Option<String>) -> CallToolResult {
    let ToolResult { success, content, short_result, error, images, file_path, metadata } = result;
    let text = error.unwrap_or(content);
    let text = (!text.is_empty() || images.is_empty()).then(|| ContentBlock::text(text));
    let images = images.into_iter().map(|image| ContentBlock::image(image.data, image.media_type));
    let mut answer = CallToolResult::success(text.into_iter().chain(images).collect());
    answer.is_error = Some(!success);
    let facts = [
        ("shortResult", short_result.map(Value::from)),
        ("filePath", file_path.map(Value::from)),
        ("metadata", (!metadata.is_empty()).then_some(Value::Object(metadata))),
        ("compactParams", compact.map(Value::from)),
    ];
    let facts = facts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let facts = Value::Object(facts.collect());
    answer.meta = Some(MetaObject(Map::from_iter([("pinfold/result".to_owned(), facts)])));
    answer
}

/// An object, and the same as text. An error is not what the output schema promises, so it is only
/// in the text.
fn structured(value: Value, failed: bool) -> CallToolResult {
    // Not by `Display`, which is slower.
    let text = serde_json::to_string(&value).unwrap_or_default();
    let mut answer = CallToolResult::success(vec![ContentBlock::text(text)]);
    answer.is_error = Some(failed);
    answer.structured_content = (!failed).then_some(value);
    answer
}

/// What came of a call, for the log: `ok`, or the error's code.
pub(crate) fn outcome(answer: &Answer) -> Value {
    match answer {
        _ if !answer.failed() => json!("ok"),
        Answer::Classic(result) => result.metadata.get("code").cloned().unwrap_or_default(),
        Answer::Structured { value, .. } => value["error"].clone(),
    }
}
