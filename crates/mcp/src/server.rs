//! Answers the requests of the protocol.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use pinfold::Error;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, ErrorCode,
    InitializeRequestParams, InitializeResult, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod,
    ListResourcesResult, ListToolsResult, LoggingLevel, LoggingMessageNotificationParam,
    PaginatedRequestParams, ProtocolVersion, ServerConfig, SetLevelRequestMethod,
    SetLevelRequestParams, Tool,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler};
use serde_json::Value;

use crate::bad_message::UNREADABLE;
use crate::caller::Caller;
use crate::conversation::{Conversation, ConversationName, IdentifiedBy};
use crate::service::ServiceState;
use crate::{call, limits, tool_result};

/// Answers a client's requests.
#[derive(Debug)]
pub struct Server {
    shared: Arc<ServiceState>,
    /// The conversation of the connection or of the HTTP session. A server for stateless requests has none.
    own: OnceLock<Arc<Conversation>>,
    /// The caller that began the HTTP session.
    caller: OnceLock<Caller>,
    /// Whether all requests belong to `own`: they come through one connection, or the first was `initialize`.
    has_own_conversation: AtomicBool,
    /// Whether its client is on standard input and output, where [`line`](crate::line::serialize) serialises
    /// messages.
    on_stdio: bool,
}

impl Server {
    /// A server for one connection on streams. All its requests belong to one conversation.
    pub(crate) fn for_stream(shared: Arc<ServiceState>) -> Self {
        Self {
            shared,
            own: OnceLock::new(),
            caller: OnceLock::new(),
            has_own_conversation: true.into(),
            on_stdio: true,
        }
    }

    /// A server for an HTTP session, if its first request is `initialize`; otherwise for stateless requests.
    #[cfg(feature = "http")]
    pub(crate) fn for_http(shared: Arc<ServiceState>) -> Self {
        Self { has_own_conversation: false.into(), on_stdio: false, ..Self::for_stream(shared) }
    }

    fn own(&self) -> &Arc<Conversation> {
        self.own.get_or_init(|| {
            let session = self.shared.toolbox.session().for_another_agent();
            let session = match self.caller.get() {
                Some(caller) => caller.restrict_mode(session),
                None => session,
            };
            // Some HTTP clients begin a session for each call. On streams, such sessions find each other by their
            // parent process.
            let session = if self.on_stdio { session } else { session.maybe_session_per_call() };
            self.shared.new_conversation(session)
        })
    }

    /// The problem with the parameters of a call, if they name a tool.
    fn problem(&self, mut params: Value) -> Option<String> {
        let tool = self.shared.toolbox.find(params["name"].as_str()?)?;
        Some(tool.check(params["arguments"].take()).err()?.to_string())
    }

    /// The conversation that a request belongs to. If the request comes through a connection, it is the connection's.
    /// If it names a session, it is that session's. Otherwise all clients with the same name share one.
    fn conversation(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<(Arc<Conversation>, IdentifiedBy), ErrorData> {
        let caller = Caller::of(context);
        if self.has_own_conversation.load(Ordering::Relaxed) {
            // The endpoint has checked this already.
            if self.caller.get().is_some_and(|owner| !owner.is_same(&caller)) {
                return Err(ErrorData::invalid_request(
                    "this is the session of another token",
                    None,
                ));
            }
            return Ok((self.own().clone(), IdentifiedBy::Connection));
        }
        let name = match context.meta.0.0.get("pinfold/session") {
            Some(Value::String(name))
                if (1..=limits::MAX_SESSION_NAME_BYTES).contains(&name.len()) =>
            {
                ConversationName::Session(name.clone())
            }
            Some(_) => {
                let max = limits::MAX_SESSION_NAME_BYTES;
                let problem =
                    format!("`_meta[\"pinfold/session\"]` must be a string of 1 to {max} bytes");
                return Err(ErrorData::invalid_params(problem, None));
            }
            // Clients may share a token, so only the name distinguishes them.
            None => {
                let client = context.client_info().map(|client| client.name).unwrap_or_default();
                ConversationName::Client(blake3::hash(client.as_bytes()).to_hex().to_string())
            }
        };
        let identified_by = name.identified_by();
        Ok((self.shared.stateless_conversation(&caller, name), identified_by))
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        self.shared.info.clone()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        // `rmcp` handles no other request before this one.
        _ = self.caller.set(Caller::of(&context));
        self.has_own_conversation.store(true, Ordering::Relaxed);
        if let Some(feed) = &self.shared.options.feed {
            feed.client_connected(&request.client_info.name);
        }
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|request| request.cursor.is_some()) {
            return Err(ErrorData::invalid_params("there is one page, and no cursor", None));
        }
        let mut list = self.shared.list().clone();
        if is_stateless(&context) {
            list.ttl_ms = Some(limits::LIST_TTL.as_millis() as u64);
            list.cache_scope = Some(CacheScope::Public);
        }
        Ok(list)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.shared.list().tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (conversation, identified_by) = self.conversation(&context)?;
        // Boxed: the future of a call is large, and `rmcp` moves it.
        let call = call::call(&self.shared, (&conversation, identified_by), request, context);
        let mut response = Box::pin(call).await?;
        if !self.on_stdio {
            tool_result::fill_in(&mut response);
        }
        Ok(response)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // Each stateless request has its own level.
        if is_stateless(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        self.conversation(&context)?.0.set_level(request.level);
        Ok(())
    }

    // A capability that the server does not offer is an unknown method, not an empty list.

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn on_roots_list_changed(&self, _: NotificationContext<RoleServer>) {
        // Without a call, the client was not asked for its roots.
        if let Some(own) = self.own.get() {
            own.roots_changed();
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        // A known method comes here only if its parameters do not parse.
        let known = match method.as_str() {
            "tools/call" | "tools/list" | "server/discover" => true,
            "initialize" | "logging/setLevel" => !is_stateless(&context),
            _ => false,
        };
        if known {
            let mut params = params.unwrap_or_default();
            let unreadable = params.get_mut(UNREADABLE).map(Value::take);
            if let (Some(tool), Ok((conversation, _))) =
                (params["name"].as_str(), self.conversation(&context))
            {
                let call = Caller::call_options(&context);
                let error = Error::InvalidArgument("the parameters of the call are invalid".into());
                conversation.whole().refuse_call(tool, error, &call);
            }
            if let Some(Ok(error)) = unreadable.map(serde_json::from_value) {
                return Err(error);
            }
            let problem = self.problem(params);
            let problem =
                problem.unwrap_or_else(|| format!("the parameters of `{method}` are invalid"));
            return Err(ErrorData::invalid_params(problem, None));
        }
        let problem = format!("there is no method `{method}`");
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, problem, None))
    }
}

/// Whether a request is stateless (protocol 2026-07-28): then the server cannot send requests to the client.
pub(crate) fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Whether a client gets log messages of a level.
pub(crate) fn is_logged(
    conversation: &Conversation,
    context: &RequestContext<RoleServer>,
    level: LoggingLevel,
) -> bool {
    let min_level = context.meta.log_level().or_else(|| conversation.level());
    min_level.is_some_and(|min_level| rank(level) >= rank(min_level))
}

/// The severity of a level.
fn rank(level: LoggingLevel) -> usize {
    use LoggingLevel::{Alert, Critical, Debug, Emergency, Error, Info, Notice, Warning};
    let all = [Debug, Info, Notice, Warning, Error, Critical, Alert, Emergency];
    all.iter().position(|known| *known == level).unwrap_or(all.len())
}

/// Sends a log message to a client. It is lost if the client is gone or does not read.
pub(crate) async fn log(peer: &Peer<RoleServer>, level: LoggingLevel, message: Value) {
    let message = LoggingMessageNotificationParam::new(level, message).with_logger("pinfold");
    let sent = peer.notify_logging_message(message);
    let sent = tokio::time::timeout(limits::UNREAD_WAIT, sent).await;
    if !matches!(sent, Ok(Ok(()))) {
        tracing::debug!("cannot send a log message: {sent:?}");
    }
}
