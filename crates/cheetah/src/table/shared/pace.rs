//! Limits of background work, set by settings and by the background threads.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// Shared with the checkpoints.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    has_threads: Arc<AtomicBool>,
    io_capacity: Arc<AtomicU32>,
    unlogged: Arc<AtomicU64>,
}

impl Pace {
    /// Limits for `io_capacity` operations a second without threads.
    pub(crate) fn new(io_capacity: u32) -> Self {
        Self {
            has_threads: Arc::default(),
            io_capacity: Arc::new(AtomicU32::new(io_capacity)),
            unlogged: Arc::default(),
        }
    }

    /// Whether there are background threads, which make a checkpoint when writers wait for one.
    pub(crate) fn has_threads(&self) -> bool {
        self.has_threads.load(Relaxed)
    }

    pub(crate) fn set_has_threads(&self, has_threads: bool) {
        self.has_threads.store(has_threads, Relaxed);
    }

    /// I/O operations per second that the background may use when nothing is urgent.
    pub(crate) fn io_capacity(&self) -> u32 {
        self.io_capacity.load(Relaxed)
    }

    pub(crate) fn set_io_capacity(&self, operations_per_second: u32) {
        self.io_capacity.store(operations_per_second, Relaxed);
    }

    /// Notes an unlogged change, that is, one of a temporary table.
    pub(crate) fn note_unlogged(&self) {
        self.unlogged.fetch_add(1, Relaxed);
    }

    pub(crate) fn unlogged(&self) -> u64 {
        self.unlogged.load(Relaxed)
    }

    /// For the checkpoints: whether threads run, operations per second, unlogged changes.
    pub(crate) fn shared(&self) -> (Arc<AtomicBool>, Arc<AtomicU32>, Arc<AtomicU64>) {
        (Arc::clone(&self.has_threads), Arc::clone(&self.io_capacity), Arc::clone(&self.unlogged))
    }
}
