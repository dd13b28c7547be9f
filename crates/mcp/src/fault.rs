//! What is wrong with something that is no message.

use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde_json::Value;

use crate::limits;

/// Whether a text has more values in it than a message can have: few bytes, but many values, take much
/// memory. Only a long text is looked at.
pub(crate) fn too_many_values(text: &[u8]) -> bool {
    if text.len() <= limits::MESSAGE_VALUES {
        return false;
    }
    let mut values = 0;
    let mut rest = text;
    // Outside of strings, there is one before each comma and one in each bracket.
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b',' | b'[' | b'{')) {
        let byte = rest[at];
        rest = &rest[at + 1..];
        if byte != b'"' {
            values += 1;
            if values > limits::MESSAGE_VALUES {
                return true;
            }
            continue;
        }
        loop {
            match memchr::memchr2(b'"', b'\\', rest) {
                Some(at) if rest[at] == b'\\' => rest = rest.get(at + 2..).unwrap_or_default(),
                Some(at) => {
                    rest = &rest[at + 1..];
                    break;
                }
                None => return false,
            }
        }
    }
    false
}

/// What to answer to a text with too many values.
pub(crate) fn too_many() -> Fault {
    let most = limits::MESSAGE_VALUES;
    let problem = format!("a message can have {most} values; this one has more");
    Box::new((ErrorData::invalid_request(problem, None), None))
}

/// What is wrong with a text, and the request that it was meant to be, if that can be told.
pub(crate) type Fault = Box<(ErrorData, Option<RequestId>)>;

/// What to answer to a text that is no message, for the reason that was found. Nothing, if it is a
/// notification.
pub(crate) fn fault(text: &[u8], problem: &serde_json::Error) -> Option<Fault> {
    let value = match serde_json::from_slice(text) {
        Ok(value) => value,
        Err(problem) => {
            let problem = format!("this is not JSON: {problem}");
            return Some(Box::new((ErrorData::new(ErrorCode::PARSE_ERROR, problem, None), None)));
        }
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
    let problem = format!("this is no message of the protocol: {problem}");
    Some(Box::new((ErrorData::invalid_request(problem, None), id.flatten())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_strings() {
        let many = limits::MESSAGE_VALUES + 1;
        for (text, expected) in [
            (format!("[{}]", "0,".repeat(many)), true),
            (format!("[{}]", "[],".repeat(many / 2)), true),
            (format!("[{}]", "{},".repeat(many / 4)), false),
            (format!("[\"{}\"]", ",[{\\\"".repeat(many)), false),
            (format!("[\"{}", ",".repeat(many)), false),
            (format!("[\"\\{}", ",".repeat(many)), false),
            (format!("\"\\\\\"{}", ",".repeat(many)), true),
        ] {
            assert_eq!(too_many_values(text.as_bytes()), expected, "{}", &text[..20]);
        }
    }
}
