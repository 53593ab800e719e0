//! The queues of the cleaner, and the sleep of its thread.

use crate::base::PageId;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// The maximum number of pages that each part of a step writes.
pub(super) const STEP_PAGES_MAX: usize = 256;

/// The maximum number of pages in each queue. Further pages are not queued: a checkpoint writes
/// them.
const SETTLED_PAGES_MAX: usize = 1 << 16;

/// The cleaner's state between its steps.
#[derive(Default, Debug)]
pub(in crate::pool) struct Cleaner {
    finished: Mutex<FinishedPages>,
    /// Whether the cleaner's thread sleeps without work.
    is_idle: AtomicBool,
    /// Whether a thread has called since the cleaner last slept.
    is_called: AtomicBool,
    sleep: Mutex<()>,
    called: Condvar,
}

/// Queues of pages that will hardly change and are written soon.
#[derive(Default, Debug)]
struct FinishedPages {
    /// Pages of trees that are being loaded.
    loaded: VecDeque<PageId>,
    /// Pages of large values that transactions have written.
    values: VecDeque<PageId>,
}

impl Cleaner {
    /// Wakes the cleaner's thread. Never waits for it.
    pub(in crate::pool) fn call(&self) {
        self.is_called.store(true, SeqCst);
        if self.is_idle.swap(false, SeqCst) {
            // The lock makes sure that the thread is not between its check and its sleep.
            drop(self.sleep.lock());
            self.called.notify_one();
        }
    }

    /// Waits until a thread calls, or for `pause`.
    pub(super) fn wait(&self, pause: Duration) {
        let mut sleep = self.sleep.lock();
        self.is_idle.store(true, SeqCst);
        if !self.is_called.swap(false, SeqCst) {
            self.called.wait_for(&mut sleep, pause);
        }
        self.is_called.store(false, SeqCst);
        self.is_idle.store(false, SeqCst);
    }

    /// Queues pages that a load has built, or that will not change any more.
    pub(super) fn note_finished(&self, pages: impl Iterator<Item = PageId>) {
        let loaded = &mut self.finished.lock().loaded;
        loaded.extend(pages.take(SETTLED_PAGES_MAX - loaded.len()));
    }

    /// Queues the pages of a large value.
    pub(super) fn note_value(&self, pages: impl Iterator<Item = PageId>) {
        let values = &mut self.finished.lock().values;
        values.extend(pages.take(SETTLED_PAGES_MAX - values.len()));
    }

    /// Takes the oldest finished pages, at most `STEP_PAGES_MAX` from each queue. The `values_kept`
    /// newest pages of large values stay.
    pub(super) fn take_finished(&self, values_kept: usize) -> Vec<PageId> {
        let FinishedPages { loaded, values } = &mut *self.finished.lock();
        let from_values = values.len().saturating_sub(values_kept).min(STEP_PAGES_MAX);
        let mut pages: Vec<_> = values.drain(..from_values).collect();
        pages.extend(loaded.drain(..loaded.len().min(STEP_PAGES_MAX)));
        pages
    }
}
