//! A thread pool for calls.
//!
//! A call that waits for an approval keeps its thread but does not count as busy, so pending approval requests never
//! block other calls.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use pinfold::Cancel;

/// The maximum number of running calls; others wait. A search uses more threads of its own.
const MAX_BUSY: usize = 32;

/// How long an idle thread waits for work before it ends.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// A call. The argument is false if there is no thread for it.
type Work = Box<dyn FnOnce(bool) + Send>;

struct Pool {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(Cancel, Work)>,
    /// The number of idle threads.
    idle: usize,
    /// The number of threads that are running a call and are not waiting for a decision.
    busy: usize,
    /// The number of all threads, including those that wait for a decision.
    threads: usize,
}

/// The pool of this process, with the process id. A forked process does not have its parent's threads.
static POOL: Mutex<Option<(u32, Arc<Pool>)>> = Mutex::new(None);

thread_local! {
    /// Whether this thread belongs to the pool.
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Runs work on another thread. If there is no thread, runs it on this one with `false`.
pub(crate) fn run(cancel: Cancel, work: impl FnOnce(bool) + Send + 'static) {
    let pool = Pool::here();
    let mut state = pool.lock();
    state.waiting.push_back((cancel, Box::new(work)));
    pool.start_threads(state);
}

/// Answers the waiting calls that were cancelled, even if all threads are busy.
pub fn answer_cancelled() {
    let pool = Pool::here();
    let mut state = pool.lock();
    let waiting = std::mem::take(&mut state.waiting);
    let (over, waiting): (VecDeque<_>, _) =
        waiting.into_iter().partition(|(cancel, _)| cancel.is_cancelled());
    state.waiting = waiting;
    drop(state);
    if over.is_empty() {
        return;
    }
    let over = Arc::new(Mutex::new(over));
    let rest = over.clone();
    let next = move || over.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let spawned = thread::Builder::new().name("pinfold".into()).spawn(move || {
        while let Some((_, work)) = next() {
            let _ = catch_unwind(AssertUnwindSafe(|| work(true)));
        }
    });
    if spawned.is_err() {
        // The others have to wait for their turn.
        let mut rest = rest.lock().unwrap_or_else(PoisonError::into_inner);
        pool.lock().waiting.append(&mut rest);
    }
}

/// Waits for the user. Meanwhile another call may use this thread's place in the pool.
pub(crate) fn while_waiting<T>(wait: impl FnOnce() -> T) -> T {
    if !IS_WORKER.get() {
        return wait();
    }
    let pool = Pool::here();
    let mut state = pool.lock();
    state.busy -= 1;
    pool.start_threads(state);
    let outcome = wait();
    pool.lock().busy += 1;
    outcome
}

impl Pool {
    fn here() -> Arc<Self> {
        let process = std::process::id();
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        match &*pool {
            Some((known, pool)) if *known == process => pool.clone(),
            _ => {
                let new = Arc::new(Self { state: Mutex::default(), more: Condvar::new() });
                *pool = Some((process, new.clone()));
                new
            }
        }
    }

    /// Wakes or starts a thread for the waiting work, unless enough threads are busy.
    fn start_threads(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.waiting.is_empty() || state.busy >= MAX_BUSY {
            return;
        }
        if state.idle >= state.waiting.len() {
            self.more.notify_one();
            return;
        }
        state.busy += 1;
        state.threads += 1;
        drop(state);
        let pool = self.clone();
        let spawned = thread::Builder::new().name("pinfold".into()).spawn(move || {
            IS_WORKER.set(true);
            pool.work();
        });
        if spawned.is_err() {
            // The system cannot start a thread. If the pool has none either, the work runs here.
            let mut state = self.lock();
            state.busy -= 1;
            state.threads -= 1;
            let work = if state.threads == 0 { state.waiting.pop_front() } else { None };
            drop(state);
            work.into_iter().for_each(|(_, work)| work(false));
        }
    }

    /// Runs waiting work, until there has been none for a while.
    fn work(self: &Arc<Self>) {
        let mut state = self.lock();
        loop {
            match state.waiting.pop_front() {
                Some((_, work)) if state.busy <= MAX_BUSY => {
                    drop(state);
                    // A panic drops the work's channel, which tells the caller.
                    let _ = catch_unwind(AssertUnwindSafe(|| work(true)));
                    state = self.lock();
                }
                Some(work) => {
                    // Calls have finished waiting, so enough other threads are busy.
                    state.waiting.push_front(work);
                    state.busy -= 1;
                    break;
                }
                None if state.idle >= MAX_BUSY => {
                    // Enough other threads are idle.
                    state.busy -= 1;
                    break;
                }
                None => {
                    state.busy -= 1;
                    state.idle += 1;
                    let waited = self.more.wait_timeout(state, IDLE_TIMEOUT);
                    let (woken, waited) = waited.unwrap_or_else(PoisonError::into_inner);
                    state = woken;
                    state.idle -= 1;
                    if state.waiting.is_empty() && waited.timed_out() {
                        break;
                    }
                    state.busy += 1;
                }
            }
        }
        // This happens under the lock, since `threads` must count only threads that will look for work again.
        state.threads -= 1;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn all_work_is_done_with_few_threads() {
        let (done, all) = channel();
        let at_work = Arc::new(Mutex::new((0_usize, 0_usize)));
        for number in 0..2_000 {
            let (done, at_work) = (done.clone(), at_work.clone());
            run(Cancel::default(), move |_| {
                let mut count = at_work.lock().unwrap();
                count.0 += 1;
                count.1 = count.1.max(count.0);
                drop(count);
                thread::yield_now();
                at_work.lock().unwrap().0 -= 1;
                done.send(number).unwrap();
            });
        }
        drop(done);
        let mut numbers: Vec<_> = all.iter().collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..2_000));
        assert!(at_work.lock().unwrap().1 <= MAX_BUSY);
    }

    #[test]
    fn waiting_calls_do_not_block_others() {
        let gate = Arc::new((Mutex::new(0), Condvar::new()));
        let (done, all) = channel();
        let many = 5 * MAX_BUSY;
        for _ in 0..many {
            let (done, gate) = (done.clone(), gate.clone());
            run(Cancel::default(), move |_| {
                while_waiting(|| {
                    // Each waits until all of them wait, which takes more threads than the maximum of busy ones.
                    let (waiting, more) = &*gate;
                    let mut waiting = waiting.lock().unwrap();
                    *waiting += 1;
                    more.notify_all();
                    drop(more.wait_while(waiting, |waiting| *waiting < many).unwrap());
                });
                done.send(()).unwrap();
            });
        }
        drop(done);
        assert_eq!(all.iter().count(), many);
    }

    #[test]
    fn a_cancelled_call_is_answered_while_others_run() {
        let (open, gate) = channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let (done, all) = channel();
        for _ in 0..MAX_BUSY {
            let (done, gate) = (done.clone(), gate.clone());
            run(Cancel::default(), move |_| {
                let _ = gate.lock().unwrap().recv();
                done.send("worked").unwrap();
            });
        }
        let cancel = Cancel::default();
        run(cancel.clone(), move |_| done.send("cancelled").unwrap());
        cancel.cancel();
        answer_cancelled();
        assert_eq!(all.recv().unwrap(), "cancelled");
        drop(open);
        assert_eq!(all.iter().count(), MAX_BUSY);
    }

    #[test]
    fn panics_take_no_places() {
        let (done, all) = channel();
        for number in 0..4 * MAX_BUSY {
            let done = done.clone();
            run(Cancel::default(), move |_| {
                assert!(number % 2 == 0, "on purpose");
                done.send(()).unwrap();
            });
        }
        drop(done);
        assert_eq!(all.iter().count(), 2 * MAX_BUSY);
    }
}
