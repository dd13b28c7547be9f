//! Standard input and output as asynchronous streams.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream as StdStream;

use rmcp::transport::stdio_pipes;
use rustix::fs::{FileType, fstat};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;

use crate::limits;

type Input = Box<dyn AsyncRead + Send + Unpin>;
type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Standard input and output. If they are pipes or sockets (clients on Node use sockets), they are read and written
/// without another thread.
pub(super) fn standard_streams() -> io::Result<(Input, Output)> {
    let (input, output) = (io::stdin(), io::stdout());
    if is_socket(input.as_fd()) && is_socket(output.as_fd()) {
        let input = UnixStream::from_std(socket(input.as_fd())?)?;
        let output = UnixStream::from_std(socket(output.as_fd())?)?;
        return Ok((Box::new(input), Box::new(output)));
    }
    enlarge_pipe(input.as_fd(), limits::INPUT_PIPE_BYTES);
    enlarge_pipe(output.as_fd(), limits::OUTPUT_PIPE_BYTES);
    let (input, output) = stdio_pipes();
    Ok((Box::new(input), Box::new(output)))
}

/// Enlarges a pipe, so that a long message takes fewer reads. If the system does not allow it, the pipe keeps its
/// size.
#[cfg(target_os = "linux")]
fn enlarge_pipe(pipe: BorrowedFd<'_>, bytes: usize) {
    _ = rustix::pipe::fcntl_setpipe_size(pipe, bytes);
}

/// Only Linux lets a process choose the size of a pipe.
#[cfg(not(target_os = "linux"))]
fn enlarge_pipe(_: BorrowedFd<'_>, _: usize) {}

fn is_socket(fd: BorrowedFd<'_>) -> bool {
    fstat(fd).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket)
}

fn socket(fd: BorrowedFd<'_>) -> io::Result<StdStream> {
    let stream = StdStream::from(fd.try_clone_to_owned()?);
    stream.set_nonblocking(true)?;
    Ok(stream)
}
