//! Asks the user at the client for approval.
//!
//! If the protocol version lets a server send requests, the client gets an elicitation while the call runs. Otherwise
//! the result of the call asks the client, which repeats the call with the answer. An answer counts once, and only
//! for the call that asked. It covers the whole session only if the client has named the session.

mod rounds;
mod time;

use std::sync::Arc;
use std::time::Duration;

use pinfold::{ApprovalAnswer, ApprovalRequest, Approver};
use rmcp::model::{
    CancelledNotificationParam, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult,
    ElicitationAction, InputRequest, InputRequests, InputRequiredResult, RequestId,
    RequestStateCodec, Root, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use rmcp::{ErrorData, Peer, RoleServer};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::limits;
use crate::server::is_stateless;
pub(crate) use rounds::{CallState, RepeatedCallApprover, Round, UsedStates};
pub(crate) use time::ApprovalTime;

/// How a call reaches the user.
#[derive(Debug)]
pub(crate) enum ApprovalRoute {
    /// The client cannot ask.
    None,
    /// By elicitation requests, while the call runs.
    Elicitation(mpsc::UnboundedReceiver<PendingRequest>),
    /// By the result of the call, which the client then repeats with the answer.
    InputRequired(Arc<RepeatedCallApprover>),
}

/// An approval request, and the channel for its answer.
type PendingRequest = (ApprovalRequest, oneshot::Sender<ApprovalAnswer>);

/// The key of the approval in an InputRequired result.
const APPROVE: &str = "approve";

impl ApprovalRoute {
    /// Returns the route to the user, and the approver that the engine calls. `round` has the answers from earlier
    /// rounds of this call.
    pub(crate) fn new(
        round: Round,
        session_grants: bool,
        context: &RequestContext<RoleServer>,
    ) -> (Self, Option<Arc<dyn Approver>>) {
        let can_ask = context.client_capabilities().is_some_and(|can| can.elicitation.is_some());
        if !can_ask {
            return (Self::None, None);
        }
        if !is_stateless(context) {
            let (sender, receiver) = mpsc::unbounded_channel();
            return (Self::Elicitation(receiver), Some(Arc::new(ElicitationApprover(sender))));
        }
        let answers = Arc::new(RepeatedCallApprover::new(round, session_grants));
        (Self::InputRequired(answers.clone()), Some(answers))
    }

    /// The user's answers from earlier rounds of the call, on the route where the client repeats calls.
    pub(crate) fn earlier_answers(&self) -> Option<Arc<RepeatedCallApprover>> {
        match self {
            Self::InputRequired(answers) => Some(answers.clone()),
            Self::None | Self::Elicitation(_) => None,
        }
    }

    /// Sends the engine's requests to the client, one after the other. Never returns.
    pub(crate) async fn forward(&mut self, context: &RequestContext<RoleServer>) {
        if let Self::Elicitation(requests) = self {
            while let Some((request, answer)) = requests.recv().await {
                // The call may have ended meanwhile.
                _ = answer.send(elicit(&request, context).await);
            }
        }
        std::future::pending().await
    }

    /// Answers every later request with [`ApprovalAnswer::Unavailable`].
    pub(crate) fn close(&mut self) {
        if let Self::Elicitation(_) = self {
            *self = Self::None;
        }
    }

    /// The result that asks the client, if the call ended with an approval request.
    pub(crate) fn input_required(
        &self,
        codec: Option<&RequestStateCodec>,
        binding: &[u8],
        roots: Option<Vec<Root>>,
    ) -> Result<Option<InputRequiredResult>, ErrorData> {
        let (Self::InputRequired(answers), Some(codec)) = (self, codec) else { return Ok(None) };
        let Some((request, state)) = answers.next_round(roots) else { return Ok(None) };
        let form = form(&request, answers.session_grants)?;
        let input = InputRequest::Elicitation(ElicitRequest::new(form));
        let inputs = InputRequests::from([(APPROVE.to_owned(), input)]);
        Ok(Some(InputRequiredResult::new(Some(inputs), Some(state.seal(codec, binding)?))))
    }
}

/// Sends requests to the task of the call, which sends them to the client as elicitations.
#[derive(Debug)]
struct ElicitationApprover(mpsc::UnboundedSender<PendingRequest>);

impl Approver for ElicitationApprover {
    fn ask(&self, request: &ApprovalRequest) -> ApprovalAnswer {
        let (sender, receiver) = oneshot::channel();
        match self.0.send((request.clone(), sender)) {
            Ok(()) => receiver.blocking_recv().unwrap_or(ApprovalAnswer::Unavailable),
            Err(_) => ApprovalAnswer::Unavailable,
        }
    }
}

async fn elicit(request: &ApprovalRequest, context: &RequestContext<RoleServer>) -> ApprovalAnswer {
    let Ok(form) = form(request, true) else { return ApprovalAnswer::Unavailable };
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
    match ask_client(&context.peer, request, limits::APPROVAL_WAIT).await {
        Some(Ok(ClientResult::ElicitResult(answer))) => approval_answer(answer),
        Some(Ok(_)) => ApprovalAnswer::Unavailable,
        Some(Err(problem)) => {
            tracing::warn!("the client does not ask: {problem}");
            ApprovalAnswer::Unavailable
        }
        None => ApprovalAnswer::expired(limits::APPROVAL_WAIT),
    }
}

/// Sends a request to the client and waits for the answer. Returns `None` if the client does not answer in time. If
/// the future is dropped because the call has ended, the client is notified that the request is cancelled.
pub(crate) async fn ask_client(
    peer: &Peer<RoleServer>,
    request: ServerRequest,
    wait: Duration,
) -> Option<Result<ClientResult, String>> {
    let sent = peer.send_cancellable_request(request, PeerRequestOptions::no_options());
    let handle = match tokio::time::timeout(wait, sent).await.ok()? {
        Ok(handle) => handle,
        Err(error) => return Some(Err(error.to_string())),
    };
    let mut unanswered = CancelOnDrop { peer: peer.clone(), id: Some(handle.id.clone()) };
    let answer = tokio::time::timeout(wait, handle.await_response()).await.ok()?;
    unanswered.id = None;
    Some(answer.map_err(|error| error.to_string()))
}

struct CancelOnDrop {
    peer: Peer<RoleServer>,
    id: Option<RequestId>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let (peer, Some(id)) = (self.peer.clone(), self.id.take()) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let reason = Some("the call has ended".to_owned());
        let cancelled = CancelledNotificationParam::new(Some(id), reason);
        runtime.spawn(async move {
            _ = tokio::time::timeout(limits::UNREAD_WAIT, peer.notify_cancelled(cancelled)).await;
        });
    }
}

const ONCE: &str = "allow once";
const SESSION: &str = "allow for this session";
const DENY: &str = "deny";

/// The form that the user fills in.
fn form(request: &ApprovalRequest, session_grants: bool) -> Result<ElicitRequestParams, ErrorData> {
    let mut message = request.headline();
    let preview = request.preview(limits::DIFF_CHARS);
    if !preview.is_empty() {
        message.push_str(&format!("\n\n{preview}"));
    }
    let answers: &[&str] = if session_grants { &[ONCE, SESSION, DENY] } else { &[ONCE, DENY] };
    let schema = json!({
        "type": "object",
        "properties": {
            "answer": {
                "type": "string",
                "title": "Answer",
                "enum": answers,
                "default": DENY,
            },
            "reason": {
                "type": "string",
                "title": "Reason",
                "description": "Message for the agent if you deny it",
            },
        },
        "required": ["answer"],
    });
    let form = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    serde_json::from_value(form).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// The user's answer. Anything but a clear approval is a denial.
fn approval_answer(answer: ElicitResult) -> ApprovalAnswer {
    let content = answer.content.unwrap_or_default();
    let reason = content.get("reason").and_then(Value::as_str).map(str::trim);
    let reason = reason.filter(|reason| !reason.is_empty()).map(str::to_owned);
    match (answer.action, content.get("answer").and_then(Value::as_str)) {
        (ElicitationAction::Accept, Some(ONCE)) => ApprovalAnswer::Once,
        (ElicitationAction::Accept, Some(SESSION)) => ApprovalAnswer::Session,
        _ => ApprovalAnswer::Denied(reason),
    }
}
