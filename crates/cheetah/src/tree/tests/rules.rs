//! Planted bugs that break design rules of trees.
//!
//! C7: a thread must not wait for the gate with a latch held. The thread would wait for the epoch
//! switch, and the switch for a mini-transaction that may wait for that latch. H9: the catalog
//! stores the root when the tree is created, so the root must not change.

use super::fixture::Fixture;
use crate::base::planted;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Grows a tree and shrinks it until it is empty.
fn grow_and_shrink() {
    let mut fixture = Fixture::tiny();
    let keys: Vec<_> = (0..300u32).map(u32::to_be_bytes).collect();
    keys.iter().for_each(|key| fixture.insert(key, b"payload"));
    keys.iter().for_each(|key| fixture.remove(key));
    fixture.check();
}

#[test]
#[cfg(debug_assertions)]
fn c7_a_latch_held_while_entering_the_gate_is_caught() {
    grow_and_shrink();
    let bug = planted::plant("tree: enter the gate with a latch held");
    let stopped = catch_unwind(AssertUnwindSafe(grow_and_shrink)).unwrap_err();
    let message = stopped.downcast_ref::<String>().expect("an assertion with a message");
    assert!(message.contains("G2") && bug.reached_count() > 0, "{message}");
}

/// A tree whose root was split once.
fn split_root() -> Fixture {
    let mut fixture = Fixture::tiny();
    for key in 0u32.. {
        fixture.insert(&key.to_be_bytes(), b"payload");
        if fixture.tree.counts().splits > 0 {
            break;
        }
    }
    fixture
}

#[test]
fn h9_a_root_that_moves_is_caught() {
    split_root().check();
    let bug = planted::plant("tree: let the root move");
    let fixture = split_root();
    assert!(bug.reached_count() > 0);
    catch_unwind(AssertUnwindSafe(|| fixture.check())).unwrap_err();
}
