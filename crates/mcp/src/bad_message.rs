//! Answers input that is not a message of the protocol.
//!
//! If the id of a request can be read, the answer has that id, so that the client does not wait for it.

use std::borrow::Cow;

use pinfold::exceeds_json_values;
use rmcp::model::{CallToolRequestMethod, ClientJsonRpcMessage, ErrorCode, ErrorData, RequestId};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::limits;

/// Whether a text has more JSON values than a message may have.
pub(crate) fn too_many_values(text: &[u8]) -> bool {
    exceeds_json_values(text, limits::MAX_MESSAGE_VALUES)
}

/// The problem with a message that has too many values.
pub(crate) fn too_many_problem() -> String {
    let max = limits::MAX_MESSAGE_VALUES;
    format!("a message can have at most {max} values; make several calls")
}

/// The answer to a text with too many values. Returns `None` for a notification.
pub(crate) fn too_many(text: &[u8]) -> Option<BadMessage> {
    let problem = too_many_problem();
    let id = match Envelope::parse(text) {
        Some(Envelope { id: None, method: Some(_), .. }) => {
            tracing::debug!("a notification is dropped: {problem}");
            return None;
        }
        envelope => envelope.and_then(|envelope| envelope.id),
    };
    Some(Box::new((ErrorData::invalid_request(problem, None), id)))
}

/// The error, and the id of the request if it can be read.
pub(crate) type BadMessage = Box<(ErrorData, Option<RequestId>)>;

/// The parts of a message that its answer depends on. The rest only has to be JSON in form: half a surrogate
/// pair, invalid UTF-8, a control character, or a number that no float can hold or that Python writes as `NaN` may be
/// in it.
#[derive(Deserialize)]
struct Envelope {
    id: Option<RequestId>,
    method: Option<IgnoredAny>,
    result: Option<IgnoredAny>,
}

impl Envelope {
    fn parse(text: &[u8]) -> Option<Self> {
        serde_json::from_str(&readable(text)?).ok()
    }
}

/// A text that is JSON in form, as UTF-8 and with numbers.
fn readable(text: &[u8]) -> Option<Cow<'_, str>> {
    let text = String::from_utf8_lossy(text);
    let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    if is_json(&text) {
        return Some(text);
    }
    // Some hand-written encoders do not escape control characters in strings.
    let text: Cow<'_, str> = text.replace(|letter: char| letter < ' ', " ").into();
    if is_json(&text) {
        return Some(text);
    }
    let has_names = text.contains("NaN") || text.contains("Infinity");
    has_names.then(|| with_numbers(&text)).filter(|text| is_json(text)).map(Cow::Owned)
}

/// A text with a number for each `NaN` and `Infinity` that is not in a string.
fn with_numbers(text: &str) -> String {
    let (mut out, mut in_string, mut rest) = (String::with_capacity(text.len()), false, text);
    while let Some(letter) = rest.chars().next() {
        let name = ["NaN", "Infinity"].into_iter().find(|name| rest.starts_with(name));
        let end = match (in_string, letter, name) {
            (false, _, Some(name)) => name.len(),
            // An escape in a string, such as that of a quote.
            (true, '\\', _) => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            _ => letter.len_utf8(),
        };
        let is_name = !in_string && name.is_some();
        in_string ^= letter == '"';
        out.push_str(if is_name { "0" } else { &rest[..end] });
        rest = &rest[end..];
    }
    out
}

/// The client's answer to a request of the server, if the text is one that has a value which cannot be represented: an
/// error, so that nobody waits for it.
pub(crate) fn unreadable_answer(
    text: &[u8],
    problem: &serde_json::Error,
) -> Option<ClientJsonRpcMessage> {
    match Envelope::parse(text)? {
        Envelope { id: Some(id), method: None, result: Some(_) } => {
            let error = ErrorData::parse_error(format!("it cannot be read: {problem}"), None);
            Some(ClientJsonRpcMessage::error(error, Some(id)))
        }
        _ => None,
    }
}

/// The key of the problem in the parameters of an [`unreadable_call`].
pub(crate) const UNREADABLE: &str = "pinfold/unreadable";

/// A call of the same tool, if the text is a call with a value that cannot be represented. Its arguments do not parse either,
/// so that the server refuses it with the problem, and the audit log has it.
pub(crate) fn unreadable_call(text: &[u8]) -> Option<Value> {
    #[derive(Deserialize)]
    struct Call {
        id: RequestId,
        #[serde(rename = "method")]
        _method: CallToolRequestMethod,
        params: Params,
    }
    #[derive(Deserialize)]
    struct Params {
        name: String,
        #[serde(rename = "_meta")]
        meta: Option<Value>,
    }
    let problem = serde_json::from_slice::<Value>(text).err()?;
    let call: Call = serde_json::from_str(&readable(text)?).ok()?;
    let (error, _) = *unreadable_value(text, &problem)?;
    let Params { name, meta } = call.params;
    let mut params = json!({"name": name, "arguments": false, UNREADABLE: error});
    if let Some(meta) = meta {
        params["_meta"] = meta;
    }
    Some(json!({"jsonrpc": "2.0", "id": call.id, "method": "tools/call", "params": params}))
}

/// The answer to a text that is not a message, made from the parser's error. Returns `None` for a notification.
pub(crate) fn bad_message(text: &[u8], problem: &serde_json::Error) -> Option<BadMessage> {
    let value = match serde_json::from_slice(text) {
        Ok(value) => value,
        Err(problem) => return unreadable_value(text, &problem),
    };
    let Value::Object(message) = value else {
        let problem = "a message must be an object; batches are not supported";
        return Some(Box::new((ErrorData::invalid_request(problem, None), None)));
    };
    let id = message.get("id").map(|id| serde_json::from_value(id.clone()).ok());
    if id.is_none() && message.get("method").is_some_and(Value::is_string) {
        tracing::debug!("a notification is not understood: {problem}");
        return None;
    }
    let problem = format!("this is not a message of the protocol: {problem}");
    Some(Box::new((ErrorData::invalid_request(problem, None), id.flatten())))
}

/// The answer to a text that does not parse. It may still be a request in which only one value cannot be represented.
fn unreadable_value(text: &[u8], problem: &serde_json::Error) -> Option<BadMessage> {
    let Some(Envelope { id, method: Some(_), .. }) = Envelope::parse(text) else {
        let problem = format!("this is not JSON: {problem}");
        return Some(Box::new((ErrorData::new(ErrorCode::PARSE_ERROR, problem, None), None)));
    };
    let Some(id) = id else {
        tracing::debug!("a notification does not parse: {problem}");
        return None;
    };
    let problem = format!(
        "invalid_argument: a value of the request cannot be represented: {problem}; send text as UTF-8, \
         characters beyond U+FFFF as themselves or as a whole pair of surrogates, and numbers that a 64-bit \
         float can hold"
    );
    let data = json!({ "error": "invalid_argument" });
    Some(Box::new((ErrorData::invalid_params(problem, Some(data)), Some(id))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(text: impl AsRef<[u8]>) -> Option<(i32, Option<RequestId>)> {
        let problem = serde_json::from_slice::<Value>(text.as_ref()).unwrap_err();
        let (error, id) = *bad_message(text.as_ref(), &problem)?;
        Some((error.code.0, id))
    }

    #[test]
    fn a_request_with_invalid_utf_8_is_answered_by_its_id() {
        for value in [&b"\"\xff\""[..], b"{\"\xc3\": 1}", b"[\"a\xe2\x82\"]"] {
            let rest = [br#"{"method":"tools/call","params":"#, value].concat();
            let request = [&rest, &br#","id":7}"#[..]].concat();
            assert_eq!(answered(request), Some((-32602, Some(RequestId::Number(7)))), "{value:?}");
            assert_eq!(answered([&rest, &b"}"[..]].concat()), None, "{value:?}");
            assert_eq!(answered(&rest), Some((-32700, None)), "{value:?}");
        }
    }

    #[test]
    fn a_request_with_too_many_values_is_answered_by_its_id() {
        let many = "0,".repeat(limits::MAX_MESSAGE_VALUES + 1);
        let id = |text: String| {
            assert!(too_many_values(text.as_bytes()));
            too_many(text.as_bytes()).map(|bad_message| bad_message.1)
        };
        let params = format!(r#""method":"tools/call","params":[{many}0]"#);
        assert_eq!(id(format!(r#"{{{params},"id":7}}"#)), Some(Some(RequestId::Number(7))));
        assert_eq!(id(format!("{{{params}}}")), None);
        assert_eq!(id(format!("[{many}0]")), Some(None));
        assert_eq!(id(format!("[{many}")), Some(None));
    }

    #[test]
    fn a_request_with_a_value_that_cannot_be_represented_is_answered_by_its_id() {
        for value in [
            r#""\ud83d""#,
            r#""\ude00 x""#,
            "1e999",
            r#"{"\ud83d": 1}"#,
            "[-1e400]",
            r#"["\"NaN", NaN, -Infinity]"#,
            "\"a\u{0}b\tc\"",
        ] {
            let text = format!(r#"{{"params":{{"a":{value}}},"method":"tools/call","id":"x"}}"#);
            let id = Some(RequestId::String("x".into()));
            assert_eq!(answered(&text), Some((-32602, id)), "{text}");
            let text = format!(r#"{{"params":{{"a":{value}}},"method":"tools/call"}}"#);
            assert_eq!(answered(&text), None, "{text}");
        }
        for text in [r#"{"id":1,"method":"x","params":{"#, r#"{"id":1,"a":"\ud83d"}"#, "nonsense"] {
            assert_eq!(answered(text), Some((-32700, None)), "{text}");
        }
    }
}
