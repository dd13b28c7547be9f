//! Bounds what all sessions of a process hold in memory at once. Other calls wait for room until their deadline.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pinfold_confine::Deadline;

use crate::limits::{MAX_FILE_BYTES_AT_ONCE, MIN_ADMITTED_BYTES};

/// How often a waiting call checks its deadline.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The files that are in memory as a whole, while they are read, parsed or searched.
static WHOLE_FILES: Admission = Admission::new(usize::MAX, MAX_FILE_BYTES_AT_ONCE);

/// Waits until a file may take so many bytes of memory. A small one need not wait. `Err` if the deadline passes first.
pub(crate) fn admit_file(
    bytes: u64,
    deadline: &Deadline,
) -> Result<Option<Admitted<'static>>, Late> {
    if bytes < MIN_ADMITTED_BYTES {
        return Ok(None);
    }
    WHOLE_FILES.admit(bytes, deadline).map(Some).ok_or(Late)
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
    /// How many calls wait.
    waiting: usize,
}

/// A share of an [`Admission`], until it is dropped.
#[derive(Debug)]
pub(crate) struct Admitted<'a> {
    admission: &'a Admission,
    bytes: u64,
}

impl Admission {
    pub(crate) const fn new(max_count: usize, max_bytes: u64) -> Self {
        let in_use = Mutex::new(InUse { count: 0, bytes: 0, waiting: 0 });
        Self { max_count, max_bytes, in_use, freed: Condvar::new() }
    }

    fn in_use(&self) -> MutexGuard<'_, InUse> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for so many bytes; `None` if the deadline passes first. Whoever holds a share must not
    /// wait for another: two such calls could wait for each other.
    pub(crate) fn admit(&self, bytes: u64, deadline: &Deadline) -> Option<Admitted<'_>> {
        // What is larger than the limit has all of it to itself.
        let bytes = bytes.min(self.max_bytes);
        let mut in_use = self.in_use();
        while in_use.count >= self.max_count || in_use.bytes + bytes > self.max_bytes {
            if deadline.has_passed() {
                return None;
            }
            in_use.waiting += 1;
            let waited = self.freed.wait_timeout(in_use, POLL_INTERVAL);
            in_use = waited.unwrap_or_else(PoisonError::into_inner).0;
            in_use.waiting -= 1;
        }
        in_use.count += 1;
        in_use.bytes += bytes;
        Some(Admitted { admission: self, bytes })
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
                while WHOLE_FILES.in_use().waiting == 0 {
                    assert!(!waits.is_finished(), "{large} did not wait");
                    thread::yield_now();
                }
                drop(all);
                assert!(waits.join().unwrap());
            });
        }
    }

    #[allow(clippy::disallowed_methods, reason = "a test makes its files")]
    fn write(path: &std::path::Path, text: &str) {
        std::fs::write(path, text).unwrap();
    }
}
