//! The directories that a client has open, and what they leave of the workspace.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use pinfold::Error;
use rmcp::model::{
    CallToolRequestParams, InputRequest, InputRequests, InputRequiredResult, ListRootsRequest,
    ListRootsResult,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

use crate::conversation::{Conversation, Tools};
use crate::server::stands_alone;
use crate::{ClientRoots, limits};

/// What is known about the ground that a call is to be made on.
pub(crate) enum Standing {
    /// The tools to make it with.
    Known(Tools),
    /// The client has to say first which roots it has.
    Ask(Box<InputRequiredResult>),
}

/// Under which the client's roots are asked for and answered.
const ROOTS: &str = "roots";

/// The tools for a call, on what the client's roots leave of the workspace.
pub(crate) async fn standing(
    setting: ClientRoots,
    conversation: &Conversation,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<Standing, ErrorData> {
    let whole = || Ok(Standing::Known(Ok(conversation.whole().clone())));
    if setting == ClientRoots::Ignore {
        return whole();
    }
    if let Some(answer) = request.input_responses.as_ref().and_then(|answers| answers.get(ROOTS)) {
        let answer = serde_json::from_value(answer.clone());
        let answer: ListRootsResult = answer.map_err(|error| {
            ErrorData::invalid_params(format!("`inputResponses.roots`: {error}"), None)
        })?;
        return Ok(Standing::Known(settle(conversation, &answer)));
    }
    if let Some(tools) = conversation.tools() {
        return Ok(Standing::Known(tools));
    }
    if !has_roots(context) {
        return whole();
    }
    if stands_alone(context) {
        let ask = InputRequest::ListRoots(ListRootsRequest::default());
        let ask = InputRequests::from([(ROOTS.to_owned(), ask)]);
        return Ok(Standing::Ask(Box::new(InputRequiredResult::from_input_requests(ask))));
    }
    let _asking = conversation.asking.lock().await;
    if let Some(tools) = conversation.tools() {
        return Ok(Standing::Known(tools));
    }
    Ok(Standing::Known(match ask(context).await {
        Ok(roots) => settle(conversation, &roots),
        Err(problem) => {
            tracing::warn!("the client does not say which roots it has: {problem}");
            conversation.settle(Ok(conversation.whole().clone()))
        }
    }))
}

async fn ask(context: &RequestContext<RoleServer>) -> Result<ListRootsResult, String> {
    match tokio::time::timeout(limits::ROOTS_WAIT, context.peer.list_roots()).await {
        Ok(Ok(roots)) => Ok(roots),
        Ok(Err(problem)) => Err(problem.to_string()),
        Err(_) => Err("it took too long".into()),
    }
}

fn has_roots(context: &RequestContext<RoleServer>) -> bool {
    context.client_capabilities().is_some_and(|capabilities| capabilities.roots.is_some())
}

/// What the client's roots leave of the workspace. No roots are no statement.
fn settle(conversation: &Conversation, roots: &ListRootsResult) -> Tools {
    let whole = conversation.whole();
    if roots.roots.is_empty() {
        return conversation.settle(Ok(whole.clone()));
    }
    let paths = roots.roots.iter().filter_map(|root| path(&root.uri));
    conversation.settle(match whole.session().narrowed(paths) {
        Some(session) => Ok(Arc::new(whole.on(session))),
        None => Err(Arc::new(Error::NothingLeft {
            workspace: whole
                .session()
                .workspace()
                .roots()
                .map(|root| root.display().to_string())
                .collect(),
            client: roots.roots.iter().map(|root| root.uri.clone()).collect(),
        })),
    })
}

/// The path in a `file:` URI of this machine.
fn path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    if !rest.starts_with('/') {
        return None;
    }
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let bytes: Vec<u8> = percent_decode_str(&rest[..end]).collect();
    Some(OsString::from_vec(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_a_file_uri_of_this_machine() {
        for (uri, expected) in [
            ("file:///a/b", Some("/a/b")),
            ("file:///a%20b/%C3%A9", Some("/a b/é")),
            ("file://localhost/a", Some("/a")),
            ("file:///a?x#y", Some("/a")),
            ("file://server/a", None),
            ("https://example.org/a", None),
            ("/a/b", None),
        ] {
            assert_eq!(path(uri), expected.map(PathBuf::from), "{uri}");
        }
    }
}
