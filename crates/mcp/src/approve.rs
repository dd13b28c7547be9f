//! Asking the person at the client: by a question while the call runs, where the protocol lets a server
//! ask, or else by an answer that the client has to come back with.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pinfold::{ApprovalAnswer, ApprovalRequest, Approver};
use rmcp::model::{
    CallToolRequestParams, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult,
    ElicitationAction, InputRequest, InputRequests, InputRequiredResult, RequestStateCodec,
    SealOptions, ServerRequest,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::limits;
use crate::server::stands_alone;

/// How the person behind a request is asked.
#[derive(Debug)]
pub(crate) enum Asking {
    /// Nobody is there who could be.
    Nobody,
    /// By a question, while the call runs.
    Directly(mpsc::UnboundedReceiver<Asked>, Arc<Notify>),
    /// By the answer to the call, which is then made again.
    ByAnswer(Arc<Rounds>, Sealed),
}

/// A question, and where its answer goes.
type Asked = (ApprovalRequest, oneshot::Sender<ApprovalAnswer>);

/// What a state is good for: this call, in this conversation.
#[derive(Debug)]
pub(crate) struct Sealed {
    about: Vec<u8>,
}

/// Under which a person's answer is asked for.
const APPROVE: &str = "approve";

impl Asking {
    /// How the person is asked, and who asks for the engine.
    pub(crate) fn new(
        codec: Option<&RequestStateCodec>,
        spent: &Spent,
        session: &str,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<(Self, Option<Arc<dyn Approver>>), ErrorData> {
        let can = context.client_capabilities().is_some_and(|can| can.elicitation.is_some());
        if !can {
            return Ok((Self::Nobody, None));
        }
        if !stands_alone(context) {
            let (sender, receiver) = mpsc::unbounded_channel();
            let asked = Arc::new(Notify::new());
            let channel = Channel { questions: sender, asked: asked.clone() };
            return Ok((Self::Directly(receiver, asked), Some(Arc::new(channel))));
        }
        let Some(codec) = codec else { return Ok((Self::Nobody, None)) };
        let about = json!([session, request.name, request.arguments]).to_string();
        let about = blake3::hash(about.as_bytes()).as_bytes().to_vec();
        let rounds = Arc::new(Rounds::continued(codec, spent, &about, request)?);
        Ok((Self::ByAnswer(rounds.clone(), Sealed { about }), Some(rounds)))
    }

    /// Asks what the engine wants to know, one question after the other. Never ends.
    pub(crate) async fn go_on(&mut self, context: &RequestContext<RoleServer>) {
        if let Self::Directly(questions, _) = self {
            while let Some((question, answer)) = questions.recv().await {
                // Who has stopped waiting does not need to know.
                _ = answer.send(elicit(&question, context).await);
            }
        }
        std::future::pending().await
    }

    /// Told when something is asked.
    pub(crate) fn asked(&self) -> Arc<Notify> {
        match self {
            Self::Directly(_, asked) => asked.clone(),
            Self::Nobody | Self::ByAnswer(..) => Arc::default(),
        }
    }

    /// Whatever is asked from now on gets no answer.
    pub(crate) fn close(&mut self) {
        if let Self::Directly(..) = self {
            *self = Self::Nobody;
        }
    }

    /// The answer that asks the client, if the call ended with a question.
    pub(crate) fn pending(
        &self,
        codec: Option<&RequestStateCodec>,
    ) -> Result<Option<InputRequiredResult>, ErrorData> {
        let (Self::ByAnswer(rounds, sealed), Some(codec)) = (self, codec) else { return Ok(None) };
        let Some(question) = rounds.lock().asked.take() else { return Ok(None) };
        let state = State { answers: rounds.lock().answers.clone(), asked: digest(&question) };
        let options = SealOptions::new().associated_data(&sealed.about[..]).ttl(limits::ASKING);
        let state = codec.seal_json_with(&state, &options);
        let state = state.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let asks = InputRequest::Elicitation(ElicitRequest::new(form(&question)?));
        let asks = InputRequests::from([(APPROVE.to_owned(), asks)]);
        Ok(Some(InputRequiredResult::new(Some(asks), Some(state))))
    }
}

/// The states that clients have come back with, for as long as they could come again.
#[derive(Debug, Default)]
pub(crate) struct Spent(Mutex<HashMap<blake3::Hash, Instant>>);

impl Spent {
    /// Whether it is the first time.
    fn spend(&self, state: &str) -> bool {
        let now = Instant::now();
        let mut spent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        spent.retain(|_, when| now.duration_since(*when) < 2 * limits::ASKING);
        spent.insert(blake3::hash(state.as_bytes()), now).is_none()
    }
}

/// Hands questions over to the task that the call belongs to, which can talk to the client.
#[derive(Debug)]
struct Channel {
    questions: mpsc::UnboundedSender<Asked>,
    asked: Arc<Notify>,
}

impl Approver for Channel {
    fn ask(&self, question: &ApprovalRequest) -> ApprovalAnswer {
        let (sender, receiver) = oneshot::channel();
        self.asked.notify_one();
        match self.questions.send((question.clone(), sender)) {
            Ok(()) => receiver.blocking_recv().unwrap_or(ApprovalAnswer::Unavailable),
            Err(_) => ApprovalAnswer::Unavailable,
        }
    }
}

/// What a person has answered in the rounds before this one.
#[derive(Debug)]
pub(crate) struct Rounds(Mutex<Round>);

#[derive(Debug, Default)]
struct Round {
    /// What was allowed, by what it was asked about, and whether for the whole session.
    answers: Vec<(String, bool)>,
    /// What was refused just now.
    refused: Option<(String, Option<String>)>,
    /// What has to be asked.
    asked: Option<ApprovalRequest>,
}

/// What the client carries from one round to the next. It is signed: what was allowed, and what the
/// answer that comes with it was asked about.
#[derive(Debug, Default, Deserialize, Serialize)]
struct State {
    answers: Vec<(String, bool)>,
    asked: String,
}

impl Rounds {
    fn continued(
        codec: &RequestStateCodec,
        spent: &Spent,
        about: &[u8],
        request: &CallToolRequestParams,
    ) -> Result<Self, ErrorData> {
        let Some(state) = &request.request_state else { return Ok(Self(Mutex::default())) };
        let state = codec.open_json_with(state, about);
        let State { mut answers, asked } = state.map_err(|_| {
            let problem = "`requestState` is not what this server gave for this call, or too old";
            ErrorData::invalid_params(problem, None)
        })?;
        let answer = request.input_responses.as_ref().and_then(|all| all.get(APPROVE));
        // An answer is good once: whoever comes with it again is asked again.
        if answer.is_some() && !spent.spend(request.request_state.as_deref().unwrap_or_default()) {
            return Ok(Self(Mutex::default()));
        }
        let mut refused = None;
        if let Some(answer) = answer {
            let answer = serde_json::from_value(answer.clone()).map_err(|error| {
                ErrorData::invalid_params(format!("`inputResponses.{APPROVE}`: {error}"), None)
            })?;
            match verdict(answer) {
                ApprovalAnswer::Once => answers.push((asked, false)),
                ApprovalAnswer::Session => answers.push((asked, true)),
                ApprovalAnswer::Denied(words) => refused = Some((asked, words)),
                ApprovalAnswer::Unavailable | ApprovalAnswer::Deferred => {}
            }
        }
        Ok(Self(Mutex::new(Round { answers, refused, asked: None })))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Round> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Approver for Rounds {
    fn ask(&self, question: &ApprovalRequest) -> ApprovalAnswer {
        let digest = digest(question);
        let mut round = self.lock();
        if let Some((_, session)) = round.answers.iter().find(|(known, _)| *known == digest) {
            return if *session { ApprovalAnswer::Session } else { ApprovalAnswer::Once };
        }
        if let Some((_, words)) = round.refused.as_ref().filter(|(known, _)| *known == digest) {
            return ApprovalAnswer::Denied(words.clone());
        }
        round.asked = Some(question.clone());
        ApprovalAnswer::Deferred
    }
}

/// What a person is asked about, whole: another content is another question.
fn digest(question: &ApprovalRequest) -> String {
    question.subject.clone()
}

async fn elicit(
    question: &ApprovalRequest,
    context: &RequestContext<RoleServer>,
) -> ApprovalAnswer {
    let form = match form(question) {
        Ok(form) => form,
        Err(_) => return ApprovalAnswer::Unavailable,
    };
    let ask = context.peer.send_request(ServerRequest::ElicitRequest(ElicitRequest::new(form)));
    match tokio::time::timeout(limits::ASKING, ask).await {
        Ok(Ok(ClientResult::ElicitResult(answer))) => verdict(answer),
        Ok(Ok(_)) => ApprovalAnswer::Unavailable,
        Ok(Err(error)) => {
            tracing::warn!("the client does not ask: {error}");
            ApprovalAnswer::Unavailable
        }
        Err(_) => ApprovalAnswer::Denied(Some(no_answer(limits::ASKING))),
    }
}

fn no_answer(after: Duration) -> String {
    format!("no answer in {} minutes", after.as_secs() / 60)
}

const ONCE: &str = "allow once";
const SESSION: &str = "allow for this session";
const DENY: &str = "deny";

/// The form that a person fills in.
fn form(question: &ApprovalRequest) -> Result<ElicitRequestParams, ErrorData> {
    let mut message = question.headline();
    let preview = question.preview(limits::DIFF_CHARS);
    if !preview.is_empty() {
        message.push_str(&format!("\n\n{preview}"));
    }
    let schema = json!({
        "type": "object",
        "properties": {
            "answer": {
                "type": "string",
                "title": "Answer",
                "enum": [ONCE, SESSION, DENY],
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

/// What a person has said. Whatever is not a clear yes is a no.
fn verdict(answer: ElicitResult) -> ApprovalAnswer {
    let content = answer.content.unwrap_or_default();
    let words = content.get("reason").and_then(Value::as_str).map(str::trim);
    let words = words.filter(|words| !words.is_empty()).map(str::to_owned);
    match (answer.action, content.get("answer").and_then(Value::as_str)) {
        (ElicitationAction::Accept, Some(ONCE)) => ApprovalAnswer::Once,
        (ElicitationAction::Accept, Some(SESSION)) => ApprovalAnswer::Session,
        _ => ApprovalAnswer::Denied(words),
    }
}
