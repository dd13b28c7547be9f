//! The protocol's requests, answered.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode,
    InitializeRequestParams, InitializeResult, ListToolsResult, LoggingLevel,
    LoggingMessageNotificationParam, PaginatedRequestParams, ServerConfig, SetLevelRequestParams,
    Tool,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler};
use serde_json::Value;

use crate::conversation::Conversation;
use crate::service::Shared;
use crate::{call, limits};

/// Answers a client's requests.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    /// The conversation of the connection, if there is one.
    own: OnceLock<Arc<Conversation>>,
    connected: AtomicBool,
}

impl Server {
    /// For one connection, which is one conversation.
    pub(crate) fn connected(shared: Arc<Shared>) -> Self {
        Self { shared, own: OnceLock::new(), connected: true.into() }
    }

    /// For requests that stand alone, or, if the first of them is `initialize`, for a connection.
    pub(crate) fn loose(shared: Arc<Shared>) -> Self {
        Self { connected: false.into(), ..Self::connected(shared) }
    }

    fn own(&self) -> &Arc<Conversation> {
        self.own.get_or_init(|| self.shared.conversation())
    }

    /// The conversation that a request belongs to: the connection's, or else the one that the client
    /// names, or else the client's.
    fn conversation(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<Conversation>, ErrorData> {
        if self.connected.load(Ordering::Relaxed) {
            return Ok(self.own().clone());
        }
        let name = match context.meta.0.0.get("pinfold/session") {
            Some(Value::String(name)) if (1..=limits::SESSION_NAME_CHARS).contains(&name.len()) => {
                format!("named {name}")
            }
            Some(_) => {
                let most = limits::SESSION_NAME_CHARS;
                let problem =
                    format!("`_meta[\"pinfold/session\"]` must be a string of 1 to {most} bytes");
                return Err(ErrorData::invalid_params(problem, None));
            }
            // There is one token for all clients of a server, so the name alone tells them apart.
            None => {
                format!("client {}", context.client_info().map(|it| it.name).unwrap_or_default())
            }
        };
        Ok(self.shared.named(&name))
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
        self.connected.store(true, Ordering::Relaxed);
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        match request.and_then(|request| request.cursor) {
            None => Ok(self.shared.list.clone()),
            Some(_) => Err(ErrorData::invalid_params("there is one page, and no cursor", None)),
        }
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.shared.list.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let conversation = self.conversation(&context)?;
        call::call(&self.shared, &conversation, request, context).await
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.conversation(&context)?.set_level(request.level);
        Ok(())
    }

    async fn on_roots_list_changed(&self, _: NotificationContext<RoleServer>) {
        self.own().roots_changed();
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, .. } = request;
        // A method that is known comes here only if its parameters are not what they must be.
        if KNOWN.contains(&method.as_str()) {
            let problem = format!("the parameters of `{method}` are not what they must be");
            return Err(ErrorData::invalid_params(problem, None));
        }
        Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            format!("there is no method `{method}`"),
            None,
        ))
    }
}

const KNOWN: [&str; 5] =
    ["initialize", "logging/setLevel", "server/discover", "tools/call", "tools/list"];

/// Whether a client wants to be told about something of a level.
pub(crate) fn wants(
    conversation: &Conversation,
    context: &RequestContext<RoleServer>,
    level: LoggingLevel,
) -> bool {
    let wanted = context.meta.log_level().or_else(|| conversation.level());
    wanted.is_some_and(|wanted| rank(level) >= rank(wanted))
}

/// Levels by severity.
fn rank(level: LoggingLevel) -> usize {
    use LoggingLevel::{Alert, Critical, Debug, Emergency, Error, Info, Notice, Warning};
    let all = [Debug, Info, Notice, Warning, Error, Critical, Alert, Emergency];
    all.iter().position(|known| *known == level).unwrap_or(all.len())
}

/// Tells a client something. If it is gone, it does not matter.
pub(crate) async fn log(peer: &Peer<RoleServer>, level: LoggingLevel, says: Value) {
    let says = LoggingMessageNotificationParam::new(level, says).with_logger("pinfold");
    if let Err(error) = peer.notify_logging_message(says).await {
        tracing::debug!("cannot send a log message: {error}");
    }
}
