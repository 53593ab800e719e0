//! The gate: many actions at a time, or one flip of the generation.
//!
//! Invariants
//!   G1  The generation is constant while any action is open.
//!   G2  A thread opens one action at a time, and holds no page latch when it does (C7): otherwise the flip, which
//!       waits for open actions, and an action waiting for that latch would wait for each other.
//!   G3  A panic inside an action aborts the process: half an action must not reach a checkpoint. An action that a
//!       thread opens while it unwinds already (a transaction is dropped, and takes back its changes) is one like
//!       any other; a second panic inside of it aborts the process by the rules of the language.

use super::doors::{Doors, Inside};
use super::{latch_count, Pool};
use crate::base::Generation;
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
    pub(super) fn new(generation: Generation) -> Self {
        Self { doors: Doors::new(generation), next_door: AtomicUsize::new(0) }
    }

    /// Opens an action; waits while a flip drains.
    pub(super) fn enter<'p>(&'p self, pool: &'p Pool) -> Action<'p> {
        debug_assert_eq!(latch_count::held(), 0, "G2: the gate is entered before latches are taken");
        debug_assert!(!INSIDE.get(), "G2: one action at a time");
        let generation = self.doors.enter(self.door_no());
        INSIDE.set(true);
        Action { pool, generation, opened_unwinding: std::thread::panicking() }
    }

    /// Waits until no action is open, moves on to the next generation, and runs `at_cut` before any action of the
    /// new generation starts. `at_cut` gets the generation that has just ended.
    pub(super) fn flip<T>(&self, at_cut: impl FnOnce(Generation) -> T) -> T {
        debug_assert_eq!(latch_count::held(), 0, "G2: the flip waits for latches inside actions");
        debug_assert!(!INSIDE.get(), "G2: an action cannot wait for itself");
        self.doors.move_on(at_cut)
    }

    /// The generation of the actions that are open, or would be opened, now. Outside of actions it may be outdated
    /// by the time it is looked at. Never waits.
    pub(super) fn generation(&self) -> Generation {
        self.doors.generation()
    }

    fn door_no(&self) -> usize {
        DOOR.get().unwrap_or_else(|| {
            let no = self.next_door.fetch_add(1, Ordering::Relaxed) % DOORS_COUNT;
            DOOR.set(Some(no));
            no
        })
    }
}

/// Whether this thread has an action open.
pub(super) fn inside() -> bool {
    INSIDE.get()
}

/// The right to change pages. What happens between opening and dropping it is in a generation as a whole or not at
/// all. Waiting for anything that itself waits for the gate is forbidden inside.
#[derive(Debug)]
pub struct Action<'p> {
    pool: &'p Pool,
    generation: Inside<'p>,
    /// A panic outside of the action is the reason why it was opened.
    opened_unwinding: bool,
}

impl<'p> Action<'p> {
    /// The generation that the action's changes belong to.
    pub fn generation(&self) -> Generation {
        *self.generation
    }

    pub(super) fn pool(&self) -> &'p Pool {
        self.pool
    }
}

impl Drop for Action<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.opened_unwinding {
            eprintln!("cheetah: panic inside an action; aborting so that half a change is never stored");
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
    fn a_flip_waits_for_open_actions_and_stops_new_ones() {
        let db = Database::new(&Config::tiny());
        let open = AtomicBool::new(true);
        let action = db.pool.enter();
        let before = action.generation();
        std::thread::scope(|scope| {
            let flip = scope.spawn(|| {
                db.pool.gate.flip(|ended| {
                    assert!(!open.load(Ordering::SeqCst), "G1");
                    ended
                })
            });
            for _ in 0..100 {
                std::thread::yield_now();
            }
            open.store(false, Ordering::SeqCst);
            drop(action);
            assert_eq!(flip.join().unwrap(), before);
        });
        assert_eq!(db.pool.enter().generation().0, before.0 + 1);
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

    /// Runs itself again in a process that panics inside an action.
    #[test]
    fn a_panic_inside_an_action_aborts_the_process() {
        const VICTIM: &str = "CHEETAH_TEST_PANIC_INSIDE_ACTION";
        if std::env::var_os(VICTIM).is_some() {
            let db = Database::new(&Config::tiny());
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _action = db.pool.enter();
                panic!("half of an action is done");
            }));
            drop(caught);
            std::process::exit(0);
        }
        let name = "pool::gate::tests::a_panic_inside_an_action_aborts_the_process";
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        let output = again.args(["--exact", name, "--nocapture"]).env(VICTIM, "1").output().unwrap();
        assert!(!output.status.success());
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("aborting so that half a change is never stored"), "{text}");
    }

    #[test]
    fn an_action_that_a_panic_outside_of_it_opens_is_completed() {
        struct TakesBack<'a>(&'a Database);
        impl Drop for TakesBack<'_> {
            fn drop(&mut self) {
                self.0.add(PageClass::Base, 9);
            }
        }
        let db = Database::new(&Config::tiny());
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _change = TakesBack(&db);
            panic!("between two actions");
        }));
        assert!(caught.is_err());
        let pid = db.add(PageClass::Base, 10);
        db.checkpoint().unwrap();
        assert_eq!(db.value(pid), Some(10));
    }
}
