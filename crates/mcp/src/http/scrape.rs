//! `GET /metrics`, on a listener of its own. There is no token: whoever can connect to the listener sees the numbers.

use std::convert::Infallible;
use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use pinfold_guard::Guard;
use rmcp::ServerHandler;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::ServedWorkspace;
use super::body::{Body, Refusal, plain, refusal};
use super::endpoint::Endpoint;
use crate::limits;
use crate::metrics::{Metrics, State};

/// The media type of [`Metrics::text`].
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers `GET /metrics`.
pub(super) struct Scrape<H> {
    pub(super) guard: Guard,
    pub(super) metrics: Arc<Metrics>,
    pub(super) workspaces: Vec<ServedWorkspace>,
    pub(super) endpoints: Vec<Arc<Endpoint<H>>>,
}

impl<H: ServerHandler + Send + 'static> Scrape<H> {
    /// Accepts connections and answers requests. Never returns.
    pub(super) async fn serve(mut self, listener: TcpListener) {
        if let Ok(address) = listener.local_addr() {
            self.guard.listening_on(address.ip());
        }
        let (scrape, open) = (Arc::new(self), Arc::new(Semaphore::new(limits::http::MAX_SCRAPES)));
        loop {
            let Ok(place) = open.clone().acquire_owned().await else { return };
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!("cannot accept a connection for metrics: {error}");
                    tokio::time::sleep(limits::http::ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let scrape = scrape.clone();
            tokio::spawn(async move {
                let answer = service_fn(|request| {
                    let scrape = scrape.clone();
                    async move { Ok::<_, Infallible>(scrape.answer(&request).await) }
                });
                let mut http = http1::Builder::new();
                http.timer(TokioTimer::new()).header_read_timeout(limits::http::HEAD_WAIT);
                let served = http.keep_alive(false).serve_connection(TokioIo::new(stream), answer);
                if let Ok(Err(error)) = tokio::time::timeout(limits::http::BODY_WAIT, served).await
                {
                    tracing::debug!("a connection for metrics broke: {error}");
                }
                drop(place);
            });
        }
    }

    async fn answer(&self, request: &Request<Incoming>) -> Response<Body> {
        self.numbers(request).await.unwrap_or_else(|(status, why)| refusal(status, why))
    }

    async fn numbers(&self, request: &Request<Incoming>) -> Result<Response<Body>, Refusal> {
        self.guard.check(request.uri(), request.headers())?;
        if request.uri().path() != "/metrics" {
            return Err((StatusCode::NOT_FOUND, "the metrics are at /metrics".into()));
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "use GET".into()));
        }
        for (workspace, endpoint) in self.workspaces.iter().zip(&self.endpoints) {
            let (index, sessions) =
                (workspace.service.index(), endpoint.sessions.sessions.read().await.len());
            let state = State {
                sessions,
                index_files: index.files as u64,
                index_bytes: index.bytes as u64,
            };
            self.metrics.set_state(&endpoint.name, state);
        }
        let mut response = plain(StatusCode::OK, self.metrics.text());
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(OPEN_METRICS));
        Ok(response)
    }
}
