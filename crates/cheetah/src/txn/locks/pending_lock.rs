//! A queued request, for its owner.

use super::Owner;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

/// The answer to a queued request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The lock is held.
    Granted,
    /// Its owner is the victim of a deadlock: the request was removed, and its transaction must be
    /// rolled back.
    Deadlock,
}

/// A queued request. Its owner makes no further request before this one is answered or cancelled.
#[derive(Clone, Debug)]
pub struct PendingLock {
    pub(super) owner: Owner,
    pub(super) slot: Arc<Slot>,
}

/// Receives the answer.
#[derive(Default, Debug)]
pub(super) struct Slot {
    outcome: Mutex<Option<Outcome>>,
    changed: Condvar,
}

impl Slot {
    pub(super) fn answer(&self, outcome: Outcome) {
        *self.outcome.lock() = Some(outcome);
        self.changed.notify_all();
    }
}

impl PendingLock {
    /// Returns the answer, if there is one.
    pub fn outcome(&self) -> Option<Outcome> {
        *self.slot.outcome.lock()
    }

    /// Returns whether the lock was granted.
    pub fn is_granted(&self) -> bool {
        self.outcome() == Some(Outcome::Granted)
    }

    /// Blocks until the answer, for at most `ns` nanoseconds; returns `None` if there is no answer
    /// by then.
    pub fn wait_ns(&self, ns: u64) -> Option<Outcome> {
        let mut outcome = self.slot.outcome.lock();
        if outcome.is_none() {
            self.slot.changed.wait_for(&mut outcome, Duration::from_nanos(ns));
        }
        *outcome
    }
}
