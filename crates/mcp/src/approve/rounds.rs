//! The rounds of a call that is made by stateless requests: the client repeats the call with each answer and with a
//! signed state.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pinfold::{ApprovalAnswer, ApprovalRequest, Approver};
use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, RequestStateCodec, Root, SealOptions};
use serde::{Deserialize, Serialize};

use super::{APPROVE, approval_answer};
use crate::{UsedStateStore, limits};

/// The state that the client sends back with the next round of a call. It is signed, and bound to one call.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct CallState {
    /// The client's roots, if an earlier round asked for them. The client does not send them again.
    pub(crate) roots: Option<Vec<Root>>,
    /// The approved requests, and whether each approval is for the session.
    approved: Vec<(ApprovalId, bool)>,
    /// The request that the client answers next.
    asked: ApprovalId,
}

/// Identifies an approval request in all rounds of a call.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
struct ApprovalId {
    /// The request's hash, which covers the new content.
    digest: String,
    /// The hash of the access and the path, without the content.
    subject: String,
}

impl ApprovalId {
    fn of(request: &ApprovalRequest) -> Self {
        let subject = format!("{} {}", request.access.name(), request.path.display());
        let subject = blake3::hash(subject.as_bytes()).to_hex().to_string();
        Self { digest: request.request_hash.clone(), subject }
    }
}

impl CallState {
    /// The data that a state is bound to: the tool, the arguments and the conversation.
    pub(crate) fn binding(conversation: &str, request: &CallToolRequestParams) -> Vec<u8> {
        let call = (conversation, &request.name, &request.arguments);
        let call = serde_json::to_vec(&call).expect("it is JSON already");
        blake3::hash(&call).as_bytes().to_vec()
    }

    /// Checks and decodes the state in a request. A request without one gets the default.
    pub(crate) fn open(
        codec: Option<&RequestStateCodec>,
        binding: &[u8],
        request: &CallToolRequestParams,
    ) -> Result<Self, ErrorData> {
        let (Some(codec), Some(state)) = (codec, &request.request_state) else {
            return Ok(Self::default());
        };
        codec.open_json_with(state, binding).map_err(|_| {
            let problem =
                "`requestState` was not issued by this server for this call, or has expired";
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

/// The user's answers that one round of a call begins with, and the request that it ends with.
#[derive(Debug, Default)]
pub(crate) struct Round {
    /// The approved requests, and whether each approval is for the session.
    approved: Vec<(ApprovalId, bool)>,
    /// The request that was denied, and the user's reason.
    denied: Option<(ApprovalId, Option<String>)>,
    /// The request that the client has to ask about next.
    asked: Option<ApprovalRequest>,
}

/// The states that were answered. A state is remembered until it expires, since it is good for one answer.
#[derive(Debug)]
pub(crate) struct UsedStates {
    own: Mutex<HashMap<blake3::Hash, Instant>>,
    shared: Option<Arc<dyn UsedStateStore>>,
}

impl UsedStates {
    /// `shared` also remembers states that other processes accept.
    pub(crate) fn new(shared: Option<Arc<dyn UsedStateStore>>) -> Self {
        Self { own: Mutex::default(), shared }
    }

    /// The user's answers that a request brings from earlier rounds, if it answers the last question. That uses up its
    /// state. A request without an answer or a state, or with a state that was used before, brings none: an approval
    /// must not count in more than one call.
    pub(crate) async fn claim(
        &self,
        state: &CallState,
        request: &CallToolRequestParams,
    ) -> Result<Round, ErrorData> {
        let answer = request.input_responses.as_ref().and_then(|all| all.get(APPROVE));
        let (Some(sealed), Some(answer)) = (&request.request_state, answer) else {
            return Ok(Round::default());
        };
        if !self.is_first_use(sealed).await {
            return Ok(Round::default());
        }
        let answer = serde_json::from_value(answer.clone()).map_err(|error| {
            ErrorData::invalid_params(format!("`inputResponses.{APPROVE}`: {error}"), None)
        })?;
        let mut round = Round { approved: state.approved.clone(), ..Round::default() };
        let asked = state.asked.clone();
        match approval_answer(answer) {
            ApprovalAnswer::Once => round.approved.push((asked, false)),
            ApprovalAnswer::Session => round.approved.push((asked, true)),
            ApprovalAnswer::Denied(reason) => round.denied = Some((asked, reason)),
            // The form has no other answers.
            ApprovalAnswer::Unanswered(_)
            | ApprovalAnswer::Unavailable
            | ApprovalAnswer::Deferred => {}
        }
        Ok(round)
    }

    async fn is_first_use(&self, state: &str) -> bool {
        let (now, hash) = (Instant::now(), blake3::hash(state.as_bytes()));
        let first = {
            let mut used = self.own.lock().unwrap_or_else(PoisonError::into_inner);
            used.retain(|_, when| now.duration_since(*when) < 2 * limits::APPROVAL_WAIT);
            used.insert(hash, now).is_none()
        };
        let Some(shared) = self.shared.clone().filter(|_| first) else { return first };
        let marked = move || shared.is_first_use(&hash.to_hex());
        match tokio::task::spawn_blocking(marked).await {
            Ok(Ok(first)) => first,
            Ok(Err(error)) => {
                // The user has to be asked again.
                tracing::error!("cannot mark an approval as used: {error}");
                false
            }
            Err(_) => false,
        }
    }
}

/// Finds answers from earlier rounds of a call. If a request has no answer yet, the result of this round asks the
/// client.
#[derive(Debug)]
pub(crate) struct RepeatedCallApprover {
    /// Whether the user may approve for the session.
    pub(super) session_grants: bool,
    round: Mutex<Round>,
}

impl RepeatedCallApprover {
    pub(super) fn new(round: Round, session_grants: bool) -> Self {
        Self { session_grants, round: Mutex::new(round) }
    }

    /// The user's answer to a request, if an earlier round asked for it.
    pub(crate) fn find(&self, request: &ApprovalRequest) -> Option<ApprovalAnswer> {
        let asked = ApprovalId::of(request);
        let round = self.lock();
        if let Some((_, session)) = round.approved.iter().find(|(known, _)| *known == asked) {
            let for_session = *session && self.session_grants;
            return Some(if for_session { ApprovalAnswer::Session } else { ApprovalAnswer::Once });
        }
        let denied = round.denied.as_ref().filter(|(known, _)| *known == asked);
        denied.map(|(_, reason)| ApprovalAnswer::Denied(reason.clone()))
    }

    /// The request that the client has to ask about next, and the state for the round that answers it.
    pub(super) fn next_round(
        &self,
        roots: Option<Vec<Root>>,
    ) -> Option<(ApprovalRequest, CallState)> {
        let mut round = self.lock();
        let request = round.asked.take()?;
        let asked = ApprovalId::of(&request);
        Some((request, CallState { roots, approved: round.approved.clone(), asked }))
    }

    fn lock(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Approver for RepeatedCallApprover {
    fn ask(&self, request: &ApprovalRequest) -> ApprovalAnswer {
        self.find(request).unwrap_or_else(|| {
            let (asked, mut request) = (ApprovalId::of(request), request.clone());
            let mut round = self.lock();
            // The engine knows only what was approved in this round.
            let mut approved = round.approved.iter();
            request.changed_since_asked |=
                approved.any(|(known, _)| known.subject == asked.subject);
            round.asked = Some(request);
            ApprovalAnswer::Deferred
        })
    }
}
