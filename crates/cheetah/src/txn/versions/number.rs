//! Shared numbers, so that the model checker can put its own in their place.

use std::sync::atomic::{fence, AtomicU64, Ordering};

/// A number that several threads read, and one at a time writes.
pub(super) trait Number {
    /// A number.
    fn new(value: u64) -> Self;
    /// Reads it; writes made before the value was written are seen too.
    fn get(&self) -> u64;
    /// Writes it.
    fn set(&self, value: u64);
    /// All threads agree on the order of all fences.
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
