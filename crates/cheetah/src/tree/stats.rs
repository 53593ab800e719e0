//! Counters of one tree's structure changes, and the averages that its estimates use.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the tree was opened.
#[derive(Default, Debug)]
pub(super) struct TreeStats {
    pub(super) splits: AtomicU64,
    pub(super) merges: AtomicU64,
    pub(super) moves_right: AtomicU64,
    pub(super) restarts: AtomicU64,
    /// The number of searches from the root. It exists only in tests: a counter that every search
    /// changes would slow down all searches.
    #[cfg(test)]
    pub(super) descents: AtomicU64,
    /// The average number of records in the leaves that estimates visited.
    pub(super) leaf_records: Average,
    /// The average number of children of the inner pages below the root that estimates visited.
    pub(super) inner_children: Average,
}

/// A moving average, in sixteenths; 0 before the first value.
#[derive(Default, Debug)]
pub(super) struct Average(AtomicU64);

impl Average {
    /// Adds a value. One of two concurrent values may be lost: the average is only an estimate.
    pub(super) fn add(&self, value: u64) {
        let old = self.0.load(Ordering::Relaxed);
        let new = if old == 0 { value * 16 } else { old - old / 16 + value };
        self.0.store(new, Ordering::Relaxed);
    }

    pub(super) fn is_known(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// The average, or `guess` before the first value; at least 1.
    pub(super) fn or(&self, guess: u64) -> u64 {
        match self.0.load(Ordering::Relaxed) {
            0 => guess,
            sixteenths => (sixteenths / 16).max(1),
        }
    }
}

/// The counters at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TreeCounts {
    /// Splits of pages, including the root.
    pub splits: u64,
    /// Merges of a page into its left neighbour, or of the only child into the root.
    pub merges: u64,
    /// The number of times a search moved to a right neighbour because a page was split meanwhile.
    pub moves_right: u64,
    /// The number of times a search restarted at the root.
    pub restarts: u64,
}

impl TreeStats {
    pub(super) fn counts(&self) -> TreeCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TreeCounts {
            splits: read(&self.splits),
            merges: read(&self.merges),
            moves_right: read(&self.moves_right),
            restarts: read(&self.restarts),
        }
    }
}

pub(super) fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
