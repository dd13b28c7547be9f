//! Bounds what all sessions of a process hold in memory at once. Other calls wait for room until their deadline.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use pinfold_confine::Deadline;

use crate::limits::{
    MAX_ANSWER_BYTES_AT_ONCE, MAX_EDITED_BYTES_AT_ONCE, MAX_FILE_BYTES_AT_ONCE,
    MAX_PATTERN_BYTES_AT_ONCE, MIN_ADMITTED_BYTES,
};

/// How often a waiting call checks its deadline.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The files that are in memory as a whole, while they are read, parsed or searched.
static WHOLE_FILES: Admission = Admission::new(usize::MAX, MAX_FILE_BYTES_AT_ONCE);

/// The answers that have a whole file in them, from before the file is read until they are sent. A call with room here may
/// wait for room among the [`WHOLE_FILES`], and never the other way round, so that no two calls wait for each other.
static ANSWERS: Admission = Admission::new(usize::MAX, MAX_ANSWER_BYTES_AT_ONCE);

/// The old and new contents of files that are edited, from before they are locked until they are changed.
static EDITS: Admission = Admission::new(usize::MAX, MAX_EDITED_BYTES_AT_ONCE);

/// Compiled patterns, while they are searched for. A call with room here may wait for room among the [`WHOLE_FILES`].
static PATTERNS: Admission = Admission::new(usize::MAX, MAX_PATTERN_BYTES_AT_ONCE);

/// A share of the memory. There is none for what is small, which need not wait.
type Share = Option<Admitted<'static>>;

/// Waits until files of so many bytes may be edited. `Err` if the deadline passes first.
pub(crate) fn admit_edits(bytes: u64, deadline: &Deadline) -> Result<Share, Late> {
    EDITS.admit_large(bytes.saturating_mul(2), deadline)
}

/// Waits until a compiled pattern may take so many bytes of memory. `Err` if the deadline passes first.
pub(crate) fn admit_pattern(bytes: u64, deadline: &Deadline) -> Result<Share, Late> {
    PATTERNS.admit_large(bytes, deadline)
}

/// Waits until a file may take so many bytes of memory. `Err` if the deadline passes first.
pub(crate) fn admit_file(bytes: u64, deadline: &Deadline) -> Result<Share, Late> {
    WHOLE_FILES.admit_large(bytes, deadline)
}

/// The memory of a call's answer, if a whole file is in it. A server keeps a clone until the answer is sent; other calls
/// wait for the memory until the last clone is dropped.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct AnswerRoom(Arc<Mutex<Option<AnswerShare>>>);

/// Looks at an [`AnswerRoom`] without keeping it.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct WeakAnswerRoom(Weak<Mutex<Option<AnswerShare>>>);

#[derive(Debug)]
struct AnswerShare {
    /// Is given back when it is dropped.
    _bytes: Admitted<'static>,
    taken: Instant,
}

impl AnswerRoom {
    /// Waits until an answer may have a file of so many bytes in it. A small one need not wait. `Err` if the deadline
    /// passes first.
    pub(crate) fn admit(&self, file_bytes: u64, deadline: &Deadline) -> Result<(), Late> {
        // The file, its base64, and the message in which that is written.
        let bytes = file_bytes.saturating_mul(4);
        // The room of an earlier file is given back before the call waits.
        *self.share() = None;
        let share = ANSWERS.admit_large(bytes, deadline)?;
        *self.share() = share.map(|bytes| AnswerShare { _bytes: bytes, taken: Instant::now() });
        Ok(())
    }

    /// Looks at the room without keeping it.
    pub fn downgrade(&self) -> WeakAnswerRoom {
        WeakAnswerRoom(Arc::downgrade(&self.0))
    }

    fn share(&self) -> MutexGuard<'_, Option<AnswerShare>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WeakAnswerRoom {
    /// Whether the room was taken at least this long ago, is still in use, and other calls wait for room.
    pub fn is_overdue(&self, after: Duration) -> bool {
        let Some(room) = self.0.upgrade() else { return false };
        let taken = AnswerRoom(room).share().as_ref().map(|share| share.taken);
        taken.is_some_and(|taken| taken.elapsed() >= after) && !ANSWERS.in_use().waiting.is_empty()
    }
}

/// The deadline passed before there was room.
#[derive(Debug)]
pub(crate) struct Late;

/// Bounds how many things are in memory at once, and how large they are together.
#[derive(Debug)]
pub(crate) struct Admission {
    max_count: usize,
    max_bytes: u64,
    in_use: Mutex<InUse>,
    freed: Condvar,
}

#[derive(Debug)]
struct InUse {
    count: usize,
    bytes: u64,
    /// The calls that wait, in the order in which they came. The first one is admitted first, so that no call waits for ever
    /// while others come.
    waiting: VecDeque<u64>,
    next_number: u64,
}

/// A share of an [`Admission`], until it is dropped.
#[derive(Debug)]
pub(crate) struct Admitted<'a> {
    admission: &'a Admission,
    bytes: u64,
}

impl Admission {
    pub(crate) const fn new(max_count: usize, max_bytes: u64) -> Self {
        let in_use = InUse { count: 0, bytes: 0, waiting: VecDeque::new(), next_number: 0 };
        let in_use = Mutex::new(in_use);
        Self { max_count, max_bytes, in_use, freed: Condvar::new() }
    }

    fn in_use(&self) -> MutexGuard<'_, InUse> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits as [`Self::admit`] does, but what is small need not wait.
    fn admit_large(&self, bytes: u64, deadline: &Deadline) -> Result<Option<Admitted<'_>>, Late> {
        if bytes < MIN_ADMITTED_BYTES {
            return Ok(None);
        }
        self.admit(bytes, deadline).map(Some).ok_or(Late)
    }

    /// Waits until there is room for so many bytes; `None` if the deadline passes first. Whoever holds a share must not
    /// wait for another: two such calls could wait for each other.
    pub(crate) fn admit(&self, bytes: u64, deadline: &Deadline) -> Option<Admitted<'_>> {
        // What is larger than the limit has all of it to itself.
        let bytes = bytes.min(self.max_bytes);
        let mut in_use = self.in_use();
        let number = in_use.next_number;
        in_use.next_number += 1;
        in_use.waiting.push_back(number);
        let admitted = loop {
            let fits = in_use.count < self.max_count && in_use.bytes + bytes <= self.max_bytes;
            if fits && in_use.waiting.front() == Some(&number) {
                in_use.count += 1;
                in_use.bytes += bytes;
                break true;
            }
            if deadline.has_passed() {
                break false;
            }
            let waited = self.freed.wait_timeout(in_use, POLL_INTERVAL);
            in_use = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        in_use.waiting.retain(|waiting| *waiting != number);
        drop(in_use);
        // There may be room for the next one, too.
        self.freed.notify_all();
        admitted.then(|| Admitted { admission: self, bytes })
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        let mut in_use = self.admission.in_use();
        in_use.count -= 1;
        in_use.bytes -= self.bytes;
        self.admission.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn what_is_in_memory_is_bounded_for_the_whole_process() {
        const MIB: u64 = 1024 * 1024;
        let (max_count, max_bytes) = (4, 256 * MIB);
        for size in [1, 10 * MIB, 100 * MIB, 199 * MIB, 1024 * MIB] {
            let admission = Admission::new(max_count, max_bytes);
            let (count, bytes) = (AtomicUsize::new(0), AtomicU64::new(0));
            thread::scope(|scope| {
                for _ in 0..16 {
                    scope.spawn(|| {
                        let admitted = admission.admit(size, &Deadline::default()).unwrap();
                        let at_once = count.fetch_add(1, Ordering::SeqCst) + 1;
                        let held = bytes.fetch_add(admitted.bytes, Ordering::SeqCst);
                        assert!(at_once <= max_count, "{at_once} of {size}");
                        assert!(held + admitted.bytes <= max_bytes, "{held} of {size}");
                        thread::yield_now();
                        count.fetch_sub(1, Ordering::SeqCst);
                        bytes.fetch_sub(admitted.bytes, Ordering::SeqCst);
                    });
                }
            });
        }
    }

    #[test]
    fn a_call_that_waits_for_its_turn_ends_with_its_deadline() {
        let admission = Admission::new(1, 10);
        let held = admission.admit(u64::MAX, &Deadline::default()).unwrap();
        let passed = Deadline::lasting_while(|| false);
        assert!(admission.admit(1, &passed).is_none());
        drop(held);
        assert!(admission.admit(1, &passed).is_some());
    }

    #[test]
    fn a_large_call_is_not_passed_by_small_ones() {
        let admission = Admission::new(usize::MAX, 10);
        let held = admission.admit(5, &Deadline::default()).unwrap();
        thread::scope(|scope| {
            let large = scope.spawn(|| admission.admit(10, &Deadline::default()).unwrap());
            while admission.in_use().waiting.is_empty() {
                thread::yield_now();
            }
            assert!(admission.admit(1, &Deadline::lasting_while(|| false)).is_none());
            drop(held);
            drop(large.join().unwrap());
        });
        assert!(admission.admit(1, &Deadline::lasting_while(|| false)).is_some());
    }

    #[test]
    fn large_notebooks_and_files_to_search_wait_for_room_and_small_ones_do_not() {
        use crate::operations::{Open, Search};
        let dir = tempfile::tempdir().unwrap();
        let large = "x".repeat(2 * MIN_ADMITTED_BYTES as usize);
        let text = serde_json::json!({ "cells": [{ "cell_type": "raw", "source": large }] });
        write(&dir.path().join("large.ipynb"), &text.to_string());
        write(&dir.path().join("small.ipynb"), r#"{"cells": []}"#);
        write(&dir.path().join("large.txt"), &large);
        write(&dir.path().join("small.txt"), "x\n");
        let session = crate::Session::open([dir.path()]).unwrap();
        let open = |name: &str| session.perform(&Open::new(name)).is_ok();
        let search =
            |name: &str| session.perform(&Search::new("x").with_path(Some(name.into()))).is_ok();
        for (call, large, small) in [
            (&open as &(dyn Fn(&str) -> bool + Sync), "large.ipynb", "small.ipynb"),
            (&search, "large.txt", "small.txt"),
        ] {
            let all = WHOLE_FILES.admit(u64::MAX, &Deadline::default()).unwrap();
            assert!(call(small));
            thread::scope(|scope| {
                let waits = scope.spawn(|| call(large));
                while WHOLE_FILES.in_use().waiting.is_empty() {
                    assert!(!waits.is_finished(), "{large} did not wait");
                    thread::yield_now();
                }
                drop(all);
                assert!(waits.join().unwrap());
            });
        }
    }

    #[test]
    fn an_answer_with_a_file_has_room_until_the_last_clone_of_it_is_dropped() {
        use crate::CallOptions;
        use crate::operations::ReadBytes;
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join("large.bin"), &"x".repeat(MIN_ADMITTED_BYTES as usize));
        let session = crate::Session::open([dir.path()]).unwrap();
        let read = |room: Option<AnswerRoom>| {
            let call = CallOptions::default().with_answer_room(room);
            session.perform_with(&ReadBytes::new("large.bin"), &call).unwrap();
        };
        let room = AnswerRoom::default();
        let (clone, watched) = (room.clone(), room.downgrade());
        // A second file does not wait for the room of the first.
        read(Some(room.clone()));
        let rest = ANSWERS.max_bytes - 4 * MIN_ADMITTED_BYTES;
        let rest = ANSWERS.admit(rest, &Deadline::default()).unwrap();
        read(Some(room));
        assert!(clone.share().is_some());
        thread::scope(|scope| {
            let waits = scope.spawn(|| read(None));
            while !watched.is_overdue(Duration::ZERO) {
                assert!(!waits.is_finished(), "it did not wait");
                thread::yield_now();
            }
            assert!(!watched.is_overdue(Duration::MAX));
            drop(clone);
            assert!(!watched.is_overdue(Duration::ZERO));
            waits.join().unwrap();
        });
        drop(rest);
    }

    #[test]
    fn large_edits_wait_before_they_lock_their_files() {
        use crate::operations::{Edit, Write};
        let dir = tempfile::tempdir().unwrap();
        let large = format!("one\n{}", "x".repeat(MIN_ADMITTED_BYTES as usize));
        write(&dir.path().join("large.txt"), &large);
        write(&dir.path().join("small.txt"), "one\n");
        let session = crate::Session::open([dir.path()]).unwrap();
        let edit = |name: &str| session.perform(&Edit::new(name, "one", "two")).is_ok();
        let all = EDITS.admit(u64::MAX, &Deadline::default()).unwrap();
        assert!(edit("small.txt"));
        thread::scope(|scope| {
            let waits = scope.spawn(|| edit("large.txt"));
            while EDITS.in_use().waiting.is_empty() {
                assert!(!waits.is_finished(), "it did not wait");
                thread::yield_now();
            }
            // Another call can change the file meanwhile.
            session.perform(&Write::new("large.txt", "one\n")).unwrap();
            drop(all);
            assert!(waits.join().unwrap());
        });
    }

    #[allow(clippy::disallowed_methods, reason = "a test makes its files")]
    fn write(path: &std::path::Path, text: &str) {
        std::fs::write(path, text).unwrap();
    }
}
