//! Waits for a call that runs on a thread.

use std::time::{Duration, Instant};

use pinfold::{Cancel, Error, Progress};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use tokio::sync::MutexGuard;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::Call;
use crate::approve::{ApprovalRoute, ApprovalTime};
use crate::limits;
use crate::threads::answer_after;

/// A call that is running on a thread.
pub(super) struct RunningCall<'c> {
    pub(super) call: &'c Call<'c>,
    pub(super) begin: Instant,
    /// The call's time limit in seconds.
    pub(super) seconds: u64,
    pub(super) cancel: Cancel,
}

impl RunningCall<'_> {
    /// Waits for the thread. Meanwhile, forwards the call's approval requests and reports its progress. If the call
    /// is cancelled or its deadline passes, and the thread does not stop then, the task leaves the thread behind and
    /// fails.
    pub(super) async fn wait_for<T: Send + 'static>(
        self,
        mut work: JoinHandle<T>,
        route: &mut ApprovalRoute,
        approval_time: &ApprovalTime,
        mut change_guard: Option<MutexGuard<'_, ()>>,
        progress: &Progress,
    ) -> Result<Result<T, JoinError>, Error> {
        let Self { call, begin, seconds, cancel } = self;
        let Call { shared, context, tool, stop, .. } = call;
        let token = context.meta.get_progress_token();
        let mut reports = Reports::new(token, shared.options.progress_every);
        let limit = answer_after(seconds);
        let error = {
            let mut approvals = std::pin::pin!(route.forward(context));
            loop {
                tokio::select! {
                    done = &mut work => return Ok(done),
                    () = stop.received() => break Error::Cancelled,
                    () = approval_time.is_up(begin, limit) => break Error::Timeout { seconds },
                    // Other changes need not wait for the user. After the approval, the call plans its change again.
                    () = approval_time.begun.notified() => change_guard = None,
                    // `send` is awaited here, so no progress notification follows the result.
                    () = reports.due() => reports.send(progress, &context.peer).await,
                    () = &mut approvals => unreachable!("requests are forwarded until the call is done"),
                }
            }
        };
        cancel.cancel();
        route.close();
        // A thread has had time to stop at the deadline, but not yet after a cancellation.
        let wait = match error {
            Error::Cancelled => limits::STUCK_AFTER,
            _ => Duration::ZERO,
        };
        let done = tokio::time::timeout(wait, &mut work).await;
        drop(change_guard);
        done.map_err(|_| {
            tracing::warn!(tool = tool.name, "a call does not stop; its thread is left behind");
            shared.stuck.watch(work);
            error
        })
    }
}

/// Stops a call when its request is cancelled or the server stops.
#[derive(Clone)]
pub(super) struct StopSignal {
    pub(super) request: CancellationToken,
    pub(super) server: CancellationToken,
}

impl StopSignal {
    pub(super) async fn received(&self) {
        tokio::select! {
            () = self.request.cancelled() => {}
            () = self.server.cancelled() => {}
        }
    }

    pub(super) fn is_received(&self) -> bool {
        self.request.is_cancelled() || self.server.is_cancelled()
    }
}

/// Progress notifications, if the client requested them.
struct Reports {
    /// The request's progress token and a timer; `None` if no notifications are sent.
    schedule: Option<(ProgressToken, Interval)>,
    reported: u64,
}

impl Reports {
    fn new(token: Option<ProgressToken>, every: Duration) -> Self {
        let schedule = token.map(|token| {
            let mut clock = interval(every.max(limits::MIN_PROGRESS_INTERVAL));
            clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
            (token, clock)
        });
        Self { schedule, reported: 0 }
    }

    /// Waits until the next report is due.
    async fn due(&mut self) {
        match &mut self.schedule {
            Some((_, clock)) => _ = clock.tick().await,
            None => std::future::pending().await,
        }
    }

    async fn send(&mut self, progress: &Progress, peer: &Peer<RoleServer>) {
        let visited = progress.entries_visited();
        let Some((token, _)) = self.schedule.as_ref().filter(|_| visited > self.reported) else {
            return;
        };
        self.reported = visited;
        let report = ProgressNotificationParam::new(token.clone(), visited as f64)
            .with_message(format!("{visited} files and directories visited"));
        let sent = tokio::time::timeout(limits::UNREAD_WAIT, peer.notify_progress(report)).await;
        // A client that has gone or does not read gets no more notifications.
        if !matches!(sent, Ok(Ok(()))) {
            self.schedule = None;
        }
    }
}
