//! A queued request, as its owner sees it.

use super::Owner;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

/// How a queued request has been answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The lock is held.
    Granted,
    /// Its owner is the victim of a deadlock: the request is gone, and its transaction has to be
    /// rolled back.
    Deadlock,
}

/// A queued request. Its owner makes no other one before this is answered or cancelled.
#[derive(Clone, Debug)]
pub struct PendingLock {
    pub(super) owner: Owner,
    pub(super) slot: Arc<Slot>,
}

/// Where the answer goes.
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
    /// The answer, if there is one.
    pub fn outcome(&self) -> Option<Outcome> {
        *self.slot.outcome.lock()
    }

    /// Whether the lock is held.
    pub fn is_granted(&self) -> bool {
        self.outcome() == Some(Outcome::Granted)
    }

    /// Blocks until the answer, at most for `ns` nanoseconds; none if it has not come by then.
    pub fn wait_ns(&self, ns: u64) -> Option<Outcome> {
        let mut outcome = self.slot.outcome.lock();
        if outcome.is_none() {
            self.slot.changed.wait_for(&mut outcome, Duration::from_nanos(ns));
        }
        *outcome
    }
}
