//! One account book for the memory of the engine: frames, page table, buffers, log.
//!
//! Invariants
//!   M1  All accounts together stay within `buffer_pool_bytes`, except for an overshoot of frames allocated inside
//!       actions, which `make_room` pays back.
//!   M2  Frames take what the other accounts leave, but never less than half: a pool that gives its memory to the
//!       page table of a huge database still works.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Part of the frames' memory that their descriptors and the allocator take.
const DESCRIPTORS_PART: usize = 64;

/// Who uses memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Account {
    /// Page frames, in use and free.
    Frames,
    /// The page table.
    PageTable,
    /// Which pages changed in the generations that have not committed.
    Changes,
    /// Write buffers of the segments.
    WriteBuffers,
    /// The log buffer.
    Log,
    /// What encoding and decoding images takes.
    Scratch,
}

impl Account {
    /// All accounts with their names.
    pub const ALL: [(Account, &'static str); 6] = [
        (Account::Frames, "frames"),
        (Account::PageTable, "page_table"),
        (Account::Changes, "changes"),
        (Account::WriteBuffers, "write_buffers"),
        (Account::Log, "log"),
        (Account::Scratch, "scratch"),
    ];
}

/// The account book.
#[derive(Debug)]
pub struct Memory {
    budget: usize,
    used: [AtomicUsize; Account::ALL.len()],
}

impl Memory {
    pub(super) fn new(budget: u64) -> Self {
        Self { budget: budget as usize, used: Default::default() }
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

    pub(super) fn add(&self, account: Account, bytes: usize) {
        self.used[account as usize].fetch_add(bytes, Relaxed);
    }

    pub(super) fn subtract(&self, account: Account, bytes: usize) {
        self.used[account as usize].fetch_sub(bytes, Relaxed);
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
