//! One round of a request that is answered with questions.
//!
//! The server remembers nothing between the rounds. What it has to know it gives the client as a
//! state: signed, and for one tool or prompt only. So the client can carry it, but not change it or
//! use it elsewhere.

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    ClientCapabilities, CreateMessageResult, ElicitResult, ElicitationAction, InputRequest,
    InputRequiredResult, InputResponses, ListRootsResult, RequestStateCodec, SealOptions,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How long a user may think about one question.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// One round of a request.
pub(crate) struct Round<'r> {
    /// The tool or prompt.
    pub(crate) subject: &'r str,
    pub(crate) responses: Option<&'r InputResponses>,
    pub(crate) state: Option<&'r str>,
    /// What the client can be asked for.
    pub(crate) can: ClientCapabilities,
    pub(crate) seals: &'r RequestStateCodec,
}

/// Questions, and the keys that their answers must have.
type Questions<'q> = [(&'q str, InputRequest)];

impl Round<'_> {
    /// An answer, if there is one and it is of the right kind. Otherwise it is asked for again.
    fn response<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        serde_json::from_value(self.responses?.get(key)?.clone()).ok()
    }

    /// What a user has entered in a form's field.
    pub(crate) fn entered<T: DeserializeOwned>(&self, key: &str, field: &str) -> Option<T> {
        let form: ElicitResult = self.response(key)?;
        let content = form.content.filter(|_| form.action == ElicitationAction::Accept)?;
        serde_json::from_value(content.get(field)?.clone()).ok()
    }

    /// The text that a model has answered with.
    pub(crate) fn sampled(&self, key: &str) -> Option<String> {
        let answer: CreateMessageResult = self.response(key)?;
        let content = serde_json::to_value(answer.message.content).ok()?;
        content["text"].as_str().map(str::to_owned)
    }

    /// The roots that the client has listed.
    pub(crate) fn listed(&self, key: &str) -> Option<String> {
        let list: ListRootsResult = self.response(key)?;
        let roots: Vec<_> = list.roots.into_iter().map(|root| root.uri).collect();
        Some(roots.join(", "))
    }

    /// The state that the client has brought along, if it is one that it was given here.
    pub(crate) fn state<T: DeserializeOwned>(&self) -> Result<Option<T>, ErrorData> {
        let Some(state) = self.state else { return Ok(None) };
        match self.seals.open_json_with(state, self.subject.as_bytes()) {
            Ok(state) => Ok(Some(state)),
            Err(_) => Err(ErrorData::invalid_params("the `requestState` is not ours", None)),
        }
    }

    /// Asks the client, if it can be asked all of this.
    pub(crate) fn ask<A: From<InputRequiredResult>>(
        &self,
        questions: &Questions,
    ) -> Result<A, ErrorData> {
        self.check(questions)?;
        let questions = questions.iter().map(|(key, question)| (key.to_string(), question.clone()));
        Ok(InputRequiredResult::from_input_requests(questions.collect()).into())
    }

    /// The same, with a state that the client has to bring along.
    pub(crate) fn ask_with<A: From<InputRequiredResult>>(
        &self,
        questions: &Questions,
        state: &impl Serialize,
    ) -> Result<A, ErrorData> {
        let options = SealOptions::new().associated_data(self.subject.as_bytes()).ttl(PATIENCE);
        let state = self.seals.seal_json_with(state, &options);
        let state = state.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let mut asks: InputRequiredResult = self.ask(questions)?;
        asks.request_state = Some(state);
        Ok(asks.into())
    }

    /// Whether the client can be asked all of this.
    pub(crate) fn check(&self, questions: &Questions) -> Result<(), ErrorData> {
        let mut lacking = ClientCapabilities::default();
        for (_, question) in questions {
            match question {
                InputRequest::CreateMessage(_) if self.can.sampling.is_none() => {
                    lacking.sampling = Some(Default::default());
                }
                InputRequest::Elicitation(_) if self.can.elicitation.is_none() => {
                    lacking.elicitation = Some(Default::default());
                }
                InputRequest::ListRoots(_) if self.can.roots.is_none() => {
                    lacking.roots = Some(Default::default());
                }
                _ => {}
            }
        }
        match lacking == ClientCapabilities::default() {
            true => Ok(()),
            false => Err(ErrorData::missing_required_client_capability(lacking)),
        }
    }
}

/// Asks the user for one thing.
pub(crate) fn form(message: &str, field: &str, kind: &str) -> InputRequest {
    let schema = json!({
        "type": "object", "properties": { field: { "type": kind } }, "required": [field],
    });
    let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    question(json!({ "method": "elicitation/create", "params": params }))
}

/// Asks a model.
pub(crate) fn sampling(prompt: &str) -> InputRequest {
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
    let params = json!({ "messages": [message], "maxTokens": 100 });
    question(json!({ "method": "sampling/createMessage", "params": params }))
}

/// Asks the client for its roots.
pub(crate) fn list_roots() -> InputRequest {
    question(json!({ "method": "roots/list" }))
}

fn question(value: Value) -> InputRequest {
    serde_json::from_value(value).expect("questions here are in the protocol's own form")
}
