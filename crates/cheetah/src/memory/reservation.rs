//! Memory that counts as used as long as its owner exists.

use super::{MemoryBudget, MemoryUse};
use std::sync::Arc;

/// Bytes that count as used until drop.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<MemoryBudget>,
    of: MemoryUse,
    bytes: usize,
}

impl Reservation {
    /// The number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.subtract(self.of, self.bytes);
    }
}

impl MemoryBudget {
    /// Counts `bytes` more for a use until the result is dropped. Never waits or fails.
    pub fn reserve(self: &Arc<Self>, of: MemoryUse, bytes: usize) -> Reservation {
        self.add(of, bytes);
        Reservation { budget: Arc::clone(self), of, bytes }
    }
}
