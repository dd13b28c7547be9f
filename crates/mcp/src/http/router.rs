//! Finds the workspace that a request is for.
//!
//! A request reaches the workspace at its path only if it carries a token of that workspace. The answer to any other
//! request does not reveal whether there is a workspace at the path.

use std::sync::Arc;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, CONNECTION, HeaderName, VARY,
};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use pinfold_guard::{Guard, bearer};
use rmcp::ServerHandler;

use super::body::{Body, Refusal, plain, refusal};
use super::connections::Connection;
use super::endpoint::{Endpoint, Lifecycle};
use crate::metrics::Metrics;

/// The workspaces of a server, and its endpoints for health checks.
pub(super) struct Router<H> {
    pub(super) guard: Guard,
    pub(super) endpoints: Vec<Arc<Endpoint<H>>>,
    pub(super) lifecycle: Lifecycle,
    pub(super) metrics: Option<Arc<Metrics>>,
}

/// The workspace that accepted a request, and the name of its token, for the log and the metrics.
#[derive(Default)]
struct RequestLabels {
    workspace: Arc<str>,
    token: Arc<str>,
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

impl<H: ServerHandler + Send + 'static> Router<H> {
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        connection: &Connection,
    ) -> Response<Body> {
        let page = self.guard.allowed_origin(request.headers());
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let mut labels = RequestLabels::default();
        connection.set_unread_body(!request.body().is_end_stream());
        let mut response = match self.handle(request, connection, &mut labels).await {
            Ok(response) => response,
            Err((status, why)) => refusal(status, why),
        };
        let status = response.status();
        if status.is_client_error() || status.is_server_error() {
            let (RequestLabels { workspace, token }, status) = (&labels, status.as_u16());
            let (workspace, address) = (&**workspace, connection.address);
            let token = Some(&**token).filter(|token| !token.is_empty());
            tracing::info!(%address, %method, path, workspace, token, status, "refused");
            if let Some(metrics) = &self.metrics {
                metrics.refused(workspace, status);
            }
        }
        if connection.has_unread_body() {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(page) = page {
            let headers = response.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, page);
            for (name, value) in CORS_HEADERS {
                headers.insert(name, HeaderValue::from_static(value));
            }
        }
        response
    }

    /// Sets `labels` if a workspace admits the request.
    async fn handle(
        &self,
        request: Request<Incoming>,
        connection: &Connection,
        labels: &mut RequestLabels,
    ) -> Result<Response<Body>, Refusal> {
        let (path, headers) = (request.uri().path(), request.headers());
        match path {
            "/healthz" => return self.probe(&request, true),
            "/readyz" => return self.probe(&request, self.is_ready()),
            _ => self.guard.check(request.uri(), headers)?,
        }
        // A browser's preflight request carries no token.
        if request.method() == Method::OPTIONS && (path == "/mcp" || path.starts_with("/mcp/")) {
            return Ok(plain(StatusCode::NO_CONTENT, ""));
        }
        let token = bearer(headers);
        // Every endpoint compares the token, so the response time does not reveal which one it belongs to.
        let admitted = self.endpoints.iter().map(|endpoint| endpoint.admit(token.as_ref()));
        let admitted: Vec<_> = self.endpoints.iter().zip(admitted).collect();
        let mut admitted = admitted.into_iter().filter_map(|(at, it)| Some((at, it?)));
        let Some(first) = admitted.next() else {
            let why = "send a valid token: `Authorization: Bearer TOKEN`; when the server started, it printed the file with its token, or with the hashes of those that `pinfold token new` made";
            return Err((StatusCode::UNAUTHORIZED, why.into()));
        };
        connection.set_authenticated();
        // Workspaces can share a token file, so a token can be valid for several.
        let token_path = first.0.path.clone();
        let mut all = std::iter::once(first).chain(admitted);
        let Some((endpoint, admitted)) = all.find(|(endpoint, _)| endpoint.path == path) else {
            let why = format!("there is nothing here for this token; it is for {token_path}");
            return Err((StatusCode::NOT_FOUND, why));
        };
        let token = admitted.caller.token.clone();
        *labels = RequestLabels { workspace: endpoint.name.clone(), token };
        Ok(endpoint.answer(request, admitted, connection).await)
    }

    /// The answer to a health check. It needs no token and reveals nothing else.
    fn probe(&self, request: &Request<Incoming>, healthy: bool) -> Result<Response<Body>, Refusal> {
        self.guard.check_host(request.uri(), request.headers())?;
        match (request.method(), healthy) {
            (&Method::GET | &Method::HEAD, true) => Ok(plain(StatusCode::OK, "ok\n")),
            (&Method::GET | &Method::HEAD, false) => {
                Ok(plain(StatusCode::SERVICE_UNAVAILABLE, "not ready\n"))
            }
            _ => Err((StatusCode::METHOD_NOT_ALLOWED, "use GET".into())),
        }
    }

    /// Whether every workspace accepts new calls.
    fn is_ready(&self) -> bool {
        let known = self.endpoints.iter().all(|endpoint| endpoint.knows_tokens());
        known && !self.lifecycle.draining.is_cancelled()
    }
}
