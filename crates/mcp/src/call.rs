//! One call of a tool, which [`call`] makes in these steps:
//!
//! 1. Wait for the conversation's change lock, if the tool changes something.
//! 2. Open the state that a stateless request brings from an earlier round.
//! 3. Find the tools on the part of the workspace that the client's roots leave. If a stateless client has to be asked
//!    for its roots, the call ends here with an InputRequired result.
//! 4. Take the user's answers that the state brings, which uses it up, and choose the approver: the viewers of the feed,
//!    then the client. How the client is asked depends on its protocol version.
//! 5. Perform a small read of a cached file on this thread, any other call on a thread of the pool.
//! 6. Wait for the thread, forward its approval requests and report its progress (`running.rs`). The call is answered
//!    at its deadline or when it is cancelled, even if the thread hangs.
//! 7. Answer with the result, or with the InputRequired result that asks the client. Log and count the call, however
//!    it ended.

mod running;

use std::sync::Arc;
use std::time::Instant;

use pinfold::limits::MAX_LABEL_BYTES;
use pinfold::{Approver, CallOptions, Cancel, Error, Progress, SharedAuditLine};
use pinfold_dialects::{Performed, PreparedCall, ToolEntry, Toolbox};
use rmcp::model::{CallToolRequestParams, CallToolResponse, InputRequiredResult, LoggingLevel};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use self::running::{RunningCall, StopSignal};
use crate::approve::{ApprovalRoute, ApprovalTime, CallState};
use crate::caller::Caller;
use crate::conversation::{Conversation, IdentifiedBy};
use crate::roots::{RootsState, resolve_roots};
use crate::service::ServiceState;
use crate::threads::{Priority, run, spin_until_done};
use crate::viewers::ViewersFirst;
use crate::{server, tool_result};

/// Makes a call in a conversation. `identified_by` says how the request has named the conversation.
pub(crate) async fn call(
    shared: &Arc<ServiceState>,
    (conversation, identified_by): (&Conversation, IdentifiedBy),
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let begin = Instant::now();
    let base_options = Caller::call_options(&context);
    let Some(tool) = shared.toolbox.find(&request.name) else {
        let ended = refuse_unknown(shared, conversation, &base_options, &request.name);
        shared.count("unknown", ended.result_code, begin.elapsed());
        return ended.response;
    };
    let stop = StopSignal { request: context.ct.clone(), server: shared.stopping.clone() };
    let audit_line = SharedAuditLine::default();
    let tool = tool.entry;
    let call = Call {
        shared,
        conversation,
        identified_by,
        tool,
        base_options,
        context,
        begin,
        stop,
        audit_line,
    };
    let ended = call.make(request).await.unwrap_or_else(|ended| *ended);
    call.log(&ended).await;
    ended.response
}

/// A call of a tool that exists.
struct Call<'c> {
    shared: &'c Arc<ServiceState>,
    conversation: &'c Conversation,
    identified_by: IdentifiedBy,
    tool: &'static ToolEntry,
    /// Options that name the client and its token.
    base_options: CallOptions,
    context: RequestContext<RoleServer>,
    begin: Instant,
    stop: StopSignal,
    /// The task and the thread of the call share it, so a call has one audit line even if the task gives up on the
    /// thread.
    audit_line: SharedAuditLine,
}

/// A call that has ended, with a result or with an error of the protocol.
struct Ended {
    response: Result<CallToolResponse, ErrorData>,
    /// For the log and the metrics: `ok`, the error's code, `input_required` or `protocol_error`.
    result_code: &'static str,
    /// The arguments on one line, if the tool was called.
    compact_params: Option<String>,
}

impl Ended {
    /// The tool has answered.
    fn performed(
        Performed { answer, result_code }: Performed,
        compact_params: Option<String>,
    ) -> Self {
        let response = Ok(tool_result::of_answer(answer, compact_params.clone()).into());
        Self { response, result_code, compact_params }
    }

    /// The client has to send an input, and to repeat the call with it.
    fn input_required(input: InputRequiredResult) -> Self {
        Self { response: Ok(input.into()), result_code: "input_required", compact_params: None }
    }

    fn protocol_error(error: ErrorData) -> Self {
        Self { response: Err(error), result_code: "protocol_error", compact_params: None }
    }
}

impl Call<'_> {
    /// Takes steps 1 to 7. An error is a call that ended before its tool had a result.
    async fn make(&self, request: CallToolRequestParams) -> Result<Ended, Box<Ended>> {
        let label = checkpoint_label(&self.context).map_err(|error| self.invalid(error))?;
        // A call waits for this lock before anything else, so changes are made in the order in which their requests
        // came.
        let mut change_guard = None;
        if !self.tool.annotations.read_only {
            change_guard = Some(self.unless_stopped(self.conversation.change_lock.lock()).await?);
        }
        let (mut state, binding) = self.open_state(&request)?;
        let tools = self.tools(&mut state, &request).await?;
        let cancel = Cancel::default();
        let approval_time = ApprovalTime::default();
        let (mut route, approver) =
            self.approver(&tools, &state, &request, &approval_time, &cancel).await?;
        let begin = Instant::now();
        let mut arguments = Some(Value::Object(request.arguments.unwrap_or_default()));
        // A small read of a cached file takes less time than waking another thread. If it fails or would have to
        // wait, a thread performs the prepared call.
        let mut prepared = None;
        if self.tool.reads_one_file && !self.stop.is_received() {
            let arguments = arguments.take().unwrap_or_default();
            let call = prepared.insert(tools.prepare(self.tool.name, arguments));
            if let Some(done) = read_cached(&tools, call, self.options(&cancel)) {
                return Ok(done);
            }
        }
        if let Some(stuck) = self.shared.stuck.at_limit() {
            return Err(self.refuse(stuck.into()));
        }
        let wants_progress = self.context.meta.get_progress_token().is_some();
        let progress = if wants_progress { Progress::enabled() } else { Progress::default() };
        let options = self.options(&cancel).with_progress(progress.clone());
        let options = options.with_audit_line(self.audit_line.clone());
        let options = options.with_approver(approver).with_turn(label);
        let work = {
            let (stop, tools, name) = (self.stop.clone(), tools.clone(), self.tool.name);
            move || {
                // The call may have been cancelled while it waited for a thread.
                if stop.is_received() {
                    options.cancel.cancel();
                }
                let prepared =
                    prepared.unwrap_or_else(|| tools.prepare(name, arguments.unwrap_or_default()));
                let done = tools.perform(&prepared, &options);
                Ended::performed(done, tools.compact_params_of(&prepared))
            }
        };
        let work = run(&self.shared.running, self.priority(), work);
        // A search takes longer than that, and other clients need the processor meanwhile.
        if self.priority() == Priority::Normal {
            spin_until_done(&self.shared.running, &work).await;
        }
        let seconds = tools.session().settings().deadline_seconds;
        let running = RunningCall { call: self, begin, seconds, cancel };
        let waits = running.wait_for(work, &mut route, &approval_time, change_guard, &progress);
        let done = waits.await.map_err(|error| self.refuse(error.into()))?;
        let codec = self.shared.codec.as_ref();
        let input = route.input_required(codec, &binding, state.roots);
        if let Some(input) = input.map_err(Ended::protocol_error)? {
            return Ok(Ended::input_required(input));
        }
        let Ok(Some(done)) = done else {
            tracing::error!("a call panicked");
            let error = ErrorData::internal_error("the call failed: a bug in the server", None);
            return Ok(Ended::protocol_error(error));
        };
        Ok(done)
    }

    /// A search of one client must not delay short calls of others. On standard input and output there are no others,
    /// and a search of low priority would wait for the client's own programs.
    fn priority(&self) -> Priority {
        let searches = self.tool.annotations.read_only && !self.tool.reads_one_file;
        let delays_others = searches && Caller::is_over_http(&self.context);
        if delays_others { Priority::Low } else { Priority::Normal }
    }

    /// The options of a call, wherever it is performed.
    fn options(&self, cancel: &Cancel) -> CallOptions {
        self.base_options.clone().with_cancel(cancel.clone())
    }

    /// Answers with an error of the tool, and writes the audit line.
    fn refuse(&self, error: Arc<Error>) -> Box<Ended> {
        let options = self.base_options.clone().with_audit_line(self.audit_line.clone());
        let done = self.conversation.whole().refuse_call(self.tool.name, error, &options);
        Box::new(Ended::performed(done, None))
    }

    /// Answers with an error of the protocol. The tool is not called, but the audit log has the call.
    fn invalid(&self, error: ErrorData) -> Box<Ended> {
        _ = self.refuse(Error::InvalidArgument(error.message.to_string()).into());
        Box::new(Ended::protocol_error(error))
    }

    /// Waits until the future is done, the call is cancelled or the server stops.
    async fn unless_stopped<T>(
        &self,
        waited_for: impl Future<Output = T>,
    ) -> Result<T, Box<Ended>> {
        tokio::select! {
            done = waited_for => Ok(done),
            () = self.stop.received() => Err(self.refuse(Error::Cancelled.into())),
        }
    }

    /// The state of a stateless request, and the data that the state is bound to.
    fn open_state(
        &self,
        request: &CallToolRequestParams,
    ) -> Result<(CallState, Vec<u8>), Box<Ended>> {
        if !server::is_stateless(&self.context) {
            return Ok(Default::default());
        }
        if let (Some(feed), Some(client)) = (&self.shared.options.feed, &self.base_options.client) {
            feed.client_connected(client);
        }
        // Computed for stateless requests only: hashing long arguments takes time.
        let binding = CallState::binding(self.conversation.binding(), request);
        let state = CallState::open(self.shared.codec.as_ref(), &binding, request);
        Ok((state.map_err(|error| self.invalid(error))?, binding))
    }

    /// The tools on the part of the workspace that the client's roots leave.
    async fn tools(
        &self,
        state: &mut CallState,
        request: &CallToolRequestParams,
    ) -> Result<Arc<Toolbox>, Box<Ended>> {
        let Self { shared, conversation, identified_by, context, .. } = self;
        let roots = resolve_roots(shared, conversation, *identified_by, state, request, context);
        let roots = self.unless_stopped(roots).await?;
        match roots.map_err(|error| self.invalid(error))? {
            RootsState::Known(Ok(tools)) => Ok(tools),
            RootsState::Known(Err(refusal)) => Err(self.refuse(refusal)),
            RootsState::Ask(ask) => Err(Box::new(Ended::input_required(*ask))),
        }
    }

    /// The route to the user at the client, and the approver that the engine calls. The approver asks the viewers of
    /// the feed first, if one of them answers requests, and then the client.
    async fn approver(
        &self,
        tools: &Toolbox,
        state: &CallState,
        request: &CallToolRequestParams,
        approval_time: &ApprovalTime,
        cancel: &Cancel,
    ) -> Result<(ApprovalRoute, Option<Arc<dyn Approver>>), Box<Ended>> {
        let session_grants = self.identified_by != IdentifiedBy::ClientName;
        let round = self.shared.used_states.claim(state, request).await;
        let round = round.map_err(|error| self.invalid(error))?;
        let (route, client) = ApprovalRoute::new(round, session_grants, &self.context);
        let client_approver = client.or_else(|| tools.session().approver().cloned());
        let viewers = self.shared.options.feed.as_ref().filter(|feed| feed.can_ask());
        let approver = match viewers {
            None => client_approver,
            Some(feed) => Some(Arc::new(ViewersFirst {
                feed: feed.clone(),
                earlier: route.earlier_answers(),
                client_approver,
                session: tools.session().id().to_owned(),
                client: self.base_options.client.clone(),
                session_grants,
                cancel: cancel.clone(),
            }) as _),
        };
        Ok((route, approver.map(|approver| approval_time.of(approver))))
    }

    /// Counts and logs the call. Also sends the log message to the client, if it has set the level.
    async fn log(&self, ended: &Ended) {
        let Self { shared, conversation, context, tool, base_options, begin, .. } = self;
        let Ended { result_code: outcome, compact_params, .. } = ended;
        let taken = begin.elapsed();
        shared.count(tool.name, outcome, taken);
        let (workspace, token) = (&shared.options.workspace, base_options.token.as_deref());
        let milliseconds = taken.as_millis() as u64;
        tracing::info!(workspace, token, tool = tool.name, outcome, milliseconds, "call");
        conversation.log_search_status();
        if server::is_logged(conversation, context, LoggingLevel::Debug) {
            let message = json!({
                "tool": tool.name, "params": compact_params, "outcome": outcome, "milliseconds": milliseconds,
            });
            server::log(&context.peer, LoggingLevel::Debug, message).await;
        }
    }
}

/// The answer to a call of an unknown tool.
fn refuse_unknown(
    shared: &ServiceState,
    conversation: &Conversation,
    base_options: &CallOptions,
    name: &str,
) -> Ended {
    let error = shared.toolbox.unknown(name);
    let message = error.with_hint();
    // The call is in the audit log, too.
    let refused = conversation.whole().refuse_call(name, error, base_options);
    if shared.toolbox.answers_unknown_tools() {
        return Ended::performed(refused, None);
    }
    Ended::protocol_error(ErrorData::invalid_params(message, None))
}

/// The label of the turn that the call's changes belong to, from `_meta["pinfold/checkpoint"]`.
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

/// Performs a read of one file on this thread, if the file is small and in the page cache. Returns `None` if the read
/// would have to wait, or fails.
fn read_cached(tools: &Toolbox, call: &PreparedCall, options: CallOptions) -> Option<Ended> {
    let options = options.with_cached_file(tools.cached_file(call)?);
    let done = tools.perform(call, &options);
    (!done.answer.failed()).then(|| Ended::performed(done, tools.compact_params_of(call)))
}
