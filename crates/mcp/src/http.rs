//! The protocol over HTTP.
//!
//! One workspace is at `/mcp`; each of several is at `/mcp/NAME`. Clients send `POST`, `GET` and `DELETE` there. `GET
//! /healthz` and `GET /readyz` are health checks.

mod body;
mod connections;
mod endpoint;
mod router;
mod scrape;
mod sessions;
mod stream;
mod tokens;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
pub use pinfold_guard::{Guard, TokenHash};
use rmcp::ServerHandler;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::metrics::Metrics;
use crate::{Service, Stop, limits};

use connections::{Connection, Connections};
use endpoint::{BODY_UNIT, Endpoint, Lifecycle};
use router::Router;
use scrape::Scrape;
use stream::Stream;
use tokens::LimitReached;
pub use tokens::{Token, TokenLimits, Tokens};

/// How clients are served over HTTP.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Decides which requests are accepted.
    pub guard: Guard,
    /// The maximum size of a request's body.
    pub max_body_bytes: usize,
    /// The maximum number of HTTP sessions at a time, for each workspace.
    pub max_sessions: usize,
    /// A session without a request for this long ends.
    pub session_idle: Duration,
    /// A session with a request in this time does not end to make room for another.
    pub session_busy: Duration,
    /// The maximum number of open connections.
    pub max_connections: usize,
    /// How long running calls may take once the server drains.
    pub drain: Duration,
    /// How long a client may take to read an answer for whose memory other calls wait.
    pub answer_wait: Duration,
    /// How long a long body waits for memory that the bodies of other requests take.
    pub body_memory_wait: Duration,
    /// Counts requests.
    pub metrics: Option<Arc<Metrics>>,
}

impl HttpOptions {
    /// The default limits.
    pub fn new(guard: Guard) -> Self {
        Self {
            guard,
            max_body_bytes: limits::MAX_MESSAGE_BYTES,
            max_sessions: limits::MAX_CONVERSATIONS,
            session_idle: limits::CONVERSATION_IDLE,
            session_busy: limits::http::SESSION_BUSY,
            max_connections: limits::http::MAX_CONNECTIONS,
            drain: limits::http::DRAIN,
            answer_wait: limits::http::ANSWER_WAIT,
            body_memory_wait: limits::http::BODY_MEMORY_WAIT,
            metrics: None,
        }
    }
}

/// A workspace and the tokens that are valid for it. It is served at `/mcp/NAME`, with the name in the service's
/// options, or at `/mcp` if it has no name.
#[derive(Clone, Debug)]
pub struct ServedWorkspace {
    /// The tools on the workspace.
    pub service: Service,
    /// The tokens that are accepted now.
    pub tokens: watch::Receiver<Tokens>,
}

impl ServedWorkspace {
    /// A workspace for clients without tokens.
    pub fn without_token(service: Service) -> Self {
        Self { service, tokens: watch::channel(Tokens::NotNeeded).1 }
    }
}

/// The sockets that a server listens on.
#[derive(Debug)]
pub struct Listeners {
    /// For clients.
    pub clients: TcpListener,
    /// For `GET /metrics`, if the options have metrics.
    pub metrics: Option<TcpListener>,
}

/// Serves any number of clients until `stop` is cancelled.
///
/// Must be called on a Tokio runtime.
pub async fn serve(
    workspaces: &[ServedWorkspace],
    listeners: Listeners,
    options: HttpOptions,
    stop: Stop,
) {
    let lifecycle = Lifecycle::new(&stop);
    let endpoint = |it: &ServedWorkspace| {
        let requests = it.service.clone();
        let name = &it.service.0.options.workspace;
        let new_handler = move || requests.for_http();
        Endpoint::new(name, new_handler, it.tokens.clone(), options.clone(), lifecycle.clone())
    };
    let endpoints: Vec<_> = workspaces.iter().map(endpoint).map(Arc::new).collect();
    let scraped = listeners.metrics.zip(options.metrics.clone()).map(|(listener, metrics)| {
        let (workspaces, endpoints) = (workspaces.to_vec(), endpoints.clone());
        let scrape = Scrape { guard: options.guard.clone(), metrics, workspaces, endpoints };
        AbortOnDropHandle::new(tokio::spawn(scrape.serve(listener)))
    });
    accept(endpoints, listeners.clients, options, lifecycle, stop).await;
    drop(scraped);
    let services = workspaces.iter().map(|it| &it.service);
    Service::stop_all(services, limits::http::STOPPING).await;
}

/// Serves another handler of the protocol in the same way, to clients without tokens. `new_handler` makes one for each
/// session, and for each stateless request.
pub async fn serve_handler<H: ServerHandler + Send + 'static>(
    new_handler: impl Fn() -> H + Send + Sync + 'static,
    listener: TcpListener,
    options: HttpOptions,
    stop: Stop,
) {
    let lifecycle = Lifecycle::new(&stop);
    let tokens = watch::channel(Tokens::NotNeeded).1;
    let endpoint = Endpoint::new("", new_handler, tokens, options.clone(), lifecycle.clone());
    accept(vec![Arc::new(endpoint)], listener, options, lifecycle, stop).await;
}

impl Lifecycle {
    fn new(stop: &Stop) -> Self {
        let (draining, ended) = (stop.drain.clone(), CancellationToken::new());
        let bodies = Arc::new(Semaphore::new(limits::MAX_HANDLED_BYTES / BODY_UNIT));
        Self { draining, ended, calls: TaskTracker::new(), bodies }
    }

    /// Returns when no call is running any more, or after the time `drain`. Returns at once if `stop.now` is
    /// cancelled.
    async fn wait_until_over(&self, stop: &Stop, drain: Duration) {
        let drained = async {
            self.draining.cancelled().await;
            tracing::info!(calls = self.calls.len(), "draining");
            self.calls.close();
            if tokio::time::timeout(drain, self.calls.wait()).await.is_err() {
                tracing::warn!("running calls are cancelled: they take longer than the drain");
            }
        };
        tokio::select! {
            () = drained => {}
            () = stop.now.cancelled() => {}
        }
    }
}

/// Accepts connections until the server ends.
async fn accept<H: ServerHandler + Send + 'static>(
    endpoints: Vec<Arc<Endpoint<H>>>,
    listener: TcpListener,
    mut options: HttpOptions,
    lifecycle: Lifecycle,
    stop: Stop,
) {
    if let Ok(address) = listener.local_addr() {
        options.guard.listening_on(address.ip());
    }
    let upkeep: Vec<_> = endpoints
        .iter()
        .flat_map(|endpoint| {
            let (idle_check, following) = (endpoint.clone(), endpoint.clone());
            [
                tokio::spawn(async move { idle_check.end_idle_sessions().await }),
                tokio::spawn(async move { following.follow_tokens().await }),
            ]
        })
        .map(AbortOnDropHandle::new)
        .collect();
    let drain = options.drain;
    let router = Arc::new(Router {
        guard: options.guard,
        endpoints,
        lifecycle: lifecycle.clone(),
        metrics: options.metrics,
    });
    let open = Connections::new(options.max_connections, options.answer_wait);
    let tasks = TaskTracker::new();
    let mut over = std::pin::pin!(lifecycle.wait_until_over(&stop, drain));
    loop {
        let accepted = tokio::select! {
            // A server that drains still accepts connections: the client of a new call gets a 503 and tries again,
            // which it would not do at a closed port.
            accepted = listener.accept() => accepted,
            () = &mut over => break,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(limits::http::ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Some(connection) = open.open(address.ip()) else {
            tracing::warn!(address = %address.ip(), "there are too many connections");
            continue;
        };
        tasks.spawn(serve_connection(stream, connection, router.clone(), lifecycle.ended.clone()));
    }
    drop(listener);
    lifecycle.ended.cancel();
    tasks.close();
    if tokio::time::timeout(limits::LAST_CALLS, tasks.wait()).await.is_err() {
        tracing::debug!("connections are left open");
    }
    drop(upkeep);
}

async fn serve_connection<H: ServerHandler + Send + 'static>(
    stream: TcpStream,
    connection: Connection,
    router: Arc<Router<H>>,
    ended: CancellationToken,
) {
    // Without this, Nagle's algorithm delays an answer by up to 40 ms.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("TCP_NODELAY: {error}");
    }
    let connection = Arc::new(connection);
    let stream = Stream::new(stream, connection.clone());
    let answer = service_fn(|request| {
        let (router, connection) = (router.clone(), connection.clone());
        async move { Ok::<_, Infallible>(router.answer(request, &connection).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits::http::HEAD_WAIT);
    let mut served = std::pin::pin!(http.serve_connection(TokioIo::new(stream), answer));
    let ended = tokio::select! {
        ended = &mut served => ended,
        () = connection.closed() => Ok(()),
        () = ended.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection broke: {error}");
    }
}
