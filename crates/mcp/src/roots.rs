//! The client's roots, and the part of the workspace that they leave.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use percent_encoding::percent_decode_str;
use pinfold::Error;
use pinfold_dialects::Toolbox;
use rmcp::model::{
    CallToolRequestParams, ClientResult, InputRequest, InputRequests, InputRequiredResult,
    ListRootsRequest, ListRootsResult, Root, ServerRequest,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

use crate::approve::{CallState, ask_client};
use crate::conversation::{Conversation, IdentifiedBy, ToolsOrRefusal};
use crate::server::is_stateless;
use crate::service::ServiceState;
use crate::threads::{answer_after, run_or_leave};
use crate::{ClientRoots, limits};

/// Whether the client's roots are known.
pub(crate) enum RootsState {
    /// They are known; the call uses these tools.
    Known(ToolsOrRefusal),
    /// They are not known; this result asks the client for them.
    Ask(Box<InputRequiredResult>),
}

/// The key of the roots in an InputRequired result.
const ROOTS: &str = "roots";

/// The tools for a call, on the part of the workspace that the client's roots leave. A client that sends stateless
/// requests does not report changes of its roots, so each call asks for them; they stay in the `state` of the call.
pub(crate) async fn resolve_roots(
    shared: &ServiceState,
    conversation: &Conversation,
    identified_by: IdentifiedBy,
    state: &mut CallState,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<RootsState, ErrorData> {
    if shared.options.client_roots == ClientRoots::Ignore {
        return Ok(RootsState::Known(Ok(conversation.whole().clone())));
    }
    let begin = Instant::now();
    let has_own_conversation = identified_by == IdentifiedBy::Connection;
    let changes = conversation.roots_changes();
    if let Some(answer) = request.input_responses.as_ref().and_then(|answers| answers.get(ROOTS)) {
        let answer = serde_json::from_value(answer.clone());
        let answer: ListRootsResult = answer.map_err(|error| {
            ErrorData::invalid_params(format!("`inputResponses.{ROOTS}`: {error}"), None)
        })?;
        let mut roots = answer.roots;
        roots.truncate(limits::MAX_CLIENT_ROOTS);
        state.roots = Some(roots);
    }
    if let Some(roots) = &state.roots {
        let tools = match narrow_in_time(shared, conversation, roots.clone(), begin).await {
            Ok(tools) if has_own_conversation => conversation.set_tools(tools, changes),
            Ok(tools) => tools,
            Err(hangs) => Err(hangs),
        };
        return Ok(RootsState::Known(tools));
    }
    if has_own_conversation && let Some(tools) = conversation.tools() {
        return Ok(RootsState::Known(tools));
    }
    if !has_roots(context) {
        // A client that had roots and now sends none has not opened everything.
        return Ok(RootsState::Known(conversation.last_tools()));
    }
    if is_stateless(context) {
        let input = InputRequest::ListRoots(ListRootsRequest::default());
        let inputs = InputRequests::from([(ROOTS.to_owned(), input)]);
        return Ok(RootsState::Ask(Box::new(InputRequiredResult::from_input_requests(inputs))));
    }
    let seconds = deadline_seconds(conversation);
    let lock = conversation.roots_request.lock();
    // The call with the lock waits for the client first, and then for a thread.
    let limit = answer_after(seconds).saturating_add(limits::ROOTS_WAIT);
    let Ok(_lock) = tokio::time::timeout(limit, lock).await else {
        return Ok(RootsState::Known(Err(Error::Timeout { seconds }.into())));
    };
    if let Some(tools) = conversation.tools() {
        return Ok(RootsState::Known(tools));
    }
    let changes = conversation.roots_changes();
    let request = ServerRequest::ListRootsRequest(ListRootsRequest::default());
    let asked = Instant::now();
    let problem = match ask_client(&context.peer, request, limits::ROOTS_WAIT).await {
        Some(Ok(ClientResult::ListRootsResult(answer))) => {
            // The time that the client takes does not count.
            let begin = begin + asked.elapsed();
            let tools = narrow_in_time(shared, conversation, answer.roots, begin).await;
            let tools = tools.and_then(|tools| conversation.set_tools(tools, changes));
            return Ok(RootsState::Known(tools));
        }
        Some(Ok(_)) => "its answer is of another kind".to_owned(),
        Some(Err(problem)) => problem,
        None => "it took too long".to_owned(),
    };
    tracing::warn!("the client does not say which roots it has: {problem}");
    Ok(RootsState::Known(conversation.set_tools(conversation.last_tools(), changes)))
}

fn has_roots(context: &RequestContext<RoleServer>) -> bool {
    context.client_capabilities().is_some_and(|capabilities| capabilities.roots.is_some())
}

fn deadline_seconds(conversation: &Conversation) -> u64 {
    conversation.whole().session().settings().deadline_seconds
}

/// Calls [`narrowed`] on a thread, since a directory may be on a file system that hangs. Fails at the deadline of a
/// call that began at `begin`; an incomplete result is discarded.
async fn narrow_in_time(
    shared: &ServiceState,
    conversation: &Conversation,
    roots: Vec<Root>,
    begin: Instant,
) -> Result<ToolsOrRefusal, Arc<Error>> {
    let whole = conversation.whole().clone();
    if roots.is_empty() {
        return Ok(Ok(whole));
    }
    let seconds = deadline_seconds(conversation);
    let left = answer_after(seconds).saturating_sub(begin.elapsed());
    let work = run_or_leave(shared, move || narrowed(&whole, &roots));
    match tokio::time::timeout(left, work).await {
        Ok(tools) => Ok(tools?),
        Err(_) => {
            tracing::warn!("the client's roots cannot be looked up; the thread is left behind");
            Err(Error::Timeout { seconds }.into())
        }
    }
}

/// The tools on the part of the workspace that the client's roots leave. An empty list leaves everything.
fn narrowed(whole: &Arc<Toolbox>, roots: &[Root]) -> ToolsOrRefusal {
    if roots.is_empty() {
        return Ok(whole.clone());
    }
    // Each root inside the workspace takes a file descriptor. Ignoring the others only makes the workspace narrower.
    let paths = roots.iter().filter_map(|root| path(&root.uri)).take(limits::MAX_CLIENT_ROOTS);
    match whole.session().narrowed(paths) {
        Some(session) => Ok(Arc::new(whole.on(session))),
        None => Err(Arc::new(Error::NoCommonRoot {
            workspace: whole.session().roots().map(|root| root.display().to_string()).collect(),
            client: roots.iter().take(MAX_NAMED_ROOTS).map(|root| root.uri.clone()).collect(),
        })),
    }
}

/// How many of the client's roots the error names if they leave nothing.
const MAX_NAMED_ROOTS: usize = 5;

/// The path in a `file:` URI, if it is on this machine.
fn path(uri: &str) -> Option<PathBuf> {
    let (scheme, rest) = uri.split_once(':')?;
    let rest = match rest.strip_prefix("//") {
        // The URI has a host, which must be this machine.
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
