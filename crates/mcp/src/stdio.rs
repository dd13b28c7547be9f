//! The protocol on standard input and output: one message a line.
//!
//! `rmcp` has such a transport too. This one answers what that one drops: lines that are too long,
//! and lines that are no messages.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Arc;

use memchr::memchr;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, GetMeta as _,
    JsonRpcMessage, ProtocolVersion, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{RoleServer, serve_server_with_ct};
use rmcp::transport::{Transport, stdio_pipes};
use rustix::fs::{FileType, fstat};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::fault::{Fault, fault, too_many, too_many_values};
use crate::{Service, limits, line};

type Input = Box<dyn AsyncRead + Send + Unpin>;
type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Serves one client on standard input and output, until the input ends or `stop` is cancelled.
///
/// Must be called on a Tokio runtime.
pub async fn serve(service: &Service, stop: CancellationToken) -> io::Result<()> {
    let (input, output) = standard_streams()?;
    serve_on(service, input, output, stop).await
}

/// Serves one client on a pair of streams.
pub async fn serve_on(
    service: &Service,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    stop: CancellationToken,
) -> io::Result<()> {
    let ended = CancellationToken::new();
    let lines = Lines::new(input, output, ended.clone());
    let last_calls = {
        let (service, stop) = (service.clone(), stop.clone());
        async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = ended.cancelled() => tokio::time::sleep(limits::LAST_CALLS).await,
            }
            service.0.stopping.cancel();
        }
    };
    let last_calls = tokio::spawn(last_calls);
    match serve_server_with_ct(service.connection(), lines, stop).await {
        Ok(running) => {
            _ = running.waiting().await;
        }
        Err(error) => tracing::info!("no conversation came about: {error}"),
    }
    last_calls.abort();
    service.stop().await;
    Ok(())
}

/// Standard input and output, read and written without a detour through other threads where they are
/// pipes, or sockets, which is what clients that run on Node make them.
fn standard_streams() -> io::Result<(Input, Output)> {
    let (input, output) = (io::stdin(), io::stdout());
    if is_socket(input.as_fd()) && is_socket(output.as_fd()) {
        let input = UnixStream::from_std(socket(input.as_fd())?)?;
        let output = UnixStream::from_std(socket(output.as_fd())?)?;
        return Ok((Box::new(input), Box::new(output)));
    }
    // A long answer goes through in fewer pieces. Where it may not be so large, it is as it was.
    _ = rustix::pipe::fcntl_setpipe_size(output.as_fd(), limits::PIPE_BYTES);
    let (input, output) = stdio_pipes();
    Ok((Box::new(input), Box::new(output)))
}

fn is_socket(fd: BorrowedFd<'_>) -> bool {
    fstat(fd).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket)
}

fn socket(fd: BorrowedFd<'_>) -> io::Result<StdStream> {
    let stream = StdStream::from(fd.try_clone_to_owned()?);
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Messages as lines.
struct Lines<R, W> {
    input: BufReader<R>,
    output: Arc<Mutex<W>>,
    /// The part of a line that has come so far. A read can be given up and taken up again.
    line: Vec<u8>,
    /// Whether the rest of the line is passed over, since it is too long.
    too_long: bool,
    /// Whether a conversation has begun.
    begun: bool,
    flow: Arc<watch::Sender<Waiting>>,
    /// Requests that have to wait, since too many others are not answered, and how long they are. The
    /// input is read meanwhile: whoever writes first and reads later must not get stuck.
    queue: VecDeque<(ClientJsonRpcMessage, usize)>,
    queued: usize,
    /// Whether the input has ended.
    at_end: bool,
    /// Answers to what is no message, on their way.
    faults: JoinSet<io::Result<()>>,
    /// Cancelled when the input has ended.
    ended: CancellationToken,
}

/// What has come in and not gone out yet.
#[derive(Debug, Default)]
struct Waiting {
    /// Requests whose answers the client has not read.
    requests: HashSet<RequestId>,
    /// Questions that the client has not answered.
    questions: HashSet<RequestId>,
}

impl Waiting {
    /// Whether another request can be taken: not more than can be answered, but those that wait for a
    /// person keep nobody waiting.
    fn has_room(&self) -> bool {
        let asking = self.questions.len().min(limits::QUESTIONS_AT_ONCE);
        self.requests.len() < limits::REQUESTS_AT_ONCE + asking
    }

    fn comes(&mut self, message: &ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => _ = self.requests.insert(request.id.clone()),
            JsonRpcMessage::Response(response) => _ = self.questions.remove(&response.id),
            JsonRpcMessage::Error(error) => {
                error.id.iter().for_each(|id| _ = self.questions.remove(id));
            }
            // What was cancelled is not answered.
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(it) = &notification.notification {
                    it.params.request_id.iter().for_each(|id| _ = self.requests.remove(id));
                }
            }
        }
    }
}

/// A line of input.
enum Line {
    /// In the buffer.
    Whole,
    TooLong,
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> Lines<R, W> {
    fn new(input: R, output: W, ended: CancellationToken) -> Self {
        Self {
            input: BufReader::with_capacity(64 * 1024, input),
            output: Arc::new(Mutex::new(output)),
            line: Vec::new(),
            too_long: false,
            begun: false,
            flow: Arc::default(),
            queue: VecDeque::new(),
            queued: 0,
            at_end: false,
            faults: JoinSet::new(),
            ended,
        }
    }

    /// Reads a line into the buffer; the last one need not have an end.
    async fn read_line(&mut self) -> Option<Line> {
        loop {
            let part = match self.input.fill_buf().await {
                Ok(part) => part,
                Err(error) => {
                    tracing::warn!("cannot read standard input: {error}");
                    return None;
                }
            };
            if part.is_empty() {
                return match std::mem::take(&mut self.too_long) {
                    true => Some(Line::TooLong),
                    false => (!self.line.is_empty()).then_some(Line::Whole),
                };
            }
            let end = memchr(b'\n', part);
            let text = &part[..end.unwrap_or(part.len())];
            if self.too_long || self.line.len() + text.len() > limits::MESSAGE_BYTES {
                self.too_long = true;
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(text);
            }
            let used = end.map_or(part.len(), |end| end + 1);
            self.input.consume(used);
            if end.is_some() {
                let whole = !std::mem::take(&mut self.too_long);
                return Some(if whole { Line::Whole } else { Line::TooLong });
            }
        }
    }

    /// A request that is cancelled while it waits is not made.
    fn forget_cancelled(&mut self, message: &ClientJsonRpcMessage) {
        let JsonRpcMessage::Notification(notification) = message else { return };
        let ClientNotification::CancelledNotification(it) = &notification.notification else {
            return;
        };
        let id = it.params.request_id.as_ref();
        self.queue.retain(|(waits, length)| {
            let cancelled =
                matches!(waits, JsonRpcMessage::Request(waits) if Some(&waits.id) == id);
            self.queued -= if cancelled { *length } else { 0 };
            !cancelled
        });
    }

    /// The message in the buffer, or what is to be answered to something that is none.
    fn understand(&mut self) -> Result<Option<ClientJsonRpcMessage>, Fault> {
        let text = self.line.trim_ascii();
        if text.is_empty() {
            return Ok(None);
        }
        if too_many_values(text) {
            return Err(too_many());
        }
        let message = match line::message(text) {
            Ok(message) => message,
            // A notification gets no answer, not even this one.
            Err(problem) => return fault(text, &problem).map_or(Ok(None), Err),
        };
        // Until a conversation has begun there are requests, and all else belongs to none.
        self.begun |= begins(&message);
        let taken = self.begun || matches!(message, JsonRpcMessage::Request(_));
        Ok(taken.then_some(message))
    }
}

/// Whether a conversation begins with a message: with `initialize`, or with a request that stands alone.
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
        let (output, flow) = (self.output.clone(), self.flow.clone());
        if let JsonRpcMessage::Request(question) = &message {
            flow.send_modify(|waiting| _ = waiting.questions.insert(question.id.clone()));
        }
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        async move {
            // One message after the other is made into text, when it is its turn: what the client does
            // not read takes no more memory than it must.
            let mut output = output.lock().await;
            let line = line::line(message)?;
            let written = output.write_all(&line).await;
            if let Some(id) = answered {
                flow.send_modify(|waiting| _ = waiting.requests.remove(&id));
            }
            written?;
            output.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let mut flow = self.flow.subscribe();
        loop {
            let has_room = flow.borrow_and_update().has_room();
            if has_room && let Some((message, length)) = self.queue.pop_front() {
                self.queued -= length;
                self.flow.send_modify(|waiting| waiting.comes(&message));
                return Some(message);
            }
            if self.at_end && self.queue.is_empty() {
                self.ended.cancel();
                let last = async { while self.faults.join_next().await.is_some() {} };
                _ = tokio::time::timeout(limits::UNREAD_WAIT, last).await;
                return None;
            }
            let may_read = !self.at_end && self.queued < limits::QUEUED_BYTES;
            let line = tokio::select! {
                line = self.read_line(), if may_read => line,
                _ = flow.changed() => continue,
            };
            let understood = match line {
                Some(Line::Whole) => self.understand(),
                Some(Line::TooLong) => {
                    let most = limits::MESSAGE_BYTES;
                    let problem = format!("a message can have {most} bytes; this one has more");
                    Err(Box::new((ErrorData::invalid_request(problem, None), None)))
                }
                None => {
                    self.at_end = true;
                    continue;
                }
            };
            let length = self.line.len();
            // What one long message took is given back.
            match self.line.capacity() > 1024 * 1024 {
                true => self.line = Vec::new(),
                false => self.line.clear(),
            }
            match understood {
                Ok(Some(message @ JsonRpcMessage::Request(_))) => {
                    self.queued += length;
                    self.queue.push_back((message, length));
                }
                Ok(Some(message)) => {
                    self.forget_cancelled(&message);
                    self.flow.send_modify(|waiting| waiting.comes(&message));
                    return Some(message);
                }
                Ok(None) => {}
                Err(fault) => {
                    let (error, id) = *fault;
                    // By itself: this here may be given up at any time, and half a line must not be.
                    let send = self.send(JsonRpcMessage::error(error, id));
                    self.faults.spawn(send);
                    while self.faults.try_join_next().is_some() {}
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // Whoever does not read is not waited for.
        match self.output.try_lock() {
            Ok(mut output) => output.shutdown().await,
            Err(_) => Ok(()),
        }
    }
}
