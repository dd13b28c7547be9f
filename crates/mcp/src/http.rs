//! The protocol over HTTP: `POST`, `GET` and `DELETE /mcp`, and `GET /healthz`.

mod connections;
mod sessions;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap,
    HeaderName, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
pub use pinfold_guard::Guard;
use rmcp::ServerHandler;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::fault::{fault, too_many_values};
use crate::{Service, limits};

use connections::{Connection, Connections};
use sessions::SessionActivity;

/// How clients are served over HTTP.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Which requests are accepted.
    pub guard: Guard,
    /// How many bytes a request's body may have.
    pub max_body_bytes: usize,
    /// How many sessions of the protocol there may be at once.
    pub sessions: usize,
    /// After how long without a request a session ends.
    pub session_idle: Duration,
    /// For how long after a request a session does not end to make room for another.
    pub session_busy: Duration,
}

impl HttpOptions {
    /// The usual limits.
    pub fn new(guard: Guard) -> Self {
        Self {
            guard,
            max_body_bytes: limits::MAX_MESSAGE_BYTES,
            sessions: limits::MAX_SESSIONS,
            session_idle: limits::SESSION_IDLE,
            session_busy: limits::http::SESSION_BUSY,
        }
    }
}

/// Serves any number of clients on a listener, until `stop` is cancelled.
///
/// Must be called on a Tokio runtime.
pub async fn serve(
    service: &Service,
    listener: TcpListener,
    options: HttpOptions,
    stop: CancellationToken,
) {
    let requests = service.clone();
    serve_handler(move || requests.handler(), listener, options, stop).await;
    service.stop().await;
}

/// Serves another handler of the protocol in the same way. `new_handler` makes one for each session, and for each
/// stateless request.
pub async fn serve_handler<H: ServerHandler + Send + 'static>(
    new_handler: impl Fn() -> H + Send + Sync + 'static,
    listener: TcpListener,
    mut options: HttpOptions,
    stop: CancellationToken,
) {
    if let Ok(address) = listener.local_addr() {
        options.guard.listening_on(address.ip());
    }
    let endpoint = Arc::new(Endpoint::new(new_handler, options, stop.clone()));
    let open = Connections::new(limits::http::MAX_CONNECTIONS);
    let tasks = TaskTracker::new();
    let sweeping = endpoint.clone();
    let _sweeping = AbortOnDropHandle::new(tokio::spawn(async move { sweeping.sweep().await }));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Most likely there are too many open files, and others will be closed.
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Some(connection) = open.open() else {
            tracing::warn!("there are too many connections");
            continue;
        };
        tasks.spawn(serve_connection(stream, connection, endpoint.clone(), stop.clone()));
    }
    tasks.close();
    if tokio::time::timeout(limits::LAST_CALLS, tasks.wait()).await.is_err() {
        tracing::debug!("connections are left open");
    }
}

async fn serve_connection<H: ServerHandler + Send + 'static>(
    stream: TcpStream,
    connection: Connection,
    endpoint: Arc<Endpoint<H>>,
    stop: CancellationToken,
) {
    // Answers are written at once: waiting for more to send costs 40 ms and gains nothing.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("TCP_NODELAY: {error}");
    }
    let connection = Arc::new(connection);
    let answer = service_fn(|request| {
        let (endpoint, connection) = (endpoint.clone(), connection.clone());
        async move { Ok::<_, Infallible>(endpoint.answer(request, &connection).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits::http::HEAD_WAIT);
    let mut served = std::pin::pin!(http.serve_connection(TokioIo::new(stream), answer));
    let ended = tokio::select! {
        ended = &mut served => ended,
        () = connection.closed() => Ok(()),
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection broke: {error}");
    }
}

type Body = BoxBody<Bytes, Infallible>;

/// The HTTP endpoint: checks requests, keeps sessions within their limits, and hands requests to `rmcp`.
struct Endpoint<H> {
    inner: StreamableHttpService<H, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    options: HttpOptions,
    /// Held while a session begins, and while idle ones are ended.
    beginning: Mutex<()>,
    activity: SessionActivity,
}

/// The headers of answers to pages that may talk to the server.
const CORS_HEADERS: [(HeaderName, &str); 5] = [
    (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
    (
        ACCESS_CONTROL_ALLOW_HEADERS,
        "authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, \
         mcp-session-id",
    ),
    (ACCESS_CONTROL_EXPOSE_HEADERS, "mcp-session-id"),
    (ACCESS_CONTROL_MAX_AGE, "600"),
    (VARY, "origin"),
];

impl<H: ServerHandler + Send + 'static> Endpoint<H> {
    fn new(
        new_handler: impl Fn() -> H + Send + Sync + 'static,
        options: HttpOptions,
        stop: CancellationToken,
    ) -> Self {
        let mut sessions = LocalSessionManager::default();
        // It would end a session in the middle of a call that takes long.
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
            .with_cancellation_token(stop);
        let inner = StreamableHttpService::new(move || Ok(new_handler()), sessions.clone(), config);
        let activity = SessionActivity::default();
        Self { inner, sessions, options, beginning: Mutex::default(), activity }
    }

    async fn answer(&self, request: Request<Incoming>, connection: &Connection) -> Response<Body> {
        let page = self.options.guard.page(request.headers());
        let mut response = match self.handle(request, connection).await {
            Ok(response) => response,
            Err((status, why)) => refusal(status, why),
        };
        if let Some(page) = page {
            let headers = response.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, page);
            for (name, value) in CORS_HEADERS {
                headers.insert(name, HeaderValue::from_static(value));
            }
        }
        response
    }

    async fn handle(
        &self,
        request: Request<Incoming>,
        connection: &Connection,
    ) -> Result<Response<Body>, Refusal> {
        let (mut head, body) = request.into_parts();
        let guard = &self.options.guard;
        match head.uri.path() {
            "/healthz" => {
                guard.check_host(&head.uri, &head.headers)?;
                return match head.method {
                    Method::GET | Method::HEAD => Ok(plain(StatusCode::OK, "ok\n")),
                    _ => Err((StatusCode::METHOD_NOT_ALLOWED, "use GET".into())),
                };
            }
            // A browser's preflight request carries no token.
            "/mcp" if head.method == Method::OPTIONS => {
                guard.check_place(&head.uri, &head.headers)?;
            }
            "/mcp" => {
                guard.check(&head.uri, &head.headers)?;
                connection.set_authenticated();
            }
            _ => {
                guard.check(&head.uri, &head.headers)?;
                return Err((StatusCode::NOT_FOUND, "the server is at /mcp".into()));
            }
        }
        if head.method == Method::OPTIONS {
            return Ok(plain(StatusCode::NO_CONTENT, ""));
        }
        let length = head.headers.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse().ok());
        if length.is_some_and(|length: usize| length > self.options.max_body_bytes) {
            return Err(self.too_long());
        }
        let body = self.body(body).await?;
        if too_many_values(&body) {
            let why = format!("a message can have {} values", limits::MAX_MESSAGE_VALUES);
            return Err((StatusCode::PAYLOAD_TOO_LARGE, why));
        }
        let session = head.headers.get("mcp-session-id").and_then(|id| id.to_str().ok());
        let beginning = match session {
            Some(session) if head.method == Method::POST => {
                // The handler holds the head of the request for as long as it handles it.
                match self.activity.begin(session) {
                    Some(active) => _ = head.extensions.insert(active),
                    // It is about to end.
                    None if self.has_session(session).await => return Err(no_session()),
                    None => {}
                }
                None
            }
            Some(session) => {
                if head.method == Method::DELETE && !self.has_session(session).await {
                    return Err(no_session());
                }
                self.activity.note(session);
                None
            }
            // One after the other, so that each finds the room that was made for it.
            None if begins_session(&body) => Some(self.beginning.lock().await),
            None => None,
        };
        if beginning.is_some() {
            self.make_room().await?;
        }
        let (method, json) = (head.method.clone(), is_json(&head.headers));
        let request = Request::from_parts(head, Full::new(body.clone()));
        let mut response = self.inner.handle(request).await;
        if beginning.is_some()
            && let Some(session) = response.headers().get("mcp-session-id")
            && let Ok(session) = session.to_str()
        {
            self.activity.add(session);
        }
        match (method, response.status()) {
            // The session has ended by now; some clients complain about "accepted".
            (Method::DELETE, StatusCode::ACCEPTED) => {
                *response.status_mut() = StatusCode::NO_CONTENT
            }
            // `rmcp` answers so to bodies that it cannot parse, too.
            (Method::POST, StatusCode::UNSUPPORTED_MEDIA_TYPE) if json => {
                response = unparsed(&body);
            }
            _ => {}
        }
        Ok(response)
    }

    fn too_long(&self) -> Refusal {
        let limit = self.options.max_body_bytes;
        let why = format!("a body can have {limit} bytes (`max_body_bytes` in `[http]`)");
        (StatusCode::PAYLOAD_TOO_LARGE, why)
    }

    /// Reads the body, if it arrives in time and is not too long.
    async fn body(&self, body: Incoming) -> Result<Bytes, Refusal> {
        let limit = self.options.max_body_bytes;
        let body = Limited::new(body, limit).collect();
        match tokio::time::timeout(limits::http::BODY_WAIT, body).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(self.too_long()),
            Ok(Err(error)) => {
                Err((StatusCode::BAD_REQUEST, format!("the body broke off: {error}")))
            }
            Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the body did not come in time".into())),
        }
    }
}

type Refusal = (StatusCode, String);

fn no_session() -> Refusal {
    (StatusCode::NOT_FOUND, "there is no such session".into())
}

/// Whether a body is an `initialize` request.
fn begins_session(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Request<'b> {
        #[serde(borrow)]
        method: std::borrow::Cow<'b, str>,
    }
    serde_json::from_slice(body).is_ok_and(|request: Request<'_>| request.method == "initialize")
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json"))
}

/// The answer to a body that is no message: an ordinary one if it is known which request that answers.
fn unparsed(body: &[u8]) -> Response<Body> {
    let problem = serde_json::from_slice::<ClientJsonRpcMessage>(body).err();
    let Some(fault) = problem.and_then(|problem| fault(body, &problem)) else {
        return refusal(StatusCode::BAD_REQUEST, "the body is no message of the protocol".into());
    };
    let (error, id) = *fault;
    let answers = error.code == ErrorCode::INVALID_PARAMS && id.is_some();
    let status = if answers { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    let text = serde_json::to_vec(&ServerJsonRpcMessage::error(error, id)).unwrap_or_default();
    let mut response = plain(status, text);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn refusal(status: StatusCode, why: String) -> Response<Body> {
    let mut response = plain(status, why + "\n");
    let extra = match status {
        StatusCode::UNAUTHORIZED => Some((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
        StatusCode::SERVICE_UNAVAILABLE => Some((RETRY_AFTER, HeaderValue::from_static("60"))),
        _ => None,
    };
    response.headers_mut().extend(extra.map(|(name, value)| (Some(name), value)));
    response
}

fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(text.into()).boxed());
    *response.status_mut() = status;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text);
    response
}
