//! What is wrong with something that is no message.

use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde_json::Value;

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
