//! Counts the page latches that the current thread holds, in debug builds, so that the gate can
//! refuse to be entered under one: a thread waiting for the gate with a latch held deadlocks with
//! the drain of an epoch switch.

use std::cell::Cell;

thread_local! {
    static HELD: Cell<u32> = const { Cell::new(0) };
}

/// One latch more. The returned token takes it off again when dropped.
#[derive(Debug)]
pub(super) struct LatchToken(());

impl LatchToken {
    pub(super) fn new() -> Self {
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

/// Latches of this thread; always 0 in release builds.
pub(in crate::pool) fn latches_held() -> u32 {
    HELD.get()
}
