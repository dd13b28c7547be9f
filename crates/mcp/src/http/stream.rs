//! The socket of a connection. It closes in such a way that the client can read the last answer.
//!
//! If a socket is closed while it has unread data, the system resets the connection. A client that is still sending
//! its request then gets an error, and cannot read the answer that refuses the request.

use std::future::Future as _;
use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use super::connections::Connection;
use crate::limits;

/// How much is read at once of a body that nobody needs.
const DISCARDED_PIECE: usize = 16 * 1024;

/// The socket of a connection. If the body of the last request was not read, it is read and discarded at the end.
pub(super) struct Stream {
    socket: TcpStream,
    connection: Arc<Connection>,
    /// The end of the time for the rest of the body.
    limit: Option<Pin<Box<Sleep>>>,
}

impl Stream {
    pub(super) fn new(socket: TcpStream, connection: Arc<Connection>) -> Self {
        Self { socket, connection, limit: None }
    }

    fn socket(&mut self) -> Pin<&mut TcpStream> {
        Pin::new(&mut self.socket)
    }

    /// Reads until the client closes the connection, or until the time is over.
    fn discard_body(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let limit = self.limit.get_or_insert_with(|| Box::pin(sleep(limits::http::BODY_WAIT)));
        if limit.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let mut space = [0; DISCARDED_PIECE];
        loop {
            let mut piece = ReadBuf::new(&mut space);
            let read = ready!(self.socket().poll_read(context, &mut piece));
            if read.is_err() || piece.filled().is_empty() {
                return Poll::Ready(());
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        self.socket().poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<Result<usize>> {
        self.socket().poll_write(context, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        self.socket().poll_write_vectored(context, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.socket().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        ready!(self.socket().poll_shutdown(context))?;
        if self.connection.has_unread_body() {
            ready!(self.discard_body(context));
        }
        Poll::Ready(Ok(()))
    }
}
