//! The HTTP server: the requests that it answers, and the headers of its answers.
//!
//! It checks the host and the origin of a request first, then the cookie. A request that changes something must have
//! the page's own origin.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName, ORIGIN,
    REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body as HttpBody, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use pinfold_feed::WatchOptions;
use pinfold_guard::Guard;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::Receiver;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::access::Access;
use crate::api::{Api, Refusal};
use crate::history::{History, HistoryOptions};
use crate::live::Live;
use crate::{assets, limits};

/// The data that the page shows.
pub struct Options {
    /// Returns the servers to watch. Called whenever a page opens after all were closed.
    pub watch: Box<dyn Fn() -> WatchOptions + Send + Sync>,
    /// Which changes are shown.
    pub history: HistoryOptions,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("history", &self.history).finish_non_exhaustive()
    }
}

/// Serves the page until SIGTERM or SIGINT arrives. The listener must be on a loopback address. Calls `ready` with
/// the link that opens the page once.
pub fn serve(listener: TcpListener, options: Options, ready: impl FnOnce(&str)) -> io::Result<()> {
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() {
        let problem = "other machines can reach that address";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let served = runtime.block_on(async {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let (mut end, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let live = Live::new(options.watch);
        let api = Arc::new(Api { live, history: History::new(options.history) });
        let access = Access::new().map_err(io::Error::other)?;
        let link = access.link(address);
        let site = Arc::new(Site { guard: Guard::own_pages(address), access, api });
        tokio::spawn(sweep(site.api.clone()));
        ready(&link);
        let room = Arc::new(Semaphore::new(limits::MAX_CONNECTIONS));
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = end.recv() => break,
                _ = interrupt.recv() => break,
            };
            // The process may have too many open files. Others will be closed.
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(limits::CLOSE_WAIT).await;
                continue;
            };
            let Ok(permit) = room.clone().try_acquire_owned() else { continue };
            let site = site.clone();
            tokio::spawn(async move {
                serve_connection(stream, site).await;
                drop(permit);
            });
        }
        Ok(())
    });
    runtime.shutdown_background();
    served
}

/// Looks for pages that were closed.
async fn sweep(api: Arc<Api>) {
    let mut ticks = interval(limits::CLOSE_WAIT / 3);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last_ping = tokio::time::Instant::now();
    loop {
        ticks.tick().await;
        let ping = last_ping.elapsed() >= limits::PING_INTERVAL;
        if ping {
            last_ping = tokio::time::Instant::now();
        }
        api.live.sweep(ping);
    }
}

async fn serve_connection(stream: TcpStream, site: Arc<Site>) {
    // Without this, Nagle's algorithm delays an answer by up to 40 ms.
    _ = stream.set_nodelay(true);
    let answer = service_fn(|request| {
        let site = site.clone();
        async move { Ok::<_, Infallible>(site.answer(request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits::HEAD_WAIT);
    if let Err(error) = http.serve_connection(TokioIo::new(stream), answer).await {
        tracing::debug!("a connection broke: {error}");
    }
}

type Body = BoxBody<Bytes, Infallible>;

/// The page, with its access checks.
struct Site {
    guard: Guard,
    access: Access,
    api: Arc<Api>,
}

/// The headers of every answer. They forbid the browser to load anything from elsewhere, to run inline code, to treat
/// text as markup, to cache, and to embed the page in another one.
const HEADERS: [(HeaderName, &str); 6] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types lit-html",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

impl Site {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let answer = self.handle(request).await;
        let mut response = answer.unwrap_or_else(|(status, why)| {
            let mut response = body(format!("{why}\n").into(), "text/plain; charset=utf-8");
            *response.status_mut() = status;
            response
        });
        for (name, value) in HEADERS {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }

    async fn handle(&self, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let (head, content) = request.into_parts();
        self.guard.check(&head.uri, &head.headers)?;
        let Some(name) = self.access.below_base(head.uri.path()) else {
            return Err(unknown("open the link that `pinfold page` printed"));
        };
        let query = head.uri.query().unwrap_or_default();
        if name.is_empty() && !query.is_empty() && head.method == Method::GET {
            return self.enter(query, &head.headers);
        }
        if !self.access.is_known(&head.headers) {
            return Err(unknown(
                "open the link that `pinfold page` printed, or run it again for a new one",
            ));
        }
        match (&head.method, name.strip_prefix("api/")) {
            (&Method::GET, None) if name == "events" => {
                check_own_page(&head.headers)?;
                let failed = |error| (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}"));
                let events = self.api.live.open().map_err(failed)?;
                let mut response = Response::new(Events(events).boxed());
                response
                    .headers_mut()
                    .insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
                Ok(response)
            }
            (&Method::GET, None) => {
                let nothing = || (StatusCode::NOT_FOUND, "there is nothing here".to_owned());
                let (content, kind) = assets::file(name).ok_or_else(nothing)?;
                Ok(body(Bytes::from_static(content), kind))
            }
            (&Method::GET, Some(name)) => {
                check_own_page(&head.headers)?;
                Ok(json_answer(self.api.get(name, query).await))
            }
            (&Method::POST, Some(name)) => {
                // A browser sends the origin with every post, and the guard has checked that it is this page's.
                if !head.headers.contains_key(ORIGIN) {
                    return Err((StatusCode::FORBIDDEN, "the Origin header is missing".into()));
                }
                check_own_page(&head.headers)?;
                let json = HeaderValue::from_static("application/json");
                if head.headers.get(CONTENT_TYPE) != Some(&json) {
                    let why = "the content type must be application/json";
                    return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, why.into()));
                }
                let content = read(content).await?;
                Ok(json_answer(self.api.post(name, &content).await))
            }
            _ => Err((StatusCode::METHOD_NOT_ALLOWED, "use GET, or POST below api/".into())),
        }
    }

    /// Exchanges the key in the link for the cookie. A browser that has the cookie gets the page.
    fn enter(&self, query: &str, headers: &HeaderMap) -> Result<Response<Body>, Refusal> {
        // A browser that prefetches does not use up the key.
        if headers.contains_key("sec-purpose") {
            return Err((StatusCode::FORBIDDEN, "the page is not loaded in advance".into()));
        }
        let mut response = body(assets::ENTER.into(), "text/html; charset=utf-8");
        match self.access.redeem_key(query) {
            Some(cookie) => {
                let cookie = HeaderValue::from_str(&cookie).map_err(|_| unknown("try again"))?;
                response.headers_mut().insert(SET_COOKIE, cookie);
            }
            None if self.access.is_known(headers) => {}
            None => {
                return Err(unknown(
                    "this link was used already, and works once; run `pinfold page` again for a new one",
                ));
            }
        }
        Ok(response)
    }
}

fn unknown(why: &str) -> Refusal {
    (StatusCode::UNAUTHORIZED, why.into())
}

/// Refuses requests that a browser sends for a page of another site.
fn check_own_page(headers: &HeaderMap) -> Result<(), Refusal> {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    if site.is_some_and(|site| site != b"same-origin") {
        return Err((StatusCode::FORBIDDEN, "only the page itself may ask for this".into()));
    }
    Ok(())
}

/// Reads a body. Fails if it takes too long or is too large.
async fn read(content: Incoming) -> Result<Bytes, Refusal> {
    let content = Limited::new(content, limits::MAX_BODY_BYTES).collect();
    match timeout(limits::BODY_WAIT, content).await {
        Ok(Ok(content)) => Ok(content.to_bytes()),
        Ok(Err(error)) => Err((StatusCode::PAYLOAD_TOO_LARGE, format!("the body: {error}"))),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the body did not come in time".into())),
    }
}

fn json_answer(answer: Result<serde_json::Value, Refusal>) -> Response<Body> {
    let (status, value) = match answer {
        Ok(value) => (StatusCode::OK, value),
        Err((status, why)) => (status, json!({"error": why})),
    };
    let mut response = body(value.to_string().into(), "application/json");
    *response.status_mut() = status;
    response
}

fn body(content: Bytes, kind: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(content).boxed());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// A body of server-sent events.
struct Events(Receiver<Bytes>);

impl HttpBody for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}
