//! Asking the user at the client for approval: by an elicitation request while the call runs, where the protocol
//! lets a server send requests, or else by a result that the client answers by repeating the call.
//!
//! An answer counts once, and only for the call that it was asked for. It covers a whole session only where the
//! client has named the session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pinfold::{ApprovalAnswer, ApprovalRequest, Approver};
use rmcp::model::{
    CallToolRequestParams, CancelledNotificationParam, ClientResult, ElicitRequest,
    ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequests,
    InputRequiredResult, RequestId, RequestStateCodec, Root, SealOptions, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use rmcp::{ErrorData, Peer, RoleServer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::limits;
use crate::server::is_stateless;

/// How the user behind a request is asked.
#[derive(Debug)]
pub(crate) enum ApprovalRoute {
    /// The client cannot ask.
    None,
    /// By elicitation requests, while the call runs.
    Elicitation(mpsc::UnboundedReceiver<PendingRequest>),
    /// By the result of the call, which the client then repeats with the answer.
    InputRequired(Arc<EarlierAnswers>),
}

/// An approval request, and where its answer goes.
type PendingRequest = (ApprovalRequest, oneshot::Sender<ApprovalAnswer>);

/// The key of the approval among the inputs that a result asks for.
const APPROVE: &str = "approve";

impl ApprovalRoute {
    /// The route to the user, and the approver that the engine calls. `state` is what the client brings from
    /// earlier rounds of this call.
    pub(crate) fn new(
        state: &CallState,
        used: &UsedStates,
        session_grants: bool,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<(Self, Option<Arc<dyn Approver>>), ErrorData> {
        let can_ask = context.client_capabilities().is_some_and(|can| can.elicitation.is_some());
        if !can_ask {
            return Ok((Self::None, None));
        }
        if !is_stateless(context) {
            let (sender, receiver) = mpsc::unbounded_channel();
            return Ok((Self::Elicitation(receiver), Some(Arc::new(Channel(sender)))));
        }
        let answers = EarlierAnswers::new(state, used, session_grants, request)?;
        let answers = Arc::new(answers);
        Ok((Self::InputRequired(answers.clone()), Some(answers)))
    }

    /// The user's answers in earlier rounds of the call, where the client repeats calls.
    pub(crate) fn earlier_answers(&self) -> Option<Arc<EarlierAnswers>> {
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
        let mut answers = answers.lock();
        let Some(request) = answers.asked.take() else { return Ok(None) };
        let asked = Asked::about(&request);
        let state = CallState { roots, approved: answers.approved.clone(), asked };
        let form = form(&request, answers.session_grants)?;
        let input = InputRequest::Elicitation(ElicitRequest::new(form));
        let inputs = InputRequests::from([(APPROVE.to_owned(), input)]);
        Ok(Some(InputRequiredResult::new(Some(inputs), Some(state.seal(codec, binding)?))))
    }
}

/// What the client carries from one round of a call to the next. It is signed, and bound to one call.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct CallState {
    /// The client's roots, if it was asked for them: it does not send them again.
    pub(crate) roots: Option<Vec<Root>>,
    /// The requests that were approved, and whether for the session.
    approved: Vec<(Asked, bool)>,
    /// The request that the next answer is for.
    asked: Asked,
}

/// What identifies a request.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
struct Asked {
    /// Another content is another request.
    digest: String,
    /// Of the access and the path, whatever the content.
    subject: String,
}

impl Asked {
    fn about(request: &ApprovalRequest) -> Self {
        let subject = format!("{} {}", request.access.name(), request.path.display());
        let subject = blake3::hash(subject.as_bytes()).to_hex().to_string();
        Self { digest: request.request_hash.clone(), subject }
    }
}

impl CallState {
    /// What a state is bound to: a call with these arguments, in this session.
    pub(crate) fn binding(session: &str, request: &CallToolRequestParams) -> Vec<u8> {
        let call = json!([session, request.name, request.arguments]).to_string();
        blake3::hash(call.as_bytes()).as_bytes().to_vec()
    }

    /// The state that came with a call; the default if it has none.
    pub(crate) fn open(
        codec: Option<&RequestStateCodec>,
        binding: &[u8],
        request: &CallToolRequestParams,
    ) -> Result<Self, ErrorData> {
        let (Some(codec), Some(state)) = (codec, &request.request_state) else {
            return Ok(Self::default());
        };
        codec.open_json_with(state, binding).map_err(|_| {
            let problem = "`requestState` is not what this server gave for this call, or too old";
            ErrorData::invalid_params(problem, None)
        })
    }

    fn seal(&self, codec: &RequestStateCodec, binding: &[u8]) -> Result<String, ErrorData> {
        let options = SealOptions::new().associated_data(binding).ttl(limits::APPROVAL_WAIT);
        let state = codec.seal_json_with(self, &options);
        state.map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}

/// The states that came with an answer, for as long as they are valid: each is good for one answer.
#[derive(Debug, Default)]
pub(crate) struct UsedStates(Mutex<HashMap<blake3::Hash, Instant>>);

impl UsedStates {
    /// Whether this is the first use of a state.
    fn is_first_use(&self, state: &str) -> bool {
        let now = Instant::now();
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|_, when| now.duration_since(*when) < 2 * limits::APPROVAL_WAIT);
        used.insert(blake3::hash(state.as_bytes()), now).is_none()
    }
}

/// Hands requests to the task of the call, which can talk to the client.
#[derive(Debug)]
struct Channel(mpsc::UnboundedSender<PendingRequest>);

impl Approver for Channel {
    fn ask(&self, request: &ApprovalRequest) -> ApprovalAnswer {
        let (sender, receiver) = oneshot::channel();
        match self.0.send((request.clone(), sender)) {
            Ok(()) => receiver.blocking_recv().unwrap_or(ApprovalAnswer::Unavailable),
            Err(_) => ApprovalAnswer::Unavailable,
        }
    }
}

/// How long a call has spent in approval requests. That time does not count against its deadline.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApprovalTime {
    /// The time of finished requests, and when the pending one began.
    spent: Arc<Mutex<(Duration, Option<Instant>)>>,
    /// Notified when a request begins.
    pub(crate) begun: Arc<Notify>,
}

impl ApprovalTime {
    /// The same approver, with the time that it takes counted here.
    pub(crate) fn of(&self, approver: Arc<dyn Approver>) -> Arc<dyn Approver> {
        Arc::new(TimedApprover { approver, time: self.clone() })
    }

    /// How much of `limit` is left of the working time since `begin`. `None` while a request is pending.
    fn left(&self, begin: Instant, limit: Duration) -> Option<Duration> {
        let (spent, pending) = *self.lock();
        let worked = begin.elapsed().saturating_sub(spent);
        pending.is_none().then(|| limit.saturating_sub(worked))
    }

    /// Returns when a call that began at `begin` has worked for `limit`.
    pub(crate) async fn is_up(&self, begin: Instant, limit: Duration) {
        loop {
            match self.left(begin, limit) {
                Some(Duration::ZERO) => return,
                Some(left) => tokio::time::sleep(left).await,
                None => tokio::time::sleep(limits::APPROVAL_POLL).await,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, (Duration, Option<Instant>)> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct TimedApprover {
    approver: Arc<dyn Approver>,
    time: ApprovalTime,
}

impl Approver for TimedApprover {
    fn ask(&self, request: &ApprovalRequest) -> ApprovalAnswer {
        let begin = Instant::now();
        self.time.lock().1 = Some(begin);
        self.time.begun.notify_one();
        let answer = self.approver.ask(request);
        let mut spent = self.time.lock();
        *spent = (spent.0 + begin.elapsed(), None);
        answer
    }
}

/// The user's answers in earlier rounds of a call.
#[derive(Debug)]
pub(crate) struct EarlierAnswers(Mutex<Answers>);

#[derive(Debug, Default)]
struct Answers {
    /// Whether an approval can be for the session.
    session_grants: bool,
    approved: Vec<(Asked, bool)>,
    /// The request that was denied in this round, and the user's reason.
    denied: Option<(Asked, Option<String>)>,
    /// The request that the client has to ask about next.
    asked: Option<ApprovalRequest>,
}

impl EarlierAnswers {
    fn new(
        state: &CallState,
        used: &UsedStates,
        session_grants: bool,
        request: &CallToolRequestParams,
    ) -> Result<Self, ErrorData> {
        let mut answers = Answers { session_grants, ..Answers::default() };
        let answer = request.input_responses.as_ref().and_then(|all| all.get(APPROVE));
        // An answer without a state, or with one that was used before, answers nothing.
        let unused = match (&request.request_state, answer) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(state), Some(_)) => used.is_first_use(state),
        };
        if unused {
            answers.approved = state.approved.clone();
            if let Some(answer) = answer {
                let answer = serde_json::from_value(answer.clone()).map_err(|error| {
                    ErrorData::invalid_params(format!("`inputResponses.{APPROVE}`: {error}"), None)
                })?;
                let asked = state.asked.clone();
                match approval_answer(answer) {
                    ApprovalAnswer::Once => answers.approved.push((asked, false)),
                    ApprovalAnswer::Session => answers.approved.push((asked, session_grants)),
                    ApprovalAnswer::Denied(words) => answers.denied = Some((asked, words)),
                    ApprovalAnswer::Unavailable | ApprovalAnswer::Deferred => {}
                }
            }
        }
        Ok(Self(Mutex::new(answers)))
    }

    /// The user's answer to a request, if an earlier round of the call asked for it.
    pub(crate) fn find(&self, request: &ApprovalRequest) -> Option<ApprovalAnswer> {
        let asked = Asked::about(request);
        let answers = self.lock();
        if let Some((_, session)) = answers.approved.iter().find(|(known, _)| *known == asked) {
            return Some(if *session { ApprovalAnswer::Session } else { ApprovalAnswer::Once });
        }
        let denied = answers.denied.as_ref().filter(|(known, _)| *known == asked);
        denied.map(|(_, words)| ApprovalAnswer::Denied(words.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Approver for EarlierAnswers {
    fn ask(&self, request: &ApprovalRequest) -> ApprovalAnswer {
        self.find(request).unwrap_or_else(|| {
            let (asked, mut request) = (Asked::about(request), request.clone());
            let mut answers = self.lock();
            // The engine knows only what was approved in this round.
            let mut approved = answers.approved.iter();
            request.changed_since_asked |=
                approved.any(|(known, _)| known.subject == asked.subject);
            answers.asked = Some(request);
            ApprovalAnswer::Deferred
        })
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
        None => {
            let minutes = limits::APPROVAL_WAIT.as_secs() / 60;
            ApprovalAnswer::Denied(Some(format!("no answer in {minutes} minutes")))
        }
    }
}

/// Sends a request to the client and waits for the answer; `None` if there is none in time. A request ends with
/// the call that it belongs to: if this is dropped, the client is notified that the request is cancelled.
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
                "description": "What the agent is told if you deny it",
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
    let words = content.get("reason").and_then(Value::as_str).map(str::trim);
    let words = words.filter(|words| !words.is_empty()).map(str::to_owned);
    match (answer.action, content.get("answer").and_then(Value::as_str)) {
        (ElicitationAction::Accept, Some(ONCE)) => ApprovalAnswer::Once,
        (ElicitationAction::Accept, Some(SESSION)) => ApprovalAnswer::Session,
        _ => ApprovalAnswer::Denied(words),
    }
}
