//! Tools that talk to the client while they are at work: they log, say how far they have come, or
//! ask for something, which clients of the newest protocol cannot be asked for in this way.

use std::error::Error;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientResult, CreateMessageRequestParams, ElicitRequest,
    ElicitRequestParams, LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam,
    SamplingMessage, ServerRequest, Tool,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::content::{failure, plain, success, tool};
use crate::fixtures::Fixtures;

/// Long enough for a client to see one message before the next.
const PAUSE: Duration = Duration::from_millis(50);

/// Why there is no answer.
type Problem = Box<dyn Error + Send + Sync>;

pub(crate) fn tools() -> Vec<Tool> {
    let text = |name: &str| {
        let properties = json!({ name: { "type": "string" } });
        json!({ "type": "object", "properties": properties, "required": [name] })
    };
    vec![
        plain("test_tool_with_logging", "Logs three times."),
        plain("test_logging_tool", "Logs once."),
        plain("test_tool_with_progress", "Says three times how far it has come."),
        plain("test_reconnection", "Takes its time."),
        tool("test_sampling", "Has the client ask a model.", text("prompt")),
        tool("test_elicitation", "Has the client ask its user for an address.", text("message")),
        plain("test_elicitation_sep1034_defaults", "Shows the user a form that is filled in."),
        plain("test_elicitation_sep1330_enums", "Shows the user a form with things to choose."),
    ]
}

pub(crate) async fn call(
    fixtures: &Fixtures,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Option<CallToolResult> {
    match answer(fixtures, request, context).await {
        Ok(text) => text.map(success),
        Err(error) => Some(failure(error.to_string())),
    }
}

/// The answer of a tool, if it is one of these.
async fn answer(
    fixtures: &Fixtures,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<Option<String>, Problem> {
    let text = match &*request.name {
        "test_tool_with_logging" => {
            let steps =
                ["Tool execution started", "Tool processing data", "Tool execution completed"];
            log(fixtures, context, &steps).await?
        }
        "test_logging_tool" => log(fixtures, context, &["Tool execution started"]).await?,
        "test_tool_with_progress" => progress(context).await?,
        // The stream should be closed under the client, which then comes back for the rest. A
        // handler cannot do that: the streams belong to the HTTP layer.
        "test_reconnection" => {
            sleep(2 * PAUSE).await;
            "The answer took its time.".into()
        }
        "test_sampling" => sample(context, argument(request, "prompt")?).await?,
        "test_elicitation" => {
            let answer = elicit(context, argument(request, "message")?, address()).await?;
            format!("User response: {answer}")
        }
        "test_elicitation_sep1034_defaults" => {
            let message = "Please look through what is filled in";
            let answer = elicit(context, message, filled_in()).await?;
            format!("Elicitation completed: {answer}")
        }
        "test_elicitation_sep1330_enums" => {
            let answer = elicit(context, "Please choose", choices()).await?;
            format!("Elicitation completed: {answer}")
        }
        _ => return Ok(None),
    };
    Ok(Some(text))
}

fn argument<'r>(request: &'r CallToolRequestParams, name: &str) -> Result<&'r str, Problem> {
    let arguments = request.arguments.as_ref();
    let given = arguments.and_then(|given| given.get(name)?.as_str());
    given.ok_or_else(|| format!("the argument `{name}` is missing").into())
}

/// Logs steps, unless the client does not want to know.
async fn log(
    fixtures: &Fixtures,
    context: &RequestContext<RoleServer>,
    steps: &[&'static str],
) -> Result<String, Problem> {
    use LoggingLevel::{Debug, Info};
    let wanted = matches!(fixtures.level(context), Some(Debug | Info));
    for step in steps {
        if wanted {
            let says = LoggingMessageNotificationParam::new(Info, json!(step));
            context.peer.notify_logging_message(says).await?;
        }
        sleep(PAUSE).await;
    }
    Ok("All is done.".into())
}

async fn progress(context: &RequestContext<RoleServer>) -> Result<String, Problem> {
    let token = context.meta.get_progress_token();
    for percent in [0, 50, 100] {
        if let Some(token) = &token {
            let says =
                ProgressNotificationParam::new(token.clone(), percent.into()).with_total(100.0);
            context.peer.notify_progress(says).await?;
        }
        sleep(PAUSE).await;
    }
    Ok("All is done.".into())
}

async fn sample(context: &RequestContext<RoleServer>, prompt: &str) -> Result<String, Problem> {
    if context.client_capabilities().is_none_or(|can| can.sampling.is_none()) {
        return Err("the client has no model to ask".into());
    }
    let asks = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], 100);
    let answer = context.peer.create_message(asks).await?;
    let content = serde_json::to_value(answer.message.content)?;
    let text = content["text"].as_str().ok_or("the model did not answer with text")?;
    Ok(format!("LLM response: {text}"))
}

/// Has the client show a form to its user, and says what came of it.
async fn elicit(
    context: &RequestContext<RoleServer>,
    message: &str,
    schema: Value,
) -> Result<String, Problem> {
    if context.client_capabilities().is_none_or(|can| can.elicitation.is_none()) {
        return Err("the client has no user to ask".into());
    }
    let form = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    let form: ElicitRequestParams = serde_json::from_value(form)?;
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
    let ClientResult::ElicitResult(answer) = context.peer.send_request(request).await? else {
        return Err("the client answered something else".into());
    };
    let action = serde_json::to_value(answer.action)?;
    let action = action.as_str().unwrap_or_default();
    let content = answer.content.unwrap_or_default();
    Ok(format!("action={action}, content={content}"))
}

fn address() -> Value {
    json!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "User's response" },
            "email": { "type": "string", "description": "User's email address" },
        },
        "required": ["username", "email"],
    })
}

/// A default for each kind of field.
fn filled_in() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": {
                "type": "string", "enum": ["active", "inactive", "pending"], "default": "active",
            },
            "verified": { "type": "boolean", "default": true },
        },
    })
}

/// Each way to say what there is to choose from.
fn choices() -> Value {
    let titled = json!([
        { "const": "value1", "title": "First" },
        { "const": "value2", "title": "Second" },
        { "const": "value3", "title": "Third" },
    ]);
    let untitled = json!(["option1", "option2", "option3"]);
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": untitled },
            "titledSingle": { "type": "string", "oneOf": titled },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": untitled } },
            "titledMulti": { "type": "array", "items": { "anyOf": titled } },
        },
    })
}
