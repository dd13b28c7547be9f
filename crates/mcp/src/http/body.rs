//! The bodies of answers. Their bytes are counted, and a call ends when the body of its answer is dropped.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::limits;

pub(super) type Body = BoxBody<Bytes, Infallible>;

/// A body that reports the size of each frame. A long frame is given to the connection in pieces, so that the body lasts
/// until most of it is sent; `held` is dropped with it.
pub(super) struct CountedBody<F, T> {
    inner: Body,
    report: F,
    held: T,
    /// The pieces of a frame that are not sent yet.
    rest: Bytes,
}

impl<F, T> CountedBody<F, T> {
    pub(super) fn new(inner: Body, report: F, held: T) -> Self {
        Self { inner, report, held, rest: Bytes::new() }
    }
}

impl<F: FnMut(usize) + Unpin, T: Unpin> HttpBody for CountedBody<F, T> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        _ = &self.held;
        if self.rest.is_empty() {
            let frame = std::task::ready!(Pin::new(&mut self.inner).poll_frame(context));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.rest = data,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                None => return Poll::Ready(None),
            }
        }
        let bytes = self.rest.len().min(limits::http::ANSWER_PIECE);
        (self.report)(bytes);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    // `Content-Length` is computed from this, before the first frame.
    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// A status and the reason, for a request that is refused.
pub(super) type Refusal = (StatusCode, String);

/// The answer to a request that is refused.
pub(super) fn refusal(status: StatusCode, why: String) -> Response<Body> {
    let mut response = plain(status, why + "\n");
    let extra: Option<(HeaderName, _)> = match status {
        StatusCode::UNAUTHORIZED => Some((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
            Some((RETRY_AFTER, HeaderValue::from_static("60")))
        }
        _ => None,
    };
    response.headers_mut().extend(extra.map(|(name, value)| (Some(name), value)));
    response
}

/// An answer of text.
pub(super) fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(text.into()).boxed());
    *response.status_mut() = status;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text);
    response
}

/// An answer of JSON.
pub(super) fn json(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = plain(status, text);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
