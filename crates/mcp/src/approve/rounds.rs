//! The rounds of a call without a connection: the client repeats the call with each answer, and with a signed state.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pinfold::{ApprovalAnswer, ApprovalRequest, Approver};
use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, RequestStateCodec, Root, SealOptions};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{APPROVE, approval_answer};
use crate::limits;

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

    pub(super) fn seal(
        &self,
        codec: &RequestStateCodec,
        binding: &[u8],
    ) -> Result<String, ErrorData> {
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

/// The user's answers in earlier rounds of a call.
#[derive(Debug)]
pub(crate) struct EarlierAnswers {
    /// Whether an approval can be for the session.
    pub(super) session_grants: bool,
    answers: Mutex<Answers>,
}

#[derive(Debug, Default)]
struct Answers {
    approved: Vec<(Asked, bool)>,
    /// The request that was denied in this round, and the user's reason.
    denied: Option<(Asked, Option<String>)>,
    /// The request that the client has to ask about next.
    asked: Option<ApprovalRequest>,
}

impl EarlierAnswers {
    pub(super) fn new(
        state: &CallState,
        used: &UsedStates,
        session_grants: bool,
        request: &CallToolRequestParams,
    ) -> Result<Self, ErrorData> {
        let mut answers = Answers::default();
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
        Ok(Self { session_grants, answers: Mutex::new(answers) })
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

    /// The request that the client has to ask about next, and the state for the round that answers it.
    pub(super) fn next_round(
        &self,
        roots: Option<Vec<Root>>,
    ) -> Option<(ApprovalRequest, CallState)> {
        let mut answers = self.lock();
        let request = answers.asked.take()?;
        let asked = Asked::about(&request);
        Some((request, CallState { roots, approved: answers.approved.clone(), asked }))
    }

    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
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
