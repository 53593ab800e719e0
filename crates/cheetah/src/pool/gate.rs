//! The gate: many mini-transactions at a time, or one epoch switch of the epoch.
//!
//! Invariants
//!   G1  The epoch is constant while any mini-transaction is open.
//!   G2  A thread opens one mini-transaction at a time, and holds no page latch when it does (C7): otherwise the epoch switch, which
//!       waits for open mini-transactions, and a mini-transaction waiting for that latch would wait for each other.
//!   G3  A panic inside a mini-transaction aborts the process: half a mini-transaction must not reach a checkpoint. A mini-transaction that a
//!       thread opens while it unwinds already (a transaction is dropped, and rolls back its changes) is one like
//!       any other; a second panic inside of it aborts the process by the rules of the language.

use super::doors::{Doors, Inside};
use super::{latch_count, Pool};
use crate::base::Epoch;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Doors of the gate: threads spread over them so that entering does not bounce one cache line.
const DOORS_COUNT: usize = 8;

thread_local! {
    static DOOR: Cell<Option<usize>> = const { Cell::new(None) };
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// See the module.
#[derive(Debug)]
pub(super) struct Gate {
    doors: Doors<DOORS_COUNT>,
    next_door: AtomicUsize,
}

impl Gate {
    pub(super) fn new(epoch: Epoch) -> Self {
        Self { doors: Doors::new(epoch), next_door: AtomicUsize::new(0) }
    }

    /// Opens a mini-transaction; waits while an epoch switch drains.
    pub(super) fn enter<'p>(&'p self, pool: &'p Pool) -> MiniTransaction<'p> {
        debug_assert_eq!(latch_count::held(), 0, "G2: the gate is entered before latches are taken");
        debug_assert!(!INSIDE.get(), "G2: one mini-transaction at a time");
        let epoch = self.doors.enter(self.door_no());
        INSIDE.set(true);
        MiniTransaction { pool, epoch, opened_unwinding: std::thread::panicking() }
    }

    /// Waits until no mini-transaction is open, moves on to the next epoch, and runs `at_switch` before any mini-transaction of the
    /// new epoch starts. `at_switch` gets the epoch that has just ended.
    pub(super) fn switch_epoch<T>(&self, at_switch: impl FnOnce(Epoch) -> T) -> T {
        debug_assert_eq!(
            latch_count::held(),
            0,
            "G2: the epoch switch waits for latches inside mini-transactions"
        );
        debug_assert!(!INSIDE.get(), "G2: a mini-transaction cannot wait for itself");
        self.doors.move_on(at_switch)
    }

    /// The epoch of the mini-transactions that are open, or would be opened, now. Outside of mini-transactions it may be outdated
    /// by the time it is looked at. Never waits.
    pub(super) fn epoch(&self) -> Epoch {
        self.doors.epoch()
    }

    fn door_no(&self) -> usize {
        DOOR.get().unwrap_or_else(|| {
            let no = self.next_door.fetch_add(1, Ordering::Relaxed) % DOORS_COUNT;
            DOOR.set(Some(no));
            no
        })
    }
}

/// Whether this thread has a mini-transaction open.
pub(super) fn inside() -> bool {
    INSIDE.get()
}

/// The right to change pages. What happens between creating and dropping it is in an epoch as a whole or not at
/// all. Waiting for anything that itself waits for the gate is forbidden inside.
#[derive(Debug)]
pub struct MiniTransaction<'p> {
    pool: &'p Pool,
    epoch: Inside<'p>,
    /// A panic outside of the mini-transaction is the reason why it was opened.
    opened_unwinding: bool,
}

impl<'p> MiniTransaction<'p> {
    /// The epoch that the mini-transaction's changes belong to.
    pub fn epoch(&self) -> Epoch {
        *self.epoch
    }

    pub(super) fn pool(&self) -> &'p Pool {
        self.pool
    }
}

impl Drop for MiniTransaction<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.opened_unwinding {
            eprintln!(
                "cheetah: panic inside a mini-transaction; aborting so that half a change is never stored"
            );
            std::process::abort();
        }
        INSIDE.set(false);
    }
}

#[cfg(test)]
mod tests {
    use crate::base::Config;
    use crate::pool::testing::Database;
    use crate::pool::PageClass;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn an_epoch_switch_waits_for_open_mini_transactions_and_stops_new_ones() {
        let db = Database::new(&Config::tiny());
        let open = AtomicBool::new(true);
        let mtr = db.pool.enter();
        let before = mtr.epoch();
        std::thread::scope(|scope| {
            let flip = scope.spawn(|| {
                db.pool.gate.switch_epoch(|ended| {
                    assert!(!open.load(Ordering::SeqCst), "G1");
                    ended
                })
            });
            for _ in 0..100 {
                std::thread::yield_now();
            }
            open.store(false, Ordering::SeqCst);
            drop(mtr);
            assert_eq!(flip.join().unwrap(), before);
        });
        assert_eq!(db.pool.enter().epoch().0, before.0 + 1);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "G2")]
    fn the_gate_refuses_a_thread_that_holds_a_latch() {
        let db = Database::new(&Config::tiny());
        let pid = db.add(PageClass::Base, 1);
        let page = db.pool.fetch(pid).unwrap().unwrap();
        let _latch = page.read();
        db.pool.enter();
    }

    /// Runs itself again in a process that panics inside a mini-transaction.
    #[test]
    fn a_panic_inside_a_mini_transaction_aborts_the_process() {
        const VICTIM: &str = "CHEETAH_TEST_PANIC_INSIDE_MTR";
        if std::env::var_os(VICTIM).is_some() {
            let db = Database::new(&Config::tiny());
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _mtr = db.pool.enter();
                panic!("half of a mini-transaction is done");
            }));
            drop(caught);
            std::process::exit(0);
        }
        let name = "pool::gate::tests::a_panic_inside_a_mini_transaction_aborts_the_process";
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        let output = again.args(["--exact", name, "--nocapture"]).env(VICTIM, "1").output().unwrap();
        assert!(!output.status.success());
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("aborting so that half a change is never stored"), "{text}");
    }

    #[test]
    fn a_mini_transaction_that_a_panic_outside_of_it_opens_is_completed() {
        struct RollsBack<'a>(&'a Database);
        impl Drop for RollsBack<'_> {
            fn drop(&mut self) {
                self.0.add(PageClass::Base, 9);
            }
        }
        let db = Database::new(&Config::tiny());
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _change = RollsBack(&db);
            panic!("between two mini-transactions");
        }));
        assert!(caught.is_err());
        let pid = db.add(PageClass::Base, 10);
        db.checkpoint().unwrap();
        assert_eq!(db.value(pid), Some(10));
    }
}
