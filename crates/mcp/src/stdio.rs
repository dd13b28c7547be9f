//! The protocol on standard input and output: one message a line.
//!
//! `rmcp` has such a transport too. This one answers what that one drops: lines that are too long,
//! and lines that are no messages.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Arc;

use memchr::memchr;
use rmcp::model::{ClientJsonRpcMessage, ErrorData, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::{RoleServer, serve_server_with_ct};
use rmcp::transport::{Transport, stdio_pipes};
use rustix::fs::{FileType, fstat};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::fault::{Fault, fault};
use crate::{Service, limits};

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
    /// Whether a request has come.
    begun: bool,
    /// Cancelled when the input has ended.
    ended: CancellationToken,
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

    /// The message in the buffer, or what is to be answered to something that is none.
    fn understand(&mut self) -> Result<Option<ClientJsonRpcMessage>, Fault> {
        let text = self.line.trim_ascii();
        if text.is_empty() {
            return Ok(None);
        }
        let message = match serde_json::from_slice(text) {
            Ok(message) => message,
            // A notification gets no answer, not even this one.
            Err(problem) => return fault(text, &problem).map_or(Ok(None), Err),
        };
        if matches!(message, JsonRpcMessage::Request(_)) {
            self.begun = true;
        }
        // What comes before a conversation has begun belongs to none.
        Ok(self.begun.then_some(message))
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
        let output = self.output.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut output = output.lock().await;
            output.write_all(&line).await?;
            output.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let understood = match self.read_line().await {
                Some(Line::Whole) => self.understand(),
                Some(Line::TooLong) => {
                    let most = limits::MESSAGE_BYTES;
                    let problem = format!("a message can have {most} bytes; this one has more");
                    Err(Box::new((ErrorData::invalid_request(problem, None), None)))
                }
                None => {
                    self.ended.cancel();
                    return None;
                }
            };
            // What one long message took is given back.
            match self.line.capacity() > 1024 * 1024 {
                true => self.line = Vec::new(),
                false => self.line.clear(),
            }
            match understood {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(fault) => {
                    let (error, id) = *fault;
                    let sent = self.send(JsonRpcMessage::error(error, id)).await;
                    if let Err(error) = sent {
                        tracing::warn!("cannot write to standard output: {error}");
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.lock().await.shutdown().await
    }
}
