//! The memory that all sorters share.
//!
//! Invariants
//!   S1  All sorters together stay within the limit, but for the part that cannot be less: a record
//!       longer than a piece, and the places of its first records, of each sorter; and eight pieces
//!       of records on their way between two threads, once there is a MiB of them, for each pair of
//!       threads of a statement.
//!   S2  Each has one piece for certain, from its beginning; a quarter of the limit is for these.
//!       The rest is taken in the order of arrival, up to an even share each: a sorter that has
//!       more because fewer were there gives back when it has written a run.
//!   S5  All sorters together have as many threads that write while they take more as one statement
//!       may use.

use crate::base::statement_threads;
use crate::memory::{MemoryBudget, MemoryUse};
use parking_lot::Mutex;
use std::sync::Arc;

/// Largest piece.
const PIECE_BYTES_MAX: usize = 64 << 10;
/// Part of the memory that a piece takes when that is less.
const PIECE_PART: usize = 64;
/// Part of the memory that is for the pieces that sorters have for certain.
const CERTAIN_PART: usize = 4;
/// Sorters at a time, as each may have a file open: with those of segments fewer than the usual
/// limit of 1024.
const SORTERS_MAX: usize = 256;

/// See the module.
#[derive(Debug)]
pub struct SortMemory {
    limit: usize,
    budget: Arc<MemoryBudget>,
    state: Mutex<State>,
    /// The most that has ever been in use.
    #[cfg(test)]
    pub(super) peak_bytes: std::sync::atomic::AtomicUsize,
}

#[derive(Default, Debug)]
struct State {
    /// Beside the pieces that sorters have for certain.
    taken: usize,
    sorters: usize,
    /// Threads that write runs while their sorters take more.
    writers: usize,
}

impl SortMemory {
    /// The share of `budget` that is for sorting.
    pub fn new(budget: Arc<MemoryBudget>) -> Arc<Self> {
        let limit = budget.shares().sort_bytes_max();
        Self::with_limit(budget, limit)
    }

    /// `limit` bytes of `budget`.
    pub(super) fn with_limit(budget: Arc<MemoryBudget>, limit: usize) -> Arc<Self> {
        let state = Mutex::default();
        Arc::new(Self {
            limit,
            budget,
            state,
            #[cfg(test)]
            peak_bytes: Default::default(),
        })
    }

    fn add(&self, bytes: usize) {
        let _now = self.budget.add(MemoryUse::Sort, bytes);
        #[cfg(test)]
        self.peak_bytes.fetch_max(_now, std::sync::atomic::Ordering::Relaxed);
    }

    fn subtract(&self, bytes: usize) {
        self.budget.subtract(MemoryUse::Sort, bytes);
    }

    /// Bytes for all sorters together.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes that are taken and given back at a time.
    pub(super) fn piece_bytes(&self) -> usize {
        (self.limit / PIECE_PART).clamp(1, PIECE_BYTES_MAX)
    }

    /// Bytes that may be taken beside the pieces.
    fn more_limit(&self) -> usize {
        self.limit - self.limit / CERTAIN_PART
    }

    /// Shares for `count` sorters; `None` when there are too many already.
    pub fn join(self: &Arc<Self>, count: usize) -> Option<Vec<Share>> {
        self.join_within(count, 1)
    }

    /// As [`join`](Self::join), for who can do without: half of all sorters is left to others.
    pub fn join_leaving_half(self: &Arc<Self>, count: usize) -> Option<Vec<Share>> {
        self.join_within(count, 2)
    }

    fn join_within(self: &Arc<Self>, count: usize, part: usize) -> Option<Vec<Share>> {
        let bytes = self.piece_bytes();
        let mut state = self.state.lock();
        let sorters = state.sorters + count;
        if sorters > SORTERS_MAX / part || sorters * bytes > self.limit / CERTAIN_PART / part {
            return None;
        }
        state.sorters = sorters;
        self.add(count * bytes);
        Some((0..count).map(|_| Share { memory: Arc::clone(self), bytes }).collect())
    }
}

/// The memory of one sorter; given back when it goes.
#[derive(Debug)]
pub struct Share {
    memory: Arc<SortMemory>,
    bytes: usize,
}

impl Share {
    /// Bytes that it has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that are taken and given back at a time.
    pub fn piece_bytes(&self) -> usize {
        self.memory.piece_bytes()
    }

    /// Takes `bytes` more, unless all have as much as they may, or this one its even share.
    pub fn take(&mut self, bytes: usize) -> bool {
        let mut state = self.memory.state.lock();
        let (limit, has) = (self.memory.more_limit(), self.bytes - self.piece_bytes());
        if state.taken + bytes > limit || has + bytes > limit / state.sorters.max(1) {
            return false;
        }
        state.taken += bytes;
        drop(state);
        self.grow(bytes);
        true
    }

    /// The right to have a thread write a run meanwhile; `None` when others have as many as there
    /// may be.
    pub(super) fn writer(&self) -> Option<Writer> {
        let mut state = self.memory.state.lock();
        if state.writers >= statement_threads() {
            return None;
        }
        state.writers += 1;
        Some(Writer(Arc::clone(&self.memory)))
    }

    /// Takes `bytes` more, without regard to the others (S1).
    pub(super) fn take_in_any_case(&mut self, bytes: usize) {
        self.memory.state.lock().taken += bytes;
        self.grow(bytes);
    }

    fn grow(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.memory.add(bytes);
    }

    /// Whether others have come since it took its memory.
    pub(super) fn is_too_large(&self) -> bool {
        let sorters = self.memory.state.lock().sorters;
        self.bytes - self.piece_bytes() > self.memory.more_limit() / sorters.max(1)
    }

    /// Gives back what exceeds `bytes`, and keeps its piece.
    pub fn shrink_to(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes.max(self.piece_bytes()));
        self.bytes -= less;
        self.memory.state.lock().taken -= less;
        self.memory.subtract(less);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = self.memory.state.lock();
        state.taken -= self.bytes - self.piece_bytes();
        state.sorters -= 1;
        drop(state);
        self.memory.subtract(self.bytes);
    }
}

/// See [`Share::writer`].
pub(super) struct Writer(Arc<SortMemory>);

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.state.lock().writers -= 1;
    }
}
