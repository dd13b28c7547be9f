//! Serialises messages to lines, and parses lines as messages.
//!
//! Most of a long result is one text: escaped in the content, and, if a tool returns an object, again as structured
//! content. The message is serialised without the text, which is then inserted in both places. This is done by hand
//! because of its cost: with a typed message, `serde_json` and `RawValue` the answer to a read of 9.5 MB takes 1.1 to 1.6
//! times as long, since `RawValue` parses the text again. Properties compare every line with the output of `serde_json`.

use std::mem::take;

use memchr::memmem;
use rmcp::model::{
    CallToolRequest, ClientJsonRpcMessage, ClientRequest, ContentBlock, JsonRpcMessage,
    JsonRpcRequest, ServerJsonRpcMessage, ServerResult,
};
use serde::de::IgnoredAny;
use serde_json::Value;

/// An empty text, and missing structured content, as JSON. Neither can occur within a string, in which quotes are
/// escaped.
const TEXT: &[u8] = b"\"text\":\"\"";
const STRUCTURED: &[u8] = b"\"structuredContent\":null";

/// A message as one line, with its newline. `structuredContent: null` is a placeholder of
/// [`reply`](crate::reply): the text, which is JSON then, is inserted there.
pub(crate) fn line(mut message: ServerJsonRpcMessage) -> serde_json::Result<Vec<u8>> {
    let (text, again) = texts(&mut message).unwrap_or_default();
    let rest = serde_json::to_vec(&message)?;
    let escaped = text.len() + text.len() / 8;
    let whole = rest.len() + escaped + if again { text.len() } else { 0 } + 1;
    let mut line = Vec::with_capacity(whole);
    let mut rest = rest.as_slice();
    if let Some(at) = memmem::find(rest, TEXT).filter(|_| !text.is_empty()) {
        let (head, tail) = rest.split_at(at + TEXT.len() - 1);
        line.extend_from_slice(head);
        escape(&text, &mut line);
        rest = tail;
    }
    if let Some(at) = memmem::find(rest, STRUCTURED).filter(|_| again) {
        let (head, tail) = rest.split_at(at + STRUCTURED.len());
        line.extend_from_slice(&head[..head.len() - b"null".len()]);
        line.extend_from_slice(text.as_bytes());
        rest = tail;
    }
    line.extend_from_slice(rest);
    line.push(b'\n');
    Ok(line)
}

/// Parses a message. Most are calls, so that type is tried first; `rmcp` would try it as the tenth.
pub(crate) fn message(text: &[u8]) -> serde_json::Result<ClientJsonRpcMessage> {
    type Call = JsonRpcMessage<CallToolRequest, IgnoredAny, IgnoredAny>;
    if memmem::find(text, b"\"tools/call\"").is_some()
        && let Ok(Call::Request(JsonRpcRequest { id, request, .. })) = serde_json::from_slice(text)
    {
        return Ok(JsonRpcMessage::request(ClientRequest::CallToolRequest(request), id));
    }
    serde_json::from_slice(text)
}

/// Takes the first text out of a result. The flag says whether it is the structured content too.
fn texts(message: &mut ServerJsonRpcMessage) -> Option<(String, bool)> {
    let JsonRpcMessage::Response(response) = message else { return None };
    let ServerResult::CallToolResult(result) = &mut response.result else { return None };
    let Some(ContentBlock::Text(first)) = result.content.first_mut() else { return None };
    Some((take(&mut first.text), result.structured_content == Some(Value::Null)))
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
    use rmcp::model::{CallToolResult, NumberOrString};

    use super::*;

    fn answer(result: CallToolResult, id: NumberOrString) -> ServerJsonRpcMessage {
        ServerJsonRpcMessage::response(ServerResult::CallToolResult(result), id)
    }

    fn plain(message: &ServerJsonRpcMessage) -> String {
        serde_json::to_string(message).unwrap() + "\n"
    }

    fn made(message: ServerJsonRpcMessage) -> String {
        String::from_utf8(line(message).unwrap()).unwrap()
    }

    /// Texts with much to escape, at all distances from each other.
    fn texts() -> impl Strategy<Value = String> {
        let pieces = prop_oneof![
            Just("\"text\":\"\"".to_owned()),
            Just("\"structuredContent\":null".to_owned()),
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
            let blocks = vec![ContentBlock::text(text), ContentBlock::text(second)];
            let mut result = CallToolResult::success(blocks);
            result.is_error = Some(failed);
            let message = answer(result, NumberOrString::String(id.into()));
            prop_assert_eq!(plain(&message), made(message));
        }

        #[test]
        fn structured_content_is_the_text(keys in prop::collection::vec(texts(), 0..4), id in texts()) {
            let value = Value::from_iter(keys.iter().map(|key| (key.clone(), Value::from(id.clone()))));
            let text = value.to_string();
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = Some(value);
            let whole = plain(&answer(result.clone(), NumberOrString::String(id.clone().into())));
            result.structured_content = Some(Value::Null);
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
        ];
        let others = [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read"},"result":{}}"#,
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
            let understood = message(text.as_bytes());
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
