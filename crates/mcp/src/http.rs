//! The protocol over HTTP: `POST`, `GET` and `DELETE /mcp`, and `GET /healthz`.

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
use rmcp::ServerHandler;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::fault::{fault, too_many_values};
pub use crate::guard::Guard;
use crate::in_use::InUse;
use crate::{Service, limits};

/// How clients are served over HTTP.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Who is let in.
    pub guard: Guard,
    /// How many bytes a request's body may have.
    pub max_body_bytes: usize,
    /// How many sessions of the protocol there may be at once.
    pub sessions: usize,
    /// After how long without a request a session ends. While one is under way it does not.
    pub session_idle: Duration,
    /// For how long after a request a session is in use, and not ended to make room for another. While one
    /// is under way it is anyway.
    pub session_busy: Duration,
}

impl HttpOptions {
    /// The usual limits.
    pub fn new(guard: Guard) -> Self {
        Self {
            guard,
            max_body_bytes: limits::MESSAGE_BYTES,
            sessions: limits::SESSIONS,
            session_idle: limits::SESSION_IDLE,
            session_busy: limits::SESSION_BUSY,
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

/// Serves another handler of the protocol in the same way. `new_handler` is asked for one for each
/// session, and for each request that stands alone.
pub async fn serve_handler<H: ServerHandler + Send + 'static>(
    new_handler: impl Fn() -> H + Send + Sync + 'static,
    listener: TcpListener,
    options: HttpOptions,
    stop: CancellationToken,
) {
    let door = Arc::new(Door::new(new_handler, options, stop.clone()));
    let places = Arc::new(Semaphore::new(limits::CONNECTIONS));
    let connections = TaskTracker::new();
    let sweeping = door.clone();
    let _sweeping = AbortOnDropHandle::new(tokio::spawn(async move { sweeping.sweep().await }));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Too many open files, most likely: others will be closed.
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            tracing::warn!("there are too many connections");
            continue;
        };
        let (door, stop) = (door.clone(), stop.clone());
        connections.spawn(async move {
            connection(stream, door, stop).await;
            drop(place);
        });
    }
    connections.close();
    if tokio::time::timeout(limits::LAST_CALLS, connections.wait()).await.is_err() {
        tracing::debug!("connections are left open");
    }
}

async fn connection<H: ServerHandler + Send + 'static>(
    stream: TcpStream,
    door: Arc<Door<H>>,
    stop: CancellationToken,
) {
    // Answers are short and written at once: to wait for more costs 40 ms and gains nothing.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("TCP_NODELAY: {error}");
    }
    let answer = service_fn(move |request| {
        let door = door.clone();
        async move { Ok::<_, Infallible>(door.answer(request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits::SENDING_HEAD);
    let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), answer));
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection broke: {error}");
    }
}

type Body = BoxBody<Bytes, Infallible>;

/// What stands between the network and the protocol.
struct Door<H> {
    inner: StreamableHttpService<H, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    options: HttpOptions,
    /// Held while a session begins, and while it is decided which ones end.
    beginning: Mutex<()>,
    in_use: InUse,
}

/// What a page is told that may talk to the server.
const PAGES: [(HeaderName, &str); 5] = [
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

impl<H: ServerHandler + Send + 'static> Door<H> {
    fn new(
        new_handler: impl Fn() -> H + Send + Sync + 'static,
        options: HttpOptions,
        stop: CancellationToken,
    ) -> Self {
        let mut sessions = LocalSessionManager::default();
        // It would end one in the midst of a call, if nothing is said meanwhile.
        sessions.session_config.keep_alive = None;
        let sessions = Arc::new(sessions);
        // Who is let in is decided before, by the guard, for everything that is here.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_json_response(true)
            .with_max_request_body_bytes(options.max_body_bytes)
            .with_cancellation_token(stop);
        let inner = StreamableHttpService::new(move || Ok(new_handler()), sessions.clone(), config);
        Self { inner, sessions, options, beginning: Mutex::default(), in_use: InUse::default() }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let page = self.options.guard.page(request.headers());
        let mut response = match self.pass(request).await {
            Ok(response) => response,
            Err((status, why)) => refusal(status, why),
        };
        if let Some(page) = page {
            let headers = response.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, page);
            for (name, value) in PAGES {
                headers.insert(name, HeaderValue::from_static(value));
            }
        }
        response
    }

    async fn pass(&self, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
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
            // A browser asks first whether a page may ask, and sends no token with that.
            "/mcp" if head.method == Method::OPTIONS => {
                guard.check_place(&head.uri, &head.headers)?;
            }
            "/mcp" => guard.check(&head.uri, &head.headers)?,
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
            let why = format!("a message can have {} values", limits::MESSAGE_VALUES);
            return Err((StatusCode::PAYLOAD_TOO_LARGE, why));
        }
        let session = head.headers.get("mcp-session-id").and_then(|id| id.to_str().ok());
        let beginning = match session {
            Some(session) if head.method == Method::POST => {
                // Whoever answers the request is given all of its head, and holds on to it meanwhile.
                match self.in_use.begin(session) {
                    Some(under_way) => _ = head.extensions.insert(under_way),
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
                self.in_use.note(session);
                None
            }
            // One after the other, so that none takes the place that another has counted on.
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
            self.in_use.add(session);
        }
        match (method, response.status()) {
            // It has ended by now; some clients complain about "accepted".
            (Method::DELETE, StatusCode::ACCEPTED) => {
                *response.status_mut() = StatusCode::NO_CONTENT
            }
            // That is said of bodies, too, that are JSON by name only.
            (Method::POST, StatusCode::UNSUPPORTED_MEDIA_TYPE) if json => {
                response = nonsense(&body)
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

    /// The whole body, if it comes in time and is not too long.
    async fn body(&self, body: Incoming) -> Result<Bytes, Refusal> {
        let limit = self.options.max_body_bytes;
        let body = Limited::new(body, limit).collect();
        match tokio::time::timeout(limits::SENDING, body).await {
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

/// Whether a body asks for a session of the protocol.
fn begins_session(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Asks<'b> {
        #[serde(borrow)]
        method: std::borrow::Cow<'b, str>,
    }
    serde_json::from_slice(body).is_ok_and(|asks: Asks<'_>| asks.method == "initialize")
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json"))
}

/// The answer to a body that is no message.
fn nonsense(body: &[u8]) -> Response<Body> {
    let problem = serde_json::from_slice::<ClientJsonRpcMessage>(body).err();
    let Some(fault) = problem.and_then(|problem| fault(body, &problem)) else {
        return refusal(StatusCode::BAD_REQUEST, "the body is no message of the protocol".into());
    };
    let (error, id) = *fault;
    let text = serde_json::to_vec(&ServerJsonRpcMessage::error(error, id)).unwrap_or_default();
    let mut response = plain(StatusCode::BAD_REQUEST, text);
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
