//! The tasks of a walk, which its threads share.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::Error;

/// A task, and the sort key of its first entry.
pub(super) struct Keyed<T> {
    pub(super) key: Vec<u8>,
    pub(super) task: T,
}

/// Tasks are compared by their keys.
impl<T> Ord for Keyed<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl<T> PartialOrd for Keyed<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Keyed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T> Eq for Keyed<T> {}

/// Tasks, and the number of unfinished ones.
pub(super) struct TaskQueue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    waiting: BinaryHeap<Reverse<Keyed<T>>>,
    /// The keys of the tasks that threads perform now.
    running: Vec<Vec<u8>>,
    /// Whether a visitor has ended the walk.
    has_ended: bool,
    failed: Option<Error>,
}

impl<T> State<T> {
    fn is_done(&self) -> bool {
        self.has_ended
            || self.failed.is_some()
            || self.running.is_empty() && self.waiting.is_empty()
    }
}

impl<T> TaskQueue<T> {
    pub(super) fn new(tasks: Vec<Keyed<T>>) -> Self {
        let waiting = tasks.into_iter().map(Reverse).collect();
        let state = State { waiting, running: Vec::new(), has_ended: false, failed: None };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, tasks: impl Iterator<Item = Keyed<T>>) {
        let mut state = self.lock();
        let before = state.waiting.len();
        state.waiting.extend(tasks.map(Reverse));
        if state.waiting.len() > before {
            self.changed.notify_all();
        }
    }

    /// The next task. Waits for one while another thread may still add tasks.
    pub(super) fn next(&self) -> Option<(T, TaskGuard<'_, T>)> {
        let mut state = self.lock();
        loop {
            if state.is_done() {
                return None;
            }
            // Takes the first task in the order of the paths. So a walk that ends early has visited the first entries,
            // and few directories are open at a time, even in a wide tree.
            if let Some(Reverse(Keyed { key, task })) = state.waiting.pop() {
                state.running.push(key.clone());
                return Some((task, TaskGuard { work: self, key }));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn fail(&self, error: Error) {
        self.lock().failed = Some(error);
        self.changed.notify_all();
    }

    /// Ends the walk before all tasks are done.
    pub(super) fn end(&self) {
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    /// The lowest key of the tasks that are not done. All entries before it have been visited.
    pub(super) fn first_open(&self) -> Option<Vec<u8>> {
        let state = self.lock();
        let waiting = state.waiting.peek().map(|Reverse(first)| &first.key);
        state.running.iter().chain(waiting).min().cloned()
    }

    /// The number of tasks that no thread has taken yet.
    pub(super) fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Whether all tasks are done, or the walk has ended.
    pub(super) fn is_done(&self) -> bool {
        self.lock().is_done()
    }

    /// The error that ended the walk early, if there is one.
    pub(super) fn failure(&self) -> Option<Error> {
        self.lock().failed.take()
    }
}

/// Counts a task as done, even if it panics, so that the other threads do not wait for it.
pub(super) struct TaskGuard<'w, T> {
    work: &'w TaskQueue<T>,
    key: Vec<u8>,
}

impl<T> Drop for TaskGuard<'_, T> {
    fn drop(&mut self) {
        let mut state = self.work.lock();
        if let Some(number) = state.running.iter().position(|key| *key == self.key) {
            state.running.swap_remove(number);
        }
        if thread::panicking() {
            state.failed = Some(Error::TimedOut);
        }
        if state.is_done() {
            self.work.changed.notify_all();
        }
    }
}
