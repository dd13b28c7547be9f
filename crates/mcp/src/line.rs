//! Serialises messages to lines, and parses lines as messages.
//!
//! Most of a long result is one text. It is escaped in its content block, and if the tool returns an object, it
//! occurs again as structured content, where it is JSON already. So the members of a result are written one by one,
//! with a faster escape. `RawValue` parses the text again: with it and with `serde_json`'s escape, the answer to a
//! read of 8.8 MB takes 1.1 to 1.6 times as long. Property tests compare every line with the message as `serde_json`
//! writes it.

use memchr::memmem;
use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, CallToolResult, ClientJsonRpcMessage,
    ClientRequest, ContentBlock, JsonRpcMessage, JsonRpcResponse, JsonRpcVersion2_0, Request,
    RequestId, ServerJsonRpcMessage, ServerResult, TextContent,
};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, to_writer};

use crate::reply::SAME_AS_TEXT;

/// Serialises a message to one line, with its newline.
pub(crate) fn serialize(message: ServerJsonRpcMessage) -> serde_json::Result<Vec<u8>> {
    let mut line = match message {
        JsonRpcMessage::Response(JsonRpcResponse {
            id,
            result: ServerResult::CallToolResult(result),
            ..
        }) => call_response(&id, result)?,
        other => serde_json::to_vec(&other)?,
    };
    line.push(b'\n');
    Ok(line)
}

/// The response to a call.
fn call_response(id: &RequestId, mut result: CallToolResult) -> serde_json::Result<Vec<u8>> {
    let content = std::mem::take(&mut result.content);
    let text = match content.first() {
        Some(ContentBlock::Text(first)) => first.text.as_str(),
        _ => "",
    };
    let structured = result.structured_content.take();
    let copies = if structured == Some(SAME_AS_TEXT) { 2 } else { 1 };
    let mut line = Vec::with_capacity(1024 + copies * text.len() + text.len() / 8);
    line.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    to_writer(&mut line, id)?;
    line.extend_from_slice(br#","result":{"content":["#);
    // Where the first block's text is in the line, escaped.
    let mut escaped = 0..0;
    for (number, block) in content.iter().enumerate() {
        if number > 0 {
            line.push(b',');
        }
        match block {
            ContentBlock::Text(TextContent { text, meta: None, annotations: None, .. }) => {
                line.extend_from_slice(br#"{"type":"text","text":""#);
                let start = line.len();
                escape(text, &mut line);
                if number == 0 {
                    escaped = start..line.len();
                }
                line.extend_from_slice(br#""}"#);
            }
            other => to_writer(&mut line, other)?,
        }
    }
    line.push(b']');
    if let Some(structured) = structured {
        line.extend_from_slice(br#","structuredContent":"#);
        if structured == SAME_AS_TEXT {
            line.extend_from_slice(text.as_bytes());
        } else if let Some(key) = key_of(&structured, text).filter(|_| !escaped.is_empty()) {
            line.push(b'{');
            to_writer(&mut line, key)?;
            line.extend_from_slice(b":\"");
            line.extend_from_within(escaped);
            line.extend_from_slice(b"\"}");
        } else {
            to_writer(&mut line, &structured)?;
        }
    }
    if let Value::Object(mut rest) = serde_json::to_value(&result)? {
        rest.remove("content");
        for (key, value) in rest {
            line.push(b',');
            to_writer(&mut line, &key)?;
            line.push(b':');
            to_writer(&mut line, &value)?;
        }
    }
    line.extend_from_slice(b"}}");
    Ok(line)
}

/// The key of an object that has this text as its only value.
fn key_of<'v>(object: &'v Value, text: &str) -> Option<&'v str> {
    let mut members = object.as_object()?.iter();
    let (key, value) = members.next()?;
    (members.len() == 0 && value == text).then_some(key)
}

/// A call of a tool.
#[derive(Deserialize)]
struct Call {
    #[serde(rename = "jsonrpc")]
    _jsonrpc: JsonRpcVersion2_0,
    #[serde(rename = "method")]
    _method: CallToolRequestMethod,
    id: RequestId,
    params: CallToolRequestParams,
    #[serde(default, rename = "result", deserialize_with = "refuse")]
    _result: (),
    #[serde(default, rename = "error", deserialize_with = "refuse")]
    _error: (),
}

/// Fails, since a request does not have this member.
fn refuse<'de, D: Deserializer<'de>>(_: D) -> Result<(), D::Error> {
    Err(D::Error::custom("a request has neither result nor error"))
}

/// Parses a message. Most messages are calls, so the text is first parsed as a call, without a copy of its arguments;
/// `rmcp` buffers a message and copies it for each type that it tries. If that fails, `rmcp` parses it.
pub(crate) fn parse(text: &[u8]) -> serde_json::Result<ClientJsonRpcMessage> {
    if memmem::find(text, b"\"tools/call\"").is_none() {
        return serde_json::from_slice(text);
    }
    let Ok(Call { id, mut params, .. }) = serde_json::from_slice(text) else {
        return serde_json::from_slice(text);
    };
    let meta = params.meta.take();
    let mut request = Request::new(params);
    if let Some(meta) = meta {
        request.extensions.insert(meta);
    }
    Ok(JsonRpcMessage::request(ClientRequest::CallToolRequest(request), id))
}

/// Writes a text as JSON, without the quotes around it.
fn escape(text: &str, line: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    let mut plain = 0;
    while let Some(at) = special(&bytes[plain..]) {
        let byte = bytes[plain + at];
        line.extend_from_slice(&bytes[plain..plain + at]);
        plain += at + 1;
        let short = match byte {
            b'\n' => b'n',
            b'\t' => b't',
            b'\r' => b'r',
            0x08 => b'b',
            0x0c => b'f',
            b'"' | b'\\' => byte,
            _ => {
                line.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                continue;
            }
        };
        line.extend_from_slice(&[b'\\', short]);
    }
    line.extend_from_slice(&bytes[plain..]);
}

/// The offset of the first byte that has to be escaped: a quote, a backslash, or a control character.
fn special(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGHS: u64 = ONES << 7;
    // The lowest byte with its high bit set is the first one that is zero, or below 0x20.
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let quote = zero(word ^ (ONES * u64::from(b'"')));
        let backslash = zero(word ^ (ONES * u64::from(b'\\')));
        let found = (control | quote | backslash) & HIGHS;
        if found != 0 {
            return Some(index * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    let found = rest.iter().position(|byte| matches!(byte, ..0x20 | b'"' | b'\\'))?;
    Some(bytes.len() - rest.len() + found)
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
        let line = serialize(message).unwrap();
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
    fn every_byte_is_escaped_wherever_it_stands() {
        for character in '\0'..='\u{ff}' {
            for before in 0..17 {
                let text = format!("{}{character}{}", "x".repeat(before), "y".repeat(9));
                let mut line = b"\"".to_vec();
                escape(&text, &mut line);
                line.push(b'"');
                assert_eq!(line, serde_json::to_vec(&text).unwrap(), "{text:?}");
            }
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

    #[test]
    fn a_message_is_parsed_as_rmcp_parses_it() {
        let calls = [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read"}}"#,
            r#"{"params":{"_meta":{"progressToken":3,"x":[1]},"arguments":{"a":{"b":null}},"name":"n"},"id":"x","method":"tools/call","jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read"},"more":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read","arguments":null,"_meta":null,"more":1}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read","requestState":"s","inputResponses":{}}}"#,
        ];
        let others = [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read"},"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read"},"error":null}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"Read"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read","arguments":[]}}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"Read"}}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"Read"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"tools/call"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"x":"tools/call"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read"}"#,
        ];
        for text in calls.iter().chain(&others) {
            let printed = |message: serde_json::Result<ClientJsonRpcMessage>| {
                message.map(|message| format!("{message:?}")).map_err(|error| error.to_string())
            };
            let understood = parse(text.as_bytes());
            let is_call = matches!(
                &understood,
                Ok(JsonRpcMessage::Request(request))
                    if matches!(request.request, ClientRequest::CallToolRequest(_))
            );
            assert_eq!(is_call, calls.contains(text), "{text}");
            assert_eq!(printed(understood), printed(serde_json::from_str(text)), "{text}");
        }
    }
}
