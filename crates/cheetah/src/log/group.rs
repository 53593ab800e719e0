//! Group commit: one thread syncs the log for all waiting threads.
//!
//! The first thread, the leader, syncs. Threads that arrive during its sync wait. Then one of them
//! becomes the leader and syncs for all of them. There are no timers: a group consists of the
//! threads that arrived during the previous sync.
//!
//! Invariants
//!   G1  At most one thread leads at a time.
//!   G2  A waiter is woken when a leader finishes, even with an error or a panic. The waiter then
//!       returns because its position is durable, becomes the leader, or fails.
//!   G3  A position is reported durable only when everything before it is durable.
//! `interleaving_tests.rs` compiles this file again with loom's primitives.

use super::sync::{AtomicU64, Condvar, Mutex, Ordering};
use crate::base::{sound, Lsn, Result};

pub(super) struct Group {
    led: Mutex<bool>,
    done: Condvar,
    durable_end: AtomicU64,
}

/// Ends the leadership even if the leader panics, so that the other threads do not wait forever.
struct Leadership<'a>(&'a Group);

impl Drop for Leadership<'_> {
    fn drop(&mut self) {
        let wakes_late = sound!(true, "log: wake the group before the leadership ends");
        if !wakes_late {
            self.0.done.notify_all();
        }
        *self.0.led.lock() = false;
        if wakes_late {
            self.0.done.notify_all();
        }
    }
}

impl Group {
    /// Creates the group of a log that is durable up to `durable_end`.
    pub(super) fn new(durable_end: Lsn) -> Self {
        let durable_end = AtomicU64::new(durable_end.0);
        Self { led: Mutex::default(), done: Condvar::default(), durable_end }
    }

    /// The end of the durable part of the log.
    pub(super) fn durable_end(&self) -> Lsn {
        Lsn(self.durable_end.load(Ordering::Acquire))
    }

    /// Notes that everything before `end` is durable.
    pub(super) fn note_durable(&self, end: Lsn) {
        self.durable_end.fetch_max(end.0, Ordering::AcqRel);
    }

    /// Returns when everything before `lsn` is durable. `check` fails if the log has stopped.
    /// `sync` makes everything appended so far durable, including `lsn`, and returns its end.
    pub(super) fn sync_to(
        &self,
        lsn: Lsn,
        check: impl Fn() -> Result<()>,
        sync: impl FnOnce() -> Result<Lsn>,
    ) -> Result<()> {
        let mut led = self.led.lock();
        loop {
            check()?;
            if self.durable_end() >= lsn {
                return Ok(());
            }
            if !*led {
                break;
            }
            self.done.wait(&mut led);
        }
        *led = true;
        drop(led);
        let _leadership = Leadership(self);
        let end = sync()?;
        debug_assert!(end >= lsn, "G3: a sync covers the position that was asked for");
        self.note_durable(end);
        Ok(())
    }
}
