//! Shared numbers, so that the model checker can replace them with its own.

use std::sync::atomic::{fence, AtomicU64, Ordering};

/// A number that several threads read, and only one thread at a time writes.
pub(super) trait Number {
    fn new(value: u64) -> Self;
    /// Reads the number; writes made before the value was written are also visible.
    fn get(&self) -> u64;
    fn set(&self, value: u64);
    /// Executes a fence; all threads agree on the order of all fences.
    fn fence();
}

impl Number for AtomicU64 {
    fn new(value: u64) -> Self {
        AtomicU64::new(value)
    }

    fn get(&self) -> u64 {
        self.load(Ordering::Acquire)
    }

    fn set(&self, value: u64) {
        self.store(value, Ordering::Release);
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }
}
