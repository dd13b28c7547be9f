//! The tasks of a walk, which its threads share.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::Error;

/// Tasks, and the number of unfinished ones.
pub(super) struct TaskQueue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

pub(super) struct State<T> {
    tasks: Vec<T>,
    /// The number of waiting and running tasks. At zero, the walk is over.
    open: usize,
    failed: Option<Error>,
}

impl<T> TaskQueue<T> {
    pub(super) fn new(tasks: Vec<T>) -> Self {
        let state = State { open: tasks.len(), tasks, failed: None };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, tasks: impl Iterator<Item = T>) {
        let mut state = self.lock();
        let before = state.tasks.len();
        state.tasks.extend(tasks);
        state.open += state.tasks.len() - before;
        if state.tasks.len() > before {
            self.changed.notify_all();
        }
    }

    /// The next task. Waits for one while another thread may still add tasks.
    pub(super) fn next(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if state.failed.is_some() || state.open == 0 {
                return None;
            }
            // Takes the newest task, so that few directories are open at a time, even in a wide tree.
            if let Some(task) = state.tasks.pop() {
                return Some(task);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn fail(&self, error: Error) {
        self.lock().failed = Some(error);
        self.changed.notify_all();
    }

    /// The number of tasks that no thread has taken yet.
    pub(super) fn waiting(&self) -> usize {
        self.lock().tasks.len()
    }

    /// Whether all tasks are done.
    pub(super) fn is_done(&self) -> bool {
        self.lock().open == 0
    }

    /// The error that ended the walk early, if there is one.
    pub(super) fn failure(&self) -> Option<Error> {
        self.lock().failed.take()
    }
}

/// Counts a task as done, even if it panics, so that the other threads do not wait for it.
pub(super) struct TaskGuard<'w, T>(pub(super) &'w TaskQueue<T>);

impl<T> Drop for TaskGuard<'_, T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.open -= 1;
        if thread::panicking() {
            state.failed = Some(Error::TimedOut);
        }
        if state.open == 0 || state.failed.is_some() {
            self.0.changed.notify_all();
        }
    }
}
