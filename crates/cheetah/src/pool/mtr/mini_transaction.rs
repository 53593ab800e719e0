//! The mini-transaction, which permits changing pages. Invariants G2 and G3 are at the head of
//! `mtr`.

use super::epoch_switch::EpochGuard;
use super::gate;
use crate::base::Epoch;
use crate::pool::Pool;

/// The permission to change pages. All changes between its creation and its drop are in one epoch.
/// A thread inside a mini-transaction must not wait for a thread that may wait for the gate.
#[derive(Debug)]
pub struct MiniTransaction<'p> {
    pool: &'p Pool,
    epoch: EpochGuard<'p>,
    /// Whether the thread was already unwinding from a panic when it opened the mini-transaction.
    opened_unwinding: bool,
}

impl<'p> MiniTransaction<'p> {
    /// The epoch that the mini-transaction's changes belong to.
    pub fn epoch(&self) -> Epoch {
        *self.epoch
    }

    pub(in crate::pool) fn pool(&self) -> &'p Pool {
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
        debug_assert_eq!(self.epoch(), self.pool.epoch(), "G1: the epoch does not end meanwhile");
        gate::leave();
    }
}

impl Pool {
    /// Opens a mini-transaction. Waits during an epoch switch. The thread must hold no page latch
    /// and no other mini-transaction.
    pub fn enter(&self) -> MiniTransaction<'_> {
        let epoch = self.epochs.enter();
        MiniTransaction { pool: self, epoch, opened_unwinding: std::thread::panicking() }
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
            let switch = scope.spawn(|| {
                db.pool.epochs.switch(|ended| {
                    assert!(!open.load(Ordering::SeqCst), "G1");
                    ended
                })
            });
            for _ in 0..100 {
                std::thread::yield_now();
            }
            open.store(false, Ordering::SeqCst);
            drop(mtr);
            assert_eq!(switch.join().unwrap(), before);
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

    /// Runs itself in a second process, which panics inside a mini-transaction.
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
        let name = "pool::mtr::mini_transaction::tests::a_panic_inside_a_mini_transaction_aborts_the_process";
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
