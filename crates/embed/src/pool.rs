//! Threads for calls, so that whoever makes them need not wait.
//!
//! A call that asks a person keeps its thread for as long as they think, but not its place: others are
//! begun meanwhile, however many questions are open.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How many calls are at work at once; more wait for their turn. A search uses threads of its own.
const WORKERS: usize = 32;

/// How long a thread waits for more to do before it ends.
const PATIENCE: Duration = Duration::from_secs(10);

type Work = Box<dyn FnOnce() + Send>;

struct Pool {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Work>,
    /// Threads with nothing to do.
    idle: usize,
    /// Threads at work that wait for nobody.
    busy: usize,
}

/// The threads of this process, which has a number. A process that was forked has none of its parent's.
static POOL: Mutex<Option<(u32, Arc<Pool>)>> = Mutex::new(None);

thread_local! {
    /// Whether this is one of the threads.
    static HAS_PLACE: Cell<bool> = const { Cell::new(false) };
}

/// Has something done on another thread.
pub fn run(work: impl FnOnce() + Send + 'static) {
    let pool = Pool::here();
    let mut state = pool.lock();
    state.waiting.push_back(Box::new(work));
    pool.employ(state);
}

/// Waits for somebody while others get this thread's place, if it has one.
pub(crate) fn without_place<T>(wait: impl FnOnce() -> T) -> T {
    if !HAS_PLACE.get() {
        return wait();
    }
    let pool = Pool::here();
    let mut state = pool.lock();
    state.busy -= 1;
    pool.employ(state);
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

    /// Sees to it that somebody does what is waiting, if there is a place.
    fn employ(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.waiting.is_empty() || state.busy >= WORKERS {
            return;
        }
        if state.idle >= state.waiting.len() {
            self.more.notify_one();
            return;
        }
        state.busy += 1;
        drop(state);
        let pool = self.clone();
        let spawned = thread::Builder::new().name("pinfold".into()).spawn(move || {
            HAS_PLACE.set(true);
            pool.work();
        });
        if spawned.is_err() {
            // The system has no more threads. Where there is none at all, the caller has to wait.
            let mut state = self.lock();
            state.busy -= 1;
            let nobody = state.busy + state.idle == 0;
            let work = if nobody { state.waiting.pop_front() } else { None };
            drop(state);
            work.into_iter().for_each(|work| work());
        }
    }

    /// Does what is waiting until nothing is for a while.
    fn work(self: &Arc<Self>) {
        let mut state = self.lock();
        loop {
            match state.waiting.pop_front() {
                Some(work) if state.busy <= WORKERS => {
                    drop(state);
                    // Whoever waits for what panicked is told so by what it drops.
                    let _ = catch_unwind(AssertUnwindSafe(work));
                    state = self.lock();
                }
                Some(work) => {
                    // Some who waited came back: there are enough without this one.
                    state.waiting.push_front(work);
                    state.busy -= 1;
                    return;
                }
                None => {
                    state.busy -= 1;
                    state.idle += 1;
                    let waited = self.more.wait_timeout(state, PATIENCE);
                    let (woken, waited) = waited.unwrap_or_else(PoisonError::into_inner);
                    state = woken;
                    state.idle -= 1;
                    if state.waiting.is_empty() && waited.timed_out() {
                        return;
                    }
                    state.busy += 1;
                }
            }
        }
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
            run(move || {
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
        assert!(at_work.lock().unwrap().1 <= WORKERS);
    }

    #[test]
    fn those_who_wait_hold_nobody_up() {
        let gate = Arc::new((Mutex::new(0), Condvar::new()));
        let (done, all) = channel();
        let many = 5 * WORKERS;
        for _ in 0..many {
            let (done, gate) = (done.clone(), gate.clone());
            run(move || {
                without_place(|| {
                    // Each waits until all of them do, which takes more threads than places.
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
    fn panics_take_no_places() {
        let (done, all) = channel();
        for number in 0..4 * WORKERS {
            let done = done.clone();
            run(move || {
                assert!(number % 2 == 0, "on purpose");
                done.send(()).unwrap();
            });
        }
        drop(done);
        assert_eq!(all.iter().count(), 2 * WORKERS);
    }
}
