//! One call of a tool: in its turn, so that it can be ended, and on a thread of its own unless it needs to
//! wait for nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pinfold::{CallOptions, Cancel, Error, Progress};
use pinfold_dialects::Answer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, LoggingLevel, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, Peer, RoleServer};
use serde_json::{Value, json};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::approve::Asking;
use crate::conversation::Conversation;
use crate::roots::{RootsState, standing};
use crate::service::Shared;
use crate::{limits, reply, server};

/// Makes a call in a conversation, which is that of a connection or not.
pub(crate) async fn call(
    shared: &Arc<Shared>,
    (conversation, connected): (&Conversation, bool),
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let client: Option<Arc<str>> = context.client_info().map(|client| client.name.into());
    let Some(tool) = shared.toolbox.find(&request.name) else {
        let call = CallOptions::default().with_client(client);
        conversation.whole().call_with(&request.name, Value::Null, &call);
        let error = shared.toolbox.unknown(&request.name).with_hint();
        return Err(ErrorData::invalid_params(error, None));
    };
    let ended = Ended { request: context.ct.clone(), server: shared.stopping.clone() };
    // What does not come as far as the tool is in the audit log all the same.
    let refused = |error: Arc<Error>| {
        let call = CallOptions::default().with_client(client.clone());
        let answer = conversation.whole().refuse_call(tool.entry.name, error, &call);
        Ok(reply::result(answer, None).into())
    };
    let bad_request = |error: &ErrorData| {
        _ = refused(Error::InvalidArgument(error.message.to_string()).into());
    };
    // The first thing that is waited for: whoever comes first stands in front.
    let mut turn = match tool.entry.hints.read_only {
        true => None,
        false => tokio::select! {
            turn = conversation.changing.lock() => Some(turn),
            () = ended.wait() => return refused(Error::Cancelled.into()),
        },
    };
    let options = &shared.options;
    let standing = standing(options.client_roots, conversation, connected, &request, &context);
    let tools = match standing.await.inspect_err(bad_request)? {
        RootsState::Known(Ok(tools)) => tools,
        RootsState::Known(Err(nothing)) => return refused(nothing),
        RootsState::Ask(ask) => return Ok((*ask).into()),
    };
    let session = tools.session().id();
    let (mut asking, approver) =
        Asking::new(shared.codec.as_ref(), &shared.spent, session, &request, &context)
            .inspect_err(bad_request)?;
    let cancel = Cancel::default();
    let token = context.meta.get_progress_token();
    let progress = if token.is_some() { Progress::watched() } else { Progress::default() };
    let begin = Instant::now();
    let name = tool.entry.name;
    let arguments = Value::Object(request.arguments.unwrap_or_default());
    // A small read of a cached file takes less time than waking another thread. A call that fails, or finds
    // that it would have to wait after all, is made again on a thread.
    let mut arguments = Some(arguments);
    let mut prepared = None;
    if tool.entry.reads && !ended.is_now() {
        let call = prepared.insert(tools.prepare(name, arguments.take().unwrap_or_default()));
        if let Some(cached_file) = tools.cached_file(call) {
            let (cancel, client) = (cancel.clone(), client.clone());
            let options = CallOptions::default().with_cancel(cancel);
            let options = options.with_client(client).with_cached_file(cached_file);
            let answer = tools.perform(call, &options);
            if !answer.failed() {
                let compact = tools.describe(call);
                return finish((conversation, &context), name, begin, (answer, compact)).await;
            }
        }
    }
    let (stop, seen) = (cancel.clone(), progress.clone());
    let client = client.clone();
    let call = CallOptions::default().with_cancel(stop).with_progress(seen);
    let call = call.with_approver(approver).with_client(client);
    let before = ended.clone();
    let work = move || {
        // It may have waited for a thread for long.
        if before.is_now() {
            call.cancel.cancel();
        }
        let prepared =
            prepared.unwrap_or_else(|| tools.prepare(name, arguments.unwrap_or_default()));
        (tools.perform(&prepared, &call), tools.describe(&prepared))
    };
    let mut work = shared.running.spawn_blocking(work);
    let mut reports = Reports::new(token, options.progress_every);
    let asked = asking.asked();
    let done = {
        let mut questions = std::pin::pin!(asking.go_on(&context));
        loop {
            tokio::select! {
                done = &mut work => break Some(done),
                () = ended.wait() => break None,
                // Others need not wait for the person: after a yes, the change is planned anew.
                () = asked.notified() => turn = None,
                // What is said about the way there is said before the answer is.
                () = reports.due() => reports.say(&progress, &context.peer).await,
                () = &mut questions => unreachable!("they go on until the call is done"),
            }
        }
    };
    let done = match done {
        Some(done) => done,
        None => {
            cancel.cancel();
            asking.close();
            work.await
        }
    };
    drop(turn);
    if let Some(asks) = asking.pending(shared.codec.as_ref())? {
        return Ok(asks.into());
    }
    let done = done.map_err(|error| {
        tracing::error!("a call did not come back: {error}");
        ErrorData::internal_error("the call was given up", None)
    })?;
    finish((conversation, &context), name, begin, done).await
}

/// Says what came of a call, to whoever wants to know.
async fn finish(
    (conversation, context): (&Conversation, &RequestContext<RoleServer>),
    name: &str,
    begin: Instant,
    (answer, compact): (Answer, Option<String>),
) -> Result<CallToolResponse, ErrorData> {
    let outcome = reply::outcome(&answer);
    let milliseconds = begin.elapsed().as_millis() as u64;
    tracing::info!(tool = name, %outcome, milliseconds, "call");
    if server::wants(conversation, context, LoggingLevel::Debug) {
        let says = json!({
            "tool": name, "params": compact, "outcome": outcome, "milliseconds": milliseconds,
        });
        server::log(&context.peer, LoggingLevel::Debug, says).await;
    }
    Ok(reply::result(answer, compact).into())
}

/// Whether a call has to end: because its request was cancelled, or everything ends.
#[derive(Clone)]
struct Ended {
    request: CancellationToken,
    server: CancellationToken,
}

impl Ended {
    async fn wait(&self) {
        tokio::select! {
            () = self.request.cancelled() => {}
            () = self.server.cancelled() => {}
        }
    }

    fn is_now(&self) -> bool {
        self.request.is_cancelled() || self.server.is_cancelled()
    }
}

/// Says from time to time how far a call has come, if the client wants to know.
struct Reports {
    wanted: Option<(ProgressToken, Interval)>,
    said: u64,
}

impl Reports {
    fn new(token: Option<ProgressToken>, every: Duration) -> Self {
        let wanted = token.map(|token| {
            let mut clock = interval(every.max(limits::PROGRESS_AT_MOST_EVERY));
            clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
            (token, clock)
        });
        Self { wanted, said: 0 }
    }

    /// Waits until it is time to say something.
    async fn due(&mut self) {
        match &mut self.wanted {
            Some((_, clock)) => _ = clock.tick().await,
            None => std::future::pending().await,
        }
    }

    async fn say(&mut self, progress: &Progress, peer: &Peer<RoleServer>) {
        let met = progress.met();
        let Some((token, _)) = self.wanted.as_ref().filter(|_| met > self.said) else { return };
        self.said = met;
        let says = ProgressNotificationParam::new(token.clone(), met as f64)
            .with_message(format!("{met} files and directories looked at"));
        let sent = tokio::time::timeout(limits::UNREAD_WAIT, peer.notify_progress(says)).await;
        // A client that is gone, or does not read, needs to know no more.
        if !matches!(sent, Ok(Ok(()))) {
            self.wanted = None;
        }
    }
}
