//! One call of a tool: in its turn, on a thread of its own, and so that it can be ended.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use pinfold::{Call, Cancel, Progress};
use pinfold_dialects::Toolbox;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, LoggingLevel, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, Peer, RoleServer};
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

use crate::approve::Asking;
use crate::conversation::Conversation;
use crate::roots::{Standing, standing};
use crate::service::Shared;
use crate::{limits, reply, server};

/// Makes a call in a conversation.
pub(crate) async fn call(
    shared: &Arc<Shared>,
    conversation: &Conversation,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let client: Option<Arc<str>> = context.client_info().map(|client| client.name.into());
    let Some(tool) = shared.toolbox.find(&request.name) else {
        let call = Call { client, ..Call::default() };
        conversation.whole().call_with(&request.name, Value::Null, &call);
        let error = shared.toolbox.unknown(&request.name).with_hint();
        return Err(ErrorData::invalid_params(error, None));
    };
    // The first thing that is waited for: whoever comes first stands in front.
    let _turn = match tool.entry.hints.read_only {
        true => None,
        false => Some(conversation.changing.lock().await),
    };
    let options = &shared.options;
    let tools = match standing(options.client_roots, conversation, &request, &context).await? {
        Standing::Known(Ok(tools)) => tools,
        Standing::Known(Err(nothing)) => {
            return Ok(reply::result(tool.refuse(&nothing), None).into());
        }
        Standing::Ask(ask) => return Ok((*ask).into()),
    };
    let session = tools.session().id();
    let (mut asking, approver) = Asking::new(shared.codec.as_ref(), session, &request, &context)?;
    let cancel = Cancel::default();
    let progress = Progress::default();
    let begin = Instant::now();
    let name = tool.entry.name;
    let arguments = Value::Object(request.arguments.unwrap_or_default());
    let (stop, seen) = (cancel.clone(), progress.clone());
    let call = Call { cancel: stop, progress: seen, approver, client, ..Call::default() };
    let work = move || perform(&tools, name, arguments, &call);
    let mut work = shared.running.spawn_blocking(work);
    let end = async {
        tokio::select! {
            () = context.ct.cancelled() => {}
            () = shared.stopping.cancelled() => {}
        }
    };
    let token = context.meta.get_progress_token();
    let report = report(&progress, token, &context.peer, options.progress_every);
    let done = tokio::select! {
        done = &mut work => done,
        () = end => {
            cancel.cancel();
            asking.close();
            work.await
        }
        () = report => unreachable!("reporting goes on until the call is done"),
        () = asking.go_on(&context) => unreachable!("and so do questions"),
    };
    if let Some(asks) = asking.pending(shared.codec.as_ref())? {
        return Ok(asks.into());
    }
    let (answer, compact) = done.map_err(|error| {
        tracing::error!("a call did not come back: {error}");
        ErrorData::internal_error("the call was given up", None)
    })?;
    let outcome = reply::outcome(&answer);
    let milliseconds = begin.elapsed().as_millis() as u64;
    tracing::info!(tool = name, %outcome, milliseconds, "call");
    if server::wants(conversation, &context, LoggingLevel::Debug) {
        let says = json!({
            "tool": name, "params": compact, "outcome": outcome, "milliseconds": milliseconds,
        });
        server::log(&context.peer, LoggingLevel::Debug, says).await;
    }
    Ok(reply::result(answer, compact).into())
}

fn perform(
    tools: &Toolbox,
    name: &str,
    arguments: Value,
    call: &Call,
) -> (pinfold_dialects::Answer, Option<String>) {
    let compact = OnceLock::new();
    let answer = tools.call_and_describe(name, arguments, call, |text| {
        _ = compact.set(text);
    });
    (answer, compact.into_inner())
}

/// Says from time to time how far a call has come, if the client wants to know. Never ends.
async fn report(
    progress: &Progress,
    token: Option<ProgressToken>,
    peer: &Peer<RoleServer>,
    every: std::time::Duration,
) {
    let Some(token) = token else { return std::future::pending().await };
    let mut clock = interval(every.max(limits::PROGRESS_AT_MOST_EVERY));
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut said = 0;
    loop {
        clock.tick().await;
        let met = progress.met();
        if met > said {
            said = met;
            let says = ProgressNotificationParam::new(token.clone(), met as f64)
                .with_message(format!("{met} files and directories looked at"));
            // A client that is gone needs to know no more.
            if peer.notify_progress(says).await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}
