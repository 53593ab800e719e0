//! Counts the page latches that the current thread holds, its locks of page table entries, and the
//! pages that it has reserved, in debug builds. So the gate can refuse to be entered under a latch:
//! a thread waiting for the gate with a latch held deadlocks with the drain of an epoch switch. And
//! nobody can wait for a latch under the lock of an entry: a thread that has a latch takes locks of
//! entries.

use std::cell::Cell;

thread_local! {
    static HELD: Cell<u32> = const { Cell::new(0) };
    static ENTRIES: Cell<u32> = const { Cell::new(0) };
    static RESERVED: Cell<u32> = const { Cell::new(0) };
}

/// One latch more. The returned token takes it off again when dropped.
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

/// One lock of an entry more, as [`LatchToken`].
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

/// One reserved page more, as [`LatchToken`].
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

/// To be called before this thread waits for a page that is reserved.
pub(in crate::pool) fn check_nothing_held() {
    debug_assert_eq!(HELD.get(), 0, "B20: nobody waits for a reserved page with a latch");
    debug_assert_eq!(RESERVED.get(), 0, "B20: nobody waits for a reserved page who has reserved one");
}

/// To be called before this thread waits for a latch.
pub(in crate::pool) fn check_order() {
    debug_assert_eq!(ENTRIES.get(), 0, "F6: no latch is waited for under the lock of an entry");
}

/// Latches of this thread; always 0 in release builds.
pub(in crate::pool) fn latches_held() -> u32 {
    HELD.get()
}
