//! The memory that all sorters share.
//!
//! Invariants
//!   S1  All sorters together stay within the limit, except for an unavoidable minimum. For each
//!       sorter the minimum is one record longer than a piece, and the places of the first records.
//!       Once a statement has a MiB of records, eight pieces of records in transit between each
//!       pair of its threads are added.
//!   S2  Each sorter has one guaranteed piece from its creation; a quarter of the limit is reserved
//!       for these pieces. The rest is distributed in the order of requests, up to an even share
//!       for each sorter. A sorter that has more, because there were fewer sorters when it took the
//!       memory, frees the excess after it has written a run.
//!   S5  All sorters together have at most as many writing threads as one statement may use. A
//!       writing thread writes a run while its sorter takes more records.

use crate::base::statement_threads;
use crate::memory::{MemoryBudget, MemoryUse};
use parking_lot::Mutex;
use std::sync::Arc;

/// The maximum size of a piece.
const PIECE_BYTES_MAX: usize = 64 << 10;
/// The size of a piece is the limit divided by `PIECE_PART`, if that is less than the maximum.
const PIECE_PART: usize = 64;
/// The limit divided by `CERTAIN_PART` is reserved for guaranteed pieces.
const CERTAIN_PART: usize = 4;
/// The maximum number of sorters. Each may have a file open, and together with segment files they
/// must stay below the usual limit of 1024 open files.
const SORTERS_MAX: usize = 256;

/// See the module.
#[derive(Debug)]
pub struct SortMemory {
    limit: usize,
    budget: Arc<MemoryBudget>,
    state: Mutex<State>,
    /// The maximum memory that was in use so far.
    #[cfg(test)]
    pub(super) peak_bytes: std::sync::atomic::AtomicUsize,
}

#[derive(Default, Debug)]
struct State {
    /// Bytes taken in addition to the guaranteed pieces.
    taken: usize,
    sorters: usize,
    /// The number of threads that write runs while their sorters take more records.
    writers: usize,
}

impl SortMemory {
    /// Creates the memory for sorting, with its share of `budget`.
    pub fn new(budget: Arc<MemoryBudget>) -> Arc<Self> {
        let limit = budget.shares().sort_bytes_max();
        Self::with_limit(budget, limit)
    }

    /// Creates the memory for sorting, with `limit` bytes of `budget`.
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

    /// The maximum bytes for all sorters together.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The size of a piece, in bytes.
    pub(super) fn piece_bytes(&self) -> usize {
        (self.limit / PIECE_PART).clamp(1, PIECE_BYTES_MAX)
    }

    /// Bytes that may be taken in addition to the guaranteed pieces.
    fn more_limit(&self) -> usize {
        self.limit - self.limit / CERTAIN_PART
    }

    /// Returns shares for `count` sorters, or `None` if there would be too many sorters.
    pub fn join(self: &Arc<Self>, count: usize) -> Option<Vec<Share>> {
        self.join_within(count, 1)
    }

    /// Like [`join`](Self::join), for callers that need not sort: leaves half of the sorters to
    /// other callers.
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

/// The memory of one sorter, which is freed on drop.
#[derive(Debug)]
pub struct Share {
    memory: Arc<SortMemory>,
    bytes: usize,
}

impl Share {
    /// The bytes that the sorter has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The size of a piece, in bytes.
    pub fn piece_bytes(&self) -> usize {
        self.memory.piece_bytes()
    }

    /// Takes `bytes` more, unless the limit or the sorter's even share would be exceeded.
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

    /// Returns the permission to write a run on another thread, or `None` if the maximum number of
    /// such threads is reached.
    pub(super) fn writer(&self) -> Option<Writer> {
        let mut state = self.memory.state.lock();
        if state.writers >= statement_threads() {
            return None;
        }
        state.writers += 1;
        Some(Writer(Arc::clone(&self.memory)))
    }

    /// Takes `bytes` more, regardless of the limit (S1).
    pub(super) fn take_in_any_case(&mut self, bytes: usize) {
        self.memory.state.lock().taken += bytes;
        self.grow(bytes);
    }

    fn grow(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.memory.add(bytes);
    }

    /// Returns whether the sorter has more than its even share, because other sorters were created
    /// later.
    pub(super) fn is_too_large(&self) -> bool {
        let sorters = self.memory.state.lock().sorters;
        self.bytes - self.piece_bytes() > self.memory.more_limit() / sorters.max(1)
    }

    /// Frees the memory beyond `bytes`, but keeps the guaranteed piece.
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
