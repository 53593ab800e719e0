//! In debug builds, counts the page latches, the locks of page table entries and the reserved pages
//! that the current thread holds.
//!
//! The counts detect deadlocks. A thread that holds a latch while it waits for the gate may
//! deadlock with the epoch switch, since the switch waits for all open mini-transactions. A thread
//! that holds the lock of an entry while it waits for a latch may deadlock with a thread that holds
//! the latch and waits for the entry.

use std::cell::Cell;

thread_local! {
    static HELD: Cell<u32> = const { Cell::new(0) };
    static ENTRIES: Cell<u32> = const { Cell::new(0) };
    static RESERVED: Cell<u32> = const { Cell::new(0) };
}

/// Counts one latch until it is dropped.
#[derive(Debug)]
pub(in crate::pool) struct LatchToken(());

impl LatchToken {
    pub(in crate::pool) fn new() -> Self {
        if cfg!(debug_assertions) {
            HELD.set(HELD.get() + 1);
        }
        Self(())
    }
}

impl Drop for LatchToken {
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            HELD.set(HELD.get() - 1);
        }
    }
}

/// Counts one lock of an entry, like [`LatchToken`].
#[derive(Debug)]
pub(super) struct EntryToken(());

impl EntryToken {
    pub(super) fn new() -> Self {
        if cfg!(debug_assertions) {
            ENTRIES.set(ENTRIES.get() + 1);
        }
        Self(())
    }
}

impl Drop for EntryToken {
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            ENTRIES.set(ENTRIES.get() - 1);
        }
    }
}

/// Counts one reserved page, like [`LatchToken`].
#[derive(Debug)]
pub(crate) struct ReservedToken(());

impl ReservedToken {
    pub(crate) fn new() -> Self {
        if cfg!(debug_assertions) {
            RESERVED.set(RESERVED.get() + 1);
        }
        Self(())
    }
}

impl Drop for ReservedToken {
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            RESERVED.set(RESERVED.get() - 1);
        }
    }
}

/// The caller must call this before it waits for a reserved page.
pub(in crate::pool) fn check_nothing_held() {
    debug_assert_eq!(HELD.get(), 0, "B20: no thread waits for a reserved page with a latch");
    debug_assert_eq!(RESERVED.get(), 0, "B20: no thread with a reservation waits for a reserved page");
}

/// The caller must call this before it waits for a latch.
pub(in crate::pool) fn check_order() {
    debug_assert_eq!(ENTRIES.get(), 0, "F6: no thread waits for a latch under the lock of an entry");
}

/// The number of latches that this thread holds. Always 0 in release builds.
pub(crate) fn latches_held() -> u32 {
    HELD.get()
}
