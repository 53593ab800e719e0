//! The pages that wait for the cleaner, and when it ran.

use crate::base::PageId;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// Time for which the cleaner catches up at most, in nanoseconds.
const CATCH_UP_NS: u64 = 1_000_000_000;
/// Pages written in one step at most.
pub(super) const STEP_PAGES_MAX: u64 = 256;

/// Pages of each sort that wait for the cleaner at most; a checkpoint writes the others.
const SETTLED_PAGES_MAX: usize = 1 << 16;

/// The cleaner's state between its steps.
#[derive(Default, Debug)]
pub(in crate::pool) struct Cleaner {
    schedule: Mutex<Schedule>,
    finished: Mutex<FinishedPages>,
    /// Whether its thread has nothing to do, and sleeps.
    is_idle: AtomicBool,
    /// Whether somebody has called since it last slept.
    is_called: AtomicBool,
    sleep: Mutex<()>,
    called: Condvar,
}

/// Pages that will hardly change, so they are written soon.
#[derive(Default, Debug)]
struct FinishedPages {
    /// Of trees that are loaded.
    loaded: VecDeque<PageId>,
    /// Of large values that transactions have written.
    values: VecDeque<PageId>,
}

/// When the cleaner ran, and the pages that it has not spent yet.
#[derive(Default, Debug)]
struct Schedule {
    last_ns: u64,
    /// In millionths of a page.
    credit: u64,
}

impl Schedule {
    /// Pages due at `now_ns` when `rate` are due a second.
    fn due(&mut self, now_ns: u64, rate: u64) -> u64 {
        let elapsed_ns = now_ns.saturating_sub(self.last_ns).min(CATCH_UP_NS);
        self.last_ns = now_ns;
        self.credit = (self.credit + rate * elapsed_ns / 1000).min(STEP_PAGES_MAX * 1_000_000);
        let pages = self.credit / 1_000_000;
        self.credit -= pages * 1_000_000;
        pages
    }
}

impl Cleaner {
    /// Has its thread work at once. Never waits for it.
    pub(in crate::pool) fn call(&self) {
        self.is_called.store(true, SeqCst);
        if self.is_idle.swap(false, SeqCst) {
            // Not between the question and the sleep of the thread.
            drop(self.sleep.lock());
            self.called.notify_one();
        }
    }

    /// Waits until somebody calls, or for `pause`.
    pub(super) fn wait(&self, pause: Duration) {
        let mut sleep = self.sleep.lock();
        self.is_idle.store(true, SeqCst);
        if !self.is_called.swap(false, SeqCst) {
            self.called.wait_for(&mut sleep, pause);
        }
        self.is_called.store(false, SeqCst);
        self.is_idle.store(false, SeqCst);
    }

    /// Pages due at `now_ns` when `rate` are due a second.
    pub(super) fn due(&self, now_ns: u64, rate: u64) -> u64 {
        self.schedule.lock().due(now_ns, rate)
    }

    /// Pages that a load has built, or that do not change any more.
    pub(super) fn note_finished(&self, pages: impl Iterator<Item = PageId>) {
        let loaded = &mut self.finished.lock().loaded;
        loaded.extend(pages.take(SETTLED_PAGES_MAX - loaded.len()));
    }

    /// Pages of a large value.
    pub(super) fn note_value(&self, pages: impl Iterator<Item = PageId>) {
        let values = &mut self.finished.lock().values;
        values.extend(pages.take(SETTLED_PAGES_MAX - values.len()));
    }

    /// Takes the oldest of the finished pages, at most those of a step of each sort; the
    /// `values_kept` newest large values stay.
    pub(super) fn take_finished(&self, values_kept: usize) -> Vec<PageId> {
        let FinishedPages { loaded, values } = &mut *self.finished.lock();
        let from_values = values.len().saturating_sub(values_kept).min(STEP_PAGES_MAX as usize);
        let mut pages: Vec<_> = values.drain(..from_values).collect();
        pages.extend(loaded.drain(..loaded.len().min(STEP_PAGES_MAX as usize)));
        pages
    }
}
