//! Group commit: many wait, one syncs for all.
//!
//! The first to come syncs (the leader); threads that come meanwhile wait for it, and the first of
//! those then syncs for all of them. No timers: a group is what arrived while the sync before was
//! under way.
//!
//! Invariants
//!   G1  One thread at a time leads.
//!   G2  A waiter is woken when a leadership has ended, also by an error or a panic; then it finds
//!       its position durable, or leads itself, or fails.
//!   G3  Nobody is told that a position is durable before all that comes before it is.
//! `interleaving_tests.rs` compiles this file again over loom.

use super::sync::{AtomicU64, Condvar, Mutex, Ordering};
use crate::base::{sound, Lsn, Result};

/// See the module.
pub(super) struct Group {
    /// Whether somebody leads.
    led: Mutex<bool>,
    done: Condvar,
    durable_end: AtomicU64,
}

/// Ends the leadership also when the leader panics, so that the others find out instead of waiting
/// for ever.
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
    /// Everything before `durable_end` is durable.
    pub(super) fn new(durable_end: Lsn) -> Self {
        let durable_end = AtomicU64::new(durable_end.0);
        Self { led: Mutex::default(), done: Condvar::default(), durable_end }
    }

    /// Everything before is durable.
    pub(super) fn durable_end(&self) -> Lsn {
        Lsn(self.durable_end.load(Ordering::Acquire))
    }

    /// Notes that everything before `end` is durable.
    pub(super) fn note_durable(&self, end: Lsn) {
        self.durable_end.fetch_max(end.0, Ordering::AcqRel);
    }

    /// Returns when everything before `lsn` is durable. `check` says whether there is any hope;
    /// `sync` makes all durable that there is, `lsn` included, and returns its end.
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
        self.note_durable(sync()?);
        Ok(())
    }
}
