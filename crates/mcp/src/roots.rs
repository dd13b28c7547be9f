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
pub(crate) enum RootsState {
    /// The tools to make it with.
    Known(Tools),
    /// The client has to say first which roots it has.
    Ask(Box<InputRequiredResult>),
}

/// Under which the client's roots are asked for and answered.
const ROOTS: &str = "roots";

/// The tools for a call, on what the client's roots leave of the workspace. Without a connection
/// nobody would say that the roots have changed, so they are asked for each time.
pub(crate) async fn standing(
    setting: ClientRoots,
    conversation: &Conversation,
    connected: bool,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<RootsState, ErrorData> {
    if setting == ClientRoots::Ignore {
        return Ok(RootsState::Known(Ok(conversation.whole().clone())));
    }
    let asked_at = conversation.asking_now();
    if let Some(answer) = request.input_responses.as_ref().and_then(|answers| answers.get(ROOTS)) {
        let answer = serde_json::from_value(answer.clone());
        let answer: ListRootsResult = answer.map_err(|error| {
            ErrorData::invalid_params(format!("`inputResponses.{ROOTS}`: {error}"), None)
        })?;
        let tools = left(conversation, &answer);
        let tools = if connected { conversation.settle(tools, asked_at) } else { tools };
        return Ok(RootsState::Known(tools));
    }
    if connected && let Some(tools) = conversation.tools() {
        return Ok(RootsState::Known(tools));
    }
    if !has_roots(context) {
        // Whoever had roots a moment ago and says nothing now has not opened everything.
        return Ok(RootsState::Known(conversation.last_tools()));
    }
    if stands_alone(context) {
        let ask = InputRequest::ListRoots(ListRootsRequest::default());
        let ask = InputRequests::from([(ROOTS.to_owned(), ask)]);
        return Ok(RootsState::Ask(Box::new(InputRequiredResult::from_input_requests(ask))));
    }
    let _asking = conversation.asking.lock().await;
    if let Some(tools) = conversation.tools() {
        return Ok(RootsState::Known(tools));
    }
    let asked_at = conversation.asking_now();
    let tools = match ask(context).await {
        Ok(roots) => left(conversation, &roots),
        Err(problem) => {
            tracing::warn!("the client does not say which roots it has: {problem}");
            conversation.last_tools()
        }
    };
    Ok(RootsState::Known(conversation.settle(tools, asked_at)))
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
fn left(conversation: &Conversation, roots: &ListRootsResult) -> Tools {
    let whole = conversation.whole();
    if roots.roots.is_empty() {
        return Ok(whole.clone());
    }
    // Each that is inside takes a handle. To leave out the rest only makes it narrower.
    let paths = roots.roots.iter().filter_map(|root| path(&root.uri)).take(limits::CLIENT_ROOTS);
    match whole.session().narrowed(paths) {
        Some(session) => Ok(Arc::new(whole.on(session))),
        None => Err(Arc::new(Error::NothingLeft {
            workspace: whole
                .session()
                .workspace()
                .roots()
                .map(|root| root.display().to_string())
                .collect(),
            client: roots.roots.iter().take(NAMED).map(|root| root.uri.clone()).collect(),
        })),
    }
}

/// How many of the client's roots are named where they leave nothing.
const NAMED: usize = 5;

/// The path in a `file:` URI of this machine.
fn path(uri: &str) -> Option<PathBuf> {
    let (scheme, rest) = uri.split_once(':')?;
    let rest = match rest.strip_prefix("//") {
        // With a host, which must be this one.
        Some(rest) => {
            let (host, _) = rest.split_once('/')?;
            let local = host.is_empty() || host.eq_ignore_ascii_case("localhost");
            local.then(|| &rest[host.len()..])?
        }
        None => rest,
    };
    if !scheme.eq_ignore_ascii_case("file") || !rest.starts_with('/') {
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
            ("FILE://LOCALHOST/a", Some("/a")),
            ("file:/a/b", Some("/a/b")),
            ("file:a", None),
            ("file://", None),
            ("file:///a?x#y", Some("/a")),
            ("file://server/a", None),
            ("https://example.org/a", None),
            ("/a/b", None),
        ] {
            assert_eq!(path(uri), expected.map(PathBuf::from), "{uri}");
        }
    }
}
