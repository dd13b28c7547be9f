//! One call of a tool: it waits for its turn, runs on a thread, and is answered at its deadline or when it is
//! cancelled, whatever the thread does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pinfold::limits::MAX_LABEL_BYTES;
use pinfold::{CallOptions, Cancel, Error, Progress, SharedAuditLine};
use pinfold_dialects::{Answer, PreparedCall, Toolbox};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, LoggingLevel, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, Peer, RoleServer};
use serde_json::{Value, json};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::approve::{ApprovalRoute, ApprovalTime, CallState};
use crate::conversation::{Conversation, SessionKey};
use crate::roots::{RootsState, resolve_roots};
use crate::service::Shared;
use crate::threads::{answer_after, run};
use crate::viewers::ViewersFirst;
use crate::{limits, reply, server};

/// Makes a call in a conversation, which the request has named by `key`.
pub(crate) async fn call(
    shared: &Arc<Shared>,
    (conversation, key): (&Conversation, SessionKey),
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let client: Option<Arc<str>> = context.client_info().map(|client| client.name.into());
    let Some(tool) = shared.toolbox.find(&request.name) else {
        let call = CallOptions::default().with_client(client);
        let answer = conversation.whole().call_with(&request.name, Value::Null, &call);
        if shared.toolbox.answers_unknown_tools() {
            return Ok(reply::result(answer, None).into());
        }
        let error = shared.toolbox.unknown(&request.name).with_hint();
        return Err(ErrorData::invalid_params(error, None));
    };
    let stop = StopSignal { request: context.ct.clone(), server: shared.stopping.clone() };
    // If the call is given up, its thread writes no second line later.
    let audit_line = SharedAuditLine::default();
    let refuse = |error: Arc<Error>| {
        let call = CallOptions::default().with_client(client.clone());
        let call = call.with_audit_line(audit_line.clone());
        let answer = conversation.whole().refuse_call(tool.entry.name, error, &call);
        Ok(reply::result(answer, None).into())
    };
    // Calls that do not reach the tool are in the audit log, too.
    let audit = |error: &ErrorData| {
        _ = refuse(Error::InvalidArgument(error.message.to_string()).into());
    };
    let label = checkpoint_label(&context).inspect_err(audit)?;
    // The first thing that a call waits for: changes are made in the order in which their requests came.
    let mut turn = None;
    if !tool.entry.hints.read_only {
        tokio::select! {
            lock = conversation.change_lock.lock() => turn = Some(lock),
            () = stop.received() => return refuse(Error::Cancelled.into()),
        }
    }
    let binding = CallState::binding(conversation.whole().session().id(), &request);
    let mut state = CallState::default();
    if server::is_stateless(&context) {
        if let (Some(feed), Some(client)) = (&shared.options.feed, &client) {
            feed.client_connected(client);
        }
        state = CallState::open(shared.codec.as_ref(), &binding, &request).inspect_err(audit)?;
    }
    let options = &shared.options;
    let roots = resolve_roots(shared, conversation, key, &mut state, &request, &context);
    let roots = tokio::select! {
        roots = roots => roots,
        () = stop.received() => return refuse(Error::Cancelled.into()),
    };
    let tools = match roots.inspect_err(audit)? {
        RootsState::Known(Ok(tools)) => tools,
        RootsState::Known(Err(nothing_left)) => return refuse(nothing_left),
        RootsState::Ask(ask) => return Ok((*ask).into()),
    };
    let session_grants = key != SessionKey::ClientName;
    let (mut route, approver) =
        ApprovalRoute::new(&state, &shared.used_states, session_grants, &request, &context)
            .inspect_err(audit)?;
    let approval_time = ApprovalTime::default();
    let mut approver = approver.or_else(|| tools.session().approver().cloned());
    let cancel = Cancel::default();
    if let Some(feed) = options.feed.as_ref().filter(|feed| feed.can_ask()) {
        approver = Some(Arc::new(ViewersFirst {
            feed: feed.clone(),
            earlier: route.earlier_answers(),
            client_approver: approver,
            session: tools.session().id().to_owned(),
            client: client.clone(),
            session_grants,
            cancel: cancel.clone(),
        }));
    }
    let approver = approver.map(|approver| approval_time.of(approver));
    let token = context.meta.get_progress_token();
    let progress = if token.is_some() { Progress::enabled() } else { Progress::default() };
    let begin = Instant::now();
    let name = tool.entry.name;
    let mut arguments = Some(Value::Object(request.arguments.unwrap_or_default()));
    // A small read of a cached file takes less time than waking another thread. A call that fails, or finds
    // that it would have to wait after all, is made again on a thread.
    let mut prepared = None;
    if tool.entry.reads && !stop.is_received() {
        let call = prepared.insert(tools.prepare(name, arguments.take().unwrap_or_default()));
        let options =
            CallOptions::default().with_cancel(cancel.clone()).with_client(client.clone());
        if let Some(answer) = read_cached(&tools, call, options) {
            return finish((conversation, &context), name, begin, answer).await;
        }
    }
    if let Some(stuck) = shared.stuck.at_limit() {
        return refuse(stuck.into());
    }
    let call = CallOptions::default().with_cancel(cancel.clone()).with_progress(progress.clone());
    let call = call.with_approver(approver).with_client(client.clone());
    let call = call.with_audit_line(audit_line.clone()).with_turn(label);
    let work = {
        let (stop, tools) = (stop.clone(), tools.clone());
        move || {
            // It may have waited for a thread for long.
            if stop.is_received() {
                call.cancel.cancel();
            }
            let prepared =
                prepared.unwrap_or_else(|| tools.prepare(name, arguments.unwrap_or_default()));
            (tools.perform(&prepared, &call), tools.describe(&prepared))
        }
    };
    let mut work = run(&shared.running, work);
    let mut reports = Reports::new(token, options.progress_every);
    let seconds = tools.session().settings().deadline_seconds;
    let limit = answer_after(seconds);
    let ended = {
        let mut approvals = std::pin::pin!(route.forward(&context));
        loop {
            tokio::select! {
                done = &mut work => break Ok(done),
                () = stop.received() => break Err(Error::Cancelled),
                () = approval_time.is_up(begin, limit) => break Err(Error::Timeout { seconds }),
                // Other changes need not wait for the user: after an approval, the change is planned anew.
                () = approval_time.begun.notified() => turn = None,
                // Awaited here, so no progress notification is sent after the result.
                () = reports.due() => reports.send(&progress, &context.peer).await,
                () = &mut approvals => unreachable!("requests are forwarded until the call is done"),
            }
        }
    };
    let done = match ended {
        Ok(done) => done,
        Err(error) => {
            cancel.cancel();
            route.close();
            // A thread that was only now asked to stop gets the time to.
            let wait = match error {
                Error::Cancelled => limits::STUCK_AFTER,
                _ => Duration::ZERO,
            };
            match tokio::time::timeout(wait, &mut work).await {
                Ok(done) => done,
                Err(_) => {
                    tracing::warn!(tool = name, "a call does not stop; its thread is left behind");
                    shared.stuck.watch(work);
                    return refuse(error.into());
                }
            }
        }
    };
    drop(turn);
    if let Some(input) = route.input_required(shared.codec.as_ref(), &binding, state.roots)? {
        return Ok(input.into());
    }
    let Ok(Some(done)) = done else {
        tracing::error!("a call panicked");
        return Err(ErrorData::internal_error("the call failed: a bug in the server", None));
    };
    finish((conversation, &context), name, begin, done).await
}

/// The turn of the agent that a request's changes belong to, which `_meta["pinfold/checkpoint"]` names.
fn checkpoint_label(context: &RequestContext<RoleServer>) -> Result<Option<String>, ErrorData> {
    match context.meta.0.0.get("pinfold/checkpoint") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(label)) if (1..=MAX_LABEL_BYTES).contains(&label.len()) => {
            Ok(Some(label.clone()))
        }
        Some(_) => {
            let problem = format!(
                "`_meta[\"pinfold/checkpoint\"]` must be a string of 1 to {MAX_LABEL_BYTES} bytes"
            );
            Err(ErrorData::invalid_params(problem, None))
        }
    }
}

/// Performs a read of one file here, if the file is small and in the page cache. `None` if it has to wait, or fails.
fn read_cached(
    tools: &Toolbox,
    call: &PreparedCall,
    options: CallOptions,
) -> Option<(Answer, Option<String>)> {
    let options = options.with_cached_file(tools.cached_file(call)?);
    let answer = tools.perform(call, &options);
    (!answer.failed()).then(|| (answer, tools.describe(call)))
}

/// Logs the outcome of a call, to the client too if it wants that, and makes the result.
async fn finish(
    (conversation, context): (&Conversation, &RequestContext<RoleServer>),
    name: &str,
    begin: Instant,
    (answer, compact): (Answer, Option<String>),
) -> Result<CallToolResponse, ErrorData> {
    let outcome = reply::outcome(&answer);
    let milliseconds = begin.elapsed().as_millis() as u64;
    tracing::info!(tool = name, %outcome, milliseconds, "call");
    conversation.log_search_status();
    if server::is_logged(conversation, context, LoggingLevel::Debug) {
        let message = json!({
            "tool": name, "params": compact, "outcome": outcome, "milliseconds": milliseconds,
        });
        server::log(&context.peer, LoggingLevel::Debug, message).await;
    }
    Ok(reply::result(answer, compact).into())
}

/// Tells a call to stop: its request was cancelled, or the server stops.
#[derive(Clone)]
struct StopSignal {
    request: CancellationToken,
    server: CancellationToken,
}

impl StopSignal {
    async fn received(&self) {
        tokio::select! {
            () = self.request.cancelled() => {}
            () = self.server.cancelled() => {}
        }
    }

    fn is_received(&self) -> bool {
        self.request.is_cancelled() || self.server.is_cancelled()
    }
}

/// Progress notifications, if the client has asked for them.
struct Reports {
    wanted: Option<(ProgressToken, Interval)>,
    reported: u64,
}

impl Reports {
    fn new(token: Option<ProgressToken>, every: Duration) -> Self {
        let wanted = token.map(|token| {
            let mut clock = interval(every.max(limits::MIN_PROGRESS_INTERVAL));
            clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
            (token, clock)
        });
        Self { wanted, reported: 0 }
    }

    /// Waits until the next report is due.
    async fn due(&mut self) {
        match &mut self.wanted {
            Some((_, clock)) => _ = clock.tick().await,
            None => std::future::pending().await,
        }
    }

    async fn send(&mut self, progress: &Progress, peer: &Peer<RoleServer>) {
        let visited = progress.entries_visited();
        let Some((token, _)) = self.wanted.as_ref().filter(|_| visited > self.reported) else {
            return;
        };
        self.reported = visited;
        let report = ProgressNotificationParam::new(token.clone(), visited as f64)
            .with_message(format!("{visited} files and directories looked at"));
        let sent = tokio::time::timeout(limits::UNREAD_WAIT, peer.notify_progress(report)).await;
        // A client that is gone, or does not read, gets no more.
        if !matches!(sent, Ok(Ok(()))) {
            self.wanted = None;
        }
    }
}
