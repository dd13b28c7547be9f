//! Threads for work that may take long or hang, and a count of the hanging ones.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pinfold::Error;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use crate::limits;
use crate::service::ServiceState;

/// How long after a call begins the server answers it, whether or not its thread is done. The engine itself ends a
/// call at its deadline, unless the thread hangs.
pub(crate) fn answer_after(deadline_seconds: u64) -> Duration {
    Duration::from_secs(deadline_seconds).saturating_add(limits::STUCK_AFTER)
}

/// Runs work on a thread and waits for it. If this future is dropped before, the thread counts as stuck until it is
/// done.
pub(crate) async fn run_or_leave<T: Send + 'static>(
    shared: &ServiceState,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    struct WatchOnDrop<'s, T: Send + 'static>(&'s StuckThreads, Option<JoinHandle<Option<T>>>);
    impl<T: Send + 'static> Drop for WatchOnDrop<'_, T> {
        fn drop(&mut self) {
            if let Some(work) = self.1.take() {
                self.0.watch(work);
            }
        }
    }
    if let Some(stuck) = shared.stuck.at_limit() {
        return Err(stuck);
    }
    let mut guard = WatchOnDrop(&shared.stuck, Some(run(&shared.running, Priority::Normal, work)));
    let work = guard.1.as_mut().expect("it is taken when it is dropped");
    let done = work.await;
    guard.1 = None;
    done.ok().flatten().ok_or_else(|| {
        tracing::error!("a thread panicked");
        Error::Internal { what: "a thread panicked".into() }
    })
}

/// The priority of a thread.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Priority {
    Normal,
    /// For a call that may keep all processors busy while other clients wait for short ones.
    Low,
}

/// Threads of low priority. They are not those of the pool, because an unprivileged thread cannot raise its priority
/// again. Threads that they start, to search on several processors, have the same priority.
static LOW_PRIORITY: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let mut threads = Builder::new_current_thread();
    threads.on_thread_start(|| {
        // On Linux this applies to the calling thread only.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::nice(limits::SEARCH_NICE);
    });
    threads.max_blocking_threads(limits::MAX_CALLS).build().ok()
});

/// Runs work on a thread of the pool. If the pool is empty and the system cannot start a thread, the work runs on
/// this thread, and other requests wait.
pub(crate) fn run<T: Send + 'static>(
    tracker: &TaskTracker,
    priority: Priority,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<Option<T>> {
    // The tracker's token belongs to the work, not to the task: the task may stay in the queue after the work is
    // done.
    let work = Arc::new(Mutex::new(Some((work, tracker.token()))));
    let take_and_run = move || {
        let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
        work.map(|(work, _token)| work())
    };
    // If the system cannot start a thread, Tokio panics. The task stays in Tokio's queue and later finds no work.
    let on_thread = take_and_run.clone();
    let spawned = catch_unwind(AssertUnwindSafe(|| match (priority, &*LOW_PRIORITY) {
        (Priority::Low, Some(threads)) => threads.spawn_blocking(on_thread),
        _ => tokio::task::spawn_blocking(on_thread),
    }));
    spawned.unwrap_or_else(|_| {
        let done = take_and_run();
        tokio::spawn(async { done })
    })
}

/// Busy-waits for work on a thread, for at most half a millisecond, because waking this thread takes as long as most
/// calls. Other messages are handled meanwhile. Does not wait if the processors have other work.
pub(crate) async fn spin_until_done<T>(tracker: &TaskTracker, work: &JoinHandle<T>) {
    static HAS_PROCESSORS: LazyLock<bool> =
        LazyLock::new(|| std::thread::available_parallelism().is_ok_and(|count| count.get() > 1));
    let begin = Instant::now();
    while !work.is_finished()
        && tracker.len() == 1
        && begin.elapsed() < limits::MAX_SPIN
        && *HAS_PROCESSORS
    {
        tokio::task::yield_now().await;
    }
}

/// Counts threads that hang in a system call or a library after their calls were answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct StuckThreads(Arc<AtomicUsize>);

impl StuckThreads {
    /// Counts a thread until it is done.
    pub(crate) fn watch<T: Send + 'static>(&self, work: JoinHandle<T>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        let threads = self.0.clone();
        tokio::spawn(async move {
            _ = work.await;
            threads.fetch_sub(1, Ordering::Relaxed);
        });
    }

    /// The error for a call that needs a thread, if too many threads are stuck.
    pub(crate) fn at_limit(&self) -> Option<Error> {
        let calls = self.0.load(Ordering::Relaxed);
        (calls >= limits::MAX_STUCK_CALLS).then_some(Error::TooManyStuck { calls })
    }
}

#[cfg(test)]
mod tests {
    use pinfold::Session;
    use pinfold_dialects::{DOTTED, Toolbox};

    use super::*;
    use crate::{Options, Service};

    #[tokio::test]
    async fn a_panic_is_an_internal_error_and_no_cancellation() {
        let dir = tempfile::tempdir().unwrap();
        let toolbox = Toolbox::new(Session::open([dir.path()]).unwrap(), &[&DOTTED]);
        let service = Service::new(toolbox, Options::default());
        let done = run_or_leave::<()>(&service.0, || panic!("a bug, for this test")).await;
        assert!(matches!(done, Err(Error::Internal { .. })), "{done:?}");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_thread_of_low_priority_gives_it_to_those_that_it_starts() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let (tracker, own) = (TaskTracker::new(), nice());
        for (priority, more) in [(Priority::Normal, 0), (Priority::Low, limits::SEARCH_NICE)] {
            let work = move || [nice(), std::thread::spawn(nice).join().unwrap()];
            let found = run(&tracker, priority, work).await.unwrap().unwrap();
            assert_eq!(found, [(own + more).min(19); 2], "{priority:?}");
        }
    }
}
