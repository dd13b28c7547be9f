//! The protocol on standard input and output, with one message per line.
//!
//! The transport of `rmcp` drops lines that are too long or are not messages; this one answers them. It queues
//! requests while too many others are unanswered, and goes on reading meanwhile, so client and server never wait for
//! each other.

mod streams;
mod unanswered;

use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::Arc;

use memchr::memchr;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, GetMeta as _,
    JsonRpcMessage, ProtocolVersion, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{RoleServer, serve_server_with_ct};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::bad_message::{
    BadMessage, bad_message, too_many, too_many_values, unreadable_answer, unreadable_call,
};
use crate::stop::server_ends;
use crate::{Service, Stop, limits, line};
use streams::standard_streams;
use unanswered::Unanswered;

/// Serves one client on standard input and output, until the input ends or `stop` is cancelled.
///
/// Must be called on a Tokio runtime.
pub async fn serve(service: &Service, stop: Stop) -> io::Result<()> {
    let (input, output) = standard_streams()?;
    serve_on(service, input, output, stop).await
}

/// Serves one client on a pair of streams. While `stop` drains it, new requests are refused.
pub async fn serve_on(
    service: &Service,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    Stop { drain, now }: Stop,
) -> io::Result<()> {
    let ended = CancellationToken::new();
    let lines = Lines::new(input, output, drain, ended.clone());
    let last_calls = {
        let (service, now) = (service.clone(), now.clone());
        async move {
            tokio::select! {
                () = now.cancelled() => {}
                () = ended.cancelled() => tokio::time::sleep(limits::LAST_CALLS).await,
            }
            service.0.stopping.cancel();
        }
    };
    let last_calls = tokio::spawn(last_calls);
    match serve_server_with_ct(service.for_stream(), lines, now).await {
        Ok(running) => {
            _ = running.waiting().await;
        }
        Err(error) => tracing::info!("the client did not initialize: {error}"),
    }
    last_calls.abort();
    service.stop().await;
    Ok(())
}

/// A transport of messages as lines.
struct Lines<R, W> {
    input: BufReader<R>,
    output: Arc<Mutex<W>>,
    /// The part of a line that was read so far. A read can be dropped and started again.
    line: Vec<u8>,
    /// Whether the line is too long, so that its rest is dropped.
    too_long: bool,
    /// Whether an `initialize` or a stateless request has arrived.
    begun: bool,
    unanswered: Arc<watch::Sender<Unanswered>>,
    /// Requests that wait until others are answered, with their sizes.
    queue: VecDeque<(ClientJsonRpcMessage, usize)>,
    queued_bytes: usize,
    queued_ids: HashSet<RequestId>,
    /// Whether the input has ended.
    at_end: bool,
    /// Tasks that send errors for lines that are not messages.
    error_answers: JoinSet<io::Result<()>>,
    /// Cancelled when no new requests are accepted.
    drain: CancellationToken,
    /// Cancelled when the input has ended and the queue is empty, or, during a drain, when every request is answered.
    ended: CancellationToken,
}

/// A line of input that was read.
enum LineRead {
    /// The line is in the buffer.
    Whole,
    TooLong,
}

impl<R: AsyncRead + Send + Unpin + 'static, W: AsyncWrite + Send + Unpin + 'static> Lines<R, W> {
    fn new(input: R, output: W, drain: CancellationToken, ended: CancellationToken) -> Self {
        Self {
            input: BufReader::with_capacity(64 * 1024, input),
            output: Arc::new(Mutex::new(output)),
            line: Vec::new(),
            too_long: false,
            begun: false,
            unanswered: Arc::default(),
            queue: VecDeque::new(),
            queued_bytes: 0,
            queued_ids: HashSet::new(),
            at_end: false,
            error_answers: JoinSet::new(),
            drain,
            ended,
        }
    }

    /// Reads a line into the buffer. The last line may lack a line break.
    async fn read_line(&mut self) -> Option<LineRead> {
        loop {
            let part = match self.input.fill_buf().await {
                Ok(part) => part,
                Err(error) => {
                    tracing::warn!("cannot read standard input: {error}");
                    return None;
                }
            };
            if part.is_empty() {
                if std::mem::take(&mut self.too_long) {
                    return Some(LineRead::TooLong);
                }
                return (!self.line.is_empty()).then_some(LineRead::Whole);
            }
            let end = memchr(b'\n', part);
            let text = &part[..end.unwrap_or(part.len())];
            if self.too_long || self.line.len() + text.len() > limits::MAX_MESSAGE_BYTES {
                self.too_long = true;
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(text);
            }
            let used = end.map_or(part.len(), |end| end + 1);
            self.input.consume(used);
            if end.is_some() {
                let whole = !std::mem::take(&mut self.too_long);
                return Some(if whole { LineRead::Whole } else { LineRead::TooLong });
            }
        }
    }

    /// Whether a request with this id is not answered yet. Its answer could not be told from another one's.
    fn is_unanswered(&self, id: &RequestId) -> bool {
        self.queued_ids.contains(id) || self.unanswered.borrow().requests.contains_key(id)
    }

    /// Removes a request from the queue if the message cancels it.
    fn dequeue_cancelled(&mut self, message: &ClientJsonRpcMessage) {
        let JsonRpcMessage::Notification(notification) = message else { return };
        let ClientNotification::CancelledNotification(it) = &notification.notification else {
            return;
        };
        let id = it.params.request_id.as_ref();
        if !id.is_some_and(|id| self.queued_ids.remove(id)) {
            return;
        }
        self.queue.retain(|(queued, length)| {
            let cancelled =
                matches!(queued, JsonRpcMessage::Request(queued) if Some(&queued.id) == id);
            self.queued_bytes -= if cancelled { *length } else { 0 };
            !cancelled
        });
    }

    /// Answers the requests in the queue, which the server that ends does not handle any more.
    fn refuse_queued(&mut self) {
        self.queued_bytes = 0;
        self.queued_ids.clear();
        for (message, _) in std::mem::take(&mut self.queue) {
            if let JsonRpcMessage::Request(request) = message {
                self.answer_error((server_ends(), Some(request.id)));
            }
        }
    }

    fn answer_error(&mut self, (error, id): (ErrorData, Option<RequestId>)) {
        // In a task of its own: the future that reads may be dropped at any time, in the middle of a line.
        let send = self.send(JsonRpcMessage::error(error, id));
        self.error_answers.spawn(send);
        while self.error_answers.try_join_next().is_some() {}
    }

    /// Parses the message in the buffer. The error is the answer to a line that is not a message.
    fn parse_line(&mut self) -> Result<Option<ClientJsonRpcMessage>, BadMessage> {
        let text = self.line.trim_ascii();
        if text.is_empty() {
            return Ok(None);
        }
        if too_many_values(text) {
            return too_many(text).map_or(Ok(None), Err);
        }
        let parsed = line::parse(text)
            .or_else(|problem| unreadable_call(text).map_or(Err(problem), serde_json::from_value));
        let message = match parsed {
            Ok(message) => message,
            Err(problem) => {
                if let Some(answer) = unreadable_answer(text, &problem) {
                    return Ok(self.begun.then_some(answer));
                }
                // Notifications get no answer.
                return bad_message(text, &problem).map_or(Ok(None), Err);
            }
        };
        self.begun |= begins(&message);
        if self.begun {
            return Ok(Some(message));
        }
        // Before `initialize` or the first stateless request, only `server/discover`, `ping` and requests with a
        // protocol version are passed on. Notifications and responses are dropped.
        let JsonRpcMessage::Request(request) = &message else { return Ok(None) };
        match &request.request {
            ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => Ok(Some(message)),
            // `rmcp` answers with the versions that it supports.
            other if other.get_meta().protocol_version().is_some() => Ok(Some(message)),
            other => {
                let problem = format!(
                    "`{}` came before `initialize`: send `initialize` first, or name the protocol version in \
                     each request (`_meta[\"io.modelcontextprotocol/protocolVersion\"]`)",
                    other.method()
                );
                let error = ErrorData::invalid_request(problem, None);
                Err(Box::new((error, Some(request.id.clone()))))
            }
        }
    }
}

/// Whether a message is `initialize` or a stateless request.
fn begins(message: &ClientJsonRpcMessage) -> bool {
    let JsonRpcMessage::Request(request) = message else { return false };
    let meta = request.request.get_meta();
    match &request.request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => false,
        _ => {
            let known = |version| ProtocolVersion::KNOWN_VERSIONS.contains(&version);
            meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
                && meta.protocol_version().is_some_and(known)
        }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (output, unanswered) = (self.output.clone(), self.unanswered.clone());
        unanswered.send_modify(|unanswered| unanswered.sending(&message));
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        async move {
            // A message is serialised only when it can be written, so answers that the client does not read take less
            // memory.
            let mut output = output.lock().await;
            let mut line = line::serialize(message)?;
            let mut written = Ok(());
            while let (Ok(()), Some(block)) = (&written, line.next_block()) {
                written = output.write_all(block).await;
            }
            if let Some(id) = answered {
                unanswered.send_modify(|unanswered| _ = unanswered.requests.remove(&id));
            }
            written?;
            output.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let (mut unanswered, drain) = (self.unanswered.subscribe(), self.drain.clone());
        loop {
            let (next_fits, none) = {
                let unanswered = unanswered.borrow_and_update();
                let next = self.queue.front().map_or(0, |(_, length)| *length);
                (unanswered.fits(next), unanswered.requests.is_empty())
            };
            let draining = drain.is_cancelled();
            if draining {
                self.refuse_queued();
                // Until then, answers and notifications for the running calls are read.
                self.at_end |= none;
            }
            if next_fits && let Some((mut message, length)) = self.queue.pop_front() {
                self.queued_bytes -= length;
                if let JsonRpcMessage::Request(request) = &message {
                    self.queued_ids.remove(&request.id);
                }
                self.unanswered.send_modify(|unanswered| unanswered.received(&mut message, length));
                return Some(message);
            }
            if self.at_end && self.queue.is_empty() {
                self.ended.cancel();
                let last = async { while self.error_answers.join_next().await.is_some() {} };
                _ = tokio::time::timeout(limits::UNREAD_WAIT, last).await;
                return None;
            }
            let may_read = !self.at_end && self.queued_bytes < limits::MAX_QUEUED_BYTES;
            let line = tokio::select! {
                line = self.read_line(), if may_read => line,
                _ = unanswered.changed() => continue,
                () = drain.cancelled(), if !draining => continue,
            };
            let parsed = match line {
                Some(LineRead::Whole) => self.parse_line(),
                Some(LineRead::TooLong) => {
                    let max = limits::MAX_MESSAGE_BYTES;
                    let problem =
                        format!("a message can have at most {max} bytes; make several calls");
                    Err(Box::new((ErrorData::invalid_request(problem, None), None)))
                }
                None => {
                    self.at_end = true;
                    continue;
                }
            };
            let length = self.line.len();
            self.line.clear();
            self.line.shrink_to(limits::KEPT_LINE_BYTES);
            match parsed {
                Ok(Some(JsonRpcMessage::Request(request))) if self.is_unanswered(&request.id) => {
                    let problem = format!("the id `{}` is that of a running request", request.id);
                    self.answer_error((ErrorData::invalid_request(problem, None), None));
                }
                Ok(Some(JsonRpcMessage::Request(request))) => {
                    self.queued_bytes += length;
                    self.queued_ids.insert(request.id.clone());
                    self.queue.push_back((JsonRpcMessage::Request(request), length));
                }
                Ok(Some(mut message)) => {
                    self.dequeue_cancelled(&message);
                    self.unanswered
                        .send_modify(|unanswered| unanswered.received(&mut message, length));
                    return Some(message);
                }
                Ok(None) => {}
                Err(bad_message) => self.answer_error(*bad_message),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // The server does not wait for a client that does not read.
        match self.output.try_lock() {
            Ok(mut output) => output.shutdown().await,
            Err(_) => Ok(()),
        }
    }
}
