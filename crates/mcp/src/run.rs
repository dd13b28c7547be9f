//! Serves from a synchronous program.

use std::io;
#[cfg(feature = "http")]
use std::net::TcpListener;

use tokio::runtime::{Builder, Runtime};

#[cfg(feature = "http")]
use crate::http::{self, HttpOptions, Listeners, ServedWorkspace};
use crate::{Service, Stop, limits, stdio};

/// Serves one client on standard input and output, until the input ends or SIGTERM or SIGINT arrives. Then it accepts no
/// new calls, and ends when the running calls have ended, after a time limit, or at a second signal.
pub fn serve_stdio(service: &Service) -> io::Result<()> {
    // One event-loop thread handles the messages and answers small reads, and calls run on other threads. For one client, this
    // takes the fewest context switches.
    let runtime = runtime(Builder::new_current_thread())?;
    let served = runtime.block_on(async {
        let stop = Stop::at_signals(|| {})?;
        let Stop { drain, now } = stop.clone();
        tokio::spawn(async move {
            drain.cancelled().await;
            tokio::time::sleep(limits::DRAIN).await;
            now.cancel();
        });
        stdio::serve(service, stop).await
    });
    // A thread may still wait for input that does not come any more.
    runtime.shutdown_background();
    served
}

/// Serves any number of clients over HTTP, until SIGTERM or SIGINT arrives. Then it accepts no new calls, and ends
/// when the running calls have ended, or at a second signal. Calls `ready` once signals are handled, and `ending` at the
/// first signal. Both are trait objects, so that the server is compiled once, in this crate.
#[cfg(feature = "http")]
pub fn serve_http(
    workspaces: &[ServedWorkspace],
    (clients, metrics): (TcpListener, Option<TcpListener>),
    options: HttpOptions,
    ready: &mut dyn FnMut(),
    ending: Box<dyn FnOnce() + Send>,
) -> io::Result<()> {
    let mut builder = Builder::new_multi_thread();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    builder.worker_threads(cores.min(limits::http::MAX_EVENT_LOOP_THREADS));
    let runtime = runtime(builder)?;
    let served = runtime.block_on(async {
        let listener = |listener: TcpListener| {
            listener.set_nonblocking(true)?;
            tokio::net::TcpListener::from_std(listener)
        };
        let metrics = metrics.map(listener).transpose()?;
        let listeners = Listeners { clients: listener(clients)?, metrics };
        let stop = Stop::at_signals(ending)?;
        ready();
        http::serve(workspaces, listeners, options, stop).await;
        Ok(())
    });
    runtime.shutdown_background();
    served
}

fn runtime(mut builder: Builder) -> io::Result<Runtime> {
    // Two more threads read and write standard input and output if these are files or terminals.
    let calls = limits::MAX_CALLS + limits::MAX_APPROVAL_REQUESTS + limits::MAX_STUCK_CALLS;
    builder.enable_all().max_blocking_threads(calls + 2).build()
}
