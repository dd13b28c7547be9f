//! Parses lines as messages.
//!
//! `serde_json` takes long for texts with many escaped line breaks, so the long strings of a call are parsed apart.
//! Whatever is unusual is parsed by `rmcp`.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::LazyLock;

use memchr::{memchr, memmem};
use pinfold::unescape_json;
use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest,
    JsonRpcMessage, JsonRpcVersion2_0, Request, RequestId,
};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

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
    let call = long_call(text).map_or_else(|| serde_json::from_slice(text), Ok);
    let Ok(Call { id, mut params, .. }) = call else {
        return serde_json::from_slice(text);
    };
    let meta = params.meta.take();
    let mut request = Request::new(params);
    if let Some(meta) = meta {
        request.extensions.insert(meta);
    }
    Ok(JsonRpcMessage::request(ClientRequest::CallToolRequest(request), id))
}

/// The size of a long string, and of a message that may have one.
const LONG: usize = if cfg!(test) { 16 } else { 16 * 1024 };

/// The beginning of the text that stands for a long string while the rest of a message is parsed. It is random, so
/// that no message has it.
static STAND_IN: LazyLock<String> =
    LazyLock::new(|| format!("{:016x}-", RandomState::new().build_hasher().finish()));

/// Parses a call with long strings among its arguments. Returns `None` if there is none, or if something is not as
/// expected.
fn long_call(text: &[u8]) -> Option<Call> {
    if text.len() < LONG {
        return None;
    }
    let (mut short, mut copied, mut strings) = (Vec::new(), 0, Vec::new());
    // Most calls have one long string.
    let (mut at, mut string) = (0, Vec::with_capacity(text.len()));
    while let Some(quote) = memchr(b'"', &text[at..]) {
        let start = at + quote;
        at = unescape_json(text, start, &mut string)?;
        if at - start > LONG {
            short.extend_from_slice(&text[copied..start]);
            short.extend_from_slice(format!("\"{}{}\"", *STAND_IN, strings.len()).as_bytes());
            strings.push(Some(String::from_utf8(std::mem::take(&mut string)).ok()?));
            copied = at;
        }
        string.clear();
    }
    if strings.is_empty() {
        return None;
    }
    short.extend_from_slice(&text[copied..]);
    let mut call: Call = serde_json::from_slice(&short).ok()?;
    call.params.arguments.as_mut()?.values_mut().for_each(|value| put_back(value, &mut strings));
    // A long string that was not put back is outside the arguments, so `rmcp` parses the message.
    strings.iter().all(Option::is_none).then_some(call)
}

/// Puts the long strings in their places.
fn put_back(value: &mut Value, strings: &mut [Option<String>]) {
    match value {
        Value::String(text) => {
            let number = text
                .strip_prefix(STAND_IN.as_str())
                .and_then(|number| number.parse::<usize>().ok());
            let string = number.and_then(|number| strings.get_mut(number)?.take());
            if let Some(string) = string {
                *text = string;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| put_back(value, strings)),
        Value::Object(members) => {
            members.values_mut().for_each(|value| put_back(value, strings));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #[test]
        fn a_call_is_parsed_as_serde_json_parses_it(
            texts in prop::collection::vec("[a-z \"\\\\\\n\\t\\x00-\\x7f\\PC]{0,30}", 0..4),
            key in "[a-z\"\\\\]{0,20}",
            json in "(\\\\[nu\"dD8-9cC0-3]{1,5}|[a-z\u{e9}\n]|\"){0,20}",
        ) {
            let arguments = json!({ "text": texts, &key: { "in": texts, "key": [1, null] } });
            let call = |arguments: &str| format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"Write","arguments":{arguments}}}}}"#
            );
            let raw = format!(r#"{{"raw text":"{json}"}}"#);
            for text in [arguments.to_string(), format!("{arguments:#}"), raw].map(|it| call(&it)) {
                let parsed = |call: Result<Call, _>| call.map(|it| it.params.arguments);
                let plain = parsed(serde_json::from_str(&text)).ok();
                prop_assert!(long_call(text.as_bytes()).is_none_or(|it| Some(it.params.arguments) == plain));
            }
        }
    }

    #[test]
    fn long_strings_are_parsed_apart() {
        let call = |text: &str| {
            let arguments =
                json!({ "path": "a", "edits": [{ "old": text, "new": "x\n\u{1f600}\"" }] });
            let call = json!({
                "jsonrpc": "2.0", "id": 7, "method": "tools/call",
                "params": { "name": "Edit", "arguments": arguments.clone() },
            });
            let parsed = long_call(call.to_string().as_bytes());
            parsed.map(|it| Value::Object(it.params.arguments.unwrap_or_default()) == arguments)
        };
        assert_eq!(call("some text, \"quoted\"\n"), Some(true));
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
