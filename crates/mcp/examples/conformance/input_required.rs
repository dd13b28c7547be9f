//! Tools, and a prompt, that are answered with questions: the client repeats the request, with its
//! answers, until the server knows enough.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ContentBlock, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, InputRequest, RequestStateCodec, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::{Deserialize, Serialize};

use crate::content::{plain, success};
use crate::prompts::by_user;
use crate::round::{Round, form, list_roots, sampling};

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        plain("test_missing_capability", "Works only for clients that have a model."),
        plain("test_streaming_elicitation", "Asks for a name."),
        plain("test_input_required_result_elicitation", "Asks for a name."),
        plain("test_input_required_result_sampling", "Asks a model for a capital."),
        plain("test_input_required_result_list_roots", "Asks for the client's roots."),
        plain("test_input_required_result_request_state", "Asks for a confirmation."),
        plain("test_input_required_result_tampered_state", "Asks for a confirmation."),
        plain("test_input_required_result_multiple_inputs", "Asks for three things at once."),
        plain("test_input_required_result_multi_round", "Asks for two things in turn."),
        plain("test_input_required_result_capabilities", "Asks for what the client can give."),
    ]
}

pub(crate) fn call(
    seals: &RequestStateCodec,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let round = Round {
        subject: &request.name,
        responses: request.input_responses.as_ref(),
        state: request.request_state.as_deref(),
        can: context.client_capabilities().unwrap_or_default(),
        seals,
    };
    Some(match &*request.name {
        "test_missing_capability" => round
            .check(&[("model", sampling("Are you there?"))])
            .map(|()| success("The client has a model.").into()),
        "test_streaming_elicitation" | "test_input_required_result_elicitation" => name(&round),
        "test_input_required_result_sampling" => capital(&round),
        "test_input_required_result_list_roots" => roots(&round),
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => confirmation(&round),
        "test_input_required_result_multiple_inputs" => three_at_once(&round),
        "test_input_required_result_multi_round" => two_in_turn(&round),
        "test_input_required_result_capabilities" => what_it_can(&round),
        _ => return None,
    })
}

pub(crate) fn prompt(
    seals: &RequestStateCodec,
    request: &GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Option<Result<GetPromptResponse, ErrorData>> {
    let round = Round {
        subject: &request.name,
        responses: request.input_responses.as_ref(),
        state: request.request_state.as_deref(),
        can: context.client_capabilities().unwrap_or_default(),
        seals,
    };
    (request.name == "test_input_required_result_prompt").then(|| with_context(&round))
}

fn name(round: &Round<'_>) -> Result<CallToolResponse, ErrorData> {
    match round.entered::<String>("user_name", "name") {
        Some(name) => Ok(success(format!("Hello, {name}!")).into()),
        None => round.ask(&[("user_name", form("What is your name?", "name", "string"))]),
    }
}

fn capital(round: &Round<'_>) -> Result<CallToolResponse, ErrorData> {
    match round.sampled("capital_question") {
        Some(text) => Ok(success(text).into()),
        None => round.ask(&[("capital_question", sampling("What is the capital of France?"))]),
    }
}

fn roots(round: &Round<'_>) -> Result<CallToolResponse, ErrorData> {
    match round.listed("client_roots") {
        Some(roots) => Ok(success(format!("The client's roots: {roots}")).into()),
        None => round.ask(&[("client_roots", list_roots())]),
    }
}

fn confirmation(round: &Round<'_>) -> Result<CallToolResponse, ErrorData> {
    let state: Option<Begun> = round.state()?;
    match (state, round.entered::<bool>("confirm", "ok")) {
        (Some(Begun), Some(ok)) => Ok(success(format!("state-ok, and confirmed: {ok}")).into()),
        _ => round.ask_with(&[("confirm", form("Please confirm", "ok", "boolean"))], &Begun),
    }
}

fn three_at_once(round: &Round<'_>) -> Result<CallToolResponse, ErrorData> {
    let state: Option<Begun> = round.state()?;
    let name: Option<String> = round.entered("user_name", "name");
    let (greeting, roots) = (round.sampled("greeting"), round.listed("client_roots"));
    match (state, name, greeting, roots) {
        (Some(Begun), Some(name), Some(greeting), Some(roots)) => {
            Ok(success(format!("{greeting} {name}! The roots: {roots}")).into())
        }
        _ => {
            let questions = [
                ("user_name", form("What is your name?", "name", "string")),
                ("greeting", sampling("Generate a greeting")),
                ("client_roots", list_roots()),
            ];
            round.ask_with(&questions, &Begun)
        }
    }
}

fn two_in_turn(round: &Round<'_>) -> Result<CallToolResponse, ErrorData> {
    let known = match round.state()? {
        None => Known::Nothing,
        Some(Known::Nothing) => {
            round.entered("step1", "name").map_or(Known::Nothing, |name| Known::Name { name })
        }
        Some(Known::Name { name }) => match round.entered::<String>("step2", "color") {
            Some(color) => return Ok(success(format!("{name} likes {color}.")).into()),
            None => Known::Name { name },
        },
    };
    let question = match known {
        Known::Nothing => ("step1", form("Step 1: What is your name?", "name", "string")),
        Known::Name { .. } => {
            ("step2", form("Step 2: What is your favorite color?", "color", "string"))
        }
    };
    round.ask_with(&[question], &known)
}

fn what_it_can(round: &Round<'_>) -> Result<CallToolResponse, ErrorData> {
    let questions = [
        ("user_name", form("What is your name?", "name", "string")),
        ("greeting", sampling("Generate a greeting")),
        ("client_roots", list_roots()),
    ];
    let can = |question: &(&str, InputRequest)| round.check(std::slice::from_ref(question)).is_ok();
    let questions: Vec<_> = questions.into_iter().filter(can).collect();
    let answered = |(key, _): &(&str, InputRequest)| {
        round.responses.is_some_and(|responses| responses.contains_key(*key))
    };
    match questions.iter().all(answered) {
        true => Ok(success("There is nothing more to ask.").into()),
        false => round.ask(&questions),
    }
}

fn with_context(round: &Round<'_>) -> Result<GetPromptResponse, ErrorData> {
    match round.entered::<String>("user_context", "context") {
        Some(context) => {
            let text = ContentBlock::text(format!("Please work in this context: {context}"));
            Ok(GetPromptResult::new(vec![by_user(text)]).into())
        }
        None => {
            let question = form("What context should the prompt use?", "context", "string");
            round.ask(&[("user_context", question)])
        }
    }
}

/// The state after a round of which nothing has to be known but that it was.
#[derive(Deserialize, Serialize)]
struct Begun;

/// The state between questions that come in turn.
#[derive(Deserialize, Serialize)]
enum Known {
    Nothing,
    Name { name: String },
}
