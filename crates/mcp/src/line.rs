//! Serialises messages to lines. `parse.rs` parses lines as messages.
//!
//! Most of a long result is one text. It is escaped in its content block, and if the tool returns an object, it
//! occurs again as structured content, where it is JSON already. So the members of a result are written one by one,
//! with a faster escape, and a long text is escaped block by block while the line is written: the client reads
//! meanwhile, and no second copy of the text takes memory. Property tests compare every line with the message as
//! `serde_json` writes it.

mod parse;

use std::collections::VecDeque;
use std::ops::Range;

use pinfold::escape_json_bytes;
use rmcp::model::{
    CallToolResult, ContentBlock, JsonRpcMessage, JsonRpcResponse, RequestId, ServerJsonRpcMessage,
    ServerResult, TextContent,
};
use serde_json::{Value, to_writer};

use crate::tool_result::SAME_AS_TEXT;
pub(crate) use parse::parse;

/// How much of a line is made at once. It fits into the CPU's cache, and into the pipe. In tests, most lines have
/// several blocks.
const BLOCK: usize = if cfg!(test) { 16 } else { 256 * 1024 };

/// A message as one line, which is made block by block.
#[derive(Default)]
pub(crate) struct SerializedMessage {
    parts: VecDeque<Part>,
    /// The text of the result's first block.
    text: String,
    block: Vec<u8>,
}

enum Part {
    Json(Vec<u8>),
    /// A part of the text, escaped.
    Escaped(Range<usize>),
    /// The whole text, as it is.
    Text,
}

/// Serialises a message to one line, with its newline.
pub(crate) fn serialize(message: ServerJsonRpcMessage) -> serde_json::Result<SerializedMessage> {
    let mut line = match message {
        JsonRpcMessage::Response(JsonRpcResponse {
            id,
            result: ServerResult::CallToolResult(result),
            ..
        }) => call_response(&id, result)?,
        other => {
            let mut line = SerializedMessage::default();
            to_writer(line.json(), &other)?;
            line
        }
    };
    line.json().push(b'\n');
    Ok(line)
}

impl SerializedMessage {
    /// The JSON at the end of the line, to be continued.
    fn json(&mut self) -> &mut Vec<u8> {
        if !matches!(self.parts.back(), Some(Part::Json(_))) {
            self.parts.push_back(Part::Json(Vec::new()));
        }
        match self.parts.back_mut() {
            Some(Part::Json(json)) => json,
            _ => unreachable!("it was added"),
        }
    }

    fn push_escaped_text(&mut self) {
        self.parts.push_back(Part::Escaped(0..self.text.len()));
    }

    /// The next block of the line. Returns `None` after its end.
    pub(crate) fn next_block(&mut self) -> Option<&[u8]> {
        self.block.clear();
        while self.block.len() < BLOCK {
            match self.parts.front_mut() {
                Some(Part::Json(json)) if self.block.is_empty() => {
                    self.block = std::mem::take(json);
                }
                Some(Part::Json(json)) => self.block.append(json),
                Some(Part::Escaped(rest)) => {
                    let end = rest.end.min(rest.start + BLOCK - self.block.len());
                    let end = self.text.ceil_char_boundary(end);
                    self.block.reserve((end - rest.start) * 9 / 8);
                    escape_json_bytes(&self.text[rest.start..end], &mut self.block);
                    rest.start = end;
                    if end < rest.end {
                        continue;
                    }
                }
                // A long text is not copied.
                Some(Part::Text) if self.text.len() < BLOCK => {
                    self.block.extend_from_slice(self.text.as_bytes());
                }
                Some(Part::Text) if self.block.is_empty() => {
                    self.parts.pop_front();
                    return Some(self.text.as_bytes());
                }
                Some(Part::Text) | None => break,
            }
            self.parts.pop_front();
        }
        (!self.block.is_empty()).then_some(&self.block)
    }
}

/// The response to a call.
fn call_response(
    id: &RequestId,
    mut result: CallToolResult,
) -> serde_json::Result<SerializedMessage> {
    let mut line = SerializedMessage::default();
    let json = line.json();
    json.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    to_writer(&mut *json, id)?;
    json.extend_from_slice(br#","result":{"content":["#);
    let mut escaped = false;
    for (number, block) in std::mem::take(&mut result.content).into_iter().enumerate() {
        if number > 0 {
            line.json().push(b',');
        }
        match block {
            ContentBlock::Text(TextContent { text, meta: None, annotations: None, .. }) => {
                line.json().extend_from_slice(br#"{"type":"text","text":""#);
                if number == 0 {
                    (line.text, escaped) = (text, true);
                    line.push_escaped_text();
                } else {
                    escape_json_bytes(&text, line.json());
                }
                line.json().extend_from_slice(br#""}"#);
            }
            other => to_writer(line.json(), &other)?,
        }
    }
    line.json().push(b']');
    if let Some(structured) = result.structured_content.take() {
        line.json().extend_from_slice(br#","structuredContent":"#);
        if structured == SAME_AS_TEXT {
            line.parts.push_back(Part::Text);
        } else if let Some(key) = key_of(&structured, &line.text).filter(|_| escaped) {
            line.json().push(b'{');
            to_writer(line.json(), key)?;
            line.json().extend_from_slice(b":\"");
            line.push_escaped_text();
            line.json().extend_from_slice(b"\"}");
        } else {
            to_writer(line.json(), &structured)?;
        }
    }
    if let Value::Object(mut rest) = serde_json::to_value(&result)? {
        rest.remove("content");
        for (key, value) in rest {
            let json = line.json();
            json.push(b',');
            to_writer(&mut *json, &key)?;
            json.push(b':');
            to_writer(json, &value)?;
        }
    }
    line.json().extend_from_slice(b"}}");
    Ok(line)
}

/// The key of an object that has this text as its only value.
fn key_of<'v>(object: &'v Value, text: &str) -> Option<&'v str> {
    let mut members = object.as_object()?.iter();
    let (key, value) = members.next()?;
    (members.len() == 0 && value == text).then_some(key)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rmcp::model::{Annotations, MetaObject, NumberOrString};
    use serde_json::Map;

    use super::*;

    fn answer(result: CallToolResult, id: NumberOrString) -> ServerJsonRpcMessage {
        ServerJsonRpcMessage::response(ServerResult::CallToolResult(result), id)
    }

    fn plain(message: &ServerJsonRpcMessage) -> Value {
        serde_json::to_value(message).unwrap()
    }

    /// The message on a line, which has no other line break.
    fn made(message: ServerJsonRpcMessage) -> Value {
        let (mut line, mut blocks) = (Vec::new(), serialize(message).unwrap());
        while let Some(block) = blocks.next_block() {
            line.extend_from_slice(block);
        }
        assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
        serde_json::from_slice(&line).unwrap()
    }

    /// Texts with much to escape, at all distances from each other.
    fn texts() -> impl Strategy<Value = String> {
        let pieces = prop_oneof![
            Just("\"},\"structuredContent\":null".to_owned()),
            "[\\x00-\\x7f]{0,20}",
            "[a-z \"\\\\\\n]{0,12}",
            "\\PC{0,9}",
        ];
        prop::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn a_line_is_what_the_message_is_as_json(
            text in texts(), second in texts(), id in texts(), failed: bool,
        ) {
            let annotated = TextContent::new(id.clone()).with_annotations(Annotations::default());
            let image = ContentBlock::image("AAAA", "image/png");
            let texts = [ContentBlock::text(text), ContentBlock::text(second.clone())];
            let blocks = texts.into_iter().chain([ContentBlock::Text(annotated), image]);
            let mut result = CallToolResult::success(blocks.collect());
            result.is_error = Some(failed);
            result.structured_content = failed.then(|| Value::from(second.clone()));
            result.meta = Some(MetaObject(Map::from_iter([(second, Value::from(7))])));
            let message = answer(result, NumberOrString::String(id.into()));
            prop_assert_eq!(plain(&message), made(message));
        }

        #[test]
        fn structured_content_holds_the_text(
            text in texts(), more in texts(), key in texts(), annotated: bool,
        ) {
            let first = TextContent::new(text.clone());
            let first =
                if annotated { first.with_annotations(Annotations::default()) } else { first };
            let blocks = vec![ContentBlock::Text(first), ContentBlock::text(more)];
            let mut result = CallToolResult::success(blocks);
            result.structured_content = Some(Value::from_iter([(key, Value::from(text))]));
            let message = answer(result, NumberOrString::Number(7));
            prop_assert_eq!(plain(&message), made(message));
        }

        #[test]
        fn structured_content_is_the_text(keys in prop::collection::vec(texts(), 0..4), id in texts()) {
            let value = Value::from_iter(keys.iter().map(|key| (key.clone(), Value::from(id.clone()))));
            let text = value.to_string();
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = Some(value);
            let whole = plain(&answer(result.clone(), NumberOrString::String(id.clone().into())));
            result.structured_content = Some(SAME_AS_TEXT);
            let message = answer(result, NumberOrString::String(id.into()));
            prop_assert_eq!(whole, made(message));
        }
    }

    #[test]
    fn other_messages_are_lines_too() {
        let message =
            ServerJsonRpcMessage::response(ServerResult::empty(()), NumberOrString::Number(7));
        assert_eq!(plain(&message), made(message));
        let message = answer(CallToolResult::success(Vec::new()), NumberOrString::Number(7));
        assert_eq!(plain(&message), made(message));
    }
}
