//! One workspace over HTTP. It checks requests, enforces the limits of sessions and tokens, and passes requests on to
//! `rmcp`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use pinfold_guard::TokenHash;
use rmcp::ServerHandler;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::body::{Body, CountedBody, Refusal, json as json_answer, refusal};
use super::connections::Connection;
use super::sessions::SessionActivity;
use super::tokens::{AdmittedRequest, Tokens, UsageByToken};
use super::{HttpOptions, LimitReached};
use crate::bad_message::{bad_message, too_many_problem, too_many_values, unreadable_call};
use crate::limits;
use crate::stop::server_ends;

/// The number of bytes in a unit of the memory for bodies.
pub(super) const BODY_UNIT: usize = 1024;

/// The lifecycle of a server, and the memory for requests, which all its endpoints share.
#[derive(Clone, Debug)]
pub(super) struct Lifecycle {
    /// Cancelled when the server accepts no new calls.
    pub(super) draining: CancellationToken,
    /// Cancelled when the server ends.
    pub(super) ended: CancellationToken,
    /// The running calls. A call runs until its answer is sent or, if the client has gone, until it has ended.
    pub(super) calls: TaskTracker,
    /// The memory for the bodies of requests, in units of [`BODY_UNIT`], until the requests are handled.
    pub(super) bodies: Arc<Semaphore>,
}

/// One workspace over HTTP.
pub(super) struct Endpoint<H> {
    /// The path, such as `/mcp` or `/mcp/NAME`.
    pub(super) path: String,
    /// The name of the workspace, or an empty string.
    pub(super) name: Arc<str>,
    inner: StreamableHttpService<H, LocalSessionManager>,
    pub(super) sessions: Arc<LocalSessionManager>,
    pub(super) options: HttpOptions,
    tokens: watch::Receiver<Tokens>,
    usage_by_token: UsageByToken,
    lifecycle: Lifecycle,
    /// Held while a session starts and while idle sessions are ended.
    pub(super) session_start: Mutex<()>,
    pub(super) activity: SessionActivity,
}

impl<H: ServerHandler + Send + 'static> Endpoint<H> {
    pub(super) fn new(
        name: &str,
        new_handler: impl Fn() -> H + Send + Sync + 'static,
        tokens: watch::Receiver<Tokens>,
        options: HttpOptions,
        lifecycle: Lifecycle,
    ) -> Self {
        let mut sessions = LocalSessionManager::default();
        // `rmcp`'s keep-alive would end a session during a long call.
        sessions.session_config.keep_alive = None;
        let sessions = Arc::new(sessions);
        // The guard has checked the host and the origin before.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            // A stateless request is answered as JSON. If it sends a notification before its result, `rmcp`
            // falls back to SSE. In an HTTP session every request is answered as SSE, so an elicitation can go
            // out before the result.
            .with_json_response(true)
            .with_max_request_body_bytes(options.max_body_bytes)
            .with_cancellation_token(lifecycle.ended.clone());
        let inner = StreamableHttpService::new(move || Ok(new_handler()), sessions.clone(), config);
        Self {
            path: if name.is_empty() { "/mcp".to_owned() } else { format!("/mcp/{name}") },
            name: name.into(),
            inner,
            sessions,
            options,
            tokens,
            usage_by_token: UsageByToken::default(),
            lifecycle,
            session_start: Mutex::default(),
            activity: SessionActivity::default(),
        }
    }

    /// Admits a request if its token is valid for this workspace.
    pub(super) fn admit(&self, given: Option<&TokenHash>) -> Option<AdmittedRequest> {
        self.usage_by_token.admit(&self.tokens.borrow(), given)
    }

    /// Whether the tokens are known.
    pub(super) fn knows_tokens(&self) -> bool {
        !matches!(*self.tokens.borrow(), Tokens::Unknown)
    }

    /// Ends a session when its token is removed or gets another mode. Returns when the channel of tokens is closed.
    pub(super) async fn follow_tokens(&self) {
        let mut tokens = self.tokens.clone();
        while tokens.changed().await.is_ok() {
            let now = tokens.borrow_and_update().clone();
            self.usage_by_token.forget_others(&now);
            let _session_start = self.session_start.lock().await;
            self.end_others(|caller| UsageByToken::is_current(&now, caller)).await;
        }
    }

    /// Answers a request that was admitted.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        admitted: AdmittedRequest,
        connection: &Connection,
    ) -> Response<Body> {
        let memory = connection.answer_memory();
        let (mut head, body) = request.into_parts();
        // The head of the request and the body of the answer hold the token: a call ends when both are dropped. The
        // event stream of a session is not a call.
        let call = (head.method == Method::POST).then(|| self.lifecycle.calls.token());
        head.extensions.insert(call.clone());
        head.extensions.insert(memory.clone());
        let refused = |(status, why)| refusal(status, why);
        let mut response = match self.checked(&head, body, &admitted, connection).await {
            Ok((body, memory)) => {
                head.extensions.insert(memory);
                self.handle(head, body, &admitted).await.unwrap_or_else(refused)
            }
            Err(response) => response,
        };
        if self.lifecycle.draining.is_cancelled() {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let (usage, metrics, name) =
            (admitted.usage, self.options.metrics.clone(), self.name.clone());
        let report = move |bytes| {
            usage.add_bytes(bytes);
            if let Some(metrics) = &metrics {
                metrics.sent(&name, bytes);
            }
        };
        response.map(|inner| CountedBody::new(inner, report, (call, memory)).boxed())
    }

    /// Reads the body of a request, if the limits and the state of the server allow it.
    async fn checked(
        &self,
        head: &http::request::Parts,
        body: Incoming,
        admitted: &AdmittedRequest,
        connection: &Connection,
    ) -> Result<(Bytes, BodyMemory), Response<Body>> {
        let refused = |(status, why)| refusal(status, why);
        // A `POST` may carry an answer or a notification for a running call.
        if self.lifecycle.draining.is_cancelled() && head.method == Method::GET {
            return Err(ending(None));
        }
        let length = body.size_hint().exact().map(|it| usize::try_from(it).unwrap_or(usize::MAX));
        if length.is_some_and(|length| length > self.options.max_body_bytes) {
            return Err(refused(self.too_long()));
        }
        let (body, memory) = self.body(body, length).await.map_err(refused)?;
        connection.set_unread_body(false);
        if let Some(metrics) = &self.options.metrics {
            metrics.received(&self.name, body.len());
        }
        if self.lifecycle.draining.is_cancelled() && head.method == Method::POST {
            let message = MessageHead::parse(&body);
            if message.method.is_some() && message.id.is_some() {
                return Err(ending(message.id));
            }
        }
        if head.method == Method::POST {
            let counted = admitted.usage.count(&admitted.limits, Instant::now());
            counted.map_err(|limit| limit_reached(&limit, &body))?;
            admitted.usage.add_bytes(body.len());
        }
        if too_many_values(&body) {
            return Err(refused((StatusCode::PAYLOAD_TOO_LARGE, too_many_problem())));
        }
        Ok((body, memory))
    }

    async fn handle(
        &self,
        mut head: http::request::Parts,
        body: Bytes,
        admitted: &AdmittedRequest,
    ) -> Result<Response<Body>, Refusal> {
        let caller = &admitted.caller;
        head.extensions.insert(caller.clone());
        let session = head.headers.get("mcp-session-id").and_then(|id| id.to_str().ok());
        let session_start = match session {
            Some(session) if self.has_session(session).await => {
                // To this caller, a session of another caller does not exist, and neither does a session that is
                // about to end.
                let Some(active) = self.activity.begin(session, caller) else {
                    return Err(no_session());
                };
                // The handler keeps the head of the request until it has handled the request.
                if head.method == Method::POST {
                    head.extensions.insert(active);
                }
                None
            }
            Some(_) if head.method == Method::DELETE => return Err(no_session()),
            Some(_) => None,
            // Sessions start one at a time, so no other session takes the room that is made for this one.
            None if MessageHead::parse(&body).method.as_deref() == Some("initialize") => {
                Some(self.session_start.lock().await)
            }
            None => None,
        };
        if session_start.is_some() {
            self.make_room(caller).await?;
        }
        let (method, json) = (head.method.clone(), is_json(&head.headers));
        let mut response = self.pass_on(head.clone(), body.clone()).await;
        if method == Method::POST
            && json
            && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE
            && let Some(call) = unreadable_call(&body)
        {
            response = self.pass_on(head, call.to_string().into()).await;
        }
        if session_start.is_some()
            && let Some(session) = response.headers().get("mcp-session-id")
            && let Ok(session) = session.to_str()
        {
            self.activity.add(session, caller);
        }
        match (method, response.status()) {
            // The session has already ended, and some clients reject `202 Accepted`.
            (Method::DELETE, StatusCode::ACCEPTED) => {
                *response.status_mut() = StatusCode::NO_CONTENT
            }
            // `rmcp` also answers with this status if it cannot parse the body.
            (Method::POST, StatusCode::UNSUPPORTED_MEDIA_TYPE) if json => {
                response = unparsed(&body);
            }
            _ => {}
        }
        Ok(response)
    }

    async fn pass_on(&self, head: http::request::Parts, body: Bytes) -> Response<Body> {
        self.inner.handle(Request::from_parts(head, Full::new(body))).await
    }

    fn too_long(&self) -> Refusal {
        let limit = self.options.max_body_bytes;
        let why = format!(
            "a body can have at most {limit} bytes (`max_body_bytes` in `[http]`); make several calls"
        );
        (StatusCode::PAYLOAD_TOO_LARGE, why)
    }

    /// Reads the body. Fails if it takes too long or is too large. A long body waits until there is memory for it.
    async fn body(
        &self,
        mut body: Incoming,
        length: Option<usize>,
    ) -> Result<(Bytes, BodyMemory), Refusal> {
        let mut bytes = BytesMut::new();
        let small = limits::http::MAX_SMALL_BODY;
        if length.is_none_or(|length| length <= small)
            && self.read_body(&mut body, &mut bytes, small).await?
        {
            return Ok((bytes.freeze(), None));
        }
        // A body of unknown length may become as long as the limit.
        let length = length.unwrap_or(self.options.max_body_bytes);
        let units = length.min(limits::MAX_HANDLED_BYTES).div_ceil(BODY_UNIT) as u32;
        let memory = self.lifecycle.bodies.clone().acquire_many_owned(units);
        let Ok(Ok(memory)) = timeout(self.options.body_memory_wait, memory).await else {
            let why = "other requests take the memory for bodies; send the request again later";
            return Err((StatusCode::SERVICE_UNAVAILABLE, why.into()));
        };
        bytes.reserve(length.saturating_sub(bytes.len()).min(limits::MAX_MESSAGE_BYTES));
        self.read_body(&mut body, &mut bytes, usize::MAX).await?;
        Ok((bytes.freeze(), Some(Arc::new(memory))))
    }

    /// Reads more of the body, until there are more than `enough` bytes. Returns whether it has ended.
    async fn read_body(
        &self,
        body: &mut Incoming,
        bytes: &mut BytesMut,
        enough: usize,
    ) -> Result<bool, Refusal> {
        let read = async {
            while bytes.len() <= enough {
                let Some(frame) = body.frame().await else { return Ok(true) };
                let broken = |error| format!("the body broke off: {error}");
                let frame = frame.map_err(|error| (StatusCode::BAD_REQUEST, broken(error)))?;
                bytes.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new()));
                if bytes.len() > self.options.max_body_bytes {
                    return Err(self.too_long());
                }
            }
            Ok(false)
        };
        let late = (StatusCode::REQUEST_TIMEOUT, "the body did not come in time".into());
        timeout(limits::http::BODY_WAIT, read).await.unwrap_or(Err(late))
    }
}

/// The memory of a long body, until its request is handled.
type BodyMemory = Option<Arc<OwnedSemaphorePermit>>;

fn no_session() -> Refusal {
    (StatusCode::NOT_FOUND, "there is no such session".into())
}

/// The method and the id of a message.
#[derive(Default, Deserialize)]
struct MessageHead {
    #[serde(default)]
    id: Option<RequestId>,
    #[serde(default)]
    method: Option<String>,
}

impl MessageHead {
    /// Both are `None` if the body is not a message.
    fn parse(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }
}

/// The answer to a new request while the server shuts down.
fn ending(id: Option<RequestId>) -> Response<Body> {
    retry(StatusCode::SERVICE_UNAVAILABLE, server_ends(), id, Duration::from_secs(1))
}

/// The answer to a request over a limit of its token.
pub(super) fn limit_reached(
    LimitReached { limit, wait }: &LimitReached,
    body: &[u8],
) -> Response<Body> {
    let why = format!("this token may have {limit}; send the request again later");
    let data = json!({"error": "too_many_requests", "limit": limit});
    let error = ErrorData::new(TOO_MANY_REQUESTS, why, Some(data));
    retry(StatusCode::TOO_MANY_REQUESTS, error, MessageHead::parse(body).id, *wait)
}

/// A code that JSON-RPC leaves to servers.
const TOO_MANY_REQUESTS: ErrorCode = ErrorCode(-32029);

/// An error of the protocol, with a status and a header that proxies and HTTP clients understand, too.
fn retry(
    status: StatusCode,
    error: ErrorData,
    id: Option<RequestId>,
    wait: Duration,
) -> Response<Body> {
    let text = serde_json::to_vec(&ServerJsonRpcMessage::error(error, id)).unwrap_or_default();
    let mut response = json_answer(status, text);
    let seconds = wait.as_secs_f64().ceil().clamp(1.0, 3600.0) as u64;
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json"))
}

/// The answer to a body that is not a message. The status is 200 if it is a request with invalid
/// parameters, and its id can be read.
fn unparsed(body: &[u8]) -> Response<Body> {
    let problem = serde_json::from_slice::<ClientJsonRpcMessage>(body).err();
    let Some(bad_message) = problem.and_then(|problem| bad_message(body, &problem)) else {
        return refusal(
            StatusCode::BAD_REQUEST,
            "the body is not a message of the protocol".into(),
        );
    };
    let (error, id) = *bad_message;
    let answers = error.code == ErrorCode::INVALID_PARAMS && id.is_some();
    let status = if answers { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    let text = serde_json::to_vec(&ServerJsonRpcMessage::error(error, id)).unwrap_or_default();
    json_answer(status, text)
}
