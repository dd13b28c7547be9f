//! Measures the time that a call waits for approvals.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pinfold::{ApprovalAnswer, ApprovalRequest, Approver};
use tokio::sync::Notify;

use crate::limits;

/// How long a call has waited for approvals. That time does not count against its deadline. The engine measures it as
/// well, on the call's thread, but the task that answers for a hanging thread cannot ask the engine.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApprovalTime {
    /// The time of answered requests, and when the pending one began.
    spent: Arc<Mutex<(Duration, Option<Instant>)>>,
    /// Is notified when a request begins.
    pub(crate) begun: Arc<Notify>,
}

impl ApprovalTime {
    /// Wraps an approver, so that this measures its time.
    pub(crate) fn of(&self, approver: Arc<dyn Approver>) -> Arc<dyn Approver> {
        Arc::new(TimedApprover { approver, time: self.clone() })
    }

    /// How much of `limit` is left of the working time since `begin`. Returns `None` while a request is pending.
    fn left(&self, begin: Instant, limit: Duration) -> Option<Duration> {
        let (spent, pending) = *self.lock();
        let worked = begin.elapsed().saturating_sub(spent);
        pending.is_none().then(|| limit.saturating_sub(worked))
    }

    /// Returns when a call that began at `begin` has worked for `limit`.
    pub(crate) async fn is_up(&self, begin: Instant, limit: Duration) {
        loop {
            match self.left(begin, limit) {
                Some(Duration::ZERO) => return,
                Some(left) => tokio::time::sleep(left).await,
                None => tokio::time::sleep(limits::APPROVAL_POLL).await,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, (Duration, Option<Instant>)> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct TimedApprover {
    approver: Arc<dyn Approver>,
    time: ApprovalTime,
}

impl Approver for TimedApprover {
    fn ask(&self, request: &ApprovalRequest) -> ApprovalAnswer {
        let begin = Instant::now();
        self.time.lock().1 = Some(begin);
        self.time.begun.notify_one();
        let answer = self.approver.ask(request);
        let mut spent = self.time.lock();
        *spent = (spent.0 + begin.elapsed(), None);
        answer
    }
}
