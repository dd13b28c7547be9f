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

use pinfold::Cancel;

/// How many calls are at work at once; more wait for their turn. A search uses threads of its own.
const WORKERS: usize = 32;

/// How long a thread waits for more to do before it ends.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is to be done, given whether there is a thread for it.
type Work = Box<dyn FnOnce(bool) + Send>;

struct Pool {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(Cancel, Work)>,
    /// Threads with nothing to do.
    idle: usize,
    /// Threads at work that wait for nobody.
    busy: usize,
    /// All of them, those that wait for a decision too.
    threads: usize,
}

/// The threads of this process, which has a number. A process that was forked has none of its parent's.
static POOL: Mutex<Option<(u32, Arc<Pool>)>> = Mutex::new(None);

thread_local! {
    /// Whether this is one of the threads.
    static HAS_PLACE: Cell<bool> = const { Cell::new(false) };
}

/// Has something done on another thread; or, where there is none to be had, told so on this one.
pub(crate) fn run(cancel: Cancel, work: impl FnOnce(bool) + Send + 'static) {
    let pool = Pool::here();
    let mut state = pool.lock();
    state.waiting.push_back((cancel, Box::new(work)));
    pool.employ(state);
}

/// Has calls that were cancelled answered now, whoever else is at work.
pub fn hurry() {
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
        // They have to wait for their turn after all.
        let mut rest = rest.lock().unwrap_or_else(PoisonError::into_inner);
        pool.lock().waiting.append(&mut rest);
    }
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
        state.threads += 1;
        drop(state);
        let pool = self.clone();
        let spawned = thread::Builder::new().name("pinfold".into()).spawn(move || {
            HAS_PLACE.set(true);
            pool.work();
        });
        if spawned.is_err() {
            // The system has no more threads. Those that there are will come to it; without any, nobody would.
            let mut state = self.lock();
            state.busy -= 1;
            state.threads -= 1;
            let work = if state.threads == 0 { state.waiting.pop_front() } else { None };
            drop(state);
            work.into_iter().for_each(|(_, work)| work(false));
        }
    }

    /// Does what is waiting until nothing is for a while.
    fn work(self: &Arc<Self>) {
        let mut state = self.lock();
        loop {
            match state.waiting.pop_front() {
                Some((_, work)) if state.busy <= WORKERS => {
                    drop(state);
                    // Whoever waits for what panicked is told so by what it drops.
                    let _ = catch_unwind(AssertUnwindSafe(|| work(true)));
                    state = self.lock();
                }
                Some(work) => {
                    // Some who waited came back: there are enough without this one.
                    state.waiting.push_front(work);
                    state.busy -= 1;
                    break;
                }
                None if state.idle >= WORKERS => {
                    // Enough others wait for more to do.
                    state.busy -= 1;
                    break;
                }
                None => {
                    state.busy -= 1;
                    state.idle += 1;
                    let waited = self.more.wait_timeout(state, PATIENCE);
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
        // While the lock is held: whoever counts threads must find only those that will look again.
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
        assert!(at_work.lock().unwrap().1 <= WORKERS);
    }

    #[test]
    fn those_who_wait_hold_nobody_up() {
        let gate = Arc::new((Mutex::new(0), Condvar::new()));
        let (done, all) = channel();
        let many = 5 * WORKERS;
        for _ in 0..many {
            let (done, gate) = (done.clone(), gate.clone());
            run(Cancel::default(), move |_| {
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
    fn what_was_cancelled_is_answered_while_others_work() {
        let (open, gate) = channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let (done, all) = channel();
        for _ in 0..WORKERS {
            let (done, gate) = (done.clone(), gate.clone());
            run(Cancel::default(), move |_| {
                let _ = gate.lock().unwrap().recv();
                done.send("worked").unwrap();
            });
        }
        let cancel = Cancel::default();
        run(cancel.clone(), move |_| done.send("cancelled").unwrap());
        cancel.cancel();
        hurry();
        assert_eq!(all.recv().unwrap(), "cancelled");
        drop(open);
        assert_eq!(all.iter().count(), WORKERS);
    }

    #[test]
    fn panics_take_no_places() {
        let (done, all) = channel();
        for number in 0..4 * WORKERS {
            let done = done.clone();
            run(Cancel::default(), move |_| {
                assert!(number % 2 == 0, "on purpose");
                done.send(()).unwrap();
            });
        }
        drop(done);
        assert_eq!(all.iter().count(), 2 * WORKERS);
    }
}
