//! One account book for the memory of the engine: frames, page table, buffers, log, locks.
//!
//! What is long-lived has a fixed size and is allocated once: memory that comes and goes in large pieces leaves holes in
//! the allocator of the process, which count as its memory. Frames have addresses of their own (`Buffers`).
//!
//! Invariants
//!   M1  All accounts together stay within `buffer_pool_bytes`, except for an overshoot of frames allocated inside
//!       mini-transactions, which `make_room` pays back.
//!   M2  Frames take what the other accounts leave, but never less than half: a pool that gives its memory to the
//!       page table of a huge database still works.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// Part of the frames' memory that their descriptors and the allocator take.
const DESCRIPTORS_PART: usize = 64;
/// Part of the budget for what is not counted one by one, and its most.
const REST_PART: usize = 16;
const REST_BYTES_MAX: usize = 64 << 20;

/// Who uses memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Account {
    /// Page frames, in use and free.
    Frames,
    /// The page table.
    PageTable,
    /// Which pages changed in the epochs that have not committed.
    Changes,
    /// Write buffers of the segments.
    WriteBuffers,
    /// The log buffer.
    Log,
    /// What encoding and decoding images takes.
    Scratch,
    /// Locks that transactions have.
    Locks,
    /// What redo holds of the log, at a startup.
    Redo,
    /// What loads sort.
    Sort,
    /// How transactions have ended about which somebody may still ask.
    Outcomes,
    /// What is too small or too short-lived to be counted one by one: rows and keys of operations, cursors, the catalog,
    /// the merging of the page map, what the allocator keeps for each thread.
    Rest,
}

impl Account {
    /// All accounts with the names under which status shows them.
    pub const ALL: [(Account, &'static str); 11] = [
        (Account::Frames, "memory_frames_bytes"),
        (Account::PageTable, "memory_page_table_bytes"),
        (Account::Changes, "memory_changes_bytes"),
        (Account::WriteBuffers, "memory_write_buffers_bytes"),
        (Account::Log, "memory_log_bytes"),
        (Account::Scratch, "memory_scratch_bytes"),
        (Account::Locks, "memory_locks_bytes"),
        (Account::Redo, "memory_redo_bytes"),
        (Account::Sort, "memory_sort_bytes"),
        (Account::Outcomes, "memory_outcomes_bytes"),
        (Account::Rest, "memory_rest_bytes"),
    ];
}

/// The account book.
#[derive(Debug)]
pub struct Memory {
    budget: usize,
    used: [AtomicUsize; Account::ALL.len()],
}

/// Bytes that are in use for as long as this lives.
#[derive(Debug)]
pub struct Booked {
    memory: Arc<Memory>,
    account: Account,
    bytes: usize,
}

impl Booked {
    /// How many.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Booked {
    fn drop(&mut self) {
        self.memory.subtract(self.account, self.bytes);
    }
}

impl Memory {
    /// Without anything in use.
    pub fn new(budget: u64) -> Self {
        Self { budget: budget as usize, used: Default::default() }
    }

    /// What [`Account::Rest`] gets.
    pub(super) fn rest_bytes(&self) -> usize {
        (self.budget / REST_PART).min(REST_BYTES_MAX)
    }

    /// Bytes of the account.
    pub fn used(&self, account: Account) -> usize {
        self.used[account as usize].load(Relaxed)
    }

    /// Bytes of all accounts.
    pub fn total(&self) -> usize {
        Account::ALL.iter().map(|(account, _)| self.used(*account)).sum()
    }

    /// The limit for all accounts together.
    pub fn budget(&self) -> usize {
        self.budget
    }

    /// Tells what an account uses now. For parts that know their size; frames adjust theirs step by step.
    pub fn set(&self, account: Account, bytes: usize) {
        self.used[account as usize].store(bytes, Relaxed);
    }

    /// Tells that an account uses so much more.
    pub fn add(&self, account: Account, bytes: usize) {
        self.used[account as usize].fetch_add(bytes, Relaxed);
    }

    /// Tells that an account uses so much less.
    pub fn subtract(&self, account: Account, bytes: usize) {
        self.used[account as usize].fetch_sub(bytes, Relaxed);
    }

    /// Tells that an account uses so much more, until the result is dropped.
    pub fn book(self: &Arc<Self>, account: Account, bytes: usize) -> Booked {
        self.add(account, bytes);
        Booked { memory: Arc::clone(self), account, bytes }
    }

    /// What the bytes of frames may use now (M2). A small part is left for their descriptors.
    pub fn frames_limit(&self) -> usize {
        let others = self.total() - self.used(Account::Frames).min(self.total());
        let available = self.budget.saturating_sub(others).max(self.budget / 2);
        available - available / DESCRIPTORS_PART
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_get_what_the_others_leave_but_at_least_half() {
        let memory = Memory::new(1000);
        memory.set(Account::Log, 100);
        memory.set(Account::Frames, 700);
        assert_eq!(memory.frames_limit(), 900 - 14);
        memory.set(Account::PageTable, 5000);
        assert_eq!(memory.frames_limit(), 500 - 7);
        assert_eq!(memory.total(), 5800);
    }
}
