//! All orders in which the steps of a reader, of a purger and of a commit can happen, within what
//! the memory model allows.

use super::map::{Chunk, ACTIVE};
use super::number::Number;
use super::snapshots::{published_before_slots, register, CLOSED};
use super::*;
use crate::base::planted::plant;
use loom::sync::atomic::{fence, AtomicU64, Ordering};
use loom::sync::Arc;

impl Number for AtomicU64 {
    fn new(value: u64) -> Self {
        AtomicU64::new(value)
    }

    fn get(&self) -> u64 {
        self.load(Ordering::Acquire)
    }

    fn set(&self, value: u64) {
        self.store(value, Ordering::Release);
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }
}

/// The maximum number of times that a thread is preempted; more takes minutes.
const PREEMPTIONS_MAX: usize = 3;

/// A number without the fence.
struct NotQuarantined(AtomicU64);

impl Number for NotQuarantined {
    fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    fn get(&self) -> u64 {
        self.0.get()
    }

    fn set(&self, value: u64) {
        self.0.set(value);
    }

    fn fence() {}
}

/// A number that is written and read without memory ordering.
struct Relaxed(AtomicU64);

impl Number for Relaxed {
    fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn fence() {}
}

/// The last published stamp, and the slot of a reader.
struct Shared<N> {
    published: N,
    slot: N,
}

impl<N: Number> Shared<N> {
    fn new(published: u64) -> Arc<Self> {
        Arc::new(Self { published: N::new(published), slot: N::new(CLOSED) })
    }

    fn horizon(&self) -> u64 {
        published_before_slots(&self.published).min(self.slot.get())
    }
}

/// A snapshot is opened while a stamp is published and the horizon is computed.
fn open_beside_a_purger<N: Number + Send + Sync + 'static>() {
    loom::model(|| {
        let shared = Shared::<N>::new(1);
        let (opens, commits) = (Arc::clone(&shared), Arc::clone(&shared));
        let reader = loom::thread::spawn(move || register(&opens.published, &opens.slot));
        let commit = loom::thread::spawn(move || commits.published.set(2));
        let horizon = shared.horizon();
        commit.join().unwrap();
        let stamp = reader.join().unwrap();
        assert!(horizon <= stamp, "H7: the horizon is {horizon}, a snapshot reads at {stamp}");
    });
}

#[test]
fn h7_no_order_of_steps_lets_the_horizon_pass_a_snapshot() {
    open_beside_a_purger::<AtomicU64>();
}

#[test]
fn h7_the_model_finds_a_snapshot_that_does_not_look_again() {
    let bug = plant("versions: open a snapshot without looking again");
    let found = std::panic::catch_unwind(open_beside_a_purger::<AtomicU64>);
    assert!(bug.reached_count() > 0 && found.is_err());
}

#[test]
fn h7_the_model_finds_that_the_fence_is_missing() {
    assert!(std::panic::catch_unwind(open_beside_a_purger::<NotQuarantined>).is_err());
}

/// A transaction ends while a snapshot is opened and another thread checks whether the chunk can be
/// dropped.
fn look_beside_an_end<N: Number + Send + Sync + 'static>() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(PREEMPTIONS_MAX);
    model.check(|| {
        let shared = Shared::<N>::new(0);
        let chunk = Arc::new(Chunk::<N>::new(0, 1, ACTIVE));
        let end = {
            let (shared, chunk) = (Arc::clone(&shared), Arc::clone(&chunk));
            loom::thread::spawn(move || {
                chunk.end_txn(0, Outcome::Committed, 1);
                shared.published.set(1);
            })
        };
        let reader = {
            let (shared, chunk) = (Arc::clone(&shared), Arc::clone(&chunk));
            loom::thread::spawn(move || {
                let stamp = register(&shared.published, &shared.slot);
                assert_eq!(chunk.state(0).is_seen_at(stamp), stamp >= 1, "I2: at {stamp}");
                stamp
            })
        };
        let can_go = chunk.has_ended_by(shared.horizon());
        end.join().unwrap();
        let stamp = reader.join().unwrap();
        assert!(!can_go || stamp >= 1, "H8: the chunk may go, but a snapshot reads at {stamp}");
    });
}

#[test]
fn h8_no_order_of_steps_changes_what_a_snapshot_sees_or_forgets_it() {
    look_beside_an_end::<AtomicU64>();
}

#[test]
fn h8_the_model_finds_an_outcome_that_is_forgotten_too_early() {
    let bug = plant("versions: forget what a snapshot may ask for");
    let found = std::panic::catch_unwind(look_beside_an_end::<AtomicU64>);
    assert!(bug.reached_count() > 0 && found.is_err());
}

#[test]
fn the_model_finds_stamps_that_are_seen_before_their_outcomes() {
    assert!(std::panic::catch_unwind(look_beside_an_end::<Relaxed>).is_err());
}
