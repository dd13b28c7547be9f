//! Bounds the memory for files, patterns and answers of all sessions of a process together.
//!
//! A call reserves memory before it reads, and releases it when it drops the permit. If the budget is used up, it
//! waits until its deadline. Small files need no permit.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use pinfold_confine::Deadline;

use crate::limits::{
    MAX_ANSWER_BYTES_AT_ONCE, MAX_EDITED_BYTES_AT_ONCE, MAX_FILE_BYTES_AT_ONCE,
    MAX_PATTERN_BYTES_AT_ONCE, MIN_RESERVED_BYTES,
};

/// How often a waiting call checks its deadline.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// For files that are in memory as a whole, while they are read, parsed or searched.
static WHOLE_FILES: MemoryBudget = MemoryBudget::new(usize::MAX, MAX_FILE_BYTES_AT_ONCE);

/// For answers that contain a whole file, from before the file is read until they are sent. A call with a permit of this
/// budget may wait for [`WHOLE_FILES`], and never the other way round, so that no two calls wait for each other.
static ANSWERS: MemoryBudget = MemoryBudget::new(usize::MAX, MAX_ANSWER_BYTES_AT_ONCE);

/// For the old and new contents of files that are edited, from before they are locked until they are changed.
static EDITS: MemoryBudget = MemoryBudget::new(usize::MAX, MAX_EDITED_BYTES_AT_ONCE);

/// For compiled patterns, while they are searched for. A call with a permit of this budget may wait for
/// [`WHOLE_FILES`].
static PATTERNS: MemoryBudget = MemoryBudget::new(usize::MAX, MAX_PATTERN_BYTES_AT_ONCE);

/// A permit, or `None` for what is small and needs none.
pub(crate) type LargePermit = Option<MemoryPermit<'static>>;

/// Waits for the memory to edit files with `bytes` bytes together.
pub(crate) fn reserve_edits(
    bytes: u64,
    deadline: &Deadline,
) -> Result<LargePermit, DeadlinePassed> {
    EDITS.reserve_large(bytes.saturating_mul(2), deadline)
}

/// Waits for the memory of a compiled pattern.
pub(crate) fn reserve_pattern(
    bytes: u64,
    deadline: &Deadline,
) -> Result<LargePermit, DeadlinePassed> {
    PATTERNS.reserve_large(bytes, deadline)
}

/// Waits for the memory of a file.
pub(crate) fn reserve_file(bytes: u64, deadline: &Deadline) -> Result<LargePermit, DeadlinePassed> {
    WHOLE_FILES.reserve_large(bytes, deadline)
}

/// The memory of a call's answer that contains a whole file. A server keeps a clone until the answer is sent. Dropping the
/// last clone releases the memory.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct AnswerMemory(Arc<Mutex<Option<AnswerPermit>>>);

/// A weak reference to an [`AnswerMemory`], which does not keep the memory.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct WeakAnswerMemory(Weak<Mutex<Option<AnswerPermit>>>);

#[derive(Debug)]
struct AnswerPermit {
    /// Releases the memory on drop.
    _bytes: MemoryPermit<'static>,
    taken: Instant,
}

impl AnswerMemory {
    /// Waits for the memory of an answer that contains a file of this size.
    pub(crate) fn reserve(
        &self,
        file_bytes: u64,
        deadline: &Deadline,
    ) -> Result<(), DeadlinePassed> {
        // The file, its base64, and the message in which that is written.
        let bytes = file_bytes.saturating_mul(4);
        // Releases the memory of an earlier file before the call waits.
        *self.permit() = None;
        let permit = ANSWERS.reserve_large(bytes, deadline)?;
        *self.permit() = permit.map(|bytes| AnswerPermit { _bytes: bytes, taken: Instant::now() });
        Ok(())
    }

    /// A weak reference.
    pub fn downgrade(&self) -> WeakAnswerMemory {
        WeakAnswerMemory(Arc::downgrade(&self.0))
    }

    fn permit(&self) -> MutexGuard<'_, Option<AnswerPermit>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WeakAnswerMemory {
    /// Whether the memory was reserved at least this long ago, is still in use, and other calls wait for memory.
    pub fn is_overdue(&self, after: Duration) -> bool {
        let Some(memory) = self.0.upgrade() else { return false };
        let taken = AnswerMemory(memory).permit().as_ref().map(|permit| permit.taken);
        taken.is_some_and(|taken| taken.elapsed() >= after) && !ANSWERS.in_use().waiting.is_empty()
    }
}

/// The deadline passed before there was enough memory.
#[derive(Debug)]
pub(crate) struct DeadlinePassed;

/// Bounds how many things are in memory at once, and their size together.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    max_count: usize,
    max_bytes: u64,
    in_use: Mutex<InUse>,
    freed: Condvar,
}

#[derive(Debug)]
struct InUse {
    count: usize,
    bytes: u64,
    /// The calls that wait, in the order in which they came. The first one gets its permit first, so that no call waits for ever
    /// while others come.
    waiting: VecDeque<u64>,
    next_number: u64,
}

/// Reserved memory of a [`MemoryBudget`]. Releases it on drop.
#[derive(Debug)]
pub(crate) struct MemoryPermit<'a> {
    budget: &'a MemoryBudget,
    bytes: u64,
}

impl MemoryBudget {
    pub(crate) const fn new(max_count: usize, max_bytes: u64) -> Self {
        let in_use = InUse { count: 0, bytes: 0, waiting: VecDeque::new(), next_number: 0 };
        let in_use = Mutex::new(in_use);
        Self { max_count, max_bytes, in_use, freed: Condvar::new() }
    }

    fn in_use(&self) -> MutexGuard<'_, InUse> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Self::reserve`], but small sizes need no permit.
    fn reserve_large(
        &self,
        bytes: u64,
        deadline: &Deadline,
    ) -> Result<Option<MemoryPermit<'_>>, DeadlinePassed> {
        if bytes < MIN_RESERVED_BYTES {
            return Ok(None);
        }
        self.reserve(bytes, deadline).map(Some).ok_or(DeadlinePassed)
    }

    /// Waits until `bytes` bytes are free. Returns `None` if the deadline passes first. A call that holds a permit of
    /// this budget must not wait for another one: two such calls could wait for each other.
    pub(crate) fn reserve(&self, bytes: u64, deadline: &Deadline) -> Option<MemoryPermit<'_>> {
        // What is larger than the budget gets all of it.
        let bytes = bytes.min(self.max_bytes);
        let mut in_use = self.in_use();
        let number = in_use.next_number;
        in_use.next_number += 1;
        in_use.waiting.push_back(number);
        let is_granted = loop {
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
        // The next one may fit, too.
        self.freed.notify_all();
        is_granted.then(|| MemoryPermit { budget: self, bytes })
    }
}

impl Drop for MemoryPermit<'_> {
    fn drop(&mut self) {
        let mut in_use = self.budget.in_use();
        in_use.count -= 1;
        in_use.bytes -= self.bytes;
        self.budget.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn memory_is_bounded_for_the_whole_process() {
        const MIB: u64 = 1024 * 1024;
        let (max_count, max_bytes) = (4, 256 * MIB);
        for size in [1, 10 * MIB, 100 * MIB, 199 * MIB, 1024 * MIB] {
            let budget = MemoryBudget::new(max_count, max_bytes);
            let (count, bytes) = (AtomicUsize::new(0), AtomicU64::new(0));
            thread::scope(|scope| {
                for _ in 0..16 {
                    scope.spawn(|| {
                        let permit = budget.reserve(size, &Deadline::default()).unwrap();
                        let at_once = count.fetch_add(1, Ordering::SeqCst) + 1;
                        let held = bytes.fetch_add(permit.bytes, Ordering::SeqCst);
                        assert!(at_once <= max_count, "{at_once} of {size}");
                        assert!(held + permit.bytes <= max_bytes, "{held} of {size}");
                        thread::yield_now();
                        count.fetch_sub(1, Ordering::SeqCst);
                        bytes.fetch_sub(permit.bytes, Ordering::SeqCst);
                    });
                }
            });
        }
    }

    #[test]
    fn a_call_that_waits_for_its_turn_ends_with_its_deadline() {
        let budget = MemoryBudget::new(1, 10);
        let held = budget.reserve(u64::MAX, &Deadline::default()).unwrap();
        let passed = Deadline::lasting_while(|| false);
        assert!(budget.reserve(1, &passed).is_none());
        drop(held);
        assert!(budget.reserve(1, &passed).is_some());
    }

    #[test]
    fn a_large_call_is_not_passed_by_small_ones() {
        let budget = MemoryBudget::new(usize::MAX, 10);
        let held = budget.reserve(5, &Deadline::default()).unwrap();
        thread::scope(|scope| {
            let large = scope.spawn(|| budget.reserve(10, &Deadline::default()).unwrap());
            while budget.in_use().waiting.is_empty() {
                thread::yield_now();
            }
            assert!(budget.reserve(1, &Deadline::lasting_while(|| false)).is_none());
            drop(held);
            drop(large.join().unwrap());
        });
        assert!(budget.reserve(1, &Deadline::lasting_while(|| false)).is_some());
    }

    #[test]
    fn large_notebooks_and_files_to_search_wait_for_memory_and_small_ones_do_not() {
        use crate::operations::{Open, Search};
        let dir = tempfile::tempdir().unwrap();
        let large = "x".repeat(2 * MIN_RESERVED_BYTES as usize);
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
            let all = WHOLE_FILES.reserve(u64::MAX, &Deadline::default()).unwrap();
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
    fn the_memory_of_an_answer_is_released_with_its_last_clone() {
        use crate::CallOptions;
        use crate::operations::ReadBytes;
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join("large.bin"), &"x".repeat(MIN_RESERVED_BYTES as usize));
        let session = crate::Session::open([dir.path()]).unwrap();
        let read = |memory: Option<AnswerMemory>| {
            let call = CallOptions::default().with_answer_memory(memory);
            session.perform_with(&ReadBytes::new("large.bin"), &call).unwrap();
        };
        let memory = AnswerMemory::default();
        let (clone, watched) = (memory.clone(), memory.downgrade());
        // A second file does not wait for the memory of the first.
        read(Some(memory.clone()));
        let rest = ANSWERS.max_bytes - 4 * MIN_RESERVED_BYTES;
        let rest = ANSWERS.reserve(rest, &Deadline::default()).unwrap();
        read(Some(memory));
        assert!(clone.permit().is_some());
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
        let large = format!("one\n{}", "x".repeat(MIN_RESERVED_BYTES as usize));
        write(&dir.path().join("large.txt"), &large);
        write(&dir.path().join("small.txt"), "one\n");
        let session = crate::Session::open([dir.path()]).unwrap();
        let edit = |name: &str| session.perform(&Edit::new(name, "one", "two")).is_ok();
        let all = EDITS.reserve(u64::MAX, &Deadline::default()).unwrap();
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
